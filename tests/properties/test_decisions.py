"""The exact decision against numbers: random schedules of the scale, followed over many powers of ten."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.methods import Method
from generic_adam.theorems.decide import chi_of, ratio, ratio_growth
from generic_adam.theorems.zou2019 import examine_method

COUNT = 300


def _random_method(generator: random.Random) -> tuple[Fraction, Fraction, Method]:
    """Alpha = eta (log)^q (log log)^w / (t+k)^s and 1 - theta = c (log)^a / (t+k)^r."""
    s = Fraction(generator.randint(0, 6), 4)
    r = Fraction(generator.randint(0, 6), 4)
    q, w = (generator.choice([-1, Fraction(-1, 2), 0, 0, 0, Fraction(1, 2), 1]) for _ in range(2))
    a = generator.choice([-1, 0, 0, Fraction(-1, 2)])
    shift = generator.choice([0, 1, 7])
    eta = generator.choice([0.001, 0.5, 3])
    alpha = f"{eta} * log(t + 9)^({q}) * log(log(t + 99))^({w}) / (t + {shift})^({s})"
    theta = f"1 - {generator.choice([0.01, 0.3, 0.9])} * log(t + 9)^({a}) / (t + {shift})^({r})"
    return s, r, Method(alpha, 0.9, theta)


def _slow_scale(t: float, log: Fraction, loglog: Fraction) -> float:
    return float(log) * math.log(math.log(t)) + float(loglog) * math.log(math.log(math.log(t)))


@pytest.mark.parametrize("seed", range(COUNT))
def test_the_exact_decision_agrees_with_the_numbers(seed):
    s, r, method = _random_method(random.Random(seed))
    certificate = examine_method(method)
    first, second, third, fourth = certificate.conditions
    assert first.status == "holds"

    # Condition 2: every value of a long beginning, and pairs of neighbours far out.
    complement = (1 - method.theta).values(1, 50_000)
    falling = bool(np.all(np.diff(complement) <= 4e-16 * complement[1:]))
    inside = bool(np.all((complement > 0) & (complement < 1)))
    assert second.status == ("holds" if falling and inside else "fails")

    # Condition 3: chi between t = 10^6 and 10^15 against the growth that the decision rests on.
    sequence = chi_of(method)
    growth = sequence.growth
    assert growth is not None
    assert growth.power == r / 2 - s
    low, high = 1e6, 1e15
    measured = math.log(float(sequence.at([high])[0]) / float(sequence.at([low])[0]))
    predicted = float(growth.power) * math.log(high / low)
    predicted += _slow_scale(high, growth.log, growth.loglog) - _slow_scale(low, growth.log, growth.loglog)
    assert measured == pytest.approx(predicted, abs=0.2)
    # (log t)^(1/4) / log log t falls until t = 10^23 and rises for ever after: look far beyond that.
    far, farther = sequence.at([1e100, 1e200])
    assert third.status == ("fails" if farther > far * (1 + 1e-9) else "holds")

    # Condition 4: the ratio itself, summed to 10^14.
    order = ratio_growth(method)
    if order is None:
        assert fourth.status == "undecided"
        return
    low, high = 1e8, 1e14
    measured = math.log(ratio(method, int(high)) / ratio(method, int(low)))
    predicted = float(order.power) * math.log(high / low)
    predicted += _slow_scale(high, order.log, order.loglog) - _slow_scale(low, order.log, order.loglog)
    # A sum that has just begun to diverge, or just converged, is off by a factor 1 + O(1/log T).
    assert measured == pytest.approx(predicted, abs=0.8)
    assert fourth.status == ("holds" if order.trend < 0 else "fails")


def test_the_power_family_is_certified_exactly_on_its_region():
    quarter = Fraction(1, 4)
    for i in range(9):
        for j in range(9):
            r, s = i * quarter, j * quarter / 2
            certificate = examine_method(Method(f"0.5/t^({s})", 0.9, f"1 - 0.9/t^({r})"))
            assert (certificate.verdict == "certified") == (0 < r <= 2 * s < 2)
            if certificate.rate is None:
                continue
            if r / 2 + s < 1:
                expected = (-r / 2, 0)
            elif r / 2 + s == 1:
                expected = (s - 1, 1)
            else:
                expected = (s - 1, 0)
            assert (certificate.rate.power, certificate.rate.log, certificate.rate.loglog) == (*expected, 0)
