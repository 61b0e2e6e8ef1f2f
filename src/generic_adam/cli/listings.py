"""``generic-adam methods``, ``recipes`` and ``theorems``: what is known by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.answers.terminal import make_console, print_json, print_table, say, shortened
from generic_adam.cli.check import print_answer
from generic_adam.cli.subject import AsJson, recipe_names, theorem_names

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.methods.recipes import Recipe
    from generic_adam.theorems.certificate import Certificate

_WIDEST = 120  # of a list that is piped or redirected
GALLERY = ("recipe", "steps", "noise", "gap", "drift", "gradients average", "assumed", "else")
_RECIPES_NOTE = (
    "noise, gap, drift: X_w/G_1 <= noise + gap (f(x_1) - f*)/G_1 + drift d L/G_1 after the recipe's own steps, "
    "clipping and decay set aside. 'gradients average' has decay in it, and gap and curvature of 1: the share of the "
    "size that gradients have anyway, lower is better. 'else' says what is left without what is assumed. * widely "
    "reported, the original text was not at hand."
)
_PROVIDED = {
    "gradient_norm": "no gradient above {:g}",
    "weights_bound": "weights within {:g}",
    "noise": "{} noise with one peak",
    "update_rms": "updates within {:g} before they are clipped",
}


def methods(as_json: AsJson = False) -> None:
    """List the methods of the catalogue with their three sequences."""
    from generic_adam.methods import as_algorithm, entries

    built = [(entry, as_algorithm(entry.build()).method) for entry in entries()]
    if as_json:
        fields, sequences = ("name", "summary", "citation", "parameters"), ("alpha", "beta", "theta")
        print_json(
            [
                {name: getattr(entry, name) for name in fields}
                | {name: str(getattr(method, name)) for name in sequences}
                for entry, method in built
            ]
        )
        return
    rows = [
        (entry.name, entry.summary, *(shortened(u, 40) for u in (method.alpha, method.beta, method.theta)))
        for entry, method in built
    ]
    print_table(("method", "what it is", "α_t", "β_t", "θ_t"), rows, spare=("α_t", "β_t", "θ_t"))


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
        return
    if name is None:
        _print_gallery(found)
        return
    one, certificate = found[0]
    known = "as read there" if one.evidence == "read" else "widely reported, the original was not at hand"
    print_answer(certificate, explain=True)
    say(f"source: {one.algorithm.source} ({known})")


def _print_gallery(found: "list[tuple[Recipe, Certificate]]") -> None:
    from generic_adam.theorems.certificate import certify_algorithm

    rows, long_run = [], dict[str, list[str]]()
    for one, granted in found:
        certificate = certify_algorithm(one.algorithm)
        rows.append((one.name + ("*" if one.evidence == "known" else ""), *gallery_row(certificate, granted)))
        long_run.setdefault(str(granted.long_run), []).append(one.name)
    print_table(GALLERY, rows, right=GALLERY[1:5], spare=("gap", "drift", "noise", "steps"))
    say(_RECIPES_NOTE, f"In the long run, with the same assumptions: {answers_of(long_run)}.")


def answers_of(named: "Mapping[str, Sequence[str]]") -> str:
    """Say which recipes have which answer in the long run."""
    told = "; ".join(f"{word}: {', '.join(names)}" for word, names in named.items())
    return f"{told} (no guarantee never means that it diverges)"


def with_facts(x: "Algorithm") -> "Certificate":
    """Certify with what a recipe has to take for granted: no clipping that acts, weights within 1.

    Factored second moments and clipped updates are covered where the noise is symmetric alone.
    """
    from generic_adam.setting import Setting
    from generic_adam.theorems.certificate import certify_algorithm, usual

    shared = x.factored or (x.clipping is not None and x.clipping.kind == "update")
    known = Setting().with_assumed(noise="symmetric") if shared else Setting()
    return certify_algorithm(x, setting=usual(x, known))


def gallery_row(certificate: "Certificate", granted: "Certificate") -> tuple[str, ...]:
    """Return the cells below the headings `GALLERY` but for the name, without and with what is taken for granted."""
    from generic_adam.schedules.balls import rounded_up

    reading: Any = certificate.horizon  # every recipe has its number of steps
    known: Any = granted.horizon
    numbers = (reading.noise, reading.gap, reading.drift)
    shown = ("–" if number is None else rounded_up(number, 3) for number in numbers)
    facts = granted.setting.facts.items()
    provided = ", ".join(_PROVIDED[name].format(fact.value) for name, fact in facts) if known.useful else ""
    below = str(known.answer)
    if known.useful:
        below = f"below {rounded_up(100 * known.size, 3)} %"
    return f"{reading.steps:,}", *shown, below, provided or "–", str(reading.answer) if provided else "–"


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
        print_table(("theorem", "covers", "how it is known"), rows, elsewhere=_WIDEST)
        more = "What a theorem assumes, and where its proof is: generic-adam theorems NAME"
        say(NOT_COVERED, _how_tight(0.9, 0.95), more, elsewhere=_WIDEST)
    else:
        (one,) = chosen
        say(f"{one.title}: {one.statement}", f"  covers: {one.covered}")
        say(f"  assumes: {', '.join(one.assumptions)}", f"  source: {one.source} ({one.confidence})")
