"""From a live scheduler to lr_t and beta_t: in closed form where that agrees with it, else by replay.

A closed form is used only after it has reproduced what a copy of the scheduler does over its next steps. So a
subclass, a learning rate written from outside or another version of torch lead to "undecided", never to a
guess.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.optim import lr_scheduler as torch_lr

from generic_adam.adapters.clock import Clock, scaled
from generic_adam.adapters.torch.schedulers import FACTORS, MOMENTA, RATES, base_rate, cosine
from generic_adam.errors import OptimizerError
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Bounded, Opaque, Schedule, as_schedule, walk

# Scheduler steps over which a closed form is compared with the scheduler itself.
COMPARED_STEPS = 500


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


def scheduled_rates(scheduler: Any, optimizer: torch.optim.Optimizer, clock: Clock) -> list[Rates]:
    """lr_t (and beta_t) of every parameter group under a scheduler."""
    count = len(optimizer.param_groups)
    if isinstance(scheduler, torch_lr.ReduceLROnPlateau):
        return [_on_plateau(scheduler, group) for group in range(count)]
    taken = steps_taken(scheduler)
    replay = Replay(scheduler, optimizer)
    return [_rates_of_group(scheduler, group, clock, replay, taken) for group in range(count)]


def steps_taken(scheduler: Any) -> int:
    """How often `scheduler.step()` has been called."""
    while isinstance(scheduler, torch_lr.ChainedScheduler):  # keeps no count of its own
        scheduler = scheduler._schedulers[0]
    taken = getattr(scheduler, "last_epoch", None)
    if taken is None and isinstance(getattr(scheduler, "last_batch_iteration", None), int):
        taken = scheduler.last_batch_iteration + 1  # DeepSpeed's name for it, from -1
    if not isinstance(taken, int):
        raise OptimizerError(
            f"{type(scheduler).__name__} has no last_epoch; expected a torch learning-rate scheduler"
        )
    return taken


def closed_form(
    scheduler: Any, group: int, clock: Clock, replayed: Schedule | None = None
) -> Schedule | None:
    """lr_t of one parameter group, or None where no closed form is known.

    Args:
        scheduler: the scheduler.
        group: the index of the parameter group.
        clock: the scheduler's time.
        replayed: lr_t by replay, for a beginning without a closed form before a tail that has one.
    """
    kind = type(scheduler)
    if kind in FACTORS:
        factor = FACTORS[kind](scheduler, clock)
        return None if factor is None else scaled(base_rate(scheduler, group), factor)
    if kind in RATES:
        return RATES[kind](scheduler, group, clock)
    if kind is torch_lr.SequentialLR:
        return _sequential(scheduler, group, clock, replayed)
    if kind is torch_lr.ChainedScheduler:
        product = _chained(scheduler, group, clock)
        return _chained_from_cosine_on(scheduler, group, clock, replayed) if product is None else product
    return None


def _sequential(scheduler: Any, group: int, clock: Clock, replayed: Schedule | None) -> Schedule | None:
    """SequentialLR: each scheduler from its milestone on, counting from 0 again whatever came before."""
    children, milestones = scheduler._schedulers, scheduler._milestones
    phases = [
        _phase(child, group, clock.later(start))
        for child, start in zip(children, [0, *milestones], strict=True)
    ]
    result = phases[-1]
    for phase, end in zip(reversed(phases[:-1]), reversed(milestones), strict=True):
        known = replayed if phase is None else phase
        result = None if known is None or result is None else clock.switch(known, end, result)
    return result


def _phase(child: Any, group: int, clock: Clock) -> Schedule | None:
    """One part of a SequentialLR, or None where its beginning inside the sequence is another than alone."""
    # Nested compositions count differently from one torch version to the next, and a phase that moves beta
    # leaves it where it was afterwards.
    plain = type(child) in {*FACTORS, *RATES}
    moves_beta, never_restored = getattr(child, "cycle_momentum", False), getattr(child, "total_iters", 1) < 1
    return closed_form(child, group, clock) if plain and not moves_beta and not never_restored else None


def _chained(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """ChainedScheduler: the product, where every part multiplies the rate it finds."""
    children = scheduler._schedulers
    result = as_schedule(float(children[0].optimizer.param_groups[group]["initial_lr"]))
    for child in children:
        factor = _factor_in_chain(child, children, clock)
        if factor is None:
            return None
        result = result * factor
    return result


def _factor_in_chain(child: Any, children: Sequence[Any], clock: Clock) -> Schedule | None:
    if type(child) in FACTORS:
        return FACTORS[type(child)](child, clock)
    # A cosine to 0 multiplies too, until it starts again from 0 after T_max by adding: from there on the
    # product is right only where all other parts have come back to a factor of 1.
    others = [other for other in children if other is not child]
    if (
        type(child) is torch_lr.CosineAnnealingLR
        and child.eta_min == 0
        and all(_is_warm_up(other, child.T_max) for other in others)
    ):
        return clock.repeating(2 * child.T_max, lambda k: half_cosine(k, child.T_max))
    return None


def _chained_from_cosine_on(
    scheduler: Any, group: int, clock: Clock, replayed: Schedule | None
) -> Schedule | None:
    """ChainedScheduler of a cosine to eta_min > 0 and warm-ups: the cosine alone, once it was at eta_min.

    Before, each step of a warm-up scales eta_min too, and the cosine carries on from there: a recursion.
    """
    cosines = [child for child in scheduler._schedulers if type(child) is torch_lr.CosineAnnealingLR]
    if replayed is None or len(cosines) != 1:
        return None
    (annealing,) = cosines
    others = [child for child in scheduler._schedulers if child is not annealing]
    if not all(_is_warm_up(other, annealing.T_max - 1) for other in others):
        return None
    return clock.switch(replayed, annealing.T_max, cosine(annealing, group, clock))


def _is_warm_up(scheduler: Any, steps: int) -> bool:
    """Whether the scheduler's factor is 1 from some step before `steps` on."""
    kind = type(scheduler)
    returns = kind is torch_lr.ConstantLR or (kind is torch_lr.LinearLR and scheduler.end_factor == 1)
    return returns and 1 <= scheduler.total_iters <= steps


def _rates_of_group(scheduler: Any, group: int, clock: Clock, replay: Replay, taken: int) -> Rates:
    name = type(scheduler).__name__
    # The copy starts where the scheduler is now: only one that has not been stepped shows its beginning.
    replayed = Opaque(ReplayedSequence(replay, group, clock), name) if taken == 0 else None
    rate, beta = _closed_forms(scheduler, group, clock, replayed)
    ends = scheduler.total_steps if type(scheduler) is torch_lr.OneCycleLR else None
    last = max(ends, taken + 1) if ends is not None else taken + COMPARED_STEPS
    if rate is not None and _agrees(rate, beta, group, clock, replay, taken, last):
        horizon, notes = None, ()
        if ends is not None:
            horizon = ends * clock.every
            notes = (f"OneCycleLR ends after its {horizon} steps; the last value is held from there on",)
        if replayed is not None and any(node is replayed for node in walk(rate)):
            beta = _replayed_beta(scheduler, group, clock, replay)
            notes = (f"the beginning of {name} was read off a copy of it, step by step",)
        return Rates(rate, beta, horizon, notes)
    if replayed is None:
        raise _stepped(name, taken)
    said = f"{name} has no known closed form: its learning rates were read off a copy of it, step by step"
    return Rates(replayed, _replayed_beta(scheduler, group, clock, replay), notes=(said,))


def _replayed_beta(scheduler: Any, group: int, clock: Clock, replay: Replay) -> Schedule | None:
    """beta_t by replay where the scheduler moves it, else None."""
    if not _cycles_momentum(scheduler) and not _moves_beta(replay, group):
        return None
    sequence = ReplayedSequence(replay, group, clock, momentum=True)
    return Opaque(sequence, f"{type(scheduler).__name__}, momentum")


def _cycles_momentum(scheduler: Any) -> bool:
    """Whether the scheduler or a part of it moves the momentum, which it may begin to do late in the run."""
    parts = getattr(scheduler, "_schedulers", ())
    return bool(getattr(scheduler, "cycle_momentum", False)) or any(map(_cycles_momentum, parts))


def _closed_forms(
    scheduler: Any, group: int, clock: Clock, replayed: Schedule | None
) -> tuple[Schedule | None, Schedule | None]:
    """lr_t and, where the scheduler moves it, beta_t; None for what is not known."""
    read_beta = MOMENTA.get(type(scheduler))
    try:
        rate = closed_form(scheduler, group, clock, replayed)
        return rate, read_beta(scheduler, group, clock) if read_beta is not None else None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError):
        # Settings without a form of ours (a period that is not whole, or too long), a group that was added
        # after the scheduler had been made, a scheduler changed by hand: the copy knows what happens.
        return None, None


def _stepped(name: str, taken: int) -> OptimizerError:
    return OptimizerError(
        f"{name} has been stepped {taken} times and its earlier learning rates cannot be told from its "
        "state; expected a scheduler that has not been stepped yet"
    )


def _agrees(
    rate: Schedule, beta: Schedule | None, group: int, clock: Clock, replay: Replay, taken: int, last: int
) -> bool:
    """Whether the closed form gives what the scheduler does over its next steps, up to its last one."""
    scale = 0.0
    for ahead in range(min(COMPARED_STEPS, last - taken)):
        try:
            real_rate, real_beta = replay.rate(ahead, group), replay.beta(ahead, group)
        except OptimizerError:  # a scheduler that ends
            return ahead > 0
        t = clock.first_step(taken + ahead)
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
    return True


def _moves_beta(replay: Replay, group: int) -> bool:
    """Whether the first steps show a momentum that changes."""
    seen: set[float | None] = set()
    for ahead in range(COMPARED_STEPS):
        try:
            seen.add(replay.beta(ahead, group))
        except OptimizerError:
            break
    return len(seen) > 1


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
    name = "ReduceLROnPlateau, as if no plateau came"
    said = (
        "ReduceLROnPlateau depends on the data: its rate is evaluated here as if no plateau came; what is "
        f"decided for every t rests only on {lowest:.3g} <= lr <= {now:.3g}"
    )
    return Rates(Bounded(Opaque(_Held(now), name), lowest, now), notes=(said,))


@dataclass(frozen=True)
class _Held:
    """A callable that is the same number for every t."""

    value: float

    def __call__(self, _t: int) -> float:
        return self.value


class Replay:
    """Learning rates and momenta after 0, 1, 2, ... further steps of a copy of the scheduler.

    The copy is bound to a stand-in optimizer without parameters of the user's, so that nothing of theirs
    moves.
    """

    def __init__(self, scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
        self.name = type(scheduler).__name__
        stand_in = _stand_in(optimizer)
        try:
            # Every reference to the user's optimizer, in nested schedulers too, becomes one to the stand-in.
            self._scheduler = copy.deepcopy(scheduler, {id(optimizer): stand_in})
        except Exception as error:
            raise OptimizerError(
                f"{self.name} cannot be copied to try it out: {_first_line(error)}"
            ) from error
        self._groups = stand_in.param_groups
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

    def _advance_to(self, count: int) -> None:
        if self._steps >= count:
            return
        with warnings.catch_warnings():
            # torch warns that the stand-in takes no steps of its own.
            warnings.simplefilter("ignore")
            step = self._scheduler.step
            while self._steps < count:
                try:
                    step()
                except Exception as error:
                    raise OptimizerError(
                        f"{self.name} raised at its step {self._steps + 1}: {_first_line(error)}"
                    ) from error
                self._steps += 1
                self._record()

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
