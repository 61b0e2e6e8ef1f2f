"""Test what the build generates: each erratum's check, formulas of docstrings, the typesetter's checksum."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / "docs" / "_hooks"


@pytest.fixture(autouse=True)
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HOOKS))


def test_every_erratum_is_shown_by_its_check() -> None:
    from errata import ERRATA, output_of

    assert len(ERRATA) == 16
    outputs = [output_of(erratum) for erratum in ERRATA]
    assert all(outputs)


def test_a_check_that_no_longer_shows_its_erratum_stops_the_build() -> None:
    from errata import Erratum, output_of

    def wrong() -> None:
        print("what was found")
        assert 1 + 1 == 3

    with pytest.raises(PluginError, match="'somewhere' fails: what was found"):
        output_of(Erratum("somewhere", "a", "b", wrong))


def test_the_repair_that_is_drawn_is_adam_for_a_thousand_steps() -> None:
    from pictures import REPAIR

    adam, repaired = REPAIR.values()
    for name in ("alpha", "beta", "theta"):
        ours, theirs = (getattr(method, name).values(1, 1002) for method in (repaired, adam))
        assert (ours[:1000] == theirs[:1000]).all()
        assert (ours[1000] == theirs[1000]) == (name == "beta")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("the rate :math:`T^{-1/2}` holds", "the rate $T^{-1/2}$ holds"),
        ("see :func:`generic_adam.certify`", "see `generic_adam.certify`"),
        (".. math:: a = b\n\nnext", "\n$$\na = b\n$$\n\nnext"),
        (
            "  .. math::\n\n      a &= b \\\\\n      c &= d\n\n  next",
            "\n  $$\n  \\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n  $$\n\n  next",
        ),
    ],
)
def test_formulas_of_docstrings_become_what_katex_reads(written: str, shown: str) -> None:
    from docstring_math import as_markdown

    assert as_markdown(written) == shown


def test_a_page_that_a_docstring_names_is_a_link() -> None:
    from docstring_math import as_markdown

    assert as_markdown("on docs/theorems/decay.md.") == "on [theorems/decay](../theorems/decay.md)."


def package(folder: Path, content: bytes) -> Path:
    archive = folder / "package.tgz"
    with tarfile.open(archive, "w:gz") as stream:
        for name in ("package/dist/katex.min.js", "package/dist/contrib/other.js", "package/../../evil.js"):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            stream.addfile(member, io.BytesIO(content))
    return archive


def test_a_package_is_unpacked_only_if_its_checksum_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import npm_packages

    archive = package(tmp_path, b"var katex;")
    katex = npm_packages.PACKAGES[0]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(npm_packages, "_download", lambda *_: archive)
    with pytest.raises(PluginError, match=r"katex@.*checksum"):
        npm_packages.shipped_files()
    assert not any((tmp_path / "cache").rglob("*.js"))
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    monkeypatch.setattr(npm_packages, "PACKAGES", (replace(katex, integrity=digest),))
    assert list(npm_packages.shipped_files()) == ["katex/katex.min.js"]
    assert not list(tmp_path.rglob("evil.js"))


def test_without_npm_the_build_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import npm_packages

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(PluginError, match="npm was not found"):
        npm_packages.shipped_files()


def test_an_option_is_never_broken_after_its_hyphen() -> None:
    from build import on_page_content

    page = "<p><code>check --min-lr 3e-5 -h</code></p><pre><code><span>--steps</span></code></pre>"
    shown = on_page_content(page, None, None, None)  # type: ignore[arg-type]
    options = (f'<span class="option">{one}</span>' for one in ("--min-lr", "-5", "-h"))
    assert shown == page.replace("--min-lr 3e-5 -h", "{} 3e{} {}".format(*options)).replace(
        "<span>--steps", '<span><span class="option">--steps</span>'
    )


def test_an_option_too_long_for_a_line_is_broken_in_its_words() -> None:
    from build import on_page_content

    shown = on_page_content(f"<code>X=--{'xla_' * 10}</code>", None, None, None)  # type: ignore[arg-type]
    assert shown == f'<code>X=<span class="option">--x</span>{("xla_" * 10)[1:]}</code>'


def test_shares_and_ranges_are_kept_whole_outside_code() -> None:
    from build import on_page_content

    page = "<p>half: 50 % (0.4 to 0.6), 9% (8% to 10%)</p><code>7 % 4 (1 to 2)</code>"
    shown = on_page_content(page, None, None, None)  # type: ignore[arg-type]
    spaces = page.replace("50 %", "50~%").replace("0.4 to 0.6", "0.4~to~0.6").replace("8% to 10%", "8%~to~10%")
    assert shown == spaces.replace("~", "\N{NO-BREAK SPACE}")


def test_a_row_of_a_study_begins_with_its_method(tmp_path: Path) -> None:
    from results_pages import table_of

    written, shown = (
        "| v_0 | method | x |\n|---|---|---:|\n| 1 | r = 0 | 2 |",
        "| method | v_0 | x |\n|---|---|---:|\n| r = 0 | 1 | 2 |",
    )
    for text in (written, shown):
        (tmp_path / "outcomes.md").write_text(text, encoding="utf-8")
        assert table_of(tmp_path / "outcomes.md") == shown


def test_a_figure_by_night_has_a_dark_ground_light_ink_and_its_images() -> None:
    from pictures import GROUND, INK, by_night

    def luminance(colour: str) -> float:
        channels = [one / 255 for one in bytes.fromhex(colour[1:])]
        linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    ground, faint = luminance(GROUND), "#e4e4e4"  # the grid's grey
    figures = sorted((ROOT / "results").rglob("*.svg"))
    assert len(figures) > 10
    for path in figures:
        day = path.read_text(encoding="utf-8")
        night = by_night(day)
        before, after = (re.findall(r"(?<=: )#[0-9a-f]{6}", text) for text in (day, night))
        assert len(before) == len(after)
        assert re.findall(r"<image .*?/>", night, re.DOTALL) == re.findall(r"<image .*?/>", day, re.DOTALL)
        contrasts = {
            one: (luminance(other) + 0.05) / (ground + 0.05) for one, other in zip(before, after, strict=True)
        } | {"ink": (luminance(INK) + 0.05) / (ground + 0.05)}
        assert contrasts.pop("#ffffff") == 1
        assert 1.1 < contrasts.pop(faint, 1.2) < 2
        assert min(contrasts.values()) >= 3, (path.name, contrasts)


def test_a_field_that_is_read_is_shown_as_what_it_takes():
    import griffe
    from docstring_math import DocstringMath

    shown = griffe.load(
        "generic_adam.methods.algorithm",
        extensions=griffe.load_extensions(DocstringMath),
        resolve_aliases=False,
    )["Algorithm"].parameters
    told = {one.name: (str(one.annotation), one.default and str(one.default)) for one in shown}
    assert told["method"] == ("Method", None)
    assert told["eps"] == ("ScheduleLike", "0")
    assert told["initial_v"] == ("float", "1e-08")  # in the code PAPERS_INITIAL_V
    assert not any("Read" in text for pair in told.values() for text in pair if text)


def test_an_enumeration_says_what_its_members_stand_for():
    import griffe
    from docstring_math import DocstringMath

    theorem = griffe.load(
        "generic_adam.theorems.theorem", extensions=griffe.load_extensions(DocstringMath), resolve_aliases=False
    )
    assert "- `NOT_CERTIFIED`: not certified" in theorem["Verdict"].docstring.value.splitlines()
    assert theorem["STARTS_FROM_NOTHING"].value is None  # what a table of functions holds, its docstring says


def test_names_on_an_api_page_are_shown_in_the_order_of_the_page():
    from types import SimpleNamespace

    from build import on_page_markdown

    page = SimpleNamespace(file=SimpleNamespace(src_uri="api/x.md"))
    shown = on_page_markdown("# X\n\n<!-- members of a.b: second,\nfirst -->\n", page, None, None)  # type: ignore[arg-type]
    assert [line for line in shown.splitlines() if line.startswith(":::")] == ["::: a.b.second", "::: a.b.first"]
