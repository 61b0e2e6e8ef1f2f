"""Named cases that are still answered wrongly: each is taken off as soon as it no longer fails."""

import pytest

OPEN_CASES: dict[str, str] = {}


def still_open(name: str) -> list[pytest.MarkDecorator]:
    """The marks of a case: expected to fail while it is on the list, and noticed when it no longer does."""
    return [pytest.mark.xfail(strict=True, reason=OPEN_CASES[name])] if name in OPEN_CASES else []


def known(name: str):
    """The same as a decorator."""
    return still_open(name)[0] if name in OPEN_CASES else lambda test: test
