"""Whatever is put in, an answer or one line of our own comes out: never a raw exception, never a hang.

pytest tests/soundness/test_raw_exceptions.py -m exhaustive          (FUZZ_INPUTS=1000000, FUZZ_START=0)
"""

import contextlib
import io
import os
import random
import time
import warnings

import pytest

import generic_adam as ga
from generic_adam.cli import main
from generic_adam.errors import GenericAdamError
from generic_adam.schedules import parse
from tests.soundness import generator, inputs
from tests.soundness.open_cases import known

TEXTS, METHODS, COMMANDS = 1500, 100, 60
SLOW = 2.0


def _asked(question) -> str | None:
    """What is wrong with how a question ended, or None."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            question()
    except GenericAdamError as error:
        if "\n" in str(error):
            return f"more than one line: {error}"
    except Exception as error:  # noqa: BLE001  (that is what is looked for)
        return f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    return f"{seconds:.1f} s" if seconds > SLOW else None


def _read(text: str) -> None:
    schedule = parse(text)
    assert parse(str(schedule)) == schedule
    for t in (1, 2, 1000):
        with contextlib.suppress(GenericAdamError):
            schedule(t)
    with contextlib.suppress(GenericAdamError):
        schedule.values(1, 40)
    _ = schedule.growth


def _ask_method(source: random.Random) -> None:
    method = ga.Method(
        *(
            inputs.text(source, 2) if source.random() < 0.3 else made(source)
            for made in (generator.alpha, generator.beta, generator.theta)
        )
    )
    kind = source.random()
    if kind < 0.4:
        ga.certify(method).explain()
    elif kind < 0.8:
        ga.certify(method, horizon=source.choice((1, 10, 1000, 10**6, 10**12))).to_dict()
    else:
        problem = ga.Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8)
        ga.bound(method, problem, steps=source.choice((1, 100, 10**5)))


def _texts(seeds: range) -> list[tuple[str, str]]:
    found = []
    for seed in seeds:
        text = inputs.text(random.Random(seed))
        wrong = _asked(lambda text=text: _read(text))
        if wrong is not None:
            found.append((text, wrong))
    return found


def _methods(seeds: range) -> list[tuple[int, str]]:
    found = [(seed, _asked(lambda seed=seed: _ask_method(random.Random(seed)))) for seed in seeds]
    return [(seed, wrong) for seed, wrong in found if wrong is not None]


def _commands(seeds: range) -> list[tuple[list[str], str]]:
    found = []
    for seed in seeds:
        words = inputs.arguments(random.Random(seed))
        out, code = io.StringIO(), None
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = main(words)
        except SystemExit as stop:
            code = stop.code
        except Exception as error:  # noqa: BLE001
            out.write(f"Traceback: {error!r}")
        if "Traceback" in out.getvalue() or code not in {0, 1, 2, 3, None}:
            found.append((words, f"{code}: {out.getvalue()[-300:]}"))
    return found


@known("raw: texts")
def test_texts_are_read_or_refused_in_one_line():
    found = _texts(range(TEXTS))
    assert not found, found[:10]


@known("raw: methods")
def test_methods_are_answered_or_refused_in_one_line():
    found = _methods(range(METHODS))
    assert not found, found[:10]


@known("raw: command lines")
def test_command_lines_are_answered_or_refused():
    found = _commands(range(COMMANDS))
    assert not found, found[:10]


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
def test_a_million_inputs():
    """Of a thousand 970 are texts, 20 methods, 10 command lines, each by its own number."""
    start, count = int(os.environ.get("FUZZ_START", "0")), int(os.environ.get("FUZZ_INPUTS", "1000000"))
    texts, methods, commands = (
        range(start * share // 1000, (start + count) * share // 1000) for share in (970, 20, 10)
    )
    found = [*_texts(texts), *_methods(methods), *_commands(commands)]
    assert not found, found[:50]
