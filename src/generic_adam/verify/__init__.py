"""Compare an optimizer, a scheduler or a training loop with the algorithm that it is believed to be.

A copy is driven with gradients of its own; every step is compared with the claim in float64, up to rounding.

    drive    the user's object, or a copy of it, taking steps with gradients of ours: a Trace
    claim    what is believed: a mapping, a name or an Algorithm, or what a class says of itself, as a Rule
    replay   a Rule carried out in float64 from the weights that were seen, with its error bound
    explain  which change of the Rule explains every step that differs (departures has the table)
    resume   save, load and go on

`generic_adam.verify` is this package and the function at once: a package hides the name of a function beside it.

Examples:
    >>> import generic_adam as ga, torch
    >>> weights = torch.nn.Parameter(torch.ones(8))
    >>> print(ga.verify(torch.optim.Adam([weights], weight_decay=0.1), claim="AdamW").differences[0].category)
    weight decay
"""

import sys
from types import ModuleType
from typing import Any

from generic_adam.verify.front import Difference, Verification, verify


class _Verify(ModuleType):
    """The package, which can be called."""

    def __call__(self, subject: Any, scheduler: Any = None, claim: Any = None, **options: Any) -> Verification:
        return verify(subject, scheduler, claim, **options)


sys.modules[__name__].__class__ = _Verify

__all__ = ["Difference", "Verification", "verify"]
