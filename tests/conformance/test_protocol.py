"""What code that was written for torch's optimizers does with one, done with every optimizer here."""

import copy
import warnings
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler
from torch.optim.swa_utils import SWALR, AveragedModel

from generic_adam.torch.scheduled import ScheduledOptimizer
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo, moments_of

EVERY = [pytest.param(info, id=info.name) for info in OPTIMIZERS]
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "step": lambda o: lr_scheduler.StepLR(o, 10, 0.9),
    "linear to 0": lambda o: lr_scheduler.LinearLR(o, 1.0, 0.0, 30),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 10),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, 30),
    "cycle": lambda o: lr_scheduler.CyclicLR(o, 1e-3, 1e-2, cycle_momentum=False),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 1e-2, 60, cycle_momentum=False),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=2),
    "averaging": lambda o: SWALR(o, swa_lr=5e-3, anneal_epochs=5),
    "in turn": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 10), lr_scheduler.CosineAnnealingLR(o, 30)], [10]
    ),
}


def network(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(5, 3).to(dtype)


def steps(optimizer: Any, model: torch.nn.Module, first: int, count: int) -> None:
    for t in range(first, first + count):
        for x in model.parameters():
            x.grad = torch.cos(x.detach() * t)
        optimizer.step()


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([x.detach().ravel() for x in model.parameters()])


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", ["number", "tensor"])
def test_schedulers_drive_it_downhill_and_uphill(info: OptimizerInfo, scheduler: str, kind: str) -> None:
    inputs = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    for maximize in (False, True):
        model = network()
        lr = torch.tensor(0.01) if kind == "tensor" else 0.01
        optimizer = info.constructor(model.parameters(), lr=lr, maximize=maximize)
        driver = SCHEDULERS[scheduler](optimizer)
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # SequentialLR's own use of a deprecated argument
                driver.step(losses[-1]) if scheduler == "plateau" else driver.step()
        assert (losses[-1] > losses[0]) == maximize
        # What torch's own optimizer is left with by this release's scheduler, ours is left with.
        peer = torch.optim.Adam(network().parameters(), lr=0.01 if kind == "number" else torch.tensor(0.01))
        driver = SCHEDULERS[scheduler](peer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for loss in losses:
                driver.step(loss) if scheduler == "plateau" else driver.step()
        assert type(optimizer.param_groups[0]["lr"]) is type(peer.param_groups[0]["lr"])


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)], ids=str)
def test_a_tensor_of_one_element_is_its_number(info: OptimizerInfo, shape: tuple[int, ...]) -> None:
    try:
        lr_scheduler.ExponentialLR(torch.optim.Adam(network().parameters(), lr=torch.full(shape, 0.01)), 0.9)
    except RuntimeError:
        pytest.skip("this release's schedulers take a tensor of no dimension only")
    found = []
    for lr in (0.01, torch.full(shape, 0.01, dtype=torch.float64)):
        model = network()
        optimizer = info.constructor(model.parameters(), lr=lr)
        scheduler = lr_scheduler.ExponentialLR(optimizer, 0.9)
        for t in range(1, 16):
            steps(optimizer, model, t, 1)
            scheduler.step()
        found.append(weights(model))
    assert torch.equal(*found)


@pytest.mark.parametrize("info", EVERY)
def test_parameters_may_have_names(info: OptimizerInfo) -> None:
    model = network()
    optimizer = info.constructor(model.named_parameters(), lr=0.01)
    steps(optimizer, model, 1, 12)
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["param_names"] == ["weight", "bias"]
    # Into one without names, into one with the names in another order, and back.
    plain = info.constructor(model.parameters(), lr=0.01)
    plain.load_state_dict(copy.deepcopy(saved))
    turned = info.constructor([("bias", model.bias), ("weight", model.weight)], lr=0.01)

    def by_name(to: ScheduledOptimizer, state_dict: dict[str, Any]) -> dict[str, Any]:
        result = copy.deepcopy(state_dict)
        group, names = result["param_groups"][0], to.param_groups[0]["param_names"]
        order = [group["param_names"].index(name) for name in names]
        result["state"] = {index: result["state"][at] for index, at in enumerate(order)}
        group["param_names"] = names
        return result

    turned.register_load_state_dict_pre_hook(by_name)
    turned.load_state_dict(saved)
    for optimizer in (plain, turned):
        for name, x in (("weight", model.weight), ("bias", model.bias)):
            key = "history" if info.name == "AdaShift" else "exp_avg"
            before = saved["state"][["weight", "bias"].index(name)][key]
            assert torch.equal(optimizer.state[x][key], before)
    steps(turned, model, 13, 1)


@pytest.mark.parametrize("info", EVERY)
def test_a_step_inside_the_backward_pass(info: OptimizerInfo) -> None:
    model, apart = network(), network()
    together = info.constructor(model.parameters(), lr="0.01/sqrt(t)")
    one_each = {x: info.constructor([x], lr="0.01/sqrt(t)") for x in apart.parameters()}

    def step(x: torch.Tensor) -> None:
        one_each[x].step()
        one_each[x].zero_grad()

    for x in apart.parameters():
        x.register_post_accumulate_grad_hook(step)
    for t in range(15):
        inputs = torch.randn(4, 5, generator=torch.Generator().manual_seed(t))
        together.zero_grad()
        model(inputs).square().mean().backward()
        together.step()
        apart(inputs).square().mean().backward()
    assert torch.equal(weights(model), weights(apart))


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize(
    ("saved_in", "loaded_in"),
    list(permutations([torch.float32, torch.float64, torch.bfloat16], 2)),
    ids=str,
)
def test_a_state_follows_parameters_to_another_dtype(
    info: OptimizerInfo, saved_in: torch.dtype, loaded_in: torch.dtype
) -> None:
    model = network(saved_in)
    optimizer = info.constructor(model.parameters(), lr=0.01)
    steps(optimizer, model, 1, 12)
    other = copy.deepcopy(model).to(loaded_in)
    second = info.constructor(other.parameters(), lr=0.01)
    second.load_state_dict(optimizer.state_dict())
    steps(second, other, 13, 2)
    kept_in = torch.float64 if loaded_in is torch.float64 else torch.float32
    assert {moment.dtype for state in second.state.values() for moment in moments_of(state).values()} == {kept_in}
    assert torch.isfinite(weights(other)).all()


class Lookahead:
    """Slow weights that follow the fast ones every k steps, and start them anew: Zhang et al. 2019."""

    def __init__(self, optimizer: ScheduledOptimizer, k: int, forget: bool) -> None:
        self.optimizer, self.k, self.forget, self.count = optimizer, k, forget, 0
        self.fresh = copy.deepcopy(optimizer.state_dict())
        self.slow = [x.detach().clone() for group in optimizer.param_groups for x in group["params"]]

    def step(self) -> None:
        self.optimizer.step()
        self.count += 1
        if self.count % self.k == 0:
            fast = [x for group in self.optimizer.param_groups for x in group["params"]]
            for x, slow in zip(fast, self.slow, strict=True):
                slow.lerp_(x.detach(), 0.5)
                x.data.copy_(slow)
            # With or without what the fast optimizer has learnt; either way a state is loaded again and again.
            kept = self.fresh if self.forget else self.optimizer.state_dict()
            self.optimizer.load_state_dict(copy.deepcopy(kept))


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("forget", [False, True])
def test_lookahead_loads_a_state_every_few_steps(info: OptimizerInfo, *, forget: bool) -> None:
    model, peer = network(), network()
    optimizer = info.constructor(model.parameters(), lr="0.01/sqrt(t)")
    steps(Lookahead(optimizer, 4, forget), model, 1, 16)
    # The same by hand, without a state_dict.
    twin = info.constructor(peer.parameters(), lr="0.01/sqrt(t)")
    slow = [x.detach().clone() for x in peer.parameters()]
    for first in range(1, 17, 4):
        steps(twin, peer, first, 4)
        for x, old in zip(peer.parameters(), slow, strict=True):
            old.lerp_(x.detach(), 0.5)
            x.data.copy_(old)
        if forget:
            twin = info.constructor(peer.parameters(), lr="0.01/sqrt(t)")
    assert torch.equal(weights(model), weights(peer))


@pytest.mark.parametrize("info", EVERY)
def test_weights_are_averaged_beside_it(info: OptimizerInfo) -> None:
    model = network()
    optimizer, average = info.constructor(model.parameters(), lr=0.01), AveragedModel(model)
    seen = []
    for t in range(1, 14):
        steps(optimizer, model, t, 1)
        average.update_parameters(model)
        seen.append(weights(model))
    torch.testing.assert_close(weights(average.module), torch.stack(seen).mean(0))
