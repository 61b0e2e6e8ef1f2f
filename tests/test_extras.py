"""A missing extra is one line that names it."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import generic_adam
from generic_adam.errors import ExtraError
from generic_adam.extras import from_extra, missing_extra

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
    ("module", "requirement"),
    [
        ("torch", "generic-adam[torch]"),
        ("jax.numpy", "generic-adam[optax]"),
        ("matplotlib.pyplot", "generic-adam[plots]"),
        ("dask", "generic-adam-laboratory[training]"),
    ],
)
def test_the_message_names_the_extra(module, requirement):
    error = missing_extra(module)
    assert isinstance(error, ImportError)
    assert str(error) == f'{module.partition(".")[0]} is not installed: pip install "{requirement}"'


def test_the_message_names_the_extra_that_the_importing_part_asks_for():
    told = missing_extra("torch", requirement="generic-adam-laboratory[training]")
    assert str(told).endswith('"generic-adam-laboratory[training]"')


def test_a_module_of_no_extra_has_no_message():
    assert missing_extra("nonsense") is None
    with pytest.raises(ModuleNotFoundError, match="nonsense"), from_extra("torch"):
        import nonsense  # noqa: F401  # pyright: ignore[reportMissingImports]


def test_other_import_errors_are_let_through():
    with pytest.raises(ImportError, match="no_such_name") as raised, from_extra("torch"):
        from typer import no_such_name  # noqa: F401  # pyright: ignore[reportAttributeAccessIssue]
    assert not isinstance(raised.value, ExtraError)


@pytest.mark.parametrize(
    ("hidden", "statement", "extra"),
    [
        ("torch", "import generic_adam.torch", "torch"),
        ("torch", "import generic_adam as ga; ga.torch", "torch"),
        ("optax", "import generic_adam.optax", "optax"),
        ("jax", "import generic_adam.optax", "optax"),
        ("torch", "import generic_adam.adapters.torch", "torch"),
        ("matplotlib", "from generic_adam.answers.figures import house_style as s; s().__enter__()", "plots"),
    ],
)
def test_a_sub_package_without_its_dependency_names_the_extra(hidden, statement, extra):
    done = run_without({hidden}, statement)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f'ExtraError: {hidden} is not installed: pip install "generic-adam[{extra}]"'
    )


EVERYTHING_ELSE = {
    "typer",
    "rich",
    "torch",
    "jax",
    "optax",
    "matplotlib",
}


def test_the_library_part_works_with_numpy_alone():
    done = run_without(
        EVERYTHING_ELSE, "import generic_adam as ga; print(ga.certify(ga.methods.certified_adam()).verdict)"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "certified\n", "")


# Every module, imported by itself; those of the command and what it prints with are left out: `main` speaks for them.
IMPORT_EACH = """
from importlib import import_module
from pkgutil import walk_packages
import generic_adam
from generic_adam.errors import ExtraError
def outcome(name):
    try:
        import_module(name)
    except ExtraError:
        return 'named'
    except ImportError as error:
        return repr(error)
    return 'imported'
for module in walk_packages(generic_adam.__path__, 'generic_adam.', onerror=lambda name: None):
    if not module.name.startswith(('generic_adam.cli', 'generic_adam.answers.terminal')):
        print(module.name, outcome(module.name))
"""


def test_every_module_imports_with_numpy_alone_or_names_its_extra():
    done = run_without(EVERYTHING_ELSE, IMPORT_EACH)
    outcomes = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {name: told for name, told in outcomes.items() if told not in {"imported", "named"}} == {}
    assert {name for name, told in outcomes.items() if told == "named"} >= {
        "generic_adam.torch",
        "generic_adam.optax",
        "generic_adam.adapters.torch",
    }
    assert all(outcomes[f"generic_adam.{part}"] == "imported" for part in ("schedules", "methods", "theorems"))


def third_party_imports(package):
    """The top-level names of every module that some file of a package imports."""
    for path in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]


def test_every_import_is_brought_by_an_extra_that_lists_it():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {
        extra: {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
        for extra, requirements in project["optional-dependencies"].items()
    }
    always = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    assert always == {"numpy", "python-flint", "pyyaml", "rich", "typer"}
    foreign = (
        set(third_party_imports(generic_adam))
        - sys.stdlib_module_names
        - {"generic_adam", "generic_adam_command", "flint", "yaml"}
        - always
    )
    assert {"torch", "jax"} <= foreign
    for module in foreign:
        error = missing_extra(module)
        assert error is not None, f"{module} is imported, and no extra brings it"
        extra = str(error).rpartition("[")[2].rstrip(']"')
        assert module in listed[extra]


def test_missing_extra_is_an_import_error():
    assert issubclass(ExtraError, ImportError)
