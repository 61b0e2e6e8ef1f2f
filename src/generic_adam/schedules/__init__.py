"""Schedules: sequences u_1, u_2, ... with exact values, blocks of values, and growth as t -> infinity."""

from generic_adam.schedules.base import FloatArray, Schedule
from generic_adam.schedules.bounded import Bounded
from generic_adam.schedules.build import (
    as_schedule,
    bias_correction,
    clip,
    exp,
    geometric,
    join,
    linear_warmup,
    log,
    maximum,
    minimum,
    periodic,
    power_law,
    sqrt,
    t,
    theta_from_weights,
)
from generic_adam.schedules.choices import Join, Maximum, Minimum
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.functions import Function
from generic_adam.schedules.growth import Growth
from generic_adam.schedules.nodes import Add, Constant, Divide, Multiply, Negate, Subtract, Time
from generic_adam.schedules.opaque import Opaque
from generic_adam.schedules.parser import parse
from generic_adam.schedules.periodic import Periodic
from generic_adam.schedules.powers import Power
from generic_adam.schedules.recursions import BiasCorrection, WeightedTheta, WeightShare

__all__ = [
    "Add",
    "BiasCorrection",
    "Bounded",
    "Constant",
    "Divide",
    "FloatArray",
    "Function",
    "Growth",
    "Join",
    "Maximum",
    "Minimum",
    "Multiply",
    "Negate",
    "Opaque",
    "Periodic",
    "Power",
    "Schedule",
    "ScheduleError",
    "Subtract",
    "Time",
    "WeightShare",
    "WeightedTheta",
    "as_schedule",
    "bias_correction",
    "clip",
    "exp",
    "geometric",
    "join",
    "linear_warmup",
    "log",
    "maximum",
    "minimum",
    "parse",
    "periodic",
    "power_law",
    "sqrt",
    "t",
    "theta_from_weights",
]
