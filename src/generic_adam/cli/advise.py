"""``generic-adam advise``: the certified methods nearest to a given one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.method_options import NamedMethod, remarks, with_method

if TYPE_CHECKING:
    from generic_adam.theorems.advice import Advice
    from generic_adam.theorems.certificate import Certificate

NO_ADVICE = 1


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("advise")
    @with_method
    def advise(  # pyright: ignore[reportUnusedFunction]
        named: NamedMethod,
        horizon: Annotated[
            float | None, typer.Option("--horizon", help="Also tune constants to this many steps.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    ) -> None:
        """Find the smallest change that certifies: exit code 0 if one is known or none needed, 1 if not."""
        from generic_adam.cli.check import whole_steps
        from generic_adam.theorems.advice import advise as find
        from generic_adam.theorems.certificate import certify

        certificate = certify(named.method)
        found = find(named.method, whole_steps(horizon))
        if as_json:
            print_as_json(named, certificate, found)
        else:
            print_for_people(named, certificate, found)
        raise typer.Exit(0 if found or certificate.rate is not None else NO_ADVICE)


def print_as_json(named: NamedMethod, certificate: "Certificate", found: Sequence["Advice"]) -> None:
    """The advice as JSON, nearest first, with the verdict on the method as given."""
    from generic_adam.cli.tables import print_json

    print_json(
        {
            "verdict": str(certificate.verdict),
            "advice": [one.to_dict() for one in found],
            "not_covered": list(named.outside),
            "notes": list(named.notes),
        }
    )


def print_for_people(named: NamedMethod, certificate: "Certificate", found: Sequence["Advice"]) -> None:
    """What is open, then each change with where it begins, its rate and its sequences."""
    from rich.text import Text

    from generic_adam.cli.tables import answer, make_console

    console = make_console()
    verdict = str(certificate.verdict)
    console.print(Text.assemble(f"{named.label}: ", answer(verdict)))
    open_condition = certificate.first_failing
    if open_condition is not None:
        console.print(
            Text(f"  condition {open_condition.number} {open_condition.status}: {open_condition.reason}")
        )
    else:
        console.print(Text(f"  certified as it is, with rate {certificate.rate}: nothing to change"))
    if open_condition is not None and not found:
        console.print(Text("  no certified change is known for a method of this form"))
    for number, one in enumerate(found, start=1):
        reach = f"for {one.horizon:,} steps" if one.horizon is not None else f"rate {one.rate}"
        console.print(Text(f"{number}. {one.changes} ({one.differs}; {reach})", style="bold"))
        method = one.method
        console.print(Text(f"     α_t = {method.alpha}   β_t = {method.beta}   θ_t = {method.theta}"))
    for line in remarks(named.outside, named.notes):
        console.print(Text(f"  {line}"))
