"""The growth of each node from those of its parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from generic_adam.schedules.evaluate import log_of
from generic_adam.schedules.growth import ONE, UNKNOWN_CONSTANT, ZERO, GeometricBase, Growth
from generic_adam.schedules.normal import as_linear
from generic_adam.schedules.tree import (
    Add,
    BiasCorrection,
    Bounded,
    Constant,
    Divide,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    OfWeights,
    Opaque,
    Periodic,
    Power,
    Schedule,
    Subtract,
    Time,
    WeightedTheta,
    WeightShare,
    order_of,
)


@order_of.rule(Constant)
def _(node: Constant) -> Growth:
    return growth_of_number(node.value)


def growth_of_number(value: Fraction) -> Growth:
    """The growth of a constant sequence, with an enclosure of what a float loses of the number."""
    number = float(value)
    if number == 0:
        return ZERO
    if Fraction(number) == value:
        return Growth(number, number)
    return Growth(math.nextafter(number, -math.inf), math.nextafter(number, math.inf))


@order_of.rule(Time)
def _(_node: Time) -> Growth:
    return Growth(1.0, 1.0, ONE, Fraction(1))


@order_of.rule(Add)
def _(node: Add) -> Growth | None:
    left, right = node.left.order, node.right.order
    return left + right if left is not None and right is not None else None


@order_of.rule(Subtract)
def _(node: Subtract) -> Growth | None:
    left, right = node.left.order, node.right.order
    return left + (-right) if left is not None and right is not None else None


@order_of.rule(Multiply)
def _(node: Multiply) -> Growth | None:
    left, right = node.left.order, node.right.order
    return left * right if left is not None and right is not None else None


@order_of.rule(Divide)
def _(node: Divide) -> Growth | None:
    left, right = node.left.order, node.right.order
    inverse = right.inverse() if right is not None else None
    return left * inverse if left is not None and inverse is not None else None


@order_of.rule(Negate)
def _(node: Negate) -> Growth | None:
    return -node.operand.order if node.operand.order is not None else None


@order_of.rule(Maximum)
def _(node: Maximum) -> Growth | None:
    left, right = node.left.order, node.right.order
    return left.largest(right) if left is not None and right is not None else None


@order_of.rule(Minimum)
def _(node: Minimum) -> Growth | None:
    left, right = node.left.order, node.right.order
    return -((-left).largest(-right)) if left is not None and right is not None else None


@order_of.rule(Join)
def _(node: Join) -> Growth | None:
    return node.after.order


@order_of.rule(Periodic)
def _(node: Periodic) -> Growth | None:
    low, high = node.extremes
    return Growth(low, high) if math.isfinite(low) and math.isfinite(high) else None


@order_of.rule(Bounded)
def _(node: Bounded) -> Growth:
    return Growth(node.low, node.high)


@order_of.rule(Opaque)
def _(_node: Opaque) -> None:
    return None


@order_of.rule(Power)
def _(node: Power) -> Growth | None:
    base, exponent = node.left, node.right
    if isinstance(exponent, Constant):
        return base.order.raised_to(exponent.value) if base.order is not None else None
    if isinstance(base, Constant) and base.value > 0:
        return _exponential_growth(base.value, exponent)
    return None


def _exponential_growth(base: Fraction, exponent: Schedule) -> Growth | None:
    """The growth of base^exponent for a number base: geometric where the exponent is a t + b."""
    linear = as_linear(exponent)
    if linear is not None:
        slope, offset = linear
        start = growth_of_number(base).raised_to(offset)
        rho = GeometricBase.from_rational(base) ** slope
        return start * Growth(1.0, 1.0, rho) if start is not None else None
    limits = exponent.order
    if limits is None or limits.trend > 0:
        return None
    low, high = (limits.low, limits.high) if limits.trend == 0 else (0.0, 0.0)
    rate = log_of(base)
    return growth_of_exp(*sorted((rate * low, rate * high)))


def growth_of_exp(low: float, high: float) -> Growth:
    """e^x with the limit points of x in [low, high], which may be off by a few ulp."""
    low = min(low, 700.0)
    low, high = low - 8 * math.ulp(low), high + 8 * math.ulp(high)
    bottom = math.exp(low) * (1 - 1e-15) if low > -700 else 0.0
    top = math.exp(high) * (1 + 1e-15) if high < 700 else math.inf
    return Growth(max(bottom, math.ulp(0.0)), max(top, math.ulp(0.0)))


@order_of.rule(Function)
def _(node: Function) -> Growth | None:
    inner = node.argument.order
    if node.name in {"sin", "cos"}:
        return Growth(-1.0, 1.0)
    if node.name == "exp":
        return _growth_of_exp(node.argument)
    if inner is None:
        return None
    if node.name == "sqrt":
        return inner.raised_to(Fraction(1, 2))
    if node.name == "abs":
        return _growth_of_abs(inner)
    if node.name == "expm1":
        return _near_zero_or(inner, lambda: _growth_of_exp(node.argument), -1.0)
    if node.name == "log1p":
        return _near_zero_or(inner, (Growth(1.0, 1.0) + inner).logarithm, 0.0)
    return _growth_of_log(node, inner)


def _growth_of_log(node: Function, inner: Growth) -> Growth | None:
    # log(1 + x) with x -> 0 is of the order of x; the general rule would only see log 1 = 0.
    if isinstance(node.argument, Add):
        for one, rest in (
            (node.argument.left, node.argument.right),
            (node.argument.right, node.argument.left),
        ):
            if one == Constant(Fraction(1)) and rest.order is not None and rest.order.trend < 0:
                return rest.order
    return inner.logarithm()


def _growth_of_abs(inner: Growth) -> Growth:
    if inner.sign:
        return inner if inner.sign > 0 else -inner
    return replace(inner, low=0.0, high=max(-inner.low, inner.high))


def _growth_of_exp(argument: Schedule) -> Growth | None:
    linear = as_linear(argument)
    if linear is not None:
        slope, offset = linear
        return growth_of_exp(float(offset), float(offset)) * Growth(
            1.0, 1.0, GeometricBase.from_exponential(slope)
        )
    inner = argument.order
    if inner is None or inner.trend > 0:
        return None
    return growth_of_exp(inner.low, inner.high) if inner.trend == 0 else growth_of_exp(0.0, 0.0)


def _near_zero_or(inner: Growth, otherwise: Callable[[], Growth | None], shift: float) -> Growth | None:
    """expm1(x) and log1p(x) are of the order of x where x -> 0; elsewhere the general rule holds."""
    if inner.is_zero:
        return ZERO
    if inner.trend < 0:
        return inner
    general = otherwise()
    return general if general is None or shift == 0 else general + Growth(shift, shift)


def _growth_of_share(node: OfWeights) -> Growth | None:
    weights = node.weights.growth
    if weights is None or weights.sign <= 0:
        return None
    sums = weights.partial_sums()
    if sums is None:
        return None
    if sums.trend == 0:
        # W_0 counts beside a convergent sum; only its being a positive constant is used.
        sums = UNKNOWN_CONSTANT
    if weights.rho.sign_of_log > 0:
        limit = -math.expm1(-weights.rho.log)
        if weights.low < weights.high * (1 - 1e-9):
            # A factor that swings: w_t / W_t stays between two positive constants.
            return Growth(limit * weights.low / weights.high, 1.0)
        return Growth(limit * (1 - 1e-8), min(1.0, limit * (1 + 1e-8)))
    inverse = sums.inverse()
    return weights * inverse if inverse is not None else None


@order_of.rule(WeightShare)
def _(node: WeightShare) -> Growth | None:
    return _growth_of_share(node)


@order_of.rule(WeightedTheta)
def _(node: WeightedTheta) -> Growth | None:
    share = _growth_of_share(node)
    # Off a limit of 1, 1 - share is exact only where the share tends to 0.
    return None if share is None else Growth(1.0, 1.0) + (-share)


@order_of.rule(BiasCorrection)
def _(node: BiasCorrection) -> Growth | None:
    # It rises from 1 - factor_1 to a limit of at most 1, and tends to 1 where the product tends to 0.
    missing = node.factor.complement.growth
    if missing is None or missing.sign <= 0:
        return None
    sums = missing.partial_sums()
    if sums is None or sums.trend <= 0:
        return UNKNOWN_CONSTANT if sums is None else Growth(max(node(1), math.ulp(0.0)), 1.0, ONE)
    return Growth(1.0, 1.0)
