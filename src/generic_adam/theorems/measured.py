r"""Theorem K.0m, the budget of a run: what the size of the gradient along one run is made of, in measured numbers.

Nothing is asked of the loss (no smoothness, no lower bound) and nothing of the sampler. The steps are
:math:`x_{t+1} = x_t + \alpha_t u_t`, t = t0..T, with any directions :math:`u_t`; :math:`\hat D_t > 0` is any function
of the past (such as a regularised :math:`\sqrt{v_{t-1}}`), :math:`\alpha, \beta, \gamma` are fixed in advance, and

.. math::

    Q_T = \alpha_T, \quad Q_t = \alpha_t + \gamma_{t+1} Q_{t+1}, \qquad
    \pi_t = (1-\beta_t) Q_t, \quad \Pi = \sum_t \pi_t, \qquad
    \varepsilon_t = \frac{\nabla f(x_t)}{\hat D_t} + \frac{\mathbb{E}_t[u_t - \gamma_t u_{t-1}]}{1-\beta_t}.

Then on every path, exactly,

.. math::

    \underbrace{\sum_{t,k} \tfrac{\pi_t}{\Pi} \frac{(\nabla_k f)^2}{\hat D_{t,k}}}_{X} =
    \underbrace{\sum_t \tfrac{\pi_t}{\Pi} \langle\nabla f, \varepsilon_t\rangle}_{\text{bias}} + \frac1\Pi\Big[
    \underbrace{f(x_{t0}) - f(x_{T+1})}_{\text{loss drop}} + \underbrace{\sum_t r_t + \sum_{t>t0} \gamma_t Q_t
    c_t}_{\text{curvature}} + \underbrace{\gamma_{t0} Q_{t0} \langle\nabla f(x_{t0}), u_{t0-1}\rangle}_{\text{start}}
    + \underbrace{\sum_t Q_t \langle\nabla f, u_t - \mathbb{E}_t u_t\rangle}_{\text{noise}}\Big]

with :math:`r_t = f(x_{t+1}) - f(x_t) - \alpha_t\langle\nabla f(x_t), u_t\rangle` and
:math:`c_t = \langle\nabla f(x_t) - \nabla f(x_{t-1}), u_{t-1}\rangle`. With S the weighted mean of
:math:`\sum_k \hat D_{t,k}`, the weighted mean of :math:`\|\nabla f(x_t)\|_1` is at most :math:`\sqrt{S X}`. The
proof, and what may be claimed, are on the page docs/theorems/measured.md. The estimators are in
`generic_adam.torch.budget`; here are plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from generic_adam.errors import TheoremError
from generic_adam.theorems.sequences import Array, backward

RELIABLE_SHARE = 0.2
"""The largest share of a variance that one step may carry before the estimate is called unreliable."""

# Normal quantiles: one-sided 95 %, and 97.5 % for each of two limits that are to hold together.
_ONE, _EACH_OF_TWO = 1.6449, 1.96


@dataclass(frozen=True)
class Estimate:
    """A measured number with its standard error.

    Attributes:
        value: the estimate.
        standard_error: the root of the sum of squares that estimates its variance; it errs on the large side.
        steps: the number of steps that it was measured at; 0 for a number that is known exactly.
        largest_share: the share of the variance that the heaviest step carries.
    """

    value: float
    standard_error: float = 0.0
    steps: int = 0
    largest_share: float = 0.0

    @property
    def reliable(self) -> bool:
        """Whether no single step carries more than a fifth of the variance, so that the normal law may be used."""
        return self.largest_share <= RELIABLE_SHARE

    @property
    def upper(self) -> float:
        """The upper end of a one-sided 95 % interval; asymptotic, by the central limit theorem of martingales."""
        return self.value + _ONE * self.standard_error


@dataclass(frozen=True, eq=False)
class Weights:
    r"""The weights of the steps t0..T.

    Attributes:
        reach: :math:`Q_t`, how much learning rate a direction is still carried with.
        inherited: :math:`\gamma_t Q_t`, the part of it that the direction before inherits.
        weight: :math:`\pi_t = (1-\beta_t) Q_t`.
        total: :math:`\Pi`.
    """

    reach: Array
    inherited: Array
    weight: Array
    total: float


def weights(alpha: ArrayLike, beta: ArrayLike, gamma: ArrayLike | None = None) -> Weights:
    r"""Return Q, :math:`\gamma Q`, :math:`\pi` and :math:`\Pi` of the steps.

    Args:
        alpha: the learning rates :math:`\alpha_t`, one for each step, the bias correction folded in.
        beta: :math:`\beta_t`, one number or one for each step.
        gamma: :math:`\gamma_t`, the share of the direction that is inherited; None takes :math:`\beta_t`. torch's Adam
            has :math:`\beta\sqrt{(1-\theta^{t-1})/(1-\theta^t)}`.

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
    reach = backward(rates, np.array(kept))
    weight = (1 - betas) * reach
    if not 0 < weight.sum() < math.inf:
        raise TheoremError("budget: every learning rate is 0, so that no step has a weight")
    return Weights(reach, kept * reach, weight, float(weight.sum()))


@dataclass(frozen=True)
class Observation:
    r"""One measured step: what two independent mini-batches g and h at :math:`x_t` say of it.

    Attributes:
        index: t - t0.
        size: :math:`\sum_k g_k h_k/\hat D_k`, unbiased for :math:`\sum_k (\nabla_k f)^2/\hat D_k`.
        scale: :math:`\sum_k \hat D_k`, exact.
        bias: unbiased for :math:`\langle\nabla f, \varepsilon_t\rangle`; None where it cannot be measured (h must have
            the law of g given the past, which a second batch of the same shuffled epoch does not have).
        bias_square: unbiased for :math:`\sum_k \hat D_k \varepsilon_{t,k}^2`; None likewise.
        remainder: unbiased for :math:`r_t`.
        turn: unbiased for :math:`c_{t+1}`.
        slope: :math:`\langle h, u_t\rangle`, for the size of the noise.
        probability: the probability with which the step was drawn, in advance, to be measured.
    """

    index: int
    size: float
    scale: float
    remainder: float
    turn: float
    slope: float
    bias: float | None = None
    bias_square: float | None = None
    probability: float = 1.0


@dataclass(frozen=True)
class Budget:
    r"""The budget of a run: size = bias + loss_drop + curvature + start + noise, each in the unit of X.

    Attributes:
        steps: the number of steps, T - t0 + 1.
        size: X, the weighted mean of :math:`\sum_k (\nabla_k f)^2/\hat D_k`.
        scale: S, the weighted mean of :math:`\sum_k \hat D_k`; size/scale has no unit.
        loss_drop: what the loss fell, over :math:`\Pi`: the run was still descending.
        remainder: the first part of the curvature, :math:`\sum r_t/\Pi`: the loss bends along the steps.
        turn: the second part, :math:`\sum \gamma_t Q_t c_t/\Pi`: the gradient turns under the momentum.
        curvature: their sum, which the learning rate makes.
        start: what the direction inherited at the start; 0 for a run from its first step.
        bias: what Adam's scaling costs (beta1, beta2, eps, clipping, decay); None where it was not measured.
        bias_square: F; :math:`|\text{bias}| \le \sqrt{X F}`; None likewise.
        noise: a martingale: its mean is 0, and its standard error is its size.
        residual: size less all the parts but the noise, with the standard error of noise and estimates together; None
            where the bias was not measured.
    """

    steps: int
    size: Estimate
    scale: Estimate
    loss_drop: Estimate
    remainder: Estimate
    turn: Estimate
    curvature: Estimate
    start: Estimate
    noise: Estimate
    bias: Estimate | None = None
    bias_square: Estimate | None = None
    residual: Estimate | None = None

    @property
    def closes(self) -> bool | None:
        """Whether the parts add up to the size within two standard errors; None where the bias was not measured.

        Where they do not, something else moves the weights, or the gradients that are used are not those of the loss
        (batch norm, dropout in one of the two, a shuffled epoch).
        """
        return None if self.residual is None else abs(self.residual.value) <= 2 * self.residual.standard_error

    @property
    def shares(self) -> dict[str, float]:
        """The parts as shares of their sum; empty where the sum is not positive by two standard errors of the size."""
        parts = {"loss_drop": self.loss_drop, "curvature": self.curvature, "start": self.start}
        if self.bias is not None:
            parts["bias"] = self.bias
        total = math.fsum(part.value for part in parts.values())
        if not total > 2 * self.size.standard_error:
            return {}
        return {name: part.value / total for name, part in parts.items()}

    @property
    def mean_l1(self) -> float:
        r"""What the weighted mean of :math:`\|\nabla f(x_t)\|_1` along this run is at most, asymptotic 95 %.

        :math:`\sqrt{S X}` at the upper limits; of this run alone, and `reliable` says whether the limit may be used.
        """
        quantile = _EACH_OF_TWO if self.scale.standard_error else _ONE
        size, scale = (max(one.value + quantile * one.standard_error, 0.0) for one in (self.size, self.scale))
        return math.sqrt(size * scale)

    @property
    def reliable(self) -> bool:
        """Whether no single step carries more than a fifth of the variance of a part."""
        parts = (self.size, self.scale, self.curvature, self.noise, self.bias)
        return all(part.reliable for part in parts if part is not None)


def budget(
    weighing: Weights,
    observations: Sequence[Observation],
    first_loss: Estimate | float,
    last_loss: Estimate | float,
    *,
    start: float = 0.0,
    next_batch: bool = True,
) -> Budget:
    r"""Add a run's measurements up to its budget.

    Args:
        weighing: the weights of all steps, measured or not.
        observations: the measured steps; which ones, coin flips have decided in advance.
        first_loss: f at :math:`x_{t0}`, evaluated by itself (on the whole training set, say).
        last_loss: f at :math:`x_{T+1}`, likewise; or a lower bound of f (then the budget need not close).
        start: :math:`\langle g_{t0}, u_{t0-1}\rangle`, where the run was joined later than at its first step.
        next_batch: whether h is the batch of the step after, at the old point: errors of neighbours then go together,
            and standard errors grow by the root of 2.

    Raises:
        TheoremError: nothing was measured, or a measurement is no finite number or belongs to no step.
    """
    if not observations:
        raise TheoremError("budget: no step was measured")
    steps = len(weighing.weight)
    at = np.array([one.index for one in observations])
    if at.min() < 0 or at.max() >= steps or len(set(at.tolist())) < len(at):
        raise TheoremError(f"budget: expected different steps from 0 to {steps - 1}, got {sorted(at.tolist())[:8]}")
    chance = _column(observations, "probability")
    if not ((chance > 0) & (chance <= 1)).all():
        raise TheoremError("budget: expected probabilities in (0, 1]")
    total, neighbours = weighing.total, 2.0 if next_batch else 1.0
    share = weighing.weight[at] / total
    # Of the last step there is no c_{T+1}: nothing inherits from it.
    later = np.append(weighing.inherited[1:], 0.0)[at] / total
    size = share * _column(observations, "size")
    remainder, turn = _column(observations, "remainder") / total, later * _column(observations, "turn")
    noise = _summed(weighing.reach[at] / total * _column(observations, "slope"), chance)
    first, last = (one if isinstance(one, Estimate) else Estimate(float(one)) for one in (first_loss, last_loss))
    drop = Estimate((first.value - last.value) / total, math.hypot(first.standard_error, last.standard_error) / total)
    beginning = float(weighing.inherited[0]) * start / total
    known = all(one.bias is not None and one.bias_square is not None for one in observations)
    bias = bias_square = residual = None
    if known:
        biases = share * _column(observations, "bias")
        bias = _summed(biases, chance, neighbours)
        bias_square = _summed(share * _column(observations, "bias_square"), chance, neighbours)
        left = _summed(size - biases - remainder - turn, chance, neighbours)
        # The noise and the estimates' errors are not independent: under Adam the new gradient g enters the one with
        # -g and the other with +g, so that they go against each other and the sum of squares errs on the large side.
        error = math.hypot(left.standard_error, noise.standard_error, drop.standard_error, beginning)
        residual = Estimate(left.value - drop.value - beginning, error, len(at), left.largest_share)
    scale = share * _column(observations, "scale")
    return Budget(
        steps=steps,
        size=_summed(size, chance, neighbours),
        scale=_summed(scale, chance, spread=1 - chance),
        loss_drop=drop,
        remainder=_summed(remainder, chance),
        turn=_summed(turn, chance),
        curvature=_summed(remainder + turn, chance),
        start=Estimate(beginning, abs(beginning), int(beginning != 0)),
        noise=Estimate(0.0, noise.standard_error, noise.steps, noise.largest_share),
        bias=bias,
        bias_square=bias_square,
        residual=residual,
    )


def size_at_most(explained: float, bias_square: float) -> float:
    r"""Return :math:`(\sqrt{a + F/4} + \sqrt{F/4})^2`, which X does not exceed.

    It grows in both, so that upper limits may stand for them; a one-batch square is such a limit of F in the mean.

    Args:
        explained: a, the loss drop, the curvature, the start and the noise together.
        bias_square: F.
    """
    if not (bias_square >= 0 and explained >= -bias_square / 4):
        raise TheoremError(f"budget: expected F >= 0 and a >= -F/4, got a = {explained:g}, F = {bias_square:g}")
    return (math.sqrt(explained + bias_square / 4) + math.sqrt(bias_square / 4)) ** 2


def drawn(steps: int, rate: float, seed: int) -> NDArray[np.bool_]:
    """Return which of the steps to measure, as booleans: coin flips that know nothing of the run.

    A fixed stride would be unbiased for nothing in particular: the run may have a period.
    """
    if not 0 < rate <= 1:
        raise TheoremError(f"budget: expected a rate in (0, 1], got {rate!r}")
    return np.random.default_rng(seed).random(steps) < rate


def _column(observations: Sequence[Observation], name: str) -> Array:
    values = np.array([getattr(one, name) for one in observations], dtype=np.float64)
    if not np.isfinite(values).all():
        at = observations[int(np.argmin(np.isfinite(values)))].index
        raise TheoremError(f"budget: {name} is no finite number at step {at + 1}")
    return values


def _summed(terms: Array, chance: Array, neighbours: float = 1.0, spread: Array | float = 1.0) -> Estimate:
    """Return the sum over all steps, estimated from those that were drawn.

    Each term stands for 1/chance of them. The terms' errors are martingale differences, so that variances add up; the
    square of a whole term, its mean included, is at least its share of the variance. A term without an error of its
    own has only that of the draw, `spread` = 1 - chance of it.
    """
    scaled = terms / chance
    squares = neighbours * spread * scaled**2
    variance = float(squares.sum())
    largest = float(squares.max()) / variance if variance > 0 else 0.0
    return Estimate(float(scaled.sum()), math.sqrt(variance), len(terms), largest)
