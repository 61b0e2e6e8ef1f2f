"""The user's optimizer, or a copy of it, taking steps with gradients of ours: what it did is a Trace.

Objects that the caller holds are never stepped: parameters are replaced by small ones of the same format while the
optimizer and its scheduler are copied, and a fingerprint of the originals is compared before and after.
"""

from __future__ import annotations

import contextlib
import copy
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.errors import OptimizerError, told_as
from generic_adam.extras import from_extra
from generic_adam.verify.replay import EIGHT_BITS, HALF, ROUNDOFF, Floats, Trace

with from_extra("torch"):
    import torch

_REAL = 50_000  # parameters of so many weights keep their shapes


@dataclass
class Subject:
    """The attributes of an object that a user's `make()` may return, and that object."""

    named: list[tuple[str, Any]]
    optimizer: Any = None
    scheduler: Any = None
    every: int = 1
    step: Callable[[list[Any]], Any] | None = None
    resume: Callable[[], Any] | None = None
    apply: Callable[[Mapping[str, Any]], Any] | None = None
    source: Any = None

    @classmethod
    def of(cls, made: Any) -> Subject:
        """Read the attributes of what `make()` returned; what is missing is None."""
        if isinstance(made, torch.optim.Optimizer):
            made = (made, None)
        if isinstance(made, tuple) and len(made) == 2:
            return cls(_named(made[0]), *made)
        found = {name: getattr(made, name, None) for name in cls.__dataclass_fields__ if name != "source"}
        if found["named"] is None:
            raise OptimizerError(
                f"make() returned a {type(made).__name__}; expected an optimizer or .named and .optimizer"
            )
        found["named"] = list(found["named"])
        if found["optimizer"] is None and found["step"] is None and found["apply"] is None:
            raise OptimizerError("make() returned nothing that takes a step; expected .optimizer, .step or .apply")
        return cls(**{**found, "every": found["every"] or 1}, source=made)


def _named(optimizer: Any) -> list[tuple[str, Any]]:
    return [
        (f"parameter {index} of group {number}", one)
        for number, group in enumerate(optimizer.param_groups)
        for index, one in enumerate(group["params"])
    ]


# Copies.


def copied(optimizer: Any, scheduler: Any) -> Subject:
    """Return a subject of fresh small parameters, with a copy of the optimizer and of its scheduler."""
    before = _fingerprint(optimizer, scheduler)
    memo = {id(one): _fresh(one) for group in optimizer.param_groups for one in group["params"]}
    with told_as(OptimizerError, f"{type(optimizer).__name__} cannot be copied, hand over a function that makes it:"):
        inner = getattr(optimizer, "optimizer", None)
        if isinstance(inner, torch.optim.Optimizer):
            _copy_object(inner, memo)
        twin = _copy_object(optimizer, memo)
        clock = None if scheduler is None else _copy_object(scheduler, memo)
        _begin_anew(twin)
    if before != _fingerprint(optimizer, scheduler):
        raise OptimizerError(f"{type(optimizer).__name__} cannot be copied: hand over a function that makes it")
    return Subject(_named(twin), twin, clock)


def _fresh(parameter: Any) -> Any:
    """Return a parameter of the same format, with fewer weights where the original has many."""
    shape = tuple(parameter.shape)
    if parameter.numel() > _REAL:
        shape = tuple(min(size, 64 if len(shape) == 1 else 8 if len(shape) == 2 else 4) for size in shape)
    one = torch.nn.Parameter(torch.zeros(shape, dtype=parameter.dtype), requires_grad=True)
    for name, value in vars(parameter).items():  # tags such as `no_decay`, which some optimizers read
        if isinstance(value, bool | int | float | str):
            setattr(one, name, value)
    return one


def _copy_object(given: Any, memo: dict[int, Any]) -> Any:
    """Copy all attributes: torch's own copy of an optimizer leaves those of a subclass behind."""
    twin = object.__new__(type(given))
    memo[id(given)] = twin
    for name, value in vars(given).items():
        if getattr(value, "_wrapped_by_lr_sched", False):
            continue  # a scheduler's count around the step of the original
        if name == "step" and callable(value):
            raise OptimizerError("its step has been replaced by another function; expected a function that makes it")
        if name == "state":
            twin.__dict__[name] = type(value)(value.default_factory) if hasattr(value, "default_factory") else {}
            twin.__dict__[name].update({memo.get(id(key), key): _sliced(own, key, memo) for key, own in value.items()})
        else:
            twin.__dict__[name] = copy.deepcopy(value, memo)
    return twin


def _sliced(own: Any, parameter: Any, memo: dict[int, Any]) -> Any:
    """Cut a parameter's state for its small twin."""
    twin = memo.get(id(parameter), parameter)
    if not isinstance(own, Mapping):
        return copy.deepcopy(own, memo)
    cut = tuple(slice(0, size) for size in getattr(twin, "shape", ()))
    return {
        name: value[cut].clone()
        if isinstance(value, torch.Tensor) and value.shape == parameter.shape
        else copy.deepcopy(value, memo)
        for name, value in own.items()
    }


def _begin_anew(optimizer: Any) -> None:
    """State as at step 0: without entries where steps were taken, as the constructor left it where none were."""
    state = getattr(optimizer, "state", None)
    taken = any(float(own.get("step", 1)) > 0 for own in (state or {}).values() if isinstance(own, Mapping))
    if not state or not taken:
        return
    if not any("sum" in own for own in state.values()):
        state.clear()
        return
    for own in state.values():  # Adagrad's state is made by its constructor
        for name, value in own.items():
            if isinstance(value, torch.Tensor):
                value.fill_(optimizer.defaults.get("initial_accumulator_value", 0) if name == "sum" else 0)


def _fingerprint(optimizer: Any, scheduler: Any) -> tuple[Any, ...]:
    """Versions and addresses of all tensors, settings of the groups, the random state, the scheduler's numbers."""
    tensors = [one for group in optimizer.param_groups for one in group["params"]]
    state = getattr(optimizer, "state", None)
    state = state.values() if isinstance(state, Mapping) else ()
    tensors += [value for own in state if isinstance(own, Mapping) for value in own.values()]
    seen = [(id(one), one._version) if isinstance(one, torch.Tensor) else repr(one) for one in tensors]
    groups = [[repr(value) for name, value in group.items() if name != "params"] for group in optimizer.param_groups]
    clock = [repr(value) for value in vars(scheduler).values() if isinstance(value, int | float)] if scheduler else []
    return seen, groups, clock, torch.get_rng_state().tolist()[:64]


# The gradients: each feature of them brings out differences that the others hide.

_WATCHED = 64
"""Coordinates of a parameter that are watched, at most."""
_ALL = 4096
_SIZES = (3.0, 0.3, 1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 0.0)
# A quiet stretch lets v fall, a spike lets it jump; then sizes of their own at each step.
_LOUD, _QUIET, _SPIKE = 7, range(7, 18), 14


def _watched(numels: list[int]) -> list[npt.NDArray[np.int64]]:
    """Return which coordinates of each parameter are looked at: few of each where there are many."""
    most = min(_WATCHED, max(8, _ALL // max(len(numels), 1)))
    return [np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)) if n else np.zeros(0, int) for n in numels]


def _start(size: int, index: int, coarse: float = 0.0) -> Floats:
    """Return weights to begin with: zeros, where small steps show, beside weights of 0.3, where decay does.

    Args:
        size: how many.
        index: which parameter.
        coarse: weights so large that a step is lost beside them, for half precision; 0 for none.
    """
    random, place = np.random.default_rng([2, index]), np.arange(size) + index
    values = np.where(place % 3 == 0, 0.0, 0.3 * random.standard_normal(size))
    return np.where(place % 4 == 1, coarse, values) if coarse else values


def _present(steps: int, parameters: int) -> npt.NDArray[np.bool_]:
    """Return whether a parameter has a gradient at a step: the first always, others start late, pause or alternate."""
    there, t = np.ones((steps, parameters), dtype=bool), np.arange(steps)
    for p in range(1, parameters):
        pattern = p % 4
        if pattern == 1:
            there[:, p] = t >= 3
        elif pattern == 2:
            there[:, p] = ~np.isin(t, (4, 5, 16))
        elif pattern == 3:
            there[:, p] = (t % 3 != 1) | (t > 24)
        else:
            there[:, p] = ~np.isin(t, (2, 11))
    return there


def _gradients(steps: int, micro: int, sizes: list[int]) -> list[Floats]:
    """Return the gradients of each parameter's watched coordinates: micro-batches, steps, coordinates."""
    random = np.random.default_rng(20)
    envelope = np.array([_envelope(t, random) for t in range(steps)])
    made = []
    for index, size in enumerate(sizes):
        several = len(_SIZES) if size > 3 else 3  # a parameter of few numbers has large gradients
        scale = np.array([_SIZES[(j + index) % several] for j in range(size)])
        one = random.standard_normal((micro, steps, size)) + 0.5 * random.standard_normal((1, steps, size))
        one = one * scale * envelope[:, None]
        steady = (np.arange(size) + index) % 4 == 1  # one sign: many small steps add up
        one[..., steady] = np.abs(one[..., steady])
        one[:, 9:13, 1::2] = 0  # rows that an embedding does not touch
        made.append(one)
    return made


def _envelope(t: int, random: np.random.Generator) -> float:
    drawn = float(10 ** random.uniform(-1, 0.3))
    if t < _LOUD:
        return 1.0
    return 1.0 if t == _SPIKE else 1 / 300 if t in _QUIET else drawn


# Driving.

_SETTINGS = ("lr", "initial_lr", "eps", "weight_decay", "momentum", "alpha", "momentum_decay", "dampening", "lr_decay",
             "initial_accumulator_value")  # fmt: skip
_FLAGS = ("amsgrad", "nesterov", "maximize", "centered", "bias_correction", "decoupled_weight_decay")


class Driver:
    """Takes a subject through steps, and writes down what is seen."""

    def __init__(
        self, subject: Subject, steps: int, *, micro: int = 1, overflows: bool = False, pauses: bool = True
    ) -> None:
        self.subject, self.steps, self.calls = subject, steps, int(subject.step is not None)
        self.names = [name for name, _ in subject.named]
        values = [_array(one) for _, one in subject.named]
        self.places = _watched([value.size for value in values])
        self.dtypes = [_dtype(one) for _, one in subject.named]
        for name, dtype in zip(self.names, self.dtypes, strict=True):
            if dtype not in ROUNDOFF:
                raise OptimizerError(f"{name} is of {dtype}; expected one of {', '.join(ROUNDOFF)}")
        self.present = _present(steps, len(self.names))
        if subject.apply is not None or not pauses:  # a transformation is given all gradients at every step
            self.present[:] = True
        self.overflow = np.zeros(steps, dtype=bool)
        if overflows:
            self.overflow[[at for at in (5, 19) if at < steps]] = True
        self.gradients = _gradients(steps, micro, [len(place) for place in self.places])
        self.shapes = [value.shape for value in values]
        self.groups = self._groups()

    def _groups(self) -> npt.NDArray[np.int64]:
        own = {id(one): number for number, group in enumerate(self._param_groups()) for one in group["params"]}
        return np.array([own.get(id(one), -1) for _, one in self.subject.named], dtype=np.int64)

    def _param_groups(self) -> list[Any]:
        return list(getattr(self.subject.optimizer, "param_groups", None) or [])

    def write_start(self) -> None:
        """Give the weights values at which steps, decay and rounding show."""
        rates = self._settings().get("lr", np.full(len(self.names), np.nan))
        for index, (_, one) in enumerate(self.subject.named):
            # Weights to which a step of one rate is less than half of the distance to the next number.
            coarse = 4 / ROUNDOFF[self.dtypes[index]] * float(np.nan_to_num(rates[index]))
            values = _start(len(self.places[index]), index, coarse if self.dtypes[index] in HALF else 0.0)
            with torch.no_grad():
                flat = torch.zeros(one.numel(), dtype=torch.float64)
                flat[torch.as_tensor(self.places[index])] = torch.as_tensor(values)
                one.copy_(flat.reshape(one.shape).to(one.dtype))

    def run(self, resume_at: int | None = None, resume: Callable[[Subject], Subject] | None = None) -> Trace:
        """Take all steps, with a save and a load before one of them."""
        weights, exact, settings, loaded = [self._weights()], [], [], None
        with _quiet():
            for t in range(self.steps):
                if t == resume_at and resume is not None:
                    with told_as(OptimizerError, "saving and loading raised"):
                        self.subject = self._in_order(resume(self.subject))
                        self.groups = self._groups()
                        loaded = self._weights()
                settings.append(self._settings())
                with told_as(OptimizerError, f"step {t + 1} raised"), self._hooked(settings):
                    exact.append(self._step(t))
                weights.append(self._weights())
        self.calls = max(self.calls, self._counted())
        names = {name for one in settings for name in one}
        blank = np.full(len(self.names), np.nan)
        return Trace(
            tuple(self.names),
            np.repeat(np.arange(len(self.places)), list(map(len, self.places))),
            self.groups,
            np.array([int(np.prod(shape)) for shape in self.shapes]),
            tuple(self.dtypes),
            np.array(weights),
            np.stack(exact, axis=1),
            self.present,
            self.overflow,
            {name: np.array([one.get(name, blank) for one in settings]) for name in names},
            resume_at,
            loaded,
            self._state_dtypes(),
            self.calls,
        )

    def _in_order(self, loaded: Subject) -> Subject:
        """Put the parameters into the order of those before the load."""
        named = dict(loaded.named)
        if set(named) != set(self.names):
            missing = sorted(set(self.names) ^ set(named))
            raise OptimizerError(f"the parameters after loading are others than before: {', '.join(missing[:3])}")
        loaded.named = [(name, named[name]) for name in self.names]
        return loaded

    @contextlib.contextmanager
    def _hooked(self, settings: list[dict[str, Floats]]) -> Iterator[None]:
        """Read the groups where the optimizer itself begins its step: a loop may set them before."""
        inner = getattr(self.subject.optimizer, "optimizer", self.subject.optimizer)  # accelerate's has no hooks
        if self.subject.step is None or not isinstance(inner, torch.optim.Optimizer):
            yield
            return
        seen: list[dict[str, Floats]] = []
        hook = inner.register_step_pre_hook(lambda *_: seen.append(self._settings()))
        try:
            yield
        finally:
            hook.remove()
        settings[-1:] = seen[:1] or settings[-1:]
        self.calls = max(self.calls, len(seen))

    def _weights(self) -> Floats:
        named = zip(self.subject.named, self.places, strict=True)
        return np.concatenate([np.zeros(0), *(_array(one).reshape(-1)[place] for (_, one), place in named)])

    def _settings(self) -> dict[str, Floats]:
        """Read the groups' settings for each parameter."""
        groups = self._param_groups()
        found: dict[str, Floats] = {}
        for index, number in enumerate(self.groups):
            for name, value in _said(groups[number]).items() if number >= 0 else ():
                found.setdefault(name, np.full(len(self.names), np.nan))[index] = value
        return found

    def _step(self, t: int) -> Floats:
        """One step; returns the gradients that were given, as their format has them."""
        subject, given = self.subject, []
        for index in range(len(subject.named)):
            flat = np.zeros((len(self.gradients[index]), int(np.prod(self.shapes[index]))))
            flat[:, self.places[index]] = self.gradients[index][:, t]
            given.append(flat)
        if subject.apply is not None:
            return self._apply(given, subject.apply)
        tensors = [
            [torch.as_tensor(row).reshape(one.shape).to(one.dtype) for row in flat]
            for flat, (_, one) in zip(given, subject.named, strict=True)
        ]
        if self.overflow[t]:
            tensors[0][0].reshape(-1)[0] = torch.inf
        if subject.step is not None:
            subject.step([self._loss(t, tensors, number) for number in range(len(given[0]))])
        else:
            for index, (_, one) in enumerate(subject.named):
                one.grad = tensors[index][0].clone() if self.present[t, index] else None
            subject.optimizer.step()
            if subject.scheduler is not None and (t + 1) % subject.every == 0:
                _step_scheduler(subject.scheduler, (t + 1) // subject.every)
        exact = [
            np.stack([_array(row).reshape(-1)[place] for row in rows]) * self.present[t, index]
            for index, (rows, place) in enumerate(zip(tensors, self.places, strict=True))
        ]
        return np.nan_to_num(np.concatenate(exact, axis=1), posinf=0.0, neginf=0.0)

    def _loss(self, t: int, tensors: list[list[Any]], number: int) -> Callable[[], Any]:
        named, present = self.subject.named, self.present[t]

        def loss() -> Any:
            terms = [
                (one * tensors[index][number]).sum().float() for index, (_, one) in enumerate(named) if present[index]
            ]
            return torch.stack(terms).sum()

        return loss

    def _apply(self, given: list[Floats], apply: Callable[[Mapping[str, Any]], Any]) -> Floats:
        """One call for each micro-batch."""
        exact = []
        for rows in zip(*given, strict=True):
            named = zip(self.subject.named, rows, self.shapes, strict=True)
            made = {
                name: np.asarray(row.reshape(shape), dtype=np.asarray(one).dtype) for (name, one), row, shape in named
            }
            seen = zip(made.values(), self.places, strict=True)
            exact.append(np.concatenate([value.astype(np.float64).reshape(-1)[place] for value, place in seen]))
            after = apply(made)
            renewed = after if isinstance(after, Mapping) else dict(getattr(self.subject.source, "named", ()))
            self.subject.named = [(name, renewed.get(name, one)) for name, one in self.subject.named]
        return np.array(exact)

    def _counted(self) -> int:
        """Return the steps that the state counts for each gradient, where that is one number above 1."""
        state = getattr(self.subject.optimizer, "state", None)
        own = [state.get(one, {}) if isinstance(state, Mapping) else {} for _, one in self.subject.named]
        came = (self.present & ~self.overflow[:, None]).sum(axis=0)
        steps = [_number(one.get("step")) if isinstance(one, Mapping) else np.nan for one in own]
        ratio = {step / most for step, most in zip(steps, came, strict=True) if most and not np.isnan(step)}
        return int(ratio.pop()) if len(ratio) == 1 and min(ratio) in range(2, 100) else 0

    def _state_dtypes(self) -> tuple[frozenset[str], ...]:
        state = getattr(self.subject.optimizer, "state", None)
        found = []
        for _, one in self.subject.named:
            own = state.get(one, {}) if isinstance(state, Mapping) else {}
            values = own.values() if isinstance(own, Mapping) else ()
            tensors = [value for value in values if isinstance(value, torch.Tensor)]
            found.append(frozenset(_resolved(value) for value in tensors if value.numel() == one.numel() > 1))
        return tuple(found)


def _step_scheduler(scheduler: Any, count: int) -> None:
    """One step of a scheduler: timm's are told the count."""
    if hasattr(scheduler, "step_update") and hasattr(scheduler, "t_in_epochs"):
        scheduler.step_update(count) if not scheduler.t_in_epochs else scheduler.step(count)
    else:
        scheduler.step()


def _said(group: Mapping[str, Any]) -> dict[str, float]:
    found = {name: _number(group[name]) for name in (*_SETTINGS, *_FLAGS) if name in group}
    betas = group.get("betas")
    if isinstance(betas, tuple | list) and len(betas) >= 2:
        found |= {"beta1": _number(betas[0]), "beta2": _number(betas[1])}
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return float("nan")


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", value)).removeprefix("torch.")


def _resolved(value: Any) -> str:
    """Return a tensor's format; of many float32 numbers that a shorter format has exactly, the shorter one."""
    value = value.detach().to_local() if hasattr(value, "to_local") else value.detach()
    if value.dtype.itemsize == 1:
        return EIGHT_BITS
    if value.dtype is torch.float32 and int(value.count_nonzero()) >= 8:
        for half in (torch.bfloat16, torch.float16):
            if torch.equal(value.to(half).float(), value) and value.unique().numel() >= 8:
                return _dtype(half)
    if value.is_floating_point() and value.unique().numel() >= 8:
        levels = value.double() / value.abs().max().double()  # whole numbers of levels, the largest 127 or 255
        if any(bool(((levels * most).round() / most - levels).abs().max() < 1e-6) for most in (127, 255)):
            return EIGHT_BITS
    return _dtype(value)


def _array(value: Any) -> npt.NDArray[Any]:
    """Return the values in float64."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = value.to_local() if hasattr(value, "to_local") else value
        return value.to("cpu", torch.float64).numpy()
    return np.asarray(value).astype(np.float64)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings, and with the random state put back after."""
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_rng_state(state)


def is_optimizer(given: Any) -> bool:
    """Return whether this has parameter groups and takes steps: torch's, or what wraps one."""
    return hasattr(given, "param_groups") and callable(getattr(given, "step", None)) and not hasattr(given, "named")


def is_function(given: Any) -> bool:
    """Return whether this makes an optimizer rather than is one."""
    return isinstance(given, types.FunctionType | types.MethodType) or (callable(given) and not is_optimizer(given))
