"""Complete the Markdown files when the site is built.

- A line `<!-- generate: NAME -->` in a page is replaced with what the generator of that name returns, so that
  tables of methods, recipes and errata come from the library and cannot fall behind it; a line
  `<!-- members of PACKAGE: NAME, ... -->` with what these names are, in this order.
- `results/` (records of committed runs) and what comes from npm become part of the site.
- A public name that no API page shows stops the build.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import errata
import method_pages
import npm_packages
import pictures
import public_names
import readings
import results_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Modules of the theorems by their API page; one that is in neither list is on the page of theorems.
CERTIFICATES = ("certificate", "bounds", "advice", "worth", "constants", "horizon", "theorem", "decide")
SHARED = ("repairs", "sequences", "sweep")  # last on the page of theorems; the paper's is the first


def _documented(names: Iterable[str], package: str = "generic_adam.theorems") -> str:
    return "\n\n".join(f"::: {package}.{name}" for name in names)


def _modules() -> set[str]:
    return {path.stem for path in (ROOT / "src" / "generic_adam" / "theorems").glob("*.py")} - {"__init__"}


def _certificates() -> str:
    return _documented(name for name in CERTIFICATES if name in _modules())


def _theorems() -> str:
    rest = sorted(
        _modules() - {*CERTIFICATES, *SHARED}, key=lambda name: (name == "literature", name != "zou2019", name)
    )
    return _documented([*rest, *(name for name in SHARED if name in _modules())])


def _members(package: str, names: str) -> str:
    options = "{heading_level: 3, show_root_full_path: false, show_root_toc_entry: true}"
    return "\n\n".join(f"::: {package}.{name}\n    options: {options}" for name in re.findall(r"\w+", names))


GENERATORS: dict[str, Callable[[], str]] = {
    **method_pages.GENERATORS,
    **readings.GENERATORS,
    **results_pages.GENERATORS,
    "errata": errata.sections,
    "api-certificates": _certificates,
    "api-theorems": _theorems,
}
SHOWN_RESULTS = {".svg", ".png", ".json", ".csv", ".html"}
_IMAGE = re.compile(r'<img\b([^>]*?)\bsrc="([^"]+)\.svg"([^>]*)>')
_CODE = re.compile(r"<code>.*?</code>", re.DOTALL)
_TOGETHER = re.compile(r"<code\b.*?</code>|\d %|\([\d.]+%? to [\d.]+%?\)", re.DOTALL)  # but for code, not to be parted
_MEMBERS = re.compile(r"^<!-- members of ([\w.]+):([\w\s,]+) -->$", re.MULTILINE)
_MARKER = re.compile(r"^<!-- generate: ([a-z0-9-]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what comes from npm, the committed results and the figures drawn for this build."""
    for name, path in npm_packages.shipped_files().items():
        files.append(File.generated(config, f"assets/{name}", abs_src_path=os.fspath(path)))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in SHOWN_RESULTS:
            place = f"results/{path.relative_to(ROOT / 'results').as_posix()}"
            files.append(File.generated(config, place, abs_src_path=os.fspath(path)))
    for name, content in pictures.draw_all().items():
        files.append(File.generated(config, f"pictures/{name}", content=content))
    for figure in [one for one in files if one.src_uri.endswith(".svg") and "-dark" not in one.src_uri]:
        place = figure.src_uri.replace(".svg", "-by-night.svg")
        files.append(File.generated(config, place, content=pictures.by_night(figure.content_string)))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Stop a build that leaves a public name undocumented."""
    if missing := public_names.undocumented(Path(config.site_dir)):
        raise PluginError(f"public names without documentation: {', '.join(missing)}")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Give figures their dark variant and links, which a phone says below them; keep options and shares whole."""

    def figure(image: re.Match[str]) -> str:
        before, stem, after = image.groups()
        night = f'<img loading="lazy"{before}src="{stem}-by-night.svg"{after}>'
        larger = '<span class="larger">Open the large figure</span>'
        variants = {stem: image[0], f"{stem}-by-night": night}
        links = "".join(f'<a href="{name}.svg">{shown}{larger}</a>' for name, shown in variants.items())
        return f'<span class="figure">{links}</span>'

    def kept_whole(text: re.Match[str]) -> str:  # a browser would break "--steps" after its first hyphen
        return re.sub(r"-[-\w]{1,28}(?![-\w])|--\w", r'<span class="option">\g<0></span>', text[0])

    def together(text: re.Match[str]) -> str:
        return text[0] if text[0].startswith("<") else text[0].replace(" ", "\N{NO-BREAK SPACE}")

    code = _CODE.sub(lambda found: re.sub(r"(?<=>)[^<]+", kept_whole, found[0]), html)
    return _IMAGE.sub(figure, _TOGETHER.sub(together, code))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Fill in what is generated; a path `../results/`, right in the repository, is `results/` in the site."""

    def fill(marker: re.Match[str]) -> str:
        if marker[1] not in GENERATORS:
            known = ", ".join(sorted(GENERATORS))
            raise PluginError(f"{page.file.src_uri}: no generator {marker[1]!r}; there are {known}")
        return GENERATORS[marker[1]]()

    markdown = _MEMBERS.sub(lambda marker: _members(*marker.groups()), markdown)
    return _MARKER.sub(fill, markdown.replace("](../results/", "](results/"))
