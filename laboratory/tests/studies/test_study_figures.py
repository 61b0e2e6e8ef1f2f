"""The figures of a study, from records made up here."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from generic_adam_laboratory.studies import cost
from generic_adam_laboratory.studies import study_figures as training
from generic_adam_laboratory.studies.paper_studies import EXPERIMENTS
from generic_adam_laboratory.studies.study import Curve, Line
from generic_adam_laboratory.studies.study_figures import plot_study
from generic_adam_laboratory.training import EpochRecord, OptimizerSettings

LENET = replace(EXPERIMENTS["lenet"].study, epochs=3, seeds=3)


def curve(method, initial_v, seed, loss, r=None):
    records = tuple(EpochRecord(e, loss / e, 2 * loss / e, 1 - loss / (4 * e)) for e in (1, 2, 3))
    return Curve(method, None if r is None else Fraction(r), initial_v, seed, records)


CURVES = [
    *(curve("r = 0", 1e-8, seed, loss, 0) for seed, loss in enumerate((1.0, 2.0, 6.0))),
    *(curve("r = 1", None, seed, 0.5, 1) for seed in range(3)),
    *(curve("r = 0", 1e-4, seed, 3.0, 0) for seed in range(3)),
    *(curve("Adam, corrected", None, seed, 0.6) for seed in range(3)),
]


def drawn(monkeypatch, tmp_path, study, curves):
    """The figure that would be saved."""
    kept = []
    monkeypatch.setattr(training, "save_figure", lambda figure, stem: kept.append(figure) or (stem, stem))
    plot_study(study, curves, tmp_path / "figure")
    return kept[0]


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


@pytest.fixture
def figure(monkeypatch, tmp_path):
    return drawn(monkeypatch, tmp_path, LENET, CURVES)


def test_each_v0_has_the_papers_panels_beside_the_ratios_to_r_1(figure):
    own = ("training loss", "test accuracy", "test loss")
    ratios = (f"{name} ÷ that of r = 1" for name in ("training loss", "test error", "test loss"))
    pairs = list(zip(own, ratios, strict=True))
    assert titles(figure) == [
        title for power in (8, 4) for name, ratio in pairs for title in (f"{name}, $v_0 = 10^{{-{power}}}$", ratio)
    ]
    assert figure.get_suptitle() == "LeNet, MNIST, 3 epochs, 3 seeds"


def test_lines_are_medians_over_seeds_and_bands_their_range(figure):
    panel = figure.axes[0]
    lines = {line.get_label(): list(line.get_ydata()) for line in panel.lines}
    assert lines["r = 0"] == pytest.approx([2.0, 1.0, 2 / 3])
    heights = panel.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (pytest.approx(1 / 3), pytest.approx(6.0))


def test_ratios_are_to_the_run_of_the_same_seed(figure):
    lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[1].lines}
    assert lines["r = 0"] == pytest.approx([4.0] * 3)
    assert lines["r = 1"] == pytest.approx([1.0] * 3)


def test_r_0_and_the_corrected_adam_have_colours_of_their_own(figure):
    colours = {line.get_label(): line.get_color() for line in figure.axes[0].lines}
    assert len(set(colours.values())) == len(colours) == 3


def test_a_method_that_forgets_v0_is_in_every_row(figure):
    assert [line.get_label() for line in figure.axes[6].lines] == ["r = 0", "r = 1", "Adam, corrected"]


def test_without_r_1_there_is_no_ratio(monkeypatch, tmp_path):
    found = drawn(monkeypatch, tmp_path, LENET, CURVES[:3])
    names = [title.removesuffix(", $v_0 = 10^{-8}$") for title in titles(found)]
    assert names == ["training loss", "test accuracy", "test loss"]


def test_a_single_epoch_is_a_point_and_a_ring_stands_for_dashes(monkeypatch, tmp_path):
    curves = [replace(one, records=one.records[:1]) for one in CURVES if one.seed == 0 and one.initial_v != 1e-4]
    panel = drawn(monkeypatch, tmp_path, replace(LENET, epochs=1, seeds=1), curves).axes[0]
    fills = {line.get_label(): line.get_markerfacecolor() for line in panel.lines}
    assert (fills["r = 0"], fills["Adam, corrected"]) == (panel.lines[0].get_color(), "white")
    assert all(tick == round(tick) for tick in panel.get_xticks())


def test_both_files_are_written(tmp_path):
    svg, png = plot_study(LENET, CURVES, tmp_path / "figure")
    assert (svg.name, png.name) == ("figure.svg", "figure.png")
    assert Path(svg).read_text().startswith("<?xml")
    assert Path(png).read_bytes().startswith(b"\x89PNG")


def test_a_study_of_costs_shows_where_each_method_ends(monkeypatch, tmp_path):
    theirs = OptimizerSettings("torch-adamw", "0.001", "0.9", "0.999")
    lines = (Line("AdamW", theirs), Line("certified", replace(theirs, family="generic-adam")))
    study = replace(cost.EXPERIMENTS["gpt-cost"].study, epochs=3, lines=lines)
    curves = [curve(line.label, None, seed, 1.0 + seed) for line in lines for seed in range(3)]
    found = drawn(monkeypatch, tmp_path, study, curves)
    assert titles(found) == ["training loss", "validation loss", "at the end: □ training, ● validation loss"]
    ends = found.axes[2]
    assert [label.get_text() for label in ends.get_yticklabels()] == ["certified", "AdamW"]
    middles = sorted({round(float(line.get_xdata()[0]), 6) for line in ends.lines if line.get_marker() in "so"})
    assert middles == [pytest.approx(2 / 3, abs=1e-6), pytest.approx(4 / 3, abs=1e-6)], "medians of the seeds"


def test_a_sweep_is_drawn_against_v0(monkeypatch, tmp_path):
    study = replace(EXPERIMENTS["lenet-v0"].study, epochs=3)
    found = drawn(monkeypatch, tmp_path, study, [one for one in CURVES if one.r is not None])
    last = next(line for line in found.axes[1].lines if line.get_label() == "after epoch 3")
    assert list(last.get_xdata()) == [1e-8, 1e-4]
    assert list(last.get_ydata()) == pytest.approx([4.0, 6.0])
