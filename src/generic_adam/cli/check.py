"""``generic-adam check``: what is guaranteed for this run and for ever, by which theorem, and what next?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.subject import Subject, with_subject
from generic_adam.errors import MethodError

if TYPE_CHECKING:
    from generic_adam.theorems.certificate import Certificate

EXIT_CODES = {"certified": 0, "not certified": 1, "undecided": 3}
_MEANING = {
    "certified": "it converges on every problem of the theorem, with rate {rate}",
    "not certified": "no theorem guarantees it, which is not to say that it fails on your problem",
    "undecided": "no theorem settles it",
}


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("check", epilog=_EXAMPLES)
    @with_subject
    def check(  # pyright: ignore[reportUnusedFunction]
        subject: Subject,
        theorem: Annotated[str | None, typer.Option("--theorem", help="Ask one theorem alone.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
        explain: Annotated[bool, typer.Option("--explain", help="Print the whole argument.")] = False,
        plot: Annotated[
            Path | None,
            typer.Option("--plot", help="Draw the certificate against t into this .svg, .png or .pdf file."),
        ] = None,
        against: Annotated[
            list[str] | None,
            typer.Option("--against", help="With --plot: another method of the catalogue. Can be repeated."),
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


_EXAMPLES = (
    "Examples:  generic-adam check adamw --steps 1e5   |   generic-adam check --lr 3e-4 --betas 0.9,0.95 "
    "--warmup 2000 --decay cosine --steps 600000   |   generic-adam check --recipe bert --explain"
)


def print_answer(certificate: "Certificate", subject: Subject, *, explain: bool) -> None:
    """At most ten lines: the run first, then for ever, by which theorem, and what to ask next."""
    from generic_adam.cli.tables import answer, make_console, say, shortened

    console = make_console()
    x = certificate.algorithm
    say(console, f"{x.label or 'Generic Adam'}: ", answer(str(certificate.verdict)), _for_ever(certificate))
    if certificate.needs:
        say(console, f"  provided: {'; '.join(certificate.needs)}")
    if certificate.horizon is not None:
        for line in certificate.horizon.lines():
            say(console, f"  {line}")
    say(console, f"  for ever: {_by(certificate)}{certificate.reason}")
    method = certificate.method
    say(
        console,
        f"  α_t = {shortened(method.alpha)}   β_t = {shortened(method.beta)}   θ_t = {shortened(method.theta)}",
    )
    if subject.used:
        say(console, f"  read from the file: {', '.join(subject.used)}")
    if explain:
        console.print()
        for line in certificate.explain().splitlines():
            say(console, line)
    elif str(certificate.verdict) != "certified":
        say(
            console, "  next: `generic-adam advise` with the same options finds what would be guaranteed more"
        )


def _for_ever(certificate: "Certificate") -> str:
    return f" ({_MEANING[str(certificate.verdict)].format(rate=certificate.rate or 'not known')})"


def _by(certificate: "Certificate") -> str:
    found = certificate.deciding
    return "" if found is None else f"{found.title}, "


def _draw(subject: Subject, against: "list[str] | tuple[str, ...]", path: Path | None) -> None:
    """Draw chi_t, the ratio of condition 4 and the bound for the methods and those they are compared with."""
    if path is None:
        if against:
            raise MethodError("--against goes with --plot FILE")
        return
    from generic_adam.cli.tables import make_console
    from generic_adam.methods import as_algorithm, build
    from generic_adam.report.check_plot import LONGEST, draw_check
    from generic_adam.report.style import check_figure_path, write_figure

    check_figure_path(path)
    methods = {part.label or "the method": part.method for part in subject.algorithm.parts}
    methods |= {name: as_algorithm(build(name)).method for name in against}
    with make_console(stderr=True).status("drawing"):
        write_figure(draw_check(methods, min(subject.algorithm.horizon or 10**6, LONGEST)), path)
    typer.echo(f"wrote {path}", err=True)
