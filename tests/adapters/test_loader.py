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
    monkeypatch.chdir(tmp_path)
    yield
    for name in ("training_script", "broken_script", "raising_script"):
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
    with pytest.raises(OptimizerError, match=f"no module named 'absent', looked for in {folder}"):
        load("scripts/absent.py:configure")


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
    ],
)
def test_what_goes_wrong_is_one_line(reference, message, project):
    with pytest.raises(OptimizerError, match=message) as caught:
        load(reference)
    assert "\n" not in str(caught.value)
