"""``generic-adam recipes``: the gallery of published recipes with what the certificate says about them."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generic_adam.theorems.gallery import Exhibit

_NOTE = (
    "ratio: condition 4's sum α_t √(1-θ_t) / (T α_T) at the recipe's last step T; its order is for T → ∞.\n"
    "* widely reported, the original text was not at hand. 'not certified' never means 'diverges'.\n"
    "generic-adam recipes NAME says more: the source, every condition, what the theorem does not cover."
)


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("recipes")
    def list_recipes(  # pyright: ignore[reportUnusedFunction]
        name: Annotated[str | None, typer.Argument(help="One recipe, in full.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    ) -> None:
        """Published recipes: verdict, first failing condition, ratio, rate, nearest certified change."""
        from generic_adam.cli.tables import make_console, print_json
        from generic_adam.methods.recipes import RECIPES, recipe
        from generic_adam.theorems.gallery import exhibit

        chosen = RECIPES if name is None else (recipe(name),)
        with make_console(stderr=True).status("reading the recipes"):
            exhibits = [exhibit(one) for one in chosen]
        if as_json:
            entries = [one.to_dict() for one in exhibits]
            print_json(entries if name is None else entries[0])
        elif name is None:
            _print_gallery(exhibits)
        else:
            _print_one(exhibits[0])


def _print_gallery(exhibits: "list[Exhibit]") -> None:
    from generic_adam.cli.tables import answer, print_table
    from generic_adam.methods.recipes import Evidence

    rows = []
    for one in exhibits:
        failing = one.first_failing
        mark = "*" if one.recipe.evidence is Evidence.KNOWN else ""
        rows.append(
            (
                one.recipe.name + mark,
                f"{one.recipe.horizon:,}",
                answer(one.certificate.verdict),
                "" if failing is None else f"{failing.number}: {_where(failing.witness)}",
                f"{one.ratio:.3g}",
                "" if one.certificate.ratio_order is None else str(one.certificate.ratio_order),
                _change(one),
                "" if one.nearest is None else str(one.nearest.rate),
            )
        )
    print_table(
        (
            "recipe",
            "steps",
            "verdict",
            "first failing",
            "ratio",
            "order",
            "nearest certified change",
            "its rate",
        ),
        rows,
        right=("steps", "ratio"),
    )
    print(_NOTE)


def _where(witness: int | str | None) -> str:
    return f"at t = {witness:,}" if isinstance(witness, int) else str(witness or "undecided")


def _change(one: "Exhibit") -> str:
    return "none found" if one.nearest is None else f"{one.nearest.changes}, {one.nearest.differs}"


def _print_one(one: "Exhibit") -> None:
    recipe = one.recipe
    known = "as read there" if recipe.evidence == "read" else "widely reported, the original was not at hand"
    print(f"{recipe.title}, {recipe.horizon:,} steps")
    print(f"source: {recipe.source} ({known})")
    print(one.certificate.explain())
    for sentence in recipe.outside:
        print(f"  not covered: {sentence}.")
    print(
        f"nearest certified change: {_change(one)}"
        + ("" if one.nearest is None else f", rate {one.nearest.rate}")
    )
