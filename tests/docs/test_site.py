"""The built site: strict, whole, from no network, and with every public name documented."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]


def test_the_strict_build_passes(site_build: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = site_build
    assert done.returncode == 0, done.stdout


def test_no_public_name_is_undocumented(site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_hooks"))
    from public_names import inventory, undocumented

    assert undocumented(site) == []
    # The check can fail: without one line of the inventory, that name is missing.
    lines = (f"{name} py:function 1 api.html#$ -" for name in inventory(site) if "certify" not in name)
    packed = zlib.compress("\n".join(lines).encode())
    (tmp_path / "objects.inv").write_bytes(b"#\n#\n#\n#\n" + packed)
    assert "generic_adam.certify" in undocumented(tmp_path)


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "results" not in path.parts)


def test_nothing_on_a_page_comes_from_a_network(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(https?:|//)[^\"'\s>]*")
    found = {path.name: hit[0] for path in pages(site) if (hit := loads.search(path.read_text(encoding="utf-8")))}
    assert found == {}
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_page_of_the_navigation_is_there_and_nothing_is_left_to_generate(site: Path) -> None:
    wanted = (
        "index faq glossary explorer/index theorem-in-pictures catalogue reproduction errata "
        "performance check ci inputs train api/index how-it-is-built"
    )
    for name in wanted.split():
        assert (site / f"{name}.html").is_file(), name
    for path in pages(site):
        assert "generate:" not in path.read_text(encoding="utf-8"), path


def test_the_catalogue_lists_the_methods_and_the_recipes(site: Path) -> None:
    from generic_adam.methods import entries
    from generic_adam.methods.recipes import recipe_names

    page = (site / "catalogue.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in [*(entry.name for entry in entries()), *recipe_names()])
    assert page.count('class="badge') == len(entries())


@pytest.mark.parametrize("name", ["theorem-in-pictures", "errata", "api/theorems", "api/reference"])
def test_formulas_are_set(site: Path, browser: Chrome, name: str) -> None:
    address = (site / f"{name}.html").as_uri()
    browser.get(address)
    # On a busy machine `get` has returned while the page before it was still there.
    arrived = "return location.href === arguments[0] && document.readyState === 'complete';"
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(arrived, address))
    counts = browser.execute_script(
        """
        const all = [...document.querySelectorAll(".arithmatex")];
        return {
          formulas: all.length,
          set: all.filter((node) => node.querySelector(".katex")).length,
          wrong: [...document.querySelectorAll(".katex-error")].map((node) => node.title),
          images: [...document.images].filter((one) => one.offsetParent && !one.naturalWidth).length,
        };
        """
    )
    assert counts["formulas"] > 0
    assert counts["set"] == counts["formulas"]
    assert counts["wrong"] == []
    assert counts["images"] == 0


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """Return the site over HTTP, on a port of its own."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("missing", ["file", "/gone.html", "/api/deep/gone.html"])
def test_a_page_that_is_not_there_is_styled_and_leads_back(
    site: Path, browser: Chrome, tmp_path: Path, missing: str
) -> None:
    class Host(SimpleHTTPRequestHandler):
        """As servers of static files are: they know 404.html, and the site is below a folder."""

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((site / "404.html").read_bytes() if self.command == "GET" else b"")

    (tmp_path / "project").symlink_to(site, target_is_directory=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/project"
        home = f"{address}/index.html" if missing != "file" else (site / "index.html").as_uri()
        browser.get((site / "404.html").as_uri() if missing == "file" else address + missing)
        WebDriverWait(browser, 30).until(
            lambda _: browser.find_element("css selector", "main a").get_property("href") == home
        )
        bar = browser.find_element("css selector", "header").value_of_css_property("background-color")
        server.shutdown()
    assert bar in ("rgba(11, 79, 121, 1)", "rgba(18, 34, 47, 1)")


@pytest.mark.parametrize("scheme", ["file", "http"])
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("weight decay", "decay.html"),
        ("watch a run", "watch.html"),
        ("warm-up", "theorem-in-pictures.html"),
        ("AMSGrad", "amsgrad.html"),
        ("eps", "eps_too_large.html"),
    ],
)
def test_the_search_finds_what_a_page_is_about(
    site: Path, served: str, browser: Chrome, scheme: str, words: str, page: str
) -> None:
    browser.get("about:blank")
    browser.get(f"{served}/index.html" if scheme == "http" else (site / "index.html").as_uri())
    browser.find_element("css selector", "input.md-search__input").send_keys(words)

    def addresses(_: Chrome) -> list[str]:
        links = browser.find_elements("css selector", ".md-search-result__link")
        return [link.get_attribute("href") or "" for link in links]

    found = WebDriverWait(browser, 30).until(addresses)
    assert any(page in address for address in found[:5]), found


def test_a_page_follows_the_system_from_light_to_dark_and_back(site: Path, browser: Chrome) -> None:
    shown = []
    for scheme in ("light", "dark", "light"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get((site / "index.html").as_uri())
        shown.append(browser.execute_script("return document.body.getAttribute('data-md-color-scheme')"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert shown == ["default", "slate", "default"]


def test_a_phone_shows_every_page_without_scrolling_sideways_and_links_large_figures(
    site: Path, browser: Chrome
) -> None:
    screen = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    wide, unlinked = {}, []
    try:
        for path in pages(site):
            name = path.relative_to(site).as_posix()
            browser.get(path.as_uri())
            wide[name] = browser.execute_script("return document.documentElement.scrollWidth")
            for figure in browser.find_elements("css selector", ".figure a:not([href*=by-night])"):
                image = figure.find_element("css selector", "img")
                wide[name] = max(wide[name], image.rect["width"])
                if image.get_attribute("class") != "whole" and "pictures/" not in str(image.get_attribute("src")):
                    unlinked += [] if "Open the large figure" in figure.text else [name]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {name: width for name, width in wide.items() if width > 390} == {}
    assert unlinked == []


def test_no_line_of_an_answer_ends_under_the_button_that_copies_it(site: Path, browser: Chrome) -> None:
    screen = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    rooms = """
        return [...document.querySelectorAll(".language-text pre")].map((one) => {
            const lines = document.createRange();
            lines.selectNodeContents(one.querySelector("code"));
            const ends = [...lines.getClientRects()].map((line) => line.right);
            return one.querySelector(".md-code__nav").getBoundingClientRect().left - Math.max(...ends);
        });
    """
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        browser.get((site / "errata.html").as_uri())
        WebDriverWait(browser, 60).until(lambda _: browser.find_elements("css selector", ".md-code__nav"))
        left = browser.execute_script(rooms)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(left) > 10
    assert min(left) >= 0


def test_formulas_and_signatures_fit_a_phone(site: Path, browser: Chrome) -> None:
    screen = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    theorems = [f"theorems/{path.stem}" for path in (site / "theorems").glob("*.html")]
    assert len(theorems) > 8
    wider = "[...document.querySelectorAll('div.arithmatex')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
    cut = wider.replace("div.arithmatex", ".doc-signature code") + ".map((one) => one.textContent)"
    try:
        api = ("certificates", "methods", "optax", "reference", "theorems", "torch")
        names = ("theorem-in-pictures", *theorems, *(f"api/{one}" for one in api))
        for name in names:
            browser.get((site / f"{name}.html").as_uri())
            assert browser.execute_script("return document.querySelectorAll('div.arithmatex').length") > 0
            # They are made smaller when their letters have been loaded.
            WebDriverWait(browser, 60).until(
                lambda _: browser.execute_script(f"return {wider}.length") == 0, f"too wide on {name}"
            )
            assert browser.execute_script(f"return {cut}") == [], name
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_phone_stacks_cells_below_one_another_each_with_its_heading_set(site: Path, browser: Chrome) -> None:
    screen = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    shown = """
        const labels = [...document.querySelectorAll("td > .heading")].filter((one) => one.offsetParent);
        return [labels.length, labels.filter((one) => one.querySelector(".katex")).length];
    """
    browser.get((site / "theorems/weighted.html").as_uri())
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script("return document.querySelector('td > .heading')"))
    assert browser.execute_script(shown) == [0, 0]  # a wide page has its headings above
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        labels, formulas = browser.execute_script(shown)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert labels >= formulas > 0


def test_a_page_shows_the_variant_of_a_figure_that_its_colours_ask_for(site: Path, browser: Chrome) -> None:
    shown = "[...document.querySelectorAll('.figure img')].filter((one) => one.offsetParent)"
    variants = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get((site / "reproduction-counterexample.html").as_uri())
        found = browser.execute_script(f"return {shown}.map((one) => [one.src, one.parentElement.href])")
        assert all(source == linked for source, linked in found)
        variants.append([source.rpartition("/")[2] for source, _ in found])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert variants == [
        ["counterexample.svg", "phase-map.svg"],
        ["counterexample-by-night.svg", "phase-map-by-night.svg"],
    ]


def test_a_line_ends_neither_before_nor_after_the_mark_beside_a_formula(site: Path, browser: Chrome) -> None:
    marks = """
        const texts = [...document.querySelectorAll("span.arithmatex:not(.heading *)")];
        const open = texts.filter((one) => /[(["]$/.test(one.previousSibling?.data ?? ""));
        const left = texts.filter((one) => /^[-).,;:]/.test(one.nextSibling?.data ?? ""));
        return [document.querySelectorAll(".beside").length, open.length + left.length];
    """
    browser.get((site / "theorems/weighted.html").as_uri())
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script("return document.querySelector('.beside')"))
    kept, loose = browser.execute_script(marks)
    assert (kept > 50, loose) == (True, 0)


def test_no_formula_is_left_between_dollars(site: Path) -> None:
    code = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
    left = [path.name for path in pages(site) if "$$" in code.sub("", path.read_text(encoding="utf-8"))]
    assert left == []
