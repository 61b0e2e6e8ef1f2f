r"""The numbers of one step (beta_t, 1 - theta_t, ...), with running sums carried from step to step.

Inside a transformation there is a state, so that a schedule that is defined by a recursion can simply run it:
exact for any weights or factors, at one addition a step, for ever.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import ScheduleLike
from generic_adam.methods.method import check_sequence
from generic_adam.optax.schedule import (
    Given,
    Moment,
    Number,
    OptaxSchedule,
    Recursion,
    closed_form,
    evaluate,
    from_table,
    has_closed_form,
    moment_after,
    schedule_of,
)
from generic_adam.schedules import Schedule, ScheduleError, tree
from generic_adam.schedules.evaluate import split_geometric

CoefficientLike = ScheduleLike | OptaxSchedule | jax.Array | np.ndarray


class RunningSum(NamedTuple):
    """A sum and what rounding has lost of it, so that float32 adds 1 to 2^24 as well as float64 does.

    Attributes:
        high: the sum, rounded.
        low: the rest.
    """

    high: jax.Array
    low: jax.Array

    def plus(self, increment: ArrayLike) -> "RunningSum":
        """The sum with one more term, by Knuth's error-free addition."""
        term = self.low + increment
        high = self.high + term
        part = high - self.high
        low = (self.high - (high - part)) + (term - part)
        return RunningSum(high, jnp.where(jnp.isfinite(low), low, 0))

    def times(self, factor: float) -> "RunningSum":
        """The sum in other units."""
        return RunningSum(self.high * factor, self.low * factor)


def as_coefficient(name: str, value: CoefficientLike) -> Schedule:
    """The schedule of alpha, beta, theta or eps; a JAX array is a number for every t, known only when traced.

    Args:
        name: "alpha", "beta", "theta" or "eps".
        value: whatever may stand for it.

    Returns:
        The schedule, checked as a method's is; an array is taken as it is.

    Raises:
        OptimizerError: the value cannot be read.
        MethodError: the schedule leaves its range.
    """
    if isinstance(value, jax.Array | np.ndarray):
        if value.shape != ():
            raise OptimizerError(f"{name}: expected one number, got an array of shape {value.shape}")
        return tree.Opaque(Given(jnp.asarray(value)), "given array")
    try:
        schedule = schedule_of(value)
        if name == "eps":
            check_not_negative(eps=schedule(1))
        else:
            check_sequence(name, schedule)
    except ScheduleError as error:
        raise OptimizerError(f"{name}: {error}") from error
    return schedule


def check_not_negative(**values: object) -> None:
    """Raise unless the numbers are finite and >= 0; an array that JAX traces is let pass."""
    for name, value in values.items():
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise OptimizerError(f"{name} is {value}; expected a finite number >= 0")


class RunningSchedules:
    """Several schedules that are evaluated at every step t = 1, 2, 3, ... in turn.

    Args:
        schedules: by the names under which their values are wanted.
    """

    def __init__(self, schedules: Mapping[str, Schedule]) -> None:
        self.schedules = dict(schedules)
        found = dict.fromkeys(node for one in self.schedules.values() for node in _recursions(one))
        self._recursions = tuple(found)

    def start(self) -> tuple[RunningSum, ...]:
        """The sums before the first step."""
        return tuple(_start(node) for node in self._recursions)

    def advance(
        self, count: ArrayLike, sums: tuple[RunningSum, ...]
    ) -> tuple[dict[str, Number], tuple[RunningSum, ...]]:
        """The values at t = count + 1.

        Args:
            count: the steps taken before this one.
            sums: as they were after those steps.

        Returns:
            The values by name, and the sums after this step.
        """
        values: dict[Recursion, Number] = {}

        def recursion(node: Recursion, moment: Moment) -> Number:
            closed = closed_form(node, moment)
            if closed is not None:
                return closed
            if moment is not now:  # inside a period, where t starts anew
                return from_table(node, moment)
            return 1 - values[_key(node)] if isinstance(node, tree.WeightedTheta) else values[node]

        now = moment_after(count, recursion)
        following: list[RunningSum] = []
        for node, total in zip(self._recursions, sums, strict=True):
            if isinstance(node, tree.WeightShare):
                # In units of rho^t, so that weights c_t rho^t cannot overflow.
                log_rho, rest = split_geometric(node.weights)
                weight = evaluate(rest, now)
                following.append(total.times(math.exp(-log_rho)).plus(weight))
                values[node] = weight / following[-1].high
            else:
                # 1 - P_t = (1 - P_{t-1}) + (1 - theta_t) P_{t-1}: positive terms only, and nothing cancels.
                missing = evaluate(node.factor.complement, now)
                following.append(total.plus(missing * ((1 - total.high) - total.low)))
                values[node] = following[-1].high
        return {name: evaluate(one, now) for name, one in self.schedules.items()}, tuple(following)


def _recursions(node: Schedule) -> Iterator[tree.WeightShare | tree.BiasCorrection]:
    """The running sums an expression needs, those inside others first."""
    if isinstance(node, tree.Periodic):
        return
    if isinstance(node, tree.WeightedTheta | tree.WeightShare):
        inner: tuple[Schedule, ...] = (split_geometric(node.weights)[1],)
    elif isinstance(node, tree.BiasCorrection):
        inner = (node.factor.complement,)
    else:
        inner = node.children
    for part in inner:
        yield from _recursions(part)
    if isinstance(node, tree.WeightedTheta | tree.WeightShare | tree.BiasCorrection) and not has_closed_form(
        node
    ):
        yield _key(node)


def _key(node: Recursion) -> tree.WeightShare | tree.BiasCorrection:
    """The node that stands for a running sum: theta_t and 1 - theta_t share theirs."""
    return tree.WeightShare(node.weights, node.initial) if isinstance(node, tree.WeightedTheta) else node


def _start(node: tree.WeightShare | tree.BiasCorrection) -> RunningSum:
    initial = float(node.initial) if isinstance(node, tree.WeightShare) else 0.0
    return RunningSum(*(jnp.asarray(x, jnp.result_type(float)) for x in (initial, 0.0)))
