"""Checkpoints end in the same bits, Ctrl-C loses nothing, and a wrong checkpoint is one line."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from generic_adam.experiments.counterexample import (
    AdaShift,
    AMSGrad,
    Counterexample,
    ExperimentError,
    InterruptedRun,
    LaneRecords,
    Padam,
    Plan,
    compile_kernels,
    kernels,
    run,
    simulate,
)
from generic_adam.methods import Method
from generic_adam.schedules import as_schedule

ADAM = Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99)
PLAN = Plan(
    {
        "AdaEMA": Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/t"),
        "weights": Method.from_weights(alpha="0.5/sqrt(t)", beta=0.9, weights="t^0.5"),
        "AMSGrad": AMSGrad(ADAM),
        "Padam": Padam(ADAM),
        "AdaShift": AdaShift(as_schedule("0.5/sqrt(t)")),
    },
    steps=3000,
    replicates=70,
    seed=3,
)


def same_bits(a: LaneRecords, b: LaneRecords) -> bool:
    return a.x.tobytes() == b.x.tobytes() and a.average_regret.tobytes() == b.average_regret.tobytes()


def stop_after(steps: int):
    """A progress callback that presses Ctrl-C once, when that many steps have been made."""
    pressed = []

    def progress(done: int) -> None:
        if done >= steps and not pressed:
            pressed.append(done)
            os.kill(os.getpid(), signal.SIGINT)

    return progress


@pytest.mark.parametrize("form", ["stochastic", "deterministic"])
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path: Path, form: str) -> None:
    plan = replace(PLAN, problem=Counterexample(form=form))
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(InterruptedRun) as caught:
        simulate(plan, threads=2, block=100, checkpoint_path=path, progress=stop_after(1000))
    assert caught.value.next_t == 1001
    assert caught.value.checkpoint == path
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # Another number of threads and another block: the checkpoint knows of neither.
    resumed = simulate(plan, threads=1, block=333, checkpoint_path=path, resume=True)
    assert same_bits(resumed, simulate(plan))
    assert not path.exists()


def test_a_run_interrupted_twice_resumes_to_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    for stop in (500, 2100):
        with pytest.raises(InterruptedRun):
            simulate(PLAN, block=50, checkpoint_path=path, progress=stop_after(stop), resume=stop > 500)
    assert same_bits(simulate(PLAN, checkpoint_path=path, resume=True), simulate(PLAN))


def test_checkpoints_come_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "checkpoint.npz"

    def fail_at_the_end(done: int) -> None:
        if done == PLAN.steps:
            raise MemoryError  # stands for anything that ends a process without a word

    with pytest.raises(MemoryError):
        simulate(PLAN, block=700, checkpoint_path=path, progress=fail_at_the_end)
    steps: list[int] = []
    resumed = simulate(PLAN, block=700, checkpoint_path=path, resume=True, progress=steps.append)
    assert steps == [3000]
    assert same_bits(resumed, simulate(PLAN))


def test_a_run_without_checkpoint_stops_on_ctrl_c(tmp_path: Path) -> None:
    with pytest.raises(InterruptedRun) as caught:
        simulate(PLAN, block=100, progress=stop_after(300))
    assert caught.value.checkpoint is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "its seed is 3, this run's is 4"),
        ({"steps": 4000}, "its steps is 3000, this run's is 4000"),
        ({"replicates": 71}, "its replicates"),
        ({"methods": {"AdaEMA": ADAM}}, "its methods"),
        ({"problem": Counterexample(start=0.5)}, "its problem"),
    ],
)
def test_the_checkpoint_of_another_run_is_one_line(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(InterruptedRun):
        simulate(PLAN, block=100, checkpoint_path=path, progress=stop_after(200))
    with pytest.raises(ExperimentError, match=message) as caught:
        simulate(replace(PLAN, **change), checkpoint_path=path, resume=True)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut"])
def test_a_damaged_checkpoint_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(content)
    with pytest.raises(ExperimentError, match="damaged") as caught:
        simulate(PLAN, checkpoint_path=path, resume=True)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    np.savez(path, plan=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ExperimentError, match="damaged"):
        simulate(PLAN, checkpoint_path=path, resume=True)


def test_a_missing_checkpoint_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no checkpoint"):
        simulate(PLAN, checkpoint_path=tmp_path / "none.npz", resume=True)


def test_progress_counts_the_steps() -> None:
    steps: list[int] = []
    simulate(replace(PLAN, steps=250), block=100, progress=steps.append)
    assert steps == [100, 200, 250]


def test_kernels_are_compiled_once() -> None:
    compile_kernels()
    assert compile_kernels() < 1.0


def test_the_loops_are_vectorised_and_not_fused() -> None:
    # The promises behind speed and bits: several lanes a root, and no multiply-add fused of two operations.
    compile_kernels()
    cached = kernels.advance_generic_adam
    fresh = njit(nogil=True, error_model="numpy")(cached.py_func)
    fresh.compile(cached.signatures[0])
    code = fresh.inspect_llvm(fresh.signatures[0])
    assert re.search(r"<[248] x double> @llvm.sqrt", code)
    assert "fmuladd" not in code
    assert "llvm.fma" not in code
