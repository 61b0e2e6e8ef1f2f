"""Answers on terminals of 60, 80 and 120 columns, and the shell's completion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.answers.terminal import shortened
from generic_adam.cli import main
from generic_adam.cli.app import SUBCOMMANDS
from generic_adam.methods import names
from generic_adam.methods.recipes import recipe_names

WIDTHS = (60, 80, 120)
ROWS = {60: 25, 80: 16, 120: 13}
"""The rows that an answer takes at most at each width."""
RUN = "--lr 3e-4 --betas 0.9,0.95 --eps 1e-8 --weight-decay 0.1 --warmup 200 --decay cosine --steps 3000"
COMMANDS = {
    "check": ["check", "adam", "--steps", "1e4"],
    "check a run": ["check", *RUN.split(), "--clip", "1"],
    "explain": ["check", *RUN.split(), "--explain"],
    "advise": ["advise", "adam", "--steps", "3000"],
    "bound": ["bound", "adam", "--steps", "1e3", "--explain"],
    "methods": ["methods"],
    "theorems": ["theorems"],
    "one theorem": ["theorems", "W"],
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(command, width, on_a_terminal):
    lines = on_a_terminal(width, *COMMANDS[command])
    assert max(map(len, lines)) <= width
    whole = " ".join(" ".join(lines).split())
    said = {
        "check": ("10,000 steps", "no guarantee", "beta2 is constant (0.999)"),
        "check a run": ("NO USEFUL GUARANTEE", "gradients and weights within 1"),
        "explain": ("not covered, and why:", "Theorem D: not certified"),
        "advise": ("3,000 steps", "Cause", "validation loss"),
        "bound": ("trivial:", "turns X_w into the l1 norm"),
        "methods": tuple(names()),
        "theorems": ("zou2019", "robbins_monro", "proved here"),
        "one theorem": ("assumes:", "source:"),
    }[command]
    for words in said:
        assert words in whole, words


@pytest.mark.parametrize(
    "subject",
    [
        "adam --steps 1e5", "adam", "adamw --weight-decay 0.1 --steps 1e5", "nadam --steps 1e5",
        "certified_adam --steps 1e5", "--recipe nanogpt", "--recipe gpt3", "--recipe bert", "t5",
        f"{RUN} --clip 1 --min-lr 3e-5", f"adamw {RUN} --clip 1 --min-lr 3e-5",
        f"{RUN.replace('--weight-decay 0.1', '')} --clip 1",
    ],
)  # fmt: skip
def test_check_answers_for_the_run_first_in_few_rows(subject, on_a_terminal):
    for width in WIDTHS:
        lines = [line for line in on_a_terminal(width, "check", *subject.split()) if line]
        assert len(lines) <= ROWS[width]
        assert lines[0].startswith(("GUARANTEED", "NO GUARANTEE", "NO USEFUL GUARANTEE"))
        assert max(map(len, lines)) <= width


def test_a_file_is_answered_in_few_rows_too(tmp_path, on_a_terminal):
    warm = {"warmup_min_lr": 0, "warmup_max_lr": 3e-4, "warmup_num_steps": 500, "total_num_steps": 5000}
    params = {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
    file = tmp_path / "deepspeed.json"
    data = {"optimizer": {"type": "AdamW", "params": params}, "gradient_clipping": 1.0, "zero": {"stage": 2}}
    file.write_text(json.dumps(data | {"scheduler": {"type": "WarmupDecayLR", "params": warm}}))
    for width in WIDTHS:
        lines = [line for line in on_a_terminal(width, "check", "--config", str(file)) if line]
        assert len(lines) <= ROWS[width]
        whole = " ".join(" ".join(lines).split())
        assert "gradients and weights within 1" in whole


def test_notes_stay_on_a_wide_terminal(tmp_path, on_a_terminal, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path would take the room
    file = Path("block.json")
    file.write_text(json.dumps({"optimizer": {"_target_": "torch.optim.Adam", "lr": 1e-3}, "seed": 3}))
    lines = [line for line in on_a_terminal(160, "check", "--config", str(file), "--steps", "2000") if line]
    assert len(lines) <= 11
    assert "that were not used: seed" in " ".join(lines)


GROUPS = """
import torch

def groups():
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    sets = [{"params": weights[:2], "betas": (0.8, 0.99)}, {"params": weights[2:]}]
    optimizer = torch.optim.AdamW(sets, lr=1e-3)
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=1000)
"""


def test_parameter_groups_are_answered_in_few_rows(tmp_path, on_a_terminal):
    pytest.importorskip("torch")
    (tmp_path / "groups.py").write_text(GROUPS)
    for width in WIDTHS:
        lines = [line for line in on_a_terminal(width, "check", "--from", f"{tmp_path}/groups.py:groups") if line]
        assert len(lines) <= ROWS[width] + 1  # the groups have a row of their own
        assert "NO GUARANTEE for 1,000 steps" in lines[0]


@pytest.mark.parametrize(
    "subject",
    [
        "adamw --weight-decay 0 --steps 1e5 --dimension 10", f"{RUN} --clip 1", "sgd --steps 1e4", "t5",
        f"{RUN} --clip 1 --gradient-norm 1 --weights-bound 1 --full-batch", "amsgrad --steps 1e4",
    ],
)  # fmt: skip
def test_bound_takes_at_most_ten_lines(subject, on_a_terminal):
    for width in WIDTHS:
        lines = [line for line in on_a_terminal(width, "bound", *subject.split()) if line]
        assert len(lines) <= ROWS[width]
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize("words", [RUN, "adam --eps 1e-8 --steps 1e4"])
def test_explain_says_no_sentence_twice(words, on_a_terminal):
    lines = on_a_terminal(10_000, "check", *words.split(), "--explain")
    long = [one for line in lines for one in line.strip().rstrip(".").split(": ") if len(one) > 30]
    assert len(long) == len(set(long))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["", *SUBCOMMANDS, "data fetch", "reproduce counterexample"])
def test_help_fits_and_has_an_example(name, width, on_a_terminal):
    lines = on_a_terminal(width, *name.split(), "--help")
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "[[" not in text
    assert "Example" in text
    if name != "reproduce counterexample":  # its default directory is longer than a column of 60
        assert "…" not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_that_does_not_fit_is_stacked(width, on_a_terminal):
    lines = on_a_terminal(width, "recipes")
    assert ("  guarantee: 69.1 %" in lines) is (width == 60)
    assert {"69.1", "nanogpt", "transformer"} <= set(" ".join(lines).split())


@given(st.text(st.sampled_from("t +*/()sqrtlog0123"), max_size=200), st.integers(20, 90))
def test_a_shortened_formula_fits_and_begins_alike(text, longest):
    short = shortened(text, longest)
    assert len(short) <= longest
    assert text == short or text.startswith(short.partition(" … ")[0].removesuffix(" …"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("chec", {"check"}),
        ("check certified", {"certified_adam"}),
        ("check --weight", {"--weight-decay", "--weights", "--weights-bound"}),
        ("advise --recipe nano", {"nanogpt"}),
        ("check --theorem zou", {"zou2019"}),
        ("recipes ", set(recipe_names())),
        ("check --decay c", {"constant", "cosine"}),
    ],
)
def test_the_shell_completes_names_and_options(words, expected, monkeypatch, capsys):
    monkeypatch.setenv("_GENERIC_ADAM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"generic-adam {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(f"{words}.".split())))
    assert main([]) == 0
    assert set(capsys.readouterr().out.split()) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_shown(shell, monkeypatch, capsys):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert main(["--show-completion", shell]) == 0
    assert "_GENERIC_ADAM_COMPLETE" in capsys.readouterr().out
