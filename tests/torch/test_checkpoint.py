"""Training that began with torch.optim.Adam, or with version 0.1, goes on."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

import generic_adam.torch
from generic_adam.torch import GenericAdam, OptimizerError
from generic_adam.torch.checkpoint import one_minus_power


def parameters(dtype: torch.dtype = torch.float64) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(4, generator=generator, dtype=dtype)) for _ in range(2)]


def steps(optimizer: torch.optim.Optimizer, params: list[torch.nn.Parameter], first: int, count: int) -> None:
    for t in range(first, first + count):
        for x in params:
            x.grad = torch.cos(x.detach() * t)
        optimizer.step()


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("fused", [None, True])
@pytest.mark.parametrize(("torch_class", "weight_decay"), [(torch.optim.Adam, 0.0), (torch.optim.AdamW, 0.1)])
def test_it_continues_as_adam_would(
    *, torch_class: type, weight_decay: float, fused: bool | None, amsgrad: bool
) -> None:
    theirs = parameters()
    options = {"lr": 0.02, "betas": (0.8, 0.95), "weight_decay": weight_decay, "amsgrad": amsgrad}
    adam = torch_class(theirs, fused=fused, **options)
    steps(adam, theirs, 1, 25)
    ours = [torch.nn.Parameter(x.detach().clone()) for x in theirs]
    # lr, betas, eps, weight_decay and amsgrad are the saved ones, whatever the constructor had.
    optimizer = GenericAdam(ours, lr=9.0, bias_correction=True, initial_v=0.0)
    optimizer.load_state_dict(copy.deepcopy(adam.state_dict()))
    assert optimizer.param_groups[0]["step"] == 25
    steps(adam, theirs, 26, 100)
    steps(optimizer, ours, 26, 100)
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-11, atol=0)


def test_schedules_stay_and_t_goes_on() -> None:
    theirs = parameters()
    adam = torch.optim.Adam(theirs, lr=0.02)
    steps(adam, theirs, 1, 25)
    optimizer = GenericAdam(theirs, lr="0.1/sqrt(t)", theta="max(0.999, 1 - 1/t)")
    optimizer.load_state_dict(copy.deepcopy(adam.state_dict()))
    steps(optimizer, theirs, 26, 1)
    group = optimizer.param_groups[0]
    assert group["lr"] == pytest.approx(0.1 / 27**0.5)
    assert group["eps"] == 1e-8
    assert optimizer.state_dict()["param_groups"][0]["theta_schedule"] == "max(0.999, 1 - 1 / t)"
    assert [moments["step"] for moments in optimizer.state.values()] == [26, 26]


@pytest.mark.parametrize(("torch_class", "weight_decay"), [(torch.optim.Adam, 0.0), (torch.optim.AdamW, 0.1)])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_continues_as_it_would(*, torch_class: type, weight_decay: float, amsgrad: bool) -> None:
    ours = parameters()
    optimizer = GenericAdam(ours, lr=0.02, betas=(0.8, 0.95), weight_decay=weight_decay, amsgrad=amsgrad)
    steps(optimizer, ours, 1, 25)
    theirs = [torch.nn.Parameter(x.detach().clone()) for x in ours]
    adam = torch_class(theirs, lr=9.0)
    adam.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    steps(adam, theirs, 26, 100)
    steps(optimizer, ours, 26, 100)
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-11, atol=0)


def test_adam_hands_back_what_it_was_handed() -> None:
    # torch's keeps keys that it does not know as they were, the numbers of Generic Adam's correction among them.
    there, straight = parameters(), parameters()
    optimizer, adam = GenericAdam(there, lr=0.02), torch.optim.Adam(straight, lr=0.02)
    steps(adam, straight, 1, 40)
    steps(optimizer, there, 1, 10)
    peer = torch.optim.Adam(there, lr=9.0)
    peer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    steps(peer, there, 11, 20)
    optimizer.load_state_dict(copy.deepcopy(peer.state_dict()))
    assert optimizer.param_groups[0]["step"] == 30
    steps(optimizer, there, 31, 10)
    for x, y in zip(there, straight, strict=True):
        torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-11, atol=0)


def test_parameters_that_came_late_keep_their_own_count() -> None:
    theirs, ours = parameters(), parameters()
    adam, optimizer = torch.optim.Adam(theirs, lr=0.02), GenericAdam(ours, lr=0.02)

    def some_steps(first: int, count: int, used: tuple[int, ...]) -> None:
        for one, params in ((adam, theirs), (optimizer, ours)):
            for x in params:
                x.grad = None
            steps(one, [params[index] for index in used], first, count)

    def assert_same() -> None:
        for x, y in zip(ours, theirs, strict=True):
            torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-11, atol=1e-13)

    # The second comes late, the first pauses: both are corrected for the steps they were part of.
    some_steps(1, 30, (0,))
    some_steps(31, 20, (0, 1))
    some_steps(51, 10, (1,))
    some_steps(61, 20, (0, 1))
    assert_same()
    assert [moments["step"] for moments in optimizer.state.values()] == [70, 50]
    # Through a checkpoint of each kind.
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    some_steps(81, 5, (0, 1))
    assert_same()
    optimizer.load_state_dict(copy.deepcopy(adam.state_dict()))
    some_steps(86, 5, (0, 1))
    assert_same()
    adam.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    some_steps(91, 5, (0, 1))
    assert_same()


def test_a_new_adam_without_steps() -> None:
    params = parameters()
    optimizer = GenericAdam(params, bias_correction=True)
    optimizer.load_state_dict(torch.optim.Adam(params, lr=0.3, betas=(0.0, 0.9)).state_dict())
    assert optimizer.param_groups[0]["step"] == 0
    assert not optimizer.state_dict()["state"]
    assert optimizer.param_groups[0]["lr"] == 0.3


@pytest.mark.parametrize("mark", [None, torch.zeros(3), "yes"], ids=str)
def test_a_decay_that_may_be_either_is_refused(mark: Any) -> None:
    # Torch before 2.7 had AdamW as a class of its own, and did not save which of the two it was.
    params = parameters()
    state = torch.optim.Adam(params, weight_decay=0.1).state_dict()
    state["param_groups"][0]["decoupled_weight_decay"] = mark
    optimizer = GenericAdam(params, lr=0.5)
    with pytest.raises(OptimizerError, match=r"the saved weight_decay 0\.1 .* whether it is decoupled"):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_one_minus_power_does_not_cancel() -> None:
    assert one_minus_power(0.0, 0) == 0.0
    assert one_minus_power(0.0, 3) == 1.0
    assert one_minus_power(0.5, 2) == 0.75
    assert one_minus_power(1 - 2.0**-40, 1) == pytest.approx(2.0**-40, rel=1e-12)


@pytest.mark.parametrize("damage", [(0.5,), (0.5, 1.1), ("a", "b"), None, 0.5])
def test_damaged_corrections_of_a_group_are_refused(damage: Any) -> None:
    params = parameters()
    optimizer = GenericAdam(params)
    steps(optimizer, params, 1, 3)
    state = copy.deepcopy(optimizer.state_dict())
    for moments in state["state"].values():
        del moments["beta_correction"], moments["theta_correction"]
    # As version 0.1 had them, rounded up by one unit in the last place.
    state["param_groups"][0]["bias_corrections"] = (0.271, 1.0 + 2.0**-52)
    optimizer.load_state_dict(state)
    assert optimizer.state[params[0]]["beta_correction"] == 0.271
    state["param_groups"][0]["bias_corrections"] = damage
    with pytest.raises(OptimizerError, match=r"the saved (bias_corrections are|(beta|theta)_correction of)"):
        optimizer.load_state_dict(state)
    assert optimizer.state[params[0]]["beta_correction"] == 0.271


# Written by version 0.1: each class after 12 steps of the gradients of `steps`, and where 12 more led it.
SAVED = torch.load(Path(__file__).with_name("state_dicts_0_1.pt"), weights_only=True)


@pytest.mark.parametrize("saved", SAVED, ids=lambda saved: f"{saved['class']}-{saved['arguments']}")
@pytest.mark.parametrize("lacking", [(), ("maximize", "foreach", "fused", "weight_decay")], ids=str)
def test_a_state_of_version_0_1_goes_on(saved: dict[str, Any], lacking: tuple[str, ...]) -> None:
    params = [torch.nn.Parameter(x.clone()) for x in saved["parameters"]]
    state_dict = copy.deepcopy(saved["state_dict"])
    for key in lacking:
        # A state that is older still, by an option that was at its default.
        if key not in saved["arguments"]:
            state_dict["param_groups"][0].pop(key, None)
    given = {key: value for key, value in saved["arguments"].items() if key in {"reduction", "amsgrad"}}
    optimizer = getattr(generic_adam.torch, saved["class"])(params, **given)
    for _ in range(2):
        optimizer.load_state_dict(state_dict)
        state_dict = copy.deepcopy(optimizer.state_dict())
    steps(optimizer, params, 13, 12)
    exact = params[0].dtype is torch.float64
    for x, y in zip(params, saved["after_twelve_more"], strict=True):
        torch.testing.assert_close(x.detach(), y, rtol=1e-12 if exact else 1e-2, atol=0)
