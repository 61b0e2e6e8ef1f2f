"""Tables of the catalogue and of the published recipes, decided anew at every build."""

from __future__ import annotations

from collections.abc import Callable

import generic_adam as ga
from generic_adam.methods import MethodInfo, as_algorithm, entries
from generic_adam.methods.recipes import RECIPES
from generic_adam.theorems.certificate import Certificate
from generic_adam.theorems.gallery import Exhibit, exhibit

BADGES = {"certified": "good", "not certified": "bad", "undecided": "open"}
BOXES = {"certified": "success", "not certified": "failure", "undecided": "question"}


def badge(verdict: str) -> str:
    """A verdict as a small label whose colour repeats, and never replaces, its word."""
    return f'<span class="badge {BADGES[verdict]}">{verdict}</span>'


def formula(text: str) -> str:
    """A schedule's text in a table cell: a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


def row(*cells: str) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def methods_table() -> str:
    """One line a method of the catalogue, with its defaults."""
    lines = [
        row("method", "α<sub>t</sub>", "β<sub>t</sub>", "θ<sub>t</sub>", "verdict", "rate"),
        row(*["---"] * 6),
    ]
    for entry in entries():
        method = as_algorithm(entry.build()).method
        certificate = ga.certify(method)
        lines.append(
            row(
                f"[{entry.name}](#{entry.name})",
                *(formula(str(sequence)) for sequence in (method.alpha, method.beta, method.theta)),
                badge(str(certificate.verdict)),
                rate(certificate),
            )
        )
    return "\n".join(lines)


def rate(certificate: Certificate) -> str:
    """The certified rate, or a dash."""
    return "–" if certificate.rate is None else f"`{certificate.rate}`"


def method_sections() -> str:
    """A section a method: what it is, how to build it, what each condition says, who published it."""
    return "\n\n".join(_section(entry) for entry in entries())


def _section(entry: MethodInfo) -> str:
    certificate = ga.certify(as_algorithm(entry.build()).method)
    arguments = ", ".join(f"{name}={value!r}" for name, value in entry.parameters.items())
    kind = BOXES[str(certificate.verdict)]
    return "\n".join(
        [
            f"### {entry.name} {{ #{entry.name} }}",
            "",
            f"{entry.summary[0].upper()}{entry.summary[1:]}.",
            "",
            "```python",
            f"ga.methods.{entry.name}({arguments})",
            "```",
            "",
            f'??? {kind} "{_headline(certificate)}"',
            _reasons(certificate),
            "",
            f"<small>{entry.citation}</small>",
        ]
    )


def _reasons(certificate: Certificate) -> str:
    return "\n".join(
        f"    - condition {condition.number} **{condition.status}**: {condition.reason}"
        for condition in certificate.conditions
    )


def _headline(certificate: Certificate) -> str:
    if certificate.rate is not None:
        return f"certified, rate {certificate.rate}"
    first = certificate.first_failing
    return f"{certificate.verdict}" + (f": condition {first.number} {first.status}" if first else "")


def recipes_gallery() -> str:
    """One line a published recipe, then a section each: the source, every condition, what is not covered."""
    exhibits = [exhibit(recipe) for recipe in RECIPES]
    header = ("recipe", "steps", "verdict", "first failing", "ratio", "order", "nearest certified change")
    lines = [row(*header), row("---", "--:", "---", "---", "--:", "---", "---")]
    lines += [_recipe_row(one) for one in exhibits]
    return "\n".join(lines) + "\n\n" + "\n\n".join(_recipe_section(one) for one in exhibits)


def _recipe_row(one: Exhibit) -> str:
    failing, order = one.first_failing, one.certificate.ratio_order
    return row(
        f"[{one.recipe.title}](#{one.recipe.name})",
        f"{one.recipe.horizon:,}",
        badge(str(one.certificate.verdict)),
        "–" if failing is None else f"condition {failing.number}",
        f"{one.ratio:.3g}",
        "–" if order is None else "constant" if str(order) == "1" else f"`{order}`",
        "–" if one.nearest is None else f"{one.nearest.changes} (rate `{one.nearest.rate}`)",
    )


def _recipe_section(one: Exhibit) -> str:
    recipe, method = one.recipe, one.recipe.method
    told = {"read": "read there", "known": "widely reported; the original text was not at hand"}
    lines = [
        f"### {recipe.title} {{ #{recipe.name} }}",
        "",
        f"{recipe.horizon:,} steps. Source: {recipe.source} ({told[str(recipe.evidence)]}).",
        "",
        "```text",
        f"alpha_t = {method.alpha}",
        f"beta_t  = {method.beta}",
        f"theta_t = {method.theta}",
        "```",
        "",
        f'??? {BOXES[str(one.certificate.verdict)]} "{_headline(one.certificate)}"',
        _reasons(one.certificate),
    ]
    lines += [f"    - not covered by the theorem: {sentence}." for sentence in recipe.outside]
    return "\n".join(lines)


GENERATORS: dict[str, Callable[[], str]] = {
    "methods-table": methods_table,
    "method-sections": method_sections,
    "recipes": recipes_gallery,
}
