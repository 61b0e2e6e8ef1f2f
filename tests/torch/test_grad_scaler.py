"""Gradient scaling: the gradients are unscaled in the step, and a step with inf is no step."""

import pytest
import torch

from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo

EVERY = [pytest.param(info, id=info.name) for info in OPTIMIZERS]
PATHS = [{"fused": True}, {"foreach": True}, {"foreach": False}]


def parameter(dtype: torch.dtype = torch.float32) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.linspace(-1, 1, 6).to(dtype))


def loss(x: torch.Tensor, t: int) -> torch.Tensor:
    return torch.cos(x * t).sum()


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("unscale_first", [False, True])
def test_scaled_training_is_training(info: OptimizerInfo, *, unscale_first: bool) -> None:
    scaled, plain = parameter(), parameter()
    optimizer, other = info.constructor([scaled], lr="0.1/t"), info.constructor([plain], lr="0.1/t")
    # A power of two, so that scaling rounds nothing.
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4)
    for t in range(1, 16):
        optimizer.zero_grad()
        scaler.scale(loss(scaled, t)).backward()
        if unscale_first:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        other.zero_grad()
        loss(plain, t).backward()
        other.step()
    torch.testing.assert_close(scaled.detach(), plain.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("info", EVERY)
def test_a_step_with_inf_is_skipped_and_not_counted(info: OptimizerInfo) -> None:
    x = parameter()
    optimizer = info.constructor([x], lr="0.1/t")
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for t in range(1, 4):
        optimizer.zero_grad()
        scaler.scale(loss(x, t)).backward()
        scaler.step(optimizer)
        scaler.update()
    before, scale = x.detach().clone(), scaler.get_scale()
    scaler.scale(loss(x, 4)).backward()
    x.grad[0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(x, before)
    assert optimizer.param_groups[0]["step"] == 3
    assert scaler.get_scale() == scale / 2
    assert not hasattr(optimizer, "found_inf")


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_every_path_divides_by_the_scale(path: dict[str, bool], dtype: torch.dtype) -> None:
    info = OPTIMIZERS[0]
    scaled, plain = parameter(dtype), parameter(dtype)
    optimizer, other = info.constructor([scaled], lr=0.1, **path), info.constructor([plain], lr=0.1, **path)
    optimizer.grad_scale = torch.tensor(8.0)
    optimizer.found_inf = torch.tensor(0.0)
    scaled.grad, plain.grad = torch.full_like(plain, 4.0), torch.full_like(plain, 0.5)
    optimizer.step()
    other.step()
    assert torch.equal(scaled, plain)
