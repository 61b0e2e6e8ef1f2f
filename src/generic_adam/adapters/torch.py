"""The algorithm of a live torch optimizer with its scheduler, parameter group by parameter group.

A scheduler's rates are in closed form only after that form has reproduced what a copy of the scheduler does over its
next steps, else by replay of the copy. So a subclass, a learning rate written from outside or another version of a
package lead to "unknown", never to a guess.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from generic_adam.adapters import updates
from generic_adam.adapters.clock import PAGE, Called, Clock, length_of_epoch
from generic_adam.adapters.schedulers import closed_form, one_cycle_momentum, parameters, settings_of, steps_of_run
from generic_adam.adapters.updates import name_of
from generic_adam.errors import GenericAdamError, OptimizerError, told_as
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm, merged
from generic_adam.methods.method import read_schedule
from generic_adam.schedules import Schedule, as_schedule, tree
from generic_adam.schedules.work import Work, allow, poll

with from_extra("torch"):
    import torch

    from generic_adam.torch.compat import hooks_after, hooks_before

COMPARED_STEPS = 500
"""Scheduler steps over which a closed form is compared with the scheduler itself."""
_ZERO = as_schedule(0)
_WRAPPERS = {"accelerate.optimizer", "pytorch_lightning.core.optimizer", "lightning.pytorch.core.optimizer"}
_COUNTS = (("last_epoch", 0), ("step_t", 0), ("last_batch_iteration", -1))  # pytorch_optimizer's, DeepSpeed's
# The code of the functions that torch wraps around a step: to call hooks, and to count for schedulers.
_HOOKED = torch.optim.Optimizer.profile_hook_step(lambda _: None).__code__


def read(
    optimizer: torch.optim.Optimizer, scheduler: Any = None, *, steps_per_scheduler_step: int | None = None
) -> Algorithm:
    """`generic_adam.adapters.read` for a torch optimizer: one of torch's that are known, or one of ours.

    Nothing of the optimizer or the scheduler is changed. t = 1 is the first step of the whole run, also where
    both have been stepped already: base rates and settings are read from the scheduler's attributes, and its
    present count is checked against them. Parts are in the order of their first parameter group.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise OptimizerError(f"expected a torch optimizer, got {type(optimizer).__name__}")
    optimizer = inside(optimizer)
    update, outside = _update_of(optimizer)
    source, notes = type(optimizer).__name__, ()
    if scheduler is None:
        rates = [_unscheduled(optimizer, group) for group in optimizer.param_groups]
    else:
        scheduler = _scheduler_inside(scheduler)
        _check_belongs(scheduler, optimizer)
        rates = scheduled_rates(scheduler, optimizer, steps_per_scheduler_step)
        source += f" with {type(scheduler).__name__}"
        notes = _apart(optimizer, scheduler, steps_per_scheduler_step or 1)
    own = hasattr(optimizer, "algorithm_of")  # which may know its groups by their identity
    beside = {"largest_lr": optimizer.defaults.get("lr"), "adam_w_mode": getattr(optimizer, "adam_w_mode", None)}
    arguments = getattr(optimizer, "args", None)  # of bitsandbytes, the same for all groups
    beside |= {name: getattr(arguments, name, None) for name in ("optim_bits", "percentile_clipping", "max_unorm")}
    parts = []
    for index, (group, rate) in enumerate(zip(optimizer.param_groups, rates, strict=True)):
        if rate.rate == _ZERO:
            notes += (f"group {index} stands still: its learning rate is 0",)
            continue
        if scheduler is not None:
            _check_drives(scheduler, group, rate)
        try:
            found = update(group if own else group | beside, rate.rate, rate.beta)
        except GenericAdamError as error:
            raise OptimizerError(f"{source}, parameter group {index}: {error}") from error
        if not isinstance(found, Algorithm):
            raise OptimizerError(f"{source}.algorithm_of returned a {type(found).__name__}; expected an Algorithm")
        found = replace(found, outside=(*found.outside, *outside), notes=(*found.notes, *rate.notes))
        parts.append(replace(found, source=source, groups=(index,), horizon=rate.horizon))
        if type(optimizer).__module__.startswith("torch.optim.") and not group.get("fused"):
            notes += tuple(one for one in _rounded_away(found, group["params"], rate.horizon) if one not in notes)
    if not parts:
        raise OptimizerError(f"{source}: every learning rate is 0; expected one that is not")
    algorithm = merged(parts)
    return replace(algorithm, notes=(*algorithm.notes, *notes))


def _rounded_away(x: Algorithm, params: list[torch.Tensor], horizon: int | None) -> Iterator[str]:
    """Yield settings that low-precision weights lose: torch's step rounds after the decay and keeps no copies."""
    for dtype in (torch.bfloat16, torch.float16):
        if all(one.dtype != dtype for one in params):
            continue
        name, steps = str(dtype).removeprefix("torch."), np.unique(np.geomspace(1, horizon or 10**6, 100).round())
        with contextlib.suppress(GenericAdamError):
            decay, eps = (float(np.max(one.at(steps))) for one in (x.decay, x.eps))
            if 0 < decay < torch.finfo(dtype).eps / 4:  # a factor so near 1 rounds every weight to itself
                yield f"lr x weight decay = {decay:.1g} is lost in {name} weights: it never changes one"
            if 0 < eps < torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps / 2:
                yield f"eps = {eps:.1g} is 0 in {name}: a gradient of 0 divides 0 by 0"


def inside(optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer that takes the steps, out of the class of accelerate's or Lightning's around it."""
    while type(optimizer).__module__ in _WRAPPERS:
        if _bare(optimizer.step) is not _bare(type(optimizer).step):
            raise OptimizerError(f"the step of {type(optimizer).__name__} has been replaced by another function")
        optimizer = optimizer.optimizer
    return optimizer


def _scheduler_inside(scheduler: Any) -> Any:
    """Return a scheduler out of accelerate's class around it, which takes a step for every process at once."""
    if type(scheduler).__module__ != "accelerate.scheduler":
        return scheduler
    processes = scheduler.optimizers[0].accelerator_state.num_processes
    if processes > 1 and scheduler.step_with_optimizer and not scheduler.split_batches:
        raise OptimizerError(f"accelerate steps the scheduler {processes} times at each step; expected one process")
    return scheduler.scheduler


def _apart(optimizer: torch.optim.Optimizer, scheduler: Any, every: int) -> tuple[str, ...]:
    """Return a remark where the optimizer's steps are not those after which its scheduler is where it is."""
    steps = max((int(state["step"]) for state in optimizer.state.values() if "step" in state), default=0)
    taken = _steps_taken(scheduler)
    if not steps or taken in {steps // every, (steps - 1) // every}:
        return ()
    return (f"the optimizer has taken {steps} steps and its scheduler {taken}: read as if both began together",)


def _update_of(optimizer: torch.optim.Optimizer) -> tuple[Callable[..., Algorithm], tuple[str, ...]]:
    """Return the function that reads the optimizer's groups, and what it does beside its class's steps."""
    kind = type(optimizer)
    for base in kind.__mro__:
        if updates.why_not(base) is not None:
            break
        if (known := updates.of_class(base)) is not None:
            return known, _beside(optimizer, base)
        if "algorithm_of" in vars(base):  # its package says itself what it runs
            package = base.__module__.partition(".")[0]
            own = next(one for one in kind.__mro__ if one.__module__.partition(".")[0] == package)
            return optimizer.algorithm_of, _beside(optimizer, own)  # pyright: ignore[reportAttributeAccessIssue]
    raise updates.not_read(kind)


def _beside(optimizer: torch.optim.Optimizer, known: type[torch.optim.Optimizer]) -> tuple[str, ...]:
    """Return what an optimizer does beside the steps of the class that it is read as."""
    kind, outside = type(optimizer), []
    # What a step calls is private: how the state starts, how a group is updated.
    names = [name for name in dir(known) if name == "step" or re.match("_(?!_)", name)]
    static = inspect.getattr_static
    if any(_bare(static(kind, name)) is not _bare(static(known, name)) for name in names):
        outside.append(f"{kind.__name__} takes its own steps, which may be others than {known.__name__}'s")
    replaced = {name for name in names if name in vars(optimizer) and callable(getattr(kind, name))}
    if _bare(optimizer.step) is not _bare(kind.step) or replaced - {"step"}:
        outside.append("the optimizer's step has been replaced by another function")
    if getattr(getattr(optimizer, "mng", None), "pid2config", None):
        outside.append("bitsandbytes' GlobalOptimManager has other settings for some parameters")
    # A hook is the user's own code, free to move the weights or their gradients.
    own = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    if own or hooks_before or hooks_after:
        outside.append("hooks run at every step")
    return tuple(outside)


def _bare(step: Any) -> Any:
    """Return a step without the layers that torch puts around it: hooks, and the count of steps for schedulers."""
    step = getattr(step, "__func__", step)
    while getattr(step, "__code__", None) is _HOOKED or getattr(step, "_wrapped_by_lr_sched", False):
        step = step.__wrapped__
    return step


class Rates(NamedTuple):
    """The rates that one parameter group gets: lr_t, and beta_t where a scheduler moves it.

    `horizon` is the length of the run that the scheduler names.
    """

    rate: Schedule
    beta: Schedule | None = None
    horizon: int | None = None
    notes: tuple[str, ...] = ()


def _unscheduled(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> Rates:
    # Adafactor's relative steps have no rate, and ask for none.
    rate = read_schedule("lr", 1 if group.get("relative_step") else float(group["lr"]))
    # A scheduler leaves a trace; a loop that writes the rate itself, as nanoGPT's, only another number.
    moved = "initial_lr" in group or (optimizer.state and group["lr"] != optimizer.defaults.get("lr"))
    said = "its learning rate is read as constant; where a scheduler or a loop moves it, hand over the scheduler too"
    return Rates(rate, notes=(said,) if moved else ())


def _check_drives(scheduler: Any, group: dict[str, Any], rate: Rates) -> None:
    """Raise where a GenericAdam has a schedule of its own: it refuses to step once something else writes there."""
    for name, written in (("lr", True), ("beta", rate.beta is not None)):
        own = group.get(f"{name}_schedule")
        if written and own is not None:
            said = f"and {type(scheduler).__name__} writes to it too; expected one of the two"
            raise OptimizerError(f"{name} follows the optimizer's own schedule {own}, {said}")


def _check_belongs(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    owner = getattr(scheduler, "optimizer", None)
    if owner is None:
        instead = (
            "; one of the rate goes in as LambdaLR(optimizer, lambda k: rate(k) / lr)" if callable(scheduler) else ""
        )
        raise OptimizerError(f"expected a torch learning-rate scheduler, got {type(scheduler).__name__}{instead}")
    if inside(owner) is not optimizer:
        said = f"belongs to another optimizer ({type(owner).__name__}); expected one made for this one"
        raise OptimizerError(f"{type(scheduler).__name__} {said}")


def scheduled_rates(scheduler: Any, optimizer: torch.optim.Optimizer, every: int | None = None) -> list[Rates]:
    """Return the rates of every parameter group under a scheduler that steps once in so many optimizer steps."""
    groups = range(len(optimizer.param_groups))
    for part in _parts(scheduler):
        # A function put in the place of a method may know the user's own objects, which a copy must not move.
        for name in vars(part):
            if callable(getattr(type(part), name, None)):
                said = "has been replaced by another function; expected a scheduler as its class makes it"
                raise OptimizerError(f"{type(part).__name__}.{name} {said}")
    if _asks_for_data(getattr(scheduler, "lr_scheduler", scheduler)):  # timm's has torch's inside
        said = "there is no sequence to read; expected the optimizer alone, whose present rate is then read"
        raise OptimizerError(f"{type(scheduler).__name__} depends on the data: {said}")
    clock, replay = Clock(_pace(scheduler, every)), Replay(scheduler, optimizer)
    return [_rates_of_group(scheduler, group, clock, replay) for group in groups]


def _parts(scheduler: Any) -> Iterator[Any]:
    """Yield the scheduler and those inside it."""
    yield scheduler
    for part in getattr(scheduler, "_schedulers", ()):
        yield from _parts(part)


def _asks_for_data(scheduler: Any) -> bool:
    """Return whether step() needs to be told something that is not a count: a loss, for transformers' GreedyLR."""
    if _is_timm(scheduler):
        return False
    arguments = inspect.signature(scheduler.step).parameters.values()
    return any(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in arguments)


def _is_timm(scheduler: Any) -> bool:
    """Return whether it has the interface of timm's: they keep no count, and are told one at each step."""
    return all(hasattr(scheduler, name) for name in ("step_update", "t_in_epochs", "base_values"))


def _pace(scheduler: Any, every: int | None) -> int:
    """Return the optimizer steps for each step of the scheduler."""
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


def _steps_taken(scheduler: Any) -> int:
    """Return how often `scheduler.step()` has been called."""
    while name_of(type(scheduler)) == "torch.ChainedScheduler":  # keeps no count of its own
        scheduler = scheduler._schedulers[0]
    if _is_timm(scheduler):
        return 0  # whatever it was told last, it can be told 0
    taken = next((getattr(scheduler, name) - first for name, first in _COUNTS if hasattr(scheduler, name)), -1)
    if not isinstance(taken, int) or taken < 0:
        raise OptimizerError(f"{type(scheduler).__name__} has no last_epoch; expected a torch learning-rate scheduler")
    return taken


def _rates_of_group(scheduler: Any, group: int, clock: Clock, replay: Replay) -> Rates:
    name, moves = replay.name, replay.moves_beta(group)
    try:
        kind, settings = settings_of(scheduler, group)
        rate, run, beta, notes, compared = closed_form(kind, settings, clock), steps_of_run(settings), None, (), None
        if kind == "torch.OneCycleLR":
            run, compared = settings.total_steps, settings.total_steps - replay.taken
            notes = (f"OneCycleLR ends after its {run * clock.every} steps; the last value is held",)
            beta = one_cycle_momentum(settings, clock) if settings.cycle_momentum else None
        if replay.agrees(rate, beta, group, clock, compared or COMPARED_STEPS):
            return Rates(rate, beta, run and run * clock.every, notes)
    except Exception:  # noqa: BLE001, S110
        # No form of ours (a period that is not whole), a group that was added after the scheduler had been
        # made, a scheduler changed by hand: the copy knows what happens.
        pass
    # The copy starts where the scheduler is now: only one that has not been stepped shows its beginning.
    if replay.taken:
        raise OptimizerError(
            f"{name} has been stepped {replay.taken} times and its earlier learning rates cannot be told from its "
            "state; expected a scheduler that has not been stepped yet"
        )
    if Replay(scheduler, scheduler.optimizer).beginning(group) != replay.beginning(group):
        said = "gives other learning rates when it is asked again; expected rates that depend on the step alone"
        raise OptimizerError(f"{name} {said}")
    beta = replay.sequence(group, 1, clock) if moves else None
    said = f"{name} has no known closed form: its learning rates were read off a copy of it, step by step"
    return Rates(replay.sequence(group, 0, clock), beta, notes=(said,))


class Replay:
    """Learning rates and momenta after 0, 1, 2, ... further steps of a copy of the scheduler.

    The copy is bound to a stand-in optimizer without parameters of the user's, so that nothing of theirs moves.
    """

    def __init__(self, scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
        self.name, self.taken = type(scheduler).__name__, _steps_taken(scheduler)
        self._ended: OptimizerError | None = None
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
            # Where rates depend on the count alone, it can be put to any count at once.
            self._jumps, self._go = False, lambda _count: copied.step()
            if _is_timm(copied):
                self._jumps, self._go = True, copied.step if copied.t_in_epochs else copied.step_update
            elif name_of(type(copied)).startswith("deepspeed.Warmup"):
                self._jumps, self._go = True, lambda count: copied.step(count - 1)
            # The rates of each group, and its momenta: the first of its betas.
            self._seen = [([float(group["lr"])], [_beta(group)]) for group in self._groups]
            settings = [name for name in optimizer.defaults if name != "lr"]
            self._first: list[dict[str, Any]] = [{name: group.get(name) for name in settings} for group in self._groups]

    def sequence(self, group: int, which: int, clock: Clock) -> Schedule:
        """Return lr_t (0) or beta_t (1) of a group as an opaque schedule."""
        name = f"{self.name}, momentum" if which else self.name
        return tree.Opaque(Called(partial(self._values, group, which), clock), name)

    def _values(self, group: int, which: int, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the rates (0) or momenta (1) after so many further scheduler steps."""
        self._advance(int(counts.max()))
        seen = self._seen[group][which]
        found = np.array([seen[count] for count in counts.tolist()])
        # Where torch's recursions should end at 0 they end at rounding errors of either sign.
        found[(found < 0) & (found >= -1e-12 * max(seen))] = 0.0
        return found

    def beginning(self, group: int) -> list[float]:
        """Return the first few rates, by which a second copy is compared with this one."""
        return self._seen[group][0][: self._available(COMPARED_STEPS // 20)]

    def moves_beta(self, group: int) -> bool:
        """Return whether the momentum changes: by what the scheduler says of itself, or in its next steps."""
        return self._cycles or len(set(self._seen[group][1][: self._available(COMPARED_STEPS)])) > 1

    def agrees(self, rate: Schedule, beta: Schedule | None, group: int, clock: Clock, steps: int) -> bool:
        """Return whether closed forms give what the scheduler does over its next steps, up to its last one."""
        counts = np.arange(self._available(max(1, min(COMPARED_STEPS, steps))))
        times = [clock.first_step(self.taken + count) for count in range(len(counts))]
        if beta is not None and not _close(beta.at(times), self._values(group, 1, counts), 1.0):
            return False
        real = self._values(group, 0, counts).tolist()
        for far in (int(COMPARED_STEPS * 1.5**n) for n in range(24) if self._jumps):
            self._go(far)
            times.append(clock.first_step(far))
            real.append(float(self._groups[group]["lr"]))
        return _close(rate.at(times), np.array(real), np.maximum.accumulate(np.abs(real)))

    def _available(self, count: int) -> int:
        """Return so many values, or as many as there are of a scheduler that ends."""
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
            if not moved:
                continue
            # A beta that rests for all the steps that are looked at in advance is taken to rest.
            late = step >= COMPARED_STEPS and len(set(betas[:COMPARED_STEPS])) == 1 and not self._cycles
            if not late and ("betas" not in moved or group["betas"][1:] == first["betas"][1:]):
                moved -= {"betas", "momentum"}
            if moved:
                said = f"{', '.join(sorted(moved))} at its step {step}; expected one of the rate and the momentum"
                raise OptimizerError(f"{self.name} moves {said}")


def _beta(group: Mapping[str, Any]) -> float:
    """Return the first of the betas, or SGD's and RMSprop's momentum: the number that torch's schedulers move."""
    return float(group["betas"][0] if "betas" in group else group.get("momentum", math.nan))


def _close(ours: npt.NDArray[np.float64], real: npt.NDArray[np.float64], scale: Any) -> bool:
    """Compare to six digits; recursions lose a few where the rate passes near zero."""
    allowed = np.maximum(1e-6 * np.maximum(np.abs(ours), np.abs(real)), 1e-9 * scale)
    return bool(np.all(np.abs(ours - real) <= allowed))
