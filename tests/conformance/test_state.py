"""Every optimizer's state: plain types, a round trip without a changed bit, copies that live on their own."""

import copy
import io
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from generic_adam.torch import GenericAdam, OptimizerError, Padam
from generic_adam.torch.registry import OPTIMIZERS, OptimizerInfo
from generic_adam.torch.scheduled import ScheduledOptimizer

CASES = [
    pytest.param(info, arguments, id=f"{info.name}-{index}")
    for info in OPTIMIZERS
    for index, arguments in enumerate(info.valid)
]
DTYPES = [torch.float32, torch.bfloat16, torch.complex64]


def parameters(dtype: torch.dtype = torch.float32) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.nn.Parameter(torch.randn(*shape, generator=generator).to(dtype)) for shape in ((3, 4), (5,))
    ]


def steps(optimizer: ScheduledOptimizer, params: list[torch.nn.Parameter], first: int, count: int) -> None:
    for t in range(first, first + count):
        for x in params:
            x.grad = torch.cos(x.detach() * t)
        optimizer.step()


def through_a_file(state_dict: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state_dict, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def assert_same(left: list[torch.nn.Parameter], right: list[torch.nn.Parameter]) -> None:
    assert all(torch.equal(x, y) for x, y in zip(left, right, strict=True))


@pytest.mark.parametrize(("info", "arguments"), CASES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_resuming_from_a_file_changes_no_bit(
    info: OptimizerInfo, arguments: Mapping[str, Any], dtype: torch.dtype
) -> None:
    straight = parameters(dtype)
    optimizer = info.constructor(straight, **arguments)
    steps(optimizer, straight, 1, 12)
    saved = through_a_file(optimizer.state_dict())
    resumed = [torch.nn.Parameter(x.detach().clone()) for x in straight]
    # What has no text (a callable) must be given again, as it was; the rest comes from the file.
    again = {"amsgrad", "reduction", "initial_weight"}
    given = {key: value for key, value in arguments.items() if callable(value) or key in again}
    second = info.constructor(resumed, **given)
    second.load_state_dict(saved)
    steps(optimizer, straight, 13, 12)
    steps(second, resumed, 13, 12)
    assert_same(straight, resumed)
    assert second.param_groups[0]["step"] == 24


@pytest.mark.parametrize(("info", "arguments"), CASES)
def test_a_state_dict_is_a_checkpoint_not_a_view_of_the_schedules(
    info: OptimizerInfo, arguments: Mapping[str, Any]
) -> None:
    optimizer = info.constructor(parameters(), **arguments)
    group = optimizer.state_dict()["param_groups"][0]
    for value in group.values():
        assert isinstance(value, (str, int, float, bool, tuple, list, type(None)))
    # The optimizer itself still has its schedules.
    assert optimizer.state_dict()["param_groups"][0] == group


@pytest.mark.parametrize(("info", "arguments"), CASES)
@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_go_on_by_themselves(info: OptimizerInfo, arguments: Mapping[str, Any], how: str) -> None:
    if how == "pickle" and any(callable(value) for value in arguments.values()):
        arguments = {key: value for key, value in arguments.items() if not callable(value)}
    original = parameters()
    optimizer = info.constructor(original, **arguments)
    steps(optimizer, original, 1, 12)
    if how == "deepcopy":
        twin, copied = copy.deepcopy((optimizer, original))
    else:
        twin, copied = pickle.loads(pickle.dumps((optimizer, original)))
    before = [x.detach().clone() for x in copied]
    steps(optimizer, original, 13, 8)
    assert_same(copied, before)
    steps(twin, copied, 13, 8)
    assert_same(original, copied)
    twin.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))]})


def test_a_callable_must_be_given_again() -> None:
    params = parameters()
    optimizer = GenericAdam(params, lr=lambda t: 0.1 / t)
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["lr_schedule"].startswith("callable: ")
    with pytest.raises(OptimizerError, match="the saved lr was the Python callable"):
        GenericAdam(params, lr=0.1).load_state_dict(saved)


def test_the_saved_schedule_wins_over_the_constructors() -> None:
    params = parameters()
    saved = GenericAdam(params, lr="0.1/t", theta="1 - 1/(t+1)").state_dict()
    other = GenericAdam(params, lr=0.5)
    other.load_state_dict(saved)
    steps(other, params, 1, 2)
    assert other.param_groups[0]["lr"] == 0.05
    assert other.param_groups[0]["theta"] == pytest.approx(2 / 3)


def test_a_state_of_another_optimizer_is_refused() -> None:
    params = parameters()
    with pytest.raises(OptimizerError, match="the state_dict is not one of GenericAdam: it has no 'betas'"):
        GenericAdam(params).load_state_dict(Padam(params).state_dict())
    sgd = torch.optim.SGD(params, lr=0.1)
    with pytest.raises(OptimizerError, match="the state_dict is not one of GenericAdam"):
        GenericAdam(params).load_state_dict(sgd.state_dict())


def test_state_is_two_tensors_a_parameter() -> None:
    params = parameters()
    optimizer = GenericAdam(params)
    steps(optimizer, params, 1, 1)
    assert all(set(moments) == {"exp_avg", "exp_avg_sq"} for moments in optimizer.state.values())
