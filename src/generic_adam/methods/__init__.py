"""Triples (alpha, beta, theta), the algorithms that run them, and the published ones."""

from generic_adam.errors import MethodError
from generic_adam.methods import catalogue
from generic_adam.methods.algorithm import Algorithm, Clipping, HeavyBall, Nesterov, as_algorithm, merged
from generic_adam.methods.catalogue import *  # noqa: F403 - the catalogue has the one list of its names
from generic_adam.methods.method import Method, ScheduleLike

__all__ = [
    "Algorithm",
    "Clipping",
    "HeavyBall",
    "Method",
    "MethodError",
    "Nesterov",
    "ScheduleLike",
    "as_algorithm",
    "merged",
]
__all__ += catalogue.__all__
