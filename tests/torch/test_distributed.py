"""Two processes are one: DDP, FSDP2, ZeRO and distributed checkpoints follow a single process."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

pytestmark = [
    pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed"),
    pytest.mark.timeout(600),
]
ROOT = Path(__file__).parents[2]
TOGETHER = (
    "data_parallel",
    "fully_sharded",
    "zero_redundancy",
    "overlapping_is_refused",
    "save_on_two",
)


def launch(world: int, directory: Path, *checks: str) -> None:
    """Run the checks in so many processes, and end what has not ended after a while."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.torch.two_processes",
                str(rank),
                str(world),
                str(port),
                directory,
                *checks,
            ],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(world)
    ]
    for process in processes:
        try:
            process.wait(timeout=180)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What each check came to, by name and process: two processes, then one, then two again."""
    directory = tmp_path_factory.mktemp("distributed")
    launch(2, directory, *TOGETHER)
    launch(1, directory, "load_on_one_and_save")
    launch(2, directory, "load_on_two")
    return {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}


@pytest.mark.parametrize("check", [*TOGETHER, "load_on_two"])
def test_two_processes_follow_one(outcomes: Mapping[str, str], check: str) -> None:
    for rank in range(2):
        assert outcomes.get(f"{check}.{rank}", "did not finish") == "passed"


def test_one_process_goes_on_from_two(outcomes: Mapping[str, str]) -> None:
    assert outcomes.get("load_on_one_and_save.0", "did not finish") == "passed"
