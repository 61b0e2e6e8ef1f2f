"""What is simulated: methods, problem, steps, replicates, seed. Nothing of how."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample.algorithms import Algorithm, as_algorithm
from generic_adam.experiments.counterexample.problem import Counterexample
from generic_adam.methods import Method

MAX_STEPS = 10**12
"""At two nanoseconds a lane-step one lane would need half an hour; nobody means more."""

MAX_REPLICATES = 2**32
"""As many streams as a spawn key of 32 bits can tell apart; memory ends earlier."""


@dataclass(frozen=True)
class Plan:
    """What is simulated; two plans that are equal end in the same bits.

    Args:
      methods: label to `Method` or peer (`AMSGrad`, `Padam`, `AdaShift`).
      problem: the counterexample.
      steps: T.
      replicates: a number (from 0 on) or a range: each is an independent stream of gradients.
      seed: the run's seed.
      epsilon: v_0.
    """

    methods: Mapping[str, Method | Algorithm]
    steps: int
    replicates: int | range = 1
    problem: Counterexample = field(default_factory=Counterexample)
    seed: int = 0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        """Check the numbers before anything is allocated."""
        if not self.methods:
            raise RunError("there is no method to simulate, expected at least one")
        if not (isinstance(self.steps, int) and 1 <= self.steps <= MAX_STEPS):
            raise RunError(f"steps is {self.steps}, expected a whole number from 1 to {MAX_STEPS:.0e}")
        if isinstance(self.replicates, int):
            if not 1 <= self.replicates <= MAX_REPLICATES:
                raise RunError(
                    f"the number of replicates (seeds) is {self.replicates}, expected at least one and at "
                    f"most {MAX_REPLICATES:,}"
                )
            object.__setattr__(self, "replicates", range(self.replicates))
        lanes = self.replicate_range
        if len(lanes) < 1 or lanes.start < 0 or lanes.step != 1:
            raise RunError(f"replicates is {self.replicates}, expected at least one, numbered from 0 on")
        if not 0 <= self.epsilon < math.inf:
            raise RunError(f"epsilon is {self.epsilon}, expected a finite number of at least 0")

    @property
    def replicate_range(self) -> range:
        """The replicates as a range."""
        return self.replicates if isinstance(self.replicates, range) else range(self.replicates)

    @property
    def algorithms(self) -> list[Algorithm]:
        """The methods as algorithms, in order."""
        return [as_algorithm(method) for method in self.methods.values()]

    @property
    def lane_steps(self) -> int:
        """How many single steps of single lanes the plan asks for."""
        return self.steps * len(self.methods) * len(self.replicate_range)

    def settings(self) -> dict[str, Any]:
        """Return the plan as plain types, for a manifest or a checkpoint."""
        lanes = self.replicate_range
        return {
            "methods": {
                label: algorithm.describe()
                for label, algorithm in zip(self.methods, self.algorithms, strict=True)
            },
            "problem": self.problem.settings(),
            "steps": self.steps,
            "replicates": [lanes.start, lanes.stop],
            "seed": self.seed,
            "epsilon": self.epsilon,
        }
