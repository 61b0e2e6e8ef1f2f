"""From a live scheduler to lr_t and beta_t: in closed form where that agrees with it, else by replay.

A closed form is used only after it has reproduced what a copy of the scheduler does over its next steps. So a
subclass, a learning rate written from outside or another version of a package lead to "undecided", never to a
guess.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from generic_adam.adapters.clock import PAGE, Called, Clock, length_of_epoch
from generic_adam.adapters.schedulers import MOMENTA, closed_form, parameters, settings_of, steps_of_run
from generic_adam.adapters.updates import name_of
from generic_adam.errors import OptimizerError, told_as
from generic_adam.extras import from_extra
from generic_adam.schedules import Schedule, tree
from generic_adam.schedules.work import Work, allow, poll

with from_extra("torch"):
    import torch
    from torch.optim.lr_scheduler import ReduceLROnPlateau

_PACKAGES = {"torch", "transformers", "timm", "deepspeed", "generic_adam"}
_COUNTS = (("last_epoch", 0), ("step_t", 0), ("last_batch_iteration", -1))  # pytorch_optimizer's, DeepSpeed's
COMPARED_STEPS = 500
"""Scheduler steps over which a closed form is compared with the scheduler itself."""


class Rates(NamedTuple):
    """What a scheduler does to one parameter group: lr_t, and beta_t where it moves."""

    rate: Schedule
    beta: Schedule | None = None
    horizon: int | None = None  # the length of the run that it names
    notes: tuple[str, ...] = ()


def scheduled_rates(scheduler: Any, optimizer: torch.optim.Optimizer, every: int | None = None) -> list[Rates]:
    """lr_t and beta_t of every parameter group under a scheduler that is stepped at every so many optimizer steps."""
    groups = range(len(optimizer.param_groups))
    _check_unpatched(scheduler)
    if type(scheduler) is ReduceLROnPlateau and all(own for _, own in _homes(scheduler)):
        return [_on_plateau(scheduler, group) for group in groups]
    if _asks_for_data(getattr(scheduler, "lr_scheduler", scheduler)):  # timm's has torch's inside
        raise OptimizerError(f"{type(scheduler).__name__} depends on the data: there is no sequence to read")
    clock, replay = Clock(_pace(scheduler, every)), Replay(scheduler, optimizer)
    return [_rates_of_group(scheduler, group, clock, replay) for group in groups]


def _parts(scheduler: Any) -> Iterator[Any]:
    """The scheduler and those inside it."""
    yield scheduler
    for part in getattr(scheduler, "_schedulers", ()):
        yield from _parts(part)


def _check_unpatched(scheduler: Any) -> None:
    """A function put in the place of a method may know the user's own objects, which a copy must not move."""
    for part in _parts(scheduler):
        for name in vars(part):
            if callable(getattr(type(part), name, None)):
                said = "has been replaced by another function; expected a scheduler as its class makes it"
                raise OptimizerError(f"{type(part).__name__}.{name} {said}")


def _homes(scheduler: Any) -> Iterator[tuple[bool, bool]]:
    """Whether the class is one of the packages', and whether the methods that set rates are, of it and its parts."""
    for kind in map(type, _parts(scheduler)):
        methods = [getattr(kind, name) for name in ("step", "get_lr", "_reduce_lr") if hasattr(kind, name)]
        own = [one.__module__.partition(".")[0] in _PACKAGES for one in (kind, *methods)]
        yield own[0], all(own[1:])


def _asks_for_data(scheduler: Any) -> bool:
    """Whether step() needs to be told something that is not a count: a loss, for transformers' GreedyLR."""
    if _is_timm(scheduler):
        return False
    arguments = inspect.signature(scheduler.step).parameters.values()
    return any(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in arguments)


def _is_timm(scheduler: Any) -> bool:
    """Whether it has the interface of timm's: they keep no count, and are told one at each step."""
    return all(hasattr(scheduler, name) for name in ("step_update", "t_in_epochs", "base_values"))


def _pace(scheduler: Any, every: int | None) -> int:
    """The optimizer steps for each step of the scheduler."""
    if not _is_timm(scheduler):
        return 1 if every is None else every
    name = type(scheduler).__name__
    if scheduler.param_group_field != "lr":
        raise OptimizerError(f"{name} drives {scheduler.param_group_field!r}; expected one of the rate")
    if scheduler.t_in_epochs:
        return length_of_epoch(f"{name} counts epochs (t_in_epochs=True)", every)
    if every not in {None, 1}:
        raise OptimizerError(f"{name} counts updates (t_in_epochs=False); expected no other pace, got {every}")
    return 1


def steps_taken(scheduler: Any) -> int:
    """How often `scheduler.step()` has been called."""
    while name_of(type(scheduler)) == "torch.ChainedScheduler":  # keeps no count of its own
        scheduler = scheduler._schedulers[0]
    if _is_timm(scheduler):
        return 0  # whatever it was told last, it can be told 0
    taken = next((getattr(scheduler, name) - first for name, first in _COUNTS if hasattr(scheduler, name)), -1)
    if not isinstance(taken, int) or taken < 0:
        raise OptimizerError(f"{type(scheduler).__name__} has no last_epoch; expected a torch learning-rate scheduler")
    return taken


def _jump(scheduler: Any) -> Callable[[int], Any] | None:
    """The function that puts a scheduler to any count at once, where its rates depend on the count alone."""
    if _is_timm(scheduler):
        return scheduler.step if scheduler.t_in_epochs else scheduler.step_update
    if name_of(type(scheduler)).startswith("deepspeed.Warmup"):
        return lambda count: scheduler.step(count - 1)
    return None


def _rates_of_group(scheduler: Any, group: int, clock: Clock, replay: Replay) -> Rates:
    kind, name, moves = name_of(type(scheduler)), replay.name, replay.moves_beta(group)
    # The copy starts where the scheduler is now: only one that has not been stepped shows its beginning.
    replayed = None if replay.taken else replay.sequence(group, 0, clock)
    ends, run = scheduler.total_steps if kind == "torch.OneCycleLR" else None, None
    try:
        kind, settings = settings_of(scheduler, group, replayed)
        run = steps_of_run(settings)
        # Methods that were replaced in the class may do another thing later than can be tried out.
        rate = closed_form(kind, settings, clock) if not replay.patched else None
        beta = MOMENTA[kind](settings, clock) if kind in MOMENTA and settings.cycle_momentum else None
        length = COMPARED_STEPS if ends is None else ends - replay.taken
        known = rate is not None and replay.agrees(rate, beta, group, clock, length)
    except Exception:  # noqa: BLE001
        # No form of ours (a period that is not whole), a group that was added after the scheduler had been
        # made, a scheduler changed by hand: the copy knows what happens.
        known, rate, beta = False, None, None
    if known and rate is not None:
        if ends is not None:
            end = ends * clock.every
            return Rates(rate, beta, end, (f"OneCycleLR ends after its {end} steps; the last value is held",))
        if replayed is None or not any(node is replayed for node in tree.walk(rate)):
            return Rates(rate, beta, run and run * clock.every)
        said = f"the beginning of {name} was read off a copy of it, step by step"
    elif replayed is None:
        raise _stepped(name, replay.taken)
    elif Replay(scheduler, scheduler.optimizer).beginning(group) != replay.beginning(group):
        said = "gives other learning rates when it is asked again; expected rates that depend on the step alone"
        raise OptimizerError(f"{name} {said}")
    else:
        rate = replayed
        said = f"{name} has no known closed form: its learning rates were read off a copy of it, step by step"
    return Rates(rate, replay.sequence(group, 1, clock) if moves else None, notes=(said,))


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

    The copy is bound to a stand-in optimizer without parameters of the user's, so that nothing of theirs moves.
    """

    def __init__(self, scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
        self.name, self.taken = type(scheduler).__name__, steps_taken(scheduler)
        self._ended: OptimizerError | None = None
        homes = list(_homes(scheduler))
        self.patched = any(known and not own for known, own in homes)  # a package's class, with other methods
        self._watched = not all(known and own for known, own in homes)
        # It may begin to move the momentum late in the run.
        self._cycles = any(getattr(part, "cycle_momentum", False) for part in _parts(scheduler))
        stand_in = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.0)
        with told_as(OptimizerError, f"{self.name} cannot be copied to try it out:"):
            self._groups: list[dict[str, Any]] = [
                copy.deepcopy({key: value for key, value in group.items() if key != "params"}) | {"params": []}
                for group in optimizer.param_groups
            ]
            stand_in.param_groups = self._groups
            stand_in.defaults = dict(optimizer.defaults)
            # Every reference to the user's optimizer, in nested schedulers too, becomes one to the stand-in.
            stood_in = dict.fromkeys((id(optimizer), id(scheduler.optimizer)), stand_in)
            copied = copy.deepcopy(scheduler, parameters(optimizer) | stood_in)
            if any(part.optimizer is not stand_in for part in _parts(copied)):
                raise OptimizerError(f"{self.name} cannot be copied to try it out: its optimizer stays in the copy")
            if _is_timm(scheduler):  # back to where its constructor left it
                warm = getattr(scheduler, "warmup_t", 0)
                copied.update_groups(scheduler.warmup_lr_init if warm else scheduler.base_values)
            jump = _jump(copied)
            self._jumps, self._go = jump is not None, jump or (lambda _count: copied.step())
            # The rates of each group, and its momenta: the first of its betas.
            self._seen = [([float(group["lr"])], [_beta(group)]) for group in self._groups]
            settings = [name for name in optimizer.defaults if name != "lr"]
            self._first: list[dict[str, Any]] = [{name: group.get(name) for name in settings} for group in self._groups]

    def sequence(self, group: int, which: int, clock: Clock) -> Schedule:
        """Opaque lr_t (0) or beta_t (1) of a group."""
        name = f"{self.name}, momentum" if which else self.name
        return tree.Opaque(Called(partial(self._values, group, which), clock), name)

    def _values(self, group: int, which: int, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The rates (0) or momenta (1) after so many further scheduler steps."""
        self._advance(int(counts.max()))
        seen = self._seen[group][which]
        found = np.array([seen[count] for count in counts.tolist()])
        # Where torch's recursions should end at 0 they end at rounding errors of either sign.
        found[(found < 0) & (found >= -1e-12 * max(seen))] = 0.0
        return found

    def beginning(self, group: int) -> list[float]:
        """The first few rates, by which a second copy is compared with this one."""
        return self._seen[group][0][: self._available(COMPARED_STEPS // 20)]

    def moves_beta(self, group: int) -> bool:
        """Whether the momentum changes: by what the scheduler says of itself, or in its next steps."""
        return self._cycles or len(set(self._seen[group][1][: self._available(COMPARED_STEPS)])) > 1

    def agrees(self, rate: Schedule, beta: Schedule | None, group: int, clock: Clock, steps: int) -> bool:
        """Whether closed forms give what the scheduler does over its next steps, up to its last one."""
        counts = np.arange(self._available(max(1, min(COMPARED_STEPS, steps))))
        times = [clock.first_step(self.taken + count) for count in range(len(counts))]
        if beta is not None and not _close(beta.at(times), self._values(group, 1, counts), 1.0):
            return False
        real = self._values(group, 0, counts).tolist()
        for far in (int(COMPARED_STEPS * 1.5**n) for n in range(24) if self._jumps):
            self._go(far)  # it can be put to any count at once
            times.append(clock.first_step(far))
            real.append(float(self._groups[group]["lr"]))
        return _close(rate.at(times), np.array(real), np.maximum.accumulate(np.abs(real)))

    def _available(self, count: int) -> int:
        """So many values, or as many as there are of a scheduler that ends."""
        with contextlib.suppress(OptimizerError):
            self._advance(count - 1)
        return min(count, len(self._seen[0][0]))

    def _advance(self, count: int) -> None:
        allow(Work.REPLAYED, count, count)
        if self._ended is not None and len(self._seen[0][0]) <= count:
            raise self._ended
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, that the stand-in takes no steps of its own
            try:
                with told_as(OptimizerError, f"{self.name} raised at one of its steps:"):
                    for step in range(len(self._seen[0][0]), count + 1):
                        if step % PAGE == 0:
                            poll()
                        self._go(self.taken + step)
                        if self._watched:
                            self._check_rest(step)
                        for group, (rates, betas) in zip(self._groups, self._seen, strict=True):
                            rates.append(float(group["lr"]))
                            betas.append(_beta(group))
            except OptimizerError as ended:
                self._ended = ended
                raise

    def _check_rest(self, step: int) -> None:
        """Raise where a setting moves that is read as constant: a class of one's own may move anything."""
        for group, first, (_, betas) in zip(self._groups, self._first, self._seen, strict=True):
            moved = {name for name, value in first.items() if group.get(name) is not value != group.get(name)}
            # A beta that rests for all the steps that are looked at in advance is taken to rest.
            late = step >= COMPARED_STEPS and len(set(betas)) == 1
            if "betas" in moved and not late and group["betas"][1:] == first["betas"][1:]:
                moved -= {"betas"}
            if moved:
                said = f"{', '.join(sorted(moved))} at its step {step}; expected one of the rate and the momentum"
                raise OptimizerError(f"{self.name} moves {said}")


def _beta(group: Mapping[str, Any]) -> float:
    """What torch's schedulers of the momentum move: the first of the betas, or SGD's and RMSprop's momentum."""
    return float(group["betas"][0] if "betas" in group else group.get("momentum", math.nan))


def _close(ours: npt.NDArray[np.float64], real: npt.NDArray[np.float64], scale: Any) -> bool:
    """To six digits; recursions lose a few where the rate passes near zero."""
    allowed = np.maximum(1e-6 * np.maximum(np.abs(ours), np.abs(real)), 1e-9 * scale)
    return bool(np.all(np.abs(ours - real) <= allowed))
