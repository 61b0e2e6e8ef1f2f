"""Which public names the API pages leave out: the build stops if there is one."""

from __future__ import annotations

import importlib
import inspect
import zlib
from collections.abc import Iterator
from pathlib import Path

PUBLIC_PACKAGES = (
    "generic_adam",
    "generic_adam.schedules",
    "generic_adam.methods",
    "generic_adam.adapters",
    "generic_adam.torch",
    "generic_adam.optax",
    "generic_adam.verify",
)
# A package without names of its own is documented module by module; one of them stands for it.
STANDS_FOR = {
    "generic_adam.theorems": "generic_adam.theorems.certificate",
    "generic_adam.verify": "generic_adam.verify.front",  # it is called like its function
}


def undocumented(site: Path) -> list[str]:
    """Public names that are on no API page, or that have no docstring to show there."""
    shown = inventory(site)
    return [
        f"{package}.{name}"
        for package, name, value in public_names()
        if not shown & set(_places(package, name, value)) or not _is_explained(value)
    ]


def public_names() -> Iterator[tuple[str, str, object]]:
    """Every name that a public package exports, with its package and its value."""
    for package in PUBLIC_PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            yield package, name, getattr(module, name)


def inventory(site: Path) -> set[str]:
    """Return the names that the API pages document, from the inventory that mkdocstrings writes."""
    body = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines() if line}


def _places(package: str, name: str, value: object) -> Iterator[str]:
    yield f"{package}.{name}"
    if inspect.isclass(value) or inspect.isfunction(value):
        yield f"{value.__module__}.{value.__qualname__}"
    if inspect.ismodule(value):
        yield STANDS_FOR.get(value.__name__, value.__name__)


def _is_explained(value: object) -> bool:
    """Return if a class, function or module says what it is; others are shown only with their docstring."""
    explains_itself = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)
    return not explains_itself or bool((value.__doc__ or "").strip())
