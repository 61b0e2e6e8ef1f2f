r"""What is guaranteed after T steps, from the sequences alone: noise, gap and drift (remark W.6).

For every problem, with :math:`G_1` the sum over the coordinates of the bounds on their gradients,

.. math::

    \frac{X_w}{G_1} \le c_{\text{noise}} + c_{\text{gap}} \frac{f(x_1) - f^*}{G_1}
    + c_{\text{drift}} \frac{d L}{G_1}, \qquad
    \mathbb{E}\|\nabla f(x_\tau)\|_1 \le G_1 \sqrt{\frac{s_1}{G_1} \frac{X_w}{G_1}}.

Without any theorem the root is at most 1: a :math:`c_{\text{noise}}\,s_1/G_1 \ge 1` says nothing on any problem
(*silent*), one below 1 says something on problems with a small enough gap and smoothness (*informative*). With constant
sequences the noise does not vanish: `constant_floor`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule
from generic_adam.schedules.balls import rounded_up
from generic_adam.schedules.sums import whole_steps
from generic_adam.schedules.work import Spent, Undecided, note
from generic_adam.setting import Setting
from generic_adam.theorems import THEOREMS, decide
from generic_adam.theorems.decide import Status
from generic_adam.theorems.sequences import LONGEST, Sequences
from generic_adam.theorems.sweep import SUMMANDS, Part, Series, Sweep
from generic_adam.theorems.theorem import NOTHING, About, Theorem, beyond, elsewhere, plain_fields
from generic_adam.theorems.weighted import Norms, Share, least_ratio, letter_of, over

_ALLOWED = frozenset({"initial_v", "eps", "nesterov", "heavy_ball", "decay"})
_WITH_MAXIMUM = frozenset({"initial_v", "eps", "running_maximum"})
_OF_THREE_NUMBERS = frozenset({"W", "E", "D", "M"})  # N and H are of Theorem E, M_E is of Theorem M
_TRIVIAL = "what holds without a theorem"
# What is set aside where no theorem covers it, so that the sequences' own numbers can still be told.
_SET_ASIDE: dict[str, Any] = {"clipping": None, "factored": False, "centered": False, "outside": ()}
TYPICAL_GRADIENT = 1e-3
"""G_k in the logarithm and beside eps where no problem is given; where gradients of 1 make more of the numbers than a
quarter, it is told with them."""
_LARGE_GRADIENT, _BARELY = 1.0, 1.25


@dataclass(frozen=True)
class Floor:
    """Where the bound of constant sequences ends as T grows.

    Args:
      noise: the limit of X_w/G_1 without the drift; the theorem is silent for every problem where it is >= 1.
      drift: what multiplies d L alpha/G_1 beside it.
      s: the share of the descent that makes the noise least.
      zeta: the share for eps that does.
    """

    noise: float
    drift: float
    s: float
    zeta: float = 0.0


def constant_floor(
    beta: float,
    theta: float,
    *,
    q: float | None = None,
    share: float = 0.0,
    momentum_weight: float = 1.0,
    gradient_weight: float = 0.0,
    heavy_ball: float = 0.0,
) -> Floor:
    r"""Return the floor of Theorem W, E, N or H for constant beta and theta.

    .. math::

        \limsup_T X_w &\le G_1 (1+\sqrt{1+c})^2\,\frac{\ell}{\sqrt q} \\
        &\quad + d L\alpha\,\frac{\ell}{q}\,\frac{(1-\beta)(1+\rho)}{2(1-s^*)(1-\rho)^2} \\
        \ell &= \log\frac1\theta, \qquad c = \frac{\rho}{\sqrt{1-\rho^2}}, \qquad s^* = \frac{\sqrt{1+c}-1}{c},

    is W's, and eps adds the part of :math:`y_t`, 0.35 percent at (0.9, 0.999).

    Args:
      beta: in [0, 1).
      theta: in (0, 1); where it is not above beta^2 there is no floor but infinity.
      q: 1 - theta, where it has more digits than that.
      share: the limit of E's :math:`s_t`: 1 - sqrt(theta) where something is added to the root or under it.
      momentum_weight: the limit of Nesterov's :math:`a_t`.
      gradient_weight: the limit of Nesterov's :math:`b_t`.
      heavy_ball: mu of H, beside beta = 0: the noise is :math:`4\ell/\sqrt q` whatever it is.

    Raises:
      TheoremError: beta or theta is out of range.

    Examples:
      >>> f"{constant_floor(0.9, 0.999).noise:.9f}"
      '0.239649476'
    """
    if not (0 <= beta < 1 and 0 < theta < 1):
        raise TheoremError(f"beta = {beta!r}, theta = {theta!r}: expected 0 <= beta < 1 and 0 < theta < 1")
    q = 1 - theta if q is None else q
    if theta <= beta**2 or beta >= math.sqrt(theta):  # either may round
        return Floor(math.inf, math.inf, 0.5)
    a, b, rho = momentum_weight, gradient_weight, beta / math.sqrt(theta)
    decrease = -math.log1p(-q) if q < 0.5 else -math.log(theta)
    # Q/alpha, and the share of the weights pi_t that comes from it; the rest is Nesterov's alpha_t b_t.
    Q = a / (1 - rho)
    whole = (1 - beta) * Q + b
    inherited = (1 - beta) * Q / whole
    first = decrease / math.sqrt(q)
    second = inherited * first * rho / math.sqrt(1 - rho**2)
    growth = inherited * first * (share * rho) ** 2 / (2 * (1 - rho) ** 2)
    s, zeta = least_ratio(second, (Share(first, 1.0), Share(growth, inherited, None if growth else 0.0)), 1.0)
    divisor = 1 - s - zeta * inherited
    noise = (first / s + second + over(growth, zeta)) / divisor
    rest = Q - a
    u, g = rest * (a + b / 2) + (a + b) * a / 2, rest * b / 2 + (a + b) * b / 2
    drift = decrease / q * (((1 - beta) / (1 - rho)) ** 2 * u + g) / (whole * divisor)
    return Floor(noise, drift * (1 + heavy_ball) / (1 - heavy_ball) ** 2, s, zeta)


def least_theta(beta: float) -> float:
    """Return the theta from which on the noise floor is below 1: below it the theory is silent.

    Args:
      beta: in [0, 1).

    Examples:
      >>> f"{least_theta(0.9):.6f}"
      '0.983483'
    """
    low, high = 1e-12, 1 - beta**2  # of q; the floor grows with q
    for _ in range(200):
        middle = (low + high) / 2
        if constant_floor(beta, 1 - middle, q=middle).noise < 1:
            low = middle
        else:
            high = middle
    return 1 - low


@dataclass(frozen=True)
class HorizonAnswer:
    """What is guaranteed after a number of steps.

    Attributes:
        steps: T.
        theorem: the letter of the theorem that the numbers are of; None where none covers the algorithm.
        noise: c_noise, what the gradients' noise leaves of the trivial bound.
        gap: c_gap, what multiplies (f(x_1) - f*) / G_1.
        drift: c_drift, what multiplies d L / G_1.
        decay: what decoupled decay adds for weights of the asserted size; None where none is asserted.
        floor: what c_noise tends to however long the run is, where beta_t and theta_t are constant.
        norm: s_1/G_1, what v_0 and eps add to the divisor: 1 where they are far below the gradients.
        rounding: how far doubles may have carried the numbers, relatively.
        steeper: what gradients of 1 make of noise and decay, over what is told, of gradients of 0.001.
        provided: what the numbers take for granted beyond the common assumptions, as a phrase; "" for nothing.
        outside: what no theorem covers, one phrase each; the numbers, where there are some, set it aside.
        unknown: why the numbers were not computed, where a theorem might cover it; "" where they were.
        with_problem: the theorem that bounds it where the problem's constants are known, though none covers it by
            its sequences alone; "" where there is none.
        bound: the smallest bound on the problem that was given.
    """

    steps: int
    theorem: str | None = None
    noise: float | None = None
    gap: float | None = None
    drift: float | None = None
    decay: float | None = 0.0
    floor: float | None = None
    norm: float = 1.0
    rounding: float = 0.0
    steeper: float = 1.0
    provided: str = ""
    outside: tuple[str, ...] = ()
    unknown: str = ""
    with_problem: str = ""
    bound: Any = None

    @property
    def relative(self) -> float | None:
        """The share of the trivial bound that noise and decay leave, as a square of the l1 norm's."""
        return None if self.noise is None or self.decay is None else self.norm * (self.noise + self.decay)

    @property
    def informative(self) -> bool:
        """Whether noise and decay, rounded up, leave less than the trivial bound: it then speaks on some problem."""
        return not self.outside and self.relative is not None and self.relative * (1 + self.rounding) < 1

    def also_provided(self, phrase: str) -> HorizonAnswer:
        """The same answer, which takes one thing more for granted."""
        return replace(self, provided=", and ".join(filter(None, (self.provided, phrase))))

    @property
    def statement(self) -> str:
        """One sentence: what is guaranteed for the run, or why nothing is."""
        run = f"for {self.steps:,} steps{f', provided {self.provided}' if self.provided else ''}"
        open_yet = f"; but for that, undecided, {self.unknown}" if self.unknown else ""
        but = open_yet if self.noise is None else f"; but for that, {self._leaves}"
        if self.outside:
            alone = f" by its sequences alone, with the problem known `bound` has {self.with_problem}"
            return f"{run}: no theorem covers it{alone if self.with_problem else ''} ({'; '.join(self.outside)}){but}"
        if self.unknown:
            return f"{run}: undecided, {self.unknown}"
        if self.decay is None:
            return f"{run}: needs a bound on the weights, for their decay{but}"
        if not self.informative:
            close = self.relative is not None and self.relative * (1 - self.rounding) < 1
            told = "silent, within rounding of 1, which doubles do not tell apart" if close else self._leaves
            return f"{run}: {told}"
        left = f"{_share((self.relative or 0.0) * (1 + self.rounding))} of {_TRIVIAL}{self._on_gradients}"
        return f"{run}: guaranteed to within {left} (informative), gap and drift apart"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def _on_gradients(self) -> str:
        """The size of the gradients that a number is told for, where it depends on it."""
        return f" on gradients of {TYPICAL_GRADIENT:g}" if self.steeper > _BARELY else ""

    @property
    def _leaves(self) -> str:
        """What is left of the trivial bound, where that is not certain or no gain, with the word for it."""
        causes, number = ("noise and decay leave", self.relative) if self.decay else ("the noise leaves", None)
        if number is None:
            number = math.inf if self.noise is None else self.norm * self.noise
        number *= 1 + self.rounding
        if number < 1:
            return f"informative: {causes} {_share(number)} of {_TRIVIAL}{self._on_gradients}"
        # The share of eps and v_0 in the divisor falls with larger gradients, and may be all that is in the way.
        silent = f"silent on gradients of {TYPICAL_GRADIENT:g}" if number < self.norm else "silent"
        times = f"{_share(number)} times" if number < 100 else "far more than"
        return f"{silent}: {causes} {times} {_TRIVIAL}"

    def lines(self) -> list[str]:
        """The answer, and its numbers with the theorem they are of."""
        if self.noise is None:
            return [self.statement]
        floor = ""
        if self.floor is not None and self.floor <= self.noise:
            floor = f" (never below {rounded_up(-self.floor, 4).removeprefix('-')})"
        noise, gap, drift = (
            rounded_up((number or 0.0) * (1 + self.rounding), 4) for number in (self.noise, self.gap, self.drift)
        )
        return [self.statement, f"  noise {noise}{floor}, gap {gap}, drift {drift} (Theorem {self.theorem})"]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only; a number that a double cannot hold is None."""
        numbers = ("steps", "theorem", "noise", "gap", "drift", "decay", "floor", "norm")
        return plain_fields(self, *numbers, "informative", "statement", "outside", "unknown")


def three_numbers(
    x: Sequences, gradient: float = TYPICAL_GRADIENT, weights_bound: float | None = None
) -> HorizonAnswer:
    """Return noise, gap and drift of Theorem W, E, N, H, D or M_E, the shares chosen for the least noise and decay.

    The majorants of the four summands are taken one by one, so that the drift is the same for every L.

    Args:
      x: the steps 1..T.
      gradient: G_k in the logarithm and beside eps.
      weights_bound: X, for decoupled decay; without it the numbers are those but for the decay.

    Raises:
      TheoremError: every learning rate is 0, or a sequence leaves its range.
    """
    sweep, sizes = Sweep(x), dict.fromkeys((gradient, max(gradient, _LARGE_GRADIENT)))
    parts = [Part(1, size, size, size**2) for size in sizes]
    # One pass for both, each with sums of its own.
    series = [_alone(of, part) for part in parts for of in SUMMANDS]
    sums = sweep.sums(parts, *series)
    if sweep.weight + sweep.weight_own == 0:
        raise TheoremError("every learning rate up to the horizon is 0")
    each = len(SUMMANDS)
    known, *larger = (
        _numbers_of(sweep, part, sums[each * k : each * (k + 1)], weights_bound) for k, part in enumerate(parts)
    )
    told, there = (one.norm * ((one.noise or 0.0) + (one.decay or 0.0)) for one in (known, *larger, known)[:2])
    return replace(known, steeper=there / told if 0 < told < math.inf else 1.0)


def _alone(series: Series, part: Part) -> Series:
    return lambda one: series(one) if one is part else {}


def _numbers_of(sweep: Sweep, part: Part, sums: Sequence[float], weights_bound: float | None) -> HorizonAnswer:
    (first, second, lengths, growth), x, gradient = sums, sweep.x, part.gradient
    whole = sweep.weight + sweep.weight_own
    norms = Norms.of((part,), x.initial_v, sweep.largest_eps, under_root=x.under_root)
    moved, turned = (0.0 if weights_bound is None else weights_bound**2 * float(one) for one in sweep.tally)
    paid, weights = (first, growth, norms.s1 / 4 * turned), (whole, sweep.weight, sweep.weight)
    noise = gap = drift = decay = math.inf  # momentum outgrows theta, or a rate is too small: it says nothing
    if whole < math.inf and math.isfinite(sum(paid)):
        shares = [Share(one, weight, None if one else 0.0) for one, weight in zip(paid, weights, strict=True)]
        s, zeta, phi = least_ratio(second, shares, whole)
        divisor = (1 - s) * whole - (zeta + phi) * sweep.weight
        if gradient * divisor > 0:
            noise = (second + over(first, s) + over(growth, zeta)) / (gradient * divisor)
            gap, drift = 1 / divisor, (lengths + moved) / divisor
            decay = over(paid[2], phi) / (gradient * divisor)
    return HorizonAnswer(
        x.steps,
        theorem=letter_of(sweep),
        noise=noise,
        gap=gap,
        drift=drift,
        decay=0.0 if not x.decays else None if weights_bound is None else decay,
        norm=norms.s1 / gradient,
        rounding=sweep.rounding((part,)),
    )


def read_horizon(
    x: Algorithm, steps: int, setting: Setting | None = None, theorem: Theorem | None = None
) -> HorizonAnswer:
    """The three numbers of an algorithm after T steps; what no theorem covers is named, and set aside.

    Args:
        x: the algorithm.
        steps: T.
        setting: what is known of the problem and the run.
        theorem: the one theorem that may speak; None lets all.

    Raises:
        SumError: the number of steps is no whole number from 1 to 10^15.
    """
    last, known = whole_steps(steps), setting or Setting()
    if theorem is not None and (theorem.outside(x, known) or theorem.name not in _OF_THREE_NUMBERS):
        return HorizonAnswer(last, unknown=_without_numbers(theorem, x, known))
    allowed = _WITH_MAXIMUM if x.running_maximum else _ALLOWED
    outside = (*beyond(x, allowed), *elsewhere(known))
    bare = replace(x, **_SET_ASIDE)
    if last > LONGEST:
        return HorizonAnswer(last, outside=outside, unknown=f"the recursions are run up to {LONGEST:,} steps")
    covering = [one for one in THEOREMS if outside and one.about is About.GRADIENT and not one.outside(x, known)]
    bounding = next((one for one in covering if one.bounds_by(x, known)), None)
    if beyond(bare, allowed):
        if not covering:
            return HorizonAnswer(last, outside=outside)
        return HorizonAnswer(last, unknown=_without_numbers(bounding or covering[0], x, known))
    bounded = "" if bounding is None else bounding.bounds_by(x, known)
    try:
        return replace(_numbers(bare, last, known), outside=outside, with_problem=bounded)
    except Undecided as unknown:
        if isinstance(unknown, Spent):
            note(str(unknown))
        return HorizonAnswer(last, outside=outside, unknown=str(unknown), with_problem=bounded)
    except TheoremError as error:
        return HorizonAnswer(last, outside=(*outside, str(error)))


def _without_numbers(theorem: Theorem, x: Algorithm, setting: Setting) -> str:
    """Why a theorem has no three numbers for the algorithm."""
    outside = theorem.outside(x, setting)
    if outside:
        return f"{theorem.title} does not cover it: {outside[0]}"
    bounded = theorem.bounds_by(x, setting)
    if bounded:
        return f"{bounded} bounds it given the problem's constants (`bound`), not by the sequences alone"
    return f"{theorem.title} speaks of no number of steps"


def _numbers(x: Algorithm, steps: int, setting: Setting) -> HorizonAnswer:
    if x.initial_v == 0 and x.eps == NOTHING:
        raise TheoremError("v_0 = 0 and nothing is added: the first step may divide by 0")
    if x.decay != NOTHING and not (x.nesterov is None and x.heavy_ball is None):
        raise TheoremError("decoupled weight decay beside Nesterov or heavy-ball momentum")
    X = setting.weights_bound if x.decay != NOTHING else None
    provided = {
        "every gradient is bounded": x.running_maximum,
        "the decay counts as a part of the loss": x.l2 != 0,
        **dict.fromkeys(setting.said("weights_bound"), X is not None),
    }
    found = three_numbers(Sequences.of_algorithm(x, steps), weights_bound=X)
    said = ", and ".join(phrase for phrase, is_so in provided.items() if is_so)
    return replace(found, floor=noise_floor(x), provided=said)


def noise_floor(x: Algorithm) -> float | None:
    """The number that c_noise tends to for constant beta and theta; None where one of them moves."""
    beta, theta = x.method.beta, x.method.theta
    if x.running_maximum or not (beta.is_constant and theta.is_constant and theta(1) > 0):
        return None
    if x.heavy_ball is not None:
        return constant_floor(0.0, theta(1)).noise
    above = decide.positive(theta - beta * beta)  # as numbers, not as floats: 0.49 and 0.7^2 are one
    if not above.holds:
        return math.inf if above.status is Status.FAILS else None
    weights, q = (1.0, 0.0), (1 - theta)(1)
    if x.nesterov is not None:
        weights = (_limit(x.nesterov.momentum_weight), _limit(x.nesterov.gradient_weight))
    share = 0.0
    if x.eps != NOTHING:
        if not _limit(x.eps):  # what is added vanishes or grows: its share has no such limit
            return None
        share = q / (1 + math.sqrt(theta(1)))
    a, b = weights
    if a is None or b is None or a + b <= 0:
        return None
    floor = constant_floor(beta(1), theta(1), q=q, share=share, momentum_weight=a, gradient_weight=b)
    return floor.noise


def _limit(schedule: Schedule) -> float | None:
    """The limit of a sequence that is not negative, where its form tells it."""
    growth = schedule.growth
    if growth is None or growth.trend > 0:
        return None
    return 0.0 if growth.trend < 0 or growth.is_zero else growth.limit


def _share(number: float) -> str:
    """Two digits, rounded up, or more where they would be a 1: a share of 0.997 is none."""
    return next((told for digits in range(2, 18) if (told := rounded_up(number, digits)) != "1"), "1")
