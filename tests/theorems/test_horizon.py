"""The three numbers from an Algorithm: the values of the theorems' page, silence said, nothing claimed uncovered."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.answers.words import lines
from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.methods import Algorithm, Clipping, HeavyBall, Method, as_algorithm
from generic_adam.schedules.work import Budget
from generic_adam.setting import Setting
from generic_adam.theorems.advice import advise_algorithm
from generic_adam.theorems.bounds import bound_algorithm
from generic_adam.theorems.certificate import Certificate
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
from generic_adam.theorems.theorem import Answer, Reason
from generic_adam.theorems.weighted import weighted_bound
from generic_adam.theorems.zou2019 import bound
from tests.theorems.problems import bound_of, known, problem_of


# Optima of c_noise as the theorems' page lists them.
@pytest.mark.parametrize(
    ("algorithm", "steps", "noise", "letter"),
    [
        (methods.adamw(weight_decay=0), 100_000, 0.0664637, "E"),
        (methods.adafactor(), 524_288, 0.0192352, "E"),
        (methods.adafactor(beta=0.9), 255_000, 0.0749685, "E"),
        (Algorithm(methods.rmsprop(theta=0.99), initial_v=0, eps=1e-8), 100_000, 0.0588107, "E"),
    ],
)
def test_the_numbers_of_the_page(algorithm, steps, noise, letter):
    reading = read_horizon(algorithm, steps)
    assert reading.noise == pytest.approx(noise, rel=2e-5)
    assert reading.theorem == letter
    assert reading.answer is Answer.GUARANTEED


def test_a_floor_above_one_is_of_no_use():
    reading = read_horizon(methods.adamw(theta=0.85, weight_decay=0), 10_000)
    # With eps the floor is that of beta and theta alone.
    assert reading.floor == pytest.approx(constant_floor(0.9, 0.85).noise)
    assert reading.floor > 1
    assert (reading.answer, reading.dominant) == (Answer.NOT_USEFUL, "noise")


def test_beta_squared_above_theta_has_numbers_and_is_of_no_use():
    reading = read_horizon(Algorithm(Method(1e-3, 0.99, 0.95)), 1000)
    assert not reading.useful


@pytest.mark.parametrize(
    ("lr", "useful", "dominant"),
    [(1e-6, False, "start"), (1e-3, True, "noise"), (1.0, False, "curvature"), (1000.0, False, "curvature")],
)
def test_the_label_takes_the_whole_bound(lr, useful, dominant):
    """Noise alone is the same 0.066 for all four learning rates."""
    reading = read_horizon(methods.adamw(lr=lr, weight_decay=0), 100_000)
    assert reading.noise == pytest.approx(0.0664637, rel=1e-5)
    assert (reading.useful, reading.dominant) == (useful, dominant)
    assert reading.relative == pytest.approx(reading.norm * (reading.noise + reading.gap + reading.drift), rel=1e-12)
    assert (reading.answer is Answer.GUARANTEED) is useful


def test_four_learning_rates_have_four_answers():
    rates = (1e-6, 1e-3, 1, 1000)
    assert len({str(read_horizon(methods.adamw(lr=lr, weight_decay=0), 100_000)) for lr in rates}) == 4


def test_the_largest_problem_that_it_is_useful_for():
    """Just below the largest curvature (or gap) it is, just above it is not; in the user's units if known."""
    x = methods.adamw(weight_decay=0)
    plain = read_horizon(x, 100_000)
    for name, largest in (("problem_curvature", plain.largest_smoothness), ("problem_gap", plain.largest_gap)):
        near, far = (replace(plain, **{name: largest * factor}) for factor in (1 - 1e-9, 1 + 1e-9))
        assert near.useful
        assert not far.useful
    own = read_horizon(x, 100_000, Setting(smoothness=2, gap=3, dimension=100, gradient_bound=5))
    # G_1 = sqrt(100) 5 = 50: the curvature d L/G_1 is 4 and the gap 0.06.
    assert (own.problem_curvature, own.problem_gap) == pytest.approx((4, 0.06))
    for fact, largest in (("smoothness", own.largest_smoothness), ("gap", own.largest_gap)):
        facts = {"smoothness": 2, "gap": 3, "dimension": 100, "gradient_bound": 5}
        near, far = (
            read_horizon(x, 100_000, Setting(**{**facts, fact: largest * factor})).useful for factor in (0.999, 1.001)
        )
        assert near
        assert not far
    silent = read_horizon(methods.adamw(theta=0.85, weight_decay=0), 10_000)
    assert (silent.largest_smoothness, silent.largest_gap, silent.steps_needed) == (0, 0, None)


def test_the_best_learning_rate_for_the_bound():
    """The factor that the start and the curvature agree on; a tenth more or less is worse."""
    first = read_horizon(methods.adamw(lr=1e-5, weight_decay=0), 10_000)
    values = {}
    for factor in (0.9, 1.0, 1.1):
        lr = 1e-5 * first.best_rate * factor
        values[factor] = read_horizon(methods.adamw(lr=lr, weight_decay=0), 10_000).relative
    assert values[1.0] < min(values[0.9], values[1.1])
    assert values[1.0] < first.relative


def test_how_many_steps_would_do():
    """About: what the beginning costs is spread over more steps, the rest stays."""
    short = read_horizon(methods.adamw(lr=1e-5, weight_decay=0), 5_000)
    assert (short.useful, short.dominant) == (False, "start")
    assert read_horizon(methods.adamw(lr=1e-5, weight_decay=0), round(1.03 * short.steps_needed)).useful
    assert not read_horizon(methods.adamw(lr=1e-5, weight_decay=0), round(0.9 * short.steps_needed)).useful


def test_symmetric_noise_stands_beside_the_answer_without_it():
    x = methods.adamw(theta=0.95, weight_decay=0)
    plain, known_of = read_horizon(x, 100_000), read_horizon(x, 100_000, Setting(noise="symmetric"))
    assert plain.symmetric is None
    assert replace(known_of, symmetric=None) == plain
    assert known_of.symmetric.theorem == "Y"
    assert known_of.symmetric.floor == pytest.approx(constant_floor(0.9, 0.95, symmetric=True).noise)
    assert known_of.symmetric.relative < plain.relative
    assert known_of.symmetric.answer is Answer.GUARANTEED
    assert known_of.to_dict()["symmetric"]["theorem"] == "Y"
    rmsprop = Algorithm(Method(1e-4, 0, 0.99), initial_v=0, eps=1e-8)
    assert read_horizon(rmsprop, 10_000, Setting(noise="symmetric")).symmetric.noise == 0


def test_decay_is_told_apart_and_needs_a_bound_on_the_weights():
    reading = read_horizon(methods.adamw(), 10_000)
    assert reading.decay is None
    assert not reading.useful
    small, large = (read_horizon(methods.adamw(), 10_000, Setting(weights_bound=X)) for X in (0.5, 500.0))
    assert 0 < small.decay < large.decay
    assert not large.useful
    assert large.dominant == "decay"


def test_what_is_not_covered_is_named_and_claims_nothing():
    reading = read_horizon(Algorithm(methods.adam(), clipping=Clipping(1.0)), 1000)
    assert reading.outside == (Reason("clipping"),)
    assert reading.answer is Answer.NONE
    assert reading.noise is not None


def test_clipping_names_the_theorem_that_bounds_it_where_the_problem_is_known():
    clipped = replace(methods.adamw(weight_decay=0), clipping=Clipping(1.0))
    assert read_horizon(clipped, 1000).with_problem == "Theorem C3"
    problem = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1)
    assert bound_of(clipped, problem, 1000).theorem == "C"
    # What C3 does not cover is not promised: decay, values that are clipped one by one.
    for beside in ({"decay": 1e-5}, {"clipping": Clipping(1.0, "value")}):
        reading = read_horizon(replace(clipped, **beside), 1000)
        assert reading.with_problem == ""
        assert not bound_of(replace(clipped, **beside), problem, 1000).is_valid


def test_clipping_whose_numbers_the_budget_cut_off_says_so():
    with Budget(0):
        reading = read_horizon(Algorithm(methods.adam(), clipping=Clipping(1.0)), 10**6)
    assert (reading.outside, reading.unknown.kind) == ((Reason("clipping"),), "spent")


def test_no_step_no_bound():
    reading = read_horizon(Algorithm(Method("0 if t < 100 else 1/t", 0.9, 0.999)), 50)
    assert reading.noise is None
    assert "is 0" in reading.outside[0].about


@pytest.mark.parametrize("steps", [0, -5, 2.5, True, float("nan"), 10**16, 10**400])
def test_bad_horizons(steps):
    with pytest.raises(GenericAdamError, match="horizon"):
        read_horizon(methods.adamw(), steps)


@pytest.mark.parametrize("theta", [0, "0 if t < 5 else 0.999", "(0.5 if t < 7 else 0) if t < 8 else 0.5"])
def test_a_second_moment_that_forgets_everything_has_no_numbers(theta):
    algorithm = Algorithm(Method(1e-3, 0, theta), initial_v=0, eps=1e-8)
    reading = read_horizon(algorithm, 1000)
    assert reading.noise is None
    assert "expected 0 < theta_t < 1, got 0 at t" in reading.outside[0].about
    assert not math.isfinite(bound_algorithm(algorithm, known(1, 1, 10, 1), 1000).value)


def test_theta_1_of_0_needs_eps():
    """v_0 is wiped out by the first step: nothing bounds the second one's divisor but eps."""
    method = Method("1e-3/sqrt(t)", 0.9, "1 - 1/t")
    assert read_horizon(Algorithm(method), 1000).noise is None
    assert read_horizon(Algorithm(method, initial_v=0, eps=1e-8), 1000).noise is not None


def test_momentum_that_outgrows_theta_is_of_no_use_and_not_a_rate_of_zero():
    reading = read_horizon(methods.adamw(theta=0.5, weight_decay=0), 10_000)
    assert (reading.answer, reading.dominant) == (Answer.NOT_USEFUL, "noise")


def test_a_large_start_is_a_part_of_the_divisor():
    """With v_0 far above the gradients X_w is small and the norm that it bounds is not: the mean root of v_t."""
    reading = read_horizon(Algorithm(Method(1e-3, 0, 0.999), initial_v=100.0), 100_000)
    forgotten = 0.999 ** np.arange(1, 100_001)
    roots = np.sqrt(1e-6 * (1 - forgotten) + 100 * forgotten)
    assert reading.norm == pytest.approx(roots.mean() / 1e-3)
    assert reading.parts["noise"] == pytest.approx(reading.norm * reading.noise)


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_silence_that_eps_makes_is_one_of_small_gradients(eps):
    x = Algorithm(Method(1e-3, 0.9, 0.999), initial_v=0, eps=eps)
    assert "gradients of 0.001" in str(read_horizon(x, 100_000))
    assert bound_algorithm(x, known(1, [10.0] * 3, 3, 1), 100_000).informative


def test_a_running_maximum_has_the_numbers_of_its_own_theorem():
    sequences = Sequences.of_algorithm(methods.amsgrad(), 20_000)
    problem = problem_of(1e-30, [1e-3], 1, 0.0, gradient_sup=[1e-3])
    reading = read_horizon(methods.amsgrad(), 20_000)
    assert reading.theorem == "M_E"
    # The majorants of the summands are taken one by one, hence at most a little above the bound itself.
    assert 1 - 1e-12 <= reading.noise / (weighted_bound(sequences, problem).value / 1e-3) < 1.01
    assert reading.needs == ("every gradient is bounded",)


@pytest.mark.parametrize("share", [0.9966, 0.33333, 1.00204, 0.34])
def test_a_floor_is_rounded_down_and_the_numbers_up(share):
    answer = HorizonAnswer(10, "W", noise=share, gap=0.1234, drift=1e-9 / 3, floor=0.98765 * share)
    told = {one.label: one.text for one in lines(Certificate(methods.adamw(), (), answer))}
    (noise,) = re.findall(r"noise ([\d.e-]*\d)", told["Parts"])
    floors = re.findall(r"noise floor ([\d.e-]*\d)", told["Parts"])
    assert all(float(floor) <= 0.98765 * share for floor in floors)
    assert share <= float(noise) < 1.1 * share


@pytest.mark.parametrize(
    ("share", "shown"), [(0.9966, "99.9 %"), (0.331, "57.6 %"), (1.002, "1.01x"), (0.34, "58.4 %")]
)
def test_a_share_is_rounded_up(share, shown):
    steps = HorizonAnswer(10, "W", noise=share, gap=0.0, drift=0.0)
    assert shown in str(steps)


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
    for noise, useful in ((1 - 1e-9, True), (1 - 1e-13, False), (1 + 1e-9, False)):
        assert HorizonAnswer(10**4, "W", noise=noise, gap=0.0, drift=0.0, rounding=1e-11).useful == useful


def test_what_was_not_computed_is_undecided_and_not_uncovered():
    far = read_horizon(methods.adamw(weight_decay=0), 10**9)
    assert (far.answer, far.unknown) == (Answer.UNKNOWN, Reason("longest", "100,000,000"))
    with Budget(1e-6):
        spent = read_horizon(Algorithm(Method(lambda t: 1e-3 / t, 0.9, 0.999)), 10**7)
    assert spent.outside == ()
    assert (spent.answer, spent.unknown.kind) == (Answer.UNKNOWN, "spent")
    assert "the budget of 16 steps" in spent.unknown.about


def test_a_bound_beyond_doubles_is_infinite_and_no_nan():
    found = read_horizon(Algorithm(Method(1e-3, 0.9, 0.5), initial_v=0, eps=1e-8), 10**5)
    assert found.relative == math.inf
    assert (found.largest_gap, found.largest_smoothness) == (0, 0)
    assert not found.useful


@pytest.mark.parametrize(
    ("beta", "theta", "noise", "symmetric", "drift"),
    [
        (0, 0.99, 0.0574940922714, 0, 0.502516792675),
        (0, 0.999, 0.0180992210633, 0, 0.500250166792),
        (0.9, 0.95, 0.407107958602, 0.275882458136, 16.8053425721),
        (0.9, 0.98, 0.237634775206, 0.155913107445, 11.6792611944),
        (0.9, 0.99, 0.1640940018, 0.106599909528, 10.5012783877),
        (0.9, 0.999, 0.0508482818596, 0.0327490607963, 9.59321517498),
        (0.9, 0.9999, 0.016047842296, 0.010326942218, 9.50925710721),
        (0.95, 0.999, 0.0664771409199, 0.0483779198566, 19.8909258703),
    ],
)
def test_check_values_of_the_floor(beta, theta, noise, symmetric, drift):
    floor, of_symmetric = constant_floor(beta, theta), constant_floor(beta, theta, symmetric=True)
    assert (floor.noise, floor.drift) == pytest.approx((noise, drift), rel=1e-11)
    assert (of_symmetric.noise, of_symmetric.drift) == pytest.approx((symmetric, drift), rel=1e-11)


@pytest.mark.parametrize(
    ("beta", "theta", "symmetric"),
    [
        (0, 0.211845646, 0),
        (0.5, 0.517833313, 0.354237540),
        (0.8, 0.754021430, 0.705969516),
        (0.9, 0.863505817, 0.846605768),
        (0.95, 0.927484266, 0.921665709),
        (0.99, 0.984558726, 0.984067086),
    ],
)
def test_the_smallest_theta_that_says_something(beta, theta, symmetric):
    assert least_theta(beta) == pytest.approx(theta, abs=1e-9)
    assert least_theta(beta, symmetric=True) == pytest.approx(symmetric, abs=1e-9)
    assert constant_floor(beta, least_theta(beta) + 1e-9).noise < 1 < constant_floor(beta, theta - 1e-6).noise


def test_the_bound_at_a_long_horizon_tends_to_the_floor():
    steps, theta = 10**8, 0.999
    sequences = Sequences.of(1e-3, 0.9, theta, initial_v=1e-8, steps=steps)
    numbers, floor = three_numbers(sequences), constant_floor(0.9, theta)
    assert numbers.noise == pytest.approx(floor.noise, rel=1e-3)
    assert numbers.drift == pytest.approx(1e-3 * floor.drift, rel=1e-3)
    with_eps = three_numbers(Sequences.of(1e-3, 0.9, theta, eps=1e-12, steps=steps))
    # The start costs log(G^2/e^2) once, 4e-4 of log W_T.
    assert with_eps.noise == pytest.approx(floor.noise, rel=1e-3)
    symmetric = three_numbers(sequences, symmetric=True).noise
    assert symmetric == pytest.approx(constant_floor(0.9, theta, symmetric=True).noise, rel=1e-3)


def test_nesterovs_floor_is_where_its_noise_ends():
    a, b, theta, steps = 0.9, 0.1, 0.999, 10**7
    sequences = Sequences.of(1e-3, 0.9, theta, eps=1e-12, momentum_weight=a, gradient_weight=b, steps=steps)
    floor = constant_floor(0.9, theta, momentum_weight=a, gradient_weight=b)
    numbers = three_numbers(sequences)
    assert numbers.noise == pytest.approx(floor.noise, rel=5e-3)
    assert numbers.drift == pytest.approx(1e-3 * floor.drift, rel=5e-3)
    assert floor.noise < constant_floor(0.9, theta).noise
    # All momentum and no gradient is Theorem E, the gradient alone is H without momentum.
    assert constant_floor(0.9, theta, momentum_weight=2.0).noise == constant_floor(0.9, theta).noise
    plain = constant_floor(0.9, theta, momentum_weight=0.0, gradient_weight=1.0).noise
    assert plain == pytest.approx(constant_floor(0.0, theta).noise)


def test_heavy_ball():
    assert constant_floor(0.0, 0.99, heavy_ball=0.9).noise == pytest.approx(0.0574940922714, rel=1e-9)
    ball = HeavyBall(Fraction(9, 10))
    numbers = three_numbers(Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=10**7, heavy_ball=ball))
    floor = constant_floor(0.0, 0.99, heavy_ball=0.9)
    assert (numbers.noise, numbers.drift) == pytest.approx((floor.noise, 1e-3 * floor.drift), rel=1e-3)


def test_outside_the_range():
    assert constant_floor(0.99, 0.95).noise == math.inf
    assert constant_floor(0.0, 1e-300).noise == pytest.approx(0.572061402818 * 300 * math.log(10))
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
    # Rates of published runs without decay: noise of any kind, noise that is symmetric, gap, drift.
    "torch": (lambda: corrected(constant, 0.9, 0.999, 1e-8, 100_000), (0.0664637, 0.0428062, 0.0100164, 0.0125383)),
    "bert": (
        lambda: Sequences.of(triangular(steps(10**6)), 0.9, 0.999, eps=1e-6),
        (0.0527735, 0.0339891, 0.020109, 0.000672605),
    ),
    "t5": (
        lambda: falling(lambda t: 1 / np.sqrt(np.maximum(t, 1e4)), 0.0, 524_288),
        (0.0192352, 0.0, 0.000741757, 0.00635982),
    ),
    "palm": (lambda: falling(palm, 0.9, 255_000), (0.0749685, 0.0480985, 0.00109686, 0.172276)),
    "rmsprop": (
        lambda: Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=100_000),
        (0.0588107, 0.0, 0.01, 0.000514025),
    ),
    "transformer": (
        lambda: corrected(noam, 0.9, 0.98, 1e-9, 100_000),
        (0.262407, 0.172166, 0.038245, 0.00441741),
    ),
    "nanogpt": (lambda: corrected(nano_gpt, 0.9, 0.95, 1e-8, 600_000), (0.408952, 0.277132, 0.00387084, 0.0074556)),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_three_numbers_of_recipes(recipe):
    """To every digit that is listed: a useful guarantee for each."""
    make, listed = RECIPES[recipe]
    sequences = make()
    numbers, symmetric = three_numbers(sequences), three_numbers(sequences, symmetric=True)
    assert (numbers.noise, symmetric.noise, numbers.gap, numbers.drift) == pytest.approx(listed, rel=5e-6)
    assert (symmetric.gap, symmetric.drift) == (numbers.gap, numbers.drift)
    assert numbers.useful
    assert symmetric.relative < numbers.relative


@pytest.mark.parametrize(
    ("algorithm", "told"),
    [
        (methods.adopt(), Reason("problem", "Theorem O")),
        (methods.sgd(lr="1/t"), Reason("numbers", "Robbins-Monro")),
        (replace(methods.amsgrad(), eps=1e-3, power=0.25), Reason("problem", "Theorem M")),
    ],
)
def test_what_a_theorem_covers_is_not_called_uncovered(algorithm, told):
    reading = read_horizon(algorithm, 1000)
    assert (reading.outside, reading.noise, reading.useful) == ((), None, False)
    assert (reading.answer, reading.unknown) == (Answer.UNKNOWN, told)
    assert read_horizon(replace(algorithm, clipping=Clipping(1.0)), 1000).answer is Answer.NONE


def test_no_step_at_all():
    with pytest.raises(TheoremError, match="every learning rate"):
        three_numbers(Sequences.of(np.zeros(5), 0.9, 0.999, eps=1e-8))


@pytest.mark.parametrize(
    ("x", "steps", "depends"),
    [
        (methods.adamw(weight_decay=0), 100_000, False),
        (methods.adafactor(), 524_288, False),
        (methods.adagrad(), 10_000, True),
        (Algorithm(Method(1.0, 0.9, 0.999), initial_v=0, eps=0.1), 1000, True),
    ],
)
def test_a_number_that_depends_on_the_size_of_the_gradients_is_told_with_it(x, steps, depends):
    x = as_algorithm(x)
    answer = read_horizon(x, steps)
    small, large = (three_numbers(Sequences.of_algorithm(x, steps), G) for G in (TYPICAL_GRADIENT, 1.0))
    assert answer.relative == small.relative
    ratio = large.parts["noise"] / small.parts["noise"]
    assert answer.steeper == pytest.approx(ratio, rel=1e-12)
    assert answer.useful
    assert answer.depends_on_gradients is depends
    if not depends:
        assert ratio < 1.25
