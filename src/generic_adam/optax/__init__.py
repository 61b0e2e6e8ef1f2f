"""Generic Adam for JAX, in Optax's conventions: any schedule of theta, exactly, and a start value of v."""

from generic_adam.extras import from_extra

with from_extra("optax"):
    from generic_adam.optax.adashift import AdaShiftState, adashift
    from generic_adam.optax.aliases import generic_adam
    from generic_adam.optax.errors import TransformationError
    from generic_adam.optax.padam import PadamState, padam
    from generic_adam.optax.schedule import OptaxSchedule, as_optax_schedule
    from generic_adam.optax.transform import ScaleByGenericAdamState, scale_by_generic_adam

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
