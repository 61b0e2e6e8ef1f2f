"""Tables of the catalogue and of the published recipes, decided anew at every build."""

from __future__ import annotations

from collections.abc import Callable

import generic_adam as ga
from generic_adam.answers.certificates import long_run_rest, words_of
from generic_adam.cli.listings import GALLERY, GALLERY_NOTE, gallery_row, with_facts
from generic_adam.methods import MethodInfo, as_algorithm, entries
from generic_adam.methods.recipes import Recipe, recipes
from generic_adam.theorems.certificate import Certificate
from generic_adam.theorems.horizon import HorizonAnswer

BADGES = {"guaranteed": "good", "no guarantee": "bad", "unknown": "open"}
BOXES = {"guaranteed": "success", "no guarantee": "failure", "unknown": "warning"}


def badge(verdict: str) -> str:
    """Return a verdict as a small label whose colour repeats, and never replaces, its word."""
    return f'<span class="badge {BADGES[verdict]}">{verdict}</span>'


def row(*cells: str) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def methods_table() -> str:
    """One line a method of the catalogue, with its defaults."""
    lines = [
        row("method", "lr", "beta1", "beta2", "in the long run"),
        row(*["---"] * 5),
    ]
    for entry in entries():
        x, certificate = as_algorithm(entry.build()), ga.certify(entry.build())
        sequences = [f"`{one}`" for one in (x.method.alpha, x.method.beta, x.method.theta)]
        lines.append(
            row(
                f"[{entry.name}](#{entry.name})",
                *(sequences if x.preconditioned else (sequences[0], "–", "–")),
                badge(str(certificate.long_run)) + ("" if certificate.rate is None else f" `{certificate.rate}`"),
            )
        )
    return "\n".join(lines)


def method_sections() -> str:
    """Return a section a method: what it is, how to build it, what each condition says, who published it."""
    return "\n\n".join(_section(entry) for entry in entries())


def _section(entry: MethodInfo) -> str:
    certificate = ga.certify(entry.build())
    arguments = ", ".join(f"{name}={value!r}" for name, value in entry.parameters.items())
    kind = BOXES[str(certificate.long_run)]
    return "\n".join(
        [
            f"### {entry.name} {{ #{entry.name} }}",
            "",
            f"{_sentence(entry.summary)}.",
            "",
            "``` { .python .signature }",
            f"ga.methods.{entry.name}({arguments})",
            "```",
            "",
            f'??? {kind} "{_headline(certificate)}"',
            _reasons(certificate),
            "",
            f"<small>{entry.citation}</small>",
        ]
    )


def _sentence(text: str) -> str:
    """Text with a capital first letter, unless it begins with a name such as alpha_t or lr."""
    return text if "_" in text.split(maxsplit=1)[0] or text.startswith("lr ") else text[0].upper() + text[1:]


def _reasons(certificate: Certificate) -> str:
    lines = []
    for finding in certificate:
        if finding.covers:
            lines.append(f"    - {finding.title}: **{finding.verdict}**")
            lines += [f"        - {one.number} **{one.status}**: {one.reason}" for one in finding.conditions]
    return "\n".join(lines) or "\n".join(f"    - outside the theory: {one}" for one in certificate.outside)


def _headline(certificate: Certificate) -> str:
    return f"In the long run: {certificate.long_run}{long_run_rest(certificate)}".replace('"', "'")


def _answered() -> list[tuple[Recipe, Certificate, Certificate]]:
    return [(one, ga.certify(one.algorithm), with_facts(one.algorithm)) for one in recipes()]


def recipes_table() -> str:
    """Return one line a published recipe, and what the columns mean."""
    lines = [row(*GALLERY), row("---", "--:", "--:", "---", "---")]
    lines += [row(f"[{one.algorithm.label}](#{one.name})", *gallery_row(granted)) for one, _, granted in _answered()]
    return "\n".join([*lines, "", GALLERY_NOTE])


def recipe_sections() -> str:
    """Return a section a recipe: its sequences, its guarantee for the run, and the conditions for the long run."""
    return "\n\n".join(_recipe_section(*one) for one in _answered())


def _run(run: HorizonAnswer) -> str:
    """Return the answer for a run, and what it assumes beside it: a page has no lines below."""
    said, told, beyond = str(run).partition(", if what is assumed holds")
    return said + beyond + (f" (assumed: {'; '.join(run.needs)})" if told else "")


def _recipe_section(recipe: Recipe, certificate: Certificate, granted: Certificate) -> str:
    x, method = recipe.algorithm, recipe.algorithm.method
    runs = [_run(certificate.horizon)]
    if granted.horizon.needs:
        runs.append(_run(granted.horizon))
    if x.clipping is not None and x.clipping.kind == "norm" and not x.scaled:
        # Clipping that acts: symmetric noise, and gradients whose mean square is c^2.
        acting = ga.Setting(noise="symmetric", gradient_bound=x.clipping.threshold, weights_bound=1)
        there = ga.certify(x, setting=acting).horizon.symmetric
        runs.append(f"with symmetric noise and a root mean square of the gradients of c, {_run(there)}")
    told = {"read": "read there", "known": "widely reported; the original text was not at hand"}
    read = next(line.text for line in words_of(certificate) if line.label == "Read as").partition(": ")[2]
    sequences = (f"alpha_t = {method.alpha}", f"beta_t  = {method.beta}", f"theta_t = {method.theta}", *x.departures)
    lines = [
        f"### {x.label} {{ #{recipe.name} }}",
        "",
        f"{_sentence(read)}; {x.horizon:,} steps. Source: {x.source} ({told[recipe.evidence]}).",
        "",
        *(f"- {_sentence(run)}." for run in dict.fromkeys(runs)),
        "",
        f'??? {BOXES[str(certificate.long_run)]} "{_headline(certificate)}"',
        "    ```text",
        *(f"    {one}" for one in sequences),
        "    ```",
        "",
        _reasons(certificate),
    ]
    return "\n".join(lines)


GENERATORS: dict[str, Callable[[], str]] = {
    "methods-table": methods_table,
    "method-sections": method_sections,
    "recipe-sections": recipe_sections,
    "recipes-table": recipes_table,
}
