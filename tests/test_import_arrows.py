"""Imports follow the arrows of the design, and the heavy dependencies stay where they belong.

schedules -> methods -> theorems ----------.
                '-> torch, optax -> adapters -> certification -> answers -> cli
                               '-> watch -----------------------'

One name is found against the stream, when it is asked for: `generic_adam.torch.Watch`.
The laboratory, a distribution of its own, may import all of it; nothing here imports the laboratory.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import generic_adam

SOURCE = Path(generic_adam.__file__).parent
LIBRARY = frozenset({"errors", "extras", "files", "parts", "setting", "schedules", "methods"})
CERTIFYING = LIBRARY | {"guard", "theorems", "reference", "torch", "optax", "adapters", "certification", "verify"}

# layer -> the other layers it may import
ARROWS: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "extras": frozenset({"errors"}),
    "files": frozenset({"errors"}),
    "parts": frozenset(),
    "setting": frozenset({"errors", "files"}),
    "schedules": frozenset({"errors"}),
    "guard": frozenset({"errors", "schedules"}),
    "methods": frozenset({"errors", "schedules"}),
    "theorems": frozenset({"errors", "parts", "setting", "schedules", "methods"}),
    "reference": frozenset({"errors", "schedules", "methods"}),
    "torch": LIBRARY | {"reference"},
    "optax": LIBRARY | {"reference"},
    "adapters": LIBRARY | {"torch", "optax"},
    "certification": LIBRARY | {"guard", "theorems", "adapters"},
    "verify": LIBRARY | {"torch", "optax", "adapters"},
    "watch": LIBRARY | {"theorems", "torch", "optax", "adapters"},
    "answers": CERTIFYING | {"watch"},
    "cli": CERTIFYING | {"answers", "watch"},
}

# The one name that is found against the stream, when it is asked for.
AGAINST = {("torch", "generic_adam.watch.watch")}

# Third-party modules each layer may import; anything not named here is not for it.
THIRD_PARTY: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "extras": frozenset(),
    "files": frozenset(),
    "parts": frozenset(),
    "setting": frozenset(),
    "schedules": frozenset({"numpy", "flint"}),
    "guard": frozenset(),
    "methods": frozenset({"numpy"}),
    "theorems": frozenset({"numpy", "flint"}),
    "reference": frozenset({"numpy"}),
}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def layer_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_type_checking(test):
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def imported_names(tree):
    """Every module that a file imports, wherever in it; those for type checkers alone are left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and is_type_checking(node.test):
            for other in node.orelse:
                yield from imported_names(other)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import at line {node.lineno}"
            # `from generic_adam import methods` imports a layer by its name
            if node.module == "generic_adam":
                for alias in node.names:
                    yield f"generic_adam.{alias.name}", node.lineno
            else:
                yield node.module, node.lineno
        else:
            yield from imported_names(node)


def violations(layer, source):
    for name, line in imported_names(ast.parse(source)):
        package, _, rest = name.partition(".")
        if package == "generic_adam_laboratory":
            yield f"line {line}: {layer} imports {name}, and the library has no laboratory in it"
        elif package == "generic_adam":
            target = rest.partition(".")[0]
            if target in ARROWS and target != layer and target not in ARROWS[layer] and (layer, name) not in AGAINST:
                yield f"line {line}: {layer} imports {name}"
        elif layer in THIRD_PARTY and package not in sys.stdlib_module_names | THIRD_PARTY[layer]:
            yield f"line {line}: {layer} imports {name}, which is no dependency of the library part"


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if path.parent != SOURCE or path.name != "__init__.py"],
    ids=lambda path: path.relative_to(SOURCE).as_posix(),
)
def test_imports_follow_the_arrows(path):
    assert layer_of(path) in ARROWS, f"{layer_of(path)} is not a layer of the design"
    assert not list(violations(layer_of(path), path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("schedules", "from generic_adam.methods import Method"),
        ("methods", "import generic_adam.theorems.bound"),
        ("theorems", "def f():\n    import torch"),
        ("torch", "try:\n    from generic_adam import answers\nexcept ImportError: pass"),
        ("answers", "class A:\n    from generic_adam.cli.app import tell"),
        ("cli", "def f():\n    import generic_adam_laboratory.studies"),
    ],
)
def test_the_walk_sees_a_violation(layer, line):
    assert len(list(violations(layer, line))) == 1


def test_the_walk_lets_the_arrows_and_type_checkers_through():
    assert not list(violations("cli", "import torch\nfrom generic_adam.answers.figures import PALETTE"))
    guarded = "if TYPE_CHECKING:\n    import torch\n    from generic_adam.cli import app"
    assert not list(violations("schedules", guarded))


def loaded_by(statement):
    """The top-level modules that are loaded after a statement in a fresh interpreter."""
    script = f"{statement}\nimport sys\nprint(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {
    "torch",
    "jax",
    "optax",
    "matplotlib",
    "numba",
    "dask",
    "scipy",
    "pandas",
    "transformers",
    "pydantic",
}


def test_importing_the_package_loads_nothing():
    assert not loaded_by("import generic_adam") & (HEAVY | {"numpy"})


@pytest.mark.parametrize(
    "statement",
    [
        "import generic_adam as ga; ga.parse('0.5/sqrt(t)')(4)",
        "import generic_adam as ga; ga.methods.adam().at(1)",
        "import generic_adam as ga; ga.certify(ga.methods.adam()).explain()",
        "import generic_adam as ga; ga.reference.generic_adam",
    ],
)
def test_the_library_part_needs_numpy_alone(statement):
    assert not loaded_by(statement) & (HEAVY | {"typer", "rich"})


@pytest.mark.parametrize("command", [["--version"], ["methods"], ["check", "adam"], ["check", "certified_adam"]])
def test_a_command_that_needs_nothing_heavy_loads_nothing_heavy(command):
    quiet = "import contextlib, io\nfrom generic_adam.cli import main\n"
    call = f"with contextlib.redirect_stdout(io.StringIO()): assert main({command!r}) in (0, 1)"
    assert not loaded_by(quiet + call) & HEAVY
