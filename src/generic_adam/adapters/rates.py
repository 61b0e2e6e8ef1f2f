"""From a live scheduler to lr_t and beta_t: in closed form where that agrees with it, else by replay.

A closed form is used only after it has reproduced what a copy of the scheduler does over its next steps. So a
subclass, a learning rate written from outside or another version of a package lead to "undecided", never to a
guess.
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.adapters.clock import Clock
from generic_adam.adapters.schedulers import MOMENTA, closed_form
from generic_adam.adapters.updates import name_of
from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra
from generic_adam.schedules import Schedule, tree

with from_extra("torch"):
    import torch
    from torch.optim.lr_scheduler import ReduceLROnPlateau

COMPARED_STEPS = 500
"""Scheduler steps over which a closed form is compared with the scheduler itself."""


@dataclass(frozen=True)
class Rates:
    """What a scheduler does to one parameter group.

    Attributes:
        rate: lr_t.
        beta: beta_t where the scheduler moves it, else None.
        horizon: the step after which the scheduler refuses to go on, if it does.
        notes: what has to be said about it.
    """

    rate: Schedule
    beta: Schedule | None = None
    horizon: int | None = None
    notes: tuple[str, ...] = ()


def scheduled_rates(
    scheduler: Any, optimizer: torch.optim.Optimizer, every: int | None = None
) -> list[Rates]:
    """lr_t (and beta_t) of every parameter group under a scheduler.

    Args:
        scheduler: one of torch's, timm's, DeepSpeed's, or another with `step()` and a count.
        optimizer: the one that it drives.
        every: the optimizer steps for each of its steps; None means 1, but is refused where it counts epochs.

    Raises:
        OptimizerError: its rates depend on the data, or cannot be told.
    """
    count = len(optimizer.param_groups)
    if isinstance(scheduler, ReduceLROnPlateau):
        return [_on_plateau(scheduler, group) for group in range(count)]
    if isinstance(getattr(scheduler, "lr_scheduler", None), ReduceLROnPlateau) or _asks_for_data(scheduler):
        raise OptimizerError(f"{type(scheduler).__name__} depends on the data: there is no sequence to read")
    clock = Clock(_pace(scheduler, every))
    replay = Replay(scheduler, optimizer)
    return [_rates_of_group(scheduler, group, clock, replay) for group in range(count)]


def _asks_for_data(scheduler: Any) -> bool:
    """Whether step() needs to be told something that is not a count: a loss, for transformers' GreedyLR."""
    try:
        arguments = inspect.signature(scheduler.step).parameters.values()
    except (AttributeError, TypeError, ValueError):
        return False
    needed = [
        one.name for one in arguments if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    return bool(needed) and not _is_timm(scheduler)


def _is_timm(scheduler: Any) -> bool:
    """Whether it has the interface of timm's: they keep no count, and are told one at each step."""
    return all(hasattr(scheduler, name) for name in ("step_update", "t_in_epochs", "base_values"))


def _pace(scheduler: Any, every: int | None) -> int:
    """The optimizer steps for each step of the scheduler."""
    if _is_timm(scheduler):
        name = type(scheduler).__name__
        if scheduler.param_group_field != "lr":
            raise OptimizerError(f"{name} drives {scheduler.param_group_field!r}; expected one of the rate")
        if scheduler.t_in_epochs and every is None:
            raise OptimizerError(
                f"{name} counts epochs (t_in_epochs=True): expected steps_per_scheduler_step as well, the "
                "optimizer steps of an epoch"
            )
        if not scheduler.t_in_epochs and every not in {None, 1}:
            raise OptimizerError(
                f"{name} counts updates (t_in_epochs=False): expected steps_per_scheduler_step=1, got {every}"
            )
    return 1 if every is None else every


def _steps_taken(scheduler: Any) -> int:
    """How often `scheduler.step()` has been called."""
    while name_of(type(scheduler)) == "torch.ChainedScheduler":  # keeps no count of its own
        scheduler = scheduler._schedulers[0]
    taken = getattr(scheduler, "last_epoch", None)
    if taken is None and isinstance(getattr(scheduler, "last_batch_iteration", None), int):
        taken = scheduler.last_batch_iteration + 1  # DeepSpeed's name for it, from -1
    if taken is None and _is_timm(scheduler):
        taken = 0  # whatever it was told last, it can be told 0
    if not isinstance(taken, int):
        raise OptimizerError(
            f"{type(scheduler).__name__} has no last_epoch; expected a torch learning-rate scheduler"
        )
    return taken


def _jump(scheduler: Any) -> Callable[[int], None] | None:
    """The function that puts a scheduler to any count at once, where its rates depend on the count alone."""
    if _is_timm(scheduler):
        return scheduler.step if scheduler.t_in_epochs else scheduler.step_update
    if name_of(type(scheduler)).startswith("deepspeed.Warmup"):
        return lambda count: scheduler.step(count - 1)
    return None


def _rates_of_group(scheduler: Any, group: int, clock: Clock, replay: Replay) -> Rates:
    name, taken = replay.name, replay.taken
    # The copy starts where the scheduler is now: only one that has not been stepped shows its beginning.
    replayed = tree.Opaque(ReplayedSequence(replay, group, clock), name) if taken == 0 else None
    rate, beta = _closed_forms(scheduler, group, clock, replayed)
    ends = scheduler.total_steps if name_of(type(scheduler)) == "torch.OneCycleLR" else None
    last = max(ends, taken + 1) if ends is not None else taken + COMPARED_STEPS
    if rate is not None and _agrees(rate, beta, group, clock, replay, last):
        horizon, notes = None, ()
        if ends is not None:
            horizon = ends * clock.every
            notes = (f"OneCycleLR ends after its {horizon} steps; the last value is held from there on",)
        if replayed is not None and any(node is replayed for node in tree.walk(rate)):
            beta = _replayed_beta(scheduler, group, clock, replay)
            notes = (f"the beginning of {name} was read off a copy of it, step by step",)
        return Rates(rate, beta, horizon, notes)
    if replayed is None:
        raise _stepped(name, taken)
    said = f"{name} has no known closed form: its learning rates were read off a copy of it, step by step"
    return Rates(replayed, _replayed_beta(scheduler, group, clock, replay), notes=(said,))


def _closed_forms(
    scheduler: Any, group: int, clock: Clock, replayed: Schedule | None
) -> tuple[Schedule | None, Schedule | None]:
    """lr_t and, where the scheduler moves it, beta_t; None for what is not known."""
    read_beta = MOMENTA.get(name_of(type(scheduler)))
    try:
        rate = closed_form(scheduler, group, clock, replayed)
        return rate, read_beta(scheduler, group, clock) if read_beta is not None else None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError):
        # Settings without a form of ours (a period that is not whole, or too long), a group that was added
        # after the scheduler had been made, a scheduler changed by hand: the copy knows what happens.
        return None, None


def _agrees(
    rate: Schedule, beta: Schedule | None, group: int, clock: Clock, replay: Replay, last: int
) -> bool:
    """Whether the closed form gives what the scheduler does over its next steps, up to its last one."""
    scale = 0.0
    for ahead in range(min(COMPARED_STEPS, last - replay.taken)):
        try:
            real_rate, real_beta = replay.rate(ahead, group), replay.beta(ahead, group)
        except OptimizerError:  # a scheduler that ends
            return ahead > 0
        t = clock.first_step(replay.taken + ahead)
        scale = max(scale, abs(real_rate))
        try:
            ours, our_beta = rate(t), None if beta is None else beta(t)
        except ValueError:  # a form that is not defined at some t where the scheduler is
            return False
        # Recursions lose a few digits where the rate passes near zero.
        if not math.isclose(ours, real_rate, rel_tol=1e-6, abs_tol=1e-9 * scale):
            return False
        if our_beta is not None and not math.isclose(our_beta, real_beta or 0.0, rel_tol=1e-6, abs_tol=1e-9):
            return False
    return all(
        math.isclose(rate(clock.first_step(count)), real, rel_tol=1e-6, abs_tol=1e-9 * scale)
        for count, real in replay.far(group)
    )


def _replayed_beta(scheduler: Any, group: int, clock: Clock, replay: Replay) -> Schedule | None:
    """beta_t by replay where the scheduler moves it, else None."""
    if not _cycles_momentum(scheduler) and not _moves_beta(replay, group):
        return None
    sequence = ReplayedSequence(replay, group, clock, momentum=True)
    return tree.Opaque(sequence, f"{replay.name}, momentum")


def _cycles_momentum(scheduler: Any) -> bool:
    """Whether the scheduler or a part of it moves the momentum, which it may begin to do late in the run."""
    parts = getattr(scheduler, "_schedulers", ())
    return bool(getattr(scheduler, "cycle_momentum", False)) or any(map(_cycles_momentum, parts))


def _moves_beta(replay: Replay, group: int) -> bool:
    """Whether the first steps show a momentum that changes."""
    seen: set[float | None] = set()
    for ahead in range(COMPARED_STEPS):
        try:
            seen.add(replay.beta(ahead, group))
        except OptimizerError:
            break
    return len(seen) > 1


def _stepped(name: str, taken: int) -> OptimizerError:
    return OptimizerError(
        f"{name} has been stepped {taken} times and its earlier learning rates cannot be told from its "
        "state; expected a scheduler that has not been stepped yet"
    )


def _on_plateau(scheduler: Any, group: int) -> Rates:
    """ReduceLROnPlateau: no sequence until the losses are known, but bounds that hold whatever they are."""
    if scheduler.last_epoch > 0:
        raise _stepped(type(scheduler).__name__, scheduler.last_epoch)
    now = float(scheduler.optimizer.param_groups[group]["lr"])
    # A reduction is made only where it lowers the rate by more than eps, so the rate before it was above
    # eps / (1 - factor), and the one after it is above factor times that.
    floor = scheduler.eps * scheduler.factor / (1 - scheduler.factor)
    # A group that was added after the scheduler had been made has no least rate of its own yet.
    least = float(scheduler.min_lrs[group]) if group < len(scheduler.min_lrs) else 0.0
    lowest = min(now, max(least, floor))
    held = tree.Opaque(lambda _t: now, "ReduceLROnPlateau, as if no plateau came")
    said = (
        "ReduceLROnPlateau depends on the data: its rate is evaluated here as if no plateau came; what is "
        f"decided for every t rests only on {lowest:.3g} <= lr <= {now:.3g}"
    )
    return Rates(tree.Bounded(held, lowest, now), notes=(said,))


class Replay:
    """Learning rates and momenta after 0, 1, 2, ... further steps of a copy of the scheduler.

    The copy is bound to a stand-in optimizer without parameters of the user's, so that nothing of theirs
    moves.

    Attributes:
        name: the scheduler's class.
        taken: the steps that it had taken.
    """

    def __init__(self, scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
        self.name, self.taken = type(scheduler).__name__, _steps_taken(scheduler)
        stand_in = _stand_in(optimizer)
        try:
            # Every reference to the user's optimizer, in nested schedulers too, becomes one to the stand-in.
            self._scheduler = copy.deepcopy(scheduler, {id(optimizer): stand_in})
            if _is_timm(scheduler):  # back to where its constructor left it
                warm = getattr(scheduler, "warmup_t", 0)
                self._scheduler.update_groups(scheduler.warmup_lr_init if warm else scheduler.base_values)
        except Exception as error:
            raise OptimizerError(
                f"{self.name} cannot be copied to try it out: {_first_line(error)}"
            ) from error
        self._groups, self._jump = stand_in.param_groups, _jump(self._scheduler)
        self._rates: list[list[float]] = [[] for _ in self._groups]
        self._betas: list[list[float | None]] = [[] for _ in self._groups]
        self._largest, self._steps = 0.0, 0
        self._record()

    def rate(self, count: int, group: int) -> float:
        """The learning rate after `count` further scheduler steps."""
        self._advance_to(count)
        return self._rates[group][count]

    def beta(self, count: int, group: int) -> float | None:
        """The momentum parameter then (the first of `betas`), or None for optimizers without one."""
        self._advance_to(count)
        return self._betas[group][count]

    def at(self, counts: npt.NDArray[np.int64], group: int, *, momentum: bool) -> npt.NDArray[np.float64]:
        """Learning rates or momenta at many counts."""
        self._advance_to(int(counts.max()))
        values = (self._betas if momentum else self._rates)[group]
        return np.array([values[count] for count in counts.ravel().tolist()], dtype=float).reshape(
            counts.shape
        )

    def far(self, group: int) -> list[tuple[int, float]]:
        """(k, rate) for some k far out, of a scheduler that can be put to any of them at once."""
        if self._jump is None:
            return []
        found = []
        for count in (int(COMPARED_STEPS * 1.5**n) for n in range(24)):
            self._to(count - self.taken)
            found.append((count, float(self._groups[group]["lr"])))
        self._to(self._steps)
        return found

    def _advance_to(self, count: int) -> None:
        if self._steps >= count:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, that the stand-in takes no steps of its own
            while self._steps < count:
                self._to(self._steps + 1)
                self._steps += 1
                self._record()

    def _to(self, count: int) -> None:
        """Take the copy to a count: by its next step, or by a jump."""
        try:
            if self._jump is None:
                self._scheduler.step()
            else:
                self._jump(self.taken + count)
        except Exception as error:
            raise OptimizerError(f"{self.name} raised at its step {count}: {_first_line(error)}") from error

    def _record(self) -> None:
        for group, rates, betas in zip(self._groups, self._rates, self._betas, strict=True):
            rate = float(group["lr"])
            # Where torch's recursions should end at 0 they end at rounding errors of either sign.
            if rate < 0 and rate >= -1e-12 * max(self._largest, 1e-300):
                rate = 0.0
            self._largest = max(self._largest, abs(rate))
            rates.append(rate)
            betas.append(float(group["betas"][0]) if "betas" in group else None)


class ReplayedSequence:
    """A callable of t = 1, 2, ... over a replay that starts at the scheduler's beginning."""

    def __init__(self, replay: Replay, group: int, clock: Clock, *, momentum: bool = False) -> None:
        self.replay, self.group, self.clock, self.momentum = replay, group, clock, momentum

    def __call__(self, t: npt.ArrayLike) -> float | npt.NDArray[np.float64]:
        """The learning rate (or momentum) of optimizer step t; an array of t gives an array."""
        if isinstance(t, np.ndarray) and t.ndim:
            counts = (t.astype(np.int64) - 1) // self.clock.every
            return self.replay.at(counts, self.group, momentum=self.momentum)
        count = (int(t) - 1) // self.clock.every  # type: ignore[arg-type]
        value = (self.replay.beta if self.momentum else self.replay.rate)(count, self.group)
        if value is None:
            raise OptimizerError(f"{self.replay.name}: the optimizer has no momentum parameter to read")
        return value


def _stand_in(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    stand_in = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.0)
    stand_in.param_groups = [
        {key: copy.deepcopy(value) for key, value in group.items() if key != "params"} | {"params": []}
        for group in optimizer.param_groups
    ]
    stand_in.defaults = dict(optimizer.defaults)
    return stand_in


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
