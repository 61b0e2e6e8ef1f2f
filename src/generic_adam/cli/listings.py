"""``generic-adam methods``, ``recipes`` and ``theorems``: the entries that are known by name."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.answers.terminal import make_console, print_json, print_table, say
from generic_adam.cli.check import print_answer
from generic_adam.cli.subject import AsJson, recipe_names, theorem_names

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.theorems.certificate import Certificate

GALLERY = ("recipe", "steps", "guarantee", "long run", "assumed")
GALLERY_NOTE = (
    "Guarantee: after the recipe's own steps gradients average below this share of the size they have anyway. Lower is "
    "better; 100 % is trivial. It takes an initial loss gap and a curvature of 1, in units of the gradient, and what "
    '"assumed" says. "No guarantee" does not mean that a recipe diverges: each has trained models that people use.'
)


def methods(as_json: AsJson = False) -> None:
    """List the optimizers that are known by name."""
    from generic_adam.methods import as_algorithm, entries

    if as_json:
        found: list[Mapping[str, object]] = []
        for entry in entries():
            fields = {name: getattr(entry, name) for name in ("name", "summary", "citation", "parameters")}
            method = as_algorithm(entry.build()).method
            found.append(fields | {name: str(getattr(method, name)) for name in ("alpha", "beta", "theta")})
        print_json(found)
        return
    print_table(("method", "description"), [(one.name, one.summary) for one in entries()])
    say("generic-adam check NAME has the answer for one; --json has the sequences of each.")


def _named(text: str, known: Callable[[], list[str]]) -> typer.models.ArgumentInfo:
    return typer.Argument(metavar="NAME", help=text, autocompletion=known)


def recipes(
    name: Annotated[str | None, _named("One recipe, in full.", recipe_names)] = None, as_json: AsJson = False
) -> None:
    """List published recipes: what is guaranteed for their steps and in the long run."""
    from generic_adam.answers.json import summary
    from generic_adam.methods.recipes import recipe, recipes
    from generic_adam.theorems.certificate import certify_algorithm

    chosen = recipes() if name is None else (recipe(name),)
    with make_console(stderr=True).status("reading the recipes"):
        found = [(one, with_facts(one.algorithm)) for one in chosen]
    if as_json:
        entries = [
            {"name": one.name, "evidence": one.evidence, "source": one.algorithm.source, **summary(c)}
            | {"without_assumptions": str(certify_algorithm(one.algorithm).answer)}
            for one, c in found
        ]
        print_json(entries if name is None else entries[0])
    elif name is None:
        rows = [(one.name + "*" * (one.evidence == "known"), *gallery_row(c)) for one, c in found]
        print_table(GALLERY, rows, right=GALLERY[1:3])
        say(GALLERY_NOTE, "* widely reported; the original text was not at hand.")
    else:
        ((one, certificate),) = found
        known = "as read there" if one.evidence == "read" else "widely reported, the original was not at hand"
        print_answer(certificate, explain=True)
        say(f"source: {one.algorithm.source} ({known})")


def with_facts(x: "Algorithm") -> "Certificate":
    """Certify with what a recipe has to take for granted: a fixed loss, idle clipping, decaying weights within 1.

    Factored second moments and clipped updates are covered where the noise is symmetric alone.
    """
    from generic_adam.setting import Setting
    from generic_adam.theorems.certificate import certify_algorithm, of_origin, usual

    known = of_origin(x, Setting(), "recipe")
    if x.factored or (x.clipping is not None and x.clipping.kind == "update"):
        known = known.with_assumed(noise="symmetric")
    return certify_algorithm(x, setting=usual(x, known))


def gallery_row(certificate: "Certificate") -> tuple[str, ...]:
    """Return the cells below the headings `GALLERY` but for the name."""
    from generic_adam.answers.certificates import assumed_in_brief
    from generic_adam.schedules.balls import rounded_up

    run = certificate.horizon
    if run is None or not run.useful:
        return f"{run.steps:,}" if run else "–", str(certificate.answer), str(certificate.long_run), "–"
    below = f"{rounded_up(100 * (run.size or 0), 3)} %"
    return f"{run.steps:,}", below, str(certificate.long_run), ", ".join(assumed_in_brief(certificate.setting)) or "–"


def theorems(
    name: Annotated[str | None, _named("One theorem, in full.", theorem_names)] = None, as_json: AsJson = False
) -> None:
    """List the theorems with what they cover, what they assume and where they are from."""
    from generic_adam.theorems import THEOREMS, theorem_named
    from generic_adam.theorems.theorem import NOT_COVERED

    chosen = THEOREMS if name is None else (theorem_named(name),)
    if as_json:
        fields = (*("name", "title", "statement", "covered", "source"), *("about", "confidence", "assumptions"))
        print_json([{field: getattr(one, field) for field in fields} for one in chosen])
    elif name is None:
        rows = [(one.name, one.covered, one.confidence) for one in chosen]
        print_table(("theorem", "covers", "how it is known"), rows)
        more = "What a theorem assumes, and where its proof is: generic-adam theorems NAME"
        say(NOT_COVERED, _how_tight(0.9, 0.95), more)
    else:
        (one,) = chosen
        say(f"{one.title}: {one.statement}", f"  covers: {one.covered}")
        say(f"  assumes: {', '.join(one.assumptions)}", f"  source: {one.source} ({one.confidence})")


def _how_tight(beta: float, theta: float) -> str:
    """Say between which numbers the true floor of constants is."""
    from generic_adam.schedules.balls import rounded_up
    from generic_adam.theorems.horizon import constant_floor
    from generic_adam.theorems.tight import stall

    least = rounded_up(-stall(beta, theta).size, 2).removeprefix("-")
    most = rounded_up(constant_floor(beta, theta).noise, 2)
    return (
        f"How far from tight: with beta1 = {beta:g} and beta2 = {theta:g} the noise leaves at most {most} of the "
        f"trivial bound on every problem, and on some problem at least {least}."
    )
