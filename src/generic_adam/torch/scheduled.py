"""The torch optimizers' common frame: coefficients that follow schedules of t, hooks, checkpoints."""

import difflib
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch._compile import _disable_dynamo  # as torch.compiler.disable, which imports the compiler at once
from torch.autograd import profiler
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT, _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.methods.algorithm import Algorithm
from generic_adam.methods.method import ScheduleLike
from generic_adam.schedules import Opaque, Schedule, parse
from generic_adam.schedules.tree import ScalarFunction
from generic_adam.torch import checkpoint
from generic_adam.torch.checkpoint import Expected, Range
from generic_adam.torch.coefficients import Coefficient, Number, is_number, shown
from generic_adam.torch.tensors import state_dtype

# Keys that torch's own learning-rate schedulers and named parameters add to a group.
_KEYS_OF_TORCH = ("params", "param_names", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum")
_CALLABLE = "callable: "
# A learning rate this far below 0, in units of the one it started from, is what rounding left of 0.
_ROUNDING = 1e-12
# What torch.no_grad uses, without the object around it.
_set_grad_enabled = torch._C._set_grad_enabled
_is_compiling = torch.compiler.is_dynamo_compiling


class _Followed(NamedTuple):
    """A coefficient that follows a schedule.

    Attributes:
        index: its place among the coefficients.
        name: its key in the group.
        value: the sequence.
        at: the place of its complement among a step's numbers, 0 where it has none.
        complement: 1 minus the sequence, without cancellation.
    """

    index: int
    name: str
    value: ScalarFunction
    at: int
    complement: ScalarFunction


class Plan:
    """What is known of a group between steps, and what it shows: so that one notices who else writes to it.

    Attributes:
        step: how many steps had been made; a group with another count was loaded as a whole.
        shown: what the group holds of its coefficients, their schedules and the options that are watched.
        values: the numbers of the next step, or None where they are to be asked for then.
        in_range: whether they are known to be in range.
        followed: the coefficients that follow schedules.
        used: what the last step used: alpha_t with its bias correction, and the other coefficients.
        gathered: the tensors of a group that needs nothing done to them, or None.
    """

    __slots__ = ("followed", "gathered", "in_range", "shown", "step", "used", "values")

    step: int
    shown: tuple[Any, ...]
    values: tuple[float, ...] | None
    in_range: bool
    followed: list[_Followed]

    def __init__(self) -> None:
        self.used: tuple[float, ...] = ()
        self.gathered: Any = None


class ScheduledOptimizer(Optimizer):
    """A torch optimizer whose coefficients are functions of the iteration t = 1, 2, 3, ...

    t is the optimizer's count of iterations, the same for all groups, as in the paper: a parameter without a
    gradient is left alone and time goes on, and a group that is added later starts at the present t. The
    count done so far is ``group["step"]``. Each step first reads every coefficient and every gradient of
    every group, and only then changes anything, so that a bad value leaves the parameters and the state as
    they were.

    A coefficient given as a plain number, or as a tensor of one element, is read from its group at every
    step, so that torch's learning-rate schedulers drive it. One given as a schedule shows in its group the
    value of the step about to be taken, as a driven one does, so that loggers see it; something else that
    writes to it as well is an error, except that a learning rate of 0 freezes the weights for one step (which
    is how torch.distributed.checkpoint asks for the state of a new optimizer).

    Groups and `state_dict` hold schedules as text. A callable has no text: its place is kept, and loading
    needs an optimizer that was built with the callable.

    Under ``torch.compile`` a step leaves the graph and runs as it always does: its numbers are Python's, new
    at every step, and a compiled copy of them would be those of one step. The kernel is torch's fused one
    anyway. CUDA graphs cannot capture a step, for the same reason. ``ZeroRedundancyOptimizer`` works, but
    with ``overlap_with_ddp=True`` torch asks for an optimizer of its own kind without groups or hooks, and
    refuses others.
    """

    # The learning rate is the first.
    coefficients: ClassVar[tuple[Coefficient, ...]]
    # Keys of a group that no other optimizer's state_dict has all of.
    _distinctive: ClassVar[tuple[str, ...]]
    # Keys that only the states of other optimizers have.
    _foreign: ClassVar[tuple[str, ...]] = ()
    # What else of a group is compared with how the last step left it.
    _watched: ClassVar[tuple[str, ...]] = ()
    # GradScaler then hands over found_inf and grad_scale in place of unscaling by itself.
    _step_supports_amp_scaling = True

    def __init__(
        self, params: ParamsT, scheduled: Mapping[str, ScheduleLike | Tensor], options: Mapping[str, Any]
    ) -> None:
        self._forget()
        defaults: dict[str, Any] = {"step": 0, **options}
        for coefficient in self.coefficients:
            value, schedule = coefficient.read(scheduled[coefficient.name])
            defaults[coefficient.name] = value
            defaults[coefficient.schedule_key] = self._keep(schedule)
        self._check_options(defaults)
        super().__init__(params, defaults)

    def _forget(self) -> None:
        """Start anew with what is remembered between steps and not part of the state."""
        self._plans: dict[int, Plan] = {}
        self._schedules: dict[str, Schedule] = {}
        names = tuple(coefficient.name for coefficient in self.coefficients)
        keys = tuple(coefficient.schedule_key for coefficient in self.coefficients)
        self._read_values: Callable[[Mapping[str, Any]], tuple[Number, ...]] = itemgetter(*names)
        self._read: Callable[[Mapping[str, Any]], tuple[Any, ...]] = itemgetter(*names, *keys, *self._watched)
        # A step's numbers are the coefficients and then the complements of those below 1.
        below_one = [index for index, one in enumerate(self.coefficients) if one.below_one]
        self._complement_at = {index: len(names) + at for at, index in enumerate(below_one)}

    @abstractmethod
    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        """Raise an OptimizerError where an option of a group is out of range."""

    def algorithm_of(
        self, group: Mapping[str, Any], lr: Schedule | None = None, beta: Schedule | None = None
    ) -> Algorithm:
        """What this optimizer does to a parameter group, as data that theorems look at.

        Args:
            group: one of `param_groups`.
            lr: the learning rate as a scheduler drives it, where the group's is a plain number.
            beta: likewise for the momentum parameter.

        Raises:
            OptimizerError: no Algorithm says what it does.
        """
        del group, lr, beta
        raise OptimizerError(f"{type(self).__name__} is no Generic Adam: no theorem here speaks of it")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; what is not given is as the constructor has it.

        Raises:
            OptimizerError: an option is out of range or looks misspelt.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, got {type(param_group).__name__}")
        group = dict(param_group)
        self._refuse_misspelt(group)
        for coefficient in self.coefficients:
            # A group taken from another optimizer has its value beside its schedule, and keeps the schedule.
            given = group.get(coefficient.schedule_key)
            if given is None:
                given = group.get(coefficient.name)
            if given is not None or coefficient.name in group:
                value, schedule = coefficient.read(given)  # type: ignore[arg-type]
                group[coefficient.name] = value
                group[coefficient.schedule_key] = self._keep(schedule)
        group["step"] = self.param_groups[0]["step"] if self.param_groups else 0
        self._check_options({**self.defaults, **group})
        super().add_param_group(group)
        self._make_plan(self.param_groups[-1])

    def _refuse_misspelt(self, group: Mapping[str, Any]) -> None:
        known = [*self.defaults, *_KEYS_OF_TORCH]
        for key in group:
            if key in known:
                continue
            # Groups may carry notes of the user's (a name, timm's lr_scale): only what looks like an option
            # is refused.
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.8)
            if near:
                raise OptimizerError(f"parameter group has no option {key!r}; did you mean {near[0]!r}?")

    def _keep(self, schedule: Schedule | None) -> str | Schedule | None:
        """What a group keeps of a schedule: its text, which programs can save, or itself if it has none."""
        if schedule is None or _is_opaque(schedule):
            return schedule
        text = str(schedule)
        self._schedules[text] = schedule
        return text

    def _make_plan(self, group: dict[str, Any]) -> Plan:
        """Look one step ahead: show the next step's scheduled values in the group, and remember them."""
        t = group["step"] + 1
        plan = self._plans.setdefault(id(group), Plan())
        plan.step, plan.in_range, plan.followed = group["step"], False, []
        for index, coefficient in enumerate(self.coefficients):
            source = group[coefficient.schedule_key]
            if source is not None:
                schedule, at = self._schedule(source, coefficient.name), self._complement_at.get(index, 0)
                complement = schedule.complement if at else schedule
                plan.followed.append(
                    _Followed(index, coefficient.name, schedule.scalar, at, complement.scalar)
                )
        try:
            for one in plan.followed:
                group[one.name] = one.value(t)
            plan.values = self._with_complements(list(map(float, self._read_values(group))), plan.followed, t)
        except Exception:  # noqa: BLE001  (a callable may fail in any way; the step that needs it says so)
            plan.values = None
        self._mirror(group)
        if any(isinstance(value, Tensor) for value in self._read_values(group)):
            plan.values = None  # filled in place, without another object to notice it by
        plan.shown = self._read(group)
        return plan

    def _with_complements(self, values: list[float], followed: list[_Followed], t: int) -> tuple[float, ...]:
        """The coefficients, and 1 - value of those below 1: the schedule's own where digits would cancel."""
        values += [1.0 - values[index] for index in self._complement_at]
        for one in followed:
            if one.at and values[one.index] >= 0.5:
                values[one.at] = one.complement(t)
        return tuple(values)

    def _mirror(self, group: dict[str, Any]) -> None:
        """Bring what else a group shows of its coefficients up to date; nothing by default."""

    def _plan(self, group: dict[str, Any]) -> Plan:
        plan = self._plans.get(id(group))
        if plan is None or plan.step != group["step"]:
            # Loaded as a whole, which ZeroRedundancyOptimizer does without calling load_state_dict.
            plan = self._make_plan(group)
        return plan

    def _values(self, group: dict[str, Any], plan: Plan) -> tuple[float, ...]:
        """This step's numbers: the coefficients, all in range, and the complements of those below 1."""
        now = self._read(group)
        if plan.in_range and plan.values is not None and now == plan.shown:
            return plan.values
        numbers = len(self.coefficients)
        if now[numbers : 2 * numbers] != plan.shown[numbers : 2 * numbers]:
            self._make_plan(group)  # with other schedules
        self._settle(group, plan)
        written = self._read_values(group)
        values = plan.values
        if values is None or written != plan.shown[:numbers]:
            values = self._driven(group, written, plan)
        for coefficient, value in zip(self.coefficients, values, strict=False):
            coefficient.check(value, plan.step + 1)
        return values

    def _settle(self, group: dict[str, Any], plan: Plan) -> None:
        """Something may have written to the group, also to what is watched there."""
        del group
        plan.gathered = None

    def _driven(self, group: Mapping[str, Any], written: tuple[Number, ...], plan: Plan) -> tuple[float, ...]:
        """The numbers of a group that something else writes to: plain ones, or a frozen rate."""
        t = plan.step + 1
        values: list[float] = []
        for index, coefficient in enumerate(self.coefficients):
            name, source, value = coefficient.name, group[coefficient.schedule_key], written[index]
            if source is None:
                values.append(float(value))
            elif value == plan.shown[index]:
                values.append(plan.values[index] if plan.values else self._schedule(source, name)(t))
            elif index == 0 and value == 0.0:
                values.append(0.0)
            else:
                raise OptimizerError(
                    f"{name} follows the schedule {source}, but something else set it to {value}: "
                    f"give {name} as a plain number to drive it from outside"
                )
        values[0] = self._without_rounding(values[0], group)
        return self._with_complements(values, plan.followed, t)

    def _without_rounding(self, rate: float, group: Mapping[str, Any]) -> float:
        """A learning rate, or 0 for what a scheduler's rounding left of 0, in units of the one it had."""
        if not -math.inf < rate < 0.0:
            return rate
        known = [group.get("initial_lr"), group.get("max_lr"), self.defaults["lr"]]
        largest = max(float(one) for one in known if one is not None)
        return 0.0 if -rate <= _ROUNDING * largest else rate

    def _publish(self, group: dict[str, Any], plan: Plan, values: tuple[float, ...]) -> None:
        """Count the step, and show the values of the next."""
        t = group["step"] = plan.step + 1
        followed = plan.followed
        if plan.values is None or (followed and values[0] == 0.0):
            self._publish_slowly(group, plan, values)
            return
        plan.step = t
        if followed:
            upcoming, in_range = list(values), True
            try:
                for index, name, value_at, at, complement in followed:
                    value = upcoming[index] = group[name] = value_at(t + 1)
                    if at:
                        upcoming[at] = complement(t + 1) if value >= 0.5 else 1.0 - value
                    in_range = in_range and 0.0 < value < 1.0
            except Exception:  # noqa: BLE001  (as in _make_plan)
                self._make_plan(group)
                return
            self._mirror(group)
            plan.values, plan.in_range, plan.shown = tuple(upcoming), in_range, self._read(group)
        elif not plan.in_range or values is not plan.values:
            plan.values, plan.in_range, plan.shown = values, True, self._read(group)

    def _publish_slowly(self, group: dict[str, Any], plan: Plan, values: tuple[float, ...]) -> None:
        put_back = plan.shown[0]
        self._make_plan(group)
        frozen = values[0] == 0.0 != put_back and group["lr_schedule"] is not None
        if frozen and group["lr"] != 0.0:
            # A learning rate that was set to 0 may be put back to what it was.
            group["lr"] = 0.0
            plan.shown = (put_back, *plan.shown[1:])

    def _schedule(self, source: str | Schedule, name: str) -> Schedule:
        """The schedule of a coefficient from what its group has: a text, or the schedule of a callable."""
        if not isinstance(source, str):
            return source
        return self._schedules.get(source) or self._parse(source, name)

    def _parse(self, source: str, name: str) -> Schedule:
        if source.startswith(_CALLABLE):
            raise OptimizerError(
                f"the saved {name} was the Python {source}, which a state_dict cannot hold: "
                "build the optimizer with it"
            )
        try:
            schedule = self._schedules[source] = parse(source)
        except ScheduleError as error:
            raise OptimizerError(f"the saved {name} cannot be read: {error}") from error
        return schedule

    def used(self, group: Mapping[str, Any]) -> tuple[float, ...]:
        """The coefficients of the last step, alpha_t with its bias correction first; () before the first."""
        plan = self._plans.get(id(group))
        return () if plan is None else plan.used

    @property
    def grad_divisor(self) -> Tensor | None:
        """What the gradients are to be divided by: the scale that a GradScaler leaves here for one step."""
        return self.__dict__.get("grad_scale")

    @abstractmethod
    def _gather(self, group: dict[str, Any], plan: Plan) -> Any:
        """The tensors of a group's update, with state made where there is none; changes no parameter."""

    @abstractmethod
    def _update(self, group: dict[str, Any], plan: Plan, values: tuple[float, ...], gathered: Any) -> None:
        """Carry out the step after `plan.step` on what was gathered."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Carry out one iteration.

        Args:
            closure: evaluates the model again and returns the loss.

        Returns:
            What the closure returned, or None.

        Raises:
            OptimizerError: a coefficient is out of range, or a gradient cannot be used; nothing was changed.
        """
        if _is_compiling():
            return self._step_outside(closure)
        if (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
            or profiler._is_profiler_enabled
        ):
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
        grad_was_enabled = torch.is_grad_enabled()
        _set_grad_enabled(False)
        try:
            prepared = []
            for group in self.param_groups:
                plan = self._plan(group)
                prepared.append((group, plan, self._values(group, plan), self._gather(group, plan)))
            for group, plan, values, gathered in prepared:
                self._update(group, plan, values, gathered)
                self._publish(group, plan, values)
        finally:
            _set_grad_enabled(grad_was_enabled)
        return loss

    _step_with_hooks = Optimizer.profile_hook_step(_step)
    _step_outside = _disable_dynamo(_step_with_hooks)

    def state_dict(self) -> dict[str, Any]:
        """The state in plain types, which ``torch.load(weights_only=True)`` reads."""
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
        # The last of the hooks, so that it sees what the others made of the state.
        handle = self.register_load_state_dict_pre_hook(
            lambda _, saved: checkpoint.keep(saved, self.param_groups)
        )
        try:
            if not isinstance(state_dict, Mapping):
                checkpoint.keep(state_dict, self.param_groups)  # which says what is wrong with it
            super().load_state_dict(state_dict)
        finally:
            handle.remove()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state: of a pickle, a copy, or a `state_dict` (torch's `load_state_dict` ends here)."""
        present = self.__dict__.get("param_groups")
        if present is not None:
            self._check_loaded(state, present)
        self._forget()
        super().__setstate__(state)
        for group in self.param_groups:
            self._make_plan(group)

    def _check_loaded(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        """Bring a loaded state into the form of this version, or raise an error that says why it is none."""
        self._translate(state, present)
        for index, (group, before) in enumerate(zip(state["param_groups"], present, strict=True)):
            wrong = [f"no {key!r}" for key in self._distinctive if key not in group]
            wrong += [f"a {key!r}" for key in self._foreign if key in group]
            if wrong:
                raise OptimizerError(f"the state_dict is not one of {type(self).__name__}: it has {wrong[0]}")
            for key, default in self.defaults.items():
                group.setdefault(key, default)
            group["step"] = checkpoint.WHOLE.check("the saved step", group["step"])
            for coefficient in self.coefficients:
                self._check_loaded_coefficient(coefficient, group, before)
            self._check_options(group)
            for number, parameter in enumerate(group["params"]):
                moments = state["state"].get(parameter)
                if moments:
                    expected = self._state_of(parameter, group)
                    checkpoint.take(parameter, moments, expected, f"parameter {number} of group {index}")

    def _check_loaded_coefficient(
        self, coefficient: Coefficient, group: dict[str, Any], before: Mapping[str, Any]
    ) -> None:
        key, name = coefficient.schedule_key, coefficient.name
        source = group[key]
        if isinstance(source, str) and source.startswith(_CALLABLE):
            source = group[key] = before[key] or source
        if source is None:
            value = group[name]
            if coefficient is self.coefficients[0] and is_number(value):
                value = self._without_rounding(value, group)
            try:
                group[name] = coefficient.number(value)
            except OptimizerError as error:
                raise OptimizerError(f"the saved {error}") from None
        elif isinstance(source, (str, Schedule)):
            self._schedule(source, name)
        else:
            raise OptimizerError(f"the saved {key} is {shown(source)}; expected a text")

    def _state_of(self, parameter: Tensor, group: Mapping[str, Any]) -> dict[str, Expected | Range]:
        """What a parameter's state consists of: tensors, which a step updates in place, and numbers."""
        del group
        return checkpoint.of_adam(Expected(parameter.shape, state_dtype(parameter)))

    def _translate(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        """Bring a loaded state of another optimizer into this one's form, in place; nothing by default."""


def _is_opaque(schedule: Schedule) -> bool:
    return isinstance(schedule, Opaque) or any(map(_is_opaque, schedule.children))
