"""A clock for a run: are the steps that are executed those of the sequences that the certificate is about?

At the first steps, and then once in a while, a few coordinates of each parameter are taken before a step, with their
gradient and moments, and again after it. Between the two lies one step of the Algorithm, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from generic_adam.adapters import read
from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm
from generic_adam.verify.front import Difference
from generic_adam.verify.replay import ROUNDOFF, Floats

with from_extra("torch"):
    import torch

_EACH = 8  # coordinates of a parameter
_OFTEN = 10  # the first steps, all of which are compared
_LOOSE = 1e-3  # of the step: 1 - beta2 in float32, fused orders of operations


@dataclass(frozen=True)
class _Before:
    """Sampled coordinates of a parameter before a step."""

    name: str
    group: int
    parameter: Any
    place: Any
    x: Floats
    g: Floats
    m: Floats
    v: Floats


class Clock:
    """Compares executed steps with an Algorithm's sequences while training, and keeps the first difference.

    Parameters whose own step count is not that of the run (they had no gradient at some step), whose state has no
    exp_avg and exp_avg_sq, or whose weights are half precision are left out. It sits on the optimizer's step hooks.

    Args:
        optimizer: of the Adam family, at the beginning of a run or loaded.
        algorithm: its sequences; None reads them from the optimizer as it is now, with the scheduler.
        scheduler: the scheduler that moves its rate.
        every: from step 10 on one step in so many is compared.

    Examples:
        >>> x = torch.nn.Parameter(torch.ones(3))
        >>> optimizer = torch.optim.Adam([x], lr=0.1)
        >>> clock = Clock(optimizer)
        >>> for step in range(20):
        ...     x.grad = x.detach() + 1
        ...     optimizer.step()
        ...     optimizer.param_groups[0]["lr"] = 0.1 if step < 4 else 0.2
        >>> clock.difference.since, clock.difference.category
        (6, 'learning rate')
    """

    def __init__(
        self, optimizer: Any, algorithm: Algorithm | None = None, scheduler: Any = None, *, every: int = 100
    ) -> None:
        self._algorithm = read(optimizer, scheduler) if algorithm is None else algorithm
        first = self._algorithm.parts[0] if self._algorithm.parts else self._algorithm
        if not first.preconditioned or first.outside or first.factored or first.nesterov or first.running_maximum:
            raise OptimizerError(
                f"{type(optimizer).__name__}: expected Adam or AdamW, whose single steps can be compared"
            )
        self._optimizer, self._every = optimizer, every
        self._taken: list[_Before] = []
        self._t = max((int(own["step"]) for own in optimizer.state.values() if "step" in own), default=0)
        self._began = self._t
        self.difference: Difference | None = None
        self._handles = [
            optimizer.register_step_pre_hook(self._before), optimizer.register_step_post_hook(self._after),
        ]  # fmt: skip

    def detach(self) -> None:
        """Take the hooks off."""
        for one in self._handles:
            one.remove()

    def _before(self, *_: Any) -> None:
        self._t += 1
        done = self._t - self._began
        if self.difference is None and (done <= _OFTEN or done % self._every == 0):
            self._taken = list(self._sampled())

    def _sampled(self) -> Iterator[_Before]:
        for group, one in enumerate(self._optimizer.param_groups):
            for index, p in enumerate(one["params"]):
                state = self._optimizer.state.get(p, {})
                own = int(state.get("step", 0)) if "exp_avg" in state or not state else -1
                if p.grad is None or p.grad.is_sparse or own != self._t - 1 or p.dtype.itemsize < 4:
                    continue
                place = torch.linspace(0, p.numel() - 1, min(_EACH, p.numel()), device=p.device).long()
                zero = torch.zeros_like(place, dtype=torch.float64)
                m, v = (_taken(state[name], place) if state else zero.numpy() for name in ("exp_avg", "exp_avg_sq"))
                name = f"parameter {index} of group {group}"
                yield _Before(name, group, p, place, _taken(p, place), _taken(p.grad, place), m, v)

    def _after(self, *_: Any) -> None:
        taken, self._taken = self._taken, []
        for one in taken:
            if self.difference is None:
                self.difference = self._compared(one)

    def _compared(self, one: _Before) -> Difference | None:
        whole, t = self._algorithm, self._t
        part = next((part for part in whole.parts if one.group in part.groups), whole)
        alpha, beta, theta, eps, decay = (
            float(u(t)) for u in (part.method.alpha, part.method.beta, part.method.theta, part.eps, part.decay)
        )
        g = one.g + float(part.l2) * one.x
        m, v = beta * one.m + (1 - beta) * g, theta * one.v + (1 - theta) * g * g
        with np.errstate(all="ignore"):
            root = np.sqrt(v + eps * eps) if part.eps_under_root else np.sqrt(v) + eps
            due = np.nan_to_num(alpha * m / root) + decay * one.x
        moved = one.x - _taken(one.parameter, one.place)
        unit = ROUNDOFF[str(one.parameter.dtype).removeprefix("torch.")]
        size = alpha * (beta * np.abs(one.m) + (1 - beta) * np.abs(g)) / np.maximum(root, 1e-300) + np.abs(
            decay * one.x
        )
        bound = _LOOSE * size + 8 * unit * (np.abs(one.x) + np.abs(moved)) + 1e-37
        wrong = np.abs(moved - due) > bound
        if not wrong.any():
            return None
        off = float(np.median(np.abs(moved - due)[wrong] / np.maximum(np.abs(due)[wrong], 1e-300)))
        ratio = moved[wrong] / due[wrong]
        same = float(np.ptp(ratio)) <= 1e-2 * abs(float(ratio.mean()))
        said = f"the step is {ratio.mean():.3g} times that of the sequences" if same else "the step is another one"
        return Difference("learning rate" if same else "second moment", t, (one.name,), off, same, said)


def _taken(tensor: Any, place: Any) -> Floats:
    """Return sampled numbers in float64."""
    flat = tensor.detach()
    flat = flat.to_local() if hasattr(flat, "to_local") else flat
    return flat.reshape(-1)[place].to("cpu", torch.float64).numpy().copy()
