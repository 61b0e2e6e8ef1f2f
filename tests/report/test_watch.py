"""The figure of a watched run shows the file's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from generic_adam.errors import DataError
from generic_adam.report.contents import WATCH_COLUMNS
from generic_adam.report.watch import draw_watch

torch = pytest.importorskip("torch")


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    from generic_adam.torch.watch import Watch

    x, y = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizer = torch.optim.Adam([{"params": [x]}, {"params": [y], "lr": 0.3}], lr=0.1)
    with Watch(optimizer, every=5, csv=tmp_path / "watch.csv"):
        for _ in range(40):
            optimizer.zero_grad()
            (x.square().sum() + y.square().sum()).backward()
            optimizer.step()
    return tmp_path / "watch.csv"


def test_the_columns_are_those_that_a_watch_writes(watched: Path) -> None:
    header = watched.read_text(encoding="utf-8").splitlines()[0]
    assert set(header.split(",")) >= WATCH_COLUMNS


def test_each_group_is_a_line_with_the_files_numbers(watched: Path) -> None:
    records = np.genfromtxt(watched, delimiter=",", names=True)
    figure = draw_watch(watched)
    assert len(figure.axes) == 6
    chi = figure.axes[0].get_lines()
    assert len(chi) == 2
    for group, line in enumerate(chi):
        np.testing.assert_array_equal(line.get_ydata(), records["chi"][records["group"] == group])


def test_a_file_without_records_is_one_line(tmp_path: Path) -> None:
    empty = tmp_path / "watch.csv"
    empty.write_text("step,group,chi\n", encoding="utf-8")
    with pytest.raises(DataError, match="it holds no record"):
        draw_watch(empty)
    empty.write_text("step,group,chi\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="cannot read") as caught:
        draw_watch(empty)
    assert "\n" not in str(caught.value)
