"""A missing extra is one line that names it."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import generic_adam
from generic_adam.extras import MissingExtraError, missing_extra, require

# The finder of installed modules, but blind to some: as if they were not installed.
HIDE = """
import sys
from importlib.machinery import PathFinder
class Blind(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition('.')[0] in {hidden!r} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Blind
"""


def run_without(hidden, statement):
    script = HIDE.format(hidden=set(hidden)) + statement
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("module", "extra"),
    [("torch", "torch"), ("rich", "cli"), ("jax.numpy", "optax"), ("matplotlib.pyplot", "experiments")],
)
def test_the_message_names_the_extra(module, extra):
    error = missing_extra(module)
    assert isinstance(error, ImportError)
    assert str(error) == f'{module.partition(".")[0]} is not installed: pip install "generic-adam[{extra}]"'


def test_a_module_of_no_extra_has_no_message():
    assert missing_extra("nonsense") is None
    with pytest.raises(ModuleNotFoundError, match="nonsense"):
        require("nonsense")


def test_what_is_installed_is_let_through():
    require("numpy", "typer")


@pytest.mark.parametrize(
    ("hidden", "statement", "extra"),
    [
        ("torch", "import generic_adam.torch", "torch"),
        ("torch", "import generic_adam as ga; ga.torch", "torch"),
        ("optax", "import generic_adam.optax", "optax"),
        ("jax", "import generic_adam.optax", "optax"),
    ],
)
def test_a_sub_package_without_its_dependency_names_the_extra(hidden, statement, extra):
    done = run_without({hidden}, statement)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f'MissingExtraError: {hidden} is not installed: pip install "generic-adam[{extra}]"'
    )


@pytest.mark.parametrize("hidden", ["typer", "rich"])
def test_the_command_without_its_extra_is_one_line(hidden):
    done = run_without({hidden}, "from generic_adam.cli import main; sys.exit(main(['methods']))")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f'generic-adam: {hidden} is not installed: pip install "generic-adam[cli]"\n'


def test_the_library_part_works_with_numpy_alone():
    everything_else = {
        "typer",
        "rich",
        "torch",
        "jax",
        "optax",
        "matplotlib",
        "numba",
        "dask",
        "scipy",
        "sklearn",
    }
    done = run_without(
        everything_else, "import generic_adam as ga; print(ga.certify(ga.methods.certified_adam()).verdict)"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "certified\n", "")


def third_party_imports():
    """The top-level names of every module that some file of the package imports."""
    for path in Path(generic_adam.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]


def test_every_import_is_brought_by_an_extra_that_lists_it():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    listed = {
        extra: {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
        for extra, requirements in project["optional-dependencies"].items()
    }
    distribution = {"sklearn": "scikit-learn", "distributed": "dask", "mkdocs": "mkdocs-material"}
    foreign = set(third_party_imports()) - sys.stdlib_module_names - {"generic_adam", "numpy"}
    assert {"torch", "typer", "jax"} <= foreign
    for module in foreign:
        error = missing_extra(module)
        assert error is not None, f"{module} is imported, and no extra brings it"
        extra = str(error).rpartition("[")[2].rstrip(']"')
        assert distribution.get(module, module) in listed[extra]


def test_missing_extra_is_an_import_error():
    assert issubclass(MissingExtraError, ImportError)
