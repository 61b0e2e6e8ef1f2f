"""What Figure 1 of the paper shows: three pairs of panels, ten curves, and the peers beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generic_adam.experiments.counterexample.algorithms import AdaShift, Algorithm, AMSGrad, Padam
from generic_adam.methods import Method
from generic_adam.schedules import as_schedule

PAPER_STEPS = 10**7
PAPER_ALPHA = "0.5/sqrt(t)"
PAPER_BETA = 0.9


@dataclass(frozen=True)
class Panel:
    """One column of the figure: average regret above, x below.

    Args:
      letters: the paper's names of the two panels, e.g. "ad".
      title: the schedules, in the paper's letters (TeX).
      curves: label to method; the labels are those of the records.
    """

    letters: str
    title: str
    curves: Mapping[str, Method]

    def short_label(self, label: str) -> str:
        """Return the label without the panel's letter, for a legend."""
        return label.removeprefix(f"({self.letters[0]}) ")


def path_theta(r: float) -> str:
    """theta_t = 1 - (0.01 + 0.99 r)/t^r, the path from Adam (r = 0) to AdaEMA (r = 1), as text."""
    return f"1 - {0.01 + 0.99 * r:.10g}/t^{r:g}"


def _panel(letters: str, title: str, curves: Mapping[str, Method]) -> Panel:
    return Panel(letters, title, {f"({letters[0]}) {label}": method for label, method in curves.items()})


PANELS = (
    _panel(
        "ad",
        r"$\theta_t = 1 - (0.01 + 0.99\,r)/t^r,\ \alpha_t = 0.5/\sqrt{t}$",
        {f"r = {r:g}": Method(PAPER_ALPHA, PAPER_BETA, path_theta(r)) for r in (0, 0.25, 0.5, 0.75, 1)},
    ),
    _panel(
        "be",
        r"$\theta_t = 1 - 0.01/t^r,\ \alpha_t = 0.5/\sqrt{t}$",
        {f"r = {r:g}": Method(PAPER_ALPHA, PAPER_BETA, f"1 - 0.01/t^{r:g}") for r in (0, 0.25)},
    ),
    _panel(
        "cf",
        r"$\theta_t = 1 - 0.802/t^{0.8},\ \alpha_t = 0.5/t^s$",
        {f"s = {s:g}": Method(f"0.5/t^{s:g}", PAPER_BETA, path_theta(0.8)) for s in (0.4, 0.6, 0.8)},
    ),
)


def figure_methods() -> dict[str, Method]:
    """Return the ten curves of the figure by label."""
    return {label: method for panel in PANELS for label, method in panel.curves.items()}


def peer_methods() -> dict[str, Method | Algorithm]:
    """Return what the paper compares with, and other members of the family, under the paper's alpha."""
    adam = Method(PAPER_ALPHA, PAPER_BETA, 0.99)
    return {
        "AMSGrad, θ = 0.99": AMSGrad(adam),
        "Padam, p = 1/8, θ = 0.99": Padam(adam),
        "AdaShift, n = 10, θ = 0.99": AdaShift(as_schedule(PAPER_ALPHA), PAPER_BETA, 0.99, kept=10),
        "RMSProp, θ = 0.99": Method(PAPER_ALPHA, 0, 0.99),
        "RMSProp, θ = 1 − 0.9/t": Method(PAPER_ALPHA, 0, "1 - 0.9/t"),
        "AdaGrad": Method("0.5/sqrt(t + 1)", 0, "1 - 1/(t + 1)"),
    }
