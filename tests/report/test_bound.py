"""The measured-versus-bound figure: both sides, slopes, records and claims."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from generic_adam.cli import main
from generic_adam.experiments.measured import BoundedWell, Measurement
from generic_adam.methods import power_family
from generic_adam.report.bound import Comparison, claims, compare, families
from generic_adam.theorems.bound import bound
from generic_adam.theorems.problem import Problem

METHOD = power_family(lr=0.1, beta=0)


def comparison(values, bounds):
    steps = np.array([10, 100, 1000, 10_000])
    values = np.asarray(values, dtype=float)
    measurement = Measurement(steps, values, values, values)
    far = np.array([10**4, 10**8, 10**12])
    return Comparison("r = 1", METHOD, measurement, np.asarray(bounds, float), far, 2.0 * far**-0.5)


def test_slopes_are_those_of_power_laws():
    steps = np.array([10.0, 100, 1000, 10_000])
    measured, bounded = comparison(steps**-0.7, 5 * steps**-0.25).slopes
    assert measured == pytest.approx(-0.7)
    assert bounded == pytest.approx(-0.25)


def test_the_far_slope_is_the_rate_or_the_floor():
    """r = 0 flattens, r = 1/2 falls as T^(-1/4), r = 1 as log T/sqrt T: what the corollaries say."""
    well, steps, flat = BoundedWell(dimension=3), np.array([10, 100]), np.ones(2)
    methods = families()["β = 0"]
    found = compare(methods, well, dict.fromkeys(methods, Measurement(steps, flat, flat, flat)))
    slopes = {one.label: one.far_slope for one in found}
    assert slopes["r = 0"] == pytest.approx(0, abs=0.01)
    assert slopes["r = 0.5"] == pytest.approx(-0.25, abs=0.01)
    assert slopes["r = 1"] == pytest.approx(-0.5 + 1 / np.log(1e11), abs=0.02)


def test_a_measurement_above_its_bound_is_seen():
    good, bad = comparison([1, 1, 1, 1], [2, 2, 2, 2]), comparison([1, 3, 1, 1], [2, 2, 2, 2])
    assert good.holds
    assert not bad.holds
    assert claims({"p": [bad]})[0].verdict == "contradicted"


def test_bounds_are_those_of_theorem_1():
    well = BoundedWell(dimension=3)
    steps = np.array([10, 100])
    flat = np.ones(2)
    (one,) = compare({"m": METHOD}, well, {"m": Measurement(steps, flat, flat, flat)})
    problem = Problem(2, well.gradient_bound, 3, well.gap, well.epsilon)
    assert one.bounds == pytest.approx([bound(METHOD, problem, int(T)).expectation for T in steps])


def test_the_command_writes_everything(tmp_path, capsys):
    code = main(["reproduce", "bound", "--steps", "220", "--seeds", "3", "--out", str(tmp_path)])
    assert code == 0
    assert {path.name for path in tmp_path.iterdir() if path.name != ".lock"} == {
        "bound.svg",
        "bound.png",
        "records.csv",
        "claims.json",
        "claims.md",
        "manifest.json",
    }
    with (tmp_path / "records.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"r = 0", "r = 0.5", "r = 1"}
    assert all(float(row["measured"]) < float(row["bound"]) for row in rows if row["measured"])
    assert max(int(row["T"]) for row in rows) == 10**12
    assert "bound / measured" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--steps", "0"], ["--seeds", "0"], ["--steps", "many"]])
def test_bad_input_is_one_line(tmp_path, capsys, arguments):
    code = main(["reproduce", "bound", "--out", str(tmp_path / "x"), *arguments])
    assert code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
