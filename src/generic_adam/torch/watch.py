r"""Watch a run: what the theory speaks of, measured every so many steps while training.

The matrix :math:`\Gamma_t = \sqrt{v_t}/\alpha_t - \sqrt{v_{t-1}}/\alpha_{t-1}` is what AMSGrad, AdamNC and
NosAdam keep from being negative, and what the sufficient condition does not need.
"""

from __future__ import annotations

import errno
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch.contrib import AdaShift
from generic_adam.torch.generic_adam import GenericAdam
from generic_adam.torch.tensors import state_dtype

# Quantiles need a sort; this many coordinates, evenly spread, are enough for them.
_SAMPLED_COORDINATES = 1 << 13
# Coordinates of each parameter that are followed from record to record.
_FOLLOWED_COORDINATES = 256


Group = Mapping[str, Any]


def _state(optimizer: torch.optim.Optimizer) -> Mapping[Tensor, Any]:
    return vars(optimizer)["state"]  # without a word to ours, which would look after a state that somebody may change


class _Live(NamedTuple):
    """How to look into one class of optimizers.

    Attributes:
        second_moment: (state of a parameter, group) -> v_t, whose root a step divides by; None before there is one.
        coefficients: (optimizer, group, t) -> alpha_t, beta_t, theta_t of the step t that has been made.
    """

    second_moment: Callable[[Mapping[str, Any], Group], Tensor | None]
    coefficients: Callable[[Any, Group, int], tuple[float, ...]] = lambda optimizer, group, _t: optimizer.used(group)

    def moments(self, optimizer: torch.optim.Optimizer, group: Group) -> dict[Tensor, Tensor]:
        """The second moment of each parameter that has one; complex numbers are pairs of real ones."""
        found, states = {}, _state(optimizer)
        for parameter in group["params"]:
            own = states.get(parameter, {}).items()
            state = {k: torch.view_as_real(v) if isinstance(v, Tensor) and v.is_complex() else v for k, v in own}
            if state and (moment := self.second_moment(state, group)) is not None:
                found[parameter] = moment
        return found


def _of_adam(state: Mapping[str, Any], group: Group) -> Tensor | None:
    moment = state.get("max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq")
    return moment ** (2 * group["partial"]) if moment is not None and "partial" in group else moment


def _of_rmsprop(state: Mapping[str, Any], group: Group) -> Tensor:
    return state["square_avg"] - state["grad_avg"] ** 2 if group["centered"] else state["square_avg"]


def _adam(_optimizer: Any, group: Group, t: int) -> tuple[float, ...]:
    beta, theta = (float(value) for value in group["betas"])
    # torch's own bias correction: the power of the present beta, also where a scheduler moves it
    return float(group["lr"]) * math.sqrt(1 - theta**t) / (1 - beta**t), beta, theta


def _rmsprop(_optimizer: Any, group: Group, _t: int) -> tuple[float, ...]:
    return float(group["lr"]), 0.0, float(group["alpha"])


def _adagrad(_optimizer: Any, group: Group, t: int) -> tuple[float, ...]:
    rate = float(group["lr"]) / (1 + (t - 1) * float(group["lr_decay"]))
    return rate / math.sqrt(t + 1), 0.0, 1 - 1 / (t + 1)


# Subclasses are looked into like their parents.
_LIVE: dict[type[torch.optim.Optimizer], _Live] = {
    GenericAdam: _Live(_of_adam),
    # v_t / (1 - theta^(t - n)); 0 while it only collects gradients
    AdaShift: _Live(lambda state, _group: state["second_moment"] / (state["correction"] or 1.0)),
    torch.optim.Adam: _Live(_of_adam, _adam),
    torch.optim.RMSprop: _Live(_of_rmsprop, _rmsprop),
    torch.optim.Adagrad: _Live(lambda state, _group: state["sum"] / (state["step"] + 1), _adagrad),
}


def _steps_done(optimizer: torch.optim.Optimizer, group: Group) -> int:
    """How many steps the parameters of a group have made: 0 before the first."""
    state = _state(optimizer)
    places = (group, *(state[p] for p in group["params"] if p in state))
    return max((int(place["step"]) for place in places if "step" in place), default=0)


class ScalarWriter(Protocol):
    """What Watch needs of a TensorBoard SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Record one number."""


@dataclass(frozen=True)
class WatchRecord:
    r"""What was seen at one step, for one parameter group; nan where a number does not exist.

    v_t is the square of what a step divides by: for Padam a power of the maximum, for a centered RMSprop the variance.

    Attributes:
        step: t.
        group: the index of the parameter group.
        alpha: alpha_t, with the bias correction in it.
        beta: beta_t.
        theta: theta_t.
        chi: alpha_t / sqrt(1 - theta_t), the sequence of condition 3.
        ratio: sum alpha_i sqrt(1 - theta_i) / (n alpha_t) over the n steps watched: condition 4's, if watched
            from t = 1.
        negative_gamma: the share of coordinates where Gamma_t is negative.
        step_size_low: the 5 % quantile of alpha_t / sqrt(v_t) over the coordinates.
        step_size_median: its median.
        step_size_high: its 95 % quantile.
        gradient_norm: the Euclidean norm of the gradient, as it stood in `.grad`.
        update_norm: the Euclidean norm of x_{t+1} - x_t.
        correlation: of v_t and g_t^2 along the records so far: the median over coordinates. (C3), AdaShift's
            aim, is that there is none; independent gradients under Adam have sqrt(1 - theta^2).
    """

    step: int
    group: int
    alpha: float
    beta: float
    theta: float
    chi: float
    ratio: float
    negative_gamma: float
    step_size_low: float
    step_size_median: float
    step_size_high: float
    gradient_norm: float
    update_norm: float
    correlation: float


COLUMNS = tuple(field.name for field in fields(WatchRecord))


class Watch:
    """Records what an optimizer does, every so many steps, until it is detached.

    It sits on the optimizer's step hooks: between two records it adds up one number a group, and after
    `detach` nothing is left of it. Sharded parameters are seen by their local shard.

    Args:
        optimizer: a GenericAdam or AdaShift, or torch's Adam, AdamW, RMSprop or Adagrad.
        every: the steps between records.
        csv: a file to write to, one line a record, at once; it must not exist yet. A disk that is full ends
            the file with a warning, not the training.
        tensorboard: a SummaryWriter, or anything with its `add_scalar`.

    Attributes:
        records: what was seen so far.

    Raises:
        OptimizerError: the optimizer cannot be watched, or an argument is wrong.

    Examples:
        >>> x = torch.nn.Parameter(torch.ones(3))
        >>> optimizer = torch.optim.Adam([x], lr=0.1)
        >>> with Watch(optimizer, every=10) as watch:
        ...     for _ in range(20):
        ...         optimizer.zero_grad()
        ...         x.square().sum().backward()
        ...         optimizer.step()
        >>> [record.step for record in watch.records]
        [10, 20]
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        every: int = 100,
        *,
        csv: str | os.PathLike[str] | None = None,
        tensorboard: ScalarWriter | None = None,
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise OptimizerError(f"every is {every!r}; expected a whole number of steps of at least 1")
        self.records: list[WatchRecord] = []
        self.every = every
        look = next((look for kind, look in _LIVE.items() if isinstance(optimizer, kind)), None)
        if look is None:
            names = ", ".join(kind.__name__ for kind in _LIVE)
            raise OptimizerError(
                f"{type(optimizer).__name__} cannot be watched; expected one of {names}, or a subclass"
            )
        self._look = look
        self._tensorboard = tensorboard
        self._file = None if csv is None else _Lines(csv)
        self._t = 0
        self._groups: list[_Group] = []
        self._handles = [
            optimizer.register_step_pre_hook(self._before_step),
            optimizer.register_step_post_hook(self._after_step),
        ]

    def detach(self) -> None:
        """Take the hooks off the optimizer and close the file; the records stay."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._groups = [], []
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if [id(group.options) for group in self._groups] != [id(options) for options in optimizer.param_groups]:
            # A loaded state comes with a count and with groups of its own: they are known by their parameters.
            known = {_first(group.options): group for group in self._groups}
            self._groups = [known.get(_first(one)) or _Group(one, self._look) for one in optimizer.param_groups]
            for group, options in zip(self._groups, optimizer.param_groups, strict=True):
                group.steps = _steps_done(optimizer, options)
                if group.options is not options:
                    group.options, group.alpha = options, math.nan
            self._t = max((group.steps for group in self._groups), default=0)
        if (self._t + 1) % self.every == 0:
            for group in self._groups:
                group.remember(optimizer)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if float(getattr(optimizer, "found_inf", 0.0)):
            return  # a gradient scaler had the step skipped
        recorded = (self._t + 1) % self.every == 0
        self._t += 1
        for group in self._groups:
            # torch keeps t in tensors; reading one at every step would wait for the device it is on.
            moved = any(p.grad is not None for p in group.options["params"])
            group.steps = _steps_done(optimizer, group.options) if recorded else group.steps + moved
        if recorded:
            self._t = max((group.steps for group in self._groups), default=0)
        for index, group in enumerate(self._groups):
            # The step to come, where there was none.
            alpha, beta, theta = self._look.coefficients(optimizer, group.options, group.steps or 1)
            group.total += alpha * math.sqrt(1 - theta)
            group.seen += 1
            if recorded:
                chi = alpha / math.sqrt(1 - theta) if theta < 1 else math.nan
                ratio = group.total / (group.seen * alpha) if alpha else math.nan
                self._keep(
                    WatchRecord(self._t, index, alpha, beta, theta, chi, ratio, *group.measure(optimizer, alpha))
                )
            group.alpha = alpha

    def _keep(self, record: WatchRecord) -> None:
        self.records.append(record)
        if self._file is not None:
            self._file.write(",".join(map(repr, astuple(record))))
        if self._tensorboard is not None:
            for name in COLUMNS[2:]:
                tag = f"watch/group {record.group}/{name}"
                self._tensorboard.add_scalar(tag, getattr(record, name), record.step)


def _first(options: Group) -> int:
    """What a group is known by: its first parameter; itself where it has none."""
    return id(next(iter(options["params"]), options))


class _Group:
    """One parameter group: what is added up from step to step, and copies from before a step that is recorded."""

    def __init__(self, options: Group, look: _Live) -> None:
        self.options, self.look = options, look
        self.total, self.alpha, self.steps, self.seen = 0.0, math.nan, 0, 0
        # For each parameter the count, the two means and the three sums of products of deviations of v_t and
        # g_t^2 over the records, after Welford.
        self._along: dict[Tensor, tuple[int, Tensor, Tensor]] = {}

    def remember(self, optimizer: torch.optim.Optimizer) -> None:
        """Copy parameters and second moments."""
        self._points = {p: p.detach().clone() for p in self.options["params"] if p.requires_grad}
        self._moments = {p: v.clone() for p, v in self.look.moments(optimizer, self.options).items()}

    @torch.no_grad()
    def measure(self, optimizer: torch.optim.Optimizer, alpha: float) -> tuple[float, ...]:
        """The measured columns of a record, from `negative_gamma` on."""
        moments = self.look.moments(optimizer, self.options)
        after = {p: v for p, v in moments.items() if p.grad is not None}
        result = (
            self._negative_share(after, alpha),
            *_step_sizes(after.values(), alpha),
            _norm(_dense(p.grad) for p in self._points if p.grad is not None),
            _norm(p.detach() - old for p, old in self._points.items()),
            self._correlation(moments),
        )
        self._points, self._moments = {}, {}
        return result

    def _negative_share(self, after: dict[Tensor, Tensor], alpha: float) -> float:
        """The share of coordinates with sqrt(v_t) / alpha_t < sqrt(v_{t-1}) / alpha_{t-1}."""
        shared = [p for p in after if p in self._moments]
        if not shared or not (alpha > 0 and self.alpha > 0):
            return math.nan
        # Squared, and with one factor for both sides, so that nothing small has to be divided.
        factor = (self.alpha / alpha) ** 2
        negative = sum((after[p] * factor < self._moments[p]).count_nonzero() for p in shared)
        return int(negative) / sum(after[p].numel() for p in shared)

    def _correlation(self, moments: Mapping[Tensor, Tensor]) -> float:
        """Take in v_t and g_t of a step; the median over evenly spread coordinates, nan before the third record."""
        for parameter, v in moments.items():
            gradient = parameter.grad
            if gradient is None or gradient.is_sparse or not gradient.numel():
                continue
            g = torch.view_as_real(gradient) if gradient.is_complex() else gradient
            if v.numel() not in {1, g.numel()}:  # a shard of it, or rows and columns
                continue
            stride = max(1, g.numel() // _FOLLOWED_COORDINATES)
            flat = g.detach().reshape(-1)[::stride].float().cpu().double().square()
            pair = torch.stack([v.expand(g.shape).reshape(-1)[::stride].float().cpu().double(), flat])
            count, mean, products = self._along.get(
                parameter, (0, torch.zeros_like(pair), pair.new_zeros(3, pair.shape[1]))
            )
            off = pair - mean
            mean = mean + off / (count + 1)
            rest = pair - mean
            products = products + torch.stack([off[0] * rest[0], off[1] * rest[1], off[0] * rest[1]])
            self._along[parameter] = (count + 1, mean, products)
        ready = [products for count, _, products in self._along.values() if count > 2]
        if not ready:
            return math.nan
        first, second, both = torch.cat(ready, dim=1)
        varied = (first > 0) & (second > 0)
        found = both[varied] / (first[varied].sqrt() * second[varied].sqrt())
        return float(found.median()) if found.numel() else math.nan


def _step_sizes(moments: Iterable[Tensor], alpha: float) -> tuple[float, float, float]:
    """Quantiles 5 %, 50 % and 95 % of alpha_t / sqrt(v_t) over evenly spread coordinates."""
    flat = [v.reshape(-1) for v in moments]
    total = sum(v.numel() for v in flat)
    if total == 0:
        return math.nan, math.nan, math.nan
    stride = max(1, total // _SAMPLED_COORDINATES)
    sample = torch.cat([v[::stride].float() for v in flat])
    # v and the step size go in opposite directions: the low quantile of one is the high quantile of the other.
    points = torch.tensor([0.95, 0.5, 0.05], dtype=sample.dtype, device=sample.device)
    low, median, high = torch.quantile(sample, points).sqrt().tolist()
    return tuple(alpha / root if root > 0 else math.inf for root in (low, median, high))  # type: ignore[return-value]


def _dense(gradient: Tensor) -> Tensor:
    """All that is not 0 of a sparse gradient, whose repeated indices add up; else the gradient."""
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _norm(tensors: Iterable[Tensor]) -> float:
    """The Euclidean norm of all together; of half-precision tensors it is added up in float32."""
    parts = [torch.linalg.vector_norm(tensor, dtype=state_dtype(tensor)) for tensor in tensors]
    return float(torch.linalg.vector_norm(torch.stack(parts))) if parts else math.nan


class _Lines:
    """A new file that is written line by line, at once; a disk that is full ends it, never the training."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._length = os.fspath(path), 0
        try:
            self._file = Path(path).open("xb", buffering=0)  # noqa: SIM115 - closed by close
        except FileExistsError:
            raise OptimizerError(f"{self._path} exists already; expected the name of a new file") from None
        except OSError as error:
            raise OptimizerError(f"{self._path} cannot be written: {error.strerror}") from error
        self.write(",".join(COLUMNS))

    def write(self, line: str) -> None:
        """Add a line, whole or not at all; after one that could not be written, none."""
        if self._file.closed:
            return
        data = f"{line}\n".encode()
        try:
            if self._file.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._length)
            self.close()
            warnings.warn(
                f"{self._path} cannot be written any more ({error.strerror}): it ends here, the records and "
                "the training go on",
                RuntimeWarning,
                stacklevel=2,
            )
        else:
            self._length += len(data)

    def close(self) -> None:
        """Close the file, as often as one likes."""
        with suppress(OSError):
            self._file.close()
