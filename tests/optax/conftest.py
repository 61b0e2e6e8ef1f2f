"""JAX for tests: on the CPU, in either precision."""

import os
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield
