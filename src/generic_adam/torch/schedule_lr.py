"""Drive the learning rate of any torch optimizer from a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from generic_adam.methods.method import ScheduleLike
from generic_adam.schedules import ScheduleError, as_schedule


class ScheduleLR(LRScheduler):
    r"""Sets lr_t = u_t at the optimizer's step t = 1, 2, 3, ...: the learning rate itself, not a factor.

    Call ``scheduler.step()`` after each ``optimizer.step()``, as with every torch scheduler. It can be a part
    of `SequentialLR`, where it starts at u_1 again. With `generic_adam.certify(optimizer, scheduler)` the
    schedule is read back exactly. `GenericAdam` needs no scheduler: give it the schedule as `lr`.

    Args:
        optimizer: any torch optimizer.
        schedule: a schedule, number, text or callable of t; or a sequence of them, one for each parameter group.
        last_epoch: as in torch: the number of steps done, -1 for a new run.

    Raises:
        ScheduleError: the schedule cannot be read, or there is not one for each group.

    Examples:
        >>> import torch
        >>> weights = torch.zeros(3, requires_grad=True)
        >>> optimizer = torch.optim.Adam([weights])
        >>> scheduler = ScheduleLR(optimizer, "0.5 / sqrt(t)")
        >>> optimizer.param_groups[0]["lr"]
        0.5
    """

    def __init__(
        self, optimizer: Optimizer, schedule: ScheduleLike | Sequence[ScheduleLike], last_epoch: int = -1
    ) -> None:
        groups = len(optimizer.param_groups)
        if isinstance(schedule, str) or not isinstance(schedule, Sequence):
            schedule = [schedule] * groups
        if len(schedule) != groups:
            raise ScheduleError(f"got {len(schedule)} schedules for {groups} parameter groups; expected one for each")
        self.schedules = [as_schedule(one) for one in schedule]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates of the next step."""
        return [schedule(self.last_epoch + 1) for schedule in self.schedules]

    # SequentialLR starts a part through this name, so that it begins at u_1.
    _get_closed_form_lr = get_lr

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain types; the schedules are text."""
        state = super().state_dict()
        return state | {"schedules": [str(schedule) for schedule in self.schedules]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where a saved run stopped; a ScheduleError where its schedules were others."""
        saved, present = state_dict.get("schedules"), [str(schedule) for schedule in self.schedules]
        if saved != present:
            raise ScheduleError(f"the saved state is of the schedules {saved}; expected those of this run, {present}")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "schedules"})
