"""Which optional dependency belongs to which extra, and the one line said when it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from generic_adam.errors import ExtraError

_MODULES = {
    "torch": "torch",
    "optax": "jax optax",
    "demo": "filelock jinja2 matplotlib numba",
    "experiments": "dask distributed cycler scipy sklearn tensorboard",
    "docs": "mkdocs",
    "cli": "yaml",
}
_EXTRA_OF_MODULE = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}


def missing_extra(module: str, *, extra: str | None = None) -> ExtraError | None:
    """The error that names the extra to install for a module that was not found; None if none brings it.

    Args:
        module: its name, with or without sub-modules.
        extra: the extra to name; None for the smallest one that brings the module. What the small "demo"
            brings is never called one of the experiments, which bring torch.
    """
    top_level = module.partition(".")[0]
    if top_level not in _EXTRA_OF_MODULE:
        return None
    smallest = _EXTRA_OF_MODULE[top_level]
    named = extra if extra is not None and smallest != "demo" else smallest
    return ExtraError(f'{top_level} is not installed: pip install "generic-adam[{named}]"', name=top_level)


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Imports of optional dependencies: one that is missing is told in one line that names the extra.

    Args:
        extra: what to install for the part of the package that imports here, such as "torch".

    Raises:
        ExtraError: an optional dependency is not installed.

    Examples:
        >>> with from_extra("torch"):
        ...     import torch
    """
    try:
        yield
    except ModuleNotFoundError as error:
        told = missing_extra(error.name or "", extra=extra)
        if told is None:  # a defect of the package, or of what it imports: not for pip to mend
            raise
        raise told from None
