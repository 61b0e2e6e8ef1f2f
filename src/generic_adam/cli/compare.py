"""``generic-adam compare``: two configurations, or one and a saved answer: what changed, for better or worse."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from generic_adam.answers.terminal import make_console, print_json, show
from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson, Budget, Subject, with_subject

_SIDE = "A name, a file, a saved answer of `check --json`, or what `check` takes, quoted: 'adamw --lr 3e-4'."


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    after: Annotated[str, typer.Argument(metavar="B", help="Likewise.")],
    steps: Annotated[str | None, typer.Option("--steps", metavar="T", help="The number of steps of both.")] = None,
    as_json: AsJson = False,
    budget: Budget = 1.0,
) -> None:
    """Say what changed from A to B, for better or worse: exit code 1 where B is guaranteed less, 3 unknown."""
    from generic_adam.answers.comparison import Comparison
    from generic_adam.answers.json import document
    from generic_adam.answers.words import lines

    with make_console(stderr=True).status("asking the theorems"):
        found = Comparison(*(_answer(one, steps, budget) for one in (before, after)))
    if as_json:
        print_json(document(found, whole=True))
    else:
        show(lines(found))
    unknown = found.after["answer"] in {"unknown", "does not apply"}
    raise typer.Exit(Exit.NOT if found.worse else Exit.UNKNOWN if unknown else Exit.FINE)


def _answer(text: str, steps: str | None, budget: float) -> Mapping[str, Any]:
    """Return the answer in short for one side."""
    from generic_adam.answers.comparison import saved
    from generic_adam.answers.json import summary
    from generic_adam.cli.app import joined
    from generic_adam.theorems.certificate import certify_algorithm, usual

    words, file = joined(shlex.split(text)), Path(text)
    if file.is_file():
        if file.suffix == ".json" and b'"long_run"' in file.read_bytes()[: 1 << 16]:
            return saved(file)
        words = ["--config", text]
    subject = _subject([*words, *(["--steps", steps] if steps is not None else [])])
    known = usual(subject.algorithm, subject.setting)
    return summary(certify_algorithm(subject.algorithm, setting=known, budget=budget))


def _subject(words: list[str]) -> Subject:
    """Return what the words mean to `check`."""
    taken: list[Subject] = []

    @with_subject
    def take(subject: Subject, budget: Budget = 1.0) -> None:
        del budget
        taken.append(subject)

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(take)
    app(args=words, prog_name="check", standalone_mode=False)
    return taken[0]
