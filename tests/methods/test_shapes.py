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


@pytest.mark.parametrize(("decay", "told"), [("cosine", "--steps"), ("cubic", "expected one of")])
def test_what_cannot_be_is_one_line(decay, told):
    with pytest.raises(MethodError, match=told):
        training_rate(1e-3, warmup=10, decay=decay)


def test_half_a_cosine_is_exact_at_its_ends():
    from generic_adam.methods.shapes import fall

    curve = fall("cosine", 1.0, 0.1, Fraction(0), Fraction(50))
    assert curve(25) == pytest.approx(0.55)
    assert math.isclose(curve(50), 0.1)


@pytest.mark.parametrize(("decay", "left"), [("wsd", lambda s: 1 - s), ("1-sqrt", lambda s: 1 - np.sqrt(s))])
def test_a_constant_rate_cools_down_at_the_end(decay, left):
    found = training_rate(2.0, warmup=10, decay=decay, lowest=0.5, steps=200, cooldown=50).values(1, 301)
    t = np.arange(1, 301)
    share = np.clip((t - 150) / 50, 0, 1)
    np.testing.assert_allclose(
        found, np.where(t < 10, t / 10, 1) * np.where(t < 150, 2.0, 0.5 + 1.5 * left(share)), rtol=1e-12
    )
    fifth = training_rate(2.0, decay=decay, steps=200)
    assert fifth(159) == 2.0 > fifth(161)
    assert fifth(200) == 0


@pytest.mark.parametrize(
    "arguments", [{"decay": "wsd"}, {"decay": "cosine", "cooldown": 5}, {"decay": "wsd", "cooldown": 99}]
)
def test_a_cool_down_needs_its_steps(arguments):
    with pytest.raises(MethodError):
        training_rate(1.0, **({"steps": 100, "warmup": 10} if "cooldown" in arguments else {}), **arguments)
