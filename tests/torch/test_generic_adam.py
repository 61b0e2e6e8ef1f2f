"""Generic Adam as a torch optimizer among others: groups, schedulers, hooks, closures, layouts."""

import copy
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import ExponentialLR, LinearLR, OneCycleLR, StepLR
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from generic_adam import certify, methods, reference
from generic_adam.errors import ScheduleError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import bias_correction, sqrt, theta_from_weights
from generic_adam.torch import AdaShift, AMSGrad, GenericAdam, OptimizerError, Padam, WeightedAdaEMA
from generic_adam.torch.kernels import form
from generic_adam.torch.rules import UnsupportedError
from generic_adam.torch.tensors import Bucket
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo

PAPERS = {"initial_v": 1e-8, "eps": 1e-16, "bias_correction": False}
PATHS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}


def parameter(*shape: int, dtype: torch.dtype = torch.float64) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.linspace(-1, 1, int(np.prod(shape)), dtype=dtype).reshape(shape))


def steps(optimizer: torch.optim.Optimizer, params: list[torch.nn.Parameter], first: int, count: int) -> None:
    for t in range(first, first + count):
        for x in params:
            x.grad = torch.cos(x.detach() * t)
        optimizer.step()


def expected(start: torch.Tensor, method: Method, count: int, initial_v: float = 1e-8, first: int = 1) -> np.ndarray:
    """The reference on the same gradients; `first` is the t of its first step."""

    def gradient(x: np.ndarray, t: int) -> np.ndarray:
        return np.cos(x * (t + first - 1))

    return reference.generic_adam(method, gradient, start.detach().numpy(), count, initial_v).points[-1]


# --- what the groups show ---


def test_scheduled_values_show_in_the_groups() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr="1/t", beta="0.9^t", theta="1 - 1/(t+1)")
    group = optimizer.param_groups[0]
    for t in range(1, 5):
        # What the next step will use, as with torch's own schedulers.
        values = (group["lr"], group["beta"], group["theta"])
        assert values == pytest.approx((1 / t, 0.9**t, 1 - 1 / (t + 1)), rel=1e-15)
        assert group["betas"] == values[1:]
        before = x.detach().clone()
        steps(optimizer, [x], t, 1)
        assert optimizer.used(group)[1:] == values[1:]
        assert group["step"] == t
        assert not torch.equal(x, before)


def test_text_schedule_callable_and_method_are_the_same() -> None:
    method = Method(alpha="0.1/sqrt(t)", beta=0.9, theta="1 - 1/(t+1)")
    makers = [
        lambda x: GenericAdam([x], lr="0.1/sqrt(t)", beta="0.9", theta="1 - 1/(t+1)", **PAPERS),
        lambda x: GenericAdam([x], lr=method.alpha, beta=method.beta, theta=method.theta, **PAPERS),
        lambda x: GenericAdam([x], lr=lambda t: 0.1 / t**0.5, theta=lambda t: 1 - 1 / (t + 1), **PAPERS),
        lambda x: GenericAdam([x], "0.1/sqrt(t)", (0.9, "1 - 1/(t+1)"), **PAPERS),
        lambda x: GenericAdam.from_method([x], method),
        lambda x: WeightedAdaEMA([x], lr="0.1/sqrt(t)", beta=0.9, weights=1.0),
    ]
    for make in makers:
        x = parameter(5)
        steps(make(x), [x], 1, 60)
        np.testing.assert_allclose(x.detach().numpy(), expected(parameter(5), method, 60), rtol=1e-11, atol=1e-13)


def test_groups_have_their_own_schedules() -> None:
    first, second, third = parameter(4), parameter(4), parameter(4)
    optimizer = GenericAdam(
        [
            {"params": [first]},
            {"params": [second], "lr": "0.2/t", "betas": (0.5, 0.9)},
            {"params": [third], "theta": "1 - 1/(t+1)", "initial_v": 1.0},
        ],
        lr=0.01,
        **PAPERS,
    )
    steps(optimizer, [first, second, third], 1, 40)
    for x, method, initial_v in (
        (first, Method(alpha=0.01, beta=0.9, theta=0.999), 1e-8),
        (second, Method(alpha="0.2/t", beta=0.5, theta=0.9), 1e-8),
        (third, Method(alpha=0.01, beta=0.9, theta="1 - 1/(t+1)"), 1.0),
    ):
        np.testing.assert_allclose(
            x.detach().numpy(), expected(parameter(4), method, 40, initial_v), rtol=1e-11, atol=1e-13
        )


def test_a_group_added_later_starts_at_the_present_t() -> None:
    early, late = parameter(4), parameter(4)
    optimizer = GenericAdam([early], lr="0.1/t", theta="1 - 1/(t+1)", **PAPERS)
    steps(optimizer, [early], 1, 10)
    optimizer.add_param_group({"params": late})
    steps(optimizer, [early, late], 11, 10)
    shifted = Method(alpha="0.1/(t+10)", beta=0.9, theta="1 - 1/(t+11)")
    np.testing.assert_allclose(late.detach().numpy(), expected(parameter(4), shifted, 10, first=11), rtol=1e-11)
    assert [group["step"] for group in optimizer.param_groups] == [20, 20]


def _regroup(optimizer: torch.optim.Optimizer, how: str) -> None:
    groups = optimizer.param_groups
    if how == "a group is taken out and added again":
        optimizer.add_param_group({"params": groups.pop(0)["params"]})
    elif how == "a group is replaced by a copy":
        groups[0] = dict(groups[0])
    elif how == "a parameter moves to the next group":
        groups[1]["params"].append(groups[0]["params"].pop())
    elif how == "a parameter moves to the group before":
        groups[0]["params"].append(groups[1]["params"].pop(0))
    else:
        optimizer.add_param_group({"params": [groups[0]["params"].pop()]})


@pytest.mark.parametrize("seen", [False, True], ids=["private", "seen before"])
@pytest.mark.parametrize(
    "how",
    [
        "a group is taken out and added again",
        "a group is replaced by a copy",
        "a parameter moves to the next group",
        "a parameter moves to the group before",
        "a parameter has a group of its own",
    ],
)
def test_parameters_that_change_groups_take_their_history_along(how: str, seen: bool) -> None:
    def run(constructor: Callable[..., torch.optim.Optimizer]) -> tuple[torch.Tensor, list[int]]:
        params = [parameter(4) for _ in range(5)]
        optimizer = constructor([{"params": params[:2]}, {"params": params[2:4]}], lr=0.1)
        steps(optimizer, params[:4], 1, 6)
        optimizer.add_param_group({"params": params[4:]})  # whose correction is another
        steps(optimizer, params, 7, 6)
        if seen:
            assert len(optimizer.state) == 5
        _regroup(optimizer, how)
        steps(optimizer, params, 13, 3)
        return torch.stack(params).detach(), [int(optimizer.state[x]["step"]) for x in params]

    (ours, counts), (theirs, expected_counts) = run(GenericAdam), run(torch.optim.Adam)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
    assert counts == expected_counts == [15, 15, 15, 15, 9]


@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
def test_a_group_of_its_own_changes_no_step(info: OptimizerInfo) -> None:
    found = []
    for moves in (False, True):
        params = [parameter(4), parameter(4)]
        optimizer = info.constructor(params, lr="0.1/sqrt(t)")
        steps(optimizer, params, 1, 12)
        if moves:
            optimizer.add_param_group({"params": [optimizer.param_groups[0]["params"].pop()]})
        steps(optimizer, params, 13, 5)
        found.append(torch.stack(params).detach())
    assert torch.equal(*found)


def test_a_correction_that_is_switched_on_late_is_the_whole_one() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1, bias_correction=False)
    steps(optimizer, [x], 1, 5)
    optimizer.param_groups[0]["bias_correction"] = True
    steps(optimizer, [x], 6, 1)
    assert optimizer.used(optimizer.param_groups[0])[0] == pytest.approx(0.1 * (1 - 0.999**6) ** 0.5 / (1 - 0.9**6))


def test_the_count_goes_on_where_all_groups_are_replaced() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr="0.1/t")
    steps(optimizer, [x], 1, 4)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.param_groups.clear()
    optimizer.state.clear()
    optimizer.add_param_group({"params": [x]})
    assert optimizer.param_groups[0]["lr"] == 0.1 / 5


# --- driven from outside ---


def test_a_plain_lr_is_driven_by_torchs_schedulers() -> None:
    ours, theirs = parameter(4), parameter(4)
    optimizer = GenericAdam([ours], lr=0.1)
    peer = torch.optim.Adam([theirs], lr=0.1)
    for make in (lambda o: StepLR(o, 3, 0.5), lambda o: ExponentialLR(o, 0.9)):
        schedulers = [make(optimizer), make(peer)]
        for t in range(1, 12):
            for x, one, scheduler in ((ours, optimizer, schedulers[0]), (theirs, peer, schedulers[1])):
                steps(one, [x], t, 1)
                scheduler.step()
    torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-12, atol=0)
    assert optimizer.param_groups[0]["lr"] == peer.param_groups[0]["lr"] < 0.1


@pytest.mark.parametrize("lr", [1e-3, 0.1, 3e-7])
def test_a_rate_that_rounds_below_zero_is_zero(lr: float) -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=lr)
    rates = []
    for total in (4, 5, 7, 10):
        scheduler = LinearLR(optimizer, end_factor=0.0, total_iters=total)
        for t in range(total + 2):
            rates.append(optimizer.param_groups[0]["lr"])
            before = x.detach().clone()
            steps(optimizer, [x], t + 1, 1)
            assert rates[-1] > 0 or torch.equal(x, before)
            scheduler.step()
        optimizer.param_groups[0]["lr"] = lr
    assert min(rates) < 0  # torch's own rounding


@pytest.mark.parametrize("lr", [-1e-6, -0.1, float("nan"), -float("inf")])
def test_a_rate_below_zero_is_refused(lr: float) -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=1e-3)
    optimizer.param_groups[0]["lr"] = lr
    with pytest.raises(OptimizerError, match="expected a finite lr >= 0"):
        steps(optimizer, [x], 1, 1)


def test_one_cycle_drives_beta_through_betas() -> None:
    ours, theirs = parameter(4), parameter(4)
    optimizer = GenericAdam([ours], lr=0.1, theta=0.99)
    cycle = OneCycleLR(optimizer, max_lr=0.1, total_steps=20)
    peer = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.99))
    peer_cycle = OneCycleLR(peer, max_lr=0.1, total_steps=20)
    for t in range(1, 15):
        assert optimizer.param_groups[0]["betas"] == peer.param_groups[0]["betas"]
        steps(optimizer, [ours], t, 1)
        assert optimizer.param_groups[0]["beta"] == peer.param_groups[0]["betas"][0]
        cycle.step()
        steps(peer, [theirs], t, 1)
        peer_cycle.step()


@pytest.mark.parametrize("make", [lambda o: LinearLR(o, 0.1, 0.5, 5), lambda o: OneCycleLR(o, 0.1, 20)])
def test_tensors_for_lr_and_betas_are_driven_in_place(make: Callable[..., object]) -> None:
    ours, theirs = parameter(4), parameter(4)
    lr, beta, theta = (torch.tensor(value, dtype=torch.float64) for value in (0.1, 0.8, 0.9))
    optimizer = GenericAdam([ours], lr, (beta, theta))
    peer = torch.optim.Adam([theirs], 0.1, (0.8, 0.9))
    schedulers = make(optimizer), make(peer)
    for t in range(1, 15):
        steps(optimizer, [ours], t, 1)
        steps(peer, [theirs], t, 1)
        for scheduler in schedulers:
            scheduler.step()
    assert isinstance(optimizer.param_groups[0]["lr"], torch.Tensor)
    if make(peer).__class__ is LinearLR:
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-12, atol=1e-14)
    # A momentum that moves is corrected by its product here, by the present power there.
    saved = copy.deepcopy(optimizer.state_dict())
    again = GenericAdam([ours], lr=1.0)
    again.load_state_dict(saved)
    assert float(again.param_groups[0]["lr"]) == float(optimizer.param_groups[0]["lr"])
    steps(again, [ours], 15, 1)


def test_a_number_that_becomes_a_tensor_is_driven_in_place() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1)
    steps(optimizer, [x], 1, 2)
    group = optimizer.param_groups[0]
    group["lr"] = torch.tensor(0.1)  # which equals the number that it was
    steps(optimizer, [x], 3, 1)
    group["lr"].fill_(0.0)
    before = x.detach().clone()
    steps(optimizer, [x], 4, 1)
    assert x.equal(before)


def test_a_callable_is_asked_once_for_each_step_and_may_end() -> None:
    x = parameter(2)
    asked: list[int] = []
    rates = [0.3, 0.2, 0.1]

    def rate(t: int) -> float:
        asked.append(t)
        return rates[t - 1]

    optimizer = GenericAdam([x], lr=rate)
    steps(optimizer, [x], 1, 3)
    assert sorted(set(asked)) == [1, 2, 3, 4]
    assert optimizer.param_groups[0]["lr"] == 0.1
    with pytest.raises(ScheduleError):
        steps(optimizer, [x], 4, 1)


def test_writing_beta_or_theta_takes_effect() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1, betas=(0.9, 0.99))
    steps(optimizer, [x], 1, 2)
    group = optimizer.param_groups[0]
    group["theta"] = 0.5
    steps(optimizer, [x], 3, 1)
    assert group["betas"] == (0.9, 0.5)
    group["betas"] = [0.3, 0.6]
    assert (certify(optimizer).algorithm.method.beta(1), group["beta"]) == (0.3, 0.9)  # what the next step will do
    steps(optimizer, [x], 4, 1)
    # A pair: who writes to one element of a list would not be noticed.
    assert (group["beta"], group["theta"]) == group["betas"] == (0.3, 0.6)
    for wrong in ((torch.ones(2), 0.9), ("0.9", 0.99)):
        group["betas"] = wrong
        with pytest.raises(OptimizerError, match=r"^beta is .*; expected"):
            steps(optimizer, [x], 5, 1)
    group["betas"], group["theta"] = (0.1, 0.2), 0.7
    for does in (lambda: steps(optimizer, [x], 5, 1), lambda: certify(optimizer)):
        with pytest.raises(OptimizerError, match="set one of them"):
            does()


def test_a_scheduled_lr_and_a_scheduler_are_an_error() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr="0.1/sqrt(t)")
    scheduler = ExponentialLR(optimizer, 0.5)
    steps(optimizer, [x], 1, 1)
    scheduler.step()
    before = x.detach().clone()
    with pytest.raises(OptimizerError, match=r"lr follows the schedule .*, but something else set it to 0.0353"):
        steps(optimizer, [x], 2, 1)
    assert torch.equal(x, before)
    optimizer = GenericAdam([x], lr="0.1/sqrt(t)")
    optimizer.param_groups[0]["lr"] = 0.3
    with pytest.raises(OptimizerError, match=r"something else set it to 0.3"):
        steps(optimizer, [x], 1, 1)


def test_a_scheduled_lr_of_zero_freezes_and_can_be_put_back() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr="0.1/sqrt(t)", weight_decay=0.1)
    steps(optimizer, [x], 1, 3)
    group, before = optimizer.param_groups[0], x.detach().clone()
    lr, group["lr"] = group["lr"], 0.0
    steps(optimizer, [x], 4, 2)
    assert torch.equal(x, before)
    group["lr"] = lr
    steps(optimizer, [x], 6, 1)
    assert optimizer.used(group)[0] == pytest.approx(0.1 / 6**0.5 * (1 - 0.999**6) ** 0.5 / (1 - 0.9**6))
    assert group["lr"] == pytest.approx(0.1 / 7**0.5)


# --- the protocol of torch.optim ---


def test_a_closure_is_evaluated_with_gradients_once_and_its_loss_returned() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1)
    calls = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = x.square().sum()
        loss.backward()
        calls.append(torch.is_grad_enabled())
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert calls == [True]
    assert loss.item() == pytest.approx(parameter(3).square().sum().item())
    assert x.requires_grad
    assert x.is_leaf


def test_hooks_run_in_torchs_order_and_can_be_removed() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1)
    seen: list[object] = []
    handles = [
        register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append(("global pre", args))),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", o is optimizer))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", o.param_groups[0]["step"]))),
        register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append(("global post", args))),
    ]
    steps(optimizer, [x], 1, 1)
    assert seen == [("global pre", (optimizer,)), ("pre", True), ("post", 1), ("global post", (optimizer,))]
    for handle in handles:
        handle.remove()
    steps(optimizer, [x], 2, 1)
    assert len(seen) == 4


def test_a_pre_hook_may_change_the_arguments() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: "from the hook"), {}))
    x.grad = torch.ones_like(x)
    assert optimizer.step() == "from the hook"


def test_the_profiler_sees_the_step() -> None:
    x = parameter(3)
    optimizer = GenericAdam([x], lr=0.1)
    with torch.autograd.profiler.profile() as profile:
        steps(optimizer, [x], 1, 1)
    assert "Optimizer.step#GenericAdam.step" in {event.name for event in profile.function_events}


def test_parameters_without_gradients_are_left_alone_and_time_goes_on() -> None:
    used, idle = parameter(3), parameter(3)
    optimizer = GenericAdam([used, idle], lr="0.1/t")
    steps(optimizer, [used], 1, 3)
    assert torch.equal(idle, parameter(3))
    assert idle not in optimizer.state
    steps(optimizer, [used, idle], 4, 1)
    assert optimizer.param_groups[0]["lr"] == 0.1 / 5
    assert not torch.equal(idle, parameter(3))


@pytest.mark.parametrize("path", PATHS)
def test_maximize_is_minimising_the_negative(path: str) -> None:
    up, down = parameter(4), parameter(4)
    climber = GenericAdam([up], lr=0.1, maximize=True, weight_decay=0.1, **PATHS[path])
    descender = GenericAdam([down], lr=0.1, weight_decay=0.1, **PATHS[path])
    for t in range(1, 20):
        up.grad = torch.cos(up.detach() * t)
        down.grad = -torch.cos(down.detach() * t)
        climber.step()
        descender.step()
    assert torch.equal(up, down)


@pytest.mark.parametrize("path", PATHS)
def test_a_complex_parameter_is_a_pair_of_real_ones(path: str) -> None:
    pair = parameter(4, 2)
    number = torch.nn.Parameter(torch.view_as_complex(pair.detach().clone()))
    options = {"lr": "0.1/sqrt(t)", "theta": "1 - 1/(t+1)", "amsgrad": True, **PATHS[path]}
    one, other = GenericAdam([pair], **options), GenericAdam([number], **options)
    for t in range(1, 20):
        pair.grad = torch.cos(pair.detach() * t)
        number.grad = torch.view_as_complex(torch.cos(torch.view_as_real(number.detach()) * t))
        one.step()
        other.step()
    torch.testing.assert_close(torch.view_as_real(number.detach()), pair.detach(), rtol=1e-14, atol=0)


def test_a_misspelt_option_of_from_method_is_an_error() -> None:
    with pytest.raises(TypeError, match="epsilon"):
        GenericAdam.from_method([parameter(2)], Method(alpha=0.1, beta=0.9, theta=0.9), epsilon=1e-8)
    with pytest.raises(OptimizerError, match=r"use GenericAdam\.from_method"):
        WeightedAdaEMA.from_method([parameter(2)], Method(alpha=0.1, beta=0.9, theta=0.9))


def test_what_the_constructor_refuses_a_group_is_refused_too() -> None:
    x = parameter(2)
    adam = torch.optim.Adam([x], capturable=True)
    for groups in ([{"params": [x], "differentiable": True}], adam.param_groups):
        with pytest.raises(OptimizerError, match="expected False, as each step's numbers come from Python"):
            GenericAdam(groups)
    optimizer = GenericAdam([x])
    optimizer.param_groups[0]["capturable"] = True
    with pytest.raises(OptimizerError, match="capturable is True"):
        steps(optimizer, [x], 1, 1)


def test_a_look_ahead_that_comes_in_later_is_taken() -> None:
    x, y = parameter(4), parameter(4)
    later, plain = GenericAdam([x], lr=0.1), GenericAdam([y], lr=0.1, foreach=True)
    for optimizer, one in ((later, x), (plain, y)):
        steps(optimizer, [one], 1, 3)
        optimizer.param_groups[0].update(momentum_weight=0.9, gradient_weight=0.1)
        steps(optimizer, [one], 4, 3)
    torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-12, atol=0)


def test_a_heavy_ball_has_no_momentum_before_the_division() -> None:
    x = parameter(2)
    assert GenericAdam([x], heavy_ball=0.9).param_groups[0]["beta"] == 0.0
    with pytest.raises(OptimizerError, match=r"beta is 0\.5; expected 0 beside heavy_ball"):
        GenericAdam([x], beta=0.5, heavy_ball=0.9)
    optimizer = GenericAdam([x], heavy_ball=0.9)
    steps(optimizer, [x], 1, 1)
    assert optimizer.state[x].keys() & {"exp_avg", "momentum_buffer"} == {"momentum_buffer"}
    optimizer.param_groups[0]["beta"] = 0.9
    with pytest.raises(OptimizerError, match="expected 0 beside heavy_ball"):
        steps(optimizer, [x], 2, 1)


@pytest.mark.parametrize("arguments", [{"heavy_ball": 0.9}, {"gradient_weight": 0.1}, {"momentum_weight": "1/t"}])
def test_what_the_fused_kernel_does_not_have_is_refused_at_the_step(arguments: dict[str, Any]) -> None:
    optimizer = GenericAdam([x := parameter(2)], fused=True, **arguments)
    with pytest.raises(RuntimeError, match="no fused kernel with this momentum"):
        steps(optimizer, [x], 1, 1)
    assert torch.equal(x, parameter(2))


def test_capturing_a_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    bucket = Bucket(parameter(2), aligned=True, numbers={}, moments=())
    bucket.device_type = "cuda"
    bucket.run_with(form(0.5, 0.0, False, True))
    with pytest.raises(OptimizerError, match="capturing is not supported"):
        bucket.kernel(bucket.lists, (0.1, 0.9, 0.9, 0.1, 0.1, 0.0, 0.0, False, None, 0.0, 1.0, 0.0))


def test_weighted_groups() -> None:
    x, y = parameter(4), parameter(4)
    theta = theta_from_weights("t", 3)
    optimizer = WeightedAdaEMA([{"params": [x]}, {"params": [y], "theta": theta}], lr=0.1)
    steps(optimizer, [x, y], 1, 20)
    trajectory = reference.weighted_adaema(
        0.1, 0.9, "t", lambda z, t: np.cos(z * t), parameter(4).detach().numpy(), 20, initial=3.0
    )
    np.testing.assert_allclose(y.detach().numpy(), trajectory.points[-1], rtol=1e-11)
    with pytest.raises(OptimizerError, match="a group has no weights of its own"):
        optimizer.add_param_group({"params": [parameter(2)], "weights": "t"})
    optimizer.add_param_group({"params": [parameter(2)], "betas": (0.5, None)})
    assert optimizer.param_groups[-1]["betas"] == (0.5, optimizer.param_groups[0]["theta"])


def test_groups_of_another_optimizer_start_anew():
    x = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    first = GenericAdam([x], lr="0.1/sqrt(t)", bias_correction=True, initial_v=0.0)
    for _ in range(50):
        x.grad = torch.ones_like(x)
        first.step()
    second = GenericAdam(first.param_groups)
    before = x.detach().clone()
    second.step()
    torch.testing.assert_close(before - x.detach(), torch.full_like(before, 0.1))


def test_an_empty_parameter_is_no_obstacle_to_adashift():
    x = torch.nn.Parameter(torch.zeros(0, 3))
    optimizer = AdaShift([x], keep=2)
    for _ in range(4):
        x.grad = torch.zeros_like(x)
        optimizer.step()


# --- the first steps, and what the state can hold ---


def test_the_certified_repair_starts_as_torchs_adam_does() -> None:
    theirs = parameter(50)
    method = methods.certified_adam(lr=1e-3)
    as_adam = Algorithm(method, initial_v=0.0, eps=1e-8 * sqrt(bias_correction(method.theta)))
    ours, papers = parameter(50), parameter(50)
    optimizers = [
        (theirs, torch.optim.Adam([theirs])),
        (ours, GenericAdam.from_method([ours], as_adam)),
        (papers, GenericAdam.from_method([papers], method)),
    ]
    for t in range(1, 301):
        g = torch.cos(theirs.detach() * t)
        before = [x.detach().clone() for x, _ in optimizers]
        for x, optimizer in optimizers:
            x.grad = g.clone()
            optimizer.step()
        adams, same, close = ((x.detach() - old).norm().item() for (x, _), old in zip(optimizers, before, strict=True))
        assert same == pytest.approx(adams, rel=1e-9)  # to t = 1000, where the repair begins
        assert close == pytest.approx(adams, rel=1e-2)  # v_0 = 1e-8 in place of 0


def test_by_itself_it_is_torchs_adam_from_the_first_step() -> None:
    ours, theirs = parameter(6), parameter(6)
    optimizer, peer = GenericAdam([ours], 1e-3), torch.optim.Adam([theirs], 1e-3)
    for t in range(1, 50):
        for x, one in ((ours, optimizer), (theirs, peer)):
            x.grad = 1e-6 * torch.cos(x.detach() * t)
            one.step()
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-13, atol=0)


@pytest.mark.parametrize("path", PATHS)
def test_the_second_moment_does_not_drift_in_float32(path: str) -> None:
    # With v = g^2 throughout v stays. Rounded apart, theta and 1 - theta do not add up to 1, and 10,000 steps
    # moved v by 1e-3.
    x = torch.nn.Parameter(torch.zeros(8))
    optimizer = GenericAdam([x], lr=1e-9, theta=1 - 1e-6, **PATHS[path])
    x.grad = torch.linspace(1.0, 1.7, 8)
    optimizer.step()
    v = optimizer.state[x]["exp_avg_sq"].copy_(x.grad**2)
    for _ in range(10_000):
        optimizer.step()
    assert (v / x.grad**2 - 1).abs().max().item() < 1e-6
    if path == "fused":
        # What rounding left of 1 - theta is carried on: in the mean nothing is lost.
        assert 0 < abs(optimizer.param_groups[0]["theta_carry"]) <= 2.0**-25


def far_out(path: dict[str, bool | None], g: torch.Tensor) -> torch.Tensor:
    """v after g has been the gradients of the steps from 10^6 on, with theta_t = 1 - 1/t and v = 1.3 there."""
    x = torch.nn.Parameter(torch.zeros(g.shape[1]))
    optimizer = GenericAdam([x], lr=1e-9, theta="1 - 1/t", **path)
    x.grad = g[0].clone()
    optimizer.step()
    saved = optimizer.state_dict()
    saved["param_groups"][0]["step"] = 10**6
    saved["state"][0]["exp_avg_sq"].fill_(1.3)
    optimizer.load_state_dict(saved)
    for row in g:
        x.grad = row.clone()
        optimizer.step()
    return optimizer.state[x]["exp_avg_sq"].double()


def test_without_the_fused_kernel_v_changes_by_what_it_should() -> None:
    # After 20,000 steps near t = 10^6, v has changed by 2 %: the fused kernel's rounding is a part of that.
    g = 1.3**0.5 * torch.randn(20_000, 16, generator=torch.Generator().manual_seed(0))
    weights = torch.full((20_000, 1), 1.0 / (10**6 + 20_000), dtype=torch.float64)
    exact = 1.3 * 10**6 / (10**6 + 20_000) + (weights * g.double() ** 2).sum(0)
    for path in ({"foreach": True}, {"foreach": False}):
        assert (far_out(path, g) - exact).abs().max().item() < 1e-4
    assert (far_out({}, g) - exact).abs().max().item() > 3e-4


@pytest.mark.parametrize("path", PATHS)
def test_an_infinite_second_moment_close_to_one_is_no_nan(path: str) -> None:
    x = torch.nn.Parameter(torch.zeros(2))
    optimizer = GenericAdam([x], lr=1e-3, theta=1 - 1e-6, **PATHS[path])
    for size in (1.0, 1e30, 1.0, 1.0):
        x.grad = torch.tensor([1.0, size])
        optimizer.step()
    assert torch.isfinite(x).all()
    assert optimizer.state[x]["exp_avg_sq"].tolist()[1] == math.inf


@pytest.mark.parametrize(
    ("theta", "options", "noted"),
    [
        ("1 - 1/max(t, 2)", {}, "1,048,576"),
        ("1 - 1/max(t, 2)", {"foreach": True}, "8,388,608"),
        ("1 - 1/max(t, 2)", {"fused": False}, "8,388,608"),
        ("1 - 1/max(t, 2)", {"fused": True, "foreach": False}, "1,048,576"),
        (1 - 1e-7, {}, "1,048,576"),
        ("1 - 1/sqrt(t + 1)", {}, ""),
        (0.999, {}, ""),
    ],
)
def test_the_certificate_says_from_which_step_on_float32_blurs_v(
    theta: float | str, options: dict[str, bool], noted: str
) -> None:
    x = torch.nn.Parameter(torch.zeros(2))
    certificate = certify(GenericAdam([x], theta=theta, **options))
    notes = " ".join(certificate.algorithm.notes)
    assert all(note in certificate.explain() for note in certificate.algorithm.notes)
    assert (f"v_t is kept in float32: about t = {noted}" in notes) if noted else ("float32" not in notes)
    double = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
    assert "float32" not in " ".join(certify(GenericAdam([double], theta=theta)).algorithm.notes)


def test_meta_tensors_have_no_fused_kernel() -> None:
    x = torch.nn.Parameter(torch.zeros(3, device="meta"))
    x.grad = torch.zeros(3, device="meta")
    GenericAdam([x]).step()
    fused = GenericAdam([x], fused=True)  # torch's Adam takes it too, and raises at the step
    for optimizer in (fused, torch.optim.Adam([x], fused=True)):
        with pytest.raises(RuntimeError, match=r"meta|supported devices"):
            optimizer.step()
    assert fused.param_groups[0]["step"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"lr": torch.tensor(0.01), "foreach": True},
        {"betas": (torch.tensor(0.9), torch.tensor(0.99)), "foreach": True},
        {"betas": (0.9, torch.tensor(0.99))},
        {"betas": (torch.tensor(0.9), 0.99)},
        {"lr": torch.ones(2)},
        {"betas": (1.0, 0.0)},
        {"weight_decay": -1},
    ],
    ids=str,
)
def test_arguments_that_torch_refuses_are_refused_alike(arguments: dict[str, Any]) -> None:
    for kind in (torch.optim.AdamW, GenericAdam):
        with pytest.raises(ValueError, match=r"lr|betas?|weight_decay") as caught:
            kind([parameter(2)], **arguments)
        if "foreach" in arguments:  # the words that torch's own tests ask for
            assert " as a Tensor is not supported" in str(caught.value)


@pytest.mark.parametrize("other", ["foreach", "differentiable"])
def test_what_does_not_go_with_the_fused_kernel_is_torch_s_error(other: str) -> None:
    for kind in (torch.optim.Adam, GenericAdam):
        with pytest.raises(RuntimeError, match=other):
            kind([parameter(2)], fused=True, **{other: True})
    assert issubclass(UnsupportedError, OptimizerError)


@pytest.mark.parametrize("flag", ["foreach", "fused"])
@pytest.mark.parametrize("arguments", [{}, {"weight_decay": 0.1, "maximize": True}, {"amsgrad": True}], ids=str)
def test_the_forms_have_equal_states_of_tensors(flag: str, arguments: dict[str, Any]) -> None:
    # As torch's own tests compare them: with steps without gradients, and a parameter that rests for two.
    pairs = []
    for value in (False, True):
        params = [parameter(2, 3), parameter(3), parameter()]
        pairs.append((GenericAdam(params, lr=0.1, **{flag: value}, **arguments), params))
    for t in range(7):
        for optimizer, params in pairs:
            for index, x in enumerate(params):
                resting = t == 2 or (index == 1 and t in {3, 4})
                x.grad = None if resting else torch.cos(x.detach() * (t + 1))
            optimizer.step()
        (one, ours), (other, theirs) = pairs
        for x, y in zip(ours, theirs, strict=True):
            torch.testing.assert_close(x.detach(), y.detach())
            for key, value in one.state[x].items():
                torch.testing.assert_close(value, other.state[y][key])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.float32], ids=str)
def test_steps_are_counted_in_the_type_that_torch_counts_in(dtype: torch.dtype) -> None:
    x, y = parameter(3), parameter(3)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        for one, kind in ((x, GenericAdam), (y, torch.optim.Adam)):
            steps(kind([one]), [one], 1, 1)
            optimizer = kind([one])
            steps(optimizer, [one], 1, 2)
            count = optimizer.state[one]["step"]
            assert (count, count.dtype) == (2, torch.float64 if dtype is torch.float64 else torch.float32)
    finally:
        torch.set_default_dtype(before)


def test_who_writes_to_a_number_of_the_state_is_heard() -> None:
    x, y = parameter(3), parameter(3)
    one, other = GenericAdam([x], lr=0.1), GenericAdam([y], lr=0.1)
    steps(one, [x], 1, 3)
    steps(other, [y], 1, 3)
    saved = one.state_dict()["state"][0]
    saved["beta_correction"].fill_(1.0)  # in place
    other.state[y]["beta_correction"] = torch.tensor(1.0, dtype=torch.float64)  # another tensor
    steps(one, [x], 4, 2)
    steps(other, [y], 4, 2)
    assert torch.equal(x, y)
    assert one.state[x]["beta_correction"] == 1.0
    assert one.state[x]["step"] == other.state[y]["step"] == 5


@pytest.mark.parametrize("flag", [0, 1])
def test_a_flag_may_be_a_whole_number(flag: int) -> None:
    x, y = parameter(4), parameter(4)
    names = ("maximize", "amsgrad", "foreach")
    one = GenericAdam([x], lr=0.1, **dict.fromkeys(names, flag))
    other = GenericAdam([y], lr=0.1, **dict.fromkeys(names, bool(flag)))
    for optimizer, own in ((one, x), (other, y)):
        steps(optimizer, [own], 1, 3)
    assert torch.equal(x, y)
    first, second = (optimizer.algorithm_of(optimizer.param_groups[0]) for optimizer in (one, other))
    assert first == second
    kernels = [optimizer._plans[id(optimizer.param_groups[0])].kept[0].kernel for optimizer in (one, other)]
    assert kernels[0] is kernels[1]
    with nullcontext() if flag else pytest.raises(OptimizerError, match="amsgrad is 0; expected True, as it is"):
        Padam([x], amsgrad=flag)


@pytest.mark.parametrize(("maximum", "power"), [(False, 0.5), (True, 0.5), (True, 0.1)])
def test_peers_run_the_algorithm_that_they_are_given(maximum: bool, power: float) -> None:
    algorithm = Algorithm(Method(0.1, 0.9, 0.9), eps=1e-8, running_maximum=maximum, power=power)
    for kind, runs_it in ((Padam, maximum), (AMSGrad, power == 0.5)):
        with nullcontext() if runs_it else pytest.raises(OptimizerError, match=r"amsgrad is False|does not run this"):
            optimizer = kind.from_method([parameter(2)], algorithm)
            assert optimizer.algorithm_of(optimizer.param_groups[0]).power == algorithm.power
            group = optimizer.param_groups[0]
            assert (group["amsgrad"], group.get("partial", 0.5)) == (maximum, power)
