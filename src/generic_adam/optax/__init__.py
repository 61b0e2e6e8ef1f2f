"""Generic Adam for JAX, in Optax's conventions: any schedule of theta, exactly, and a start value of v."""

from generic_adam.extras import from_extra

with from_extra("optax"):
    from generic_adam.optax.schedule import OptaxSchedule, as_optax_schedule
    from generic_adam.optax.transform import ScaleByGenericAdamState, generic_adam, scale_by_generic_adam

__all__ = ["OptaxSchedule", "ScaleByGenericAdamState", "as_optax_schedule", "generic_adam", "scale_by_generic_adam"]
