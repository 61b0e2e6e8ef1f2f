"""Tests mirror the source: who changes a module of these packages finds its tests by its name."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("package", ["schedules", "theorems", "methods"])
def test_every_module_has_a_test_file_of_its_own(package):
    modules = (ROOT / "src" / "generic_adam" / package).glob("[!_]*.py")
    names = {f"test_{module.name}" for module in modules}
    assert names
    assert names <= {path.name for path in (ROOT / "tests" / package).glob("test_*.py")}
