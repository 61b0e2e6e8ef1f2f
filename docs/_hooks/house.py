"""The picture of how the package is built: rooms, and arrows along which data and imports go."""

from __future__ import annotations

from collections.abc import Callable

WIDTH, HEIGHT = 940, 330
BOX = (132, 58)
# name: (left, top, what it holds, kind)
ROOMS: dict[str, tuple[int, int, str, str]] = {
    "schedules": (10, 130, "a sequence, its growth", "core"),
    "methods": (174, 130, "triples (α, β, θ)", "core"),
    "theory": (338, 30, "verdict, rate, bound", "core"),
    "reference": (338, 136, "the paper, in float64", "core"),
    "torch · optax": (338, 242, "the optimizers", "extra"),
    "adapters": (502, 136, "reads what you run", "extra"),
    "experiments": (502, 242, "data, training, records", "extra"),
    "report": (666, 136, "figures and pages", "extra"),
    "cli": (798, 30, "the command", "extra"),
}
ARROWS: tuple[tuple[str, str], ...] = (
    ("schedules", "methods"),
    ("methods", "theory"),
    ("methods", "reference"),
    ("methods", "torch · optax"),
    ("torch · optax", "experiments"),
    ("torch · optax", "adapters"),
    ("theory", "report"),
    ("experiments", "report"),
    ("adapters", "cli"),
    ("theory", "cli"),
    ("report", "cli"),
)


def _curve(start: str, end: str) -> str:
    """An arrow from the right side of one room to the left side of the other, or between neighbours above."""
    left, top = ROOMS[start][0] + BOX[0], ROOMS[start][1] + BOX[1] / 2
    right, bottom = ROOMS[end][0] - 5, ROOMS[end][1] + BOX[1] / 2
    if right <= left:  # the room above: leave upwards
        left, top = ROOMS[start][0] + BOX[0] * 0.8, ROOMS[start][1]
        return f"M{left} {top} C{left} {top - 40} {right + 60} {bottom + 90} {right + 70} {bottom + BOX[1] / 2 + 5}"
    middle = (left + right) / 2
    return f"M{left} {top} C{middle} {top} {middle} {bottom} {right} {bottom}"


def picture() -> str:
    """The picture as inline SVG, on one line so that Markdown leaves it alone."""
    parts = [
        f'<svg class="house" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Rooms of the package and the arrows '
        f'between them: schedules, methods, then theory, reference and optimizers, then adapters, experiments, report, cli">',
        '<defs><marker id="house-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    parts += [f'<path class="arrow" d="{_curve(*ends)}" marker-end="url(#house-tip)"/>' for ends in ARROWS]
    for name, (left, top, holds, kind) in ROOMS.items():
        middle = left + BOX[0] / 2
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{BOX[0]}" height="{BOX[1]}" rx="7"/>'
            f'<text class="name" x="{middle}" y="{top + 25}">{name}</text>'
            f'<text class="holds" x="{middle}" y="{top + 44}">{holds}</text>'
        )
    parts.append('<text class="key" x="10" y="318">filled: NumPy alone · outlined: an extra</text></svg>')
    return "".join(parts)


GENERATORS: dict[str, Callable[[], str]] = {"house": picture}
