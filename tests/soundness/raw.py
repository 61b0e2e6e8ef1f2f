"""One generated input gives an answer, or one line of our own; and a million of them from the command line.

python -m tests.soundness.raw --inputs 1000000 --start 0

An input is a number, which says its kind too, so that a million can be run in parts. What was covered is told now and
then, and in the end however the run ends.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import generic_adam as ga
from generic_adam.cli import main as command
from generic_adam.errors import GenericAdamError
from generic_adam.schedules import parse
from tests.soundness import generator, inputs

HANGS = 60
"""Processor seconds after which an input is given up by the command: no test asks for a time."""


def read_text(source: random.Random) -> str:
    """Parse a text, write it, parse it back; its values, its growth and that of its complement."""
    schedule = parse(inputs.text(source))
    assert parse(str(schedule)) == schedule, f"{schedule} is not read back"
    for t in (1, 2, 1000, 10**5):
        with contextlib.suppress(GenericAdamError):
            schedule(t)
    with contextlib.suppress(GenericAdamError):
        schedule.values(1, 40)
    _ = schedule.growth, (1 - schedule).growth, schedule.order
    return "read"


def ask_method(source: random.Random) -> str:
    """Certify a method for ever or for a number of steps, ask for its bound or for advice."""
    method = ga.Method(
        *(
            inputs.text(source, 2) if source.random() < 0.15 else made(source)
            for made in (generator.alpha, generator.beta, generator.theta)
        )
    )
    kind = source.random()
    if kind < 0.4:
        ga.certify(method).explain()
    elif kind < 0.75:
        ga.certify(method, horizon=source.choice((1, 10, 1000, 10**6, 10**12))).to_dict()
    elif kind < 0.95:
        problem = ga.Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
        ga.bound(method, problem, steps=source.choice((1, 100, 10**5)))
    else:
        ga.advise(method)
    return "answered"


def run_command(source: random.Random) -> str:
    """Run a command line in this process."""
    return _run(inputs.arguments(source))


def read_configuration(source: random.Random) -> str:
    """Check a configuration file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, source.choice(("ds.json", "run.yaml", "conf.toml", "none")))
        file.write_text(inputs.configuration(source), encoding="utf-8")
        return _run(["check", "--config", str(file), *source.choice(([], ["--steps", "1000"], ["--json"]))])


def _run(words: list[str]) -> str:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = command(words)
    assert code in {0, 1, 2, 3}, f"exit code {code}: {errors.getvalue()[-300:]}"
    told = errors.getvalue()
    assert code != 2 or told.count("\n") == 1, f"exit code 2 and {told[-300:]!r}"
    return "refused" if code == 2 else "answered"


def load_state(source: random.Random) -> str:
    """Load a state dict with something wrong in it; a step follows, whether it was taken or not."""
    import torch

    from tests.conformance.optimizers import OPTIMIZERS
    from tests.conformance.test_hostile_states import damaged, steps

    info = source.choice(OPTIMIZERS)
    settings = source.choice([one for one in info.valid if not any(map(callable, one.values()))])
    groups = [{"params": [torch.nn.Parameter(torch.ones(shape))]} for shape in ((3, 4), (5,))]
    optimizer = info.constructor(groups, **settings)
    steps(optimizer, 2)
    saved = optimizer.state_dict()
    if source.random() < 0.5:
        saved = damaged(saved, source)
    else:
        saved = copy.deepcopy(saved)
        moments = saved["state"][source.randrange(2)]
        name = source.choice([key for key, value in moments.items() if torch.is_tensor(value)] or ["exp_avg"])
        moments[name] = source.choice(_STRANGE_TENSORS)(torch)
    result = "read"
    try:
        optimizer.load_state_dict(saved)
    except GenericAdamError as error:
        _in_one_line(error)
        result = "refused"
    with contextlib.suppress(GenericAdamError):  # a schedule that is out of range at the next step
        steps(optimizer, 2)
    return result


_STRANGE_TENSORS: tuple[Callable[[Any], Any], ...] = (
    lambda torch: torch.zeros(1),
    lambda torch: torch.zeros(3, 4, dtype=torch.float16),
    lambda torch: torch.zeros(3, 4, dtype=torch.int64),
    lambda torch: torch.zeros(3, 4, dtype=torch.complex64),
    lambda torch: torch.zeros(3, 4, dtype=torch.bool),
    lambda torch: torch.zeros(4, 3).t(),
    lambda torch: torch.zeros(1).expand(3, 4),
    lambda torch: torch.zeros(5)[::1].as_strided((5,), (0,)),
    lambda torch: torch.zeros(10)[::2],
    lambda torch: torch.zeros(3, 4, device="meta"),
    lambda torch: torch.eye(3, 4).to_sparse(),
    lambda torch: torch.quantize_per_tensor(torch.zeros(5), 0.1, 0, torch.qint8),
    lambda torch: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
    lambda torch: torch.zeros(5, requires_grad=True) + 1,
    lambda torch: torch.full((5,), float("nan")),
    lambda torch: torch.full((3, 4), -1.0),
    lambda torch: torch.zeros(0),
    lambda torch: torch.zeros(4096),
)

Question = Callable[[random.Random], str]
KINDS: Mapping[str, tuple[int, Question]] = {
    "texts": (950, read_text),
    "methods": (25, ask_method),
    "command lines": (12, run_command),
    "configurations": (3, read_configuration),
    "state dicts": (10, load_state),
}
"""How many of a thousand inputs are of each kind, and what is asked of them."""


def _in_one_line(error: GenericAdamError) -> None:
    assert "\n" not in str(error), f"more than one line: {error}"


def asked(question: Question, number: int) -> tuple[str, str | None]:
    """How a question ended, and what is wrong with that, or None."""
    ended, wrong = "refused", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ended = question(random.Random(number))
    except GenericAdamError as error:
        with contextlib.suppress(AssertionError):
            _in_one_line(error)
            return ended, None
        return ended, f"more than one line: {error}"
    except (Exception, SystemExit, _Hang) as error:  # noqa: BLE001  (that is what is looked for)
        wrong = f"{type(error).__name__}: {error}"
    return ended, wrong


def kind_of(number: int) -> str:
    """The kind of the input of this number: all are spread over each thousand."""
    place = number * 389 % 1000  # 389 and 1000 have no common divisor
    for kind, (share, _) in KINDS.items():
        if place < share:
            return kind
        place -= share
    raise AssertionError(f"the shares are {sum(share for share, _ in KINDS.values())}, not 1000")


def found_in(kind: str, numbers: Iterable[int]) -> list[tuple[int, str]]:
    """Return the faults of these inputs, by their numbers."""
    answers = ((number, asked(KINDS[kind][1], number)[1]) for number in numbers)
    return [(number, wrong) for number, wrong in answers if wrong is not None]


class _Hang(BaseException):
    """An answer has taken too long."""


class _Stopped(BaseException):
    """A signal came."""


def _raise(kind: type[BaseException]) -> Callable[..., None]:
    def handler(*_: object) -> None:
        raise kind(f"over {HANGS} s")

    return handler


def main() -> int:
    """Run many inputs; print what is wrong as it is found, and what was covered in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", choices=KINDS, help="leave the other kinds out")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _raise(_Hang))
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, _raise(_Stopped))
    ended: Counter[tuple[str, str]] = Counter()
    seconds: Counter[str] = Counter()
    wrong = 0
    number, end = options.start, options.start + options.inputs

    def tell() -> None:
        parts = []
        for kind in KINDS:
            counts = {how: count for (what, how), count in ended.items() if what == kind}
            if counts:
                shown = ", ".join(f"{count:,} {how}" for how, count in sorted(counts.items()))
                parts.append(f"{sum(counts.values()):,} {kind} ({shown}; {seconds[kind]:.0f} s)")
        print(f"{options.start:,} to {number - 1:,}: {'; '.join(parts)}; {wrong} wrong", flush=True)

    with contextlib.suppress(_Stopped):
        while number < end:
            kind = kind_of(number)
            if options.only in {None, kind}:
                began = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, HANGS)
                how, problem = asked(KINDS[kind][1], number)
                signal.setitimer(signal.ITIMER_PROF, 0)
                seconds[kind] += time.process_time() - began
                ended[kind, how] += 1
                if problem is not None:
                    wrong += 1
                    print(f"{kind} {number}: {problem}", flush=True)
            number += 1
            if number % 10_000 == 0:
                tell()
    tell()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
