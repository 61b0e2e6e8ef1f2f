r"""Schedules as functions that JAX can trace: one rule for each node, and running sums as functions of t.

theta_t = W_{t-1} / W_t and 1 - prod theta_i are defined by recursions, which a function of t cannot run: they are
closed forms or a table. `RunningSchedules` runs them, inside a transformation, which has a state.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import ScheduleLike
from generic_adam.methods.catalogue import corrected, corrected_eps
from generic_adam.methods.method import check_sequence
from generic_adam.schedules import FloatArray, Schedule, ScheduleError, as_schedule, tree
from generic_adam.schedules.evaluate import decay_of, split_geometric
from generic_adam.schedules.growth import GeometricBase

TABLE = 2**17
"""How many steps of a running sum are tabulated: t = 1, ..., 131,072."""

Number = jax.Array | float
Running = tree.WeightShare | tree.BiasCorrection
"""The nodes that are defined by a running sum or product; theta_t from weights is 1 minus its share."""


class Instant(NamedTuple):
    """The step at which schedules are evaluated.

    Attributes:
        count: t - 1 as a whole number, so that thresholds and periods are exact at any t.
        time: t as a float of the default precision; in float32 exact up to 2^24, and within 6e-8 from there on.
        running: the values of running sums and products that a state carries.
    """

    count: jax.Array
    time: jax.Array
    running: Mapping[Running, Number]


def moment_after(count: ArrayLike, running: Mapping[Running, Number]) -> Instant:
    """Return t = count + 1: the one place where Optax's counting from 0 meets the paper's from 1."""
    whole = jnp.asarray(count)
    return Instant(whole, whole.astype(jnp.result_type(float)) + 1, running)


@dataclass(frozen=True)
class Counted:
    """A function of Optax's count, 0 first, as a function of t = 1, 2, 3, ..."""

    function: Callable[[Any], Any]

    def __call__(self, t: ArrayLike) -> Any:
        """f(t - 1)."""
        return self.function(t - 1)


@dataclass(frozen=True)
class OptaxSchedule:
    """count -> u_{count + 1} of a schedule u: what `as_optax_schedule` returns."""

    schedule: Schedule

    def __call__(self, count: ArrayLike) -> jax.Array:
        """u_t at t = count + 1, in JAX's default precision."""
        moment = moment_after(count, {})
        value = jnp.asarray(evaluate(self.schedule, moment), moment.time.dtype)
        return jnp.broadcast_to(value, moment.time.shape)


def as_optax_schedule(schedule: ScheduleLike | OptaxSchedule) -> OptaxSchedule:
    r"""Make a function of Optax's count that JAX can trace, equal to a schedule; one of Optax's own is itself.

    Optax counts from 0, schedules here t = 1, 2, 3, ...: the function returns :math:`u_{count + 1}`. With
    ``jax_enable_x64`` it agrees with ``schedule.values`` to 1e-12; without, all is float32 but thresholds and periods,
    which are exact. A value close to 1 keeps 24 bits: take ``as_optax_schedule(1 - as_schedule(theta))``.

    Running sums and products (``theta_from_weights``, ``bias_correction``) that are not geometric are read from a table
    for t up to 131,072, and are nan past it. `generic_adam` carries its sums in its state, without such a limit but
    inside `periodic`.

    Raises:
        ScheduleError: when called while JAX traces, if the schedule holds a callable that cannot be traced.

    Examples:
        >>> learning_rate = as_optax_schedule("0.5 / sqrt(t)")
        >>> float(learning_rate(3))
        0.25
    """
    return OptaxSchedule(schedule_of(schedule))


def schedule_of(value: ScheduleLike | OptaxSchedule) -> Schedule:
    """Return the schedule of t = 1, 2, ... that a value stands for; Optax's own is known by its module."""
    if isinstance(value, OptaxSchedule):
        return value.schedule
    if callable(value) and (getattr(value, "__module__", None) or "").partition(".")[0] == "optax":
        return tree.Opaque(Counted(value), getattr(value, "__qualname__", "optax schedule").partition(".")[0])
    return as_schedule(value)


def evaluate(node: Schedule, moment: Instant) -> Number:
    """u_t at a moment, as operations of jax.numpy: a Python number where the schedule is constant."""
    constant = node.constant_value
    return TRACED[type(node)](node, moment) if constant is None else constant


Rule = Callable[[Any, Instant], Number]
TRACED: tree.Table[Rule] = tree.Table("JAX")
"""Node, moment -> u_t as operations that JAX can trace."""


def _of_two(operation: Callable[[Any, Any], Any]) -> Rule:
    return lambda node, moment: operation(evaluate(node.left, moment), evaluate(node.right, moment))


def _exponent_of_constant(node: Schedule, moment: Instant) -> Number | None:
    """Return the exponent y log(b) of b^y with a number b > 0; the logarithm is that of the exact base.

    In float32 the t-th power of a rounded 0.999 drifts.
    """
    if isinstance(node, tree.Power) and isinstance(node.left, tree.Constant) and node.left.value > 0:
        return GeometricBase.from_rational(node.left.value).log * evaluate(node.right, moment)
    return None


def _power(node: tree.Power, moment: Instant) -> Number:
    exponent = _exponent_of_constant(node, moment)
    return _of_two(jnp.power)(node, moment) if exponent is None else jnp.exp(exponent)


def _subtract(node: tree.Subtract, moment: Instant) -> Number:
    # 1 - 0.999^t, as people write the bias correction: the difference would keep four digits in float32.
    exponent = _exponent_of_constant(node.right, moment) if node.left.constant_value == 1 else None
    return _of_two(operator.sub)(node, moment) if exponent is None else -jnp.expm1(exponent)


def _join(node: tree.Join, moment: Instant) -> Number:
    threshold, count = node.threshold - 1, moment.count
    before = evaluate(node.before, moment)
    if jnp.issubdtype(count.dtype, jnp.integer) and threshold > jnp.iinfo(count.dtype).max:
        return before
    return jnp.where(count < threshold, before, evaluate(node.after, moment))


def _opaque(node: tree.Opaque, moment: Instant) -> Number:
    """Call a user's function of t, as it is where t is known, else traced; one of Optax's count by that."""
    function, shape, dtype = node.function, moment.time.shape, moment.time.dtype
    if not isinstance(function, Counted) and not isinstance(moment.count, Tracer):
        return jnp.asarray([node(int(c) + 1) for c in np.ravel(moment.count)], dtype).reshape(shape)
    try:
        value = function.function(moment.count) if isinstance(function, Counted) else function(moment.time)
        result = jnp.asarray(value, dtype)
    except Exception as error:
        raise ScheduleError(
            f"{node} cannot be traced by JAX ({type(error).__name__}): "
            "write it as text, or with jax.numpy operations on t and without `if`, math or numpy"
        ) from error
    if result.shape not in {(), shape}:
        raise ScheduleError(f"{node} returned an array of shape {result.shape}; expected one number for each t")
    return result


def _running(node: Running, moment: Instant) -> Number:
    """By a closed form, from the state, or from the table, which is nan past the end that `as_optax_schedule` tells."""
    closed = closed_form(node)
    if closed is not None:
        return closed(moment.time)
    if node in moment.running:
        return moment.running[node]
    values = jnp.asarray(_table(node), moment.time.dtype)
    return jnp.where(moment.count < TABLE, values[jnp.clip(moment.count, 0, TABLE - 1).astype(jnp.int32)], jnp.nan)


TRACED.update(
    {
        tree.Constant: lambda node, _moment: float(node.value),
        tree.Time: lambda _node, moment: moment.time,
        tree.Add: _of_two(operator.add),
        tree.Subtract: _subtract,
        tree.Multiply: _of_two(operator.mul),
        tree.Divide: _of_two(operator.truediv),
        tree.Power: _power,
        tree.Maximum: _of_two(jnp.maximum),
        tree.Minimum: _of_two(jnp.minimum),
        tree.Negate: lambda node, moment: -evaluate(node.operand, moment),
        tree.Function: lambda node, moment: getattr(jnp, node.name)(evaluate(node.argument, moment)),
        tree.Join: _join,
        tree.Bounded: lambda node, moment: evaluate(node.operand, moment),
        # t starts anew, so that sums of the state are those of another t
        tree.Periodic: lambda node, moment: evaluate(node.body, moment_after(moment.count % node.period, {})),
        tree.WeightedTheta: lambda node, moment: 1 - evaluate(node.complement, moment),
        tree.WeightShare: _running,
        tree.BiasCorrection: _running,
        tree.Opaque: _opaque,
    }
)


def closed_form(node: Running) -> Callable[[jax.Array], jax.Array] | None:
    r"""Return the value as a function of t where the running sum is geometric, else None.

    .. math::
        1 - \prod_{i \le t} \theta = -\operatorname{expm1}(t \log \theta), \qquad
        \frac{w_t}{W_t} = \frac{c}{W_0 \rho^{-t} + c (1 - \rho^{-t}) / (1 - \rho^{-1})}

    for a constant factor theta, and for weights w_t = c rho^t.
    """
    if isinstance(node, tree.BiasCorrection):
        decay = decay_of(node)
        return None if decay is None else lambda time: -jnp.expm1(-decay * time)
    log_rho, rest = split_geometric(node.weights)
    weight, initial = rest.constant_value, float(node.initial)
    if weight is None:
        return None
    if log_rho == 0:
        return lambda time: weight / (initial + weight * time)
    scale = weight / math.expm1(-log_rho)
    return lambda time: weight / (initial * jnp.exp(-log_rho * time) + scale * jnp.expm1(-log_rho * time))


@lru_cache(maxsize=64)
def _table(node: Running) -> FloatArray:
    return node.values(1, TABLE + 1)


# The numbers of one step (beta_t, 1 - theta_t, ...), with running sums carried from step to step: exact for any weights
# or factors, at one addition a step, for ever.

CoefficientLike = ScheduleLike | OptaxSchedule | jax.Array | np.ndarray


class RunningSum(NamedTuple):
    """A sum, rounded, and the rest that rounding has lost: float32 then adds 1 to 2^24 as float64 does."""

    high: jax.Array
    low: jax.Array

    def plus(self, increment: ArrayLike, growth: float = 0.0) -> "RunningSum":
        """Return the sum times 1 + growth, with one more term, by Knuth's error-free addition."""
        # A factor close to 1 is a term too: multiplied in, its rounding would add up over all the steps that it spans.
        close = abs(growth) < 0.5
        before = self.high if close else (1 + growth) * self.high
        term = (1 + growth) * self.low + increment + (growth * self.high if close else 0)
        high = before + term
        part = high - before
        low = (before - (high - part)) + (term - part)
        return RunningSum(high, jnp.where(jnp.isfinite(low), low, 0))


def as_coefficient(name: str, value: CoefficientLike) -> Schedule:
    """Read the schedule of "alpha", "beta", "theta" or "eps", checked as a method's is.

    A JAX array is a number for every t that may be known only when traced, and is taken as it is.
    """
    if isinstance(value, np.ndarray) and value.shape == ():
        value = cast("float", value.item())
    if isinstance(value, jax.Array | np.ndarray):
        if value.shape != ():
            raise OptimizerError(f"{name}: expected one number, got an array of shape {value.shape}")
        return tree.Opaque(Counted(lambda _count: jnp.asarray(value)), "given array")
    try:
        schedule = schedule_of(value)
        if name == "eps":
            check_number(name, schedule(1), "a finite number >= 0", lambda eps: 0 <= eps < math.inf)
        else:
            check_sequence(name, schedule)
    except ScheduleError as error:
        raise OptimizerError(f"{name}: {error}") from error
    return schedule


def check_number(name: str, value: object, expected: str, accepted: Callable[[Any], bool]) -> None:
    """Raise unless the value is a number that is accepted, or an array, which JAX may trace and is let pass."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (isinstance(value, jax.Array | np.ndarray) or (number and accepted(value))):
        raise OptimizerError(f"{name} is {value!r}; expected {expected}")


class RunningSchedules:
    """The sequences that the steps t = 1, 2, 3, ... need, each checked, and the running sums inside them.

    1 - beta_t and 1 - theta_t come from schedules of their own, so that they keep all their digits; the bias
    correction (Kingma and Ba's, where it is asked for) is a part of alpha_t and of eps, as in every algorithm.
    """

    def __init__(
        self,
        alpha: CoefficientLike,
        beta: CoefficientLike,
        theta: CoefficientLike,
        eps: CoefficientLike,
        *,
        bias_correction: bool = False,
    ) -> None:
        given = {"alpha": alpha, "beta": beta, "theta": theta, "eps": eps}
        self.schedules = {name: as_coefficient(name, value) for name, value in given.items()}
        rate, momentum, second_moment, offset = self.schedules.values()
        if bias_correction:
            self.schedules["alpha"] = corrected(rate, momentum, second_moment)
            self.schedules["eps"] = corrected_eps(offset, second_moment)
        self.schedules |= {"one_minus_beta": 1 - momentum, "one_minus_theta": 1 - second_moment}
        self._running = tuple(dict.fromkeys(n for one in self.schedules.values() for n in _running_sums(one)))

    def start(self) -> tuple[RunningSum, ...]:
        """Return the sums before the first step: W_0, and 0 for 1 minus a product."""
        firsts = (float(n.initial) if isinstance(n, tree.WeightShare) else 0.0 for n in self._running)
        dtype = jnp.result_type(float)
        return tuple(RunningSum(jnp.asarray(one, dtype), jnp.asarray(0.0, dtype)) for one in firsts)

    def numbers_at(
        self, count: ArrayLike, sums: tuple[RunningSum, ...]
    ) -> tuple[dict[str, Number], tuple[RunningSum, ...]]:
        """Return the values by name at t = count + 1, and the sums after this step."""
        values: dict[Running, Number] = {}
        now, following = moment_after(count, values), []
        for node, total in zip(self._running, sums, strict=True):
            if isinstance(node, tree.WeightShare):
                # In units of rho^t, so that weights c_t rho^t cannot overflow.
                log_rho, rest = split_geometric(node.weights)
                weight = evaluate(rest, now)
                following.append(total.plus(weight, math.expm1(-log_rho)))
                values[node] = weight / following[-1].high
            else:
                # 1 - P_t = (1 - P_{t-1}) + (1 - theta_t) P_{t-1}: positive terms only, and nothing cancels.
                missing = evaluate(node.factor.complement, now)
                following.append(total.plus(missing * ((1 - total.high) - total.low)))
                values[node] = following[-1].high
        numbers = {name: evaluate(one, now) for name, one in self.schedules.items()}
        # On processors XLA runs loops as their numbers are known: an array's m and v together, its gradient read once.
        numbers["one_minus_beta"] += 0 * numbers["one_minus_theta"]
        return numbers, tuple(following)


def _running_sums(node: Schedule) -> Iterator[Running]:
    """List the running sums that an expression needs and no closed form gives, the innermost first."""
    if isinstance(node, tree.Periodic):  # where t starts anew, and a table serves
        return
    if isinstance(node, tree.WeightedTheta):
        node = node.complement
    inner = node.children
    if isinstance(node, tree.WeightShare):
        inner = (split_geometric(node.weights)[1],)
    elif isinstance(node, tree.BiasCorrection):
        inner = (node.factor.complement,)
    for part in inner:
        yield from _running_sums(part)
    if isinstance(node, tree.WeightShare | tree.BiasCorrection) and closed_form(node) is None:
        yield node
