"""One text has one answer: alone, beside other work, with everything known before, in any order."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.soundness.same import SUBJECTS, answers

SAMPLE = ["method nosadam", "recipe vit", "scheduler PolynomialLR"]


@contextlib.contextmanager
def busy_machine():
    """Give every core a process that does nothing but turn."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for one in others:
            one.kill()
        for one in others:
            one.wait()


def test_the_sample_is_of_what_there_is():
    assert set(SAMPLE) <= set(SUBJECTS)


@pytest.fixture(scope="module")
def alone():
    return {question: told for question, told, _ in answers(SAMPLE)}


def test_answers_depend_on_the_text_alone(tmp_path, alone):
    warm = {question: told for question, told, _ in answers(SAMPLE[::-1], warm=True)}
    assert warm == alone
    with busy_machine():
        arguments = [str(tmp_path / "busy"), "--backwards", "--only", *SAMPLE]
        command = [sys.executable, "-m", "tests.soundness.same", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2])
    lines = (tmp_path / "busy").read_text().splitlines()
    assert dict(line.split("\t", 1) for line in lines) == alone


def test_every_search_of_the_sample_comes_to_its_end(alone):
    assert all('"complete": true' in told for question, told in alone.items() if question.endswith("advise"))
