"""Which optional dependency belongs to which extra, and the one line said when it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from generic_adam.errors import ExtraError

LABORATORY = "generic-adam-laboratory"
"""The distribution with the experiments of the paper, beside this one."""

_MODULES = {
    "generic-adam[torch]": "torch",
    "generic-adam[optax]": "jax optax",
    "generic-adam[plots]": "matplotlib",
    f"{LABORATORY}[training]": "dask distributed scipy sklearn",
}
_BROUGHT_BY = {module: requirement for requirement, modules in _MODULES.items() for module in modules.split()}


def missing_extra(module: str, *, requirement: str | None = None) -> ExtraError | None:
    """Return the error that says what to install for a module that was not found; None if nothing here brings it.

    Args:
        module: its name, with or without sub-modules.
        requirement: what to install, as pip takes it; None for the smallest that brings the module.
    """
    top_level = module.partition(".")[0]
    if top_level not in _BROUGHT_BY:
        return None
    named = requirement or _BROUGHT_BY[top_level]
    return ExtraError(f'{top_level} is not installed: pip install "{named}"', name=top_level)


@contextmanager
def from_extra(extra: str, *, distribution: str = "generic-adam") -> Iterator[None]:
    """Tell a missing optional dependency, imported in the block, in one line that names the extra.

    Args:
        extra: what to install for the part of the package that imports here, such as "torch".
        distribution: whose extra it is.

    Raises:
        ExtraError: an optional dependency is not installed.

    Examples:
        >>> with from_extra("torch"):
        ...     import torch
    """
    try:
        yield
    except ModuleNotFoundError as error:
        told = missing_extra(error.name or "", requirement=f"{distribution}[{extra}]")
        if told is None:  # a defect of the package, or of what it imports: not for pip to mend
            raise
        raise told from None
