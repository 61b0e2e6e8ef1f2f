"""What a bound must know about the function being minimised."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from generic_adam.errors import TheoremError, shown
from generic_adam.theorems.sequences import Array
from generic_adam.theorems.sweep import Part

# A network has millions of coordinates; more distinct bounds than this are rounded up to classes.
_CLASSES, _LEVELS = 64, 1024
# What is inside has squares, and shares of them, that doubles hold: a G^2 of 0 would leave the noise out.
_RANGE, _LARGEST_DIMENSION = (1e-140, 1e140), 10**18
_MAY_BE_ZERO = {"gap", "box", "variance"}
_ONE_EACH = {"gradient_bound", "variance", "gradient_sup"}
_OPTIONAL = {"box", "variance", "gradient_sup"}


class ProblemError(TheoremError):
    """A constant of the problem is missing or impossible; the message is one line."""


@dataclass(frozen=True)
class Problem:
    r"""The constants of assumptions (A1) to (A4), and the start value of the second moment.

    The function :math:`f` is bounded below by :math:`f^*`, its gradient is :math:`L`-Lipschitz, the
    stochastic gradients are unbiased and :math:`\mathbb{E}_t \|g_t\|^2 \le G^2` whatever the past. (The paper
    prints :math:`G` for :math:`G^2`, and its proofs use the bound given the past, :math:`\sigma_t \le G`.)

    Args:
      smoothness: :math:`L > 0`.
      gradient_bound: :math:`G > 0`, the root of the bound on the second moment; or one number for each
        coordinate, :math:`\mathbb{E}_t g_{t,k}^2 \le G_k^2`, which gives bounds up to :math:`\sqrt d`
        smaller.
      dimension: :math:`d`, the number of coordinates.
      gap: :math:`f(x_1) - f^* \ge 0`.
      epsilon: :math:`\epsilon > 0`, the value of every coordinate of :math:`v_0` in the paper's algorithm.
      variance: a bound on :math:`\mathbb{E}_t\|g_t - \nabla f(x_t)\|^2`, or one for each coordinate; where it
        is known, a mini-batch makes the noise smaller than :math:`G`. 0 is the full batch.
      box: :math:`X` with :math:`|x_t|_\infty \le X` for every t, which decoupled weight decay asks for.
      gradient_sup: :math:`|g_{t,k}| \le G_k` almost surely, one number for all coordinates or one for each;
        asked for by AMSGrad and a few others.

    Examples:
      >>> Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1).epsilon
      1e-08
      >>> round(Problem(smoothness=1, gradient_bound=[3, 4], dimension=2, gap=1).total_gradient_bound, 12)
      5.0
    """

    smoothness: float
    gradient_bound: float | Sequence[float]
    dimension: int
    gap: float
    epsilon: float = 1e-8
    variance: float | Sequence[float] | None = field(default=None, kw_only=True)
    box: float | None = field(default=None, kw_only=True)
    gradient_sup: float | Sequence[float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", _dimension(self.dimension))
        for name in ("smoothness", "gap", "epsilon", "box", "gradient_bound", "variance", "gradient_sup"):
            given: Any = getattr(self, name)
            may_be_zero = name in _MAY_BE_ZERO
            # An array or a tensor of no dimension has a length by its type, and is one number.
            many = hasattr(given, "__len__") and not isinstance(given, str) and getattr(given, "ndim", 1)
            if many and name in _ONE_EACH:
                if len(given) != self.dimension:
                    expected = f"expected one for each of {self.dimension} coordinates"
                    raise ProblemError(f"{name} has {len(given)} numbers, {expected}")
                each = (number(f"{name}[{k}]", one, may_be_zero=may_be_zero) for k, one in enumerate(given))
                object.__setattr__(self, name, tuple(each))
            elif given is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, number(name, given, may_be_zero=may_be_zero))

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
        r"""What :math:`\|\nabla f\|_1` is at most with no theorem at all."""
        certain = [part.count * part.gradient for part in self.sup_parts]
        return min(self.gradient_sum_bound, math.fsum(certain) if certain else math.inf)

    @property
    def trivial_l2(self) -> float:
        r"""What :math:`\|\nabla f\|_2^2` is at most with no theorem at all."""
        return min(self.total_gradient_bound, self.sup_norm) ** 2

    @property
    def sup_norm(self) -> float:
        r"""What :math:`\|g_t\|_2` is at most always; infinite where `gradient_sup` is not given."""
        squares = [part.count * part.gradient**2 for part in self.sup_parts]
        return math.sqrt(math.fsum(squares)) if squares else math.inf

    @property
    def total_variance(self) -> float:
        r"""What :math:`\mathbb{E}_t\|g_t - \nabla f(x_t)\|^2` is at most, never more than :math:`G_2^2`."""
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
    def parts(self) -> tuple[Part, ...]:
        r"""The coordinates by their constants; one :math:`G` for all is :math:`G^2/d` for each in the mean.

        More than 64 different constants are rounded up to 64 classes: every bound rises with each of them.
        """
        variances = np.asarray(np.inf if self.variance is None else self.variance, dtype=np.float64)
        if not isinstance(self.gradient_bound, Sequence):
            bound = self.gradient_bound
            noise = min(bound, math.sqrt(np.max(variances)))
            return (Part(self.dimension, bound, noise, bound**2 / self.dimension),)
        bounds = np.asarray(self.gradient_bound, dtype=np.float64)
        return _classes(bounds, np.minimum(bounds, np.sqrt(np.broadcast_to(variances, bounds.shape))))

    @cached_property
    def sup_parts(self) -> tuple[Part, ...]:
        r"""The coordinates by their almost sure bounds; empty where `gradient_sup` is not given."""
        if self.gradient_sup is None:
            return ()
        if isinstance(self.gradient_sup, Sequence):
            bounds = np.asarray(self.gradient_sup, dtype=np.float64)
            return _classes(bounds, bounds)
        bound = self.gradient_sup
        return (Part(self.dimension, bound, bound, bound**2),)


def _classes(bounds: Array, noise: Array) -> tuple[Part, ...]:
    pairs, counts = np.unique(np.stack([bounds, noise], axis=1), axis=0, return_counts=True)
    if len(pairs) > _CLASSES:
        side = _CLASSES if (bounds == noise).all() else math.isqrt(_CLASSES)
        rounded = np.stack([_rounded_up(column, side) for column in (bounds, noise)], axis=1)
        pairs, counts = np.unique(rounded, axis=0, return_counts=True)
    return tuple(Part(int(n), float(g), float(c), float(g) ** 2) for (g, c), n in zip(pairs, counts, strict=True))


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


def number(name: str, value: Any, *, may_be_zero: bool) -> float:
    """A number that is positive, or not negative, and within 1e-140 and 1e140, else a `ProblemError` that names it."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    least, most = _RANGE
    if may_be_zero and 0 < found < least:
        return least  # every bound rises with it
    if not (least <= found <= most or (found == 0 and may_be_zero)):
        expected = "a number that is not negative" if may_be_zero else "a positive number"
        beyond = f", from {least:g} to {most:g}" if 0 < found < math.inf else ""
        raise ProblemError(f"{name} is {shown(value)}, expected {expected}{beyond}")
    return found


def _dimension(value: float) -> int:
    try:
        # A whole float such as 25.6e6 is how people write the size of a network.
        dimension = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        dimension = 0
    if not 1 <= dimension <= _LARGEST_DIMENSION:
        raise ProblemError(f"dimension is {shown(value)}, expected a whole number from 1 to {_LARGEST_DIMENSION:g}")
    return dimension
