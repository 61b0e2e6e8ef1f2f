"""Triples (alpha, beta, theta), the catalogue of published ones, and Weighted AdaEMA's equivalence."""

from generic_adam.methods.adagrad_family import (
    adagrad,
    nosadam,
    nosadam_hh,
    polynomial_weights,
    rmsprop,
    rmsprop_mukkamala_hein,
)
from generic_adam.methods.adam_family import (
    adaema,
    adam,
    adam_to_adaema,
    adamnc,
    certified_adam,
    power_family,
)
from generic_adam.methods.errors import MethodError
from generic_adam.methods.language_models import palm, t5
from generic_adam.methods.method import Method
from generic_adam.methods.parameters import ScheduleLike
from generic_adam.methods.registry import ENTRIES, MethodInfo, build, info, names
from generic_adam.methods.weights import log_weights, theta_from_log_weights

__all__ = [
    "ENTRIES",
    "Method",
    "MethodError",
    "MethodInfo",
    "ScheduleLike",
    "adaema",
    "adagrad",
    "adam",
    "adam_to_adaema",
    "adamnc",
    "build",
    "certified_adam",
    "info",
    "log_weights",
    "names",
    "nosadam",
    "nosadam_hh",
    "palm",
    "polynomial_weights",
    "power_family",
    "rmsprop",
    "rmsprop_mukkamala_hein",
    "t5",
    "theta_from_log_weights",
]
