"""`generic-adam check`: what a practitioner reads, the JSON, the exit codes, and bad input in one line."""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys

import pytest

import generic_adam as ga
from generic_adam.cli import main

ADAM = ["check", "adamw", "--weight-decay", "0"]
IN_HAND = [
    *("--lr", "3e-4", "--betas", "0.9,0.95", "--eps", "1e-8", "--weight-decay", "0.1", "--clip", "1"),
    *("--warmup", "2000", "--decay", "cosine", "--min-lr", "3e-5", "--steps", "20000"),
]


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_run_comes_first_in_at_most_ten_lines(capsys):
    code, out, err = run(capsys, *ADAM, "--steps", "1e5")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert len(lines) <= 10
    assert lines[0] == "Adam"
    assert "for 100,000 steps: guaranteed: gradients average below 29.8 % of the size they have anyway" in lines[1]
    assert "for ever: not certified, which is not to say that it fails: theta_t stays at 0.999" in out
    assert lines[-1] == "  next: generic-adam advise adamw --weight-decay 0 --steps 100000"


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        (["--clip", "2"], "clipping never acts: add --gradient-norm 2"),
        (["--weight-decay", "0.1"], "add --weights-bound X"),
    ],
)
def test_what_could_be_granted_is_said(capsys, beside, words):
    steps = ["--steps", "1000"]
    assert words in run(capsys, "check", "--lr", "1e-3", *beside, *steps)[1]


def test_a_shape_without_a_rate_takes_the_methods_own(capsys):
    shape = ["--warmup", "10", "--steps", "1000", "--json"]
    assert run(capsys, "check", "adamw", *shape) == run(capsys, "check", "adamw", "--lr", "1e-3", *shape)


def test_a_warm_up_of_no_steps_is_none(capsys):
    falls = ["--decay", "cosine", "--steps", "1000", "--json"]
    shown = [run(capsys, "check", "--lr", "1e-3", *warmup, *falls)[1] for warmup in ([], ["--warmup", "0"])]
    assert shown[0] == shown[1]


def test_the_next_command_is_the_same_question(capsys):
    arguments = ["--lr", "1e-3", "--betas", "0.9, 0.99", "--clip", "0.5", "--eps", "1.2345678901234567e-08"]
    arguments += ["--steps", "1000", "--full-batch"]
    _, out, _ = run(capsys, "check", *arguments)
    words = shlex.split(out.splitlines()[-1])[3:]
    _, out, _ = run(capsys, "check", *arguments, "--json")
    assert run(capsys, "check", *words, "--json")[1] == out


@pytest.mark.parametrize("arguments", [ADAM, [*ADAM, "--explain"], ["check", "rmsprop", "--json"]])
def test_no_verdict_is_worded_as_divergence(capsys, arguments):
    assert "diverge" not in run(capsys, *arguments)[1].lower()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["certified_adam"], 0),
        (["certified-adam", "--lr", "0.01"], 0),
        (["--alpha", "0.5/sqrt(t)", "--beta", "0.9", "--theta", "1 - 1/max(t, 2)"], 0),
        (["--alpha", "1/t", "--beta", "0.9", "--theta", "1 - 1/(t+1)"], 0),
        (["--alpha", "1/t", "--beta", "0.9", "--theta", "1 - 1/(t+1)", "--theorem", "zou2019"], 1),
        (["adaema"], 1),
        (["adaema", "--eps", "1e-8"], 0),
        (["adam"], 1),
        (["amsgrad", "--lr", "1e-3/sqrt(t)"], 0),
        (["sgd", "--lr", "1/t"], 0),
        (["certified_adam", "--eps", "1e-8", "--weight-decay", "0.1"], 1),
        (["certified_adam", "--clip", "1.0"], 3),
        (["certified_adam", "--clip", "1.0", "--gradient-norm", "0.5"], 0),
        (["certified_adam", "--factored"], 3),
        (["--lr", "1e-3", "--beta1", "0.9", "--beta2", "0.999"], 1),
        (IN_HAND, 3),
    ],
)
def test_exit_codes(capsys, arguments, code):
    assert run(capsys, "check", *arguments)[0] == code


def test_what_people_have_in_hand_is_the_algorithm_that_they_run(capsys):
    _, out, _ = run(capsys, "check", *IN_HAND, "--json")
    data = json.loads(out)
    algorithm = data["algorithm"]
    assert (algorithm["beta"], algorithm["theta"]) == ("0.9", "0.95")
    assert algorithm["clipping"] == {"threshold": 1.0, "kind": "norm"}
    assert "decay" in algorithm
    assert data["horizon"]["steps"] == 20_000
    assert data["verdict"] == "undecided"
    assert "clipped" in data["reason"]


def test_json_has_the_promised_keys(capsys):
    code, out, _ = run(capsys, "check", "power_family", "--json")
    data = json.loads(out)
    assert code == 0
    assert (data["verdict"], data["theorem"], data["rate"]) == ("certified", "zou2019", "T^(-1/2) log T")
    paper = next(one for one in data["findings"] if one["theorem"] == "zou2019")
    assert paper["C0"] == pytest.approx(1)
    assert [set(one) for one in data["conditions"]] == [{"number", "status", "reason", "witness"}] * 4
    assert set(data["method"]) == {"alpha", "beta", "theta"}


def test_explain_names_every_theorem(capsys):
    _, out, _ = run(capsys, *ADAM, "--explain")
    for words in (
        "not covered, and why:",
        "Zou et al. 2019, Theorem W",
        "Theorem E: not certified",
        "Reddi-Kale-Kumar",
        "Defossez",
    ):
        assert words in out


def test_the_theorems_are_listed(capsys):
    _, out, _ = run(capsys, "theorems")
    for words in ("zou2019", "AMSGrad and Padam"):
        assert words in out
    code, out, _ = run(capsys, "theorems", "w", "--json")
    assert code == 0
    assert json.loads(out)[0]["name"] == "W"


BAD = {
    "unknown method": (["check", "adaam"], "did you mean 'adam'"),
    "refused method": (["check", "radam"], "radam is not in the catalogue"),
    "unknown theorem": (["check", "adam", "--theorem", "zou"], "no theorem is called 'zou'"),
    "misspelt option": (["check", "adam", "--thetta", "0.9"], "--theta"),
    "an option of another method": (["check", "adam", "--r", "0.5"], "no argument 'r'"),
    "beta = 1": (["check", "adam", "--beta", "1"], "beta: expected 0 <= beta_t < 1"),
    "theta > 1": (["check", "adam", "--theta", "1.5"], "theta: expected 0 <= theta_t < 1"),
    "nan": (["check", "adam", "--lr", "nan"], "finite"),
    "nan in a text": (["check", "--alpha", "nan", "--beta", "0.9", "--theta", "0.9"], "finite"),
    "horizon 0": (["check", "adam", "--horizon", "0"], "expected a whole number of steps"),
    "horizon nan": (["check", "adam", "--horizon", "nan"], "expected a whole number"),
    "horizon word": (["check", "adam", "--horizon", "long"], "long"),
    "nothing": (["check"], "give the name of a method"),
    "half a method": (["check", "--alpha", "1/t"], "missing --beta, --theta"),
    "alpha with a name": (["check", "adam", "--alpha", "1/t"], "use --lr"),
    "lr without a name": (
        ["check", "--alpha", "1", "--beta", "0", "--theta", "0.9", "--lr", "1"],
        "--lr goes with",
    ),
    "weight decay nan": (
        ["check", "adam", "--weight-decay", "nan"],
        "weight_decay: expected a finite number",
    ),
    "weight decay < 0": (["check", "adam", "--weight-decay", "-0.1"], "weight_decay: expected a number >= 0"),
    "clip 0": (["check", "adam", "--clip", "0"], "clipping: expected a number > 0"),
    "one beta": (["check", "--lr", "1", "--betas", "0.9"], "--betas: expected two numbers"),
    "cosine without steps": (["check", "--lr", "1e-3", "--decay", "cosine"], "(--steps)"),
    "steps by its own name": (["check", "adam", "--steps", "1.5"], "--steps: expected a whole number"),
    "warm-up nan": (["check", "--lr", "1", "--warmup", "nan"], "--warmup: expected a whole number"),
    "negative rate": (["check", "adam", "--lr", "-1"], "--lr: expected a finite number > 0, got -1"),
    "unknown decay": (
        ["check", "--lr", "1", "--decay", "cos", "--steps", "9"],
        "--decay: expected one of constant",
    ),
    "rising decay": (
        ["check", "--lr", "1", "--decay", "cosine", "--min-lr", "2", "--steps", "9"],
        "--min-lr: expected a number from 0 to --lr, got 2",
    ),
    "a shape beside a sequence": (
        ["check", "--alpha", "1", "--beta", "0", "--theta", "0.9", "--warmup", "9", "--decay", "cosine"],
        "--warmup, --decay goes with --lr or the name",
    ),
    "recipe and name": (["check", "adam", "--recipe", "bert"], "--recipe stands alone"),
    "eps of SGD": (["check", "sgd", "--eps", "1e-8"], "--eps is added to a divisor, and SGD has none"),
    "not an expression": (["check", "--alpha", "1/(", "--beta", "0", "--theta", "0.9"], "alpha"),
    "python in a text": (["check", "--alpha", "__import__('os')", "--beta", "0", "--theta", "0.9"], "alpha"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, case):
    arguments, words = BAD[case]
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert words in err
    assert "Traceback" not in err


def test_neither_torch_nor_matplotlib_is_imported():
    script = (
        "import sys; from generic_adam.cli import main; code = main(['check', 'adam']); "
        "assert code == 1; heavy = {'torch', 'matplotlib', 'jax', 'numba', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


def test_cold_start_is_cheap():
    """A whole process against one that imports the libraries it rests on: best of five, taken in turns."""

    def spent(*words):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, timeout=60, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    libraries = "import numpy, flint, typer, rich.console, rich.table"
    times = [(spent("-m", "generic_adam.cli", *ADAM), spent("-c", libraries)) for _ in range(5)]
    command, imports = (min(column) for column in zip(*times, strict=True))
    assert command < 3 * imports, (command, imports)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("generic-adam --theorem W", "noise 0.05"),
        (
            "generic-adam --theorem zou2019",
            "steps: unknown, Zou et al. 2019 bounds it given the problem's constants (`bound`)",
        ),
        ("adam --eps 1e-8 --theorem W", "steps: unknown, Theorem W does not cover it: v_0 = 0"),
        ("amsgrad --theorem M", "(Theorem M_E)"),
        ("adam --theorem reddi2018", "steps: unknown, Reddi-Kale-Kumar speaks of no number of steps"),
    ],
)
def test_a_theorem_that_is_asked_alone_is_the_one_that_speaks_of_the_run(capsys, arguments, said):
    main(["check", *arguments.split(), "--steps", "1e5"])
    out = capsys.readouterr().out
    assert said in out
    assert ("noise" in out) == ("unknown" not in out.splitlines()[1])


def test_adam_is_torchs_and_generic_adam_is_the_papers(capsys):
    for name in ("adam", "Adam"):
        algorithm = json.loads(run(capsys, "check", name, "--json")[1])["algorithm"]
        assert algorithm == ga.methods.adamw(weight_decay=0).to_dict()
    papers = json.loads(run(capsys, "check", "generic-adam", "--json")[1])["algorithm"]
    assert papers == ga.Algorithm(ga.methods.generic_adam(), label="generic_adam", notes=papers["notes"]).to_dict()
    bare = json.loads(run(capsys, "check", "adam", "--no-bias-correction", "--json")[1])["algorithm"]
    assert (bare["initial_v"], ga.parse(bare["eps"])(1)) == (0, 1e-8)
    assert ga.certify("adam").algorithm.eps == ga.methods.adamw().eps


LENGTHS = {
    "--lr 3e-4 --betas 0.9 0.95 --warmup 3% --decay wsd --steps 100k":
        "--lr 3e-4 --betas 0.9,0.95 --warmup 3000 --decay wsd --steps 1e5",
    "adamw --steps 100,000 --warmup 0.03": "adamw --steps 100000 --warmup 3000",
    "adamw --decay 1-sqrt --cooldown 10% --steps 2k": "adamw --decay 1-sqrt --cooldown 200 --steps 2_000",
    "adamw --epochs 3 --examples 50k --batch 32 --warmup 10%":
        "adamw --steps 4689 --batches-per-epoch 1563 --warmup 469",
}  # fmt: skip


@pytest.mark.parametrize(("words", "same"), LENGTHS.items(), ids=range(len(LENGTHS)))
def test_lengths_are_read_as_people_write_them(capsys, words, same):
    answers = []
    for one in (words, same):
        assert main(["check", *one.split(), "--json"]) in {0, 1, 3}
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "words",
    [
        "--steps 2x", "--steps 10%", "--steps 1e99999999", "--warmup 0.1", "--epochs 3", "--warmup 150% --steps 10",
        "--betas 0.9 0.99 0.9", "--steps ''",
    ],
)  # fmt: skip
def test_lengths_that_are_none_are_refused_in_one_line(capsys, words):
    assert main(["check", "adamw", *shlex.split(words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
