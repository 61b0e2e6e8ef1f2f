"""The picture of how the package is built: rooms, and arrows along which data and imports go."""

from __future__ import annotations

WIDTH, HEIGHT = 930, 382
# name: (left, top, width, height, what it holds, kind)
ROOMS: dict[str, tuple[int, int, int, int, str, str]] = {
    "schedules": (8, 155, 130, 58, "a sequence, its growth", "core"),
    "methods": (164, 155, 126, 58, "Method, Algorithm", "core"),
    "theorems": (328, 20, 132, 58, "peers, one decider", "core"),
    "adapters": (328, 110, 132, 58, "reads what you run", "extra"),
    "torch · optax": (328, 200, 132, 58, "the optimizers", "extra"),
    "reference": (328, 290, 132, 58, "the paper, in float64", "core"),
    "certification": (498, 65, 132, 58, "a verdict on any of it", "core"),
    "watch · verify": (498, 200, 132, 58, "a run, its steps", "extra"),
    "answers": (666, 65, 116, 58, "words, figures", "extra"),
    "cli": (822, 20, 100, 148, "the command", "extra"),
    "laboratory": (666, 290, 256, 58, "experiments, a distribution of its own", "extra"),
}
ARROWS: tuple[tuple[str, str], ...] = (
    ("schedules", "methods"),
    ("methods", "theorems"),
    ("methods", "adapters"),
    ("methods", "torch · optax"),
    ("methods", "reference"),
    ("torch · optax", "adapters"),
    ("theorems", "certification"),
    ("adapters", "certification"),
    ("certification", "answers"),
    ("answers", "cli"),
    ("torch · optax", "watch · verify"),
    ("watch · verify", "answers"),
    ("torch · optax", "laboratory"),
    ("certification", "laboratory"),
)
_TIP = 5  # what the arrow's tip needs


def _curve(start: str, end: str) -> str:
    """An arrow from the right side of one room to the left side of another, or straight up in one column."""
    left, top, width, height, *_ = ROOMS[start]
    to_left, to_top, _, to_height, *_ = ROOMS[end]
    if to_left == left:
        middle = left + width / 2
        return f"M{middle} {top} L{middle} {to_top + to_height + _TIP}"
    x, y = left + width, top + height / 2
    to_y = y if to_top <= y <= to_top + to_height and to_height > height else to_top + to_height / 2
    middle = (x + to_left) / 2
    return f"M{x} {y} C{middle} {y} {middle} {to_y} {to_left - _TIP} {to_y}"


def picture() -> str:
    """The picture as inline SVG, on one line so that Markdown leaves it alone."""
    said = (
        "Rooms of the package and the arrows between them: schedules, methods, then theorems, adapters, "
        "optimizers, reference, then certification, watch and verify, answers and the command line; "
        "beside them the laboratory."
    )
    tip = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    parts = [
        f'<div class="house-frame"><svg class="house" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">',
        f'<defs><marker id="house-tip" {tip}><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    parts += [f'<path class="arrow" d="{_curve(*ends)}" marker-end="url(#house-tip)"/>' for ends in ARROWS]
    for name, (left, top, width, height, holds, kind) in ROOMS.items():
        across, down = left + width / 2, top + height / 2
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="7"/>'
            f'<text class="name" x="{across}" y="{down - 4}">{name}</text>'
            f'<text class="holds" x="{across}" y="{down + 15}">{holds}</text>'
        )
    key = "filled: NumPy and python-flint · outlined: an extra or the command"
    parts.append(f'<text class="key" x="8" y="374">{key}</text></svg></div>')
    return "".join(parts)
