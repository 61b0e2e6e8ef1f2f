r"""Theorem K.0m, the budget of a run: what the size of the gradient along one run is made of, in measured numbers.

Nothing is asked of the loss (no smoothness, no lower bound) and nothing of the sampler. The steps are
:math:`x_{t+1} = x_t + \alpha_t u_t`, t = t0..T, with any directions :math:`u_t`; :math:`\hat D_t > 0` is any function
of the past (such as a regularised :math:`\sqrt{v_{t-1}}`), :math:`\alpha, \beta, \gamma` are fixed in advance,
:math:`\gamma_{t0} = 0`, and

.. math::

    Q_T = \alpha_T, \quad Q_t = \alpha_t + \gamma_{t+1} Q_{t+1}, \qquad
    \pi_t = (1-\beta_t) Q_t, \quad \Pi = \sum_t \pi_t, \qquad
    \varepsilon_t = \frac{\nabla f(x_t)}{\hat D_t} + \frac{\mathbb{E}_t[u_t - \gamma_t u_{t-1}]}{1-\beta_t}.

Then on every path, exactly,

.. math::

    \underbrace{\sum_{t,k} \tfrac{\pi_t}{\Pi} \frac{(\nabla_k f)^2}{\hat D_{t,k}}}_{X} =
    \underbrace{\sum_t \tfrac{\pi_t}{\Pi} \langle\nabla f, \varepsilon_t\rangle}_{\text{bias}} + \frac1\Pi\Big[
    \underbrace{f(x_{t0}) - f(x_{T+1})}_{\text{loss drop}} + \underbrace{\sum_t r_t + \sum_{t>t0} \gamma_t Q_t
    c_t}_{\text{curvature}} + \underbrace{\sum_t Q_t \langle\nabla f, u_t - \mathbb{E}_t u_t\rangle}_{\text{noise}}\Big]

with :math:`r_t = f(x_{t+1}) - f(x_t) - \alpha_t\langle\nabla f(x_t), u_t\rangle` and
:math:`c_t = \langle\nabla f(x_t) - \nabla f(x_{t-1}), u_{t-1}\rangle`. With S the weighted mean of
:math:`\sum_k \hat D_{t,k}`, the weighted mean of :math:`\|\nabla f(x_t)\|_1` is at most :math:`\sqrt{S X}`.

Of each block of steps one, drawn by lot in advance, is measured: two independent mini-batches give gradients h and k at
:math:`x_t`, and the first of them the gradient h' and the loss at :math:`x_{t+1}`. The run itself is not drawn again:
given the run, the batches of different steps are independent, and all parts are unbiased but one: the step that was
made stands for the mean step, so that the bias has the noise in it. The proof, and what may be claimed, are on the page
docs/theorems/measured.md. `generic_adam.watch.budget` measures; here are plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from generic_adam.errors import TheoremError
from generic_adam.parts import Part
from generic_adam.theorems.sequences import Array, backward

RELIABLE_SHARE = 0.2
"""The largest share of a variance that one step may carry before the estimate is called unreliable."""

# A block of steps is at most one this part of the steps before it.
_EARLY = 16
# Standard errors of a one-sided 95 % limit, and of each of two that are to hold together: more than the normal law's
# 1.64 and 1.96, as products of gradients are skewed and a small estimate comes with a small error.
_ONE, _EACH_OF_TWO = 2.0, 2.3


_MEANS = {
    "curvature": "the steps' curvature (lr)",
    "loss_drop": "the loss still falling",
    "bias": "Adam's scaling (beta2, eps, beta1)",
}


@dataclass(frozen=True)
class Estimate(Part):
    """A measured number with its standard error.

    Attributes:
        value: the estimate.
        standard_error: the root of what estimates its variance; it errs on the large side.
        steps: the number of steps that it was measured at; 0 for a number that is known exactly.
        largest_share: the share of the variance that the heaviest step, or pair of steps, carries.
    """

    value: float
    standard_error: float = 0.0
    steps: int = 0
    largest_share: float = 0.0

    @property
    def reliable(self) -> bool:
        """True if nothing carries more than a fifth of the variance, so that the normal law may be used."""
        return self.largest_share <= RELIABLE_SHARE

    @property
    def upper(self) -> float:
        """The upper end of a one-sided 95 % interval; asymptotic, by the central limit theorem."""
        return self.value + _ONE * self.standard_error


@dataclass(frozen=True, eq=False)
class Weights:
    r"""The weights of the steps t0..T.

    Attributes:
        alpha: :math:`\alpha_t`.
        gamma: :math:`\gamma_t`, 0 at the first step.
        reach: :math:`Q_t`, how much learning rate a direction is still carried with.
        weight: :math:`\pi_t = (1-\beta_t) Q_t`.
        total: :math:`\Pi`.
    """

    alpha: Array
    gamma: Array
    reach: Array
    weight: Array
    total: float


def weights(alpha: ArrayLike, beta: ArrayLike, gamma: ArrayLike | None = None) -> Weights:
    r"""Return Q, :math:`\pi` and :math:`\Pi` of the steps.

    Args:
        alpha: the learning rates :math:`\alpha_t`, one for each step, the bias correction folded in.
        beta: :math:`\beta_t`, one number or one for each step.
        gamma: :math:`\gamma_t`, the share of the direction that is inherited; None takes :math:`\beta_t`. torch's Adam
            has :math:`\beta\sqrt{(1-\theta^{t-1})/(1-\theta^t)}`. The first step inherits nothing, whatever is given.

    Raises:
        TheoremError: a number is out of range, or all learning rates are 0.
    """
    rates = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    betas, kept = (
        np.broadcast_to(np.asarray(one, float), rates.shape) for one in (beta, beta if gamma is None else gamma)
    )
    for name, values, inside in (
        ("alpha_t >= 0", rates, rates >= 0),
        ("0 <= beta_t < 1", betas, (betas >= 0) & (betas < 1)),
        ("gamma_t >= 0", kept, kept >= 0),
    ):
        if not (inside & np.isfinite(values)).all():
            at = int(np.argmin(inside & np.isfinite(values)))
            raise TheoremError(f"budget: expected {name}, got {values[at]:g} at step {at + 1} of {len(rates)}")
    kept = np.concatenate([[0.0], kept[1:]])
    reach = backward(rates, kept)
    weight = (1 - betas) * reach
    if not 0 < weight.sum() < math.inf:
        raise TheoremError("budget: every learning rate is 0, so that no step has a weight")
    return Weights(rates, kept, reach, weight, float(weight.sum()))


@dataclass(frozen=True)
class Observation:
    r"""One measured step.

    Attributes:
        index: t - t0.
        size: :math:`\sum_k h_k k_k/\hat D_k`, unbiased for :math:`\sum_k (\nabla_k f)^2/\hat D_k`.
        scale: :math:`\sum_k \hat D_k`, exact.
        slope: :math:`\langle h, u_t\rangle`.
        other_slope: :math:`\langle k, u_t\rangle`.
        inherited: :math:`\langle \tfrac12(h+k), u_{t-1}\rangle`; 0 at the first step.
        turn: :math:`\langle h' - h, u_t\rangle`, unbiased for :math:`c_{t+1}`.
        change: by how much the loss of h's batch rose from :math:`x_t` to :math:`x_{t+1}`; None where it was not seen.
        stands_for: the number of steps of which this one was drawn.
    """

    index: int
    size: float
    scale: float
    slope: float
    other_slope: float
    inherited: float
    turn: float
    change: float | None = None
    stands_for: int = 1


@dataclass(frozen=True)
class Budget(Part):
    r"""The budget of a run: size = bias + loss_drop + curvature, each in the unit of X, up to their errors.

    Attributes:
        steps: the number of steps, T - t0 + 1.
        size: X, the weighted mean of :math:`\sum_k (\nabla_k f)^2/\hat D_k`.
        scale: S, the weighted mean of :math:`\sum_k \hat D_k`; size/scale has no unit.
        loss_drop: what the loss fell, over :math:`\Pi`: the run was still descending.
        bend: the first part of the curvature, :math:`\sum r_t/\Pi`: the loss bends along the steps.
        turn: the second part, :math:`\sum \gamma_t Q_t c_t/\Pi`: the gradient turns under the momentum.
        curvature: their sum, which the learning rate makes.
        bias: what Adam's scaling costs (beta1, beta2, eps), with clipping, decay, and the order of the data.
        noise: a martingale: its mean is 0, and its standard error, which is a part of the bias's, is its size.
        residual: what the loss fell along the steps less what it fell from end to end, over :math:`\Pi`; None where
            the loss was not seen along the steps.
    """

    also: ClassVar = ("shares", "closes", "reliable", "mean_l1", "text")

    steps: int
    size: Estimate
    scale: Estimate
    loss_drop: Estimate
    bend: Estimate
    turn: Estimate
    curvature: Estimate
    bias: Estimate
    noise: Estimate
    residual: Estimate | None = None

    @property
    def closes(self) -> bool | None:
        """True if the loss fell by what it fell along the steps, within two standard errors; None if not seen.

        Where it is not, something else moves the weights, or the loss that was measured is another at the ends.
        """
        return None if self.residual is None else abs(self.residual.value) <= 2 * self.residual.standard_error

    @property
    def shares(self) -> dict[str, float]:
        """The parts as shares of their sum; empty where the sum is not positive by two standard errors of the size."""
        parts = {"curvature": self.curvature, "loss_drop": self.loss_drop, "bias": self.bias}
        total = math.fsum(part.value for part in parts.values())
        if not total > 2 * self.size.standard_error:
            return {}
        return {name: part.value / total for name, part in parts.items()}

    @property
    def text(self) -> str:
        """The shares in one line, the largest first, with their errors and what is to be known of them."""
        shares = self.shares
        if not shares:
            return f"Budget of {self.steps:,} steps: the errors are larger than the parts; measure more steps."
        total = math.fsum(getattr(self, name).value for name in shares)
        said = (
            f"{share:.0%} {_MEANS[name]} (+- {100 * getattr(self, name).standard_error / total:.0f})"
            for name, share in sorted(shares.items(), key=lambda one: -one[1])
        )
        warnings = [
            *(["It does not close: something else moves the weights."] if self.closes is False else []),
            *(["A few steps carry its errors: not reliable."] if not self.reliable else []),
        ]
        return " ".join([f"Budget of {self.steps:,} steps, of this run alone: {', '.join(said)}.", *warnings])

    @property
    def mean_l1(self) -> float:
        r"""The upper limit of the weighted mean of :math:`\|\nabla f(x_t)\|_1` along this run, asymptotic 95 %.

        :math:`\sqrt{S X}` at the upper limits; of this run alone, and `reliable` says whether the limit may be used.
        """
        quantile = _EACH_OF_TWO if self.scale.standard_error else _ONE
        size, scale = (max(one.value + quantile * one.standard_error, 0.0) for one in (self.size, self.scale))
        return math.sqrt(size * scale)

    @property
    def reliable(self) -> bool:
        """True if nothing carries more than a fifth of the variance of a part."""
        return all(part.reliable for part in (self.size, self.scale, self.curvature, self.bias))


def budget(weighing: Weights, observations: Sequence[Observation], fell: Estimate | float) -> Budget:
    r"""Add a run's measurements up to its budget.

    Args:
        weighing: the weights of all steps, measured or not.
        observations: the measured steps, in their order; which ones, lots have decided in advance.
        fell: :math:`f(x_{t0}) - f(x_{T+1})`, measured by itself (on the same batches at both ends, say).

    Raises:
        TheoremError: nothing was measured, or a measurement is no finite number or belongs to no step.
    """
    if not observations:
        raise TheoremError("budget: no step was measured")
    steps, total = len(weighing.weight), weighing.total
    at = np.array([one.index for one in observations])
    if at[0] < 0 or at[-1] >= steps or (np.diff(at) <= 0).any():
        raise TheoremError(f"budget: expected increasing steps from 0 to {steps - 1}, got {at.tolist()[:8]}")
    count = _column(observations, "stands_for")
    if (count < 1).any():
        raise TheoremError("budget: expected a step to stand for at least one")
    full = int(count.sum()) == steps
    reach, share = count * weighing.reach[at] / total, count * weighing.weight[at] / total
    # Of the last step there is no c_{T+1}: nothing inherits from it.
    later = count * np.append((weighing.gamma * weighing.reach)[1:], 0.0)[at] / total
    size, scale, one_slope, other, inherited = (
        _column(observations, name) for name in ("size", "scale", "slope", "other_slope", "inherited")
    )
    turn, straight = later * _column(observations, "turn"), count * weighing.alpha[at] / total * one_slope
    drop = fell if isinstance(fell, Estimate) else Estimate(float(fell))
    drop = Estimate(drop.value / total, drop.standard_error / total, drop.steps)
    # pi_t eps_t = pi_t grad/D + Q_t (u_t - gamma_t u_{t-1})
    direction = (one_slope + other) / 2 - weighing.gamma[at] * inherited
    misled = _summed(share * size + reach * direction, full=full)
    spread = weighing.reach[at] * np.sqrt(count) / total
    noise = math.sqrt(max(0.0, float(_squares(spread * one_slope, spread * other, full=full).sum())))
    if all(one.change is not None for one in observations):
        change = count * _column(observations, "change") / total
        bend, curvature = (_summed(one, full=full) for one in (change - straight, change - straight + turn))
        along = _summed(change, full=full)
        error = math.hypot(along.standard_error, drop.standard_error)
        residual = Estimate(-along.value - drop.value, error, along.steps, along.largest_share)
    else:  # the sum of all changes is known
        bend, curvature = (_less(_summed(one, full=full), drop) for one in (-straight, turn - straight))
        residual = None
    return Budget(
        steps=steps,
        size=_summed(share * size, full=full),
        scale=_summed(share * scale, full=full, exact=bool((count == 1).all())),
        loss_drop=drop,
        bend=bend,
        turn=_summed(turn, full=full),
        curvature=curvature,
        bias=Estimate(misled.value, math.hypot(misled.standard_error, noise), misled.steps, misled.largest_share),
        noise=Estimate(0.0, noise, len(at)),
        residual=residual,
    )


def drawn(rate: float, seed: int) -> Iterator[tuple[int, int]]:
    """Yield which steps to measure, counted from 0, each with the number of steps that it was drawn from.

    One step of each of consecutive blocks, by lots that know nothing of the run; early steps, which move most, stand
    in short blocks. A fixed stride would be unbiased for nothing in particular: the run may have a period.

    Args:
        rate: the share of late steps that is measured.
        seed: of the lots.
    """
    if not 0 < rate <= 1:
        raise TheoremError(f"budget: expected a rate in (0, 1], got {rate!r}")
    lots, start, longest = np.random.default_rng(seed), 0, round(1 / rate)
    while True:
        length = max(1, min(longest, start // _EARLY))
        yield start + int(lots.integers(length)), length
        start += length


def _less(one: Estimate, other: Estimate) -> Estimate:
    error = math.hypot(one.standard_error, other.standard_error)
    return Estimate(one.value - other.value, error, one.steps, one.largest_share)


def _column(observations: Sequence[Observation], name: str) -> Array:
    values = np.array([getattr(one, name) for one in observations], dtype=np.float64)
    if not np.isfinite(values).all():
        at = observations[int(np.argmin(np.isfinite(values)))].index
        raise TheoremError(f"budget: {name} is no finite number at step {at + 1}")
    return values


def _squares(one: Array, other: Array, *, full: bool) -> Array:
    """Return what adds up, in the mean, to at least the sum of the terms' variances, whatever their means are.

    Half the squared differences of neighbours, that of the first two and of the last two once more. Where the last
    block is not full, a step of it may not have been drawn yet: the square of the last term stands for it. For two
    independent measurements of each term, the products.
    """
    found = np.diff(one) * np.diff(other) / 2
    last = found[-1:] if full and len(found) else one[-1:] * other[-1:]
    return np.concatenate([found[:1], found, last])


def _summed(terms: Array, *, full: bool, exact: bool = False) -> Estimate:
    if exact:
        return Estimate(float(terms.sum()), 0.0, len(terms))
    squares = _squares(terms, terms, full=full)
    variance = float(squares.sum())
    largest = float(squares.max()) / variance if variance > 0 else 0.0
    return Estimate(float(terms.sum()), math.sqrt(variance), len(terms), largest)
