"""The numbers a torch scheduler produces, by stepping a copy of it: evidence where no closed form is known.

The copy is bound to a stand-in optimizer without parameters of the user's, so that nothing of theirs moves.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from generic_adam.adapters.clock import Clock
from generic_adam.adapters.reading import AdapterError


class Replay:
    """Learning rates and momenta after 0, 1, 2, ... further steps of a copy of the scheduler."""

    def __init__(self, scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
        self.name = type(scheduler).__name__
        stand_in = _stand_in(optimizer)
        try:
            # Every reference to the user's optimizer, in nested schedulers too, becomes one to the stand-in.
            self._scheduler = copy.deepcopy(scheduler, {id(optimizer): stand_in})
        except Exception as error:
            raise AdapterError(f"{self.name} cannot be copied to try it out: {_first_line(error)}") from error
        self._groups = stand_in.param_groups
        self._rates: list[list[float]] = []
        self._betas: list[list[float | None]] = []
        self._record()

    def rate(self, count: int, group: int) -> float:
        """The learning rate after `count` further scheduler steps."""
        self._advance_to(count)
        return self._rates[count][group]

    def beta(self, count: int, group: int) -> float | None:
        """The momentum parameter then (the first of `betas`), or None for optimizers without one."""
        self._advance_to(count)
        return self._betas[count][group]

    def _advance_to(self, count: int) -> None:
        with warnings.catch_warnings():
            # torch warns that the stand-in takes no steps of its own.
            warnings.simplefilter("ignore")
            while len(self._rates) <= count:
                try:
                    self._scheduler.step()
                except Exception as error:
                    raise AdapterError(
                        f"{self.name} raised at its step {len(self._rates)}: {_first_line(error)}"
                    ) from error
                self._record()

    def _record(self) -> None:
        self._rates.append([float(group["lr"]) for group in self._groups])
        self._betas.append([float(group["betas"][0]) if "betas" in group else None for group in self._groups])


class ReplayedSequence:
    """A callable of t = 1, 2, ... over a replay that starts at the scheduler's beginning."""

    def __init__(self, replay: Replay, group: int, clock: Clock, *, momentum: bool = False) -> None:
        self.replay, self.group, self.clock, self.momentum = replay, group, clock, momentum

    def __call__(self, t: npt.ArrayLike) -> float | npt.NDArray[np.float64]:
        """The learning rate (or momentum) of optimizer step t; an array of t gives an array."""
        if np.ndim(t):
            return np.array([self(int(one)) for one in np.asarray(t).ravel()]).reshape(np.shape(t))
        count = (int(t) - 1) // self.clock.every  # type: ignore[arg-type]
        value = (self.replay.beta if self.momentum else self.replay.rate)(count, self.group)
        if value is None:
            raise AdapterError(f"{self.replay.name}: the optimizer has no momentum parameter to read")
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
