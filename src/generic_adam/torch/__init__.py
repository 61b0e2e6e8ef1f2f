"""Generic Adam and the methods it is compared with, as torch optimizers."""

from generic_adam.extras import require

require("torch")

from generic_adam.torch.coefficients import OptimizerError  # noqa: E402
from generic_adam.torch.generic_adam import GenericAdam  # noqa: E402

__all__ = ["GenericAdam", "OptimizerError"]
