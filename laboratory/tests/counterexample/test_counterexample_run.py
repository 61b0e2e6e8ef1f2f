"""A paused run ends in the same bits; one directory, one process, one run; results appear together."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from generic_adam.files import OutputError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import as_schedule
from generic_adam_laboratory.backends import Paused
from generic_adam_laboratory.counterexample import (
    AdaShift,
    Counterexample,
    LaneRecords,
    Plan,
    compile_kernels,
    kernels,
    simulate,
)
from generic_adam_laboratory.counterexample.simulation import Simulation
from generic_adam_laboratory.runs import checkpoint
from generic_adam_laboratory.runs import run as run_module
from generic_adam_laboratory.runs.records import damaged_files, read_manifest, write_manifest
from generic_adam_laboratory.runs.run import Run, Stages, carry_out, exclusive, open_run

ADAM = Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99)
PLAN = Plan(
    {
        "AdaEMA": Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/t"),
        "weights": Method.from_weights(alpha="0.5/sqrt(t)", beta=0.9, weights="t^0.5"),
        "AMSGrad": Algorithm(ADAM, running_maximum=True),
        "Padam": Algorithm(ADAM, running_maximum=True, power=0.125),
        "AdaShift": AdaShift(as_schedule("0.5/sqrt(t)")),
    },
    steps=3000,
    replicates=70,
    seed=3,
)


def same_bits(a: LaneRecords, b: LaneRecords) -> bool:
    return a.x.tobytes() == b.x.tobytes() and a.average_regret.tobytes() == b.average_regret.tobytes()


@contextmanager
def running(directory: Path, plan: Plan = PLAN, **options: Any) -> Iterator[Run]:
    with open_run(directory, plan.settings(), **options) as run:
        yield run


def stop_after(steps: int, number: int = signal.SIGINT) -> Callable[[int, int], None]:
    """A progress callback that sends a signal once, when that many steps have been made."""
    sent: list[int] = []

    def progress(done: int, _total: int) -> None:
        if done >= steps and not sent:
            sent.append(done)
            os.kill(os.getpid(), number)

    return progress


def pause(directory: Path, plan: Plan, steps: int, number: int = signal.SIGINT) -> Paused:
    with pytest.raises(Paused) as caught, running(directory, plan) as run:
        simulate(plan, block=50, run=run, progress=stop_after(steps, number))
    return caught.value


def checkpoints(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("checkpoint-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("form", ["stochastic", "deterministic"])
def test_a_paused_run_goes_on_to_the_same_bits(tmp_path: Path, form: str, number: int) -> None:
    plan = replace(PLAN, problem=Counterexample(form=form))
    before = signal.getsignal(number)
    stopped = pause(tmp_path, plan, 1000, number)
    assert (str(stopped), stopped.signal) == ("paused before t = 1,001", number)
    assert signal.getsignal(number) is before
    # Another number of threads and another block: the checkpoint knows of neither.
    with running(tmp_path, plan) as run:
        resumed = simulate(plan, threads=2, block=333, run=run)
    assert run.resumed_from == 1001
    assert same_bits(resumed, simulate(plan))


def test_a_run_paused_twice_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    for stop in (500, 2100):
        pause(tmp_path, PLAN, stop)
    with running(tmp_path) as run:
        assert same_bits(simulate(PLAN, run=run), simulate(PLAN))


def test_checkpoints_come_by_themselves_and_two_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "CHECKPOINT_SECONDS", 0.0)

    def fail_at_the_end(done: int, total: int) -> None:
        if done == total:
            raise MemoryError  # stands for anything that ends a process without a word

    with pytest.raises(MemoryError), running(tmp_path) as run:
        simulate(PLAN, block=700, run=run, progress=fail_at_the_end)
    assert checkpoints(tmp_path) == ["checkpoint-002101.npz", "checkpoint-002801.npz"]
    steps: list[int] = []
    with running(tmp_path) as run:
        resumed = simulate(PLAN, block=700, run=run, progress=lambda done, _total: steps.append(done))
    assert steps == [3000]
    assert same_bits(resumed, simulate(PLAN))


def test_stages_go_on_where_they_were(tmp_path: Path) -> None:
    plans = [replace(PLAN, steps=steps, seed=steps) for steps in (300, 500)]
    with pytest.raises(Paused) as caught, running(tmp_path) as run:
        carry_out(Stages(*(Simulation(plan, block=50) for plan in plans)), run, stop_after(400))
    assert str(caught.value) == "paused before t = 401"
    stages = Stages(*(Simulation(plan) for plan in plans))
    with running(tmp_path) as run:
        carry_out(stages, run)
    assert stages.is_finished
    assert stages.next_t == stages.steps + 1 == 801
    for plan, work in zip(plans, stages.works, strict=True):
        assert isinstance(work, Simulation)
        assert same_bits(work.records(), simulate(plan))


@pytest.mark.parametrize("damage", [b"", b"not a checkpoint", None])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    monkeypatch.setattr(run_module, "CHECKPOINT_SECONDS", 0.0)
    pause(tmp_path, PLAN, 1000)
    newest = tmp_path / checkpoints(tmp_path)[-1]
    raw = newest.read_bytes()
    newest.write_bytes(raw[: len(raw) // 2] if damage is None else damage)
    with running(tmp_path) as run:
        assert same_bits(simulate(PLAN, run=run), simulate(PLAN))
    assert run.resumed_from == 951
    assert len(run.complaints) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "a paused run whose seed is 3, this one's is 4; --restart replaces it"),
        ({"steps": 4000}, "whose steps is 3000, this one's is 4000"),
        ({"replicates": 71}, "whose replicates"),
        ({"methods": {"AdaEMA": ADAM}}, "whose methods"),
        ({"problem": Counterexample(start=0.5)}, "whose problem"),
    ],
)
def test_another_run_in_the_directory_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    pause(tmp_path, PLAN, 200)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")}
    other = replace(PLAN, **change)
    with pytest.raises(OutputError, match=message) as caught, running(tmp_path, other):
        pass
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")} == before
    with running(tmp_path, other, restart=True):
        assert checkpoints(tmp_path) == []


def test_a_checkpoint_with_pickled_objects_is_passed_over(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, identity=np.array([{"a": 1}], dtype=object))
    checkpoint.save(tmp_path, 7, buffer.getvalue(), "npz")
    with running(tmp_path) as run:
        assert same_bits(simulate(PLAN, run=run), simulate(PLAN))
    assert "cannot be read" in run.complaints[0]


HOLD = """
import sys
from generic_adam_laboratory.runs.run import open_run
with open_run(sys.argv[1], {"seed": 1}):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="in use"), running(tmp_path):
            pass
        holder.kill()
    with running(tmp_path):  # kill -9 leaves no stale lock
        pass


WRITING = """
import os, signal, sys
from pathlib import Path
from generic_adam.files import atomic_write
from generic_adam_laboratory.runs.run import published
folder = Path(sys.argv[1])
with published(folder) as aside, atomic_write(aside / "a.txt") as _, atomic_write(folder / "b.csv") as file:
    file.write("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_was_writing_is_cleared_away(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITING, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / ".b.csv.mine").touch()
    with exclusive(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == {".lock", ".b.csv.mine"}


def test_results_appear_together_and_then_the_checkpoints_go(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "a.txt").write_text("a")
        write_manifest(folder / "manifest.json", "command", PLAN.settings(), 1.0)

    with running(tmp_path) as run:
        simulate(PLAN, run=run)
        assert checkpoints(tmp_path) == ["checkpoint-003001.npz"]
        with pytest.raises(ZeroDivisionError), run.publish() as folder:
            write(folder / str(1 // 0))  # stands for a full disk or a figure that cannot be drawn
    assert checkpoints(tmp_path) == ["checkpoint-003001.npz"]
    assert {path.name for path in tmp_path.iterdir() if path.name != ".lock"} == set(checkpoints(tmp_path))

    with running(tmp_path) as run:
        steps: list[int] = []
        assert same_bits(simulate(PLAN, run=run, progress=lambda done, _total: steps.append(done)), simulate(PLAN))
        assert steps == []  # nothing is computed a second time
        with run.publish() as folder:
            write(folder)
            assert not (tmp_path / "a.txt").exists()
    assert {path.name for path in tmp_path.iterdir() if path.name != ".lock"} == {"a.txt", "manifest.json"}
    with running(tmp_path) as run:
        assert run.is_finished
    with (
        pytest.raises(OutputError, match="seed"),
        running(tmp_path, replace(PLAN, seed=5)),
    ):
        pass
    (tmp_path / "a.txt").write_text("b")
    assert damaged_files(tmp_path, read_manifest(tmp_path) or {}) == ["a.txt"]
    with running(tmp_path) as run:
        assert not run.is_finished


def test_progress_counts_the_steps() -> None:
    steps: list[int] = []
    simulate(replace(PLAN, steps=250), block=100, progress=lambda done, _total: steps.append(done))
    assert steps == [100, 200, 250]


def test_kernels_are_compiled_once() -> None:
    compile_kernels()
    compiled = len(kernels.advance.signatures)
    compile_kernels()
    assert len(kernels.advance.signatures) == compiled


def test_the_loops_are_vectorised_and_not_fused() -> None:
    # The promises behind speed and bits: several lanes a root, and no multiply-add fused of two operations.
    compile_kernels()
    cached = kernels.advance
    fresh = njit(nogil=True, error_model="numpy")(cached.py_func)
    fresh.compile(cached.signatures[0])
    code = fresh.inspect_llvm(fresh.signatures[0])
    assert re.search(r"<[248] x double> @llvm.sqrt", code)
    assert "fmuladd" not in code
    assert "llvm.fma" not in code


def kernel_cache_script(cache: Path) -> subprocess.CompletedProcess[str]:
    """Run two methods in a fresh process whose compiled loops are kept in `cache`."""
    script = """
from generic_adam_laboratory.counterexample import Plan, simulate
from generic_adam.methods import Algorithm, Method
print(simulate(Plan({"m": Method("0.5/sqrt(t)", 0.9, 0.99)}, 50)).final_x("m")[0].hex())
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


def test_without_a_place_for_the_kernels_they_are_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = kernel_cache_script(tmp_path / "file" / "cache")
    expected = simulate(Plan({"m": Method("0.5/sqrt(t)", 0.9, 0.99)}, 50)).final_x("m")[0].hex()
    assert (nowhere.returncode, nowhere.stdout.strip()) == (0, expected), nowhere.stderr
