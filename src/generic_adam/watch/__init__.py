"""Looks at a training run: instruments at every step, a diagnosis with a cause, and the facts that were measured."""

from typing import TYPE_CHECKING, Any

from generic_adam.watch.diagnosis import CAUSES, Diagnosis, Finding, diagnose

if TYPE_CHECKING:
    from generic_adam.watch.watch import Watch

__all__ = ["CAUSES", "Diagnosis", "Finding", "Watch", "diagnose"]


def __getattr__(name: str) -> Any:
    if name == "Watch":  # which needs torch; reading what a run left behind does not
        from generic_adam.watch.watch import Watch

        return Watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
