"""``generic-adam demo``: Adam failing, certified methods arriving, a known recipe read, and what to ask next."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm

STEPS, SEEDS = 2_000_000, 20
_NEXT = """Next:
  generic-adam check --lr 3e-4 --betas 0.9,0.95 --warmup 2000 --decay cosine --steps 600000
  generic-adam advise --recipe nanogpt
  generic-adam reproduce counterexample"""


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""
    app.command("demo", epilog="Example:  generic-adam demo --out runs/first")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("runs/demo"),
) -> None:
    """Show Adam failing where a certified method arrives, and read a recipe that everybody knows."""
    import numpy as np

    from generic_adam.cli.tables import answer, make_console, print_table
    from generic_adam.experiments.counterexample import Plan, simulate
    from generic_adam.experiments.counterexample.figures import draw_two_curves
    from generic_adam.experiments.figures import save_figure
    from generic_adam.experiments.records import ensure_output_directory
    from generic_adam.methods.recipes import recipe
    from generic_adam.theorems.certificate import certify_algorithm

    folder = ensure_output_directory(out)
    subjects = _contestants()
    certificates = {label: certify_algorithm(one) for label, one in subjects.items()}
    with make_console(stderr=True).status("compiling the inner loops (kept for later runs), then simulating"):
        records = simulate(Plan(subjects, steps=STEPS, replicates=SEEDS), threads=2)
    rows = [
        (
            label,
            answer(str(one.verdict)),
            one.theorem or "",
            one.rate or "",
            f"{np.median(records.final_x(label)):+.3f}",
        )
        for label, one in certificates.items()
    ]
    title = f"The counterexample of Reddi, Kale and Kumar, {STEPS:,} steps, {SEEDS} seeds: -1 is best, +1 is worst"
    print_table(("method", "for ever", "theorem", "rate", "ends at"), rows, title=title, right=("ends at",))
    print(
        "Not certified means that no theorem guarantees it. Here Adam does fail; on your problem it may not."
    )
    for path in save_figure(draw_two_curves(records), folder / "counterexample"):
        print(f"wrote {path}")
    known = recipe("nanogpt")
    certificate = certify_algorithm(known.algorithm)
    print(f"\n{known.algorithm.label}: for ever {certificate.verdict}")
    if certificate.horizon is not None:
        print(certificate.horizon.statement)
    print(f"\n{_NEXT}")


def _contestants() -> "dict[str, Algorithm]":
    """The same step size and momentum; what differs is the second moment."""
    from generic_adam.methods import Algorithm, Method

    adam = Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99)
    rising = Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
    return {
        "Adam": Algorithm(adam),
        "AMSGrad": Algorithm(adam, running_maximum=True),
        "certified Adam": Algorithm(rising),
    }
