"""One self-contained HTML page from an experiment's directory: figures, claims, tables, how to run it again.

Everything is inside the file: figures as images, style as text, no script, nothing fetched, and a
Content-Security-Policy that keeps it so. The template escapes whatever it is given. The page reads on a
screen, light or dark, and on paper.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from generic_adam import __version__
from generic_adam.files import atomic_write
from generic_adam_laboratory.report.contents import REPORT_NAME, Contents, Table, read_contents

# A verdict's colour repeats, and never replaces, its word.
_TONES: Final = {
    "certified": "good",
    "supported": "good",
    "holds": "good",
    "not certified": "bad",
    "contradicted": "bad",
    "fails": "bad",
    "changed": "bad",
    "unclear": "open",
    "undecided": "open",
}
_TYPES: Final = {".svg": "image/svg+xml", ".png": "image/png"}


def write_report(directory: str | Path, out: str | Path | None = None) -> tuple[Path, Contents]:
    """Write the page of an output directory.

    Args:
        directory: what an experiment left behind.
        out: the page's file; `report.html` in the directory if None.

    Returns:
        The page's path and what was read for it.

    Raises:
        DataError: the directory cannot be reported on.
        OutputError: the page cannot be written.
    """
    contents = read_contents(directory)
    # A lone surrogate, from a name that is not UTF-8 or from JSON, becomes a question mark.
    page = render(contents).encode("utf-8", "replace")
    path = contents.directory / REPORT_NAME if out is None else Path(out)
    with atomic_write(path, "wb") as stream:
        stream.write(page)
    return path, contents


def render(contents: Contents) -> str:
    """Return the page as HTML."""
    from jinja2 import Environment, StrictUndefined, select_autoescape

    package = resources.files("generic_adam_laboratory.report")
    style = package.joinpath("page.css").read_text(encoding="utf-8")
    template = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True), undefined=StrictUndefined
    ).from_string(package.joinpath("page.html").read_text(encoding="utf-8"))
    manifest = {"command": "", "settings": {}, "versions": {}, **contents.manifest}
    return template.render(
        changed=contents.changed,
        facts=_facts(manifest),
        figures=_figures(contents),
        files=_files(contents),
        manifest=manifest,
        policy=_policy(style),
        settings=json.dumps(manifest["settings"], indent=2, ensure_ascii=False),
        style=style,
        tables=[table for table in (_claims(contents), *contents.tables) if table.rows],
        title=_title(contents),
        tones=_TONES,
        version=__version__,
        versions=", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
    )


def _policy(style: str) -> str:
    """Nothing may run or be fetched; images come from the page itself, and of style sheets ours alone."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _title(contents: Contents) -> str:
    """The experiment's own title, or the directory's name."""
    given = contents.manifest.get("settings", {}).get("title")
    if isinstance(given, str):
        return given
    return contents.directory.resolve().name.replace("-", " ").replace("_", " ").capitalize()


def _facts(manifest: Mapping[str, Any]) -> str:
    """When it ended, how long it took, and on what; seconds as people say them."""
    machine, seconds = manifest.get("machine", {}), manifest.get("seconds")
    facts: list[str] = []
    if manifest.get("finished"):
        facts.append(f"finished {manifest['finished'].replace('T', ' ').replace('+00:00', ' UTC')}")
    if seconds is not None:
        hours, minutes = divmod(round(seconds / 60), 60)
        long = f"{hours} h {minutes} min" if hours else f"{minutes} minutes"
        facts.append(f"{round(seconds, 1):g} seconds" if seconds < 120 else long)
    facts.append(machine.get("processor", ""))
    facts.append(f"{machine['cores']} cores" if machine.get("cores") else "")
    return " · ".join(filter(None, facts))


def _figures(contents: Contents) -> list[tuple[str, str]]:
    """Return figures as images: an SVG that is an image runs no script and fetches nothing."""
    pictures = {path: (content, _TYPES[path.suffix]) for path, content in contents.figures.items()}
    return [
        (path.relative_to(contents.directory).as_posix(), f"data:{kind};base64,{base64.b64encode(content).decode()}")
        for path, (content, kind) in pictures.items()
    ]


def _claims(contents: Contents) -> Table:
    rows = [(one.sentence, one.source, str(one.verdict), one.evidence) for one in contents.claims]
    return Table("Claims", ("claim", "source", "verdict", "evidence"), rows)


def _files(contents: Contents) -> Table:
    """List the directory's own files one by one, and each folder below it as one line."""
    found: dict[tuple[bool, str], list[int]] = {}
    for path, size in contents.files.items():
        first, *deeper = path.relative_to(contents.directory).parts
        found.setdefault((size is None, f"{first}/" if deeper else first), []).append(size or 0)
    rows = [
        (name, f"{len(sizes):,}", "symbolic link, not followed" if is_link else f"{sum(sizes):,}")
        for (is_link, name), sizes in sorted(found.items(), key=lambda item: item[0][0])
    ]
    return Table("Files", ("name", "files", "bytes"), rows, ("files", "bytes"))
