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
from generic_adam_laboratory.studies.paper_studies import EXPERIMENTS, rank_correlation
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


def test_loss_and_accuracy_along_the_path_of_each_seed():
    curves, path = read_curves(ROOT / "results" / "lenet" / "records.csv"), ["r = 0", *POSITIVE]
    found = []
    for seed in range(3):
        last = {c.method: c.records[-1] for c in curves if c.seed == seed and c.initial_v in {None, 1e-8}}
        found.append(rank_correlation(*zip(*[(last[r].train_loss, last[r].test_accuracy) for r in path], strict=True)))
    assert sorted(found) == [-1.0, -0.9, -0.8]
    assert "a rank correlation of −1.0, −0.9 and −0.8" in PAGE


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


def test_the_methods_that_are_named_and_not_run():
    found = losses("lenet-named")
    last = {label: values[-1] for label, values in found.items()}
    nadam = found["NAdam"] / found["r = 1"]
    assert (abs(nadam[1:] - 1) < 0.03).all()
    assert [f"{100 * (one - 1):.0f}" for one in nadam[[0, -1]]] == ["-9", "2"]
    for label in ("SGD", "SGD, momentum"):
        assert found[label][0] > max(found["r = 0"][0], found["r = 1"][0])
        assert last["r = 0"] < last[label] < last["r = 1"]
    assert f"at {last['SGD']:.3f} and {last['SGD, momentum']:.3f} it does not stagnate" in PAGE
    assert min(last, key=lambda label: last[label]) == "AdaGrad in stages"
    right = ends("lenet-named", "test_accuracy")["AdaGrad in stages"][0]
    assert f"at {last['AdaGrad in stages']:.3f} with {100 * right:.1f} % of the test images right" in PAGE


def test_the_sweep_of_v0():
    for value, first, last in (
        (1e-12, 0.41, 0.81),
        (1e-8, 0.41, 0.71),
        (1e-6, 0.56, 0.72),
        (1e-5, 0.91, 0.81),
    ):
        found = losses("lenet-v0", value)
        ratio = found["r = 0"] / found["r = 1"]
        assert (ratio < 1).all()
        assert (round(ratio[0], 2), round(ratio[-1], 2)) == (first, last)
    assert "with 0.41 to 0.56 of AdaEMA's training loss after the first, with 0.71 to 0.81" in PAGE
    slow, slower = ((found := losses("lenet-v0", value))["r = 0"] / found["r = 1"] for value in (1e-4, 1e-2))
    assert np.flatnonzero(slow >= 1)[-1] + 2 == 20
    assert f"at 10⁻⁴ it begins at {slow[0]:.1f} times AdaEMA's loss and catches up in epoch 20" in PAGE
    assert f"is at {slower[-1]:.1f} times after twenty, still falling" in PAGE
    assert slower[-1] < slower[-2]


@pytest.mark.parametrize(
    ("name", "epoch", "said"),
    [
        (
            "resnet18",
            1,
            "from 0.324 in training loss between r = 0 and r = 1 after one epoch to 0.137 after ten",
        ),
        ("resnet18-paper-blocks", 2, "from 0.31 in training loss after two epochs to 0.11 after ten"),
    ],
)
def test_the_head_start_on_resnet(name: str, epoch: int, said: str):
    found = losses(name)
    lead = found["r = 1"] - found["r = 0"]
    digits = 3 if "0.324" in said else 2
    assert f"from {lead[epoch - 1]:.{digits}f} " in said
    assert f"to {lead[-1]:.{digits}f} after ten" in said
    assert said in PAGE


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


def test_the_first_epoch_without_the_cut_off():
    train, right = (ends("resnet18-no-cut-off", name) for name in ("train_loss", "test_accuracy"))

    def told(r: str) -> str:
        losses, shares = ([of[label][0] for label in (f"{r}, no cut-off", r)] for of in (train, right))
        return "{:.2f} against {:.2f} and {:.1f} % against {:.1f} %".format(*losses, *(100 * one for one in shares))

    assert f"a training loss of {told('r = 0')} of the test images" in PAGE
    assert f"a little ahead of its own, {told('r = 1')}." in PAGE


def test_resnet_with_the_large_v0():
    large, small = losses("resnet18-v0", 1e-4), losses("resnet18-v0")
    over = {label: 100 * (large[label] / large["r = 1"] - 1) for label in ("r = 0", "AMSGrad")}
    assert all((values > 0).all() and (np.diff(values) > 0).all() for values in over.values())
    first, last = ([f"{over[label][place]:.1f}" for label in over] for place in (0, -1))
    ahead = [f"{100 * (1 - small[label][-1] / small['r = 1'][-1]):.1f}" for label in over]
    said = f"from {first[0]} and {first[1]} % in training loss after the first to {last[0]} and {last[1]} %"
    assert said in PAGE
    assert f"with 10⁻⁸ they are {ahead[0]} and {ahead[1]} % ahead" in PAGE


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
    assert max(max(train[label]) for label in others) < 0.009
    assert min(min(right[label]) for label in others) > 0.987
    assert (f"{median(train['advice, 0.95']):.3f}", f"{median(right['advice, 0.95']):.1%}") == (
        "0.052",
        "98.4%",
    )
    assert sorted(np.rint(1e4 * differences(right, kept, cosine))) == [1, 2, 3]
    assert [f"{one:.3f}" for one in sorted(-differences(test, kept, cosine))[::2]] == ["0.003", "0.008"]
    for label in (risen, "theta rising"):
        assert (differences(train, label, cosine) > 0).all()
        assert (differences(test, label, cosine) < 0).all()
    assert (f"{median(test[risen]):.3f}", f"{median(test[cosine]):.3f}") == ("0.028", "0.053")
    assert f"{median(train[risen]):.4f} ({median(train['theta rising']):.4f} if the cosine is untouched)" in PAGE
    assert {f"{median(train[label]):.4f}" for label in (cosine, kept, "AdamW cosine, 0.999")} == {"0.0002"}
    assert f"too: {median(test['AdamW cosine, 0.999']):.3f} with 0.999" in PAGE
    certified, constant, planned = "certified Adam", "AdamW constant, 0.999", "AdamW cosine, 0.999"
    assert (differences(train, certified, constant) < 0).all()
    assert (differences(test, certified, constant) < 0).all()
    assert (differences(right, certified, constant) > 0).all()
    assert sorted(np.rint(1e4 * differences(right, planned, certified))) == [3, 3, 5]
    assert (differences(test, planned, certified) > 0).all()
    ours, theirs = ([f"{median(of[label]):.4f}" for of in (train, test)] for label in (certified, constant))
    said = f"a training loss of {ours[0]} against {theirs[0]}, a test loss of {ours[1]} against {theirs[1]}, 99.20 %"
    assert said in PAGE
    noise = noises("lenet-cost")
    assert max(noise.values()) < 0.45
    assert min(noise, key=noise.__getitem__) == constant
    assert f"AdamW with θ = 0.999 and a constant rate is at {noise[constant]}" in PAGE
    assert f"certified Adam at {noise[certified]}" in PAGE


def test_what_the_guarantee_costs_on_resnet():
    train, test, right = (ends("resnet18-cost", name) for name in ("train_loss", "test_loss", "test_accuracy"))
    cosine, ruined = "AdamW cosine, 0.95", "advice, 0.95"
    others = [label for label in train if label != ruined]
    assert {len(values) for values in train.values()} == {3}
    assert f"{median(train[ruined]):.2f} and {median(right[ruined]):.1%}".replace("%", " %") in PAGE
    assert max(max(train[label]) for label in others) < 2.46
    assert min(min(right[label]) for label in others) > 0.329
    spreads = [max(values) - min(values) for values in train.values()]
    assert f"by {min(spreads):.2f} to {max(spreads):.2f} in training loss with the same method" in PAGE
    kept = [f"{one:.3f}".replace("-", "−") for one in differences(train, "advice, 0.95, keep 1955", cosine)]
    assert f"(by {kept[0]}, {kept[1]} and {kept[2]})" in PAGE
    rising = ["certified Adam, 0.95, K = 1955", "theta rising"]
    for labels, said in ((rising, "0.016 to 0.061"), (["AdamW cosine, 0.999"], "0.032 to 0.067")):
        lower = [value for label in labels for value in -differences(test, label, cosine)]
        assert f"{min(lower):.3f} to {max(lower):.3f}" == said
        assert f"by {said}" in PAGE
    certified, constant = "certified Adam", "AdamW constant, 0.999"
    more = differences(train, certified, constant)
    assert min(more) > 0
    assert f"by {min(more):.3f} to {max(more):.3f} in every seed" in PAGE
    assert sum(differences(test, certified, constant) < 0) == 2
    less = -differences(train, certified, "AdamW cosine, 0.999")
    assert f"in all three, by {min(less):.3f} to {max(less):.3f}" in PAGE
    noise = noises("resnet18-cost")
    assert len(noise) == 9
    assert f"every noise lies between {min(noise.values()):.2f} and {max(noise.values()):.2f}" in PAGE


def test_what_the_guarantee_costs_on_a_gpt():
    test = ends("gpt-cost", "test_loss")
    kept = differences(test, "advice, 0.95, keep 1000", "AdamW cosine, 0.95")
    assert (kept > 0.009).all()
    assert (kept < 0.0105).all()
    for label in ("certified Adam, 0.95, K = 1000", "theta rising"):
        assert (differences(test, label, "AdamW cosine, 0.95") < 0).all()
    ahead = differences(test, "AdamW constant, 0.999", "certified Adam")
    assert [f"{one:.3f}" for one in sorted(ahead)[::2]] == ["0.009", "0.022"]
    assert "by 0.009 to 0.022" in PAGE
    last = {label: f"{median(values):.3f}" for label, values in test.items()}
    assert f"at a validation loss of {median(test['advice, 0.95']):.2f} where everything else" in PAGE
    others = [float(one) for label, one in last.items() if label != "advice, 0.95"]
    assert (f"{min(others):.2f}", f"{max(others):.2f}") == ("1.70", "1.75")
    kept, risen = last["advice, 0.95, keep 1000"], last["certified Adam, 0.95, K = 1000"]
    assert f"ends at {last['AdamW cosine, 0.95']}, what is advised in its place at {kept}" in PAGE
    assert f"learning rate ends at {risen}, and with θ rising alone" in PAGE
    assert f"it is {last['theta rising']}: better" in PAGE
    assert f"same cosine ({last['AdamW cosine, 0.999']}, the best). Certified Adam ({last['certified Adam']})" in PAGE
    assert f"it replaces ({last['AdamW constant, 0.999']}) in all" in PAGE
    noise = noises("gpt-cost")
    least = min(noise, key=noise.__getitem__)
    assert least == "AdamW constant, 0.95"
    assert f"the least noise is {noise[least]:.2f}, three of the nine are above 1" in PAGE
    assert sum(value >= 1 for value in noise.values()) == 3


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
