"""Any input gives an answer or one line of our own: never a raw exception, never a hang.

pytest tests/soundness/test_raw_exceptions.py -m exhaustive          (FUZZ_INPUTS=1000000, FUZZ_START=0)
"""

import contextlib
import importlib.util
import inspect
import itertools
import json
import math
import os
import subprocess
import sys

import pytest

import generic_adam as ga
from generic_adam.adapters.plain import read_config
from generic_adam.cli import main
from generic_adam.errors import GenericAdamError
from tests.soundness import inputs
from tests.soundness.raw import KINDS, found_in, kind_of

SAMPLES = {"texts": 1500, "methods": 100, "command lines": 60, "configurations": 40, "state dicts": 100}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_answered_or_refused_in_one_line(kind):
    if kind == "state dicts" and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    numbers = (number for number in itertools.count() if kind_of(number) == kind)
    found = found_in(kind, itertools.islice(numbers, SAMPLES[kind]))
    assert not found, found[:10]


@pytest.mark.parametrize("settings", inputs.CONFIGURATIONS, ids=["DeepSpeed", "Trainer"])
def test_the_configurations_that_are_changed_are_read_as_they_are(settings, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    algorithm, _ = read_config(file)
    assert algorithm.horizon == 1000


STRANGE = ("x", None, True, math.nan, math.inf, -1, 0, 10**400, 5e-324, 1e308, [], 1j)


@pytest.mark.parametrize("name", ga.methods.names())
def test_every_argument_of_the_catalogue_may_be_strange(name):
    """Each in turn: a method that is certified or not, or one line."""
    make = getattr(ga.methods, name)
    for argument, value in itertools.product(inspect.signature(make).parameters, STRANGE):
        with contextlib.suppress(GenericAdamError):
            ga.certify(make(**{argument: value}))


@pytest.mark.parametrize("words", ["nosadam --initial x", "adamw --eps 5e-324", "nosadam --initial 1e400"])
def test_an_option_may_be_strange(words, capsys):
    assert main(["check", *words.split()]) in {0, 2}
    assert "Traceback" not in capsys.readouterr().err


def test_a_part_tells_what_it_covered():
    command = [
        sys.executable,
        "-m",
        "tests.soundness.raw",
        "--inputs",
        "60",
        "--start",
        "999970",
        "--only",
        "texts",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("999,970 to 1,000,029: 59 texts (")
    assert done.stdout.endswith("; 0 wrong\n")


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
def test_a_million_inputs():
    """`python -m tests.soundness.raw` does the same and tells more."""
    start, count = int(os.environ.get("FUZZ_START", "0")), int(os.environ.get("FUZZ_INPUTS", "1000000"))
    found = [
        (kind, *one)
        for number in range(start, start + count)
        for kind in [kind_of(number)]
        for one in found_in(kind, [number])
    ]
    assert not found, found[:50]
