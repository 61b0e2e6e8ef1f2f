"""What `package.module:function` returns: the user's own function that builds an optimizer."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from generic_adam.adapters.reading import AdapterError


def load(reference: str) -> Any:
    """Import a module, call a function of it without arguments, and return what it returns.

    The module is looked for in the working directory too, as `python -m` does. It is the user's own code that
    runs.

    Args:
        reference: such as "train:configure" or "package.module:function".

    Raises:
        AdapterError: the module or the function is not there, or it raised; one line that says which.
    """
    module_name, separator, path = reference.partition(":")
    if not separator or not module_name or not path:
        raise AdapterError(f"expected package.module:function, got {reference!r}")
    function: Any = _import(module_name)
    for name in path.split("."):
        if not hasattr(function, name):
            raise AdapterError(
                f"{module_name} has no {path!r}; expected a function that returns an optimizer"
            )
        function = getattr(function, name)
    if not callable(function):
        raise AdapterError(
            f"{reference} is a {type(function).__name__}; expected a function without arguments"
        )
    try:
        return function()
    except Exception as error:
        raise AdapterError(f"{reference} raised {_one_line(error)}") from error


def _import(name: str) -> Any:
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise AdapterError(
                f"no module named {missing!r}, looked for in {here} and Python's path"
            ) from error
        raise AdapterError(f"importing {name} raised {_one_line(error)}") from error
    except Exception as error:
        raise AdapterError(f"importing {name} raised {_one_line(error)}") from error
    finally:
        if added:
            sys.path.remove(here)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
