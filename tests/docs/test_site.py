"""The built site: strict, whole, from no network, and with every public name documented."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import zlib
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[2]
PUBLIC_PACKAGES = (
    "generic_adam",
    "generic_adam.schedules",
    "generic_adam.methods",
    "generic_adam.adapters",
    "generic_adam.torch",
    "generic_adam.optax",
)


def test_the_strict_build_passes(site_build: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = site_build
    assert done.returncode == 0, done.stdout


def public_names() -> list[tuple[str, str, object]]:
    names = []
    for package in PUBLIC_PACKAGES:
        module = importlib.import_module(package)
        names += [(package, name, getattr(module, name)) for name in module.__all__]
    return names


def inventory(site: Path) -> set[str]:
    """The names that the API pages document, from the inventory that mkdocstrings writes."""
    content = (site / "objects.inv").read_bytes()
    body = content.split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines() if line}


def test_no_public_name_is_undocumented(site: Path) -> None:
    documented = inventory(site)
    missing = []
    for package, name, value in public_names():
        places = {f"{package}.{name}"}
        if inspect.isclass(value) or inspect.isfunction(value):
            places.add(f"{value.__module__}.{value.__qualname__}")
        if inspect.ismodule(value):
            places.add(value.__name__)
            if value.__name__ == "generic_adam.theory":  # documented module by module
                places.add("generic_adam.theory.certificate")
        if not places & documented:
            missing.append(f"{package}.{name}")
    assert missing == []


def test_every_public_class_and_function_has_a_docstring() -> None:
    bare = [
        f"{package}.{name}"
        for package, name, value in public_names()
        if (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value))
        and not (value.__doc__ or "").strip()
    ]
    assert bare == []


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "results" not in path.parts)


def test_nothing_on_a_page_comes_from_a_network(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(https?:|//)[^\"'\s>]*"
    )
    found = {
        path.name: hit[0] for path in pages(site) if (hit := loads.search(path.read_text(encoding="utf-8")))
    }
    assert found == {}
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_page_of_the_navigation_is_there_and_nothing_is_left_to_generate(site: Path) -> None:
    wanted = (
        "index does-my-adam-converge explorer/index theorem-in-pictures methods recipes reproduction errata "
        "performance api/index how-it-is-built"
    )
    for name in wanted.split():
        assert (site / f"{name}.html").is_file(), name
    for path in pages(site):
        assert "generate:" not in path.read_text(encoding="utf-8"), path


def test_the_methods_page_lists_the_catalogue_and_the_gallery_the_recipes(site: Path) -> None:
    from generic_adam.methods.recipes import RECIPES
    from generic_adam.methods.registry import ENTRIES

    methods, recipes = (
        (site / f"{name}.html").read_text(encoding="utf-8") for name in ("methods", "recipes")
    )
    assert all(f'id="{entry.name}"' in methods for entry in ENTRIES)
    assert all(f'id="{recipe.name}"' in recipes for recipe in RECIPES)
    assert methods.count('class="badge') == len(ENTRIES)


@pytest.mark.parametrize("name", ["theorem-in-pictures", "errata", "api/theory", "api/reference"])
def test_formulas_are_set(site: Path, browser: Chrome, name: str) -> None:
    browser.get((site / f"{name}.html").as_uri())
    counts = browser.execute_script(
        """
        const all = [...document.querySelectorAll(".arithmatex")];
        return {
          formulas: all.length,
          set: all.filter((node) => node.querySelector(".katex")).length,
          wrong: [...document.querySelectorAll(".katex-error")].map((node) => node.title),
          images: [...document.images].filter((image) => !image.complete || image.naturalWidth === 0).length,
        };
        """
    )
    assert counts["formulas"] > 0
    assert counts["set"] == counts["formulas"]
    assert counts["wrong"] == []
    assert counts["images"] == 0
