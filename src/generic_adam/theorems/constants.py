"""The numbers that a bound is computed from: the constants of (A1) to (A4), taken from a `Setting`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from generic_adam.setting import Setting, SettingError, kinds, number
from generic_adam.theorems.sequences import Array
from generic_adam.theorems.sweep import Coordinates

# A network has millions of coordinates; more distinct bounds than this are rounded up to classes.
_CLASSES, _LEVELS = 64, 1024
ALWAYS = ("smoothness", "gradient_bound", "dimension", "gap")
"""The facts that every bound asks for."""


@dataclass(frozen=True)
class Constants:
    r"""The constants of assumptions (A1) to (A4), and the start value of the second moment.

    The function :math:`f` is bounded below by :math:`f^*`, its gradient is :math:`L`-Lipschitz, the
    stochastic gradients are unbiased and :math:`\mathbb{E}_t \|g_t\|^2 \le G^2` whatever the past. (The paper
    prints :math:`G` for :math:`G^2`, and its proofs use the bound given the past, :math:`\sigma_t \le G`.)

    Args:
      smoothness: :math:`L > 0`.
      gradient_bound: :math:`G > 0`, or one :math:`G_k` for each coordinate.
      dimension: :math:`d`.
      gap: :math:`f(x_1) - f^* \ge 0`.
      epsilon: :math:`\epsilon > 0`, the value of every coordinate of :math:`v_0` in the paper's algorithm.
      variance: a bound on the variance of the gradient, or one for each coordinate; None where :math:`G` stands for it.
      weights_bound: :math:`X` with :math:`|x_t|_\infty \le X` for every t.
      gradient_sup: :math:`|g_{t,k}| \le G_k` almost surely, one number for all coordinates or one for each.
      gradient_norm: a number that :math:`\|g_t\|` never exceeds.
      batches_per_epoch: n, the steps of one pass over the data.

    Examples:
      >>> known = Setting(smoothness=1, gradient_bound=[3, 4], dimension=2, gap=1)
      >>> round(Constants.of(known).total_gradient_bound, 12)
      5.0
    """

    smoothness: float
    gradient_bound: float | Sequence[float]
    dimension: int
    gap: float
    epsilon: float = 1e-8
    variance: float | Sequence[float] | None = None
    weights_bound: float | None = None
    gradient_sup: float | Sequence[float] | None = None
    gradient_norm: float | None = None
    batches_per_epoch: int | None = None

    @classmethod
    def of(cls, setting: Setting, epsilon: float = 1e-8) -> Constants:
        """Return the constants that a setting knows or that follow from it.

        Raises:
          SettingError: one of the four that every bound asks for is missing, or the smoothness is 0.
        """
        known = setting.completed()
        missing = [name for name in ALWAYS if not known.knows(name)]
        if missing:
            why = "; ".join(kinds()[name].missing for name in missing)
            raise SettingError(f"a bound: expected {', '.join(missing)} in the setting ({why})")
        number("smoothness", known.smoothness, may_be_zero=False)
        beside = ("variance", "weights_bound", "gradient_sup", "gradient_norm", "batches_per_epoch")
        values = {name: getattr(known, name) for name in (*ALWAYS, *beside)}
        return cls(**values, epsilon=number("epsilon", epsilon, may_be_zero=False))

    @property
    def total_gradient_bound(self) -> float:
        r""":math:`G_2`, with :math:`\mathbb{E}_t\|g_t\|^2 \le G_2^2`; :math:`\|\nabla f\| \le G_2`."""
        bound = self.gradient_bound
        return math.hypot(*bound) if isinstance(bound, Sequence) else bound

    @property
    def gradient_sum_bound(self) -> float:
        r""":math:`G_1 \ge \|\nabla f\|_1`: the sum of the :math:`G_k`, or :math:`\sqrt d\,G`."""
        bound = self.gradient_bound
        return math.fsum(bound) if isinstance(bound, Sequence) else math.sqrt(self.dimension) * bound

    @property
    def trivial_l1(self) -> float:
        r"""The bound on :math:`\|\nabla f\|_1` with no theorem at all."""
        certain = [part.count * part.gradient for part in self.sup_parts]
        norm = math.inf if self.gradient_norm is None else self.gradient_norm
        return min(
            self.gradient_sum_bound, math.fsum(certain) if certain else math.inf, math.sqrt(self.dimension) * norm
        )

    @property
    def trivial_l2(self) -> float:
        r"""The bound on :math:`\|\nabla f\|_2^2` with no theorem at all."""
        return min(self.total_gradient_bound, self.sup_norm) ** 2

    @property
    def sup_norm(self) -> float:
        r"""The bound on :math:`\|g_t\|_2` that always holds; infinite where none is known."""
        squares = [part.count * part.gradient**2 for part in self.sup_parts]
        norm = math.inf if self.gradient_norm is None else self.gradient_norm
        return min(norm, math.sqrt(math.fsum(squares)) if squares else math.inf)

    @property
    def total_variance(self) -> float:
        r"""The bound on :math:`\mathbb{E}_t\|g_t - \nabla f(x_t)\|^2`, never more than :math:`G_2^2`."""
        given = math.inf if self.variance is None else self.variance
        return min(self.total_gradient_bound**2, math.fsum(given) if isinstance(given, Sequence) else given)

    @property
    def second_moment_root(self) -> float:
        r""":math:`\sqrt{G^2 + \epsilon d}`, which bounds the root of :math:`\mathbb{E}\|v_t\|_1`."""
        total = self.total_gradient_bound
        return math.sqrt(total * total + self.epsilon * self.dimension)

    @property
    def start_logarithm(self) -> float:
        r""":math:`\log(1 + G^2 / (\epsilon d))`: what starting from a small :math:`v_0` costs."""
        total = self.total_gradient_bound
        return math.log1p(total * (total / (self.epsilon * self.dimension)))

    @cached_property
    def parts(self) -> tuple[Coordinates, ...]:
        r"""The coordinates by their constants; one :math:`G` for all is :math:`G^2/d` for each in the mean.

        More than 64 different constants are rounded up to 64 classes: every bound rises with each of them.
        """
        variances = np.asarray(np.inf if self.variance is None else self.variance, dtype=np.float64)
        if not isinstance(self.gradient_bound, Sequence):
            bound = self.gradient_bound
            noise = min(bound, math.sqrt(np.max(variances)))
            return (Coordinates(self.dimension, bound, noise, bound**2 / self.dimension),)
        bounds = np.asarray(self.gradient_bound, dtype=np.float64)
        return _classes(bounds, np.minimum(bounds, np.sqrt(np.broadcast_to(variances, bounds.shape))))

    @cached_property
    def sup_parts(self) -> tuple[Coordinates, ...]:
        r"""The coordinates by their almost sure bounds; empty where `gradient_sup` is not given."""
        if self.gradient_sup is None:
            return ()
        if isinstance(self.gradient_sup, Sequence):
            bounds = np.asarray(self.gradient_sup, dtype=np.float64)
            return _classes(bounds, bounds)
        bound = self.gradient_sup
        return (Coordinates(self.dimension, bound, bound, bound**2),)


def _classes(bounds: Array, noise: Array) -> tuple[Coordinates, ...]:
    pairs, counts = np.unique(np.stack([bounds, noise], axis=1), axis=0, return_counts=True)
    if len(pairs) > _CLASSES:
        side = _CLASSES if (bounds == noise).all() else math.isqrt(_CLASSES)
        rounded = np.stack([_rounded_up(column, side) for column in (bounds, noise)], axis=1)
        pairs, counts = np.unique(rounded, axis=0, return_counts=True)
    return tuple(
        Coordinates(int(n), float(g), float(c), float(g) ** 2) for (g, c), n in zip(pairs, counts, strict=True)
    )


def _rounded_up(values: Array, classes: int) -> Array:
    """Round each value up to one of at most `classes` levels, so that their sum grows by little.

    From a thousand levels, evenly spaced in their logarithm, the one is given up that adds the least to the sum.
    """
    levels = np.zeros(_LEVELS)
    if values.any():
        levels[1:] = np.geomspace(values[values > 0].min(), values.max(), _LEVELS - 1)
    levels[-1] = values.max()
    levels, counts = np.unique(levels[np.searchsorted(levels, values)], return_counts=True)
    while len(levels) > classes:
        least = int(np.argmin(counts[:-1] * np.diff(levels)))
        counts[least + 1] += counts[least]
        levels, counts = np.delete(levels, least), np.delete(counts, least)
    return levels[np.searchsorted(levels, values)]
