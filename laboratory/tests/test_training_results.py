"""The pages on networks state what the committed records say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from generic_adam.methods import adam_to_adaema
from generic_adam.theorems.horizon import constant_floor
from generic_adam.theorems.tight import stall
from generic_adam_laboratory.runs.records import markdown_table, read_claims, read_csv, read_manifest
from generic_adam_laboratory.studies import cost
from generic_adam_laboratory.studies.paper_studies import EXPERIMENTS
from generic_adam_laboratory.studies.study import Experiment, Line, Study, by_method, read_curves
from generic_adam_laboratory.training import OptimizerSettings

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / f"reproduction-{name}.md" for name in ("training", "cost"))
PAGE = " ".join(" ".join(page.read_text(encoding="utf-8").split()) for page in PAGES)
POSITIVE = ["r = 0.25", "r = 0.5", "r = 0.75", "r = 1"]


def losses(name: str, initial_v: float | None = 1e-8, seed: int = 0) -> dict[str, np.ndarray]:
    """The training loss of each method by epoch, for the methods that have the seed."""
    runs = by_method(read_curves(ROOT / "results" / name / "records.csv"), initial_v)
    return {
        label: np.array([one.train_loss for one in curve.records])
        for label, found in runs.items()
        for curve in found
        if curve.seed == seed
    }


def ends(name: str, measure: str) -> dict[str, list[float]]:
    """A measure of each method after its last epoch, by seed."""
    runs = by_method(read_curves(ROOT / "results" / name / "records.csv"), None)
    return {label: [getattr(one.records[-1], measure) for one in found] for label, found in runs.items()}


def noises(name: str) -> dict[str, float]:
    """The noise of each method in the committed table of guarantees."""
    rows = (ROOT / "results" / name / "guarantees.md").read_text(encoding="utf-8").splitlines()[2:]
    return {row.split("|")[1].strip(): float(row.split("|")[2]) for row in rows}


def differences(found: dict[str, list[float]], first: str, second: str) -> np.ndarray:
    return np.array(found[first]) - np.array(found[second])


def committed(name: str) -> tuple[Experiment, Study, int]:
    """The experiment of a committed directory, its study as it was run, and the steps of each run."""
    settings = (read_manifest(ROOT / "results" / name) or {})["settings"]
    experiment = (EXPERIMENTS | cost.EXPERIMENTS)[settings["name"]]
    lines = tuple(Line(one["label"], OptimizerSettings(**one["optimizer"])) for one in settings["lines"])
    return experiment, replace(experiment.study, lines=lines), settings["steps"]


JUDGED = sorted(
    path.parent.name
    for path in (ROOT / "results").glob("*/claims.json")
    if (read_manifest(path.parent) or {})["settings"].get("name") in EXPERIMENTS
)


@pytest.mark.parametrize("name", JUDGED)
def test_the_committed_verdicts_are_those_of_the_committed_records(name: str):
    folder = ROOT / "results" / name
    experiment, study, _ = committed(name)
    judged = experiment.claims(study, read_curves(folder / "records.csv"))
    assert judged
    assert read_claims(folder)[: len(judged)] == judged


@pytest.mark.parametrize("name", cost.EXPERIMENTS)
def test_the_committed_guarantees_are_those_of_the_present_theorems(name: str):
    _, study, steps = committed(name)
    found = markdown_table(*cost.guarantees(study, steps)["guarantees.md"])
    assert (ROOT / "results" / name / "guarantees.md").read_text(encoding="utf-8") == found


@pytest.mark.parametrize("seed", range(3))
def test_lenet_with_the_small_v0(seed: int):
    small = losses("lenet", seed=seed)
    assert {len(values) for values in small.values()} == {100}
    assert all((small[a] > small[b]).all() for a, b in pairwise(POSITIVE))
    passed = {other: (small["RMSProp"] >= small[other]).sum() for other in POSITIVE}
    assert passed == dict.fromkeys(POSITIVE, 0) | {"r = 1": [0, 1, 1][seed]}
    assert f"{small['r = 0'][-1] / small['r = 1'][-1]:.2f}" in {"0.80", "0.81", "0.82"}
    first = {"r = 0", "AMSGrad"}
    assert set(small) - {"Adam, corrected"} == {*first, "RMSProp", *POSITIVE}
    assert all((small[one] < small[other]).all() for one in first for other in set(small) - first)


def test_how_long_v0_is_remembered_and_what_is_not_corrected():
    thetas = [adam_to_adaema(theta=0.999, r=r).theta.values(1, 939) for r in (0, 0.25, 0.5, 0.75, 1)]
    assert [f"{np.prod(theta):.0e}" for theta in thetas[1:]] == ["4e-26", "3e-14", "3e-07", "0e+00"]
    assert f"that factor is {np.prod(thetas[0]):.2f} for r = 0" in PAGE
    assert min((1 - np.cumprod(theta))[9:].min() for theta in thetas[1:]) > 0.85
    larger = [1 / np.sqrt(1 - 0.999**t) for t in (1, 100, 938)]
    assert f"{larger[0]:.0f} times at t = 1, {larger[1]:.1f} times at t = 100, {larger[2]:.1f} times at the end" in PAGE


def test_constant_theta_without_its_start_is_neither_first_nor_last():
    small = losses("lenet")
    corrected = small["Adam, corrected"]
    assert (corrected[1:] > small["r = 1"][1:]).all()
    assert (corrected < small["r = 0.75"]).all()


def test_lenet_with_the_large_v0():
    large = losses("lenet", 1e-4)
    assert all((large["AMSGrad"] > large[other]).all() for other in large if other != "AMSGrad")
    assert all((large["RMSProp"] < large[other]).all() for other in POSITIVE)
    for label, epoch in (("r = 0.25", 8), ("r = 0.5", 10), ("r = 0.75", 16), ("r = 1", 20), ("RMSProp", 22)):
        assert np.flatnonzero(large["r = 0"] >= large[label])[-1] + 2 == epoch
    assert np.flatnonzero(large["r = 0.75"] >= large["r = 1"])[-1] + 2 == 37
    assert "r = 0.25 in epoch 8, r = 0.5 in epoch 10, r = 0.75 in epoch 16, r = 1 in epoch 20" in PAGE


def test_the_sweep_of_v0():
    for value in (1e-12, 1e-8, 1e-6, 1e-5):
        found = losses("lenet-v0", value)
        assert (found["r = 0"] < found["r = 1"]).all()
    slow, slower = ((found := losses("lenet-v0", value))["r = 0"] / found["r = 1"] for value in (1e-4, 1e-2))
    assert np.flatnonzero(slow >= 1)[-1] + 2 == 20
    assert f"at 10⁻⁴ it begins at {slow[0]:.1f} times AdaEMA's loss and catches up in epoch 20" in PAGE
    assert f"is at {slower[-1]:.1f} times after twenty, still falling" in PAGE
    assert slower[-1] < slower[-2]


def test_the_head_start_on_resnet():
    for name, first in (("resnet18", 0), ("resnet18-paper-blocks", 1)):
        found = losses(name)
        lead = found["r = 1"] - found["r = 0"]
        assert lead[first] > lead[-1] > 0
        if name == "resnet18":
            assert f"from {lead[0]:.3f} in training loss between r = 0 and r = 1 after one epoch" in PAGE
            assert f"to {lead[-1]:.3f} after ten" in PAGE


def test_constant_theta_without_its_start_on_resnet():
    found = losses("resnet18")
    assert (abs(found["Adam, corrected"] / found["r = 1"] - 1) < 0.006).all()
    assert "it lies within 0.6 % of r = 1 after every epoch" in PAGE
    last = sorted(found, key=lambda label: found[label][-1])
    assert 0 < last.index("Adam, corrected") < len(last) - 1


def test_the_order_on_resnet():
    found = losses("resnet18")
    for epoch in range(10):
        assert found["RMSProp"][epoch] < min(found[label][epoch] for label in POSITIVE)
        assert epoch < 2 or min(POSITIVE, key=lambda label: found[label][epoch]) == "r = 1"
        others = [found[label][epoch] for label in POSITIVE[:3]]
        assert max(others) < 1.005 * min(others)


def test_resnet_with_the_large_v0():
    large = losses("resnet18-v0", 1e-4)
    over = {label: 100 * (large[label] / large["r = 1"] - 1) for label in ("r = 0", "AMSGrad")}
    assert all((values > 0).all() and (np.diff(values) > 0).all() for values in over.values())
    first, last = ([f"{over[label][place]:.1f}" for label in over] for place in (0, -1))
    said = f"from {first[0]} and {first[1]} % in training loss after the first to {last[0]} and {last[1]} %"
    assert said in PAGE


def test_the_larger_learning_rate():
    found = losses("resnet18-large-lr")
    over = {label: 100 * (values / found["r = 1"] - 1) for label, values in found.items()}
    for epoch in range(10):
        assert sorted(found, key=lambda label: found[label][epoch])[-2:] == ["r = 0", "AMSGrad"]
        assert max(POSITIVE, key=lambda label: found[label][epoch]) == ("r = 1" if epoch < 6 else "r = 0.5")
        positive = [found[label][epoch] for label in POSITIVE]
        assert max(positive) < 1.015 * min(positive)
    assert [f"{over[label][place]:.1f}" for place in (0, -1) for label in ("r = 0", "AMSGrad")] == [
        "1.3", "1.7", "7.9", "9.0",
    ]  # fmt: skip
    assert "from 1.3 and 1.7 % above r = 1 after the first to 7.9 and 9.0 % after the tenth" in PAGE


def test_what_the_guarantee_costs_on_lenet():
    train, test, right = (ends("lenet-cost", name) for name in ("train_loss", "test_loss", "test_accuracy"))
    cosine, kept, risen = "AdamW cosine, 0.95", "advice, 0.95, keep 9380", "certified Adam, 0.95, K = 9380"
    others = [label for label in train if label != "advice, 0.95"]
    assert min(train["advice, 0.95"]) > 5 * max(max(train[label]) for label in others)
    assert (differences(right, kept, cosine) > 0).all()
    for label in (risen, "theta rising"):
        assert (differences(train, label, cosine) > 0).all()
        assert (differences(test, label, cosine) < 0).all()
    assert median(test[risen]) < 0.55 * median(test[cosine])
    certified, constant = "certified Adam", "AdamW constant, 0.999"
    assert (differences(train, certified, constant) < 0).all()
    assert (differences(test, certified, constant) < 0).all()
    assert (differences(right, certified, constant) > 0).all()
    ours, theirs = ([f"{median(of[label]):.4f}" for of in (train, test)] for label in (certified, constant))
    said = f"a training loss of {ours[0]} against {theirs[0]}, a test loss of {ours[1]} against {theirs[1]}, 99.20 %"
    assert said in PAGE


def test_what_the_guarantee_costs_on_resnet():
    train, test = (ends("resnet18-cost", name) for name in ("train_loss", "test_loss"))
    cosine, ruined = "AdamW cosine, 0.95", "advice, 0.95"
    assert {len(values) for values in train.values()} == {3}
    assert min(train[ruined]) > max(max(values) for label, values in train.items() if label != ruined) + 0.5
    spreads = [max(values) - min(values) for values in train.values()]
    assert f"by {min(spreads):.2f} to {max(spreads):.2f} in training loss with the same method" in PAGE
    for label in ("certified Adam, 0.95, K = 1955", "theta rising", "AdamW cosine, 0.999"):
        assert (differences(test, label, cosine) < 0).all()


def test_what_the_guarantee_costs_on_a_gpt():
    test = ends("gpt-cost", "test_loss")
    for label in ("certified Adam, 0.95, K = 1000", "theta rising"):
        assert (differences(test, label, "AdamW cosine, 0.95") < 0).all()
    ahead = differences(test, "AdamW constant, 0.999", "certified Adam")
    assert "by {:.3f} to {:.3f}".format(*sorted(ahead)[::2]) in PAGE
    last = {label: f"{median(values):.3f}" for label, values in test.items()}
    others = [float(one) for label, one in last.items() if label != "advice, 0.95"]
    said = (
        f"{median(test['advice, 0.95']):.2f} where everything else is between {min(others):.2f} and {max(others):.2f}"
    )
    assert f"at a validation loss of {said}" in PAGE
    kept = last["advice, 0.95, keep 1000"]
    assert f"ends at {last['AdamW cosine, 0.95']}, what is advised in its place at {kept}" in PAGE


def test_what_a_constant_theta_leaves():
    rows = read_csv(ROOT / "results" / "floors" / "records.csv", "floors", dict)
    assert len(rows) == 54
    floors: dict[str, dict[str, list[float]]] = {"0.95": {}, "0.99": {}, "0.999": {}}
    for row in rows:
        floors[row["beta2"]].setdefault(row["network"], []).append(float(row["floor"]))
    first, *others = ([sum(found) / 3 for found in by_network.values()] for by_network in floors.values())
    assert f"between {min(first):.1e} and {max(first):.1e}" in PAGE
    assert max(map(max, others)) < 7e-4
    proved, real = constant_floor(0.9, 0.95).noise, stall(0.9, 0.95).size
    assert 80 < proved / max(first) < proved / min(first) < 400
    assert 6 <= real / max(first) < real / min(first) < 30


def test_neither_order_is_ahead_in_every_seed():
    found = ends("lenet-orders", "test_loss"), ends("lenet-orders", "train_loss")
    for losses_at_the_end in found:
        for r in ("r = 0", "r = 1"):
            apart = differences(losses_at_the_end, f"{r}, shuffled", f"{r}, with replacement")
            assert len(apart) == 3
            assert apart.min() < 0 < apart.max()
    right = 100 * differences(ends("lenet-orders", "test_accuracy"), "r = 1, with replacement", "r = 1, shuffled")
    assert f"for {right.min():.2g} to {right.max():.1g} points of accuracy with r = 1" in PAGE
