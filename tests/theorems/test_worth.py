"""What is said to be measured is what the committed records say, read again here."""

import csv
import statistics
from pathlib import Path

import pytest

from generic_adam.theorems.worth import MEASURED, Worth, worth_of

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row.source}: {row.line}")
def test_every_effect_is_that_of_the_records(row):
    with (RESULTS / row.source / "records.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    last = {(one["method"], one["seed"]): float(one["test_loss"]) for one in rows}  # the last epoch comes last
    seeds = {seed for method, seed in last if method == row.line} & {
        seed for method, seed in last if method == row.against
    }
    effects = [100 * (last[row.line, seed] / last[row.against, seed] - 1) for seed in seeds]
    assert len(effects) == row.seeds
    found = statistics.median(effects), min(effects), max(effects)
    assert (row.effect, row.low, row.high) == pytest.approx(found, abs=0.006)


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row.source}: {row.line}")
def test_its_runs_are_as_long_as_it_says(row):
    manifest = (RESULTS / row.source / "manifest.json").read_text()
    assert f'"steps": {row.steps}' in manifest


def test_what_was_not_measured_is_not_known():
    assert not worth_of(0.9, to=0.95).known
    assert not worth_of(0.95, to=0.97).known
    assert not worth_of(0.95, kept=0.3).known
    assert worth_of(0.95, kept=0.9).measured[0].line == "advice, three quarters kept"
    assert worth_of(0.95, kept=0.6).measured[0].line == "advice, 0.95, keep 1000"
    assert worth_of(0.999, kept=0.75) == Worth()
