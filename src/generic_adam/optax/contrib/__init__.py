"""The peers that Generic Adam is compared with, as gradient transformations."""

from generic_adam.optax.contrib.adashift import AdaShiftState, adashift
from generic_adam.optax.contrib.padam import PadamState, padam

__all__ = ["AdaShiftState", "PadamState", "adashift", "padam"]
