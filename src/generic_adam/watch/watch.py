# pyright: reportPrivateImportUsage=false
"""Watches a run: hooks on the optimizer's step, a record for each window of steps, a diagnosis at any time."""

from __future__ import annotations

import logging
import math
import os
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from generic_adam.errors import OptimizerError, TheoremError
from generic_adam.extras import from_extra
from generic_adam.files import OutputError, write_json
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems.measured import Budget
from generic_adam.watch import summary
from generic_adam.watch.budget import BudgetMeter, curvature
from generic_adam.watch.diagnosis import WRONG, Diagnosis, Finding, diagnose, setting
from generic_adam.watch.instruments import (
    COLUMNS,
    COMPARED,
    Coefficients,
    Look,
    Member,
    Sample,
    comparable,
    is_inner,
    look_into,
    stated,
)
from generic_adam.watch.records import Lines, Record

with from_extra("torch"):
    import torch
    from torch import Tensor

_log = logging.getLogger("generic_adam.watch")
_FLOAT32 = torch.finfo(torch.float32).eps
# The records between two diagnoses during the run, and those that one looks at.
_RECORDS, _LOOKED_BACK = 4, 32
# The first steps, each of which is compared with the stated one.
_OFTEN = 10
# The distance that is set against the weights is that of this many steps.
_PATH = 50
# The steps over which the bias of the scaling is told from noise; the chance of one to be measured, where the network
# is not small.
_LASTING, _DRAWN = 200, 0.25
# A sum of gradients that is this much longer than one of pure noise would be.
_CLEAR = 1.5
# The least number of steps between two probes, and the share in free fall from which they are that close.
_WAIT, _FALLING = 200, 0.8


class _Window:
    """The losses, norms and numbers gathered between two records."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.losses: list[float | Tensor] = []
        self.norms: list[tuple[float | Tensor, float]] = []
        self.numbers: list[list[tuple[float, ...]]] = []


class Watch:
    """Looks at every step of an optimizer until it is detached, and says what is wrong and since when.

    It sits on the optimizer's step hooks and never waits for the device between two records; after `detach` nothing is
    left of it. Of tensors with more than 512 coordinates (64, where there are many tensors) evenly spread ones are
    looked at. Sharded parameters are seen by their local shard.

    Args:
        optimizer: a GenericAdam or AdaShift; torch's Adam, AdamW, NAdam, RMSprop, Adagrad or Adamax; or another
            package's Adam that keeps exp_avg and exp_avg_sq.
        out: a directory for what is seen: watch.csv, watch.json. It is new, or of the run that the
            optimizer's loaded state is from, which goes on in the same records.
        probe: returns the loss of a mini-batch at the present weights, with its graph; asked for rarely.
        on_event: called with each new finding; without it a finding is logged as a warning.
        every: the steps of a window, which becomes one record.
        model: a module whose names the tensors have.
        log: called with the numbers of each record by name, and its step: `wandb.log`, for example; or TensorBoard's
            SummaryWriter.
        algorithm: the one that was certified, as `ga.certify` read it; the steps are compared with its sequences. None
            compares them with what the parameter groups say at each step.

    Raises:
        OptimizerError: the optimizer cannot be watched, or an argument is wrong.

    Examples:
        >>> x = torch.nn.Parameter(torch.ones(3))
        >>> optimizer = torch.optim.Adam([x], lr=0.1)
        >>> with Watch(optimizer, every=10) as watch:
        ...     for _ in range(20):
        ...         optimizer.zero_grad()
        ...         loss = x.square().sum()
        ...         loss.backward()
        ...         optimizer.step()
        ...         watch.loss(loss)
        >>> [record.step for record in watch.records]
        [10, 20]
        >>> watch.diagnose().healthy
        True
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        out: str | os.PathLike[str] | None = None,
        probe: Callable[[], Tensor] | None = None,
        on_event: Callable[[Finding], object] | None = None,
        *,
        every: int = 25,
        model: torch.nn.Module | None = None,
        log: Any = None,
        algorithm: Algorithm | None = None,
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise OptimizerError(f"every is {every!r}; expected a whole number of steps of at least 1")
        if out is not None and not isinstance(out, str | os.PathLike):
            raise OptimizerError(f"out is {out!r}; expected a directory (the steps of a window are every=)")
        self.every = every
        self._records: list[Record] = []
        self._optimizer, self._look = optimizer, look_into(optimizer)
        self._probe, self._on_event, self._log = probe, on_event, log
        self._algorithm = None if algorithm is None else comparable(algorithm)
        self._meter = None if probe is None else _meter(optimizer, probe, model)
        self._names = {} if model is None else {id(p): name for name, p in model.named_parameters()}
        self._told: set[str] = set()
        self._groups: list[_Group] = []
        self._samples: list[Sample] = []
        self._t = 0
        self._window = _Window()
        self._tail: summary.Steps | None = None
        self._began: dict[int, float] = {}
        self._walked = 0.0, 0
        self._last_probe = 0
        self._coin, self._lasting, self._drawn = random.Random(0), 0, 0  # the draws know nothing of the run
        self._points: list[Tensor] | None = None
        self._compared: list[tuple[int, list[Tensor]]] = []
        self._begun = 0
        self._reference: list[Tensor] | None = None
        self._due = False
        self._out = None if out is None else Path(out)
        self._file = None if self._out is None else self._open(self._out)
        self._handles = [
            optimizer.register_step_pre_hook(self._before_step),
            optimizer.register_step_post_hook(self._after_step),
        ]

    @property
    def records(self) -> list[Record]:
        """The records so far, one a window."""
        if self._due:
            self._flush()
        return self._records

    def _open(self, out: Path) -> Lines:
        done = max((_steps_done(self._optimizer, group) for group in self._optimizer.param_groups), default=0)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptimizerError(f"{out} cannot be made: {error.strerror}") from error
        return Lines(out / "watch.csv", done or None)

    def loss(self, value: float | Tensor) -> None:
        """Take in the loss of a step, after `optimizer.step()`; a tensor is not waited for."""
        self._window.losses.append(value.detach() if isinstance(value, Tensor) else value)

    def clip_grad_norm_(self, max_norm: float, **options: Any) -> Tensor:
        """Clip the gradients of the optimizer's parameters, as torch does; return their norm before.

        Args:
            max_norm: the largest norm that is left alone; math.inf only measures.
            **options: as for `torch.nn.utils.clip_grad_norm_`.
        """
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, **options)
        self.clipped(norm, max_norm)
        return norm

    def clipped(self, norm_before: float | Tensor, max_norm: float) -> None:
        """Take in that something else has clipped the gradients of the step to come."""
        if self._due:  # the record of the steps before is without it
            self._flush()
        self._window.norms.append((norm_before, float(max_norm)))

    def diagnose(self) -> Diagnosis:
        """Return what is wrong so far, the worst first; what was seen since the last record is taken in."""
        self._flush()
        return replace(diagnose(self._records, self._options()), budget=self._budget())

    def _options(self) -> dict[str, float] | None:
        """Return the options of torch's Adam or AdamW, of its first group."""
        if type(self._optimizer) not in {torch.optim.Adam, torch.optim.AdamW} or not self._optimizer.param_groups:
            return None
        group = self._optimizer.param_groups[0]
        beta1, beta2 = map(float, group["betas"])
        found = {name: float(group[name]) for name in ("lr", "eps", "weight_decay")}
        return found | {"beta1": beta1, "beta2": beta2}

    def _budget(self) -> Budget | None:
        """Return the budget, where enough was measured for one."""
        with suppress(TheoremError):
            return None if self._meter is None else self._meter.budget()
        return None

    def setting(self) -> Setting:
        """Return what was measured as facts, with the steps that they are from."""
        self._flush()
        return setting(self._records)

    def _save(self) -> None:
        """Write what was measured and what was found beside the records; a disk that is full is no error."""
        if self._out is None or not self._records:
            return
        data = {"setting": self.setting().to_dict(), "options": self._options()}
        budget = self._budget()
        if budget is not None:
            data["budget"] = budget.to_dict()
        try:
            write_json(self._out / "watch.json", data)
        except OutputError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)

    def detach(self) -> None:
        """Take the hooks off the optimizer and close the files; the records stay."""
        if not self._handles:
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._meter is not None:
            self._meter.detach()
        self._flush()
        self._save()
        self._points = self._reference = None
        self._samples, self._groups = [], []
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if is_inner(optimizer):
            return
        if self._due:
            self._flush()
        if [id(group.options) for group in self._groups] != [id(options) for options in optimizer.param_groups]:
            self._flush()
            # A loaded state comes with a count and with groups of its own: they are known by their parameters.
            known = {_first(group.options): group for group in self._groups}
            self._groups = [known.get(_first(one)) or _Group(one) for one in optimizer.param_groups]
            for group, options in zip(self._groups, optimizer.param_groups, strict=True):
                group.join(options, _steps_done(optimizer, options))
            self._t = max((group.steps for group in self._groups), default=0)
            self._arrange()
        if self._begun < _OFTEN or (self._t + 1) % self.every == 0:
            self._points = [sample.points() for sample in self._samples]

    @torch.no_grad()
    def _arrange(self) -> None:
        """Choose the coordinates of the tensors that there are."""
        by_device: dict[torch.device, list[Member]] = {}
        for index, group in enumerate(self._groups):
            names = group.options.get("param_names")
            for place, p in enumerate(group.options["params"]):
                if p.requires_grad and p.numel() and p.device.type != "meta":
                    name = names[place] if names else self._names.get(id(p)) or _described(index, place, p)
                    member = Member(p, index, name)
                    if member.numel:
                        by_device.setdefault(p.device, []).append(member)
        self._samples = [Sample(members, self.every) for members in by_device.values()]
        members = [member for sample in self._samples for member in sample.members]
        counts = np.array([member.count for member in members], dtype=float)
        squares = [sample.points().square().sum(1).double().cpu().numpy() for sample in self._samples]
        started = np.sqrt(np.concatenate(squares or [counts]) / counts)
        self._rows = summary.Rows(
            [member.name for member in members],
            np.array([member.group for member in members], dtype=int),
            counts,
            np.array([member.numel for member in members], dtype=float),
            np.array([self._began.setdefault(id(m.parameter), one) for m, one in zip(members, started, strict=True)]),
        )
        self._tail = self._reference = self._points = None
        self._compared = []
        self._walked, self._lasting, self._drawn = (0.0, 0), 0, 0

    @torch.no_grad()
    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if is_inner(optimizer):
            return
        self._begun += 1
        if float(getattr(optimizer, "found_inf", 0.0)):
            self._points = None
            return  # a gradient scaler had the step skipped
        recorded = (self._t + 1) % self.every == 0
        self._t += 1
        used = []
        for group in self._groups:
            # torch keeps t in tensors; reading one at every step would wait for the device it is on.
            moved = any(p.grad is not None for p in group.options["params"])
            group.count(moved, _steps_done(optimizer, group.options) if recorded else None)
            used.append(group.step(self._look, optimizer, moved))
        if recorded:
            self._t = max((group.steps for group in self._groups), default=0)
        states = vars(optimizer)["state"]  # without a word to ours, which would look after a state others may change
        first, second, groups = self._look.first, self._look.second, self._groups

        def find(member: Member) -> tuple[Any, Any]:
            state = states.get(member.parameter)
            options = groups[member.group].options
            return (first(state, options), second(state, options)) if state else (None, None)

        for sample in self._samples:
            sample.step(find, [one.added for one in used])
        self._count_noise(used)
        self._window.numbers.append([group.numbers for group in self._groups])
        self._window.steps.append(self._t)
        if self._points is not None:
            found = list(map(partial(self._compared_with, used), self._samples, self._points))
            self._compared.append((self._t, found))
            self._points = None
        self._due = recorded or len(self._window.steps) == self.every

    def _count_noise(self, used: Sequence[Coefficients[float]]) -> None:
        """Measure the bias of the scaling at steps that coin flips draw: many for small networks, one in four else."""
        self._lasting += 1
        for sample in self._samples:
            if self._lasting > 1 and (sample.small or self._coin.random() < _DRAWN):
                self._drawn += sample is self._samples[0]
                sample.draw([c.beta for c in used])

    def _skew(self) -> dict[str, Any]:
        """Return the share of the gradient that the scaling took away in the last 200 steps, or 2,000 at most.

        Where the noise hides the gradient, more steps are taken in before it is given up.
        """
        if self._lasting < _LASTING or self._drawn < 2:
            return {}
        values = torch.cat([sample.noise().double().cpu() for sample in self._samples], dim=1).numpy()
        n = self._drawn
        of_e, of_h, e, h, scale = np.nansum(values * self._rows.scale, axis=1).tolist()
        lost, size = (of_e - e) / (n * (n - 1)), (of_h - h) / (n * (n - 1))
        clear = of_h > _CLEAR * h and scale > 0 and math.isfinite(lost)
        if clear or self._lasting >= 10 * _LASTING:
            self._lasting, self._drawn = 1, 0
            for sample in self._samples:
                sample.forget_noise()
        if not clear:
            return {}
        return {"skew": lost / size, "skew_scale": lost * n / scale}

    def _compared_with(self, used: Sequence[Coefficients[float]], sample: Sample, was: Tensor) -> Tensor:
        """Return how the step differs from the stated one; the moments before it are not known at the first."""
        if self._algorithm is not None:
            used = [stated(self._algorithm, k, group.steps or 1) for k, group in enumerate(self._groups)]
        known = [self._lasting > 1 and not group.options.get("amsgrad") for group in self._groups]
        numbers = [
            (c.alpha, c.beta if self._lasting > 1 else math.nan, c.theta if v else math.nan, c.added, c.decay, c.pull)
            for c, v in zip(used, known, strict=True)
        ]
        columns = (_column(sample, each) for each in zip(*numbers, strict=True))
        spacing = [max(torch.finfo(m.parameter.dtype).eps, _FLOAT32) for m in sample.members]
        scale = _column(sample, [group.scale for group in self._groups])
        return sample.compare(was, Coefficients(*columns), scale, sample.column(spacing))

    def _flush(self) -> None:
        """Make a record of the steps since the last one."""
        self._due = False
        window, self._window = self._window, _Window()
        if not window.steps:
            self._window = window
            return
        found: dict[str, Any] = {"step": window.steps[-1], "first": window.steps[0]}
        if self._samples:
            steps = self._steps(window)
            found |= summary.of_steps(steps, self._rows)
            found |= self._skew()
            if self._compared:
                found |= self._of_comparison(steps, found["falling"])
                self._compared = []
            if self._probe is not None and self._wanted(found):
                found["probed"] = self._probed(self._probe)
        found |= summary.of_losses(_numbers(window.losses))
        found |= summary.of_norms(_numbers([norm for norm, _ in window.norms]), [most for _, most in window.norms])
        self._keep(Record(**found))

    def _wanted(self, found: Mapping[str, Any]) -> bool:
        """Return True if the curvature is to be measured: a few times a run, and while the second moment falls."""
        wait = _WAIT if found.get("falling", 0.0) > _FALLING else max(_WAIT, self._last_probe)
        if self._t < self._last_probe + wait:
            return False
        self._last_probe = self._t
        return True

    def _probed(self, probe: Callable[[], Tensor]) -> float:
        """Return the curvature that a probe finds over the largest stable one; nan where it cannot be had."""
        states = vars(self._optimizer)["state"]
        parameters, scales = [], []
        for group in self._groups:
            alpha, beta, added = group.numbers[1], group.numbers[2], group.added
            for p in group.options["params"]:
                v = self._look.second(states.get(p, {}), group.options) if states.get(p) else None
                if isinstance(v, Tensor) and p.requires_grad and v.shape == p.shape and alpha > 0:
                    parameters.append(p)
                    # With alpha in it, groups of different rates are one.
                    scales.append((v.sqrt() + added).clamp_min_(1e-30) / (alpha * (1 - beta) / (2 + 2 * beta)))
        if not parameters:  # lr is 0
            return math.nan
        try:
            return curvature(probe, parameters, scales)
        except (RuntimeError, NotImplementedError) as error:
            warnings.warn(
                f"the probe cannot be differentiated twice ({error}): no curvature", RuntimeWarning, stacklevel=2
            )
            self._probe = None
            return math.nan

    def _steps(self, window: _Window) -> summary.Steps:
        """Return the sums of the window's steps, after those of the window before."""
        sums = np.concatenate([sample.collect() for sample in self._samples], axis=2)
        numbers = np.array(window.numbers)[:, self._rows.groups].transpose(0, 2, 1)  # [steps, NUMBERS, tensors]
        by_sum = {name: sums[:, index] for index, name in enumerate(COLUMNS)}
        by_number = {name: numbers[:, index] for index, name in enumerate(summary.NUMBERS)}
        self._tail = summary.Steps(np.array(window.steps), by_sum, by_number).after(self._tail)
        return self._tail

    def _of_comparison(self, steps: summary.Steps, falling: float) -> dict[str, Any]:
        rows = self._rows
        members = [member for sample in self._samples for member in sample.members]
        spacing = [max((torch.finfo(one.dtype).eps for one in m.moments()), default=0.0) for m in members]
        complete = np.concatenate([np.array(sample.complete) for sample in self._samples])
        plain = np.array([self._look.replays(self._optimizer, group.options) for group in self._groups])
        found, first = dict[str, Any](), dict[str, Any]()
        sums = dict[str, np.ndarray]()
        for step, compared in self._compared:
            values = torch.cat([one.double().cpu() for one in compared], dim=1).numpy()
            sums = {name: values[index] for index, name in enumerate(COMPARED)}
            found = summary.of_comparison(sums, rows, complete & plain[rows.groups], 4 * np.array(spacing), falling)
            found["wrong_step"] = step
            if not first and found.get("wrong", 0.0) > WRONG:
                first = {name: found[name] for name in found if name.startswith("wrong")}
        found |= first
        tensors = [m.parameter.detach() for m in members]
        largest = max(_numbers(torch._foreach_norm(tensors, math.inf)))
        # Between two looks no weight moves further than the steps' upper limits.
        reached = np.max(steps.numbers["alpha"] * steps.numbers["largest"], axis=1)[steps.known :].sum()
        found["weights"] = largest + float(reached)
        if complete.all():  # else tensors may take turns, each with a count of its own
            found["late"] = max((group.late for group in self._groups), key=abs)
        return found | self._path(steps, sums)

    def _path(self, steps: summary.Steps, sums: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return how far the weights have come in some fifty steps, and how straight."""
        alpha, rows = steps.numbers["alpha"][steps.known :], self._rows
        squares = np.nansum(alpha**2 * steps.sums["update"][steps.known :] * rows.scale, axis=1)
        self._walked = (self._walked[0] + float(np.sqrt(squares).sum()), self._walked[1] + len(squares))
        length, count = self._walked
        found: dict[str, Any] = {}
        now = [sample.points() for sample in self._samples]
        if self._reference is None:
            self._reference, self._walked = now, (0.0, 0)
        elif count >= _PATH:
            apart = [(x - old).square_().sum(1) for x, old in zip(now, self._reference, strict=True)]
            moved = float((torch.cat([one.double().cpu() for one in apart]).numpy() * rows.scale).sum()) ** 0.5
            weights = float(np.nansum(sums["after"] * rows.scale)) ** 0.5
            found["path"] = moved / weights * _PATH / count if weights > 0 else math.nan
            found["straight"] = moved / length if length > 0 else math.nan
            self._reference, self._walked = now, (0.0, 0)
        return found

    def _keep(self, record: Record) -> None:
        """Send a record everywhere it is wanted, and tell of what is found in the last ones."""
        self._records.append(record)
        if self._file is not None:
            self._file.write(record)
        numbers = {f"watch/{k}": v for k, v in vars(record).items() if isinstance(v, float) and not math.isnan(v)}
        if hasattr(self._log, "add_scalar"):
            for name, value in numbers.items():
                self._log.add_scalar(name, value, record.step)
        elif self._log is not None:
            self._log(numbers, record.step)
        if len(self._records) % _RECORDS and not record.loss_bad:
            return
        earlier = self._records[:1] if len(self._records) > _LOOKED_BACK else []  # where the loss began
        for finding in diagnose([*earlier, *self._records[-_LOOKED_BACK:]]).findings:
            if finding.cause not in self._told:
                self._told.add(finding.cause)
                if self._on_event is None:
                    _log.warning("step %d: %s", record.step, finding.text)
                else:
                    self._on_event(finding)


class _Group:
    """One parameter group: its count of steps and what follows from its coefficients."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        self.steps = self.late = 0
        self.scale = 1.0
        self.numbers: tuple[float, ...] = ()
        self.added = 0.0
        # 1 - prod beta, 1 - prod theta; and the sum of (weight of g_i in m_t)^2 / (weight of g_i^2 in v_t), whose root
        # no |m_t|/sqrt(v_t) exceeds (Cauchy and Schwarz)
        self._masses, self._spread, self._joined = (0.0, 0.0), 0.0, 0

    def join(self, options: Mapping[str, Any], steps: int) -> None:
        """Go on with options that a loaded state has brought, after this many steps."""
        if steps != self.steps or options is not self.options:
            self._masses, self._spread, self._joined = (0.0, 0.0), 0.0, steps
        self.options, self.steps = options, steps

    def count(self, moved: bool, done: int | None) -> None:
        """Count a step; where `done` is what the optimizer has counted, that is right, and compared."""
        self.steps += moved
        self.late = 0 if done is None else self.steps - done
        self.steps = self.steps if done is None else done

    def step(self, look: Look, optimizer: Any, moved: bool) -> Coefficients[float]:
        """Return the coefficients of the step that was made, the first where none was."""
        found = look.coefficients(optimizer, self.options, self.steps or 1, self._masses)
        beta, theta = found.beta, found.theta
        added = (1 - beta) ** 2 / (1 - theta) if theta < 1 else math.nan
        if self._joined:  # as if the betas had been constant before
            before, ratio = self._joined, beta**2 / theta if theta else math.nan
            self._masses = (1 - beta**before, 1 - theta**before)
            self._spread = added * ((1 - ratio**before) / (1 - ratio) if ratio != 1 else before)
            self._joined = 0
            found = look.coefficients(optimizer, self.options, self.steps or 1, self._masses)
        if moved:
            of_m, of_v = self._masses
            self._masses = (1 - beta * (1 - of_m), 1 - theta * (1 - of_v))
            self._spread = (beta**2 / theta * self._spread if beta else 0.0) + added
        of_m, of_v = self._masses
        self.scale = math.sqrt(of_v) / of_m if of_m > 0 else 1.0
        # A decay in the gradient is in v and, without a first moment, not in what is taken for the step.
        bounded = look.averages and self._spread > 0 and (beta or not found.pull) and not self.options.get("centered")
        largest = math.sqrt(self._spread) if bounded else math.nan
        lr = float(self.options.get("lr", math.nan))
        known = look.averages and (look.known or look.replays(optimizer, self.options))
        other = not known or found.pull or self.options.get("amsgrad") or self.options.get("centered")
        averaged = math.nan if other else theta
        self.numbers = (lr, found.alpha, beta, theta, found.decay, self.scale, of_v, largest, averaged)
        self.added = found.added
        return found


def _meter(optimizer: Any, probe: Callable[[], Tensor], model: torch.nn.Module | None) -> BudgetMeter | None:
    """Return what measures the budget; None, with a warning, where it cannot be measured."""
    try:
        return BudgetMeter(optimizer, probe, model=model)
    except OptimizerError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        return None


def _first(options: Mapping[str, Any]) -> int:
    """Return what a group is known by: its first parameter; itself where it has none."""
    return id(next(iter(options["params"]), options))


def _steps_done(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> int:
    """Return how many steps the parameters of a group have made: 0 before the first."""
    state = vars(optimizer)["state"]
    places = (group, *(state[p] for p in group["params"] if p in state))
    return max((int(place["step"]) for place in places if "step" in place), default=0)


def _described(group: int, place: int, parameter: Tensor) -> str:
    return f"group {group} tensor {place} ({'x'.join(map(str, parameter.shape))})"


def _column(sample: Sample, by_group: Sequence[float]) -> float | Tensor:
    """Return the one number that all groups have, or a column with each tensor's."""
    if all(value == by_group[0] for value in by_group):
        return by_group[0]
    return sample.column([by_group[member.group] for member in sample.members])


def _numbers(values: Sequence[float | Tensor]) -> list[float]:
    """Return numbers and tensors of one element as numbers, with one wait for the device."""
    found = [math.nan if isinstance(one, Tensor) else float(one) for one in values]
    tensors = {index: one.detach().reshape(()) for index, one in enumerate(values) if isinstance(one, Tensor)}
    if tensors:
        # a DTensor is read whole
        read = torch.stack([getattr(one, "full_tensor", one.double)().double() for one in tensors.values()]).tolist()
        for index, value in zip(tensors, read, strict=True):
            found[index] = value
    return found
