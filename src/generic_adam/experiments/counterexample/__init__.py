"""The counterexample to Adam's convergence, simulated in many lanes at once (Figure 1 of the paper)."""

from generic_adam.experiments.counterexample.algorithms import (
    AdaShift,
    Algorithm,
    AMSGrad,
    GenericAdam,
    Padam,
)
from generic_adam.experiments.counterexample.lane_records import LaneRecords
from generic_adam.experiments.counterexample.plan import Plan
from generic_adam.experiments.counterexample.problem import Counterexample, Form
from generic_adam.experiments.counterexample.run import compile_kernels, simulate
from generic_adam.experiments.counterexample.streams import gradients_of

__all__ = [
    "AMSGrad",
    "AdaShift",
    "Algorithm",
    "Counterexample",
    "Form",
    "GenericAdam",
    "LaneRecords",
    "Padam",
    "Plan",
    "compile_kernels",
    "gradients_of",
    "simulate",
]
