"""``generic-adam theorems``: what is known, which algorithms it covers, and where the proof is."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("theorems")
    def theorems(  # pyright: ignore[reportUnusedFunction]
        name: Annotated[str | None, typer.Argument(help="One theorem, in full.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    ) -> None:
        """List the theorems with what they cover, what they assume and where they are from."""
        from generic_adam.cli.tables import make_console, print_json, print_table, say
        from generic_adam.theorems.catalogue import REPORTED, THEOREMS, theorem_named

        chosen = THEOREMS if name is None else (theorem_named(name),)
        if as_json:
            fields = ("name", "title", "statement", "covered", "source")
            print_json(
                [
                    {field: getattr(one, field) for field in fields}
                    | {
                        "about": str(one.about),
                        "confidence": str(one.confidence),
                        "assumptions": list(one.assumptions),
                    }
                    for one in chosen
                ]
            )
            return
        if name is None:
            print_table(
                ("theorem", "covers", "how it is known"), [(o.name, o.covered, o.confidence) for o in chosen]
            )
            console = make_console()
            say(console, "Cited, never used to certify (constants or text not at hand):")
            for one in REPORTED:
                say(console, f"  {one.name}: {one.sentence}")
            return
        one = chosen[0]
        console = make_console()
        for line in (
            f"{one.title}: {one.statement}",
            f"  covers: {one.covered}",
            f"  assumes: {', '.join(one.assumptions)}",
            f"  source: {one.source} ({one.confidence})",
        ):
            say(console, line)
