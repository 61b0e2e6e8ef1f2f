"""From settings to a live optimizer and its learning-rate scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from generic_adam.experiments.settings import OptimizerSettings, SettingsError
from generic_adam.extras import from_extra
from generic_adam.torch import GenericAdam

with from_extra("experiments"):
    import torch
    from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler


def build_optimizer(
    settings: OptimizerSettings, parameters: Iterable[torch.nn.Parameter], total_steps: int
) -> tuple[torch.optim.Optimizer, LRScheduler | None]:
    """Build the optimizer, and the scheduler that is to be stepped after every batch if there is one.

    Args:
        settings: the method.
        parameters: of the network.
        total_steps: length of the whole run, for the cosine.

    Returns:
        The optimizer, and None unless the settings ask for a cosine: Generic Adam follows its schedules by
        itself.
    """
    if settings.family == "generic-adam":
        return GenericAdam(
            parameters,
            lr=settings.alpha,
            beta=settings.beta,
            theta=settings.theta,
            initial_v=settings.epsilon,
            amsgrad=settings.amsgrad,
        ), None
    optimizer = torch.optim.Adam(
        parameters,
        lr=_number("alpha", settings.alpha),
        betas=(_number("beta", settings.beta), _number("theta", settings.theta)),
        eps=settings.epsilon,
        amsgrad=settings.amsgrad,
        fused=True,
    )
    return optimizer, CosineAnnealingLR(optimizer, T_max=total_steps) if settings.cosine else None


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SettingsError(f"{name} {text!r}: torch's Adam takes a number") from error
