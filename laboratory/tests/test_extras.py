"""The laboratory's imports are among its requirements; a missing one is told in one line."""

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import generic_adam_laboratory
from tests.test_extras import run_without, third_party_imports


@pytest.mark.parametrize(
    ("hidden", "statement"),
    [
        ("torch", "import generic_adam_laboratory.studies.sweep"),
        ("torch", "import generic_adam_laboratory.networks"),
        ("sklearn", "from generic_adam_laboratory.data.datasets import load; load('digits')"),
    ],
)
def test_what_trains_networks_is_told_in_one_line(hidden, statement):
    done = run_without({hidden}, statement)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f'ExtraError: {hidden} is not installed: pip install "generic-adam-laboratory[training]"'
    )


def test_the_counterexample_and_the_pages_need_no_torch():
    imports = ("counterexample.figures", "studies.bound", "studies.phase_map", "report", "cli.experiments")
    done = run_without(
        {"torch", "dask", "sklearn", "scipy"}, "; ".join(f"import generic_adam_laboratory.{one}" for one in imports)
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_import_is_among_the_requirements():
    projects = [Path(__file__).parents[up] / "pyproject.toml" for up in (1, 2)]
    ours, library = (tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in projects)
    extras = library["optional-dependencies"]
    asked = [*ours["dependencies"], *chain(*ours["optional-dependencies"].values())]
    brought = [*asked, *library["dependencies"], *(line for one in ("torch", "optax", "plots") for line in extras[one])]
    assert {"generic-adam[plots]", "generic-adam[torch]", "generic-adam[torch,optax]"} <= {*asked}
    modules = {"scikit-learn": "sklearn", "python-flint": "flint"}
    names = {modules.get(name, name) for line in brought if (name := re.split(r"[^\w-]", line)[0])}
    own = {"generic_adam", "generic_adam_laboratory", "distributed"}  # dask[distributed]
    assert {*third_party_imports(generic_adam_laboratory)} - sys.stdlib_module_names - own <= names
