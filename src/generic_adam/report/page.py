"""One self-contained HTML page from an output directory: figures, claims, certificates, how to run it again.

Everything is inside the file: figures as data, style as text, no script, nothing fetched. It reads on a
screen, light or dark, and on paper.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from generic_adam import __version__
from generic_adam.experiments.records import atomic_write
from generic_adam.report.contents import REPORT_NAME, Contents, Table, read_contents
from generic_adam.report.style import figure_bytes
from generic_adam.report.watch import draw_watch

_TONES: Final = {
    "certified": "good",
    "supported": "good",
    "holds": "good",
    "not certified": "bad",
    "contradicted": "bad",
    "fails": "bad",
}
_TYPES: Final = {".svg": "image/svg+xml", ".png": "image/png"}


def write_report(directory: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of an output directory.

    Args:
        directory: what an experiment, a check or a watched run left behind.
        out: the page's file; `report.html` in the directory if None.

    Returns:
        The page's path.

    Raises:
        ReportError: the directory cannot be reported on.
        OutputError: the page cannot be written.
    """
    contents = read_contents(directory)
    page = render(contents)
    path = contents.directory / REPORT_NAME if out is None else Path(out)
    with atomic_write(path) as stream:
        stream.write(page)
    return path


def render(contents: Contents) -> str:
    """Return the page as HTML."""
    title = _title(contents)
    style = resources.files("generic_adam.report").joinpath("page.css").read_text(encoding="utf-8")
    sections = (
        _figures(contents),
        _claims(contents),
        *map(_table, contents.tables),
        _certificates(contents.certificates),
        _bounds(contents.bounds),
        _reproduce(contents.manifest),
        _files(contents),
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{style}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>{_headline(contents.manifest)}</header>",
            *filter(None, sections),
            f"<footer>generic-adam {escape(__version__)}</footer></body></html>",
            "",
        ]
    )


def _title(contents: Contents) -> str:
    """The experiment's own title, or the directory's name."""
    given = _part(contents.manifest, "settings").get("title")
    if isinstance(given, str):
        return given
    return contents.directory.resolve().name.replace("-", " ").replace("_", " ").capitalize()


def _part(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table inside the manifest; an empty one where a foreign manifest has something else."""
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _headline(manifest: Mapping[str, Any]) -> str:
    machine, seconds = _part(manifest, "machine"), manifest.get("seconds")
    finished = str(manifest.get("finished", "")).replace("T", " ").replace("+00:00", " UTC")
    facts = [
        f"finished {finished}" if finished else "",
        _duration(seconds) if isinstance(seconds, int | float) else "",
        str(machine.get("processor") or ""),
        f"{machine['cores']} cores" if machine.get("cores") else "",
    ]
    command = f"<pre>{escape(str(manifest['command']))}</pre>" if "command" in manifest else ""
    return f'{command}<p class="soft">{escape(" · ".join(filter(None, facts)))}</p>'


def _duration(seconds: float) -> str:
    """Seconds as people say them: to the tenth below two minutes, in hours and minutes above."""
    if seconds < 120:
        return f"{round(seconds, 1):g} seconds"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} minutes"


def badge(word: str) -> str:
    """Return a verdict as a label whose colour repeats, and never replaces, its word."""
    return f'<span class="badge {_TONES.get(word, "open")}">{escape(word)}</span>'


def _figures(contents: Contents) -> str:
    shown = [(path.relative_to(contents.directory).as_posix(), _embedded(path)) for path in contents.figures]
    for path in contents.watched:
        drawn = base64.b64encode(figure_bytes(draw_watch(path), "svg")).decode()
        shown.append((path.relative_to(contents.directory).as_posix(), f"data:image/svg+xml;base64,{drawn}"))
    if not shown:
        return ""
    parts = [
        f'<figure><img alt="{escape(name)}" src="{data}"><figcaption>{escape(name)}</figcaption></figure>'
        for name, data in shown
    ]
    return "<section><h2>Figures</h2>" + "".join(parts) + "</section>"


def _embedded(path: Path) -> str:
    return f"data:{_TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _claims(contents: Contents) -> str:
    if not contents.claims:
        return ""
    rows = [
        (escape(c.sentence), escape(c.source), badge(str(c.verdict)), escape(c.evidence))
        for c in contents.claims
    ]
    return (
        "<section><h2>Claims</h2>"
        + _html_table(("claim", "source", "verdict", "evidence"), rows)
        + "</section>"
    )


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    rows = [[badge(cell) if cell in _TONES else escape(cell) for cell in row] for row in table.rows]
    return f"<section><h2>{escape(table.title)}</h2>{_html_table(table.header, rows, table.right)}</section>"


def _certificates(certificates: Mapping[str, Mapping[str, Any]]) -> str:
    if not certificates:
        return ""
    rows = [
        (
            escape(label),
            badge(str(data["verdict"])),
            f'<code class="whole">{escape(str(data.get("rate") or "–"))}</code>',
            *(f"<code>{escape(str(data['method'][name]))}</code>" for name in ("alpha", "beta", "theta")),
        )
        for label, data in certificates.items()
    ]
    table = _html_table(("method", "verdict", "rate", "α_t", "β_t", "θ_t"), rows)
    # Few are shown with their reasons at once; of many, those that are not certified.
    few = len(certificates) <= 4
    parts = [
        _reasons(label, data, is_open=few or data["verdict"] != "certified")
        for label, data in certificates.items()
    ]
    return f"<section><h2>Certificates</h2>{table}<h3>Reasons</h3>{''.join(parts)}</section>"


def _reasons(label: str, data: Mapping[str, Any], *, is_open: bool) -> str:
    conditions = "".join(
        f"<li>{badge(str(c['status']))} condition {c['number']}: {escape(str(c['reason']))}</li>"
        for c in data["conditions"]
    )
    return (
        f'<details class="certificate"{" open" if is_open else ""}>'
        f"<summary>{escape(label)} {badge(str(data['verdict']))}</summary><ul>{conditions}</ul></details>"
    )


def _bounds(bounds: Mapping[str, Mapping[str, Any]]) -> str:
    parts = []
    for name, data in bounds.items():
        numbers = {
            "T": data["steps"],
            "B(T)": data["expectation"],
            "B(T)/δ": data.get("value"),
            "δ": data.get("delta"),
        }
        numbers |= data["constants"] or {}
        rows = [(escape(key), _number(value)) for key, value in numbers.items()]
        statement = escape(str(data.get("statement", "")))
        parts.append(f"<h3>{escape(name)}</h3><p>{statement}</p>{_html_table(('constant', 'value'), rows)}")
    return "<section><h2>Bounds</h2>" + "".join(parts) + "</section>" if parts else ""


def _reproduce(manifest: Mapping[str, Any]) -> str:
    if not manifest:
        return ""
    command = f"<pre>{escape(str(manifest.get('command', '')))}</pre>"
    versions = _part(manifest, "versions")
    listed = escape(", ".join(f"{name} {version}" for name, version in versions.items()))
    settings = escape(json.dumps(manifest.get("settings", {}), indent=2, ensure_ascii=False))
    return (
        f'<section><h2>Run it again</h2>{command}<p class="soft">{listed}</p>'
        f"<details><summary>Settings</summary><pre>{settings}</pre></details></section>"
    )


def _files(contents: Contents) -> str:
    """List the directory's own files one by one, and each folder below it as one line."""
    sizes: dict[str, list[int]] = {}
    for path in contents.files:
        first, *deeper = path.relative_to(contents.directory).parts
        sizes.setdefault(f"{first}/" if deeper else first, []).append(path.stat().st_size)
    rows = [
        (f"<code>{escape(name)}</code>", f"{len(all_sizes):,}", f"{sum(all_sizes):,}")
        for name, all_sizes in sizes.items()
    ]
    return "<section><h2>Files</h2>" + _html_table(("name", "files", "bytes"), rows) + "</section>"


def _html_table(header: Iterable[str], rows: Iterable[Iterable[str]], right: Sequence[bool] = ()) -> str:
    """Return a table; its cells are HTML already. A column named in `right` or of numbers is flush right."""
    body = [tuple(row) for row in rows]
    columns = tuple(header)
    numeric = [all(_looks_numeric(row[i]) for row in body if i < len(row)) for i in range(len(columns))]
    flush = [flag or asked for flag, asked in zip_longest(numeric, right[: len(columns)], fillvalue=False)]
    kinds = [' class="number"' if flag else "" for flag in flush]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, columns, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=False)) + "</tr>"
        for row in body
    ]
    body_html = "".join(lines)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body_html}</tbody></table></div>'
    )


def _looks_numeric(cell: str) -> bool:
    try:
        float(cell.removesuffix("%").replace(",", "").replace("−", "-"))
    except ValueError:
        return False
    return True


def _number(value: Any) -> str:
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
