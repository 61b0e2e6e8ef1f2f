"""``generic-adam check`` and ``compare``: the guarantee of a configuration, and what changed between two."""

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.answers.terminal import make_console, print_json, say, show, write_plot
from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson, Budget, Explain, Plot, Subject, Theorem, method_names, with_subject
from generic_adam.errors import MethodError, TheoremError

if TYPE_CHECKING:
    from generic_adam.answers.comparison import Comparison
    from generic_adam.theorems.advice import Advice
    from generic_adam.theorems.certificate import Certificate

_SIDE = "A name, a file, a saved answer of `check --json`, or what `check` takes, quoted: 'adamw --lr 3e-4'."
_MORE = "generic-adam advise, same options"
_BESIDE = "With --plot: one more of the catalogue. Can be repeated."
_AGAINST = "An earlier answer, as --json printed it: what became better or worse."
_FAIL_ON = "Exit with 1 where the run has no useful guarantee, the long run has none, or --against is worse or differs."


class FailOn(StrEnum):
    """The reasons for `check` to exit with 1."""

    NO_GUARANTEE = "no-guarantee"
    LONG_RUN = "long-run"
    WORSE = "worse"
    CHANGED = "changed"


@with_subject
def check(
    subject: Subject,
    theorem: Theorem = None,
    as_json: AsJson = False,
    explain: Explain = False,
    fail_on: Annotated[list[FailOn] | None, typer.Option(help=_FAIL_ON)] = None,
    against: Annotated[Path | None, typer.Option(metavar="FILE", help=_AGAINST)] = None,
    budget: Budget = 1.0,
    plot: Plot = None,
    beside: Annotated[
        list[str] | None, typer.Option(metavar="METHOD", help=_BESIDE, autocompletion=method_names)
    ] = None,
) -> None:
    """Check an optimizer configuration for a convergence guarantee."""
    from generic_adam.answers import certificates
    from generic_adam.answers.json import summary
    from generic_adam.answers.words import Line
    from generic_adam.theorems.certificate import certify_algorithm, usual

    wanted = fail_on or ()
    if against is None and (alone := {FailOn.WORSE, FailOn.CHANGED}.intersection(wanted)):
        raise TheoremError(f"--fail-on {min(alone)} goes with --against FILE")
    earlier = None if against is None else _saved(against)
    setting = usual(subject.algorithm, subject.setting)
    certificate = certify_algorithm(subject.algorithm, theorem=theorem, setting=setting, budget=budget)
    _draw(subject, beside or (), plot)
    since = None if earlier is None else _since(earlier, summary(certificate))
    if as_json:
        print_json(certificate.to_dict() if explain else summary(certificate, subject.seen))
    else:
        told = certificates.check_lines(certificate, change=_change(certificate), command=_MORE, seen=subject.seen)
        beyond = (
            f"the schedule ends at step {subject.ends:,}; from there on its last lr is held" if subject.ends else ""
        )
        extra = [*([Line(beyond, "CAREFUL")] if beyond else []), *([] if since is None else [since.line])]
        show([*told[:1], *extra, *told[1:]])
        if explain:
            say(*_explained(certificate, subject.used))
    asked = {
        FailOn.NO_GUARANTEE: certificate.answer != "guaranteed" or subject.seen is not None,
        FailOn.LONG_RUN: certificate.long_run != "guaranteed",
        FailOn.WORSE: since is not None and since.worse,
        FailOn.CHANGED: since is not None and bool(since.differences),
    }
    if any(asked[one] for one in wanted):
        raise typer.Exit(Exit.NOT)
    raise typer.Exit(exit_code(certificate) if subject.seen is None else Exit.UNKNOWN)


def _saved(path: Path) -> Mapping[str, Any]:
    from generic_adam.answers.comparison import saved  # which brings the readers of optimizers

    return saved(path)


def _since(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> "Comparison":
    from generic_adam.answers.comparison import Comparison

    return Comparison(earlier, now)


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    after: Annotated[str, typer.Argument(metavar="B", help="Likewise.")],
    steps: Annotated[str | None, typer.Option("--steps", metavar="T", help="The number of steps of both.")] = None,
    as_json: AsJson = False,
    budget: Budget = 1.0,
) -> None:
    """Say what changed from A to B, for better or worse."""
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


def _change(certificate: "Certificate") -> "Advice | None":
    """Return a change of beta2 that helps the run, where the noise is what stands in the way."""
    from generic_adam.theorems.advice import change_for_run

    run = certificate.horizon
    if run is None or run.outside or run.dominant != "noise" or certificate.parts:
        return None
    return change_for_run(certificate.algorithm, run, certificate.setting)


def exit_code(certificate: "Certificate") -> Exit:
    """Return 0 for an answer, 3 where none is known or the theory does not apply, 4 where the work limit ended it."""
    run = certificate.horizon
    if run is not None and run.unknown is not None and run.unknown.kind == "spent":
        return Exit.INCOMPLETE
    return Exit.UNKNOWN if certificate.answer in {"unknown", "does not apply"} else Exit.FINE


def print_answer(certificate: "Certificate", *, explain: bool = False) -> None:
    """Print a certificate, in at most ten lines or with the whole argument."""
    from generic_adam.answers import words

    show(words.lines(certificate))
    if explain:
        say(*words.argument(certificate))


def _explained(certificate: "Certificate", used: Sequence[str]) -> "list[str]":
    from generic_adam.answers import words

    return [*([f"read from the file: {', '.join(used)}"] if used else []), *words.argument(certificate)]


def _draw(subject: Subject, beside: Sequence[str], path: Path | None) -> None:
    """Draw chi_t, the ratio of condition 4 and the bound for the methods and those they are compared with."""
    if path is None:
        if beside:
            raise MethodError("--beside goes with --plot FILE")
        return
    from generic_adam.answers.certificates import title
    from generic_adam.answers.plots import LONGEST, draw_check
    from generic_adam.methods import as_algorithm, build

    parts = subject.algorithm.parts
    methods = {title(part, is_part=len(parts) > 1): part.method for part in parts}
    methods |= {name: as_algorithm(build(name)).method for name in beside}
    write_plot(path, lambda: draw_check(methods, min(subject.algorithm.horizon or 10**6, LONGEST)))
