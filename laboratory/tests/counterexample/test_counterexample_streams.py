"""The random gradients: the published generator, the right distribution, streams that do not touch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from generic_adam_laboratory.counterexample import Counterexample, gradients_of
from generic_adam_laboratory.counterexample.problem import GradientStream, initial_words

NOTHING = np.empty(0, dtype=np.int64)


def xoroshiro128_plus(s0: int, s1: int, count: int) -> list[int]:
    """The generator as its authors define it, in Python's whole numbers."""
    mask = 2**64 - 1

    def rotate(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & mask

    results = []
    for _ in range(count):
        results.append((s0 + s1) & mask)
        s1 ^= s0
        s0, s1 = rotate(s0, 24) ^ s1 ^ ((s1 << 16) & mask), rotate(s1, 37)
    return results


def test_the_published_generator_decides() -> None:
    problem = Counterexample(probability=0.3)
    for replicate in range(5):
        s0, s1 = initial_words(seed=11, replicates=range(replicate, replicate + 1))[:, 0].tolist()
        bits = xoroshiro128_plus(s0, s1, 400)
        expected = [1010.0 if (b >> 11) / 2**53 < 0.3 else -10.0 for b in bits]
        assert gradients_of(problem, 400, 11, replicate).tolist() == expected


def test_generators_come_from_seed_and_replicate() -> None:
    expected = np.random.SeedSequence(entropy=3, spawn_key=(7,)).generate_state(2, dtype=np.uint64)
    assert initial_words(3, range(5, 9))[:, 2].tolist() == expected.tolist()
    words = np.concatenate([initial_words(seed, range(300)) for seed in range(3)], axis=1)
    assert len(np.unique(words)) == words.size


@pytest.mark.parametrize("probability", [0.01, 0.5])
def test_the_rare_slope_has_its_probability(probability: float) -> None:
    steps, replicates = 100_000, 40
    stream = GradientStream(Counterexample(probability=probability), 0, range(replicates))
    gradients, _ = stream.draw(1, steps, NOTHING)
    rare = gradients == 1010.0
    assert (stream.counts == rare.sum(axis=0)).all()
    # Over all: a two-sided exact test; over replicates: the counts spread as binomial ones do.
    assert stats.binomtest(int(rare.sum()), rare.size, probability).pvalue > 1e-3
    expected_variance = steps * probability * (1 - probability)
    dispersion = ((stream.counts - steps * probability) ** 2).sum() / expected_variance
    assert 1e-3 < stats.chi2(replicates).cdf(dispersion) < 1 - 1e-3


def test_waiting_times_are_geometric() -> None:
    gradients = gradients_of(Counterexample(probability=0.2), 200_000, 1, 0)
    waits = np.diff(np.flatnonzero(gradients == 1010.0))
    longest = 20
    observed = np.bincount(np.minimum(waits, longest), minlength=longest + 1)[1:]
    law = 0.2 * 0.8 ** np.arange(longest)
    law[-1] = 0.8 ** (longest - 1)
    assert stats.chisquare(observed, law * waits.size).pvalue > 1e-3


def test_replicates_are_not_correlated() -> None:
    gradients, _ = GradientStream(Counterexample(probability=0.5), 0, range(20)).draw(1, 50_000, NOTHING)
    correlation = np.corrcoef(gradients, rowvar=False)[np.triu_indices(20, 1)]
    lagged = np.array([np.corrcoef(gradients[:-1, i], gradients[1:, i])[0, 1] for i in range(20)])
    assert abs(correlation).max() < 5 / np.sqrt(50_000)
    assert abs(lagged).max() < 5 / np.sqrt(50_000)


def test_certain_and_impossible_slopes() -> None:
    assert (gradients_of(Counterexample(probability=0.0), 5000, 0, 0) == -10).all()
    assert (gradients_of(Counterexample(probability=1.0), 5000, 0, 0) == 1010).all()


@pytest.mark.parametrize("form", ["stochastic", "deterministic"])
def test_blocks_continue_the_stream_and_count_up_to_each_record(form: str) -> None:
    problem = Counterexample(form=form, probability=0.3, period=5)
    whole, counts = GradientStream(problem, 0, range(7)).draw(1, 60, np.array([0, 25, 59]))
    stream = GradientStream(problem, 0, range(7))
    parts = [stream.draw(1, 26, NOTHING)[0].copy(), stream.draw(27, 34, NOTHING)[0].copy()]
    assert np.array_equal(np.concatenate(parts), whole)
    for row, t in enumerate((1, 26, 60)):
        assert np.array_equal(counts[row], (whole[:t] == 1010).sum(axis=0))
        sums = problem.gradient_sum(np.array(t), counts[row])
        assert np.array_equal(sums, whole[:t].sum(axis=0))
