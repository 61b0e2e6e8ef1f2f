"""What a study of networks leaves behind: figure, records, tables, claims, manifest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generic_adam.cli.training_plan import TrainingPlan
    from generic_adam.experiments.studies import Study
    from generic_adam.experiments.study_records import Curve
    from generic_adam.experiments.sweep import Job

_DATA = {"mnist": "MNIST", "cifar100": "CIFAR-100", "digits": "scikit-learn's digits"}


def write_results(
    plan: TrainingPlan, study: Study, directory: Path, jobs: list[Job], curves: list[Curve], seconds: float
) -> list[Path]:
    """Write what a reader needs, each file whole, and return the files."""
    from generic_adam.experiments.records import atomic_write, write_claims, write_manifest
    from generic_adam.experiments.study_records import write_study
    from generic_adam.experiments.training_claims import study_claims
    from generic_adam.report.training import final_table, plot_study

    files = [
        *plot_study(curves, _title(plan, study), directory / plan.name),
        write_study(directory / "records.csv", curves),
    ]
    with atomic_write(directory / "outcomes.md") as file:
        file.write(final_table(curves))
    files.append(directory / "outcomes.md")
    if not plan.is_cost:
        files += write_claims(directory, study_claims(curves, f"Section 5.2, {study.figure}"))
    settings = _settings(plan, study, jobs)
    files.append(write_manifest(directory / "manifest.json", plan.command(study), settings, seconds))
    return files


def _title(plan: TrainingPlan, study: Study) -> str:
    network = "LeNet"
    if study.network != "lenet":
        blocks = " with the paper's blocks" if plan.blocks == "paper" else ""
        network = f"ResNet-18{blocks}, width {study.width}"
    ending = ": what the guarantee costs" if plan.is_cost else f" (as in {study.figure} of the paper)"
    return f"{network}, {_DATA[study.dataset]}, {study.epochs} epochs{ending}"


def _settings(plan: TrainingPlan, study: Study, jobs: list[Job]) -> dict[str, object]:
    from generic_adam.experiments.settings import BATCH_SIZE

    settings = asdict(study) | {"seeds": plan.seeds, "device": plan.device, "bf16": plan.bf16}
    if plan.is_cost:  # its methods have learning rates and v_0 of their own
        settings = {
            key: value for key, value in settings.items() if key not in {"alpha", "epsilons", "figure"}
        }
    return settings | {"batch_size": BATCH_SIZE, "methods": [asdict(job.settings.optimizer) for job in jobs]}


def print_results(study: Study, curves: list[Curve]) -> None:
    """Print where each method stands after the last epoch."""
    from generic_adam.cli.tables import print_table
    from generic_adam.report.training import final_headings, final_rows

    headings = final_headings(curves)
    right = [heading for heading in headings if heading != "method"]
    print_table(headings, final_rows(curves), title=f"After epoch {study.epochs}", right=right)
