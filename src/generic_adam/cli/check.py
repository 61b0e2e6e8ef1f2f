"""``generic-adam check``: what is guaranteed for this run and in the long run, what it assumes, and what is next."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.answers.terminal import print_json, say, show, write_plot
from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson, Budget, Explain, Plot, Subject, Theorem, method_names, with_subject
from generic_adam.errors import MethodError, TheoremError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from generic_adam.answers.comparison import Comparison
    from generic_adam.theorems.advice import Advice
    from generic_adam.theorems.certificate import Certificate

_MORE = "generic-adam advise, same options"
_BESIDE = "With --plot: one more of the catalogue. Can be repeated."
_AGAINST = "An earlier answer, as --json printed it: what became better or worse."
_FAIL_ON = "Exit with 1 where the run has no useful guarantee, the long run has none, or --against is worse or differs."


class FailOn(StrEnum):
    """What makes `check` exit with 1."""

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
    """Check an optimizer configuration for a convergence guarantee; exit code 1 only where --fail-on asks for it."""
    from generic_adam.answers import certificates
    from generic_adam.answers.json import summary
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
        show([*told[:1], *([] if since is None else [since.line]), *told[1:]])
        if explain:
            say(*_explained(certificate, subject.used))
    asked = {
        FailOn.NO_GUARANTEE: certificate.answer != "guaranteed",
        FailOn.LONG_RUN: certificate.long_run != "guaranteed",
        FailOn.WORSE: since is not None and since.worse,
        FailOn.CHANGED: since is not None and bool(since.differences),
    }
    raise typer.Exit(Exit.NOT if any(asked[one] for one in wanted) else exit_code(certificate))


def _saved(path: Path) -> "Mapping[str, Any]":
    from generic_adam.answers.comparison import saved  # which brings the readers of optimizers

    return saved(path)


def _since(earlier: "Mapping[str, Any]", now: "Mapping[str, Any]") -> "Comparison":
    from generic_adam.answers.comparison import Comparison

    return Comparison(earlier, now)


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
