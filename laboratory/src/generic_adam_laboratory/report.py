"""One self-contained HTML page from an experiment's directory: figures, claims, tables, how to run it again.

Everything is inside the file: figures as images, style as text, no script, nothing fetched, and a
Content-Security-Policy that keeps it so. Every text is escaped. Shown are the files that the manifest lists and
whose SHA-256 is the one it says; the others are named.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from generic_adam import __version__
from generic_adam.errors import DataError, told_as
from generic_adam.files import atomic_write
from generic_adam_laboratory.runs.records import damaged_files, read_claims, read_manifest

_TABLE_ROWS: Final = 60
# A verdict's colour repeats, and never replaces, its word.
_TONES: Final = {
    **dict.fromkeys(("certified", "supported", "holds"), "good"),
    **dict.fromkeys(("not certified", "contradicted", "fails", "changed"), "bad"),
    **dict.fromkeys(("unclear", "undecided"), "open"),
}
_STYLE: Final = """
:root { color-scheme: light dark; --soft: #5a6572; --rule: #dde2e7; --good: #00734f; --bad: #b23c00; --open: #6b5900; }
@media screen and (prefers-color-scheme: dark) {
  :root { --soft: #a3adb8; --rule: #3a424b; --good: #4fd1a5; --bad: #ff9a6b; --open: #e0c860; }
}
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; margin: 0 auto; max-width: 64rem; padding: 1.5rem 1.2rem; }
h2 { border-bottom: 1px solid var(--rule); break-after: avoid; font-size: 1.15rem; margin: 2rem 0 0.8rem; }
.soft, figcaption, th { color: var(--soft); }
pre { overflow-x: auto; white-space: pre-wrap; word-break: break-word; }
figure { break-inside: avoid; margin: 0 0 1.2rem; overflow-x: auto; text-align: center; }
figure img { background: #fff; height: auto; max-width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.86rem; width: 100%; }
th, td { border-bottom: 1px solid var(--rule); padding: 0.35rem 1rem 0.35rem 0; text-align: left; vertical-align: top; }
.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.badge { border: 1px solid; border-radius: 1rem; font-size: 0.78rem; font-weight: 700; padding: 0 0.55rem; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.open { color: var(--open); }
@media screen and (max-width: 44rem) {
  figure img { max-width: none; width: 46rem; }
  table { min-width: 40rem; }
}
"""


@dataclass(frozen=True)
class Table:
    """A small table of text, as many cells in a row as columns; those named in `right` are set flush right."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()


def read_table(path: Path) -> Table:
    """Return the first table of a Markdown file; an empty one where there is none."""
    with told_as(DataError, f"cannot read {path}:"):
        text = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.lstrip().startswith("|")]
    # A bar in a cell has a backslash before it.
    cells = [
        tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|")))
        for line in lines[: _TABLE_ROWS + 2]
    ]
    title = _title(path.stem)
    if len(cells) < 2:
        return Table(title, (), ())
    header, rules, *rows = cells
    aligned = zip(header, rules, strict=False)
    right = [name for name, rule in aligned if rule.endswith(":") and not rule.startswith(":")]
    even = [(*row, *("",) * len(header))[: len(header)] for row in rows]  # rows may be ragged
    return Table(title, header, even, right)


def write_report(directory: str | Path, out: str | Path | None = None) -> tuple[Path, list[str]]:
    """Write the page of an output directory.

    Args:
        directory: where an experiment left its results.
        out: the page's file; `report.html` in the directory if None.

    Returns:
        The page's path, and the files that are missing or not what the run wrote, by the manifest's SHA-256.

    Raises:
        DataError: the directory cannot be reported on.
        OutputError: the page cannot be written.
    """
    folder = Path(directory)
    if not folder.is_dir():
        reason = "it is a file, expected a directory" if folder.exists() else "no such directory"
        raise DataError(f"cannot report on {folder}: {reason}")
    if (manifest := read_manifest(folder)) is None:
        raise DataError(f"nothing to report in {folder}: expected the manifest.json that an experiment writes")
    with told_as(DataError, f"cannot report on {folder}, whose manifest.json is not an experiment's:"):
        changed = damaged_files(folder, manifest)
        page = _page(folder, manifest, changed)
    path = folder / "report.html" if out is None else Path(out)
    with atomic_write(path, "wb") as stream:
        # A lone surrogate, from a name that is not UTF-8 or from JSON, becomes a question mark.
        stream.write(page.encode("utf-8", "replace"))
    return path, changed


def _page(folder: Path, manifest: dict[str, Any], changed: Sequence[str]) -> str:
    files = manifest.get("files")
    whole = [folder / name for name in sorted(files) if name not in changed] if isinstance(files, dict) else []
    figures = [one for one in whole if one.suffix == ".svg"]
    tables = [read_table(one) for one in whole if one.suffix == ".md" and one.name != "claims.md"]
    if folder / "claims.json" in whole:
        rows = [astuple(one) for one in read_claims(folder)]
        tables.insert(0, Table("Claims", ("claim", "source", "verdict", "evidence"), rows))
    settings, versions = manifest.get("settings", {}), manifest.get("versions", {})
    command = _element("pre", manifest.get("command", ""))
    title = settings.get("title") or _title(folder.resolve().name)
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    warning = "missing, or its SHA-256 is not the manifest's"
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"{_element('title', title)}<style>{_STYLE}</style></head><body>",
            f"{_element('h1', title)}{command}{_element('p', _facts(manifest), 'soft')}",
            *(f"<p>{_cell('changed')} {escape(name)}: {warning}</p>" for name in changed),
            *map(_figure, figures),
            *(_element("h2", one.title) + _grid(one) for one in tables if one.rows),
            f"<h2>Run it again</h2>{command}{_element('p', told, 'soft')}<details><summary>Settings</summary>",
            _element("pre", json.dumps(settings, indent=2, ensure_ascii=False)),
            f"</details><p>generic-adam {__version__}</p></body></html>",
        ]
    )


def _title(name: str) -> str:
    return name.replace("-", " ").replace("_", " ").capitalize()


def _element(tag: str, text: object, kind: str = "") -> str:
    return f'<{tag} class="{kind}">{escape(str(text))}</{tag}>' if kind else f"<{tag}>{escape(str(text))}</{tag}>"


def _figure(path: Path) -> str:
    # An SVG that is an image runs no script and fetches nothing.
    address = f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"
    return f'<figure><img alt="{escape(path.name)}" src="{address}">{_element("figcaption", path.name)}</figure>'


def _cell(text: str) -> str:
    return _element("span", text, f"badge {_TONES[text]}") if text in _TONES else escape(text)


def _grid(table: Table) -> str:
    kinds = [' class="number"' if name in table.right else "" for name in table.header]

    def line(tag: str, cells: Sequence[str]) -> str:
        joined = (f"<{tag}{kind}>{_cell(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(joined)}</tr>"

    rows = "".join(line("td", row) for row in table.rows)
    return f'<div class="scroll"><table><thead>{line("th", table.header)}</thead><tbody>{rows}</tbody></table></div>'


def _facts(manifest: dict[str, Any]) -> str:
    """When it ended, how long it took, and on what; seconds as people say them."""
    machine, seconds = manifest.get("machine", {}), float(manifest.get("seconds", 0))
    hours, minutes = divmod(round(seconds / 60), 60)
    long = f"{hours} h {minutes} min" if hours else f"{minutes} minutes"
    finished = manifest.get("finished", "").replace("T", " ").replace("+00:00", " UTC")
    facts = (
        finished and f"finished {finished}",
        (f"{round(seconds, 1):g} seconds" if seconds < 120 else long) if seconds else "",
        machine.get("processor"),
        f"{machine['cores']} cores" if machine.get("cores") else "",
    )
    return " · ".join(filter(None, facts))
