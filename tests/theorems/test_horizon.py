"""The three numbers from an Algorithm: the values of the theorems' page, silence said, nothing claimed uncovered."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.methods import Algorithm, Clipping, HeavyBall, Method, as_algorithm
from generic_adam.schedules.work import Budget
from generic_adam.setting import Setting
from generic_adam.theorems.advice import advise_algorithm
from generic_adam.theorems.bounds import bound_algorithm
from generic_adam.theorems.horizon import (
    TYPICAL_GRADIENT,
    HorizonAnswer,
    constant_floor,
    least_theta,
    noise_floor,
    read_horizon,
    three_numbers,
)
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.sweep import SUMMANDS, Part, Sweep
from generic_adam.theorems.weighted import weighted_bound
from generic_adam.theorems.zou2019 import bound
from tests.theorems.problems import bound_of, known, problem_of


# Optima of c_noise as the theorems' page lists them.
@pytest.mark.parametrize(
    ("algorithm", "steps", "noise", "letter"),
    [
        (methods.adamw(weight_decay=0), 100_000, 0.336225, "E"),
        (methods.adafactor(), 524_288, 0.134497, "E"),
        (methods.adafactor(beta=0.9), 255_000, 0.417836, "E"),
        (Algorithm(methods.rmsprop(theta=0.99), initial_v=0, eps=1e-8), 100_000, 0.41122, "E"),
    ],
)
def test_the_numbers_of_the_page(algorithm, steps, noise, letter):
    reading = read_horizon(algorithm, steps)
    assert reading.noise == pytest.approx(noise, rel=2e-5)
    assert reading.theorem == letter
    assert reading.informative
    assert "informative" in reading.statement


def test_a_floor_above_one_is_silent():
    reading = read_horizon(methods.adamw(theta=0.95, weight_decay=0), 10_000)
    # Theorem E's own: Theorem W's floor is 1.85716.
    assert reading.floor == pytest.approx(constant_floor(0.9, 0.95, share=1 - math.sqrt(0.95)).noise, rel=1e-9)
    assert reading.floor > 1.85716221988
    assert read_horizon(Algorithm(Method(1e-3, 0.9, 0.95)), 10_000).floor == pytest.approx(1.85716221988)
    assert not reading.informative
    assert "silent" in reading.statement


def test_beta_squared_above_theta_has_numbers_and_is_silent():
    reading = read_horizon(Method(1e-3, 0.99, 0.95) and Algorithm(Method(1e-3, 0.99, 0.95)), 1000)
    assert not reading.informative


def test_decay_is_told_apart_and_needs_a_bound_on_the_weights():
    reading = read_horizon(methods.adamw(), 10_000)
    assert reading.decay is None
    assert not reading.informative
    small, large = (read_horizon(methods.adamw(), 10_000, Setting(weights_bound=X)) for X in (0.5, 50.0))
    assert 0 < small.decay < large.decay
    assert not large.informative


def test_what_is_not_covered_is_named_and_claims_nothing():
    reading = read_horizon(Algorithm(methods.adam(), clipping=Clipping(1.0)), 1000)
    assert reading.outside == ("clipped gradients are biased",)
    assert not reading.informative
    assert reading.noise is not None
    assert "no theorem covers it (clipped" in reading.statement


def test_clipping_names_the_theorem_that_bounds_it_where_the_problem_is_known():
    clipped = replace(methods.adamw(weight_decay=0), clipping=Clipping(1.0))
    told = read_horizon(clipped, 1000).statement
    assert "no theorem covers it by its sequences alone, with the problem known `bound` has Theorem C3 (clip" in told
    problem = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1)
    assert bound_of(clipped, problem, 1000).theorem == "C"
    # What C3 does not cover is not promised: decay, values that are clipped one by one.
    for beside in ({"decay": 1e-5}, {"clipping": Clipping(1.0, "value")}):
        reading = read_horizon(replace(clipped, **beside), 1000)
        assert reading.with_problem == ""
        assert not bound_of(replace(clipped, **beside), problem, 1000).is_valid


def test_clipping_whose_numbers_the_budget_cut_off_says_so():
    with Budget(0):
        told = read_horizon(Algorithm(methods.adam(), clipping=Clipping(1.0)), 10**6).statement
    assert "(clipped gradients are biased); but for that, undecided, the budget of 0 steps" in told


def test_no_step_no_bound():
    reading = read_horizon(Algorithm(Method("0 if t < 100 else 1/t", 0.9, 0.999)), 50)
    assert reading.noise is None
    assert "is 0" in reading.statement


@pytest.mark.parametrize("steps", [0, -5, 2.5, True, float("nan"), 10**16, 10**400])
def test_bad_horizons(steps):
    with pytest.raises(GenericAdamError, match="horizon: expected a whole number of steps"):
        read_horizon(methods.adamw(), steps)


@pytest.mark.parametrize("theta", [0, "0 if t < 5 else 0.999", "(0.5 if t < 7 else 0) if t < 8 else 0.5"])
def test_a_second_moment_that_forgets_everything_has_no_numbers(theta):
    algorithm = Algorithm(Method(1e-3, 0, theta), initial_v=0, eps=1e-8)
    reading = read_horizon(algorithm, 1000)
    assert reading.noise is None
    assert "expected 0 < theta_t < 1, got 0 at t" in reading.statement
    assert not math.isfinite(bound_algorithm(algorithm, known(1, 1, 10, 1), 1000).value)


def test_theta_1_of_0_needs_eps():
    """v_0 is wiped out by the first step: nothing bounds the second one's divisor but eps."""
    method = Method("1e-3/sqrt(t)", 0.9, "1 - 1/t")
    assert read_horizon(Algorithm(method), 1000).noise is None
    assert read_horizon(Algorithm(method, initial_v=0, eps=1e-8), 1000).noise is not None


def test_momentum_that_outgrows_theta_is_silent_and_not_a_rate_of_zero():
    reading = read_horizon(methods.adamw(theta=0.5, weight_decay=0), 10_000)
    assert reading.statement.endswith("silent: the noise leaves far more than what holds without a theorem")


def test_a_large_start_is_a_part_of_the_divisor():
    """With v_0 far above the gradients X_w is small and the norm that it bounds is not: s_1 = sqrt(G^2 + v_0)."""
    reading = read_horizon(Algorithm(Method(1e-3, 0, 0.999), initial_v=100.0), 100_000)
    assert reading.norm == pytest.approx(math.sqrt(1e-6 + 100) / 1e-3)
    assert reading.relative == pytest.approx(reading.norm * reading.noise)


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_silence_that_eps_makes_is_one_of_small_gradients(eps):
    x = Algorithm(Method(1e-3, 0.9, 0.999), initial_v=0, eps=eps)
    assert "silent on gradients of 0.001: " in read_horizon(x, 100_000).statement
    assert bound_algorithm(x, known(1, [10.0] * 3, 3, 1), 100_000).informative


def test_a_running_maximum_has_the_numbers_of_its_own_theorem():
    sequences = Sequences.of_algorithm(methods.amsgrad(), 20_000)
    problem = problem_of(1e-30, [1e-3], 1, 0.0, gradient_sup=[1e-3])
    reading = read_horizon(methods.amsgrad(), 20_000)
    assert reading.theorem == "M_E"
    # The majorants of the summands are taken one by one, hence at most a little above the bound itself.
    assert 1 - 1e-12 <= reading.noise / (weighted_bound(sequences, problem).value / 1e-3) < 1.01
    assert "provided every gradient is bounded" in reading.statement


@pytest.mark.parametrize("share", [0.9966, 0.33333, 1.00204, 0.34, 1.23456e-5])
def test_a_floor_is_rounded_down_and_the_numbers_up(share):
    told = HorizonAnswer(10, "W", noise=share, gap=0.12341, drift=1e-9 / 3, floor=0.98765 * share).lines()[1]
    noise, floor, gap, drift = (float(one) for one in re.findall(r"\d[\d.e-]*\d|\d", told))
    assert floor <= 0.98765 * share < share <= noise
    assert (gap, drift) == (0.1235, 3.334e-10)


@pytest.mark.parametrize(
    ("share", "shown"), [(0.9966, "0.997"), (0.99996, "0.99996"), (0.331, "0.34"), (1.002, "1.1"), (0.34, "0.34")]
)
def test_a_share_is_rounded_up(share, shown):
    steps = HorizonAnswer(10, "W", noise=share, gap=1.0, drift=1.0)
    assert f" {shown} {'of' if share < 1 else 'times'} what" in steps.statement


@pytest.mark.parametrize(("beta", "theta"), [(0.7, 0.49), (0.9, 0.81), (0.3, 0.09), ("sqrt(0.5)", 0.5)])
def test_theta_equal_to_beta_squared_has_no_floor_below_infinity(beta, theta):
    """As floats 0.7^2 < 0.49: decided as numbers. What is built of irrational parts may stay open."""
    floor = noise_floor(Algorithm(Method(1e-3, beta, theta)))
    assert floor == math.inf or (floor is None and isinstance(beta, str))
    advise_algorithm(Method(1e-3, beta, theta))
    assert math.isfinite(noise_floor(Algorithm(Method(1e-3, beta, float(theta) + 1e-9))) or math.inf)


@pytest.mark.parametrize(("beta", "theta"), [(0.7, 0.49), (0.7, 0.48), (0.9, 0.81)])
def test_theorem_1_has_no_bound_where_theta_is_not_above_beta_squared(beta, theta):
    found = bound(Method("1e-3/sqrt(t)", beta, theta), problem_of(1, 1, 10, 1), 100)
    assert found.reasons == f"(R2): theta = {theta:g} is not above beta^2 = {beta**2:.6g}"


def test_a_tie_within_rounding_is_not_claimed():
    """The bounds are doubles: what they do not tell apart from 1 is silent, and said to be close."""
    for noise, told in (
        (1 - 1e-9, "informative"),
        (1 - 1e-13, "within rounding of 1"),
        (1 + 1e-9, "leaves 1.1 times"),
    ):
        answer = HorizonAnswer(10**4, "W", noise=noise, gap=1.0, drift=1.0, rounding=1e-11)
        assert answer.informative == (told == "informative")
        assert told in answer.statement


def test_what_was_not_computed_is_undecided_and_not_uncovered():
    far = read_horizon(methods.adamw(weight_decay=0), 10**9)
    assert far.statement == "for 1,000,000,000 steps: undecided, the recursions are run up to 100,000,000 steps"
    with Budget(1e-6):
        spent = read_horizon(Algorithm(Method(lambda t: 1e-3 / t, 0.9, 0.999)), 10**7)
    assert spent.outside == ()
    assert "undecided, the budget of 16 steps" in spent.statement


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
    numbers, floor = three_numbers(sequences), constant_floor(0.9, theta)
    assert numbers.noise == pytest.approx(floor.noise, rel=1e-3)
    assert numbers.drift == pytest.approx(1e-3 * floor.drift, rel=1e-3)
    with_eps = three_numbers(Sequences.of(1e-3, 0.9, theta, eps=1e-12, steps=steps))
    of_e = constant_floor(0.9, theta, share=1 - math.sqrt(theta))
    # The start costs log(G^2/e^2) once, 4e-4 of log W_T.
    assert with_eps.noise == pytest.approx(of_e.noise, rel=1e-3)
    assert 1.003 * floor.noise < of_e.noise < 1.005 * floor.noise


def test_nesterovs_floor_is_where_its_noise_ends():
    a, b, theta, steps = 0.9, 0.1, 0.999, 10**7
    sequences = Sequences.of(1e-3, 0.9, theta, eps=1e-12, momentum_weight=a, gradient_weight=b, steps=steps)
    floor = constant_floor(0.9, theta, share=1 - math.sqrt(theta), momentum_weight=a, gradient_weight=b)
    numbers = three_numbers(sequences)
    assert numbers.noise == pytest.approx(floor.noise, rel=5e-3)
    assert numbers.drift == pytest.approx(1e-3 * floor.drift, rel=5e-3)
    assert floor.noise == pytest.approx(0.2301, abs=5e-5)
    # All momentum and no gradient is Theorem E, the gradient alone is H without momentum.
    assert constant_floor(0.9, theta, momentum_weight=2.0).noise == constant_floor(0.9, theta).noise
    plain = constant_floor(0.9, theta, momentum_weight=0.0, gradient_weight=1.0).noise
    assert plain == pytest.approx(constant_floor(0.0, theta).noise)


def test_heavy_ball():
    assert constant_floor(0.0, 0.99, heavy_ball=0.9).noise == pytest.approx(0.402013434140, rel=1e-9)
    ball = HeavyBall(Fraction(9, 10))
    numbers = three_numbers(Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=10**7, heavy_ball=ball))
    floor = constant_floor(0.0, 0.99, heavy_ball=0.9)
    assert (numbers.noise, numbers.drift) == pytest.approx((floor.noise, 1e-3 * floor.drift), rel=1e-3)


def test_outside_the_range():
    assert constant_floor(0.99, 0.95).noise == math.inf
    assert constant_floor(0.0, 1e-300).noise == pytest.approx(4 * 300 * math.log(10))
    with pytest.raises(TheoremError, match="0 < theta < 1"):
        constant_floor(0.9, 1.0)


def corrected(rate, beta, theta, eps, steps):
    """torch's Adam with a learning rate that is a function of t."""
    t = np.arange(1.0, steps + 1)
    root = np.sqrt(-np.expm1(t * math.log(theta)))
    return Sequences.of(rate(t) * root / -np.expm1(t * math.log(beta)), beta, theta, eps=eps * root)


def triangular(t, peak=1e-4, warm_up=1e4, total=1e6):
    return peak * np.where(t < warm_up, t / warm_up, (total - t) / total)


def triangle(t, peak=1e-4, warm_up=1e4, total=1e6):
    return peak * np.minimum(t / warm_up, (total - t) / (total - warm_up))


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
    # The page's (s, zeta), its three numbers there, and the least noise over all of them.
    "torch": (
        lambda: corrected(constant, 0.9, 0.999, 1e-8, 100_000),
        *((0.35, 0.02), (0.33633, 0.015899, 0.0199021), 0.336225),
    ),
    "bert": (
        lambda: Sequences.of(triangle(steps(10**6)), 0.9, 0.999, eps=1e-6),
        *((0.35, 0.01), (0.252796, 0.0311093, 0.00106063), 0.249583),
    ),
    "bert, falling to 0 from the start": (
        lambda: Sequences.of(triangular(steps(10**6)), 0.9, 0.999, eps=1e-6),
        *(None, (), 0.249646),
    ),
    "stable diffusion": (
        lambda: corrected(lambda t: 1e-4 * np.minimum(t / 1e4, 1), 0.9, 0.999, 1e-8, 752_000),
        *((0.35, 0.01), (0.255042, 0.0208243, 0.00156908), 0.251812),
    ),
    "t5": (
        lambda: falling(lambda t: 1 / np.sqrt(np.maximum(t, 1e4)), 0.0, 524_288),
        *((0.5, 0.0), (0.134497, 0.00148351, 0.0127196), 0.134497),
    ),
    "palm": (
        lambda: falling(palm, 0.9, 255_000),
        *((0.35, 0.05), (0.418297, 0.0018281, 0.287126), 0.417836),
    ),
    "rmsprop": (
        lambda: Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=100_000),
        *((0.5, 0.0), (0.41122, 0.02, 0.00102805), 0.41122),
    ),
    "transformer": (
        lambda: corrected(noam, 0.9, 0.98, 1e-9, 100_000),
        *((0.35, 0.03), (1.32518, 0.0616855, 0.00712485), 1.32294),
    ),
    "nanogpt": (
        lambda: corrected(nano_gpt, 0.9, 0.95, 1e-8, 600_000),
        *((0.3, 0.08), (2.34914, 0.0062433, 0.0120251), 2.33962),
    ),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_three_numbers_of_recipes(recipe):
    """To every digit of the page: those of its own (s, zeta), and the least noise."""
    make, at, listed, least = RECIPES[recipe]
    sequences = make()
    numbers = three_numbers(sequences)
    assert numbers.noise == pytest.approx(least, rel=5e-6)
    assert numbers.informative == (recipe not in {"transformer", "nanogpt"})
    if at is None:
        return
    sweep, G = Sweep(sequences), 1e-3
    first, second, lengths, growth = sweep.sums((Part(1, G, G, G**2),), *SUMMANDS)
    divisor = (1 - sum(at)) * sweep.weight
    noise = first / at[0] + second + (growth / at[1] if at[1] else 0.0)
    assert (noise / G / divisor, 1 / divisor, lengths / divisor) == pytest.approx(listed, rel=5e-6)


@pytest.mark.parametrize(
    ("algorithm", "told"),
    [
        (methods.adopt(), "Theorem O bounds it given the problem's constants"),
        (methods.sgd(lr="1/t"), "Robbins-Monro speaks of no number of steps"),
        (replace(methods.amsgrad(), eps=1e-3, power=0.25), "Theorem M bounds it"),
    ],
)
def test_what_a_theorem_covers_is_not_called_uncovered(algorithm, told):
    reading = read_horizon(algorithm, 1000)
    assert (reading.outside, reading.noise, reading.informative) == ((), None, False)
    assert told in reading.statement
    assert "no theorem covers" not in reading.statement
    clipped = replace(algorithm, clipping=Clipping(1.0))
    assert "no theorem covers it" in read_horizon(clipped, 1000).statement


def test_no_step_at_all():
    with pytest.raises(TheoremError, match="every learning rate"):
        three_numbers(Sequences.of(np.zeros(5), 0.9, 0.999, eps=1e-8))


@pytest.mark.parametrize(
    ("x", "steps", "depends"),
    [
        (methods.adamw(weight_decay=0), 100_000, False),
        (methods.adafactor(), 524_288, False),
        (methods.adagrad(), 1000, True),  # 0.77 on gradients of 0.001, and silent on gradients of 1
        (Algorithm(methods.adam(), initial_v=1.0), 1000, True),
        (Algorithm(Method(1e-3, 0.9, 0.999), initial_v=0, eps=0.1), 1000, True),
    ],
)
def test_a_number_that_depends_on_the_size_of_the_gradients_is_told_with_it(x, steps, depends):
    x = as_algorithm(x)
    answer = read_horizon(x, steps)
    small, large = (three_numbers(Sequences.of_algorithm(x, steps), G) for G in (TYPICAL_GRADIENT, 1.0))
    assert answer.relative == small.relative
    assert answer.steeper == pytest.approx(large.relative / small.relative, rel=1e-12)
    assert answer.informative
    assert ("on gradients of 0.001 (informative)" in answer.statement) is depends
    if not depends:
        assert large.relative < 1.25 * answer.relative
