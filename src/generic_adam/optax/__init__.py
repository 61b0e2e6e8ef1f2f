"""Generic Adam for JAX, in Optax's conventions: any schedule of theta, exactly, and a start value of v."""

from generic_adam.extras import require

require("jax", "optax")

from generic_adam.optax.adashift import AdaShiftState, adashift  # noqa: E402 - the missing extra is named first
from generic_adam.optax.aliases import generic_adam  # noqa: E402
from generic_adam.optax.errors import TransformationError  # noqa: E402
from generic_adam.optax.padam import PadamState, padam  # noqa: E402
from generic_adam.optax.schedule import OptaxSchedule, as_optax_schedule  # noqa: E402
from generic_adam.optax.transform import ScaleByGenericAdamState, scale_by_generic_adam  # noqa: E402

__all__ = [
    "AdaShiftState",
    "OptaxSchedule",
    "PadamState",
    "ScaleByGenericAdamState",
    "TransformationError",
    "adashift",
    "as_optax_schedule",
    "generic_adam",
    "padam",
    "scale_by_generic_adam",
]
