"""Tables of the catalogue and of the published recipes, decided anew at every build."""

from __future__ import annotations

from collections.abc import Callable

import generic_adam as ga
from generic_adam.methods.registry import ENTRIES, MethodInfo
from generic_adam.theory.certificate import Certificate

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
    for entry in ENTRIES:
        method = entry.build()
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
    return "\n\n".join(_section(entry) for entry in ENTRIES)


def _section(entry: MethodInfo) -> str:
    certificate = ga.certify(entry.build())
    arguments = ", ".join(f"{name}={value!r}" for name, value in entry.parameters.items())
    reasons = "\n".join(
        f"    - condition {condition.number} **{condition.status}**: {condition.reason}"
        for condition in certificate.conditions
    )
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
            reasons,
            "",
            f"<small>{entry.citation}</small>",
        ]
    )


def _headline(certificate: Certificate) -> str:
    if certificate.rate is not None:
        return f"certified, rate {certificate.rate}"
    first = certificate.first_failing
    return f"{certificate.verdict}" + (f": condition {first.number} {first.status}" if first else "")


GENERATORS: dict[str, Callable[[], str]] = {
    "methods-table": methods_table,
    "method-sections": method_sections,
}
