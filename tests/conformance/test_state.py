"""Every optimizer's state: plain types, a round trip without a changed bit, copies that live on their own."""

import copy
import io
import pickle
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from generic_adam.torch import AdaShift, AdaUSM, GenericAdam, OptimizerError, Padam
from generic_adam.torch.scheduled import ScheduledOptimizer
from tests.conformance.optimizers import NUMBERS, OPTIMIZERS, OptimizerInfo, moments_of

CASES = [
    pytest.param(info, arguments, id=f"{info.name}-{index}")
    for info in OPTIMIZERS
    for index, arguments in enumerate(info.valid)
]
DTYPES = [torch.float32, torch.bfloat16, torch.complex64]


def parameters(dtype: torch.dtype = torch.float32) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(*shape, generator=generator).to(dtype)) for shape in ((3, 4), (5,))]


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
        assert isinstance(value, (str, int, float, bool, tuple, list, type(None), torch.Tensor))
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


@pytest.mark.parametrize(("info", "arguments"), CASES)
@pytest.mark.parametrize("how", ["itself", "deepcopy", "pickle"])
def test_a_state_loads_as_often_as_one_likes(info: OptimizerInfo, arguments: Mapping[str, Any], how: str) -> None:
    if how == "pickle":
        arguments = {key: value for key, value in arguments.items() if not callable(value)}
    straight, params = parameters(), parameters()
    one, other = info.constructor(straight, **arguments), info.constructor(params, **arguments)
    for t in range(1, 16, 3):
        steps(one, straight, t, 3)
        steps(other, params, t, 3)
        if how == "deepcopy":
            other, params = copy.deepcopy((other, params))
        elif how == "pickle":
            other, params = pickle.loads(pickle.dumps((other, params)))
        other.load_state_dict(other.state_dict())
        other.load_state_dict(copy.deepcopy(other.state_dict()))
    assert_same(straight, params)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("info", [pytest.param(info, id=info.name) for info in OPTIMIZERS])
@pytest.mark.parametrize("arguments", [{}, {"amsgrad": True}, {"reduction": "none"}], ids=str)
def test_a_state_that_does_not_fit_is_refused_and_nothing_changes(
    info: OptimizerInfo, arguments: Mapping[str, Any]
) -> None:
    params = parameters()
    try:
        optimizer = info.constructor(params, **arguments)
    except TypeError:
        pytest.skip(f"{info.name} has no {arguments}")
    steps(optimizer, params, 1, 12)
    whole = copy.deepcopy(optimizer.state_dict())
    keys = list(moments_of(whole["state"][0]))
    for key in keys:
        for wrong in (
            torch.zeros(whole["state"][0][key].numel() + 1),
            torch.zeros(0),
            torch.zeros(4, 3, dtype=torch.complex64),
            torch.zeros(whole["state"][0][key].shape, dtype=torch.complex64),
            torch.zeros(whole["state"][0][key].shape, device="meta"),
            torch.zeros(whole["state"][0][key].shape, dtype=torch.bool),
            torch.zeros(3, 4).to_sparse(),
            torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
            1.0,
            None,
            "text",
        ):
            damaged = copy.deepcopy(whole)
            damaged["state"][0][key] = wrong
            with pytest.raises(OptimizerError, match=f"the saved {key} of parameter 0 of group 0"):
                optimizer.load_state_dict(damaged)
        if key != "max_exp_avg_sq":
            damaged = copy.deepcopy(whole)
            del damaged["state"][1][key]
            with pytest.raises(OptimizerError, match=f"parameter 1 of group 0 has no '{key}'"):
                optimizer.load_state_dict(damaged)
    for key in whole["state"][0].keys() & NUMBERS:
        for wrong in (torch.zeros(2), torch.tensor(-1.0), torch.tensor(0.5j), torch.tensor(float("nan")), None, "text"):
            damaged = copy.deepcopy(whole)
            damaged["state"][0][key] = wrong
            with pytest.raises(OptimizerError, match=f"the saved {key}"):
                optimizer.load_state_dict(damaged)
    for change in (
        {"step": -1},
        {"step": "3"},
        {"lr": "0.1"},
        {"lr_schedule": 3},
        {"lr_schedule": "import os"},
    ):
        damaged = copy.deepcopy(whole)
        damaged["param_groups"][0].update(change)
        with pytest.raises(OptimizerError, match=r"the saved (step|lr)"):
            optimizer.load_state_dict(damaged)
    for damaged in ({}, {**whole, "state": []}, {**whole, "state": {0: torch.zeros(3)}}):
        with pytest.raises(OptimizerError):
            optimizer.load_state_dict(damaged)
    after = optimizer.state_dict()
    torch.testing.assert_close(after["state"], whole["state"], rtol=0, atol=0)
    assert after["param_groups"] == whole["param_groups"]
    steps(optimizer, params, 13, 1)


def test_a_state_of_another_width_is_refused() -> None:
    # torch's fused kernel would walk past the end of these.
    narrow, wide = torch.nn.Parameter(torch.zeros(64)), torch.nn.Parameter(torch.zeros(4096))
    saved, optimizer = GenericAdam([narrow]), GenericAdam([wide])
    narrow.grad, wide.grad = torch.ones(64), torch.ones(4096)
    saved.step()
    with pytest.raises(OptimizerError, match=re.escape("has the shape (64,); expected (4096,)")):
        optimizer.load_state_dict(saved.state_dict())
    optimizer.step()
    # Nor is a tensor that was put into the state by hand.
    for key in ("exp_avg", "exp_avg_sq"):
        kept, optimizer.state[wide][key] = optimizer.state[wide][key], torch.zeros(1)
        with pytest.raises(OptimizerError, match=re.escape("expected (4096,), as its parameter")):
            optimizer.step()
        optimizer.state[wide][key] = kept
    optimizer.step()


def test_tensors_of_another_size_are_noticed_whatever_their_id() -> None:
    x = torch.nn.Parameter(torch.zeros(4096))
    optimizer = GenericAdam([x])
    x.grad = torch.ones(4096)
    for _ in range(3):
        optimizer.step()
    for key in ("exp_avg", "exp_avg_sq"):
        # What comes after a tensor that has died often has its id.
        kept = optimizer.state[x].pop(key).clone()
        optimizer.state[x][key] = torch.zeros(1)
        with pytest.raises(OptimizerError, match=re.escape("has the shape (1,); expected (4096,)")):
            optimizer.step()
        optimizer.state[x][key] = kept
    optimizer.step()
    x.grad.resize_(1)
    with pytest.raises(OptimizerError, match="the gradient of parameter 0 of its group has the shape"):
        optimizer.step()


def test_elements_that_share_memory_are_parted() -> None:
    x = torch.nn.Parameter(torch.zeros(6))
    optimizer = GenericAdam([x])
    x.grad = torch.arange(6.0)
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0]["exp_avg"] = torch.zeros(1).expand(6)
    optimizer.load_state_dict(saved)
    optimizer.step()
    torch.testing.assert_close(optimizer.state[x]["exp_avg"], 0.1 * torch.arange(6.0))


@pytest.mark.parametrize(("info", "arguments"), CASES)
def test_options_younger_than_the_state_have_their_defaults(info: OptimizerInfo, arguments: Mapping[str, Any]) -> None:
    optimizer = info.constructor(parameters(), **arguments)
    for key in ("maximize", "foreach", "fused"):
        saved = optimizer.state_dict()
        if key in saved["param_groups"][0]:
            del saved["param_groups"][0][key]
            optimizer.load_state_dict(saved)
            assert optimizer.param_groups[0][key] is optimizer.defaults[key]


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (GenericAdam, {"initial_v": Fraction(1, 8), "eps": np.float32(0.5), "lr": Fraction(1, 8)}),
        (Padam, {"partial": Fraction(1, 4)}),
        (AdaShift, {"eps": np.float64(0.5), "weight_decay": Fraction(1, 8), "keep": np.int64(2)}),
        (AdaUSM, {"momentum": Fraction(1, 2), "interpolation": np.float64(0.5)}),
    ],
)
def test_numbers_of_any_kind_are_the_same_numbers(make: Any, options: dict[str, Any]) -> None:
    ours, theirs = parameters(), parameters()
    optimizer = make([{"params": ours[:1]}, {"params": ours[1:], **options}], **options)
    steps(optimizer, ours, 1, 3)
    saved = through_a_file(optimizer.state_dict())  # which holds Python's numbers alone
    optimizer.load_state_dict(saved)
    steps(optimizer, ours, 4, 3)
    plain = {key: int(value) if key == "keep" else float(value) for key, value in options.items()}
    steps(make(theirs, **plain), theirs, 1, 6)
    assert_same(ours, theirs)


def test_hooks_on_loading_see_and_change_what_is_loaded() -> None:
    params = parameters(torch.bfloat16)
    optimizer = GenericAdam(params)
    steps(optimizer, params, 1, 3)
    saved, seen = copy.deepcopy(optimizer.state_dict()), []

    def twice(_: object, state_dict: dict[str, Any]) -> dict[str, Any]:
        state = {k: {**v, "exp_avg": 2 * v["exp_avg"]} for k, v in state_dict["state"].items()}
        return {**state_dict, "state": state}

    optimizer.register_load_state_dict_pre_hook(twice)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o.state[params[0]]["exp_avg"].dtype))
    optimizer.load_state_dict(saved)
    assert torch.equal(optimizer.state[params[0]]["exp_avg"], 2 * saved["state"][0]["exp_avg"])
    assert seen == [torch.float32]


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
    assert other.param_groups[0]["lr"] == pytest.approx(0.1 / 3)
    assert other.param_groups[0]["theta"] == pytest.approx(3 / 4)


def test_a_state_of_another_optimizer_is_refused() -> None:
    params = parameters()
    with pytest.raises(OptimizerError, match="is not one of GenericAdam: it has a 'partial'"):
        GenericAdam(params).load_state_dict(Padam(params).state_dict())
    with pytest.raises(OptimizerError, match="is not one of Padam: it has no 'partial'"):
        Padam(params).load_state_dict(GenericAdam(params).state_dict())
    sgd = torch.optim.SGD(params, lr=0.1)
    with pytest.raises(OptimizerError, match="the state_dict is not one of GenericAdam"):
        GenericAdam(params).load_state_dict(sgd.state_dict())


def test_state_is_two_tensors_a_parameter() -> None:
    params = parameters()
    optimizer = GenericAdam(params)
    steps(optimizer, params, 1, 1)
    for moments in optimizer.state.values():
        assert moments_of(moments).keys() == {"exp_avg", "exp_avg_sq"}
