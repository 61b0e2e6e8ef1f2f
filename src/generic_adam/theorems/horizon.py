r"""The guarantee for a run of T steps, from the sequences alone: noise, gap and drift (remark W.6).

For every problem, with :math:`G_1` the sum over the coordinates of the bounds on their gradients,

.. math::

    \frac{X_w}{G_1} \le c_{\text{noise}} + c_{\text{gap}} \frac{f(x_1) - f^*}{G_1}
    + c_{\text{drift}} \frac{d L}{G_1}, \qquad
    \mathbb{E}\|\nabla f(x_\tau)\|_1 \le G_1 \sqrt{\frac{s_1}{G_1} \frac{X_w}{G_1}}.

Without any theorem the root is at most 1, the size that gradients have anyway. The guarantee is *useful* where all
parts together leave less: with the user's own gap and curvature where the setting knows them, else with those of a
problem whose gap :math:`(f(x_1)-f^*)/G_1` and curvature :math:`dL/G_1` are 1. So a learning rate that is too small for
the number of steps (start) or too large (curvature) is told apart. With constant sequences the noise does not vanish:
`constant_floor`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.parts import Part
from generic_adam.schedules import Schedule
from generic_adam.schedules.sums import whole_steps
from generic_adam.schedules.work import Spent, Undecided, note
from generic_adam.setting import Setting
from generic_adam.theorems import THEOREMS, decide, theorem_named
from generic_adam.theorems.clipping import symmetric_factor
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Status
from generic_adam.theorems.scaled import averaged, averaged_bound, bare
from generic_adam.theorems.sequences import LEMMA_N, LONGEST, Array, Sequences
from generic_adam.theorems.shuffled import floor as epochs_floor
from generic_adam.theorems.shuffled import shuffled_bound
from generic_adam.theorems.sweep import Coordinates, Piece, Plain, Sweep, Taken
from generic_adam.theorems.symmetric import GIVEN_THE_OTHERS
from generic_adam.theorems.theorem import NOTHING, About, Answer, Reason, Theorem, beyond, drawn_as, elsewhere
from generic_adam.theorems.weighted import MeanDivisors, Norms, best_shares, letter_of, over

_ALLOWED = frozenset({"initial_v", "eps", "nesterov", "heavy_ball", "decay"})
_WITH_MAXIMUM = frozenset({"initial_v", "eps", "running_maximum"})
_OF_THREE_NUMBERS = frozenset({"W", "E", "D", "M", "Y", "RR", "P"})  # N and H are of Theorem E, M_E is of Theorem M
# What is set aside where no theorem covers it, so that the sequences' own numbers can still be told.
_SET_ASIDE: dict[str, Any] = {"clipping": None, "factored": False, "centered": False, "scaled": False, "outside": ()}
TYPICAL_GRADIENT = 1e-3
"""G_k in the logarithm and beside eps where no problem is given; where gradients of 1 make more of the numbers than a
quarter, it is told with them."""
REFERENCE = 1.0
"""The gap and the curvature, in units of G_1, that the label takes where the setting knows none."""
_LARGE_GRADIENT, _BARELY = 1.0, 1.25


@dataclass(frozen=True)
class Floor:
    """The limit of the bound of constant sequences as T grows.

    Args:
      noise: the limit of X_w/G_1 without the drift; there is no useful guarantee for any problem where it is >= 1.
      drift: what multiplies d L alpha/G_1 beside it.
    """

    noise: float
    drift: float


def constant_floor(
    beta: float,
    theta: float,
    *,
    q: float | None = None,
    momentum_weight: float = 1.0,
    gradient_weight: float = 0.0,
    heavy_ball: float = 0.0,
    symmetric: bool = False,
) -> Floor:
    r"""Return the floor of Theorem W, E, N or H for constant beta and theta.

    .. math::

        \limsup_T X_w &\le G_1 \Big(N + \frac{c}{2}\Big) \frac{\ell}{\sqrt q}
        + d L\alpha\,\frac{\ell}{q}\,\frac{(1-\beta)(1+\rho)}{2(1-\rho)^2} \\
        \ell &= \log\frac1\theta, \qquad c = \frac{\rho}{\sqrt{1-\rho^2}}, \qquad N = 0.572

    is W's and E's; symmetric noise has 0 for N (Theorem Y).

    Args:
      beta: in [0, 1).
      theta: in (0, 1); where it is not above beta^2 there is no floor but infinity.
      q: 1 - theta, where it has more digits than that.
      momentum_weight: the limit of Nesterov's :math:`a_t`.
      gradient_weight: the limit of Nesterov's :math:`b_t`.
      heavy_ball: mu of H, beside beta = 0: the noise is :math:`N\ell/\sqrt q` whatever it is.
      symmetric: whether the noise of the gradients is symmetric and has one peak.

    Raises:
      TheoremError: beta or theta is out of range.

    Examples:
      >>> f"{constant_floor(0.9, 0.999).noise:.9f}"
      '0.050848282'
    """
    if not (0 <= beta < 1 and 0 < theta < 1):
        raise TheoremError(f"beta = {beta!r}, theta = {theta!r}: expected 0 <= beta < 1 and 0 < theta < 1")
    q = 1 - theta if q is None else q
    if theta <= beta**2 or beta >= math.sqrt(theta):  # either may round
        return Floor(math.inf, math.inf)
    a, b, rho = momentum_weight, gradient_weight, beta / math.sqrt(theta)
    decrease = -math.log1p(-q) if q < 0.5 else -math.log(theta)
    # Q/alpha, and the share of the weights pi_t that comes from it; the rest is Nesterov's alpha_t b_t.
    Q = a / (1 - rho)
    whole = (1 - beta) * Q + b
    inherited = (1 - beta) * Q / whole
    constant = (0.0 if symmetric else LEMMA_N) + inherited * rho / math.sqrt(1 - rho**2) / 2
    noise = constant * decrease / math.sqrt(q)
    rest = Q - a
    u, g = rest * (a + b / 2) + (a + b) * a / 2, rest * b / 2 + (a + b) * b / 2
    drift = decrease / q * (((1 - beta) / (1 - rho)) ** 2 * u + g) / whole
    return Floor(noise, drift * (1 + heavy_ball) / (1 - heavy_ball) ** 2)


def least_theta(beta: float, *, symmetric: bool = False) -> float:
    """Return the theta from which on the noise floor is below 1: below it no run has a useful guarantee.

    Args:
      beta: in [0, 1).
      symmetric: whether the noise of the gradients is symmetric and has one peak.

    Examples:
      >>> f"{least_theta(0.9):.6f}"
      '0.863506'
    """
    low, high = 1e-12, 1 - max(beta**2, 1e-12)  # of q; the floor grows with q
    for _ in range(200):
        middle = (low + high) / 2
        if constant_floor(beta, 1 - middle, q=middle, symmetric=symmetric).noise < 1:
            low = middle
        else:
            high = middle
    return 1 - low


@dataclass(frozen=True)
class HorizonAnswer(Part):
    """The guarantee after a number of steps.

    Attributes:
        steps: T.
        theorem: the letter of the theorem that the numbers are of; None where none covers the algorithm.
        noise: c_noise, what the gradients' noise leaves of the trivial bound.
        gap: c_gap, what multiplies (f(x_1) - f*) / G_1.
        drift: c_drift, what multiplies d L / G_1.
        decay: what decoupled decay adds for weights of the asserted size; None where none is asserted.
        moved: what multiplies d L / G_1 in the share of its size that the gradient may change by within an epoch,
            which comes on top of the root (Theorem RR).
        turning: the curvature, in units of d L / G_1, that comes on top where a scale of the steps moves (Theorem P).
        floor: what c_noise tends to however long the run is, where beta_t and theta_t are constant.
        norm: s_1/G_1, what v_0 and eps add to the divisor: 1 where they are far below the gradients.
        rounding: how far doubles may have carried the numbers, relatively.
        steeper: what gradients of 1 make of noise and decay, over what is told, of gradients of 0.001.
        needs: what the numbers take for granted beyond the common assumptions, one phrase each.
        outside: what no theorem covers; the numbers, where there are some, set it aside.
        unknown: why the numbers were not computed, where a theorem might cover it; None where they were.
        with_problem: the theorem that bounds it where the problem's constants are known, though none covers it by
            its sequences alone; "" where there is none.
        bound: the smallest bound on the problem that was given.
        problem_gap: (f(x_1) - f*) / G_1, the setting's or the reference value 1.
        problem_curvature: d L / G_1, the setting's or the reference value 1.
        gradient_sum: G_1 where the setting knows it; `largest_gap` and `largest_smoothness` are then f(x_1) - f* and L.
        dimension: d, likewise.
        symmetric: the same answer where the noise is symmetric and has one peak, if the setting says that it is.

    Examples:
        Noise leaves 0.1 of the trivial bound, the start 0.2 and the curvature 0.06 at the reference values, together
        0.36: gradients average below 60 % of the size that they have anyway. Three times the steps at the same rate
        divide the start by three; a third of them would leave 0.76.

        >>> run = HorizonAnswer(1000, "E", noise=0.1, gap=0.2, drift=0.06, floor=0.1)
        >>> round(run.size, 12), run.dominant, round(run.largest_gap, 12), run.steps_needed
        (0.6, 'start', 4.2, 239)
    """

    also = (
        *("answer", "useful", "size", "relative", "dominant", "largest_smoothness", "largest_gap"),
        *("best_rate", "steps_needed"),
    )

    steps: int
    theorem: str | None = None
    noise: float | None = None
    gap: float | None = None
    drift: float | None = None
    decay: float | None = 0.0
    moved: float = 0.0
    turning: float = 0.0
    floor: float | None = None
    norm: float = 1.0
    rounding: float = 0.0
    steeper: float = 1.0
    needs: tuple[str, ...] = ()
    outside: tuple[Reason, ...] = ()
    unknown: Reason | None = None
    with_problem: str = ""
    bound: Any = None
    problem_gap: float = REFERENCE
    problem_curvature: float = REFERENCE
    gradient_sum: float | None = None
    dimension: int | None = None
    symmetric: HorizonAnswer | None = None

    @property
    def answer(self) -> Answer:
        """The answer for the run, in one of five words."""
        if self.outside:
            moves = any(one.kind == "moving_loss" for one in self.outside)
            return Answer.NOT_APPLICABLE if moves else Answer.NONE
        if self.unknown is not None:
            return Answer.UNKNOWN
        if self.relative is None:  # decay, and nothing known of the weights
            return Answer.NONE
        return Answer.GUARANTEED if self.useful else Answer.NOT_USEFUL

    @property
    def size(self) -> float | None:
        """The share of the size that they have anyway which gradients average below; a number of use is below 1."""
        return None if self.relative is None else math.sqrt(self.relative * (1 + self.rounding))

    @property
    def parts(self) -> dict[str, float]:
        """The shares of the trivial bound that each part leaves, as squares of the l1 norm's; empty for no numbers."""
        if self.noise is None or self.gap is None or self.drift is None:
            return {}
        start, curvature = self.gap * self.problem_gap, self.drift * (self.problem_curvature + self.turning)
        parts = {"noise": self.noise, "decay": self.decay or 0.0, "start": start, "curvature": curvature}
        parts = {name: self.norm * part for name, part in parts.items()}
        # The root of their sum is left, and what the gradient changes by: squared, the rest is the curvature's.
        whole, moved = sum(parts.values()), self.moved * self.problem_curvature
        added = (2 * math.sqrt(whole) + moved) * moved if moved else 0.0  # infinity times 0 is no number
        return {**parts, "curvature": parts["curvature"] + added}

    @property
    def relative(self) -> float | None:
        """The share of the trivial bound that all parts together leave, as a square of the l1 norm's."""
        return sum(self.parts.values()) if self.parts and self.decay is not None else None

    @property
    def useful(self) -> bool:
        """True if all parts together, rounded up, leave less than the size that gradients have anyway."""
        return not self.outside and self.relative is not None and self.relative * (1 + self.rounding) < 1

    @property
    def dominant(self) -> str | None:
        """The largest part: "noise", "start", "curvature" or "decay"."""
        return max(self.parts, key=self.parts.__getitem__) if self.parts else None

    @property
    def largest_smoothness(self) -> float | None:
        """The curvature d L / G_1 (or L, see `gradient_sum`) up to which the guarantee is useful; 0 for none."""
        scale = 1.0 if self.gradient_sum is None or self.dimension is None else self.gradient_sum / self.dimension
        if self.relative is None or self.drift is None:
            return None
        others = sum(part for name, part in self.parts.items() if name != "curvature")
        # The c for which sqrt(others + norm drift c) + moved c is 1, less the rounding.
        others += self.norm * self.drift * self.turning
        left, slope = 1 / (1 + self.rounding) - others, self.norm * self.drift + 2 * self.moved
        if not (left > 0 and 0 < slope < math.inf):
            return 0.0
        return scale * 2 * left / (slope + math.sqrt(slope**2 - 4 * self.moved**2 * left))

    @property
    def largest_gap(self) -> float | None:
        """The gap (f(x_1) - f*) / G_1 (or f(x_1) - f*, see `gradient_sum`) up to which it is useful; 0 for none."""
        scale = 1.0 if self.gradient_sum is None else self.gradient_sum
        if self.relative is None or not self.gap:
            return None if self.relative is None else 0.0
        moved = self.moved * self.problem_curvature
        curvature = (self.drift or 0.0) * (self.problem_curvature + self.turning)
        others = self.norm * ((self.noise or 0.0) + curvature + (self.decay or 0.0))
        left = max(0.0, 1 - moved) ** 2 / (1 + self.rounding) - others
        return max(0.0, left * scale / (self.norm * self.gap))

    @property
    def best_rate(self) -> float | None:
        """The factor on the learning rate that makes the bound least: start falls with it and curvature rises."""
        parts = self.parts
        if not parts or not 0 < parts["curvature"] < math.inf or not 0 < parts["start"] < math.inf:
            return None
        return math.sqrt(parts["start"] / parts["curvature"])

    @property
    def steps_needed(self) -> int | None:
        """About how many steps of the same mean learning rate are useful; None where no number of them is.

        The start is spread over more steps, and with it what the noise has above its floor.
        """
        if self.relative is None or not math.isfinite(self.relative):
            return None
        parts, floor = self.parts, self.norm * min(self.noise or 0.0, math.inf if self.floor is None else self.floor)
        left = 1 - floor - parts["decay"] - parts["curvature"]
        return math.ceil(self.steps * (parts["start"] + parts["noise"] - floor) / left) if left > 0 else None

    @property
    def depends_on_gradients(self) -> bool:
        """True if the numbers, of gradients of `TYPICAL_GRADIENT`, are others for larger gradients."""
        return self.steeper > _BARELY

    def also_needing(self, *phrases: str) -> HorizonAnswer:
        """Return the same answer, which takes more for granted."""
        beside = self.symmetric and self.symmetric.also_needing(*phrases)
        return replace(self, needs=(*self.needs, *phrases), symmetric=beside)


def three_numbers(
    x: Sequences,
    gradient: float = TYPICAL_GRADIENT,
    weights_bound: float | None = None,
    *,
    symmetric: bool = False,
    keep: float = 1.0,
    scaled: bool = False,
) -> HorizonAnswer:
    """Return noise, gap and drift of Theorem W, E, N, H, D, M_E, Y or P1.

    The majorants of the summands are taken one by one, so that the drift is the same for every L.

    Args:
      x: the steps 1..T.
      gradient: G_k in the logarithm and beside eps.
      weights_bound: X, for decoupled decay; without it the numbers are those but for the decay.
      symmetric: whether the noise of the gradients is symmetric and has one peak.
      keep: what clipping leaves of the descent then.
      scaled: whether steps are scaled by the parameters.

    Raises:
      TheoremError: every learning rate is 0, or a sequence leaves its range.
    """
    sweep, sizes = Sweep(x), dict.fromkeys((gradient, max(gradient, _LARGE_GRADIENT)))
    parts = (Coordinates(1, size, size, size**2, certain=size) for size in sizes)
    form = {"symmetric": symmetric, "scaled": scaled}
    known, *larger = (_numbers_of(sweep, part, weights_bound, keep, **form) for part in parts)
    told, there = (one.norm * ((one.noise or 0.0) + (one.decay or 0.0)) for one in (known, *larger, known)[:2])
    return replace(known, steeper=there / told if 0 < told < math.inf else 1.0)


def _numbers_of(
    sweep: Sweep, part: Coordinates, weights_bound: float | None, keep: float, *, symmetric: bool, scaled: bool
) -> HorizonAnswer:
    x, gradient, divisors = sweep.x, part.gradient, MeanDivisors((part,), part.second_moment, symmetric=symmetric)

    def first(_: Coordinates) -> Taken:
        if symmetric:
            return {}
        return {"first": gradient / 2} if x.running_maximum else sweep.lemma_n(part)

    cost, (size, square, turned, shrunk) = sweep.cost((part,), 1.0, first, *divisors.series, Plain(_shrunk))
    whole = sweep.weight
    if whole == 0:
        raise TheoremError("every learning rate up to the horizon is 0")
    norms = Norms.certain((part,), sweep) if x.running_maximum else divisors.norms(size, square, whole)
    squared = 0.0 if weights_bound is None else weights_bound**2
    moved, paid = squared * float(sweep.tally[0]), 0.0 if scaled else squared * turned / 4
    noise = gap = drift = decay = math.inf  # momentum outgrows theta, or a rate is too small: it says nothing
    if whole < math.inf and math.isfinite(cost.new + cost.momentum + paid):
        spent, free = (cost.new, cost.momentum) if x.running_maximum else (0.0, cost.new + cost.momentum)
        s, phi = best_shares(free, (spent, paid), keep)
        divisor = (keep - s - phi) * whole
        if gradient * divisor > 0:
            noise, decay = ((free + over(spent, s)) / (gradient * divisor), over(paid, phi) / (gradient * divisor))
            decay = shrunk / divisor if scaled else decay
            gap, drift = 1 / divisor, (cost.drift + moved) / divisor
    return HorizonAnswer(
        x.steps,
        theorem="P" if scaled else "Y" if symmetric else letter_of(sweep),
        noise=noise,
        gap=gap,
        drift=drift,
        decay=0.0 if not x.decays else None if weights_bound is None else decay,
        norm=norms.s1 / gradient if noise < math.inf else 1.0,
        turning=1.0 if scaled and sweep.has_momentum else 0.0,
        rounding=sweep.rounding((part,)),
    )


def _shrunk(_: Sweep, piece: Piece, __: Coordinates) -> Array | float:
    return 0.0 if piece.decay is None else np.broadcast_to(piece.decay, piece.length)


def read_horizon(
    x: Algorithm, steps: int, setting: Setting | None = None, theorem: Theorem | None = None
) -> HorizonAnswer:
    """Return the three numbers of an algorithm after T steps; what no theorem covers is named, and set aside.

    Args:
        x: the algorithm.
        steps: T.
        setting: what is known of the problem and the run.
        theorem: the one theorem that may speak; None lets all.

    Raises:
        SumError: the number of steps is no whole number from 1 to 10^15.
    """
    last = whole_steps(steps)
    known = (setting or Setting()).for_run(last)
    if theorem is not None and (theorem.outside(x, known) or theorem.name not in _OF_THREE_NUMBERS):
        return _without_numbers(theorem, x, known, last)
    if found := _of_epochs(x, last, known, theorem) or _of_scaled(x, last, known):
        return found
    allowed = _WITH_MAXIMUM if x.running_maximum else _ALLOWED
    outside = (*beyond(x, allowed), *elsewhere(known))
    bare = replace(x, **_SET_ASIDE)
    if last > LONGEST:
        return HorizonAnswer(last, outside=outside, unknown=Reason("longest", f"{LONGEST:,}"))
    asked = (one for one in THEOREMS if outside and one.about is About.GRADIENT and "noise" not in one.takes)
    covering = [one for one in asked if not one.outside(x, known)]
    bounding = next((one for one in covering if one.bounds_by(x, known)), None)
    if beyond(bare, allowed):
        if not covering:
            return HorizonAnswer(last, outside=outside)
        return _without_numbers(bounding or covering[0], x, known, last)
    bounded = "" if bounding is None else bounding.bounds_by(x, known)
    try:
        keep, granted, without = _clipped(x, known)
        found = _numbers(bare, last, known, keep)
        beside = found.symmetric and replace(found.symmetric, outside=(*beyond(without, allowed), *elsewhere(known)))
        beside = beside and beside.also_needing(*granted)
        return replace(found, outside=outside, with_problem=bounded, symmetric=beside)
    except Undecided as unknown:
        spent = isinstance(unknown, Spent)
        if spent:
            note(str(unknown))
        why = Reason("spent" if spent else "error", str(unknown))
        return HorizonAnswer(last, outside=outside, unknown=why, with_problem=bounded)
    except TheoremError as error:
        return HorizonAnswer(last, outside=(*outside, Reason("error", str(error))))


def _of_epochs(x: Algorithm, steps: int, setting: Setting, asked: Theorem | None) -> HorizonAnswer | None:
    """Return Theorem RR's numbers where batches are shuffled in epochs, or where it is asked alone; else None."""
    batches = setting.batches_per_epoch
    theorem = asked or next(one for one in THEOREMS if one.shuffled)
    several = setting.sampling == "shuffled" or asked is not None
    if not (theorem.shuffled and several and batches) or theorem.outside(x, setting):
        return None
    try:
        sequences, sizes = Sequences.of_algorithm(x, steps), (TYPICAL_GRADIENT, _LARGE_GRADIENT)
        X = setting.weights_bound or 0.0
        problems = (Constants(1.0, [size], 1, 0.0, gradient_sup=size, weights_bound=X) for size in sizes)
        known, large = (shuffled_bound(sequences, problem, batches) for problem in problems)
    except (TheoremError, Undecided) as error:
        return HorizonAnswer(steps, unknown=Reason("error", str(error)))
    noise, there = known.noise / TYPICAL_GRADIENT, large.noise / _LARGE_GRADIENT
    beta, theta = x.method.beta, x.method.theta
    constant = beta.is_constant and theta.is_constant
    return HorizonAnswer(
        known.steps,
        theorem="RR",
        noise=noise / known.weight,
        gap=1 / known.weight,
        drift=known.drift / known.weight,
        decay=None if sequences.decays and not X else known.decay / TYPICAL_GRADIENT / known.weight,
        moved=known.moved,
        floor=epochs_floor(beta(1), theta(1), batches) if constant else None,
        norm=known.s1 / TYPICAL_GRADIENT,
        rounding=known.rounding,
        steeper=there * large.s1 / (noise * known.s1 / TYPICAL_GRADIENT) if noise else 1.0,
        needs=(*theorem.needs, *setting.said("batches_per_epoch", *(["weights_bound"] if sequences.decays else []))),
        **_scale(setting),
    )


def _of_scaled(x: Algorithm, steps: int, setting: Setting) -> HorizonAnswer | None:
    """Return Theorem P's numbers where it covers the algorithm; else None."""
    theorem = theorem_named("P")
    if theorem.outside(x, setting):
        return None
    needs = (*theorem.granted(x), *drawn_as(setting, steps), *setting.said(*theorem.uses))
    try:
        sequences = Sequences.of_algorithm(bare(x), steps)
        if not averaged(x):
            symmetric = (True,) if setting.noise == "symmetric" else ()
            plain, *beside = (
                replace(three_numbers(sequences, weights_bound=1.0, symmetric=one, scaled=True), needs=needs)
                for one in (False, *symmetric)
            )
            return replace(plain, symmetric=next(iter(beside), None))
        threshold = None if x.clipping is None else x.clipping.threshold
        found = averaged_bound(sequences, TYPICAL_GRADIENT, setting.update_rms or 0.0, threshold)
    except (TheoremError, Undecided) as error:
        return HorizonAnswer(steps, unknown=Reason("error", str(error)))
    numbers = HorizonAnswer(steps, "P", 0.0, found.gap, found.drift, norm=found.norm, needs=needs)
    return replace(numbers, rounding=(8 * steps + 400) * 2.0**-53)


def _without_numbers(theorem: Theorem, x: Algorithm, setting: Setting, steps: int) -> HorizonAnswer:
    """Return the answer of a theorem that has no three numbers for the algorithm."""
    outside, bounded = theorem.outside(x, setting), theorem.bounds_by(x, setting)
    if outside:
        return HorizonAnswer(steps, outside=outside)
    return HorizonAnswer(
        steps, unknown=Reason("problem", bounded) if bounded else Reason("numbers", theorem.title), with_problem=bounded
    )


def _clipped(x: Algorithm, setting: Setting) -> tuple[float, tuple[str, ...], Algorithm]:
    """Return the share of the descent that clipping leaves where noise is symmetric, its needs, and what is covered.

    The share is at least 1/sqrt(1 + 3 (G/c)^2): nothing is said where no bound on the gradients is known.
    """
    known, clip = setting.completed(), x.clipping
    each = known.gradient_bound
    if clip is None or each is None or clip.kind == "update" or x.l2:
        return 1.0, (), x
    problem = Constants(1.0, each, len(each) if isinstance(each, tuple) else 1, 0.0, variance=known.variance)
    needs = (GIVEN_THE_OTHERS,) if clip.kind == "norm" else ()
    return symmetric_factor(problem, clip), needs, replace(x, clipping=None)


def _numbers(x: Algorithm, steps: int, setting: Setting, keep: float) -> HorizonAnswer:
    if x.initial_v == 0 and x.eps == NOTHING:
        raise TheoremError("a first step that may divide by 0 (v_0 = 0 and no eps)")
    if x.decay != NOTHING and not (x.nesterov is None and x.heavy_ball is None):
        raise TheoremError("decoupled weight decay beside Nesterov or heavy-ball momentum")
    X = setting.weights_bound if x.decay != NOTHING else None
    provided = {
        "every gradient is bounded": x.running_maximum,
        "the decay counts as a part of the loss": x.l2 != 0,
        **dict.fromkeys(drawn_as(setting, steps), True),
        **dict.fromkeys(setting.said("weights_bound"), X is not None),
    }
    sequences, scale = Sequences.of_algorithm(x, steps), _scale(setting)
    needs = tuple(phrase for phrase, is_so in provided.items() if is_so)

    def answer(*, symmetric: bool) -> HorizonAnswer:
        share, floor = keep if symmetric else 1.0, noise_floor(x, symmetric=symmetric)
        found = three_numbers(sequences, weights_bound=X, symmetric=symmetric, keep=share)
        return replace(found, floor=floor and floor / share, needs=needs, **scale)

    beside = answer(symmetric=True) if setting.noise == "symmetric" and not x.running_maximum else None
    return replace(answer(symmetric=False), symmetric=beside)


def _scale(setting: Setting) -> dict[str, Any]:
    """Return the gap and the curvature of the problem in units of G_1, where the setting knows what makes them."""
    known, found = setting.completed(), dict[str, Any]()
    each, count = known.gradient_bound, known.dimension
    if isinstance(each, tuple):
        found["gradient_sum"] = math.fsum(each)
    elif each is not None and count is not None:
        found["gradient_sum"] = math.sqrt(count) * each
    whole = found.get("gradient_sum")
    if whole is None:
        return {}
    if known.gap is not None:
        found["problem_gap"] = known.gap / whole
    if count is not None:
        found["dimension"] = count
        if known.smoothness is not None:
            found["problem_curvature"] = count * known.smoothness / whole
    return found


def noise_floor(x: Algorithm, *, symmetric: bool = False) -> float | None:
    """Return the number that c_noise tends to for constant beta and theta; None where one of them moves."""
    beta, theta = x.method.beta, x.method.theta
    if x.running_maximum or not (beta.is_constant and theta.is_constant and theta(1) > 0):
        return None
    if x.heavy_ball is not None:
        return constant_floor(0.0, theta(1), symmetric=symmetric).noise
    above = decide.positive(theta - beta * beta)  # as numbers, not as floats: 0.49 and 0.7^2 are one
    if not above.holds:
        return math.inf if above.status is Status.FAILS else None
    weights = (1.0, 0.0)
    if x.nesterov is not None:
        weights = (_limit(x.nesterov.momentum_weight), _limit(x.nesterov.gradient_weight))
    if x.eps != NOTHING and not _limit(x.eps):  # what is added vanishes or grows: then it may be no limit
        return None
    a, b = weights
    if a is None or b is None or a + b <= 0:
        return None
    ahead = {"momentum_weight": a, "gradient_weight": b}
    return constant_floor(beta(1), theta(1), q=(1 - theta)(1), symmetric=symmetric, **ahead).noise


def _limit(schedule: Schedule) -> float | None:
    """Return the limit of a sequence that is not negative, where its form tells it."""
    growth = schedule.growth
    if growth is None or growth.trend > 0:
        return None
    return 0.0 if growth.trend < 0 or growth.is_zero else growth.limit
