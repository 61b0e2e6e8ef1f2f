"""The figure and the table of a study, from records made up here."""

from pathlib import Path

import pytest

from generic_adam.experiments.study_records import Curve
from generic_adam.experiments.training import EpochRecord
from generic_adam.report import training
from generic_adam.report.training import final_rows, final_table, plot_study


def curve(method, epsilon, seed, loss):
    records = tuple(EpochRecord(e, loss / e, 2 * loss / e, 1 - loss / (4 * e)) for e in (1, 2, 3))
    return Curve(method, epsilon, seed, records)


CURVES = [
    curve("r = 0", 1e-8, 0, 1.0),
    curve("r = 0", 1e-8, 1, 2.0),
    curve("RMSProp", None, 0, 0.5),
    curve("r = 0", 1e-4, 0, 3.0),
    curve("r = 0", 1e-4, 1, 3.0),
]


@pytest.fixture
def figure(monkeypatch, tmp_path):
    """What would be saved."""
    kept = []
    monkeypatch.setattr(training, "save_figure", lambda figure, stem: kept.append(figure) or (stem, stem))
    plot_study(CURVES, "a study", tmp_path / "figure")
    return kept[0]


def test_there_is_a_row_for_each_epsilon_and_a_panel_for_each_measure(figure):
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "training loss, $v_0 = 10^{-8}$",
        "test accuracy",
        "test loss",
        "training loss, $v_0 = 10^{-4}$",
        "test accuracy",
        "test loss",
    ]


def test_lines_are_means_over_seeds_and_bands_their_range(figure):
    panel = figure.axes[0]
    lines = {line.get_label(): list(line.get_ydata()) for line in panel.lines}
    assert lines == {"r = 0": [1.5, 0.75, 0.5], "RMSProp": [0.5, 0.25, pytest.approx(0.5 / 3)]}
    (band,) = panel.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(1 / 3)
    assert heights.max() == pytest.approx(2.0)


def test_a_method_that_forgets_epsilon_is_in_every_row(figure):
    assert [line.get_label() for line in figure.axes[3].lines] == ["r = 0", "RMSProp"]


def test_both_files_are_written(tmp_path):
    svg, png = plot_study(CURVES, "a study", tmp_path / "figure")
    assert (svg.name, png.name) == ("figure.svg", "figure.png")
    assert Path(svg).read_text().startswith("<?xml")
    assert Path(png).read_bytes().startswith(b"\x89PNG")


def test_the_table_gives_means_and_deviations_and_lists_a_shared_run_once():
    assert final_rows(CURVES) == [
        ("1e-08", "r = 0", "0.5000 ± 0.1667", "87.50% ± 4.17%", "1.0000 ± 0.3333"),
        ("any", "RMSProp", "0.1667", "95.83%", "0.3333"),
        ("0.0001", "r = 0", "1.0000 ± 0.0000", "75.00% ± 0.00%", "2.0000 ± 0.0000"),
    ]
    assert "| any | RMSProp | 0.1667 | 95.83% | 0.3333 |" in final_table(CURVES)


def test_curves_without_an_epsilon_share_one_row(monkeypatch, tmp_path):
    kept = []
    monkeypatch.setattr(training, "save_figure", lambda figure, stem: kept.append(figure) or (stem, stem))
    plot_study([curve("Adam", None, 0, 1.0), curve("certified Adam", None, 0, 2.0)], "costs", tmp_path / "x")
    assert [axes.get_title(loc="left") for axes in kept[0].axes] == [
        "training loss",
        "test accuracy",
        "test loss",
    ]
