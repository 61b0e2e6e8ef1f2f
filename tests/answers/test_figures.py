"""The palette can be told apart, and a figure saves to the same bytes every time."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from generic_adam.answers.figures import PALETTE, along_path, house_style, save_figure

if TYPE_CHECKING:
    from pathlib import Path

# Machado, Oliveira and Fernandes 2009: what a person without one kind of cone sees, in linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def lab(colour: str, seen_through: np.ndarray) -> np.ndarray:
    """CIELAB coordinates of a colour as seen with a colour-vision deficiency."""
    rgb = np.frombuffer(bytes.fromhex(colour[1:]), np.uint8) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(seen_through @ linear, 0, 1)
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = to_xyz @ linear / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_palette_colours_differ_under_every_deficiency(deficiency: str) -> None:
    matrix = DEFICIENCIES[deficiency]
    distances = {pair: np.linalg.norm(lab(pair[0], matrix) - lab(pair[1], matrix)) for pair in combinations(PALETTE, 2)}
    closest = min(distances, key=distances.__getitem__)
    assert distances[closest] > 9, (closest, distances[closest])  # 2.3 is the just noticeable difference


def test_the_stops_of_the_path_differ() -> None:
    assert len({along_path(r) for r in (0, 0.25, 0.5, 0.75, 1)}) == 5
    assert {along_path(r) for r in (0, 0.25, 0.5, 0.75, 1)} <= set(PALETTE)


def test_a_colour_between_two_stops_is_their_mixture() -> None:
    low, middle, high = (
        np.frombuffer(bytes.fromhex(along_path(r)[1:]), np.uint8).astype(int) for r in (0.5, 0.625, 0.75)
    )
    np.testing.assert_allclose(middle, (low + high) / 2, atol=0.5)


def drawn() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2, 3], [3, 1, 2], label="a line")
    axes.legend()
    return figure


def test_house_style_ends_with_its_block() -> None:
    before = dict(mpl.rcParams)
    with house_style():
        assert mpl.rcParams["svg.hashsalt"] == "generic-adam"
    assert dict(mpl.rcParams) == before


def test_saving_twice_gives_the_same_bytes_and_no_left_overs(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with house_style():
            save_figure(drawn(), tmp_path / f"{name}.r0.25")
    for ending in ("svg", "png"):
        first, second = (tmp_path / f"{name}.r0.25.{ending}" for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
    assert len(list(tmp_path.iterdir())) == 4
    assert b"<dc:date>" not in (tmp_path / "first.r0.25.svg").read_bytes()
