"""What the processes of the distributed tests do; run as ``python -m tests.torch.two_processes``."""

import os
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from generic_adam.torch import GenericAdam

OPTIONS = {"lr": "0.05/sqrt(t)", "beta": 0.9, "theta": "1 - 1/max(t, 2)", "weight_decay": 0.01}
BATCH = 8


def network(dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    torch.manual_seed(0)
    # Sizes that two processes cannot share evenly, and one that leaves a process without a share.
    layers = [torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1)]
    return torch.nn.Sequential(*layers).to(dtype)


def batch(t: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(BATCH, 5, generator=torch.Generator().manual_seed(t), dtype=dtype)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, first: int, count: int) -> None:
    """Steps on this process's part of each batch; the mean over the processes is the whole batch's loss."""
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    for t in range(first, first + count):
        optimizer.zero_grad()
        model(batch(t).chunk(world)[rank]).square().mean().backward()
        optimizer.step()


def weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [x.full_tensor() if isinstance(x, DTensor) else x.detach() for x in model.parameters()]


def alone(count: int) -> list[torch.Tensor]:
    """The weights after `count` steps of one process, without torch.distributed."""
    model = network()
    optimizer = GenericAdam(model.parameters(), **OPTIONS)
    for t in range(1, count + 1):
        optimizer.zero_grad()
        model(batch(t)).square().mean().backward()
        optimizer.step()
    return weights(model)


def assert_close(left: list[torch.Tensor], right: list[torch.Tensor]) -> None:
    for x, y in zip(left, right, strict=True):
        torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-10, atol=1e-12)


def data_parallel(_: Path) -> None:
    model = DistributedDataParallel(network())
    train(model, GenericAdam(model.parameters(), **OPTIONS), 1, 12)
    assert_close(weights(model), alone(12))


def fully_sharded(_: Path) -> None:
    model = network()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    for path in ({}, {"fused": True}, {"foreach": True}, {"foreach": False}):
        with torch.no_grad():
            for x, y in zip(model.parameters(), network().parameters(), strict=True):
                x.copy_(_sharded_like(y, x))
        optimizer = GenericAdam(model.parameters(), **OPTIONS, **path)
        train(model, optimizer, 1, 12)
        assert_close(weights(model), alone(12))
        for x, moments in optimizer.state.items():
            # The state is sharded as its parameter is.
            tensors = (moments["exp_avg"], moments["exp_avg_sq"])
            assert {moment.placements for moment in tensors} == {x.placements}


def _sharded_like(tensor: torch.Tensor, like: DTensor) -> DTensor:
    return distribute_tensor(tensor.detach(), like.device_mesh, like.placements)


def zero_redundancy(_: Path) -> None:
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), GenericAdam, **OPTIONS)
    train(model, optimizer, 1, 6)
    # Each process has the state of a part of the parameters; gathered, it is the whole, and loads again.
    optimizer.consolidate_state_dict(to=0)
    saved = [optimizer.state_dict() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(saved, src=0)
    again = ZeroRedundancyOptimizer(model.parameters(), GenericAdam, **OPTIONS)
    again.load_state_dict(saved[0])
    train(model, again, 7, 6)
    assert_close(weights(model), alone(12))
    assert abs(again.param_groups[0]["lr"] - 0.05 / 13**0.5) < 1e-15


def overlapping_is_refused(_: Path) -> None:
    """torch asks for a functional optimizer of its own there, and says so."""
    model = DistributedDataParallel(network())
    try:
        ZeroRedundancyOptimizer(model.parameters(), GenericAdam, overlap_with_ddp=True, **OPTIONS)
    except ValueError as error:
        assert "GenericAdam" in str(error)  # noqa: PT017
    else:
        raise AssertionError("torch took it")


def _sharded_model() -> torch.nn.Module:
    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return model


def save_on_two(directory: Path) -> None:
    model = _sharded_model()
    optimizer = GenericAdam(model.parameters(), **OPTIONS)
    train(model, optimizer, 1, 5)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=directory / "two")


def load_on_two(directory: Path) -> None:
    model = _sharded_model()
    optimizer = GenericAdam(model.parameters(), **OPTIONS)
    _load(model, optimizer, directory / "one")
    train(model, optimizer, 9, 4)
    assert_close(weights(model), alone(12))


def _load(model: torch.nn.Module, optimizer: torch.optim.Optimizer, directory: Path) -> None:
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state: dict[str, Any] = {"model": model_state, "optimizer": optimizer_state}
    dcp.load(state, checkpoint_id=directory)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


def load_on_one_and_save(directory: Path) -> None:
    """In a process of its own, without a process group: steps 6 to 8."""
    model = network()
    optimizer = GenericAdam(model.parameters(), **OPTIONS)
    _load(model, optimizer, directory / "two")
    assert optimizer.param_groups[0]["step"] == 5
    train(model, optimizer, 6, 3)
    assert_close(weights(model), alone(8))
    model_state, optimizer_state = get_state_dict(model, optimizer)
    dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=directory / "one")


def main(rank: int, world: int, port: int, directory: Path, checks: list[str]) -> None:
    """Every check in turn; what came of it is left in a file for the test to show."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group("gloo", rank=rank, world_size=world)
    for name in checks:
        try:
            globals()[name](directory)
            outcome = "passed"
        except Exception:  # noqa: BLE001  (whatever it is, the test shows it)
            outcome = traceback.format_exc()
        (directory / f"{name}.{rank}").write_text(outcome)
        if outcome != "passed" and world > 1:
            # The other process may be waiting in a collective operation.
            os._exit(1)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
