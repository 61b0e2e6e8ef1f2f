"""The numbers of one step (beta_t, 1 - theta_t, ...), with running sums carried from step to step.

A transformation has a state, so that a schedule that is defined by a recursion simply runs it: exact for any
weights or factors, at one addition a step, for ever.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Real
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import ScheduleLike
from generic_adam.methods.catalogue import corrected, corrected_eps
from generic_adam.methods.method import check_sequence
from generic_adam.optax.leaves import PyTree, map_leaves
from generic_adam.optax.schedule import (
    Counted,
    Number,
    OptaxSchedule,
    Running,
    closed_form,
    evaluate,
    moment_after,
    schedule_of,
)
from generic_adam.schedules import Schedule, ScheduleError, tree
from generic_adam.schedules.evaluate import split_geometric

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
        self.schedules |= {"one_minus_beta": 1 - momentum, "one_minus_theta": 1 - second_moment, "t": tree.Time()}
        self._running = tuple(dict.fromkeys(n for one in self.schedules.values() for n in _running_sums(one)))

    def transformation(
        self,
        State: type[Any],
        moments: Callable[[optax.Params], tuple[PyTree, ...]],
        move: Callable[..., tuple[Any, ...]],
    ) -> optax.GradientTransformationExtraArgs:
        """Return the transformation that moves each leaf by itself.

        `State` is a NamedTuple of the count, a tree for each moment, and the running sums; `moments` gives those
        before the first step from the parameters; `move` is, for one leaf, (numbers by name, gradient, *moments)
        -> (update, *new moments).
        """

        def init(params: optax.Params) -> Any:
            return State(jnp.zeros([], jnp.int32), *moments(params), self.start())

        def update(
            updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra_args: Any
        ) -> tuple[optax.Updates, Any]:
            del params, extra_args
            numbers, sums = self.numbers_at(state.count, state.sums)
            moved, *following = map_leaves(partial(move, numbers), updates, *state[1:-1])
            return moved, State(optax.safe_increment(state.count), *following, sums)

        return optax.GradientTransformationExtraArgs(init, update)

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
