"""`generic-adam check`: what a practitioner reads, the JSON, the exit codes, and bad input in one line."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys

import pytest

from generic_adam.cli import main

ADAM = ["check", "adam", "--lr", "1e-3", "--beta", "0.9", "--theta", "0.999"]


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_adam_in_under_ten_lines(capsys):
    code, out, err = run(capsys, *ADAM)
    assert code == 1
    assert err == ""
    assert len(out.splitlines()) < 10
    assert "not certified" in out
    assert "sqrt(1-θ) = 0.03162" in out
    assert "theta_t = max(0.999, 1 - 1/t); alpha_t times min(1, sqrt(1000/t))" in out
    assert "from t = 1,001 on; rate T^(-1/2) log T" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ADAM,
        [*ADAM, "--all-criteria", "--explain"],
        ["check", "rmsprop", "--all-criteria", "--json"],
        ["check", "power_family", "--r", "2"],
    ],
)
def test_no_verdict_is_worded_as_divergence(capsys, arguments):
    _, out, _ = run(capsys, *arguments)
    # The explanation may say that the verdict does not mean divergence, and nothing else about it.
    cleaned = out.lower().replace("this does not mean that it diverges", "")
    assert "diverge" not in cleaned


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["certified_adam"], 0),
        (["certified-adam", "--lr", "0.01"], 0),
        (["--alpha", "0.5/sqrt(t)", "--beta", "0.9", "--theta", "1 - 1/max(t, 2)"], 0),
        (["adaema"], 1),
        (["adam"], 1),
        (
            ["--alpha", "0.1/sqrt(t) * (1 + 0.5*sin(t^2)*sin(t))", "--beta", "0.9", "--theta", "1 - 1/(t+1)"],
            0,
        ),
        (["certified_adam", "--weight-decay", "0.1"], 3),
        (["certified_adam", "--clip", "1.0"], 3),
        (["certified_adam", "--factored"], 3),
        (["adam", "--weight-decay", "0.1"], 1),
    ],
)
def test_exit_codes(capsys, arguments, code):
    assert run(capsys, "check", *arguments)[0] == code


def test_what_the_theorem_does_not_cover_is_said(capsys):
    options = ["--weight-decay", "0.1", "--clip", "1", "--factored"]
    _, out, _ = run(capsys, "check", "certified_adam", *options)
    for words in (
        "not covered: weight decay 0.1",
        "not covered: gradient clipping at 1",
        "factored second moments",
    ):
        assert words in out
    _, out, _ = run(capsys, "check", "certified_adam", *options, "--json")
    assert len(json.loads(out)["not_covered"]) == 3


def test_json_has_the_promised_keys(capsys):
    code, out, _ = run(capsys, "check", "power_family", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["verdict"] == "certified"
    assert data["rate"] == "T^(-1/2) log T"
    assert data["rate_exponents"] == {"power": "-1/2", "log": "1", "loglog": "0"}
    assert data["C0"] == pytest.approx(1)
    assert [set(one) for one in data["conditions"]] == [{"number", "status", "reason", "witness"}] * 4
    assert set(data["method"]) == {"alpha", "beta", "theta"}


def test_horizon_adds_its_reading(capsys):
    _, out, _ = run(capsys, *ADAM, "--horizon", "1e6")
    assert "up to T = 1,000,000: Theorem 1 applies" in out
    _, out, _ = run(capsys, *ADAM, "--horizon", "1000000", "--json")
    assert json.loads(out)["horizon"]["steps"] == 1_000_000


def test_all_criteria_lists_the_other_theorems(capsys):
    _, out, _ = run(capsys, *ADAM, "--all-criteria")
    for words in (
        "Reddi-Kale-Kumar",
        "Defossez",
        "Mukkamala-Hein",
        "Robbins-Monro",
        "some problem defeats it",
    ):
        assert words in out
    _, out, _ = run(capsys, *ADAM, "--all-criteria", "--json")
    assert len(json.loads(out)["criteria"]) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["adam", "--theta", "0.5"],  # below beta^2 = 0.81
        ["--alpha", "t", "--beta", "0.9", "--theta", "0.99"],  # chi_t grows
    ],
)
def test_without_a_bound_there_is_no_floor_of_one(capsys, arguments):
    code, out, _ = run(capsys, "check", *arguments)
    assert code == 1
    assert "floor: Theorem 1" not in out


@pytest.mark.parametrize(("method", "word"), [("adam", "warning"), ("adagrad", "no warning")])
def test_a_theorem_that_can_only_warn_is_shown_as_such(capsys, method, word):
    _, out, _ = run(capsys, "check", method, "--all-criteria")
    row = next(line for line in out.splitlines() if "a warning" in line)
    assert re.split(r"\s{2,}", row.strip())[2] == word


def test_explain_prints_the_whole_argument(capsys):
    _, out, _ = run(capsys, *ADAM, "--explain")
    assert "condition 4 fails" in out


BAD = {
    "unknown method": (["check", "adaam"], "did you mean 'adam'"),
    "misspelt option": (["check", "adam", "--thetta", "0.9"], "--theta"),
    "an option of another method": (["check", "adam", "--r", "0.5"], "no argument 'r'"),
    "beta = 1": (["check", "adam", "--beta", "1"], "beta: expected 0 <= beta_t < 1"),
    "theta > 1": (["check", "adam", "--theta", "1.5"], "theta: expected 0 <= theta_t < 1"),
    "nan": (["check", "adam", "--lr", "nan"], "finite"),
    "nan in a text": (["check", "--alpha", "nan", "--beta", "0.9", "--theta", "0.9"], "finite"),
    "horizon 0": (
        ["check", "adam", "--horizon", "0"],
        "--horizon is 0, expected a whole number from 1 to 10^15",
    ),
    "horizon 1e30": (["check", "adam", "--horizon", "1e30"], "expected a whole number from 1 to 10^15"),
    "horizon nan": (["check", "adam", "--horizon", "nan"], "expected a whole number"),
    "horizon word": (["check", "adam", "--horizon", "long"], "long"),
    "nothing": (["check"], "missing --alpha, --beta, --theta"),
    "half a method": (["check", "--alpha", "1/t"], "missing --beta, --theta"),
    "alpha with a name": (["check", "adam", "--alpha", "1/t"], "use --lr"),
    "lr without a name": (
        ["check", "--alpha", "1", "--beta", "0", "--theta", "0.9", "--lr", "1"],
        "--lr goes with",
    ),
    "weight decay nan": (["check", "adam", "--weight-decay", "nan"], "--weight-decay is nan"),
    "weight decay < 0": (["check", "adam", "--weight-decay", "-0.1"], "--weight-decay is -0.1"),
    "clip 0": (["check", "adam", "--clip", "0"], "--clip is 0.0, expected a positive number"),
    "not an expression": (["check", "--alpha", "1/(", "--beta", "0", "--theta", "0.9"], "alpha"),
    "python in a text": (["check", "--alpha", "__import__('os')", "--beta", "0", "--theta", "0.9"], "alpha"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, case):
    arguments, words = BAD[case]
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
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
    """Processor time of a whole process, the best of five: a loaded machine stretches the clock, not this."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(5):
        before = spent()
        subprocess.run(
            [sys.executable, "-m", "generic_adam.cli", *ADAM], capture_output=True, timeout=60, check=False
        )
        times.append(spent() - before)
    assert min(times) < 0.6
