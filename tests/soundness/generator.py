"""Random methods as texts, weighted towards what made the decision go wrong before; fixed by their seed.

Every maker is named for its cause: underflow, overflow, cancellation, far joins, borders, falls below an ulp,
irrational constants, cancelling terms, oscillation, running sums, corrections, the plain scale, random trees, products
and sums of what tends to 1.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass

Maker = Callable[[random.Random], str]


@dataclass(frozen=True)
class Case:
    """One method, as three texts."""

    seed: int
    alpha: str
    beta: str
    theta: str


# Methods of one block draw their sequences from a common pool: what the oracle found out of one serves again.
_BLOCK = 64
_POOL = 12


@functools.lru_cache(maxsize=4)
def _pools(block: int) -> tuple[list[str], list[str], list[str]]:
    generator = random.Random(f"pool {block}")
    return (
        [alpha(generator) for _ in range(_POOL)],
        [beta(generator) for _ in range(_POOL)],
        [theta(generator) for _ in range(_POOL)],
    )


def case(seed: int) -> Case:
    """The method of this number."""
    chosen = random.Random(seed)
    return Case(seed, *(chosen.choice(pool) for pool in _pools(seed // _BLOCK)))


def _pick(generator: random.Random, makers: dict[Maker, int]) -> str:
    return generator.choices(list(makers), list(makers.values()))[0](generator)


# ---- numbers -------------------------------------------------------------------------------------------

_EXPONENTS = (
    "0.1",
    "0.25",
    "0.3",
    "1/3",
    "0.4",
    "0.5",
    "0.5",
    "0.5",
    "0.6",
    "0.75",
    "0.8",
    "1",
    "1",
    "1.2",
    "2",
)


def _exponent(generator: random.Random) -> str:
    chosen = generator.choice(_EXPONENTS)
    return f"({chosen})" if "/" in chosen else chosen


def _shift(generator: random.Random) -> str:
    return generator.choice(("0", "1", "1", "2", "7", "100", "1e4", "1e9", "1e12", "1e17"))


def _scale(generator: random.Random) -> str:
    return generator.choice(("0.001", "0.1", "0.5", "1", "1", "2", "3e-4", "1e-8", "1e-200", "1e150", "7/3"))


def _join_step(generator: random.Random) -> str:
    kind = generator.random()
    if kind < 0.4:
        return str(generator.randint(2, 40))
    if kind < 0.7:
        return str(generator.choice((100, 1000, 2500, 10_000, 70_000, 10**6)))
    return generator.choice(("1e7", "1e9", "1e12", "1e15", "9007199254740993", "1e16", "1e17", "1e17+1"))


def _fraction(generator: random.Random) -> str:
    """A number in (0, 1)."""
    return generator.choice(("0.5", "0.9", "0.99", "0.999", "0.1", "0.3", "1/3", "0.7", "1e-3", "0.001", "1e-20"))


def _irrational_one(generator: random.Random) -> str:
    """The number 1, which no rational arithmetic finds."""
    return generator.choice(
        (
            "sqrt(3)^2/3",
            "(sin(3)^2+cos(3)^2)",
            "exp(log(7))/7",
            "sqrt(2)*sqrt(8)/4",
            "exp(-800)*exp(600)*exp(200)",
            "log(exp(1))",
            "2^0.5*2^0.25*2^0.25/2",
            "(exp(0.5)*exp(-0.5))",
            "abs(cos(pi))",
        )
    )


def _tiny(generator: random.Random) -> str:
    """A positive number that a float calls 0, or nearly."""
    return generator.choice(
        (
            "1e-200*1e-200",
            "1e-300^2",
            "exp(-1000)",
            "1e-20",
            "1e-17",
            "5e-324",
            "2^-1100",
            "exp(-800)",
            "1e-40",
        )
    )


def _time(generator: random.Random) -> str:
    """Something that grows like t."""
    shift = _shift(generator)
    return generator.choice(
        (
            "t",
            "t",
            "t",
            f"(t+{shift})",
            "max(t, 2)",
            f"max(t, {generator.choice((5, 10, 1000, 10**6))})",
            "(2*t+1)",
            "sqrt(t^2+1)",
            f"(t+{generator.choice(('0.5', '1/3', '1e-9'))})",
        )
    )


def _log(generator: random.Random) -> str:
    return generator.choice(("log(t+1)", "log(t+9)", "log(2*t+1)", "log(t^2+2)", "log1p(t)", "log(t+1e9)"))


# ---- decaying sequences --------------------------------------------------------------------------------


def _power(generator: random.Random) -> str:
    return f"{_time(generator)}^-{_exponent(generator)}"


def _logs(generator: random.Random) -> str:
    exponent = generator.choice(("-1", "-0.5", "0.5", "1", "2", "-2"))
    double = generator.choice(("", "", f"*log(log(t+99))^{generator.choice(('-1', '0.5', '1'))}"))
    return f"{_log(generator)}^({exponent}){double}/{_time(generator)}^{_exponent(generator)}"


def _geometric(generator: random.Random) -> str:
    base = generator.choice(("0.5", "0.9", "0.99", "0.999", "0.25", "0.999999", "(1/3)"))
    slope = generator.choice(("t", "t", "(2*t)", "(t/2)", "(t/1000)"))
    extra = generator.choice(("", "", f"*{_time(generator)}^{_exponent(generator)}", f"/{_log(generator)}"))
    return f"{base}^{slope}{extra}"


def _cancelling(generator: random.Random) -> str:
    shift = _shift(generator)
    p = generator.choice(("0.5", "0.25", "0.7", "(1/3)"))
    return generator.choice(
        (
            f"(sqrt((t+{shift})^2+1)-(t+{shift}))",
            f"((t+1)^{p}-t^{p})",
            f"(1-cos(1/(t+{shift})))",
            f"(log(t+{generator.choice(('1', '2', '1e9'))})-log(t))",
            f"log1p(1/(t+{shift}))",
            f"(1-(t/(t+1))^{p})",
            "expm1(1/t)",
            "sin(1/t)",
            "(exp(1/t)-1)",
            "(1/t-1/(t+1))",
            "(1/t^0.5-0.5/t^0.7)",
            "(2/t^0.5-1/t)",
            f"(1-exp(-1/(t+{shift})))",
            f"(1/sqrt(t+{shift})-1/sqrt(t+{shift}+1))",
            "(1-(1-0.5/t)^0.5)",
            "(1-0.5/(t+1))/t",
            f"((t+{shift})^0.5-{shift}^0.5)/t" if shift != "0" else "t^-0.5",
            "(1-(1-1/(t+1))^t)/t^0.5",
        )
    )


def _slowly_constant(generator: random.Random) -> str:
    """A factor that tends to a positive constant."""
    return generator.choice(
        (
            "t^(1/t)",
            "(1+1/t)^t",
            "(1+1/t)",
            "(1-0.5/(t+1))",
            "exp(-1/t)",
            "exp(1/t)",
            "(2-0.5^t)",
            "cos(1/t)",
            "(1+0.99^t)",
            "bias_correction(0.9)",
            "(1-0.9^t)",
            "t/(t+1)",
            "(1+log(t)/t)",
            "sqrt(1+1/t)",
            "(1+sin(t)/t/2)",
        )
    )


def _swinging(generator: random.Random) -> str:
    return generator.choice(
        (
            "(1+0.5*sin(t))",
            "(2+cos(t))",
            "(1.5+sin(t)*cos(t))",
            "periodic(t, 3)",
            "periodic(1/t, 10)",
            "(2+sin(log(t)))",
            "(1+0.5*sin(t)^2)",
            "periodic(0.5+t/100, 40)",
            "(2+periodic(sin(t), 7))",
            "exp(sin(t))",
            "(1+abs(cos(t)))",
            "bounded(2+sin(t^2), 1, 3)",
            "bounded(1+abs(sin(t)), 0.5, 2.5)",
        )
    )


def _overflowing(generator: random.Random) -> str:
    s = _exponent(generator)
    return generator.choice(
        (
            f"log1p(3e305*t^0.2)/t^{s}",
            f"1e200*1e100/(1e300*t^{s})",
            "(1e150*t)^2/(1e300*t^2.5)",
            f"log(1e300*t+1)/t^{s}",
            "sqrt(1e300*t)/(1e150*t)",
            f"log(exp(700)*t+1)/t^{s}",
            f"exp(-600)*exp(300)*exp(300)/t^{s}",
            f"exp(log(t)*{generator.choice(('-0.5', '-0.25', '-1'))})",
            f"1/(t^{s}+1e-300)",
            f"2^500*2^500/2^1000/t^{s}",
        )
    )


def _cancelling_terms(generator: random.Random) -> str:
    a, b = sorted(generator.sample((0.25, 0.5, 0.75, 1, 1.5, 2), 2))
    c = generator.choice(("0.5", "0.9", "1", "0.999"))
    return generator.choice(
        (
            f"(1/t^{a}-{c}/t^{b}+1/t^2)",
            f"(1/t^{a}+1e-20/t^{b}-{c}/(t+1)^{b})",
            f"(t^-{a}*t^{b}/t^{b})",
            f"t^0.1*t^0.2/t^0.3/t^{a}",
            f"(sqrt(t)+1-sqrt(t))/t^{a}",
            f"(1/t^{a}+1/t^{b}-1/t^{b})",
            f"((t+1)^2-t^2-2*t)/t^{a}",
            f"(log(2*t)-log(t))/t^{a}",
            f"(exp(-t)+1/t^{a}-exp(-t))",
        )
    )


def _share(generator: random.Random) -> str:
    """w_t / W_t, and what is left of a product."""
    return generator.choice(
        (
            f"(1-theta_from_weights({generator.choice(('1', 't', 't^-0.5', 't^-1', 'log(t+1)', '0.5^t'))}))",
            "(1-theta_from_weights(t))^0.5",
            "(1-bias_correction(0.999))",
            "(1-bias_correction(0.9))/t^0.5",
        )
    )


_DECAYS: dict[Maker, int] = {
    _share: 1,
    _power: 5,
    _logs: 3,
    _geometric: 2,
    _cancelling: 4,
    _overflowing: 2,
    _cancelling_terms: 2,
}


def _ending(generator: random.Random) -> str:
    """Something between 1 and 3 that may have no value at a step, or from one on."""
    step = generator.choice((5, 300, 70_001, 1_000_003, 10**9 + 7, 10**17 + 1))
    return generator.choice(
        (
            f"(2+sin(1/(t-{step})))",
            f"(2+cos(log({step}-t)))",
            f"(2+sin(sqrt({step}-t)))",
            f"(1+exp(-abs(1/(t-{step}))))",
            f"(1+exp(-1/(t-{step})^2))",
            f"max(1, min(2, log(abs(t-{step}))))",
            f"max(1, min(2, 1/(t-{step}+0.5)))",
            f"(2+sin((t-{step}+0.5)^-1.5))",
            f"(2+sin(1/(t-{step}+0.5)))",
            f"(1+0*sqrt(t-{step}))",
            f"(1+0*(1/(t-{step})))",
            f"(2-sqrt(t-{step})^0)",
            f"(2-1^(1/(t-{step})))",
        )
    )


def _decay(generator: random.Random) -> str:
    return _pick(generator, _DECAYS)


def _leaf(generator: random.Random) -> str:
    return generator.choice((_scale, _time, _fraction, _log, _decay, _slowly_constant, _swinging))(generator)


def tree(generator: random.Random, depth: int = 2) -> str:
    """Any expression of the language."""
    if depth == 0:
        return _leaf(generator)
    a, b = tree(generator, depth - 1), tree(generator, depth - 1)
    return generator.choice(
        (
            f"({a}+{b})",
            f"({a}-{b})",
            f"({a})*({b})",
            f"({a})/({b})",
            f"({a})^{_exponent(generator)}",
            f"max({a}, {b})",
            f"min({a}, {b})",
            f"sqrt(abs({a}))",
            f"({a} if t < {_join_step(generator)} else {b})",
            f"exp(-abs({a}))",
            f"log(1+abs({a}))",
            f"abs({a})",
            f"clip({a}, 1e-3, {b})",
            f"({a})",
            f"sin({a})",
            f"expm1(-abs({a}))",
        )
    )


# ---- the step size -------------------------------------------------------------------------------------


def _scaled(generator: random.Random) -> str:
    return f"{_scale(generator)}*{_decay(generator)}"


def _with_factor(generator: random.Random) -> str:
    factor = generator.choice((_slowly_constant, _swinging, _irrational_one, _ending))(generator)
    return f"{factor}*{_decay(generator)}"


def _joined(generator: random.Random) -> str:
    step = _join_step(generator)
    tail = _decay(generator)
    beginning = generator.choice(
        (f"{tail}*t/{step}", _decay(generator), "0.01", f"{tail}*2", tail, "1e-9", f"0.5*{tail}")
    )
    return f"{beginning} if t < {step} else {tail}"


def _floored(generator: random.Random) -> str:
    least = generator.choice(
        (
            _tiny(generator),
            f"2-{_irrational_one(generator)}",
            f"1-{_irrational_one(generator)}",
            "0.001",
            "1e-9",
        )
    )
    return generator.choice(
        (
            f"max({_decay(generator)}, {least})",
            f"{_decay(generator)}+{least}",
            f"min({_decay(generator)}, {least})",
        )
    )


def _corrected(generator: random.Random) -> str:
    theta_, beta_ = (
        generator.choice(("0.999", "0.99", "1-1/(t+1)")),
        generator.choice(("0.9", "0.5", "0.9*0.99^t")),
    )
    corrected = f"0.001*sqrt(bias_correction({theta_}))/bias_correction({beta_})"
    return f"{corrected}/{_time(generator)}^{_exponent(generator)}"


def _annealed(generator: random.Random) -> str:
    steps = generator.choice((10, 100, 1000, 10**5))
    return generator.choice(
        (
            f"0.5*(1+cos(pi*t/{steps})) if t < {steps} else {_decay(generator)}",
            f"max(1-t/{steps}, 0.01)",
            f"0.1*0.5^((t-periodic(t, {min(steps, 100)}))/{steps})",
            f"0.1*periodic(1/t, {min(steps, 300)})",
            f"min(1, sqrt({steps}/t))",
            f"min(t/{steps}, ({steps}/t)^0.5)",
            f"clip({_decay(generator)}, 1e-5, 0.1)",
        )
    )


def _any_positive(generator: random.Random) -> str:
    return f"abs({tree(generator)})+{_decay(generator)}"


_ALPHAS: dict[Maker, int] = {
    _scaled: 8,
    _with_factor: 4,
    _joined: 4,
    _floored: 3,
    _corrected: 1,
    _annealed: 2,
    _any_positive: 2,
    tree: 1,
    _scale: 1,
}


def alpha(generator: random.Random) -> str:
    """A step size."""
    return _pick(generator, _ALPHAS)


# ---- the momentum --------------------------------------------------------------------------------------


def beta(generator: random.Random) -> str:
    """A momentum parameter."""
    if generator.random() < 0.6:
        return generator.choice(("0", "0.9", "0.9", "0.5", "0.99", "0.7", "0.999"))
    b = generator.choice(("0.9", "0.5", "0.99"))
    return generator.choice(
        (
            f"{b}*0.99^t",
            "1-1/(t+1)",
            "1-0.5^t",
            f"{b}*t/(t+1)",
            f"{b}/t",
            f"max({b}, 1-1/t)",
            f"min({b}, 1-1/(t+1))",
            f"{_irrational_one(generator)}",
            f"0.5*{_irrational_one(generator)}",
            f"{b} if t < {_join_step(generator)} else 0.5",
            f"0.5 if t < {_join_step(generator)} else {b}",
            f"1-{_tiny(generator)}",
            "0.5+0.4*sin(t)",
            "0.5+0.5*sin(t)",
            f"{b}*exp(-1/t)",
            f"1-{_decay(generator)}",
            f"{b}-1e-20*t if t < 1000 else {b}",
            "periodic(t/10, 9)",
            f"1-max({_decay(generator)}, {_tiny(generator)})",
            f"clip({tree(generator, 1)}, 0, {b})",
            "t^(1/t)-1",
            f"1-(1-1/(t+1))^{_exponent(generator)}",
            "abs(sin(t))*0.9",
            f"1-exp(-{generator.choice(('1', '0.1', '5', '1e-6'))}*t)",
            f"{b}*bias_correction(0.9)",
            f"{b}/3*{_ending(generator)}",
        )
    )


# ---- the second moment ---------------------------------------------------------------------------------


def _small(generator: random.Random) -> str:
    """Something that is usually in (0, 1) and decays."""
    c = generator.choice(("0.5", "0.9", "1", "0.01", "0.99", "1/3", "1e-20", "1e-3", "1.5"))
    return f"{c}*{generator.choice((_decay, _power, _power, _cancelling))(generator)}"


def _one_minus(generator: random.Random) -> str:
    return f"1-{_small(generator)}"


def _constant_theta(generator: random.Random) -> str:
    return generator.choice(
        (
            "0.999",
            "0.9",
            "0.99",
            "0.81",
            "0.49",
            "0.5",
            f"0.9*{_irrational_one(generator)}",
            f"1-{_tiny(generator)}",
        )
    )


def _rational_theta(generator: random.Random) -> str:
    return generator.choice(
        (
            "t/(t+1)",
            "1-1/(t+1)",
            "1-1/max(t, 2)",
            "max(0.999, 1-1/t)",
            "(t+1)/(t+2)",
            "exp(-1/t)",
            f"exp(-{generator.choice((10, 700, 1000, '1e5', '0.5'))}/t)",
            "1-1/t",
            "(1-1/(t+1))^2",
            f"1-(1-{generator.choice(('1.5', '0.5', '1.2'))}/t)^2",
            "sqrt(1-1/(t+1))",
            "t^2/(t^2+1)",
            "1-0.5^t",
            f"1-exp(-{generator.choice(('1', '0.1', '5', '1e-6'))}*t)",
            "cos(1/t)",
            "1-0.5/t^0.5",
            f"1-{_irrational_one(generator)}/t",
            f"1-{_irrational_one(generator)}/(t+1)",
            "1-0.99^(2*t)",
        )
    )


def _near_one(generator: random.Random) -> str:
    """Something that tends to 1, of which 1 less it has digits of its own."""
    c = generator.choice(("1", "0.5", "1e-3", "1e-20", "2"))
    return generator.choice(
        (
            f"(1-{c}/(t+2))",
            "(t/(t+1))",
            f"(1-{c}*0.5^t)",
            f"exp(-{c}/t)",
            "sqrt(1-0.5/t)",
            f"(1+{c}/t)^-{_exponent(generator)}",
            f"0.999^({c}/t)",
            "bias_correction(0.9)",
            "theta_from_weights(t)",
            "(1-1/(t+1))^3",
            "cos(1/(t+1))",
            f"1/(1+{c}/t^0.5)",
            f"1/(1+exp(-{c}*t))",
            "t^2/(t^2+1)",
            f"(1-{c}*{_power(generator)})",
        )
    )


def _composed_theta(generator: random.Random) -> str:
    """Products, quotients and weighted sums of what tends to 1."""
    a, b = _near_one(generator), _near_one(generator)
    p, q = generator.choice((("0.9", "0.1"), ("1/3", "2/3"), ("0.25", "0.5"), ("1e-20", "1-1e-20"), ("1.5", "-0.5")))
    return generator.choice(
        (
            f"{a}*{b}",
            f"{a}/({b})",
            f"({p})+({q})*{a}",
            f"({p})*{a}+({q})*{b}",
            f"{a}*({p}+({q})*{b})",
            f"({a}*{b})^{_exponent(generator)}",
            f"{a}-{_small(generator)}",
            f"1-{a}*{_small(generator)}",
            f"max(0.5, {a}*{b})",
            f"{p} if t < {_join_step(generator)} else {a}*{b}",
        )
    )


def _joined_theta(generator: random.Random) -> str:
    step = _join_step(generator)
    tail = generator.choice((_rational_theta, _one_minus))(generator)
    beginning = generator.choice(
        (
            tail,
            "0.5",
            "0.9",
            "0.5-1e-20*t",
            "0.5+1e-20*t",
            "0.9-9e-14*t",
            _one_minus(generator),
            "0.5-((t+1e17)^0.5-1e17^0.5)",
            "0.5+1e-3*sin(t)",
            "1-2/(t+1)",
            _rational_theta(generator),
        )
    )
    return f"{beginning} if t < {step} else {tail}"


def _joined_complement(generator: random.Random) -> str:
    step, base = _join_step(generator), _small(generator)
    factor = generator.choice(("2^600", "1.0000000001", "0.999999", "0.5", "(1+1e-20)", "(1-1e-20)"))
    return f"1-({base} if t < {step} else {factor}*{base})"


def _weights(generator: random.Random) -> str:
    return generator.choice(
        (
            "1",
            "t",
            "t^0.5",
            "t^-0.5",
            "t^-1",
            "t^-2",
            "t^2",
            "t^1.0000000000000000001",
            "t^0.9999999999999",
            "log(t+1)",
            "1/(t*log(t+1))",
            "2^t",
            "0.5^t",
            "1.01^t*t",
            "4e-161^t",
            "1e-300^t*t",
            "1e200^t",
            "(t+5)^2",
            "1+0.5*sin(t)",
            "exp(sqrt(2)/t)",
            "t^3",
            "1e300",
            "1e-300",
            "periodic(t, 3)",
        )
    )


def _weighted(generator: random.Random) -> str:
    initial = generator.choice(("", "", "", ", 10", ", 1e-3", ", 1e300", ", 1e-300", ", 1/3"))
    return f"theta_from_weights({_weights(generator)}{initial})"


def _bumped(generator: random.Random) -> str:
    """A theta that moves by less than an ulp, or swings."""
    size = generator.choice(("1e-20", "1e-17", "1e-15", "1e-10", "1e-3"))
    return generator.choice(
        (
            f"0.9+{size}*log(t)/t",
            f"0.9-{size}*log(t)",
            f"0.9+{size}*sin(t)",
            f"0.9-{size}/t",
            f"0.9+{size}/t",
            f"max(0.5, 0.9-{size}*t)",
            f"min(0.9, 0.5+{size}*t)",
            f"1-1/(t+1)+{size}*sin(t)/(t+1)^2",
            "1-(1+0.5*sin(t))/(2*t+2)",
            f"0.9-{size}*periodic(t, 5)",
            f"1-(1+{size}*periodic(t, 5))/(t+10)",
            f"1-1/(t+1)-{size}*0.5^t",
            f"0.5+0.4*(1-1/t)^{generator.choice(('2', '0.5'))}",
        )
    )


def _any_theta(generator: random.Random) -> str:
    inner = tree(generator)
    return generator.choice(
        (
            f"clip({inner}, 0.1, 0.999)",
            f"max(0.5, 1-abs({inner})/(t+1))",
            f"exp(-abs({inner})-{_decay(generator)})",
            f"1/(1+abs({inner}))",
        )
    )


_THETAS: dict[Maker, int] = {
    _one_minus: 8,
    _rational_theta: 5,
    _composed_theta: 4,
    _constant_theta: 2,
    _joined_theta: 4,
    _joined_complement: 2,
    _weighted: 3,
    _bumped: 3,
    _any_theta: 2,
}


def theta(generator: random.Random) -> str:
    """A second-moment parameter."""
    return _pick(generator, _THETAS)
