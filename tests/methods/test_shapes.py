"""Learning-rate shapes against their formulas."""

import math
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.errors import MethodError
from generic_adam.methods.shapes import training_rate

T = np.arange(1.0, 201)


def test_warm_up_then_cosine():
    found = training_rate(1e-3, warmup=20, decay="cosine", lowest=1e-5, steps=100).values(1, 201)
    cosine = 1e-5 + (1e-3 - 1e-5) * (1 + np.cos(np.pi * (T - 20) / 80)) / 2
    assert found == pytest.approx(np.where(T < 20, 1e-3 * T / 20, np.where(T < 100, cosine, 1e-5)), rel=1e-12)


def test_a_line_to_zero_is_held_there():
    found = training_rate(2.0, decay="linear", steps=100).values(1, 201)
    assert found == pytest.approx(np.maximum(0, 2 * (100 - T) / 99), abs=1e-15)


def test_inverse_root_starts_at_the_peak_where_the_warm_up_ends():
    found = training_rate(0.5, warmup=25, decay="inverse-sqrt")
    assert [found(t) for t in (1, 25, 100)] == pytest.approx([0.02, 0.5, 0.25])


@pytest.mark.parametrize(("decay", "told"), [("cosine", "--steps"), ("cubic", "expected constant")])
def test_what_cannot_be_is_one_line(decay, told):
    with pytest.raises(MethodError, match=told):
        training_rate(1e-3, warmup=10, decay=decay)


def test_half_a_cosine_is_exact_at_its_ends():
    from generic_adam.methods.shapes import fall

    curve = fall("cosine", 1.0, 0.1, Fraction(0), Fraction(50))
    assert curve(25) == pytest.approx(0.55)
    assert math.isclose(curve(50), 0.1)
