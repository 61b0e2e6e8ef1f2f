"""Generic Adam and the methods it is compared with, as torch optimizers."""

from generic_adam.extras import require

require("torch")

from generic_adam.torch.adashift import AdaShift  # noqa: E402
from generic_adam.torch.adausm import AdaUSM  # noqa: E402
from generic_adam.torch.amsgrad import AMSGrad  # noqa: E402
from generic_adam.torch.coefficients import OptimizerError  # noqa: E402
from generic_adam.torch.generic_adam import GenericAdam  # noqa: E402
from generic_adam.torch.padam import Padam  # noqa: E402
from generic_adam.torch.schedule_lr import ScheduleFactor, ScheduleLR  # noqa: E402
from generic_adam.torch.watch import Watch  # noqa: E402
from generic_adam.torch.weighted_adaema import WeightedAdaEMA  # noqa: E402

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
