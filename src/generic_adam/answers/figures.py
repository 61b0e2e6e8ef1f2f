"""How every figure of the project looks, and how it reaches the disk.

One palette (Okabe and Ito's, told apart by people with any of the common colour-vision deficiencies), one
set of matplotlib settings, and one function that saves a figure twice: as SVG for pages and as PNG for
everything else. The same data gives the same bytes: identifiers in the SVG are salted with a constant and no
date is written.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generic_adam.extras import from_extra
from generic_adam.files import OutputError, atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERMILION: Final = "#D55E00"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
SKY: Final = "#56B4E9"
BLUE: Final = "#0072B2"
PURPLE: Final = "#CC79A7"
GREY: Final = "#5A5A5A"

PALETTE: Final[tuple[str, ...]] = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
"""Line colours in the order in which a figure without named methods uses them."""

# Constant theta (r = 0) is the warm end and AdaEMA's theta (r = 1) the cool end of one path of colours.
_PATH: Final[tuple[str, ...]] = (VERMILION, ORANGE, GREEN, SKY, BLUE)

# What would differ from one saving to the next is left out of the file.
_METADATA: Final[dict[str, dict[str, str | None]]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}

_SETTINGS: Final[dict[str, object]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#9A9A9A",
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": None,  # filled in by house_style, which may import matplotlib
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "figure.figsize": (6.4, 3.9),
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    "savefig.dpi": 160,
    "svg.fonttype": "path",
    "svg.hashsalt": "generic-adam",
    "xtick.color": "#4A4A4A",
    "xtick.labelsize": 9,
    "ytick.color": "#4A4A4A",
    "ytick.labelsize": 9,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Put the matplotlib settings of the project in force inside the ``with`` block only."""
    with from_extra("plots"):
        import matplotlib as mpl
        from matplotlib.rcsetup import cycler

    settings = _SETTINGS | {"axes.prop_cycle": cycler(color=list(PALETTE))}
    with mpl.rc_context(settings):  # pyright: ignore[reportArgumentType]
        yield


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure of so many inches, in the style of the project."""
    with from_extra("plots"):
        from matplotlib.figure import Figure

    with house_style():
        yield Figure(figsize=(width, height))


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of some axes below the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=max(1, min(columns, len(labels))))


def along_path(fraction: float) -> str:
    """Return the colour of a place between constant theta (0) and AdaEMA's (1), mixed linearly between five stops."""
    position = fraction * (len(_PATH) - 1)
    index = min(int(position), len(_PATH) - 2)
    left, right = (bytes.fromhex(stop[1:]) for stop in _PATH[index : index + 2])
    mixed = (round(a + (position - index) * (b - a)) for a, b in zip(left, right, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def save_figure(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Save a figure as ``stem.svg`` and ``stem.png``, each whole or not at all; a dot in the stem is kept."""
    stem = Path(stem)
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    return write_figure(figure, svg), write_figure(figure, png)


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure to one file, whole or not at all, in the format that the file's ending names.

    Raises:
        OutputError: the ending is not svg, png or pdf, or the file cannot be written.
    """
    path = check_figure_path(path)
    content = figure_bytes(figure, path.suffix[1:])
    with atomic_write(path, "wb") as stream:
        stream.write(content)
    return path


def check_figure_path(path: str | Path) -> Path:
    """Return the path if its ending names a format, before anything is drawn for it.

    Raises:
        OutputError: the ending is not svg, png or pdf.
    """
    path = Path(path)
    if path.suffix[1:] not in _METADATA:
        endings = ", ".join(f".{ending}" for ending in _METADATA)
        raise OutputError(f"cannot write {path}: a figure's file ends in one of {endings}")
    return path


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """Return a figure in the format svg, png or pdf; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    with house_style():  # the salt and the resolution are read at save time
        figure.savefig(buffer, format=ending, metadata=_METADATA[ending])
    return buffer.getvalue()
