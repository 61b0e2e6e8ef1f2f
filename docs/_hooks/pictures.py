"""Figures of the page "The theorem in pictures", drawn from the library at every build, and dark variants."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.figure import Figure

import generic_adam as ga
from generic_adam.answers.figures import (
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    along_path,
    figure_bytes,
    house_style,
)
from generic_adam.answers.plots import draw_check, logarithmic_times, running_ratio
from generic_adam.theorems.zou2019 import examine_method

LAST = 10**6
REPAIR = {
    "Adam, lr = 0.001, θ = 0.999": ga.methods.adam(lr=1e-3, bias_correction=False),
    "its smallest repair": ga.methods.certified_adam(lr=1e-3, bias_correction=False),
}


def memory() -> Figure:
    """How far back v_t looks: the weight that v_1000 gives to each past squared gradient."""
    figure = Figure(figsize=(5.2, 3.3))
    axes = figure.subplots()
    now = 1000
    t = np.arange(1, now + 1)
    cases = {"θ = 0.9": 0.9, "θ = 0.99": 0.99, r"$\theta_t = 1 - 1/\max(t, 2)$": "1 - 1/max(t, 2)"}
    for label, theta in cases.items():
        values = ga.Method(alpha=1, beta=0, theta=theta).theta.values(1, now + 1)
        later = np.concatenate([np.cumprod(values[::-1])[::-1][1:], [1.0]])
        axes.plot(t, (1 - values) * later, label=label)
    axes.set(yscale="log", ylim=(1e-6, 1), xlabel="step i", ylabel="weight of $g_i^2$ in $v_{1000}$")
    axes.legend()
    return figure


def chi() -> Figure:
    """Condition 3: what may rise, and what may not."""
    figure = Figure(figsize=(5.2, 3.3))
    axes = figure.subplots()
    cases = {
        "r = 2s: constant (holds)": ("1/sqrt(t)", "1 - 1/(t+1)", GREEN),
        "warm-up: rises, then stays (holds)": ("min(t/1000, 1)/sqrt(t)", "1 - 1/(t+1)", BLUE),
        "r < 2s: falls (holds)": ("1/t^0.7", "1 - 1/(t+1)", ORANGE),
        "r > 2s: keeps rising (fails)": ("1/t^0.25", "1 - 1/(t+1)", VERMILION),
    }
    times = logarithmic_times(LAST, 200)
    for label, (alpha, theta, colour) in cases.items():
        method = ga.Method(alpha=alpha, beta=0.9, theta=theta)
        third = examine_method(method).conditions[2]
        if (third.status == "holds") != ("holds" in label):
            raise ValueError(f"the picture's label {label!r} is wrong: {third.reason}")
        t = times.astype(float)
        axes.plot(t, method.alpha.at(t) / np.sqrt((1 - method.theta).at(t)), label=label, color=colour)
    axes.set(xscale="log", yscale="log", xlabel="$t$", ylabel=r"$\chi_t$", ylim=(2e-3, 400))
    axes.legend(loc="upper left")
    return figure


def path_of_r() -> Figure:
    """Condition 4 along the paper's path from Adam (r = 0) to AdaEMA (r = 1)."""
    figure = Figure(figsize=(5.2, 3.3))
    axes = figure.subplots()
    times = logarithmic_times(LAST, 200)
    for r in (0, 0.25, 0.5, 0.75, 1):
        method = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta=f"1 - {0.01 + 0.99 * r:.6g}/t^{r}")
        axes.plot(times, running_ratio(method, times), label=f"r = {r}", color=along_path(r))
    axes.set(xscale="log", yscale="log", xlabel="$T$", ylabel="ratio of condition 4")
    axes.legend()
    return figure


def repair(*, is_tall: bool = False) -> Figure:
    """Adam beside its smallest repair."""
    return draw_check(REPAIR, LAST, is_tall=is_tall)


PICTURES: dict[str, Callable[[], Figure]] = {
    "memory.svg": memory,
    "chi.svg": chi,
    "path-of-r.svg": path_of_r,
    "repair.svg": repair,
    "repair-tall.svg": partial(repair, is_tall=True),
}


def draw_all() -> dict[str, bytes]:
    """Every picture as SVG, by its file name."""
    drawn: dict[str, bytes] = {}
    for name, draw in PICTURES.items():
        with house_style():
            drawn[name] = figure_bytes(draw(), "svg")
    return drawn


GROUND, INK = "#1e2129", "#dddddd"  # of the dark pages


def by_night(svg: str) -> str:
    """Return the figure on a dark page: white is its ground, greys are turned, colours go a third of the way to white.

    Images inside the figure (a map, its scale) are data: they stay as they are.
    """

    def turned(colour: re.Match[str]) -> str:
        if colour[0] == "#ffffff":
            return GROUND
        red, green, blue = bytes.fromhex(colour[0][1:])
        if red == green == blue:
            return "#" + f"{round(0xDD - 0.7 * red):02x}" * 3
        return "#" + "".join(f"{round(one + (255 - one) * 0.35):02x}" for one in (red, green, blue))

    return re.sub(r"(?<=: )#[0-9a-f]{6}", turned, svg).replace("<svg ", f'<svg fill="{INK}" ', 1)
