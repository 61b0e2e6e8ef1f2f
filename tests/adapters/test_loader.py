"""`package.module:function`: what the user's function returns, and one line for all that can go wrong."""

import sys

import pytest

from generic_adam.adapters import load
from generic_adam.errors import OptimizerError

SOURCE = """
def configure():
    return 42

def fails():
    raise RuntimeError("no\\nsuch data")

def needs(argument):
    return argument

def quits():
    raise SystemExit(0)

def late():
    import beside_it
    return beside_it.NUMBER

class Module:
    @staticmethod
    def configure():
        return "nested"

NUMBER = 3
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "training_script.py").write_text(SOURCE)
    (tmp_path / "broken_script.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "raising_script.py").write_text("1 / 0\n")
    (tmp_path / "quitting_script.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    yield
    for name in ("training_script", "broken_script", "raising_script", "quitting_script", "beside_it"):
        sys.modules.pop(name, None)


def test_the_function_is_called(project):
    before = list(sys.path)
    assert load("training_script:configure") == 42
    assert load("training_script:Module.configure") == "nested"
    assert sys.path == before


def test_a_script_may_be_named_by_its_file(project, tmp_path, monkeypatch):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "training_script.py").write_text(SOURCE.replace("42", "43"))
    before = list(sys.path)
    assert load("scripts/training_script.py:configure") == 43
    assert sys.path == before
    with pytest.raises(OptimizerError, match=r"scripts/absent\.py cannot be read: No such file"):
        load("scripts/absent.py:configure")


def test_what_the_function_itself_imports_is_looked_for_beside_its_file(project, tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "training_script.py").write_text(SOURCE)
    (folder / "beside_it.py").write_text("NUMBER = 44\n")
    assert load("scripts/training_script.py:late") == 44


def test_a_file_is_the_one_that_is_named(project, tmp_path):
    (tmp_path / "inspect.py").write_text(SOURCE)  # as a module of Python's
    assert load("inspect.py:configure") == 42
    for number in ("43", "44"):  # edited, and asked for again
        (tmp_path / "training_script.py").write_text(SOURCE.replace("42", number))
        assert str(load("training_script.py:configure")) == number


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("training_script", "expected package.module:function"),
        (":configure", "expected package.module:function"),
        ("training_script:", "expected package.module:function"),
        ("no_such_script:configure", "no module named 'no_such_script'"),
        ("training_script:configur", "training_script has no 'configur'"),
        ("training_script:NUMBER", "is a int; expected a function"),
        ("training_script:fails", "training_script:fails raised RuntimeError: no such data"),
        ("training_script:needs", "raised TypeError: needs\\(\\) missing 1 required"),
        ("broken_script:configure", "importing broken_script raised ModuleNotFoundError"),
        ("raising_script:configure", "importing raising_script raised ZeroDivisionError"),
        ("raising_script.py:configure", "importing raising_script.py raised ZeroDivisionError"),
        # A script that ends the process must not end ours, least of all with a code that is an answer.
        ("training_script:quits", "raised SystemExit: 0"),
        ("quitting_script:configure", "importing quitting_script raised SystemExit: 0"),
    ],
)
def test_what_goes_wrong_is_one_line(reference, message, project):
    with pytest.raises(OptimizerError, match=message) as caught:
        load(reference)
    assert "\n" not in str(caught.value)
