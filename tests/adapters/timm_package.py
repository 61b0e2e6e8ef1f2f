"""timm's schedulers and optimizers without the rest of timm, which needs torchvision."""

import importlib
import importlib.machinery
import importlib.util
import sys
import types

import pytest


def part(name):
    """The real `timm.scheduler` or `timm.optim`; the test is skipped where timm is not installed."""
    if "timm" not in sys.modules:
        found = importlib.util.find_spec("timm")
        if found is None or found.submodule_search_locations is None:
            pytest.skip("timm is not installed")
        for bare in ("timm", "timm.models"):  # bare packages: their own files import torchvision
            module = types.ModuleType(bare)
            module.__path__ = list(found.submodule_search_locations) if bare == "timm" else []
            module.__spec__ = importlib.machinery.ModuleSpec(bare, None)
            sys.modules[bare] = module
        sys.modules["timm.models"].group_parameters = None  # for layer-wise decay, which is not used here
    return importlib.import_module(f"timm.{name}")
