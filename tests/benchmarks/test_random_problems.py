"""The random problems that attack the bounds: a few of each kind, and that an excess would be seen."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import random_problems
from benchmarks.random_problems import KINDS, draw, largest, run


@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_is_exceeded(kind):
    found = largest(kind, 60, seed=1)
    assert 0 < found.ratio <= 1 + 1e-9
    assert math.isnan(found.strict) if kind in ("D", "P, clipped updates") else found.strict <= 1 + 1e-9


@pytest.mark.parametrize("kind", ["W", "E", "Y"])
def test_a_bound_of_half_the_size_is_seen_to_be_exceeded(kind, monkeypatch):
    """The attack has teeth: of the drift, half would be too little."""

    def halved(*given, **options):
        found = weighted_bound(*given, **options)
        return replace(found, noise=found.noise / 2, drift=found.drift / 2)

    weighted_bound = random_problems.weighted_bound
    monkeypatch.setattr(random_problems, "weighted_bound", halved)
    assert largest(kind, 200, seed=1).strict > 1


def test_a_problem_is_its_seed():
    one, other = (run(draw("E", rng), rng, symmetric=False) for rng in (np.random.default_rng(5) for _ in range(2)))
    assert one == other
