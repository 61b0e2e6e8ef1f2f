"""Which optional dependency belongs to which extra, and the one line said when it is missing."""

from importlib.util import find_spec

_EXTRA_OF_MODULE = {
    "typer": "cli",
    "rich": "cli",
    "torch": "torch",
    "jax": "optax",
    "optax": "optax",
    "dask": "experiments",
    "distributed": "experiments",
    "filelock": "experiments",
    "cycler": "experiments",
    "matplotlib": "experiments",
    "numba": "experiments",
    "sklearn": "experiments",
    "tensorboard": "experiments",
    "mkdocs": "docs",
}


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def missing_extra(module: str) -> MissingExtraError | None:
    """The error that names the extra which brings ``module``, or None if it belongs to no extra."""
    top_level = module.partition(".")[0]
    extra = _EXTRA_OF_MODULE.get(top_level)
    if extra is None:
        return None
    return MissingExtraError(
        f'{top_level} is not installed: pip install "generic-adam[{extra}]"', name=top_level
    )


def require(*modules: str) -> None:
    """Check that optional dependencies are installed, without importing them.

    Call it at the top of a sub-package that cannot work without them.

    Args:
        *modules: names of top-level modules, each brought by one of the extras.

    Raises:
        MissingExtraError: one of them is not installed; one line that names the extra.
    """
    for module in modules:
        if find_spec(module) is None:
            raise missing_extra(module) or ModuleNotFoundError(f"No module named {module!r}", name=module)
