r"""Running sums and products as pure functions of t: closed forms, and a table with its continuation.

theta_t = W_{t-1} / W_t and 1 - prod theta_i are defined by recursions, which a function of t cannot run.
Where they have a closed form it is used. Elsewhere the first `TABLE` values come from `Schedule.values`, and
from there on the sums are continued by the Euler-Maclaurin formula with Gauss-Legendre quadrature.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from generic_adam.optax.expressions import Moment, Number, Recursion, evaluate
from generic_adam.schedules import (
    BiasCorrection,
    FloatArray,
    Function,
    Schedule,
    ScheduleError,
    WeightedTheta,
    WeightShare,
)
from generic_adam.schedules.evaluate import split_geometric

TABLE = 2**17
"""How many steps are tabulated: t = 1, ..., 131,072."""

LAST = 2**31
"""The largest t that Optax counts to (its int32 count stays at 2^31 - 1)."""

# Over [a, 2a] a function with its singularity at 0, as t^p (log t)^q, is integrated by n nodes to 5.8^(-2n).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_CHECK_NODES, _CHECK_WEIGHTS = np.polynomial.legendre.leggauss(12)
_AGREEMENT = 1e-13


def closed_form(node: Recursion, moment: Moment) -> Number | None:
    r"""The value where the running sum is geometric: a constant factor, or weights w_t = c rho^t.

    .. math::
        1 - \prod_{i \le t} \theta = -\operatorname{expm1}(t \log \theta), \qquad
        \frac{w_t}{W_t} = \frac{c}{W_0 \rho^{-t} + c (1 - \rho^{-t}) / (1 - \rho^{-1})}

    Args:
        node: the recursion.
        moment: when.

    Returns:
        Its value, or None where the sum is of another form.
    """
    if not has_closed_form(node):
        return None
    if isinstance(node, BiasCorrection):
        missing = node.factor.complement(1)
        return -jnp.expm1(math.log1p(-missing) * moment.time) if missing < 1 else 1.0
    log_rho, rest = split_geometric(node.weights)
    weight = rest(1)
    if log_rho == 0:
        share = weight / (float(node.initial) + weight * moment.time)
    else:
        decay = -log_rho * moment.time
        share = weight / (
            float(node.initial) * jnp.exp(decay) + weight * (jnp.expm1(decay) / math.expm1(-log_rho))
        )
    return 1 - share if isinstance(node, WeightedTheta) else share


def has_closed_form(node: Recursion) -> bool:
    """Whether `closed_form` knows the value."""
    if isinstance(node, BiasCorrection):
        return node.factor.complement.is_constant
    return split_geometric(node.weights)[1].is_constant


def from_table(node: Recursion, moment: Moment) -> Number:
    """The value at any moment, by the closed form or the table; `as_optax_schedule` tells the range."""
    closed = closed_form(node, moment)
    if closed is not None:
        return closed
    if isinstance(node, WeightedTheta):
        return 1 - from_table(WeightShare(node.weights, node.initial), moment)
    table = _tabulate(node)
    index = jnp.clip(moment.count, 0, TABLE - 1).astype(jnp.int32)
    tabulated = jnp.asarray(table.values, moment.time.dtype)[index]
    return jnp.where(moment.time <= TABLE, tabulated, _continued(node, table, moment))


class _Table(NamedTuple):
    """The beginning of a recursion, and what its sum is at TABLE, 2 TABLE, 4 TABLE, ...

    Attributes:
        values: the values at t = 1, ..., TABLE.
        edges: the t at which sums are known.
        sums: W_t or log prod theta_i at the edges.
    """

    values: FloatArray
    edges: FloatArray
    sums: FloatArray


@lru_cache(maxsize=64)
def _tabulate(node: WeightShare | BiasCorrection) -> _Table:
    values = node.values(1, TABLE + 1)
    summand = _summand(node)
    edges, sums = [float(TABLE)], [_sum_at_table_end(node, values)]
    if summand.accepts_real_times and math.isfinite(float(summand.at(float(TABLE)))):
        while edges[-1] < LAST:
            start, end = edges[-1], 2 * edges[-1]
            increment = _increment(summand, start, end, _NODES, _WEIGHTS)
            check = _increment(summand, start, end, _CHECK_NODES, _CHECK_WEIGHTS)
            # Two quadratures that differ mean a kink, a jump or an oscillation, where the formula is wrong.
            if not abs(increment - check) <= _AGREEMENT * abs(increment):
                break
            edges.append(end)
            sums.append(sums[-1] + increment)
    return _Table(values, np.array(edges), np.array(sums))


def _summand(node: WeightShare | BiasCorrection) -> Schedule:
    """w_t, or log theta_t from its complement."""
    if isinstance(node, WeightShare):
        return node.weights
    return Function("log1p", -node.factor.complement)


def _sum_at_table_end(node: WeightShare | BiasCorrection, values: FloatArray) -> float:
    if isinstance(node, WeightShare):
        return node.weights(TABLE) / float(values[-1])
    return math.log1p(-float(values[-1])) if values[-1] < 1 else -math.inf


def _increment(summand: Schedule, start: float, end: float, nodes: FloatArray, weights: FloatArray) -> float:
    r"""The sum of u_i over start < i <= end: the integral from start + 1/2 to end + 1/2, less [u'] / 24."""
    half = (end - start) / 2
    integral = half * float(weights @ summand.at(start + 0.5 + half * (1 + nodes)))
    slopes = np.diff(summand.at([end, end + 1]))[0] - np.diff(summand.at([start, start + 1]))[0]
    return integral - float(slopes) / 24


def _continued(node: WeightShare | BiasCorrection, table: _Table, moment: Moment) -> jax.Array:
    """The value past the table by the same formula; nan where two quadratures did not agree."""
    summand, time = _summand(node), moment.time

    def at(times: jax.Array) -> Number:
        return evaluate(summand, Moment(times - 1, times), _no_recursion)

    if isinstance(node, BiasCorrection) and table.values[-1] == 1:
        return jnp.ones_like(time)  # the product has vanished, and factors below 1 keep it so
    if len(table.edges) == 1:
        return jnp.full_like(time, jnp.nan)
    edges, sums = (jnp.asarray(array, time.dtype) for array in (table.edges, table.sums))
    panel = jnp.clip(jnp.searchsorted(edges, time, side="right") - 1, 0, len(table.edges) - 2)
    start = edges[panel]
    half = (time - start) / 2
    nodes, weights = (jnp.asarray(array, time.dtype) for array in (_NODES, _WEIGHTS))
    integral = half * jnp.sum(weights * at(start[..., None] + 0.5 + half[..., None] * (1 + nodes)), axis=-1)
    slopes = (at(time + 1) - at(time)) - (at(start + 1) - at(start))
    total = sums[panel] + (integral - slopes / 24)
    value = at(time) / total if isinstance(node, WeightShare) else -jnp.expm1(total)
    return jnp.where(time <= edges[-1], value, jnp.nan)


def _no_recursion(node: Recursion, _moment: Moment) -> Number:
    raise ScheduleError(f"{node} is not defined between whole t")
