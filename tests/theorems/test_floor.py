"""The three numbers of a horizon and the floors of constant sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.theorems.epsilon import adam_terms, heavy_ball_terms
from generic_adam.theorems.floor import constant_floor, heavy_ball_floor, least_theta, three_numbers
from generic_adam.theorems.sequences import Sequences


@pytest.mark.parametrize(
    ("beta", "theta", "noise", "drift", "s"),
    [
        (0, 0.99, 0.402013434140, 1.00503358535, 0.5),
        (0, 0.999, 0.126554394155, 1.00050033358, 0.5),
        (0.9, 0.95, 1.85716221988, 25.9121555389, 0.351449455959),
        (0.9, 0.98, 1.10725444153, 18.2257629583, 0.359189449509),
        (0.9, 0.99, 0.769330305711, 16.4451989995, 0.361438047173),
        (0.9, 0.999, 0.239649476013, 15.0681768954, 0.36334599457),
        (0.9, 0.9999, 0.0756725470694, 14.940649099, 0.363531193042),
        (0.95, 0.999, 0.28750413291, 29.7648665099, 0.33173139333),
    ],
)
def test_check_values_of_the_floor(beta, theta, noise, drift, s):
    floor = constant_floor(beta, theta)
    assert (floor.noise, floor.drift, floor.s) == pytest.approx((noise, drift, s), rel=1e-9)
    # The closed form of the docstring, beside the search.
    rho = beta / math.sqrt(theta)
    c = rho / math.sqrt(1 - rho**2)
    closed = (1 + math.sqrt(1 + c)) ** 2 * -math.log(theta) / math.sqrt(1 - theta)
    assert floor.noise == pytest.approx(closed, rel=1e-11)


@pytest.mark.parametrize(
    ("beta", "theta"),
    [
        (0, 0.941159502),
        (0.5, 0.963189702),
        (0.8, 0.976622236),
        (0.9, 0.983482916),
        (0.95, 0.988695352),
        (0.99, 0.996009363),
    ],
)
def test_the_smallest_theta_that_says_something(beta, theta):
    assert least_theta(beta) == pytest.approx(theta, abs=1e-9)
    assert constant_floor(beta, least_theta(beta) + 1e-9).noise < 1 < constant_floor(beta, theta - 1e-6).noise


def test_the_bound_at_a_long_horizon_tends_to_the_floor():
    steps, theta = 10**8, 0.999
    sequences = Sequences.of(1e-3, 0.9, theta, initial_v=1e-8, steps=steps)
    numbers, floor = three_numbers(sequences, adam_terms), constant_floor(0.9, theta)
    assert numbers.noise == pytest.approx(floor.noise, rel=1e-3)
    assert numbers.drift == pytest.approx(1e-3 * floor.drift, rel=1e-3)
    with_eps = three_numbers(Sequences.of(1e-3, 0.9, theta, eps=1e-12, steps=steps), adam_terms)
    of_e = constant_floor(0.9, theta, share=1 - math.sqrt(theta))
    # The start costs log(G^2/e^2) once, 4e-4 of log W_T.
    assert with_eps.noise == pytest.approx(of_e.noise, rel=1e-3)
    assert 1.003 * floor.noise < of_e.noise < 1.005 * floor.noise


def test_heavy_ball():
    assert heavy_ball_floor(0.9, 0.99).noise == pytest.approx(0.402013434140, rel=1e-9)
    sequences = Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=10**7)
    numbers = three_numbers(sequences, lambda block, _: heavy_ball_terms(block, 0.9, rate_inside=False))
    floor = heavy_ball_floor(0.9, 0.99)
    assert (numbers.noise, numbers.drift) == pytest.approx((floor.noise, 1e-3 * floor.drift), rel=1e-3)


def test_outside_the_range():
    assert constant_floor(0.99, 0.95).noise == math.inf
    with pytest.raises(TheoremError, match="0 < theta < 1"):
        constant_floor(0.9, 1.0)


def corrected(rate, beta, theta, eps, steps):
    """torch's Adam with a learning rate that is a function of t."""
    t = np.arange(1.0, steps + 1)
    root = np.sqrt(-np.expm1(t * math.log(theta)))
    return Sequences.of(rate(t) * root / -np.expm1(t * math.log(beta)), beta, theta, eps=eps * root)


def triangular(t, peak=1e-4, warm_up=1e4, total=1e6):
    return peak * np.where(t < warm_up, t / warm_up, (total - t) / total)


def nano_gpt(t):
    way = np.clip((t - 2000) / 598_000, 0, 1)
    return np.where(t < 2000, 6e-4 * t / 2000, 6e-5 + (1 + np.cos(np.pi * way)) / 2 * 5.4e-4)


def steps(last):
    return np.arange(1.0, last + 1)


def falling(rate, beta, last):
    """Adafactor's theta_t = 1 - t^-0.8, unfactored, with a rate that is a function of t."""
    q = steps(last) ** -0.8
    return Sequences.of(rate(steps(last)), beta, 1 - q, q=q, eps=1e-15)


def constant(t):
    return np.full_like(t, 1e-3)


def palm(t):
    return np.where(t <= 1e4, 0.01, 1 / np.sqrt(t))


def noam(t):
    return 512**-0.5 * np.minimum(t**-0.5, t * 4000**-1.5)


RECIPES = {
    # The best noise, and what the page's grid of (s, zeta) made of gap and drift.
    "torch": (lambda: corrected(constant, 0.9, 0.999, 1e-8, 100_000), 0.336225, 0.015899, 0.0199021),
    "bert": (
        lambda: Sequences.of(triangular(steps(10**6)), 0.9, 0.999, eps=1e-6),
        *(0.249646, 0.0311093, 0.00106063),
    ),
    "stable diffusion": (
        lambda: corrected(lambda t: 1e-4 * np.minimum(t / 1e4, 1), 0.9, 0.999, 1e-8, 752_000),
        *(0.251812, 0.0208243, 0.00156908),
    ),
    "t5": (
        lambda: falling(lambda t: 1 / np.sqrt(np.maximum(t, 1e4)), 0.0, 524_288),
        *(0.134497, 0.00148351, 0.0127196),
    ),
    "palm": (lambda: falling(palm, 0.9, 255_000), 0.417836, 0.0018281, 0.287126),
    "rmsprop": (
        lambda: Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=100_000),
        *(0.41122, 0.02, 0.00102805),
    ),
    "transformer": (
        lambda: corrected(noam, 0.9, 0.98, 1e-9, 100_000),
        *(1.32294, 0.0616855, 0.00712485),
    ),
    "nanogpt": (lambda: corrected(nano_gpt, 0.9, 0.95, 1e-8, 600_000), 2.33962, 0.0062433, 0.0120251),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_three_numbers_of_recipes(recipe):
    make, noise, gap, drift = RECIPES[recipe]
    numbers = three_numbers(make(), adam_terms)
    assert numbers.noise == pytest.approx(noise, rel=5e-6)
    # The page took gap and drift at another (s, zeta), a few percent away.
    assert (numbers.gap, numbers.drift) == pytest.approx((gap, drift), rel=0.03)
    assert numbers.informative == (recipe not in {"transformer", "nanogpt"})


def test_no_step_at_all():
    numbers = three_numbers(Sequences.of(np.zeros(5), 0.9, 0.999, eps=1e-8), adam_terms)
    assert numbers.noise == math.inf
    assert not numbers.informative
