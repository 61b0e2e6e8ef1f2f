"""The decider against an independent oracle: a sample, and as many as one likes with the mark `exhaustive`.

pytest tests/soundness/test_fuzz.py -m exhaustive          (FUZZ_CASES=100000, FUZZ_START=0)
"""

import os
import warnings
from collections import Counter
from dataclasses import replace

import pytest

from generic_adam.schedules.expansion import Calculus
from tests.soundness import generator, remainder
from tests.soundness.fuzz import WRONG, advised, examine, grown, read_up_to, remainders, shipped, weighed

SAMPLE = 64
ADVICE_SAMPLE = 4
HORIZON_SAMPLE = 32
_CHUNK = 1000


def _run(ask, seeds):
    """(what was found, by kind; the cases that show it; easy truths; those left undecided)."""
    counts, shown, easy, undecided = Counter(), [], 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            outcome = ask(generator.case(seed))
            wrong = [finding for finding in outcome.findings if finding[0] in WRONG]
            if wrong:
                counts.update({kind for kind, _ in wrong})
                shown.append((outcome.case, wrong))
            easy += outcome.easy
            undecided += len(outcome.undecided)
    return counts, shown, easy, undecided


def test_a_case_is_the_same_for_the_same_seed():
    first = [generator.case(seed) for seed in range(0, 2000, 37)]
    generator._pools.cache_clear()
    assert first == [generator.case(seed) for seed in range(0, 2000, 37)]
    assert len({case.theta for case in first}) > 20


def test_a_sample_of_methods_is_decided_truly():
    counts, shown, easy, undecided = _run(examine, range(SAMPLE))
    assert not counts, shown[:5]
    assert easy > SAMPLE
    assert undecided <= 0.05 * easy


@pytest.mark.exhaustive
def test_a_sample_of_advice_is_certified_in_truth():
    counts, shown, _, _ = _run(advised, range(ADVICE_SAMPLE))
    assert not counts, shown[:5]


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
def test_all_methods_are_decided_truly():
    cases, start = int(os.environ.get("FUZZ_CASES", "100000")), int(os.environ.get("FUZZ_START", "0"))
    total, easy, undecided = Counter(), 0, 0
    for begin in range(start, start + cases, _CHUNK):
        counts, shown, known, left = _run(examine, range(begin, min(begin + _CHUNK, start + cases)))
        total, easy, undecided = total + counts, easy + known, undecided + left
        assert not total, shown[:20]
    assert undecided < 0.05 * easy


@pytest.mark.exhaustive
def test_a_sample_of_theorem_w_is_decided_truly():
    counts, shown, easy, undecided = _run(weighed, range(SAMPLE))
    assert not counts, shown[:5]
    assert undecided <= 0.05 * easy


def test_a_sample_of_optimizers_is_decided_truly():
    counts, shown, easy, undecided = _run(shipped, range(2 * SAMPLE))
    assert not counts, shown[:5]
    assert easy > SAMPLE
    assert undecided <= 0.05 * easy + 1


def test_a_sample_of_short_horizons_is_read_truly():
    counts, shown, easy, undecided = _run(read_up_to, range(HORIZON_SAMPLE))
    assert not counts, shown[:5]
    assert undecided <= 0.05 * easy


def test_a_sample_of_growths_is_that_of_the_expansion():
    counts, shown, easy, undecided = _run(grown, range(SAMPLE))
    assert not counts, shown[:5]
    assert undecided <= 0.05 * easy


def test_a_sample_of_remainders_is_within_its_bounds():
    counts, shown, known, _ = _run(remainders, range(8))
    assert not counts, shown[:5]
    assert known > 200


def test_a_bound_that_is_too_small_is_seen(monkeypatch):
    series = Calculus.series
    monkeypatch.setattr(Calculus, "series", lambda *given: _shrunk(series(*given)))
    assert [one for one in remainder.sampled("1/sqrt(t + 1)") if one.inside is False]


def _shrunk(found):
    rest = found.rest and replace(found.rest, bound=found.rest.bound / 1000)
    return replace(found, rest=rest)


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
def test_all_advice_is_certified_in_truth():
    cases, start = int(os.environ.get("FUZZ_CASES", "100000")) // 20, int(os.environ.get("FUZZ_START", "0"))
    counts, shown, _, _ = _run(advised, range(start, start + cases))
    assert not counts, shown[:20]
