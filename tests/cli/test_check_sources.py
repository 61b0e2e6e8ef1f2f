"""`generic-adam check --from` and `--recipe`: exit codes that guard a pipeline, one line for bad input."""

import json
import math
import sys

import pytest

import generic_adam as ga
from generic_adam.cli import main

SCRIPT = """
import torch
from torch.optim import lr_scheduler
from generic_adam.torch import GenericAdam, ScheduleLR

AS_THE_PAPER = {"initial_v": 1e-8, "eps": 1e-16, "bias_correction": False}

def weights():
    return [torch.zeros(2, requires_grad=True)]

def plain():
    return torch.optim.Adam(weights())

def repaired():
    optimizer = GenericAdam(weights(), lr=1.0, theta="max(0.999, 1 - 1/t)", **AS_THE_PAPER)
    return optimizer, ScheduleLR(optimizer, "0.001 * min(1, sqrt(1000/t))")

def decayed():
    return GenericAdam(weights(), lr="0.1/sqrt(t)", theta="1 - 1/max(t, 2)", weight_decay=0.1, **AS_THE_PAPER)

def opaque():
    optimizer = torch.optim.Adagrad(weights(), initial_accumulator_value=0.1)
    return optimizer, lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k) ** 0.5)

def groups():
    return GenericAdam([
        {"params": weights(), "lr": "0.1/sqrt(t)", "theta": "1 - 1/max(t, 2)"},
        {"params": weights(), "lr": 0.1, "theta": 0.9},
    ], **AS_THE_PAPER)

def lightning():
    optimizer = torch.optim.Adam(weights())
    return {"optimizer": optimizer, "lr_scheduler": lr_scheduler.StepLR(optimizer, 3)}

def mismatched():
    return torch.optim.Adam(weights()), lr_scheduler.StepLR(torch.optim.Adam(weights()), 3)

def sgd():
    return torch.optim.SGD(weights(), lr=0.1)

def talks():
    print("loading ...")
    return plain()

def raises():
    raise KeyError("no such\\nfile")

def nothing():
    return None
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "guarded_script.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("guarded_script", None)


def check(capsys, *arguments):
    code = main(["check", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("function", "code"),
    [("plain", 1), ("repaired", 0), ("decayed", 1), ("opaque", 1), ("groups", 1), ("sgd", 1)],
)
def test_exit_codes_guard_a_pipeline(function, code, project, capsys):
    source = ("--from", f"guarded_script:{function}")
    assert check(capsys, *source, "--fail-on", "long-run")[0] == code
    assert check(capsys, *source)[0] == (3 if function == "opaque" else 0)


def test_what_is_printed(project, capsys):
    _, out, _ = check(capsys, "--from", "guarded_script:repaired")
    assert out.startswith(
        "GUARANTEED in the long run, if the loss is one fixed function.\n  Long run     error about log T / sqrt T"
    )
    _, out, _ = check(capsys, "--from", "guarded_script:decayed")
    assert "weight decay" in out
    _, out, _ = check(capsys, "--from", "guarded_script:opaque", "--horizon", "500")
    assert "500 steps" in out


def test_json_of_groups_that_differ(project, capsys):
    code, out, _ = check(capsys, "--from", "guarded_script:groups", "--json", "--explain")
    data = json.loads(out)
    assert code == 0
    assert data["verdict"] == "not certified"
    assert [part["verdict"] for part in data["parts"]] == ["certified", "not certified"]
    assert data["algorithm"]["theta"] == "0.9"


def test_what_a_script_prints_is_no_part_of_the_answer(project, capsys):
    _, out, err = check(capsys, "--from", "guarded_script:talks", "--json")
    assert json.loads(out)["answer"] == "no guarantee"
    assert err.startswith("loading ...")


def test_groups_that_differ_have_an_answer_for_the_run_too_and_each_its_advice(project, capsys, tmp_path):
    named = ("--from", "guarded_script:groups", "--steps", "1000")
    _, out, _ = check(capsys, *named)
    assert out.startswith("NO GUARANTEE for 1,000 steps")
    assert "2 sets of parameter groups" in out
    assert "add --steps" not in out
    _, out, _ = check(capsys, *named, "--explain")
    assert all(f"GenericAdam, group {number}: " in out for number in (0, 1))
    assert main(["advise", *named]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("GenericAdam")] == [
        "GenericAdam, group 0",
        "GenericAdam, group 1",
    ]
    assert "Each set of groups is answered alone" in out
    assert main(["advise", *named, "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert [(one["long_run"], bool(one["advice"])) for one in parts] == [("guaranteed", False), ("no guarantee", False)]
    pytest.importorskip("matplotlib")
    figure = tmp_path / "check.svg"
    check(capsys, *named, "--plot", str(figure))
    assert all(f"GenericAdam, group {number}" in figure.read_text() for number in (0, 1))


def test_an_epochs_scheduler_needs_its_length(project, capsys):
    code, _, err = check(capsys, "--from", "guarded_script:lightning")
    assert code == 2
    assert "steps of an epoch" in err


def test_recipes_come_with_their_horizon(capsys):
    code, out, _ = check(capsys, "--recipe", "t5", "--json", "--explain")
    data = json.loads(out)
    assert code == 0
    assert data["horizon"]["steps"] == 524_288
    assert len(data["horizon"]["outside"]) == 3
    assert check(capsys, "--recipe", "t5", "--horizon", "1000", "--json")[1].count('"steps": 1000') == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "guarded_script"], "expected package.module:function"),
        (["--from", "no_such_script:f"], "no module named 'no_such_script'"),
        (["--from", "guarded_script:raises"], "guarded_script:raises raised KeyError"),
        (["--from", "guarded_script:nothing"], "cannot read a NoneType"),
        (["--from", "guarded_script:mismatched"], "StepLR belongs to another optimizer"),
        (["--from", "guarded_script:plain", "--recipe", "t5"], "stands alone"),
        (["adam", "--from", "guarded_script:plain"], "--from stands alone"),
        (["--recipe", "t5", "--lr", "0.1"], "--recipe stands alone"),
        (["adam", "--every", "3"], "--every goes with --from"),
        (["--from", "guarded_script:plain", "--every", "0"], "--every: expected"),
        (["--recipe", "t6"], "no recipe is called 't6'; expected one of transformer"),
        (["nanogpt", "--lr", "0.1"], "nanogpt stands alone"),
        (["--lr", "1e-3", "--min-lr", "1e-4", "--steps", "9"], "--min-lr is where --decay cosine"),
        (["nanogpt", "--recipe", "bert"], "nanogpt stands alone"),
        (["nanogtp"], "no method or recipe is called 'nanogtp'; did you mean 'nanogpt'?"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, message, project, capsys):
    code, out, err = check(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


def test_a_name_is_a_method_or_a_recipe_as_in_the_library(capsys):
    for name in ("nanogpt", "adamw"):
        told = json.loads(check(capsys, name, "--json", "--explain")[1])
        assert told["algorithm"] == ga.certify(name).algorithm.to_dict()
    assert check(capsys, "T5", "--json")[1] == check(capsys, "--recipe", "t5", "--json")[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("adam --eps 1e-8 --lr 0.01", ga.methods.adamw(lr=0.01, eps=1e-8, weight_decay=0)),
        ("adam --weight-decay 0.1", ga.methods.adamw(weight_decay=0.1)),
        ("--lr 1e-3", ga.methods.adamw(weight_decay=0)),
    ],
)
def test_adam_with_what_torchs_has_is_torchs(arguments, expected, capsys):
    assert json.loads(check(capsys, *arguments.split(), "--json", "--explain")[1])["algorithm"] == expected.to_dict()


@pytest.mark.parametrize("name", ["amsgrad", "nadam", "certified_adam", "adaema"])
def test_decoupled_decay_is_proportional_to_the_rate_before_its_correction(name, capsys):
    out = check(capsys, name, "--lr", "0.01", "--weight-decay", "0.1", "--json", "--explain")[1]
    decay = ga.parse(json.loads(out)["algorithm"]["decay"])
    falls = 1 / math.sqrt(7) if name == "adaema" else 1.0
    assert decay(7) == pytest.approx(0.001 * falls, rel=1e-12)


def test_the_papers_adam_keeps_its_form_without_the_correction(capsys):
    out = check(capsys, "adam", "--no-bias-correction", "--eps", "1e-8", "--json", "--explain")[1]
    told = json.loads(out)["algorithm"]
    assert (told["alpha"], told["eps"], told["initial_v"]) == ("0.001", "1e-08", 0.0)
    assert "v_0 = 1e-8" in check(capsys, "rmsprop")[1]
    assert "v_0 = 1e-8" not in check(capsys, "rmsprop", "--eps", "0")[1]


def test_bound_takes_a_recipe_and_gives_none_where_no_theorem_covers(capsys):
    assert main(["bound", "--recipe", "gpt3", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["steps"] == 93_750
    assert data["theorem"] is None
    for arguments, words in (
        (["--recipe", "gtp3", "--steps", "9"], "did you mean 'gpt3'?"),
        (["adam", "--recipe", "gpt3", "--steps", "9"], "--recipe stands alone"),
    ):
        assert main(["bound", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert words in captured.err


def test_a_configuration_file_says_which_keys_were_used(tmp_path, capsys):
    parameters = {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.0}
    file = tmp_path / "deepspeed.json"
    file.write_text(json.dumps({"optimizer": {"type": "AdamW", "params": parameters}}))
    code, out, _ = check(capsys, "--config", str(file), "--steps", "1000")
    assert code == 0
    assert "1,000 steps" in out
    assert "optimizer.params.betas" in check(capsys, "--config", str(file), "--steps", "1000", "--explain")[1]
    code, _, err = check(capsys, "--config", str(tmp_path / "none.json"))
    assert code == 2
    assert err.count("\n") == 1
