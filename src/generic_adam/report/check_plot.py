r"""The figure of ``generic-adam check --plot``: a method's certificate against t.

Three panels for one or several methods: :math:`\chi_t = \alpha_t/\sqrt{1-\theta_t}` (condition 3), the ratio
:math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}/(T\alpha_T)` (condition 4) and the bound B(T) of Theorem 1. A
dashed line is the growth that the certificate proves; a curve without one has no growth known.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from generic_adam.experiments.figures import PALETTE, house_style
from generic_adam.extras import from_extra
from generic_adam.schedules.sums import checked_horizon
from generic_adam.theorems.decide import chi_of, ratio_growth, weighted_steps
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.zou2019 import PaperFinding, examine_method
from generic_adam.theorems.zou2019_bound import bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from generic_adam.methods import Method
    from generic_adam.schedules import Growth
    from generic_adam.theorems.verdicts import Rate

    FloatArray = NDArray[np.float64]

DEFAULT_PROBLEM: Final = Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8)
"""L = G = f(x_1) - f* = 1, d = 10 and epsilon = 1e-8: the bound's shape in T does not depend on it."""

LONGEST: Final = 10**7
"""The last t that a plot reaches in a few seconds; every term up to it is added."""

_POINTS: Final = 240
_BOUND_POINTS: Final = 24
_BLOCK: Final = 1 << 18


def draw_check(methods: Mapping[str, Method], steps: int = 10**6, problem: Problem | None = None) -> Figure:
    """Draw chi_t, the ratio of condition 4 and the bound against t.

    Args:
        methods: The methods by the label that the legend shows.
        steps: The last t.
        problem: Constants of the problem for the bound; `DEFAULT_PROBLEM` if None.

    Returns:
        The figure, not yet saved.

    Raises:
        SumError: the number of steps is not a whole number.
    """
    with from_extra("experiments"):
        from matplotlib.figure import Figure

    last = checked_horizon(steps, "the last t of the plot")
    problem = DEFAULT_PROBLEM if problem is None else problem
    with house_style():
        figure = Figure(figsize=(11.0, 3.9))
        panels = figure.subplots(1, 3)
        for index, (label, method) in enumerate(methods.items()):
            _draw_method(panels, label, method, PALETTE[index % len(PALETTE)], last, problem)
        titles = ("Condition 3", "Condition 4", "Theorem 1")
        axes_labels = (
            r"$\chi_t = \alpha_t / \sqrt{1 - \theta_t}$",
            r"$\sum_{t \leq T} \alpha_t \sqrt{1 - \theta_t} \,/\, (T \alpha_T)$",
            r"bound $B(T)$",
        )
        for axes, title, label, variable in zip(panels, titles, axes_labels, "tTT", strict=True):
            _keep_height(axes)
            axes.set(xscale="log", yscale="log", title=title, xlabel=f"${variable}$")
            axes.set_ylabel(label, fontsize=8.5)
        _legend(figure, panels[0])
    return figure


def draw_sequences(methods: Mapping[str, Method], steps: int) -> Figure:
    """Draw alpha_t and 1 - theta_t of several methods along a run: what a change means.

    Args:
        methods: The methods by the label that the legend shows.
        steps: The last t.
    """
    with from_extra("experiments"):
        from matplotlib.figure import Figure

    times = np.unique(np.linspace(1, steps, _POINTS).round().astype(np.int64)).astype(float)
    with house_style():
        figure = Figure(figsize=(9.0, 3.9))
        panels = figure.subplots(1, 2)
        for index, (label, method) in enumerate(methods.items()):
            style = {
                "color": PALETTE[index % len(PALETTE)],
                "ls": "-" if index == 0 else "--",
                "label": label,
            }
            panels[0].plot(times, method.alpha.at(times), **style)
            panels[1].plot(times, (1 - method.theta).at(times), **style)
        for axes, label in zip(panels, (r"$\alpha_t$", r"$1 - \theta_t$"), strict=True):
            axes.set(xlabel="$t$", ylabel=label)
        panels[1].set_yscale("log")
        _legend(figure, panels[0])
    return figure


def _draw_method(
    panels: Sequence[Axes], label: str, method: Method, colour: str, last: int, problem: Problem
) -> None:
    certificate = examine_method(method)
    legend = f"{label}: {certificate.verdict}"
    if certificate.rate is not None:
        legend += f", {rate_in_math(certificate.rate)}"

    times = logarithmic_times(last, _POINTS)
    panels[1].plot(times, running_ratio(method, times), color=colour)
    _asymptote(panels[1], times, ratio_growth(method), colour)

    horizons = logarithmic_times(last, _BOUND_POINTS)
    bounds = [bound(method, problem, int(steps)) for steps in horizons]
    values = np.array([one.expectation for one in bounds])
    if np.isfinite(values).any():
        panels[2].plot(
            horizons, np.where(np.isfinite(values), values, np.nan), color=colour, marker="o", ms=3
        )
        _order(panels[2], horizons, values[-1], certificate, colour)
    else:
        legend += f"; {bounds[-1].statement}"

    sizes = chi_of(method)
    panels[0].plot(times, sizes.at(times.astype(float)), color=colour, label=_shortened(legend))
    _asymptote(panels[0], times, sizes.growth, colour)


def logarithmic_times(last: int, points: int) -> NDArray[np.int64]:
    """Return at most `points` different whole times from 1 to `last`, evenly spread on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(1, last, points)).astype(np.int64))


def running_ratio(method: Method, times: NDArray[np.int64]) -> FloatArray:
    """Return the ratio of condition 4 at each of the increasing times, in one pass over t."""
    terms = weighted_steps(method)
    sums = np.empty(len(times))
    total, done = 0.0, 0
    for index, time in enumerate(times):
        while done < time:
            stop = min(done + _BLOCK, int(time))
            total += float(terms.values(done + 1, stop + 1).sum())
            done = stop
        sums[index] = total
    return sums / (times * np.array([method.alpha(int(t)) for t in times]))


def _asymptote(axes: Axes, times: NDArray[np.int64], growth: Growth | None, colour: str) -> None:
    """Draw c rho^t t^p (log t)^q (log log t)^w from the middle on, c in the middle of its enclosure."""
    if growth is None or growth.rho.sign_of_log != 0 or growth.sign <= 0:
        return
    late = times[times >= math.sqrt(times[-1])]
    shape = _shape(late, float(growth.power), float(growth.log), float(growth.loglog))
    axes.plot(late, math.sqrt(growth.low * growth.high) * shape, color=colour, ls="--", lw=1.1)


def _order(
    axes: Axes, horizons: NDArray[np.int64], end: float, certificate: PaperFinding, colour: str
) -> None:
    """Draw the order of the ratio through the bound's last value: the bound's constant has no closed form."""
    order = certificate.ratio_order
    if order is None or not math.isfinite(end):
        return
    late = horizons[horizons >= math.sqrt(horizons[-1])]
    shape = _shape(late, float(order.power), float(order.log), float(order.loglog))
    axes.plot(late, shape * end / shape[-1], color=colour, ls="--", lw=1.1)


def _shape(times: NDArray[np.int64], power: float, log: float, loglog: float) -> FloatArray:
    t = np.maximum(times.astype(float), 3.0)  # log log t is positive from 3 on
    return t**power * np.log(t) ** log * np.log(np.log(t)) ** loglog


def rate_in_math(rate: Rate) -> str:
    """Return a rate as matplotlib sets it: ``T^(-1/2) log T`` with a raised exponent."""
    text = re.sub(r"\^\(([^)]*)\)", r"^{\1}", str(rate))
    return f"${text.replace('log', chr(92) + 'log ').replace(' ', chr(92) + ',')}$"


def _keep_height(axes: Axes) -> None:
    """Give a panel whose curves are all one constant some room above and below."""
    drawn = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    values = np.concatenate(drawn) if drawn else np.array([])
    if len(values) and values.max() < 1.01 * values.min():
        axes.set_ylim(values[0] / 3, values[0] * 3)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(2, max(1, len(labels))))


def _shortened(text: str, width: int = 84) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"
