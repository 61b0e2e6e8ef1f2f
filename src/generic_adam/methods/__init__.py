"""Triples (alpha, beta, theta), the algorithms that run them, and the published ones."""

from generic_adam.errors import MethodError
from generic_adam.methods.algorithm import Algorithm, Clipping, HeavyBall, Nesterov, as_algorithm, merged
from generic_adam.methods.catalogue import (
    MethodInfo,
    adaema,
    adagrad,
    adam,
    adam_to_adaema,
    adamnc,
    build,
    certified_adam,
    entries,
    info,
    names,
    nosadam,
    nosadam_hh,
    palm,
    polynomial_weights,
    power_family,
    rmsprop,
    rmsprop_mukkamala_hein,
    t5,
)
from generic_adam.methods.method import Method
from generic_adam.methods.parameters import ScheduleLike
from generic_adam.methods.shipped import adagrad_torch, adamw, adopt, amsgrad, nadam, rmsprop_torch, sgd
from generic_adam.methods.weights import log_weights, theta_from_log_weights

__all__ = [
    "Algorithm",
    "Clipping",
    "HeavyBall",
    "Method",
    "MethodError",
    "MethodInfo",
    "Nesterov",
    "ScheduleLike",
    "adaema",
    "adagrad",
    "adagrad_torch",
    "adam",
    "adam_to_adaema",
    "adamnc",
    "adamw",
    "adopt",
    "amsgrad",
    "as_algorithm",
    "build",
    "certified_adam",
    "entries",
    "info",
    "log_weights",
    "merged",
    "nadam",
    "names",
    "nosadam",
    "nosadam_hh",
    "palm",
    "polynomial_weights",
    "power_family",
    "rmsprop",
    "rmsprop_mukkamala_hein",
    "rmsprop_torch",
    "sgd",
    "t5",
    "theta_from_log_weights",
]
