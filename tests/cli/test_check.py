"""`generic-adam check`: what a practitioner reads, the JSON, the exit codes, and bad input in one line."""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import generic_adam as ga
from generic_adam.cli import main
from generic_adam.methods.recipes import recipe_names

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
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 10
    assert lines[0] == "GUARANTEED for 100,000 steps, if the loss is one fixed function."
    assert "29.8 %" in lines[1]
    assert not any(letter in out for letter in "αβθν")
    assert "generic-adam advise" in out


def test_the_learning_rate_enters_the_answer(capsys):
    """Four rates, four answers; of 1000 there is no useful guarantee, in words and in JSON."""
    told, useful = [], []
    for lr in ("1e-6", "1e-3", "1", "1000"):
        asked = ["check", "adam", "--lr", lr, "--eps", "1e-8", "--steps", "1e5"]
        told.append(run(capsys, *asked)[1].splitlines()[:3])
        data = json.loads(run(capsys, *asked, "--json")[1])
        useful.append((data["informative"], data["run"]["dominant"]))
    assert len(set(map(str, told))) == 4
    assert useful == [(False, "start"), (True, "noise"), (False, "curvature"), (False, "curvature")]
    assert told[-1][0].startswith("NO USEFUL GUARANTEE")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_exits_with_0_where_its_run_has_a_guarantee(capsys, name):
    code, out, _ = run(capsys, "check", name)
    assert code == 0
    assert out.startswith("GUARANTEED") is (name != "t5")  # which asks for symmetric noise
    assert len(out.splitlines()) <= 11


@pytest.mark.parametrize(
    ("beside", "kind"),
    [
        (["--betas", "0.5,0.999"], "a GAN"),
        (["--betas", "0", "0.99"], "a GAN"),
        (["--eps", "1e-5"], "RL"),
        (["--eps", "1e-5", "--beta2", "0.95"], None),
        (["--setting", "supervised", "--betas", "0.5,0.999"], None),
        ([], None),
    ],
)
def test_what_looks_like_a_loss_that_moves_is_doubted_in_the_first_line(capsys, beside, kind):
    code, out, _ = run(capsys, "check", "adam", "--steps", "1e6", *beside)
    lines = out.splitlines()
    assert code == (0 if kind is None else 3)
    assert lines[0].startswith("GUARANTEED for 1,000,000 steps" if kind is None else f"LOOKS LIKE {kind} ")
    assert kind is None or lines[1].split()[:5] == ["If", "neither", "guaranteed", "for", "1,000,000"]
    advice = run(capsys, "advise", "adam", "--steps", "1e6", *beside)[1]
    assert ("LOOKS LIKE" in advice) is (kind is not None)
    data = json.loads(run(capsys, "check", "adam", "--steps", "1e6", *beside, "--json")[1])
    assert data["looks_like"] == (kind and kind.removeprefix("a ").lower())
    assert data["assumed"].get("loss") == (None if "--setting" in beside else "fixed")


@pytest.mark.parametrize(
    ("source", "kind"),
    [("import gymnasium", "RL"), ("class Discriminator: ...", "a GAN"), ("from trl import SFTTrainer", None)],
)
def test_a_script_is_asked_about_by_what_it_imports(capsys, tmp_path, source, kind):
    file = tmp_path / "train.py"
    made = "def configure():\n    import generic_adam as ga\n    return ga.methods.adamw(weight_decay=0)\n"
    file.write_text(f"def imports():\n    pass\n\n\nif False:\n    {source}\n\n{made}", encoding="utf-8")
    out = run(capsys, "check", "--from", f"{file}:configure", "--steps", "1e5")[1]
    assert out.startswith("LOOKS LIKE") is (kind is not None)


def test_a_trainer_of_rl_is_asked_about(capsys, tmp_path):
    file = tmp_path / "ppo.json"
    file.write_text(json.dumps({"learning_rate": 3e-6, "optim": "adamw_torch", "kl_coef": 0.05, "num_ppo_epochs": 4}))
    out = run(capsys, "check", "--config", str(file), "--steps", "1000")[1]
    assert out.startswith("LOOKS LIKE RL ('kl_coef' in the source)")


def test_what_a_pipeline_may_fail_on(capsys, tmp_path):
    earlier = tmp_path / "baseline.json"
    earlier.write_text(run(capsys, "check", "adam", "--steps", "1e5", "--json")[1], encoding="utf-8")
    against = ["--against", str(earlier), "--fail-on", "worse", "--steps", "1e5"]
    for arguments, code in (
        (["adam", "--steps", "1e5", "--fail-on", "no-guarantee"], 0),
        (["adam", "--steps", "1e5", "--fail-on", "no-guarantee", "--fail-on", "long-run"], 1),
        (["adam", "--lr", "1", "--steps", "1e5"], 0),
        (["adam", "--lr", "1", "--steps", "1e5", "--fail-on", "no-guarantee"], 1),
        (["adam", *against], 0),
        (["adam", "--beta2", "0.95", *against], 1),
        (["adam", "--beta2", "0.9995", *against], 0),
        (["adam", "--beta2", "0.95", *against[:2], "--steps", "1e5"], 0),
        (["adam", "--beta2", "0.9995", *against[:2], "--fail-on", "changed", "--steps", "1e5"], 1),
        (["adam", *against[:2], "--fail-on", "changed", "--steps", "1e5"], 0),
        (["adam", "--fail-on", "worse"], 2),
        (["adam", "--fail-on", "changed"], 2),
    ):
        assert run(capsys, "check", *arguments)[0] == code, arguments
    assert "BETTER" in run(capsys, "check", "adam", "--beta2", "0.9995", *against)[1]
    earlier.write_text("[]", encoding="utf-8")
    code, _, err = run(capsys, "check", "adam", *against)
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("kind", ["rl", "gan"])
def test_where_the_loss_moves_the_theory_does_not_apply(capsys, kind):
    code, out, _ = run(capsys, "check", "adam", "--steps", "1e6", "--setting", kind)
    assert code == 3
    assert out.startswith("DOES NOT APPLY")
    assert all(word in out for word in ("Watch", "diagnose", "verify"))


def test_fine_tuning_is_told_as_such(capsys, tmp_path):
    asked = ["check", "--lr", "2e-5", "--steps", "12000"]
    code, out, _ = run(capsys, *asked, "--setting", "finetune")
    assert code == 0
    assert "fine-tuning" in out.splitlines()[0]
    assert "none recommended" in out
    assert "fine-tuning" not in run(capsys, *asked)[1]
    file = tmp_path / "trainer.json"
    file.write_text(json.dumps({"learning_rate": 2e-5, "lr_scheduler_type": "linear", "optim": "adamw_torch"}))
    said = run(capsys, "check", "--config", str(file), "--steps", "12000")[1]
    assert "fine-tuning" in said.splitlines()[0]
    assert "fine-tuning" not in run(capsys, "check", "--config", str(file), "--steps", "1e6")[1]


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        (["--clip", "2"], "gradients within 2"),
        (["--weight-decay", "0.1"], "weights within 1"),
    ],
)
def test_what_is_assumed_is_said(capsys, beside, words):
    steps = ["--steps", "1000"]
    assert words in run(capsys, "check", "--lr", "1e-3", *beside, *steps)[1]


def test_a_shape_without_a_rate_takes_the_methods_own(capsys):
    shape = ["--warmup", "10", "--steps", "1000", "--json"]
    assert run(capsys, "check", "adamw", *shape) == run(capsys, "check", "adamw", "--lr", "1e-3", *shape)


def test_a_warm_up_of_no_steps_is_none(capsys):
    falls = ["--decay", "cosine", "--steps", "1000", "--json"]
    shown = [run(capsys, "check", "--lr", "1e-3", *warmup, *falls)[1] for warmup in ([], ["--warmup", "0"])]
    assert shown[0] == shown[1]


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
        (["certified_adam", "--clip", "1.0"], 0),
        (["certified_adam", "--clip", "1.0", "--gradient-norm", "2"], 1),
        (["certified_adam", "--clip", "1.0", "--gradient-norm", "0.5"], 0),
        (["certified_adam", "--factored"], 1),
        (["--lr", "1e-3", "--beta1", "0.9", "--beta2", "0.999"], 1),
        (IN_HAND, 1),
    ],
)
def test_exit_codes_where_the_long_run_may_fail(capsys, arguments, code):
    assert run(capsys, "check", *arguments, "--fail-on", "long-run")[0] == code
    without = run(capsys, "check", *arguments)[0]
    assert without == (3 if arguments[-1] in {"--factored", "2"} else 0)


def test_what_people_have_in_hand_is_the_algorithm_that_they_run(capsys):
    _, out, _ = run(capsys, "check", *IN_HAND, "--json", "--explain")
    data = json.loads(out)
    algorithm = data["algorithm"]
    assert (algorithm["beta"], algorithm["theta"]) == ("0.9", "0.95")
    assert algorithm["clipping"] == {"threshold": 1.0, "kind": "norm"}
    assert "decay" in algorithm
    assert data["horizon"]["steps"] == 20_000
    assert data["setting"]["gradient_norm"] == {"value": 1.0, "source": "assumed"}


SCHEMA = Path(__file__).parents[2] / "docs" / "check.schema.json"


@pytest.mark.parametrize(
    "arguments",
    [
        *([name] for name in recipe_names()),
        ["adam"],
        ["certified_adam"],
        ["adam", "--lr", "1000", "--steps", "1e5"],
        ["adam", "--steps", "1e9"],
        ["adam", "--theorem", "reddi2018", "--steps", "1e5"],
        ["adam", "--setting", "gan", "--steps", "1e5"],
        ["rmsprop", "--noise", "symmetric", "--steps", "1e4", "--weights-bound", "2"],
    ],
    ids=" ".join,
)
def test_json_is_short_and_as_its_schema_says(capsys, arguments):
    _, out, _ = run(capsys, "check", *arguments, "--json")
    assert len(out.splitlines()) < 60
    jsonschema.validate(json.loads(out), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_whole_json_has_every_finding(capsys):
    code, out, _ = run(capsys, "check", "power_family", "--json", "--explain")
    data = json.loads(out)
    assert code == 0
    assert (data["verdict"], data["theorem"], data["rate"]) == ("certified", "zou2019", "T^(-1/2) log T")
    paper = next(one for one in data["findings"] if one["theorem"] == "zou2019")
    assert paper["C0"] == pytest.approx(1)
    assert [set(one) for one in paper["conditions"]] == [{"number", "status", "reason", "witness", "asks"}] * 4
    assert {"alpha", "beta", "theta"} <= set(data["algorithm"])


def test_explain_names_every_theorem(capsys):
    _, out, _ = run(capsys, *ADAM, "--explain")
    for words in (
        "not covered, and why:",
        "Zou et al. 2019, Theorem W",
        "Theorem E: not certified",
        "Reddi-Kale-Kumar",
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
        "assert code == 0; heavy = {'torch', 'matplotlib', 'jax', 'numba', 'scipy'} & set(sys.modules); "
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
        ("generic-adam --theorem W", ("guaranteed", "W")),
        ("generic-adam --theorem zou2019", ("unknown", None)),
        ("adam --eps 1e-8 --theorem W", ("no guarantee", None)),
        ("amsgrad --lr 3e-4 --theorem M", ("guaranteed", "M_E")),
        ("adam --theorem reddi2018", ("unknown", None)),
    ],
)
def test_a_theorem_that_is_asked_alone_is_the_one_that_speaks_of_the_run(capsys, arguments, said):
    data = json.loads(run(capsys, "check", *arguments.split(), "--steps", "1e5", "--json")[1])
    assert (data["answer"], data["run"]["theorem"]) == said


def test_adam_is_torchs_and_generic_adam_is_the_papers(capsys):
    for name in ("adam", "Adam"):
        algorithm = json.loads(run(capsys, "check", name, "--json", "--explain")[1])["algorithm"]
        assert algorithm == ga.methods.adamw(weight_decay=0).to_dict()
    papers = json.loads(run(capsys, "check", "generic-adam", "--json", "--explain")[1])["algorithm"]
    assert papers == ga.Algorithm(ga.methods.generic_adam(), label="generic_adam", notes=papers["notes"]).to_dict()
    bare = json.loads(run(capsys, "check", "adam", "--no-bias-correction", "--json", "--explain")[1])["algorithm"]
    assert (bare["initial_v"], ga.parse(bare["eps"])(1)) == (0, 1e-8)
    assert ga.certify("adam").algorithm.eps == ga.methods.adamw().eps


LENGTHS = {
    "--lr 3e-4 --betas 0.9 0.95 --warmup 3% --decay wsd --steps 100k":
        "--lr 3e-4 --betas 0.9,0.95 --warmup 3000 --decay wsd --steps 1e5",
    "adamw --steps 100,000 --warmup 0.03": "adamw --steps 100000 --warmup 3000",
    "adamw --decay 1-sqrt --cooldown 10% --steps 2k": "adamw --decay 1-sqrt --cooldown 200 --steps 2_000",
    "adamw --epochs 3 --examples 50k --batch 32 --warmup 10%":
        "adamw --steps 4689 --batches-per-epoch 1563 --batch 32 --warmup 469",
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


def test_a_run_beyond_the_end_of_its_schedule_is_told_below_the_answer(capsys):
    beyond, within = (run(capsys, "check", "nanogpt", "--steps", steps)[1].splitlines() for steps in ("700k", "600k"))
    assert beyond[1] == "  CAREFUL      the schedule ends at step 600,000; from there on its last lr is held"
    assert not any("CAREFUL" in line for line in within)
