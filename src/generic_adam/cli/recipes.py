"""``generic-adam recipes``: published recipes with what is guaranteed for their own number of steps."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generic_adam.methods.recipes import Recipe
    from generic_adam.theorems.certificate import Certificate

_NOTE = (
    "noise, gap, drift: X_w/G_1 <= noise + gap (f(x_1) - f*)/G_1 + drift d L/G_1 after the recipe's own steps; at "
    "noise >= 1 the theory is silent. What no theorem covers (clipping, decay without a bound on the weights) is set "
    "aside in them. * widely reported, the original text was not at hand. 'not certified' never means 'diverges'."
)


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("recipes")
    def list_recipes(  # pyright: ignore[reportUnusedFunction]
        name: Annotated[str | None, typer.Argument(help="One recipe, in full.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    ) -> None:
        """Published recipes: what is guaranteed for their steps and for ever."""
        from generic_adam.cli.tables import make_console, print_json, say
        from generic_adam.methods.recipes import RECIPES, recipe
        from generic_adam.theorems.certificate import certify_algorithm

        chosen = RECIPES if name is None else (recipe(name),)
        with make_console(stderr=True).status("reading the recipes"):
            found = [(one, certify_algorithm(one.algorithm)) for one in chosen]
        if as_json:
            entries = [
                {
                    "name": one.name,
                    "evidence": str(one.evidence),
                    "source": one.algorithm.source,
                    **c.to_dict(),
                }
                for one, c in found
            ]
            print_json(entries if name is None else entries[0])
        elif name is None:
            _print_gallery(found)
        else:
            one, certificate = found[0]
            known = (
                "as read there" if one.evidence == "read" else "widely reported, the original was not at hand"
            )
            console = make_console()
            say(console, f"{one.algorithm.label}, {one.algorithm.horizon:,} steps")
            say(console, f"source: {one.algorithm.source} ({known})")
            for line in certificate.explain().splitlines()[1:]:
                say(console, line)
            for note in one.algorithm.notes:
                say(console, f"  note: {note}")


def _print_gallery(found: "list[tuple[Recipe, Certificate]]") -> None:
    from generic_adam.cli.tables import answer, make_console, print_table, say
    from generic_adam.methods.recipes import Evidence

    rows = []
    for one, certificate in found:
        reading = certificate.horizon
        numbers = ("", "", "")
        if reading is not None and reading.noise is not None:
            numbers = (f"{reading.noise:.3g}", f"{reading.gap:.3g}", f"{reading.drift:.3g}")
        says = (
            ""
            if reading is None
            else "informative"
            if reading.informative
            else _word(reading.noise, reading.outside)
        )
        mark = "*" if one.evidence is Evidence.KNOWN else ""
        steps = f"{one.algorithm.horizon:,}"
        theorem = "" if reading is None or reading.theorem is None else reading.theorem
        rows.append((one.name + mark, steps, *numbers, says, theorem, answer(str(certificate.verdict))))
    print_table(
        ("recipe", "steps", "noise", "gap", "drift", "for its run", "by", "for ever"),
        rows,
        right=("steps", "noise", "gap", "drift"),
    )
    say(make_console(), _NOTE)


def _word(noise: float | None, outside: tuple[str, ...]) -> str:
    if noise is not None and noise >= 1:
        return "silent"
    return "not covered" if outside or noise is None else "needs a bound on the weights"
