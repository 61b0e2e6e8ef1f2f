"""Generic Adam and the methods it is compared with, as torch optimizers."""

from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra

with from_extra("torch"):
    from generic_adam.torch.contrib import AdaShift, AdaUSM, Padam
    from generic_adam.torch.generic_adam import AMSGrad, GenericAdam, WeightedAdaEMA
    from generic_adam.torch.schedule_lr import ScheduleFactor, ScheduleLR
    from generic_adam.torch.watch import Watch

__all__ = [
    "AMSGrad",
    "AdaShift",
    "AdaUSM",
    "GenericAdam",
    "OptimizerError",
    "Padam",
    "ScheduleFactor",
    "ScheduleLR",
    "Watch",
    "WeightedAdaEMA",
]
