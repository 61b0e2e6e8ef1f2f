r"""The figures of ``generic-adam check --plot``.

A certificate against t has three panels for one or several methods: :math:`\chi_t = \alpha_t/\sqrt{1-\theta_t}`
(condition 3), the ratio :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}/(T\alpha_T)` (condition 4) and the bound
B(T) of Theorem 1. A dashed line is the growth that the certificate proves; a curve without one has no growth known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from generic_adam.answers.figures import PALETTE, drawing, legend_below
from generic_adam.schedules import Growth
from generic_adam.schedules.sums import whole_steps
from generic_adam.setting import Setting
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import chi_of, ratio_growth, weighted_steps
from generic_adam.theorems.zou2019 import bound, examine_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from generic_adam.methods import Method
    from generic_adam.theorems.decide import Rate

DEFAULT_PROBLEM: Final = Constants.of(Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1))
"""L = G = f(x_1) - f* = 1, d = 10 and epsilon = 1e-8: the bound's shape in T does not depend on it."""

LONGEST: Final = 10**7
"""The last t that a plot reaches in a few seconds; every term up to it is added."""

_POINTS: Final = 240
_BOUND_POINTS: Final = 24
_BLOCK: Final = 1 << 18
_CHECK_PANELS: Final = (
    ("Condition 3", "$t$", r"$\chi_t = \alpha_t / \sqrt{1 - \theta_t}$"),
    ("Condition 4", "$T$", r"$\sum_{t \leq T} \alpha_t \sqrt{1 - \theta_t} \,/\, (T \alpha_T)$"),
    ("Theorem 1", "$T$", r"bound $B(T)$"),
)


def draw_check(methods: Mapping[str, Method], steps: int = 10**6, *, is_tall: bool = False) -> Figure:
    """Draw chi_t, the ratio of condition 4 and the bound against t.

    Args:
        methods: The methods by the label that the legend shows.
        steps: The last t.
        is_tall: One panel below the other, for a narrow page.

    Raises:
        SumError: the number of steps is not a whole number.
    """
    last = whole_steps(steps, "the last t of the plot")
    with drawing(*((4.6, 9.6) if is_tall else (9.4, 3.8))) as figure:
        panels = figure.subplots(*((3, 1) if is_tall else (1, 3)))
        for index, (label, method) in enumerate(methods.items()):
            _draw_method(panels, label, method, PALETTE[index % len(PALETTE)], last)
        for axes, (title, variable, label) in zip(panels, _CHECK_PANELS, strict=True):
            values = np.concatenate([line.get_ydata() for line in axes.get_lines()] or [[]])
            if len(values) and values.max() < 1.01 * values.min():  # one constant: room above and below
                axes.set_ylim(values[0] / 3, values[0] * 3)
            axes.set(xscale="log", yscale="log", title=title, xlabel=variable)
            axes.set_ylabel(label, fontsize=8.5)
        legend_below(figure, panels[0], 1 if is_tall else 2)
    return figure


def _draw_method(panels: Sequence[Axes], label: str, method: Method, colour: str, last: int) -> None:
    certificate, sizes = examine_method(method), chi_of(method)
    legend = f"{label}: {certificate.verdict}"
    if certificate.rate is not None:  # T^(-1/2) log T with a raised exponent
        text = re.sub(r"\^\(([^)]*)\)", r"^{\1}", str(certificate.rate))
        legend += f", ${text.replace('log', chr(92) + 'log ').replace(' ', chr(92) + ',')}$"

    times, horizons = logarithmic_times(last, _POINTS), logarithmic_times(last, _BOUND_POINTS)
    panels[1].plot(times, running_ratio(method, times), color=colour)
    _draw_order(panels[1], times, ratio_growth(method), colour)

    bounds = [bound(method, DEFAULT_PROBLEM, int(steps)) for steps in horizons]
    values = np.array([one.expectation for one in bounds])
    if np.isfinite(values).any():
        finite = np.where(np.isfinite(values), values, np.nan)
        panels[2].plot(horizons, finite, color=colour, marker="o", ms=3)
        if math.isfinite(values[-1]):  # the order of the ratio: the bound's constant has no closed form
            _draw_order(panels[2], horizons, certificate.ratio_order, colour, values[-1])
    else:
        legend += f"; no bound: {bounds[-1].reasons}"

    shortened = legend if len(legend) <= 84 else f"{legend[:83].rstrip()}…"
    panels[0].plot(times, sizes.at(times.astype(float)), color=colour, label=shortened)
    _draw_order(panels[0], times, sizes.growth, colour)


def _draw_order(
    axes: Axes, times: NDArray[np.int64], order: Growth | Rate | None, colour: str, end: float = math.nan
) -> None:
    """Draw c t^p (log t)^q (log log t)^w from the middle on: a growth's own c, or the one that meets the end."""
    if order is None or (isinstance(order, Growth) and (order.rho.sign_of_log != 0 or order.sign <= 0)):
        return
    late = times[times >= math.sqrt(times[-1])]
    t = np.maximum(late.astype(float), 3.0)  # log log t is positive from 3 on
    shape = t ** float(order.power) * np.log(t) ** float(order.log) * np.log(np.log(t)) ** float(order.loglog)
    middle = math.sqrt(order.low * order.high) if isinstance(order, Growth) else end / shape[-1]
    axes.plot(late, middle * shape, color=colour, ls="--", lw=1.1)


def logarithmic_times(last: int, points: int) -> NDArray[np.int64]:
    """Return at most `points` different whole times from 1 to `last`, evenly spread on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(1, last, points)).astype(np.int64))


def running_ratio(method: Method, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the ratio of condition 4 at each of the increasing times, in one pass over t."""
    terms = weighted_steps(method)
    edges = np.unique([0, *times, *range(0, int(times[-1]), _BLOCK)])
    sums = np.cumsum([terms.values(int(a) + 1, int(b) + 1).sum() for a, b in pairwise(edges)])
    steps = np.array([method.alpha(int(t)) for t in times])
    with np.errstate(divide="ignore", invalid="ignore"):  # where the rate is 0 there is no ratio
        return sums[np.searchsorted(edges[1:], times)] / (times * steps)
