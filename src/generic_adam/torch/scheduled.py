"""The torch optimizers' common frame: coefficients that follow schedules of t, hooks, checkpoints."""

import difflib
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.methods.algorithm import Algorithm
from generic_adam.schedules import Schedule, has_callable, parse
from generic_adam.schedules.tree import ScalarFunction
from generic_adam.torch import checkpoint, compat, kernels, rules, tensors
from generic_adam.torch.kernels import Kernel
from generic_adam.torch.rules import Coefficient, Rule
from generic_adam.torch.tensors import Bucket, State

# Keys that torch's own learning-rate schedulers and named parameters add to a group.
_KEYS_OF_TORCH = ("params", "param_names", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum")
_CALLABLE = "callable: "
# A learning rate this far below 0, in units of the one it started from, is what rounding left of 0.
_ROUNDING = 1e-12
_is_grad_enabled, _set_grad_enabled = torch.is_grad_enabled, compat.set_grad_enabled
_HOOKS_BEFORE, _HOOKS_AFTER, _is_profiled = compat.hooks_before, compat.hooks_after, compat.is_profiled
_is_compiling = torch.compiler.is_dynamo_compiling


_Followed = tuple[int, str, float, ScalarFunction, int, ScalarFunction]
"""A coefficient that follows a schedule: its place among a step's numbers, its name, what it stays below, its value,
the place of its complement, or 0, and the complement. A plain tuple, which is unpacked fastest."""


@dataclass(slots=True)
class Plan:
    """The facts about a group that are kept between steps.

    Attributes:
        step: how many steps had been made; a group with another count was loaded as a whole.
        shown: the group's values as the last step left them, so that one notices who else writes to it.
        sources: the schedules that it followed.
        options: its options as the tensors were gathered.
        followed: the coefficients that follow schedules.
        values: the numbers of the next step: the coefficients, and the complements of those below 1.
        ready: whether these are all in range, and need not be asked for when the step comes.
        in_place: whether a coefficient is a tensor, which is filled in place, without another object.
        frozen: the learning rate that its schedule showed when something else set it to 0.
        used: what the last step used: alpha_t with its bias correction, and the other coefficients.
        kept: the tensors that the next step may take again; none where there is more to do.
    """

    step: int = 0
    shown: tuple[Any, ...] = ()
    sources: Sequence[str | Schedule | None] = ()
    options: Sequence[Any] = ()
    followed: Sequence[_Followed] = ()
    values: list[float] = field(default_factory=list)
    ready: bool = False
    in_place: bool = False
    frozen: float | None = None
    used: tuple[float, ...] = ()
    kept: Sequence[Bucket] = ()

    def forget(self) -> None:
        """Hold no tensors any more: the state is brought up to date, and the next step gathers them anew."""
        for bucket in self.kept:
            bucket.write()
        self.kept = ()


class ScheduledOptimizer(Optimizer):
    """A torch optimizer whose coefficients are functions of the iteration t = 1, 2, 3, ...

    t is the optimizer's count of iterations, the same for all groups, as in the paper: a parameter without a gradient
    is left alone and time goes on, and a group that is added later starts at the present t. ``group["step"]`` shows the
    count done so far and may be set; one more than that is what a wrapper leaves that counts there too, and is passed
    over. Each step first reads every coefficient and every gradient of every group, and only then changes anything, so
    that a bad value leaves the parameters and the state as they were.

    A coefficient given as a plain number, or as a tensor of one element, is read from its group at every step, so that
    torch's learning-rate schedulers drive it. One given as a schedule shows in its group the value of the step about
    to be taken, so that loggers see it; something else that writes to it as well is an error, except that a learning
    rate of 0 freezes the weights for one step (torch.distributed.checkpoint so asks for the state of a new optimizer).

    Groups and `state_dict` hold schedules as text. A callable has no text: its place is kept, and loading
    needs an optimizer that was built with the callable.

    Under ``torch.compile`` a step leaves the graph and runs as it always does: its numbers are Python's, new at every
    step. CUDA graphs cannot capture one, for the same reason. ``ZeroRedundancyOptimizer`` works, but with
    ``overlap_with_ddp=True`` torch asks for an optimizer of its own kind without groups or hooks, and refuses others.

    A subclass declares what it has (`coefficients`, `options`, `running`, `_state_of`) and what a step does
    with it (`_update`).

    Args:
        params: the parameters, or groups of them.
        given: every coefficient, option and running number by name.
    """

    # The learning rate is the first.
    coefficients: ClassVar[tuple[Coefficient, ...]]
    # What else a group may be told, and the numbers that steps keep there.
    options: ClassVar[Mapping[str, Rule]]
    running: ClassVar[Mapping[str, Rule]] = {}
    # Keys by which a group of a state_dict is known to be of this optimizer: that must be there, or must not.
    _marks: ClassVar[Mapping[str, bool]]
    # GradScaler then leaves found_inf, and grad_scale to divide by, on the optimizer for one step.
    _step_supports_amp_scaling = True

    def __init__(self, params: ParamsT, given: Mapping[str, Any]) -> None:
        self._plans: dict[int, Plan] = {}
        self._schedules: dict[str, Schedule] = {}
        self._steps = 0  # for a time in which all groups have been taken out
        defaults: dict[str, Any] = {"step": 0, "steps_done": 0}
        defaults |= {name: rules.plain(value) for name, value in given.items()}
        for coefficient in self.coefficients:
            self._take(coefficient, given[coefficient.name], defaults)
        self._check_options(defaults)
        super().__init__(params, defaults)

    @property
    def state(self) -> defaultdict[Tensor, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The state by parameter, as in every torch optimizer; from now on somebody else may change it."""
        self._state_is_private = False
        for plan in self._present_plans():
            plan.forget()
        if "state" not in self.__dict__:
            raise AttributeError("state")  # a wrapper then asks what it wraps
        return self.__dict__["state"]

    @state.setter
    def state(self, state: defaultdict[Tensor, Any]) -> None:
        for plan in self._plans.values():
            plan.forget()
        self._state_is_private = "state" not in self.__dict__  # the first is torch's constructor's own
        self.__dict__["state"] = state

    def _present_plans(self) -> list[Plan]:
        """Return the plans of all groups; those of groups that are gone are forgotten."""
        groups = {id(group) for group in self.param_groups}
        for key in self._plans.keys() - groups:
            self._plans.pop(key).forget()
        return list(self._plans.values())

    def _take(self, coefficient: Coefficient, value: Any, group: dict[str, Any]) -> None:
        """Put a coefficient into a group: its value, and its schedule as text, or itself if it has none."""
        group[coefficient.name], schedule = coefficient.read(value)
        if schedule is not None and not has_callable(schedule):
            text = str(schedule)
            self._schedules[text] = schedule
            schedule = text
        group[coefficient.schedule_key] = schedule

    def _check_options(self, group: Mapping[str, Any]) -> None:
        """Raise an OptimizerError where an option or a running number of a group is out of range."""
        for name, rule in {**self.options, **self.running}.items():
            rule.check(name, group[name])

    def algorithm_of(
        self, group: Mapping[str, Any], lr: Schedule | None = None, beta: Schedule | None = None
    ) -> Algorithm:
        """Return the algorithm of one of the `param_groups`, as data that theorems look at.

        `lr` and `beta` are these as a scheduler drives them, where the group's are plain numbers.

        Raises:
            OptimizerError: no Algorithm says what it does.
        """
        del group, lr, beta
        raise OptimizerError(f"{type(self).__name__} is no Generic Adam: no theorem here covers it")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; what is not given is as the constructor has it.

        Raises:
            OptimizerError: an option is out of range or looks misspelt.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, got {type(param_group).__name__}")
        # A group taken from another optimizer starts anew here.
        group = {key: rules.plain(value) for key, value in param_group.items() if key not in self.running}
        known = [*self.defaults, *_KEYS_OF_TORCH]
        for key in group:
            # Groups may carry notes of the user's (a name, timm's lr_scale): only what looks like an option is refused.
            near = [] if key in known else difflib.get_close_matches(str(key), known, n=1, cutoff=0.8)
            if near:
                raise OptimizerError(f"parameter group has no option {key!r}; did you mean {near[0]!r}?")
        for coefficient in self.coefficients:
            # A group taken from another optimizer has its value beside its schedule, and keeps the schedule.
            if coefficient.name in group:
                own = group.get(coefficient.schedule_key)
                self._take(coefficient, group[coefficient.name] if own is None else own, group)
        group["step"] = group["steps_done"] = self.param_groups[0]["steps_done"] if self.param_groups else self._steps
        self._check_options({**self.defaults, **group})
        super().add_param_group(group)
        self._make_plan(self.param_groups[-1])

    def _make_plan(self, group: dict[str, Any]) -> Plan:
        """Find out what a group follows, and show there the values of the next step."""
        plan = self._plans.setdefault(id(group), Plan())
        plan.sources = [group[one.schedule_key] for one in self.coefficients]
        followed, at = [], len(self.coefficients)
        for index, (coefficient, source) in enumerate(zip(self.coefficients, plan.sources, strict=True)):
            if source is not None:
                schedule = self._schedule(source, coefficient.name)
                below, place, complement = math.inf, 0, schedule
                if coefficient.below_one:
                    below, place, complement = 1.0, at, schedule.complement
                scalars = (below, schedule.scalar, place, complement.scalar)
                followed.append((index, coefficient.name, *scalars))
            at += coefficient.below_one
        plan.step, plan.followed, plan.frozen = rules.WHOLE.check("steps_done", group["steps_done"]), followed, None
        plan.values = [group[one.name] for one in self.coefficients] + [0.0] * (at - len(self.coefficients))
        self._show(group, plan)
        plan.ready, plan.shown = False, tuple(group.values())
        return plan

    def _schedule(self, source: Any, name: str) -> Schedule:
        """Return the schedule of a coefficient from its group's entry: a text, or the schedule of a callable."""
        if isinstance(source, Schedule):
            return source
        if not isinstance(source, str):
            raise OptimizerError(f"the saved {name}_schedule is {rules.shown(source)}; expected a text")
        if source not in self._schedules:
            if source.startswith(_CALLABLE):
                raise OptimizerError(
                    f"the saved {name} was the Python {source}, which a state_dict cannot hold: "
                    "build the optimizer with it"
                )
            try:
                self._schedules[source] = parse(source)
            except ScheduleError as error:
                raise OptimizerError(f"the saved {name} cannot be read: {error}") from error
        return self._schedules[source]

    def _show(self, group: dict[str, Any], plan: Plan) -> None:
        """Show in a group what it follows at its next step, and put that among the values of that step."""
        t, values = plan.step + 1, plan.values
        try:
            for index, name, below, value_at, at, complement_at in plan.followed:
                value = values[index] = group[name] = value_at(t)
                if at:
                    values[at] = complement_at(t)
                if not 0.0 < value < below:
                    plan.ready = False
        except Exception:  # noqa: BLE001  (a callable may fail in any way; the step that needs it says so)
            plan.ready = False
        if plan.frozen is not None:
            # A learning rate that was set to 0 may be put back to what it was.
            group["lr"], plan.ready = 0.0, False
        if "betas" in group:
            group["betas"] = (group["beta"], group["theta"])

    def _read(self, group: dict[str, Any], plan: Plan) -> None:
        """Find the numbers of a step of a group that something else may have written to, each checked."""
        count = rules.WHOLE.check("step", group["step"])
        if count not in {plan.step, plan.step + 1}:
            group["steps_done"] = count
        sources = [group[c.schedule_key] for c in self.coefficients]
        # What somebody writes into a group may be a tensor or an array, which cannot be asked whether it is equal.
        if plan.step is not group["steps_done"] or not all(map(is_, plan.sources, sources)):
            self._make_plan(group)
        plan.in_place = any(isinstance(group[c.name], Tensor) for c in self.coefficients)
        options = [group[name] for name in self.options]
        if not plan.options or not all(map(is_, plan.options, options)):
            self._check_options(group)
            plan.options = options
            plan.forget()
        t, values, complements, frozen = plan.step + 1, [], [], None
        for index, (coefficient, source) in enumerate(zip(self.coefficients, plan.sources, strict=True)):
            name, value, exact = coefficient.name, coefficient.plain(group[coefficient.name]), None
            if source is None:
                value = value if index else self._without_rounding(value, group)
            else:
                schedule, shown = self._schedule(source, name), plan.values[index]
                if index == 0 and plan.frozen is not None:
                    shown = plan.frozen
                if value is shown or value == shown:
                    value, exact = schedule(t), schedule.complement
                elif index == 0 and value == 0.0:
                    frozen = shown
                else:
                    raise OptimizerError(
                        f"{name} follows the schedule {source}, but something else set it to {value}: "
                        f"give {name} as a plain number to drive it from outside"
                    )
            values.append(coefficient.check(value, t))
            if coefficient.below_one:
                complements.append(1.0 - value if exact is None else exact(t))
        plan.values, plan.frozen = values + complements, frozen

    def _without_rounding(self, rate: float, group: Mapping[str, Any]) -> float:
        """Return a learning rate, or 0 for the remainder of a scheduler's rounding, in units of the first rate."""
        if not -math.inf < rate < 0.0:
            return rate
        known = [group.get("initial_lr"), group.get("max_lr"), self.defaults["lr"]]
        largest = max(self.coefficients[0].plain(one) for one in known if one is not None)
        return 0.0 if -rate <= _ROUNDING * largest else rate

    def used(self, group: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the coefficients of the last step, alpha_t with its bias correction first; () before the first."""
        plan = self._plans.get(id(group))
        return () if plan is None else plan.used

    def _gather(self, group: dict[str, Any], plan: Plan) -> Sequence[Bucket]:
        """Find the tensors of a group's update, with state made where there is none; changes no parameter."""
        plan.forget()
        for other in self._present_plans():
            for bucket in other.kept:
                bucket.write()  # its parameters may have come from there
        params, state = group["params"], self.__dict__["state"]
        buckets = tensors.gather(params, state, lambda parameter: self._state_of(parameter, group))
        for bucket in buckets:
            bucket.run_with(self._kernel_for(group, bucket))
        complete = sum(len(bucket.places) for bucket in buckets) == len(params)
        if complete and all(bucket.hold(params) for bucket in buckets):
            plan.kept = buckets
        return buckets

    def _kernel_for(self, group: Mapping[str, Any], bucket: Bucket) -> Kernel:
        """Return the kernel that updates the tensors of a bucket, as long as the group's options stay as they are."""
        del group, bucket
        return kernels.form(0.5, 0.0, False, True)

    @abstractmethod
    def _state_of(self, parameter: Tensor, group: Mapping[str, Any]) -> State:
        """Return the parts of a parameter's state: tensors, which a step updates in place, and numbers."""

    @abstractmethod
    def _update(self, group: dict[str, Any], plan: Plan, buckets: Sequence[Bucket]) -> None:
        """Carry out the step after `group["step"]` with the plan's values."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Carry out one iteration.

        Args:
            closure: evaluates the model again and returns the loss.

        Returns:
            What the closure returned, or None.

        Raises:
            OptimizerError: a coefficient is out of range, or a gradient cannot be used; nothing was changed.
            ScheduleError: a schedule has no value at this t; nothing was changed.
        """
        if _is_compiling():
            return self._step_outside(closure)
        own = self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
        if own or _HOOKS_BEFORE or _HOOKS_AFTER or _is_profiled():
            return self._step_with_hooks() if closure is None else self._step_with_hooks(closure)
        return self._step(closure)

    # torch wraps `step` to call hooks and label profiles, which costs as much as a small network's update:
    # the label is made here only while a profiler runs.
    step.hooked = True  # pyright: ignore[reportFunctionMemberAccess]

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found_inf = self.__dict__.get("found_inf")
        if found_inf is not None and found_inf.item():
            return loss
        grad_was_enabled = _is_grad_enabled()
        _set_grad_enabled(False)
        try:
            prepared, seen = [], None if self._state_is_private else self.__dict__["state"]
            for group in self.param_groups:
                # A group without a plan was loaded as a whole, as ZeroRedundancyOptimizer does.
                plan = self._plans.get(id(group)) or self._make_plan(group)
                # The same objects: a tensor that equals a number today may be filled with another tomorrow.
                if not (plan.ready and all(map(is_, group.values(), plan.shown))):
                    self._read(group, plan)
                buckets = plan.kept
                for bucket in buckets:
                    if not bucket.take(group["params"], seen):
                        buckets = ()
                        break
                prepared.append((group, plan, buckets or self._gather(group, plan)))
            for group, plan, buckets in prepared:
                self._update(group, plan, buckets)
                for bucket in buckets:
                    bucket.finish(is_seen=not self._state_is_private)
                self._steps = plan.step = group["step"] = group["steps_done"] = plan.step + 1
                plan.ready = not plan.in_place
                if plan.followed:
                    self._show(group, plan)
                plan.shown = tuple(group.values())
        finally:
            _set_grad_enabled(grad_was_enabled)
        return loss

    _step_with_hooks = Optimizer.profile_hook_step(_step)
    _step_outside = compat.outside_graphs(_step_with_hooks)

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain types, which ``torch.load(weights_only=True)`` reads."""
        result = super().state_dict()
        for group in result["param_groups"]:
            for coefficient in self.coefficients:
                source = group[coefficient.schedule_key]
                if isinstance(source, Schedule):
                    group[coefficient.schedule_key] = _CALLABLE + str(source)
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; schedules and numbers are then the saved ones.

        The forms of Adam also load a state of torch.optim.Adam or AdamW, whose weight decay must be decoupled:
        m, v and t are taken from it, and the numbers that are not scheduled here.

        An option that the saved state does not know, because it is younger, has its default. Every tensor is
        compared with its parameter first.

        Raises:
            OptimizerError: the state is of another optimizer, does not fit the parameters, or needs a
                callable that this one does not have; nothing was changed.
        """
        if not isinstance(state_dict, Mapping):
            raise OptimizerError(f"the state_dict is {rules.shown(state_dict)}; expected 'state' and 'param_groups'")
        # The last of the hooks, so that it sees what the others made of the state.
        handle = self.register_load_state_dict_pre_hook(lambda _, saved: checkpoint.keep(saved, self.param_groups))
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state: of a pickle, a copy, or a `state_dict` (torch's `load_state_dict` ends here)."""
        if "param_groups" in self.__dict__:
            checkpoint.release(state["state"])
            self._check_loaded(state, self.param_groups)
        else:
            self._schedules = {}
        self._plans, self._state_is_private, self._steps = {}, False, 0
        super().__setstate__(state)
        for group in self.param_groups:
            self._steps = self._make_plan(group).step

    def _check_loaded(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        """Bring a loaded state into the form of this version, or raise an error that says why it is none."""
        for index, (group, before) in enumerate(zip(state["param_groups"], present, strict=True)):
            for key, needed in self._marks.items():
                if (key in group) is not needed:
                    found = f"{'no' if needed else 'a'} {key!r}"
                    raise OptimizerError(f"the state_dict is not one of {type(self).__name__}: it has {found}")
            for key, default in self.defaults.items():
                group.setdefault(key, default)
            step = rules.WHOLE.check("the saved step", rules.number(group["step"]))
            group["step"] = group["steps_done"] = int(step)
            for coefficient in self.coefficients:
                self._check_loaded_coefficient(coefficient, group, before)
            self._check_options(group)
            for number, parameter in enumerate(group["params"]):
                moments = state["state"].get(parameter)
                if moments:
                    where = f"parameter {number} of group {index}"
                    checkpoint.fit(parameter, moments, self._state_of(parameter, group), where)

    def _check_loaded_coefficient(
        self, coefficient: Coefficient, group: dict[str, Any], before: Mapping[str, Any]
    ) -> None:
        key, name = coefficient.schedule_key, coefficient.name
        source = group[key]
        if isinstance(source, str) and source.startswith(_CALLABLE):
            source = group[key] = before[key] or source
        if source is None:
            value = group[name]
            if coefficient is self.coefficients[0] and rules.is_number(value):
                value = self._without_rounding(value, group)
            try:
                group[name] = coefficient.number(value)
            except OptimizerError as error:
                raise OptimizerError(f"the saved {error}") from None
        else:
            self._schedule(source, name)
