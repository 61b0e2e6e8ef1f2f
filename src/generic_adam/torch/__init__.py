"""Generic Adam and the methods it is compared with, as torch optimizers."""

from typing import TYPE_CHECKING, Any

from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra

with from_extra("torch"):
    from generic_adam.torch.contrib import AdaShift, AdaUSM, Padam
    from generic_adam.torch.generic_adam import AMSGrad, GenericAdam, WeightedAdaEMA
    from generic_adam.torch.schedule_lr import ScheduleLR

if TYPE_CHECKING:
    from generic_adam.watch.watch import Watch

__all__ = [
    "AMSGrad",
    "AdaShift",
    "AdaUSM",
    "GenericAdam",
    "OptimizerError",
    "Padam",
    "ScheduleLR",
    "Watch",
    "WeightedAdaEMA",
]


def __getattr__(name: str) -> Any:
    if name == "Watch":  # which lies above this package, and is looked for here by those who train
        from generic_adam.watch.watch import Watch

        return Watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
