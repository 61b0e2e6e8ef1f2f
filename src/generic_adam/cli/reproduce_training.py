"""``generic-adam reproduce lenet|resnet18|...``: the studies of networks, and what the guarantee costs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.run_options import Scheduler
from generic_adam.cli.training_plan import TrainingPlan

if TYPE_CHECKING:
    from generic_adam.experiments.distributed import Group
    from generic_adam.experiments.sweep import Advance, Pool

_ELAPSED = "elapsed.json"
_HELP = {
    "lenet": "Figure 2: LeNet on MNIST, seven methods.",
    "resnet18": "Figure 3: ResNet-18 on CIFAR-100, seven methods.",
    "resnet18-large-lr": "Figure 4: ResNet-18 with the larger learning rate.",
    "lenet-cost": "What the guarantee costs on LeNet: Adam as people use it against certified methods.",
    "resnet18-cost": "What the guarantee costs on ResNet-18.",
}


def register(app: typer.Typer) -> None:
    """Add the studies to ``reproduce``."""
    for name, text in _HELP.items():
        app.command(name, help=text)(_command(name))


def _command(name: str) -> Callable[..., None]:
    def command(
        epochs: Annotated[
            int | None, typer.Option(help="Length of each run; 100 in the paper.", show_default=False)
        ] = None,
        seeds: Annotated[int, typer.Option(help="Runs of each method, with seeds 0, 1, ...")] = 1,
        width: Annotated[
            int | None, typer.Option(help="ResNet-18's first width; 64 in the paper.", show_default=False)
        ] = None,
        blocks: Annotated[
            str, typer.Option(help="ResNet-18: 'usual' (2, 2, 2, 2) or 'paper' (1, 2, 2, 2).")
        ] = "usual",
        epsilon: Annotated[
            list[float] | None,
            typer.Option(help="v_0; may be given several times.", show_default="1e-8 and 1e-4"),
        ] = None,
        corrected: Annotated[
            bool, typer.Option("--corrected", help="Also Kingma and Ba's Adam: v_0 = 0 and bias correction.")
        ] = False,
        device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
        jobs: Annotated[
            int | None, typer.Option(help="Processes; by default one a core.", show_default=False)
        ] = None,
        scheduler: Scheduler = None,
        out: Annotated[
            Path | None, typer.Option(help="Directory for all results.", show_default="runs/ and the name")
        ] = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Directory of the data sets.", show_default="$GENERIC_ADAM_DATA, then the cache"
            ),
        ] = None,
        bf16: Annotated[
            bool, typer.Option("--bf16", help="Compute in bfloat16 where autocast allows.")
        ] = False,
        tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")] = False,
        quick: Annotated[
            bool, typer.Option("--quick", help="Seconds instead of hours: scikit-learn's digits.")
        ] = False,
    ) -> None:
        plan = TrainingPlan(
            name,
            epochs,
            seeds,
            width,
            blocks,
            tuple(epsilon or ()),
            corrected,
            device,
            jobs,
            scheduler,
            bf16,
            quick,
        )
        run_study(plan, out or Path("runs") / name, data, tensorboard=tensorboard)

    return command


def run_study(plan: TrainingPlan, out: Path, data: Path | None, *, tensorboard: bool) -> None:
    """Run a study, or what is left of it, and write its figure, records, claims, table and manifest."""
    from generic_adam.cli.training_progress import show_progress
    from generic_adam.cli.training_results import print_results, write_results
    from generic_adam.experiments.data import load
    from generic_adam.experiments.distributed import process_group
    from generic_adam.experiments.records import ensure_output_directory, write_json
    from generic_adam.experiments.run import exclusive
    from generic_adam.experiments.study_records import collect
    from generic_adam.experiments.sweep import run_sweep

    begun = time.perf_counter()
    study = plan.study()
    directory = ensure_output_directory(out)
    dataset = load(study.dataset, data)
    jobs = plan.jobs_of(study, directory, len(dataset.train_labels))
    place = None if data is None else str(data.absolute())
    with process_group(plan.device) as group:
        if not group.is_first:
            with _pool(plan, group) as pool:
                run_sweep(jobs, pool, data=place, device=plan.device)
            return
        earlier = _elapsed(directory)
        with (
            exclusive(directory),
            _pool(plan, group) as pool,
            show_progress(jobs, directory, tensorboard=tensorboard) as tell,
        ):

            def on_advance(done: Advance, seconds_left: float) -> None:
                tell(done, seconds_left)
                write_json(directory / _ELAPSED, {"seconds": earlier + time.perf_counter() - begun})

            try:
                run_sweep(jobs, pool, data=place, device=plan.device, on_advance=on_advance)
            except KeyboardInterrupt:
                typer.echo("stopped; the same command goes on from the last checkpoints", err=True)
                raise
    curves = collect(jobs, compare_epsilons=not plan.is_cost)
    files = write_results(plan, study, directory, jobs, curves, _elapsed(directory))
    print_results(study, curves)
    typer.echo("\n".join(f"wrote {path}" for path in files))


def _elapsed(directory: Path) -> float:
    """Seconds that commands have spent on this study so far; a manifest counts them all."""
    try:
        return float(json.loads((directory / _ELAPSED).read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0  # only the manifest's time is lost with it


@contextmanager
def _pool(plan: TrainingPlan, group: Group) -> Iterator[Pool]:
    from generic_adam.experiments.sweep import dask_pool, group_pool, local_pool

    if group.size > 1:
        yield group_pool(group)
    elif plan.scheduler is not None:
        with dask_pool(plan.scheduler) as pool:
            yield pool
    else:
        default = 1 if plan.device == "cuda" else os.cpu_count() or 1
        with local_pool(default if plan.jobs is None else plan.jobs) as pool:
            yield pool
