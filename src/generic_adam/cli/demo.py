"""``generic-adam demo``: the main job in one minute, certificates and then the counterexample's figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm, Method


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the figure and its records.")] = Path("runs/demo"),
) -> None:
    """Certify a few well-known methods, then draw a small run of the counterexample."""
    from generic_adam.cli.reproduce_lanes import counterexample
    from generic_adam.cli.tables import answer, make_console, print_table
    from generic_adam.theorems.certificate import certify_algorithm

    rows: list[tuple[object, ...]] = []
    for label, subject in _well_known().items():
        certificate = certify_algorithm(subject)
        rows.append(
            (label, answer(str(certificate.verdict)), certificate.theorem or "", certificate.rate or "")
        )
    print_table(("method", "for ever", "theorem", "rate"), rows, title="Does it converge, and how fast?")
    print("Not certified means that no theorem guarantees it. It does not mean that it diverges.")
    make_console().print("\nThe counterexample on which Adam fails, a small run of it:", style="bold")
    counterexample(quick=True, out=out, restart=True)


def _well_known() -> "dict[str, Method | Algorithm]":
    from generic_adam import methods

    return {
        "Adam": methods.adamw(weight_decay=0),
        "certified Adam": methods.certified_adam(),
        "AMSGrad": methods.amsgrad(),
        "AMSGrad, lr/sqrt(t)": methods.amsgrad(lr="1e-3/sqrt(t)"),
        "RMSProp": methods.rmsprop(),
        "AdaGrad": methods.adagrad(),
        "NosAdam-HH, r = 1": methods.nosadam_hh(r=1),
    }
