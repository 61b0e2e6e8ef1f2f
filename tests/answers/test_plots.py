"""The curves are the library's or the file's numbers, and the dashed ones their proven growth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import generic_adam as ga
from generic_adam.answers.figures import figure_bytes, write_figure
from generic_adam.answers.plots import (
    DEFAULT_PROBLEM,
    draw_check,
    logarithmic_times,
    running_ratio,
)
from generic_adam.files import OutputError
from generic_adam.schedules.sums import SumError
from generic_adam.theorems.decide import ratio
from generic_adam.theorems.zou2019 import bound as paper_bound

POWER = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
CALLABLE = ga.Method(alpha=lambda t: 0.5 / t**0.5, beta=0.9, theta=0.99)
WEIGHTED = ga.Method.from_weights(alpha="1/sqrt(t)", beta=0.5, weights="t^0.5")


@pytest.mark.parametrize("method", [POWER, CALLABLE, WEIGHTED], ids=["power", "callable", "weights"])
def test_the_running_ratio_is_the_ratio_at_every_time(method: ga.Method) -> None:
    times = logarithmic_times(30000, 12)
    expected = [ratio(method, int(t)) for t in times]
    np.testing.assert_allclose(running_ratio(method, times), expected, rtol=1e-10)


def test_the_curves_are_chi_the_ratio_and_the_bound() -> None:
    figure = draw_check({"mine": POWER}, steps=10000)
    chi, fourth, theorem = figure.axes
    curve, asymptote = chi.get_lines()
    np.testing.assert_allclose(curve.get_ydata()[-1], 0.5)  # alpha_t / sqrt(1 - theta_t) = 0.5 from t = 2 on
    np.testing.assert_allclose(asymptote.get_ydata(), 0.5)

    curve, asymptote = fourth.get_lines()
    assert curve.get_ydata()[-1] == pytest.approx(ratio(POWER, 10000), rel=1e-10)
    T = np.asarray(asymptote.get_xdata(), float)
    np.testing.assert_allclose(asymptote.get_ydata(), np.log(T) / np.sqrt(T))  # sum of 0.5/t over 0.5 sqrt(T)

    curve, asymptote = theorem.get_lines()
    assert curve.get_ydata()[-1] == paper_bound(POWER, DEFAULT_PROBLEM, 10000).expectation
    assert asymptote.get_ydata()[-1] == pytest.approx(curve.get_ydata()[-1])


def test_what_has_no_bound_or_no_known_growth_says_so_and_draws_none() -> None:
    no_first = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/t")
    figure = draw_check({"theta_1 = 0": no_first, "a function": CALLABLE}, steps=1000)
    chi, fourth, theorem = figure.axes
    assert len(theorem.get_lines()) == 1  # the callable's, without an asymptote
    assert len(chi.get_lines()) == len(fourth.get_lines()) == 3
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "not certified; no bound: (R2)" in legend[0]
    assert "undecided" in legend[1]


def test_the_same_methods_give_the_same_file(tmp_path: Path) -> None:
    first, second = (figure_bytes(draw_check({"mine": POWER}, steps=1000), "svg") for _ in range(2))
    assert first == second
    written = write_figure(draw_check({"mine": POWER}, steps=1000), tmp_path / "check.svg")
    assert written.read_bytes() == first


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SumError, match="the last t of the plot: expected a whole number"):
        draw_check({"mine": POWER}, steps=0)
    with pytest.raises(OutputError, match=r"check\.bmp: a figure's file ends in one of \.svg, \.png, \.pdf"):
        write_figure(draw_check({"mine": POWER}, steps=100), tmp_path / "check.bmp")
    assert list(tmp_path.iterdir()) == []
