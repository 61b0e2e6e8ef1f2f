"""``generic-adam demo``: the main job in one minute, certificates and then the counterexample's figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generic_adam.methods import Method


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the figure and its records.")] = Path("runs/demo"),
) -> None:
    """Certify a few well-known methods, then draw a small run of the counterexample."""
    from generic_adam.cli.reproduce_lanes import counterexample
    from generic_adam.cli.tables import answer, make_console, print_table
    from generic_adam.theorems.certificate import certify

    rows: list[tuple[object, ...]] = []
    for label, method in _well_known().items():
        certificate = certify(method)
        failed = [f"{one.number}: {one.reason}" for one in certificate.conditions if one.status != "holds"]
        rows.append((label, answer(certificate.verdict), certificate.rate or "", "; ".join(failed)))
    print_table(
        ("method", "verdict", "rate", "condition that does not hold"),
        rows,
        title="Does it converge, and how fast?",
    )
    print("Not certified means that the sufficient condition is not met. It does not mean that it diverges.")
    make_console().print("\nThe counterexample on which Adam fails, a small run of it:", style="bold")
    counterexample(quick=True, out=out, restart=True)


def _well_known() -> "dict[str, Method]":
    from generic_adam import methods

    return {
        "Adam (lr 0.001)": methods.adam(),
        "Adam, lr/sqrt(t)": methods.adam(lr="0.001/sqrt(t)"),
        "Adam, repaired": methods.certified_adam(),
        "RMSProp": methods.rmsprop(),
        "AdaGrad": methods.adagrad(),
        "AdaEMA as published": methods.adaema(),
        "AdaEMA with max(t, 2)": methods.power_family(r=1, K=2),
        "halfway to AdaEMA, r = 1/2": methods.adam_to_adaema(r=0.5),
        "NosAdam-HH, r = 1": methods.nosadam_hh(r=1),
        "PaLM's set-up": methods.palm(),
    }
