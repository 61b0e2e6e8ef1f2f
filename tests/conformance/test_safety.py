"""Finite gradients never make nan or inf, whatever their squares do."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.torch import AMSGrad, GenericAdam
from generic_adam.torch.scheduled import ScheduledOptimizer
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo, moments_of

CASES = [
    pytest.param(info, arguments, id=f"{info.name}-{index}")
    for info in OPTIMIZERS
    for index, arguments in enumerate(info.valid)
]
PAPERS = {"initial_v": 1e-8, "eps": 1e-16, "bias_correction": False}
PATHS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}
# One coordinate each: ordinary, always 0, squares to 0, squares to 1e38, squares to inf, tiny, the first 0
# only.
GRADIENTS = torch.tensor([1.0, 0.0, 1e-25, 1e19, 1e30, 1e-45, 0.0])
START = torch.tensor([1.0, -2.0, 0.5, 3.0, 1.0, 1.0, 1.0])


def steps(optimizer: ScheduledOptimizer, x: torch.nn.Parameter, gradients: list[torch.Tensor], repeat: int = 1) -> None:
    for _ in range(repeat):
        for g in gradients:
            x.grad = g.to(x.dtype).clone()
            optimizer.step()


def assert_finite_parameters(x: torch.Tensor) -> None:
    assert torch.isfinite(x.float()).all(), x


@pytest.mark.parametrize(("info", "arguments"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_zeros_and_extremes(info: OptimizerInfo, arguments: Mapping[str, Any], dtype: torch.dtype) -> None:
    x = torch.nn.Parameter(START.clone().to(dtype))
    optimizer = info.constructor([x], **arguments)
    later = GRADIENTS.clone()
    later[-1] = 1.0
    steps(optimizer, x, [GRADIENTS, later, -later, torch.zeros(7), later])
    steps(optimizer, x, [torch.zeros(7)], repeat=30)
    steps(optimizer, x, [later, -later], repeat=30)
    assert_finite_parameters(x)
    for moments in optimizer.state[x].values():
        assert not torch.isnan(moments).any()


# Up to half the largest float32: the difference of two gradients is then finite too.
FINITE = st.floats(width=32, allow_nan=False, min_value=-(2.0**127), max_value=2.0**127)


@pytest.mark.parametrize(("info", "arguments"), CASES)
@settings(max_examples=25)
@given(gradients=st.lists(st.lists(FINITE, min_size=3, max_size=3), min_size=1, max_size=15))
def test_any_finite_gradients(info: OptimizerInfo, arguments: Mapping[str, Any], gradients: list[list[float]]) -> None:
    x = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.0]))
    optimizer = info.constructor([x], **arguments)
    steps(optimizer, x, [torch.tensor(g) for g in gradients])
    assert_finite_parameters(x)


@pytest.mark.parametrize(("info", "arguments"), CASES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_parameters(info: OptimizerInfo, arguments: Mapping[str, Any], dtype: torch.dtype) -> None:
    x = torch.nn.Parameter(START.clone().to(dtype))
    optimizer = info.constructor([x], **arguments)
    gradients = torch.tensor([1.0, 0.0, 1e-7, 6e4, -6e4, 1e-3, 0.0])
    steps(optimizer, x, [gradients, torch.zeros(7), gradients], repeat=20)
    assert x.dtype == dtype
    assert_finite_parameters(x)
    # The state is in float32, where v can forget: in bfloat16, 0.999 v is v.
    assert {moment.dtype for moment in moments_of(optimizer.state[x]).values()} == {torch.float32}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_float32_rounded_once(path: str, dtype: torch.dtype) -> None:
    # One step from the same state: the float32 step, rounded to the parameter's dtype.
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(40, 10, generator=generator).to(dtype)
    g = torch.randn(40, 10, generator=generator).to(dtype)
    narrow, wide = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.float())
    narrow.grad, wide.grad = g, g.float()
    for x in (narrow, wide):
        GenericAdam([x], lr=0.1, weight_decay=0.1, **PATHS[path]).step()
    assert torch.equal(narrow.detach(), wide.detach().to(dtype))


@pytest.mark.parametrize("path", PATHS)
def test_a_tensor_larger_than_one_piece_is_widened_whole(path: str) -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 100_000, generator=generator).bfloat16()
    narrow, small, wide = (torch.nn.Parameter(x) for x in (start.clone(), start[0, :5].clone(), start.float()))
    narrow.grad, small.grad, wide.grad = start.clone(), start[0, :5].clone(), start.float()
    GenericAdam([small, narrow], lr=0.1, **PATHS[path]).step()
    GenericAdam([wide], lr=0.1, **PATHS[path]).step()
    assert torch.equal(narrow.detach(), wide.detach().bfloat16())
    assert torch.equal(small.detach(), wide.detach()[0, :5].bfloat16())


@pytest.fixture(params=[False, True], ids=["subnormals", "flushed"])
def flush_denormal(request: pytest.FixtureRequest) -> Iterator[None]:
    torch.set_flush_denormal(request.param)
    yield
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.usefixtures("flush_denormal")
def test_a_million_zero_gradients_and_then_one(path: str) -> None:
    # v_0 theta^t has underflowed after 900 steps. From then on a step changes nothing, so that the state
    # after 2,000 steps is the state after a million.
    x = torch.nn.Parameter(torch.ones(2))
    optimizer = GenericAdam([x], lr=0.1, theta=0.9, **PAPERS, **PATHS[path])
    steps(optimizer, x, [torch.zeros(2)], repeat=2_000)
    state = {key: optimizer.state[x][key].clone() for key in ("exp_avg", "exp_avg_sq")}
    steps(optimizer, x, [torch.zeros(2)])
    assert all(torch.equal(optimizer.state[x][key], moment) for key, moment in state.items())
    assert state["exp_avg_sq"].max().item() < 1e-44
    assert torch.equal(x.detach(), torch.ones(2))
    steps(optimizer, x, [torch.tensor([1.0, 0.0])])
    # m = 0.1, v = 0.1: the step is lr m / sqrt(v).
    torch.testing.assert_close(x.detach(), torch.tensor([1.0 - 0.1 * 0.1 / 0.1**0.5, 1.0]))


@pytest.mark.parametrize("path", PATHS)
def test_a_gradient_whose_square_underflows_makes_no_leap(path: str) -> None:
    # With v = 0 and eps = 0 the step of g = 1e-25 would be 1e-25/1e-38; with the paper's eps it is small.
    x = torch.nn.Parameter(torch.zeros(1))
    optimizer = GenericAdam([x], lr=0.1, theta=0.5, **PAPERS, **PATHS[path])
    steps(optimizer, x, [torch.full((1,), 1e-25)], repeat=500)
    assert optimizer.state[x]["exp_avg_sq"].item() < 1e-44
    assert abs(x.item()) < 0.1


@pytest.mark.parametrize("path", PATHS)
def test_amsgrad_keeps_an_overflow_as_its_maximum(path: str) -> None:
    x = torch.nn.Parameter(torch.zeros(2))
    optimizer = AMSGrad([x], lr=0.01, theta=0.9, **PATHS[path])
    steps(optimizer, x, [torch.tensor([1e30, 1.0])])
    steps(optimizer, x, [torch.ones(2)], repeat=1_100)
    assert_finite_parameters(x)
    assert torch.isinf(optimizer.state[x]["max_exp_avg_sq"][0])


@pytest.mark.parametrize("path", PATHS)
def test_theta_and_beta_may_round_to_one(path: str) -> None:
    # 1 - 2^-t is below 1, and is 1 in float64 from t = 54 on: v and m stand still, and stay finite.
    x = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    optimizer = GenericAdam([x], lr=1e-3, beta="1 - 0.5^t", theta="1 - 0.5^t", **PAPERS, **PATHS[path])
    steps(optimizer, x, [torch.ones(2, dtype=torch.float64)], repeat=80)
    assert optimizer.param_groups[0]["theta"] == 1.0
    assert_finite_parameters(x)
    # With g = 1 throughout, v_t = 1 - (1 - v_0) prod theta_i and m_t = 1 - prod beta_i are known.
    product = torch.prod(1 - 0.5 ** torch.arange(1, 81, dtype=torch.float64)).item()
    torch.testing.assert_close(
        optimizer.state[x]["exp_avg_sq"],
        torch.full_like(x, 1 - (1 - 1e-8) * product).detach(),
        rtol=1e-12,
        atol=0,
    )


@pytest.mark.parametrize("path", PATHS)
def test_non_finite_gradients_follow_torch(path: str) -> None:
    # As in torch.optim.Adam: nan spreads to its own coordinate and to no other.
    ours, theirs = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(3))
    optimizer = GenericAdam([ours], lr=0.1, **PATHS[path])
    peer = torch.optim.Adam([theirs], lr=0.1)
    for g in (torch.tensor([1.0, float("nan"), float("inf")]), torch.ones(3)):
        for x, one in ((ours, optimizer), (theirs, peer)):
            x.grad = g.clone()
            one.step()
    torch.testing.assert_close(ours.detach(), theirs.detach(), equal_nan=True)
    assert torch.isnan(ours[1])
    assert torch.isfinite(ours[0])
