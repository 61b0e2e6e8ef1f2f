"""``generic-adam check``: what is guaranteed for this run and for ever, by which theorem, and what next?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from generic_adam.answers.terminal import (
    answer,
    bold,
    make_console,
    print_json,
    say_in_brief,
    sequences,
    title,
    write_plot,
)
from generic_adam.cli.subject import AsJson, Budget, Explain, Plot, Subject, Theorem, method_names, with_subject
from generic_adam.errors import MethodError

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.setting import Setting
    from generic_adam.theorems.certificate import Certificate

EXIT_CODES = {"certified": 0, "not certified": 1, "undecided": 3}
_NUMBERS = (
    "on a problem, noise + gap (f(x_1) - f*)/G + drift d L/G of what holds without a theorem is left at most: "
    "G sums the bounds on the gradient's d coordinates, L is its Lipschitz constant"
)
_ANOTHER = "With --plot: one more of the catalogue. Can be repeated."


@with_subject
def check(
    subject: Subject,
    theorem: Theorem = None,
    as_json: AsJson = False,
    explain: Explain = False,
    budget: Budget = 1.0,
    plot: Plot = None,
    against: Annotated[
        list[str] | None, typer.Option(metavar="METHOD", help=_ANOTHER, autocompletion=method_names)
    ] = None,
) -> None:
    """What is guaranteed, by which theorem? Exit code 0 certified for ever, 1 not, 3 undecided, 2 bad input."""
    from generic_adam.theorems.certificate import certify_algorithm

    certificate = certify_algorithm(subject.algorithm, theorem=theorem, setting=subject.setting, budget=budget)
    _draw(subject, against or (), plot)
    if as_json:
        print_json(certificate.to_dict())
    else:
        print_answer(certificate, subject, explain=explain)
    raise typer.Exit(EXIT_CODES[str(certificate.verdict)])


def verdict_lines(certificate: "Certificate", *, explain: bool = False) -> dict[str, list[str | Text]]:
    """The answer for the run, where one is known, and the answer for ever; what fails is told once, here or below."""
    beside = [f"  {certificate.beside}"] if certificate.beside else []
    reading, certificate = certificate.horizon, certificate.plainly
    why, found = certificate.why, certificate.deciding
    run = [] if reading is None else [f"  {one}" for one in reading.lines()]
    told = None if reading is None else "; ".join(reading.outside) or reading.unknown
    failing = None if found is None else found.first_failing
    if told and why.endswith((f": {told}", f", {told}")):
        why = ", for the same reason"
    elif explain and found is not None and failing is not None:
        why = f"{why.partition(': ')[0]}: hypothesis {failing.number} of {found.title} below"
    for_ever = Text.assemble("  for ever: ", answer(certificate.verdict), why)
    return {"run": [*run[:1]], "numbers": [*run[1:]], "for ever": [for_ever, *beside]}


def print_answer(certificate: "Certificate", subject: Subject | None = None, *, explain: bool) -> None:
    """At most ten lines: the run first, then for ever, by which theorem, and what to ask next."""
    x, parts, used = certificate.algorithm, certificate.parts, () if subject is None else subject.used
    read = [f"  read from the file: {', '.join(used)}"] if used else []
    notes, steps = [f"  {one}" for one in x.notes], () if subject is None else _next_steps(certificate, subject)
    lines: dict[str, Sequence[str | Text]] = {
        "label": [bold(title(x))],
        **verdict_lines(certificate, explain=explain),
        "parts": [] if explain else [f"  {_said_of_part(one)}" for one in parts],
        "sequences": [] if parts else sequences(x, full=explain),
        "read": [*read, *notes],
        "argument": _argument(certificate) if explain else [],
        "next": [f"  {one}" for one in steps],
    }
    plainly = certificate.plainly
    by = "" if plainly.deciding is None else f" ({plainly.deciding.title})"
    keys = [f"  {len(used)} keys of the file were read (--explain says which)"] * bool(used)
    shorter: tuple[tuple[str, Sequence[str | Text]], ...] = (
        ("parts", [f"  {len(parts)} sets of parameter groups: --explain has each"] * bool(parts)),
        ("sequences", []),
        ("read", [*keys, *notes]),
        ("numbers", []),
        ("read", keys if used else ["  how it was read: --explain says it"] * bool(notes)),
        ("for ever", [Text.assemble("  for ever: ", answer(plainly.verdict), f"{by}, --explain says why")]),
        ("read", []),
    )
    say_in_brief(lines, () if explain else shorter)


def _argument(certificate: "Certificate") -> list[str | Text]:
    """What the three numbers mean, and what every theorem says of every part."""
    reading = certificate.horizon
    lines: list[str | Text] = [] if reading is None or reading.noise is None else [f"  {_NUMBERS}"]
    for part in certificate.parts or (certificate,):
        named = [bold(_said_of_part(part)), *sequences(part.algorithm, full=True)] if certificate.parts else []
        lines += ["", *named, *part.argument()]
    return [*lines, *certificate.not_covered()]


def _said_of_part(part: "Certificate") -> str:
    """What is said of the parameter groups that share their sequences, in a line."""
    run = "" if part.horizon is None else f"; {part.horizon.statement}"
    return f"{title(part.algorithm, is_part=True)}: for ever {part.verdict}{run}"


def _next_steps(certificate: "Certificate", subject: Subject) -> Iterator[str]:
    """What to grant, where that may decide, and the command that says what to change."""
    reading = certificate.horizon
    clipped = certificate.deciding is None or (reading is not None and bool(reading.outside))
    decays = reading is not None and reading.decay is None
    yield from grant(certificate.algorithm, subject.setting, clipped=clipped, decays=decays)
    if reading is None and certificate.algorithm.preconditioned:  # of SGD's, no theorem speaks by its rate alone
        yield "for your number of steps: add --steps T"
    if str(certificate.verdict) != "certified":
        command = f"next: generic-adam advise {subject.written}"
        yield (
            command if len(command) + 2 <= make_console().width else "next: generic-adam advise, with the same options"
        )


def grant(x: "Algorithm", setting: "Setting", *, clipped: bool = True, decays: bool = True) -> Iterator[str]:
    """What may be granted where clipping or decay stands in the way, in one line."""
    clip, asked = x.clipping, dict[str, str]()
    if clipped and clip is not None and clip.kind == "norm" and setting.gradient_norm is None:
        asked[f"--gradient-norm {clip.threshold:g}"] = "clipping never acts"
    if decays and str(x.decay) != "0" and setting.weights_bound is None:
        asked["--weights-bound X"] = "the weights stay within some X"
    if asked and not (x.outside or x.factored or x.centered):  # which nothing granted brings inside a theorem
        yield f"if {' and '.join(asked.values())}: add {' '.join(asked)}"


def _draw(subject: Subject, against: Sequence[str], path: Path | None) -> None:
    """Draw chi_t, the ratio of condition 4 and the bound for the methods and those they are compared with."""
    if path is None:
        if against:
            raise MethodError("--against goes with --plot FILE")
        return
    from generic_adam.answers.plots import LONGEST, draw_check
    from generic_adam.methods import as_algorithm, build

    parts = subject.algorithm.parts
    methods = {title(part, is_part=len(parts) > 1): part.method for part in parts}
    methods |= {name: as_algorithm(build(name)).method for name in against}
    write_plot(path, lambda: draw_check(methods, min(subject.algorithm.horizon or 10**6, LONGEST)))
