"""``generic-adam check``: what is guaranteed for this run and for ever, by which theorem, and what next?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.subject import AsJson, Plot, Subject, Theorem, method_names, with_subject
from generic_adam.errors import MethodError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generic_adam.theorems.certificate import Certificate

EXIT_CODES = {"certified": 0, "not certified": 1, "undecided": 3}


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("check", epilog=_EXAMPLES)
    @with_subject
    def check(  # pyright: ignore[reportUnusedFunction]
        subject: Subject,
        theorem: Theorem = None,
        as_json: AsJson = False,
        explain: Annotated[bool, typer.Option("--explain", help="Print the whole argument.")] = False,
        plot: Plot = None,
        against: Annotated[
            list[str] | None,
            typer.Option(
                "--against",
                metavar="METHOD",
                help="With --plot: one more of the catalogue. Can be repeated.",
                autocompletion=method_names,
            ),
        ] = None,
    ) -> None:
        """What is guaranteed, by which theorem? Exit code 0 certified for ever, 1 not, 3 undecided, 2 bad input."""
        from generic_adam.cli.tables import print_json
        from generic_adam.theorems.certificate import certify_algorithm

        certificate = certify_algorithm(subject.algorithm, theorem=theorem, assume=subject.assume)
        _draw(subject, against or (), plot)
        if as_json:
            print_json(certificate.to_dict())
        else:
            print_answer(certificate, subject, explain=explain)
        raise typer.Exit(EXIT_CODES[str(certificate.verdict)])


_EXAMPLES = """Examples:

generic-adam check adamw --steps 1e5

generic-adam check --lr 3e-4 --betas 0.9,0.95 --warmup 2000 --decay cosine --steps 600000

generic-adam check --recipe bert --explain"""
_NUMBERS = (
    "on a problem, noise + gap (f(x_1) - f*)/G + drift d L/G of what holds without a theorem is left at most: "
    "G sums the bounds on the gradient's d coordinates, L is its Lipschitz constant"
)


def print_answer(certificate: "Certificate", subject: Subject | None = None, *, explain: bool) -> None:
    """At most ten lines: the run first, then for ever, by which theorem, and what to ask next."""
    from generic_adam.cli.tables import make_console, say, say_sequences

    console = make_console()
    print_verdict(certificate)
    say_sequences(console, certificate.method, full=explain)
    if subject is not None and subject.used:
        say(console, f"  read from the file: {', '.join(subject.used)}")
        for note in certificate.algorithm.notes:
            say(console, f"  {note}")
    if explain:
        if certificate.horizon is not None and certificate.horizon.noise is not None:
            say(console, f"  {_NUMBERS}")
        for part in certificate.parts or (certificate,):
            console.print()
            if certificate.parts:
                say(console, f"{part.algorithm.label}: {part.verdict}", style="bold")
                say_sequences(console, part.method, full=True)
            for line in part.argument():
                say(console, line)
    for line in () if subject is None else _next_steps(certificate, subject, console.width):
        say(console, f"  {line}")


def _next_steps(certificate: "Certificate", subject: Subject, width: int) -> "Iterator[str]":
    """What to grant, where that may decide, and the command that says what to change."""
    reading, clip = certificate.horizon, certificate.algorithm.clipping
    in_the_way = certificate.deciding is None or (reading is not None and reading.outside)
    if in_the_way and clip is not None and clip.kind == "norm":
        limit = f"{clip.threshold:g}"
        yield f"if no gradient is longer than {limit}, so that clipping never acts: add --gradient-norm {limit}"
    elif reading is not None and reading.decay is None:
        yield "if the weights stay within some X: add --weights-bound X"
    if str(certificate.verdict) != "certified":
        command = f"next: generic-adam advise {subject.written}"
        fits = len(command) + 2 <= width
        yield (
            command if fits else "next: generic-adam advise, with the same options: what helps, and its price"
        )


def print_verdict(certificate: "Certificate") -> None:
    """What is certified, its answer for the run, where one is known, and its answer for ever."""
    from generic_adam.cli.tables import answer, make_console, say

    console = make_console()
    say(console, certificate.algorithm.label or "Generic Adam", style="bold")
    for line in () if certificate.horizon is None else certificate.horizon.lines():
        say(console, f"  {line}")
    say(console, "  for ever: ", answer(str(certificate.verdict)), certificate.why)


def _draw(subject: Subject, against: "list[str] | tuple[str, ...]", path: Path | None) -> None:
    """Draw chi_t, the ratio of condition 4 and the bound for the methods and those they are compared with."""
    if path is None:
        if against:
            raise MethodError("--against goes with --plot FILE")
        return
    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.figures import check_figure_path, write_figure
    from generic_adam.methods import as_algorithm, build
    from generic_adam.report.check_plot import LONGEST, draw_check

    check_figure_path(path)
    methods = {part.label or "the method": part.method for part in subject.algorithm.parts}
    methods |= {name: as_algorithm(build(name)).method for name in against}
    with make_console(stderr=True).status("drawing"):
        write_figure(draw_check(methods, min(subject.algorithm.horizon or 10**6, LONGEST)), path)
    typer.echo(f"wrote {path}", err=True)
