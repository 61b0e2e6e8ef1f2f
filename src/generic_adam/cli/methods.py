"""``generic-adam methods``: the catalogue."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("methods")
    def list_methods(  # pyright: ignore[reportUnusedFunction]
        as_json: Annotated[bool, typer.Option("--json", help="Print the catalogue as JSON.")] = False,
    ) -> None:
        """List the methods of the catalogue with their three sequences."""
        from generic_adam.cli.tables import print_json, print_table
        from generic_adam.methods import as_algorithm, entries

        built = [(entry, as_algorithm(entry.build()).method) for entry in entries()]
        if as_json:
            print_json(
                [
                    {
                        "name": entry.name,
                        "summary": entry.summary,
                        "citation": entry.citation,
                        "parameters": entry.parameters,
                        "alpha": str(method.alpha),
                        "beta": str(method.beta),
                        "theta": str(method.theta),
                    }
                    for entry, method in built
                ]
            )
            return
        print_table(
            ("method", "what it is", "α_t", "β_t", "θ_t"),
            [(entry.name, entry.summary, method.alpha, method.beta, method.theta) for entry, method in built],
        )
