"""The counterexample to Adam's convergence, simulated in many lanes at once (Figure 1 of the paper)."""

from generic_adam_laboratory.counterexample.problem import Counterexample, Form, gradients_of
from generic_adam_laboratory.counterexample.simulation import AdaShift, LaneRecords, Plan, compile_kernels, simulate

__all__ = ["AdaShift", "Counterexample", "Form", "LaneRecords", "Plan", "compile_kernels", "gradients_of", "simulate"]
