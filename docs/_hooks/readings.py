"""Lists of the optimizers and schedulers that are read, from the tables of the adapters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from method_pages import row

from generic_adam.adapters.schedulers import FACTORS, RATES
from generic_adam.adapters.updates import NOT_READ, UPDATES


def by_package(names: Iterable[str]) -> str:
    """One line a package with its names."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        package, _, last = name.partition(".")
        found[package].append(f"`{last}`")
    return "\n".join([row("package", "names"), row("---", "---"), *(row(one, ", ".join(found[one])) for one in found)])


def not_read() -> str:
    """Return a box with one line for each optimizer that is another algorithm, with the reason."""
    lines = (f"    - `{name}`: {reason.replace('|', chr(92) + '|')}" for name, reason in NOT_READ.items())
    return "\n".join(['??? note "Other algorithms, which are not read"', "", *lines])


GENERATORS: dict[str, Callable[[], str]] = {
    "optimizers-read": lambda: by_package(UPDATES),
    "optimizers-not-read": not_read,
    "schedulers-read": lambda: by_package({**FACTORS, **RATES}),
}
