"""``generic-adam advise``: what would be guaranteed more, what changes, and what that costs the run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.subject import Subject, with_subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from generic_adam.theorems.advice import Advice
    from generic_adam.theorems.certificate import Certificate
    from generic_adam.theorems.horizon import HorizonAnswer


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("advise", epilog="Example:  generic-adam advise --recipe nanogpt --keep 500000")
    @with_subject
    def advise(  # pyright: ignore[reportUnusedFunction]
        subject: Subject,
        keep: Annotated[
            float | None,
            typer.Option(
                "--keep", metavar="STEPS", help="Up to which step it stays yours (three quarters of the run)."
            ),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
        plot: Annotated[
            Path | None,
            typer.Option("--plot", help="Draw the learning rates into this .svg, .png or .pdf file."),
        ] = None,
    ) -> None:
        """Algorithms near yours that are guaranteed more, nearest first, each with its price."""
        from generic_adam.cli.tables import make_console, print_json
        from generic_adam.theorems.advice import advise_algorithm
        from generic_adam.theorems.certificate import certify_algorithm

        x = subject.algorithm
        with make_console(stderr=True).status("asking the theorems"):
            certificate = certify_algorithm(x, assume=subject.assume)
            found = advise_algorithm(x, x.horizon, None if keep is None else int(keep))
        if plot is not None:
            _draw(subject, found, plot)
        if as_json:
            print_json({**certificate.to_dict(), "advice": [one.to_dict() for one in found]})
        else:
            print_advice(certificate, found)


def print_advice(certificate: "Certificate", found: "Sequence[Advice]") -> None:
    """The verdict, then each proposal: what changes, the guarantee, the price."""
    from generic_adam.cli.tables import answer, make_console, say, shortened

    console = make_console()
    label = certificate.algorithm.label or "Generic Adam"
    say(console, f"{label}: ", answer(str(certificate.verdict)), f" ({certificate.reason})")
    if certificate.horizon is not None:
        say(console, f"  {certificate.horizon.statement}")
    if not found:
        told = (
            "nothing to change"
            if str(certificate.verdict) == "certified"
            else "no change is known that helps"
        )
        say(console, f"  {told}")
    for number, one in enumerate(found, start=1):
        reach = f"for {one.horizon:,} steps" if one.horizon is not None else f"for ever, rate {one.rate}"
        console.print()
        say(console, f"{number}. {one.changes}", style="bold")
        verdict = answer(str(one.certificate.verdict)) if one.horizon is None else answer("meant")
        say(console, f"   {one.differs}; ", verdict, f" {reach}")
        if one.certificate.needs:
            say(console, f"   provided: {'; '.join(one.certificate.needs)}")
        if one.price is not None:
            rates = ", ".join(f"{ratio:.2g} at {share:.0%}" for share, ratio in one.price.rates)
            say(
                console, f"   price: {one.price.kept:.1%} of the summed step size is left; rate times {rates}"
            )
        if one.before is not None and one.after is not None:
            say(console, f"   noise, gap, drift: {_numbers(one.before)} before, {_numbers(one.after)} after")
        method = one.method
        say(
            console,
            f"   α_t = {shortened(method.alpha)}   β_t = {shortened(method.beta)}   θ_t = {shortened(method.theta)}",
        )


def _numbers(reading: "HorizonAnswer") -> str:
    if reading.noise is None:
        return "none"
    return f"{reading.noise:.3g}, {reading.gap:.3g}, {reading.drift:.3g}"


def _draw(subject: Subject, found: "Sequence[Advice]", path: Path) -> None:
    """Draw your learning rate and theta beside each proposal's."""
    from generic_adam.report.check_plot import draw_sequences
    from generic_adam.report.style import check_figure_path, write_figure

    check_figure_path(path)
    methods = {"yours": subject.algorithm.method} | {str(n): one.method for n, one in enumerate(found, 1)}
    write_figure(draw_sequences(methods, subject.algorithm.horizon or 10**6), path)
    typer.echo(f"wrote {path}", err=True)
