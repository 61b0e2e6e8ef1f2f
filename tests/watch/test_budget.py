"""The budget's meter: it measures the run's own numbers, leaves the run as it is, and notices what else moves it."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from generic_adam.errors import OptimizerError, TheoremError
from generic_adam.torch import GenericAdam, Watch
from generic_adam.watch.budget import BudgetMeter

CURVE = torch.linspace(0.1, 3, 20)


def quadratic(make=torch.optim.Adam, steps=400, rate=1.0, seed=0, probe=None, between=None, **options):
    """Train on noisy quadratics; return the meter, and the path's own numbers in double precision."""
    torch.manual_seed(seed)
    x = nn.Parameter(torch.randn(20))
    optimizer = make([x], **({"lr": 0.02} | options))

    def loss():
        return (0.5 * CURVE * (x - torch.randn(16, 20)).square()).sum(1).mean()

    meter = BudgetMeter(optimizer, probe(x) if probe else loss, rate=rate, seed=seed)
    path = [x.detach().double().clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        path.append(x.detach().double().clone())
        if between:
            between(x)
    return meter, path


def test_it_measures_what_the_path_has():
    meter, path = quadratic()
    found = meter.budget()
    assert found.steps == 399  # before the second step there is no second moment
    curve, path = CURVE.double(), path[1:]
    alpha = np.array([one.alpha for one in meter._steps])
    assert alpha == pytest.approx([0.02 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) for t in range(2, 401)])
    gamma = [0.0, *(0.9 * math.sqrt((1 - 0.999 ** (t - 1)) / (1 - 0.999**t)) for t in range(3, 401))]
    reach = np.zeros(400)
    for t in reversed(range(399)):
        reach[t] = alpha[t] + (gamma[t + 1] * reach[t + 1] if t < 398 else 0)
    total = 0.1 * reach.sum()
    u = [(b - a) / alpha[t] for t, (a, b) in enumerate(itertools.pairwise(path))]
    loss = [float((0.5 * curve * x * x).sum()) for x in path]
    bend = sum(loss[t + 1] - loss[t] - alpha[t] * float((curve * path[t]) @ u[t]) for t in range(399))
    turn = sum(gamma[t] * reach[t] * float((curve * (path[t] - path[t - 1])) @ u[t - 1]) for t in range(1, 399))
    assert found.curvature.value == pytest.approx((bend + turn) / total, abs=3 * found.curvature.standard_error)
    assert found.loss_drop.value == pytest.approx((loss[0] - loss[-1]) / total, abs=3 * found.loss_drop.standard_error)
    parts = found.curvature.value + found.loss_drop.value + found.bias.value
    assert found.size.value == pytest.approx(parts, abs=3 * found.bias.standard_error)
    assert found.curvature.standard_error < 0.1 * found.curvature.value
    assert math.fsum(found.shares.values()) == pytest.approx(1)
    assert "the loss still falling" in found.text


def test_it_closes_and_says_so_when_something_else_moves_the_weights():
    def shrink(x):
        with torch.no_grad():
            x.mul_(0.995)

    closed = [quadratic(rate=0.1, seed=seed)[0].budget().closes for seed in range(5)]
    assert sum(closed) >= 4
    moved = [quadratic(rate=0.1, seed=seed, between=shrink)[0].budget() for seed in range(4)]
    assert not any(one.closes for one in moved)
    assert all("something else moves the weights" in one.text for one in moved)


def test_a_probe_that_cannot_repeat_its_batch():
    own = torch.Generator().manual_seed(3)
    probe = lambda x: lambda: (0.5 * CURVE * (x - torch.randn(16, 20, generator=own)).square()).sum(1).mean()  # noqa: E731
    seen, twice = (quadratic(rate=0.2, probe=one)[0].budget() for one in (probe, None))
    assert seen.closes is None
    assert seen.curvature.value == pytest.approx(twice.curvature.value, abs=3 * seen.curvature.standard_error)
    assert seen.curvature.standard_error > twice.curvature.standard_error


@pytest.mark.parametrize(
    "make",
    [
        lambda p, lr: torch.optim.AdamW(p, lr=lr, weight_decay=0.5),
        lambda p, lr: torch.optim.RMSprop(p, lr=lr / 4),
        lambda p, lr: torch.optim.Adagrad(p, lr=lr),
        lambda p, lr: torch.optim.NAdam(p, lr=lr),
        lambda p, lr: GenericAdam(p, lr=f"{lr}/sqrt(t)"),
        lambda p, lr: GenericAdam(p, lr=lr, theta="1 - 0.9/(t + 1)"),
    ],
    ids=["AdamW", "RMSprop", "Adagrad", "NAdam", "GenericAdam, falling", "GenericAdam, theta"],
)
def test_every_optimizer_that_watch_knows(make):
    found = quadratic(make, lr=0.1, rate=0.3)[0].budget()
    assert found.closes
    parts = (found.curvature, found.loss_drop, found.bias, found.size)
    error = math.sqrt(sum(one.standard_error**2 for one in parts))
    assert found.size.value == pytest.approx(sum(one.value for one in parts[:-1]), abs=3 * error)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.GELU(), nn.Dropout(0.1), nn.Linear(24, 4))
        self.table = nn.Embedding(50, 8)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, x, i):
        return self.layers(x + self.table(i))


def train(watching, *, steps=240, dtype=torch.float32):
    """Shuffled epochs of a small net with dropout and batch norm; return the net and what watched it."""
    torch.manual_seed(1)
    x, i = torch.randn(480, 8), torch.randint(50, (480,))
    y = (x @ torch.randn(8, 4)).argmax(1)
    net = Net().to(dtype)
    optimizer = torch.optim.AdamW(
        [{"params": net.layers.parameters()}, {"params": [*net.table.parameters(), net.unused], "lr": 3e-4}], lr=2e-3
    )

    def loss(rows):
        return nn.functional.cross_entropy(net(x[rows].to(dtype), i[rows]).float(), y[rows])

    watch = watching(optimizer, lambda: loss(torch.randint(480, (32,))), net)
    for t in range(steps):
        if t % 15 == 0:
            order = torch.randperm(480)
        optimizer.zero_grad()
        loss(order[(t % 15) * 32 :][:32]).backward()
        optimizer.step()
    return net, watch


def metered(optimizer, probe, net):
    return BudgetMeter(optimizer, probe, rate=0.1, model=net)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_run_is_the_same_with_it(dtype):
    (plain, _), (seen, meter) = train(lambda *_: None, dtype=dtype), train(metered, dtype=dtype)
    for one, other in zip(plain.state_dict().values(), seen.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    found = meter.budget()
    assert found.steps == 239
    assert found.size.value > 0


def test_shuffled_epochs_dropout_and_groups_close():
    found = train(metered)[1].budget()
    assert found.closes
    assert found.loss_drop.value > 2 * found.loss_drop.standard_error


def test_a_step_that_is_not_measured_asks_the_probe_for_nothing():
    asked = []

    def counting(optimizer, probe, net):
        return BudgetMeter(optimizer, lambda: (asked.append(1), probe())[1], rate=0.1, model=net)

    _, meter = train(counting)
    seen = sum(one.seen is not None for one in meter._steps)
    # three gradients each; the test for repetition; 16 losses at the start
    assert len(asked) == 3 * seen + 2 + 16
    assert 40 <= seen <= 100


def test_joined_on_the_way_it_measures_from_there():
    x = nn.Parameter(torch.ones(20))
    optimizer = torch.optim.Adam([x], lr=0.01)
    meter = None

    def loss():
        return (CURVE * (x - torch.randn(20)).square()).sum()

    for t in range(200):
        if t == 50:
            meter = BudgetMeter(optimizer, loss, rate=0.5)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    assert meter.budget().steps == 150
    assert meter.budget().closes
    expected = 0.01 * math.sqrt(1 - 0.999**51) / (1 - 0.9**51)
    assert meter._steps[0].alpha == pytest.approx(expected)


def test_detached_it_leaves_nothing():
    meter, _ = quadratic(steps=30)
    optimizer = torch.optim.Adam([nn.Parameter(torch.ones(2))])
    before = len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)
    other = BudgetMeter(optimizer, lambda: torch.zeros(()))
    other.detach()
    assert (len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)) == before
    meter.detach()
    assert meter.budget().steps == 29


def test_watch_tells_the_budget_and_writes_it_down(tmp_path):
    _, watch = train(lambda optimizer, probe, net: Watch(optimizer, tmp_path / "run", probe, model=net))
    found = watch.diagnose()
    assert found.budget.steps == 239
    assert "Budget of 239 steps, of this run alone" in str(found)
    watch.detach()
    written = json.loads((tmp_path / "run" / "watch.json").read_text())["budget"]
    assert written["size"]["value"] == pytest.approx(found.budget.size.value)
    assert written["closes"] is True
    assert math.fsum(written["shares"].values()) == pytest.approx(1)


def test_watch_without_a_probe_has_no_budget():
    _, watch = train(lambda optimizer, *_: Watch(optimizer), steps=30)
    assert watch.diagnose().budget is None


def test_what_it_does_not_measure_is_told():
    x = nn.Parameter(torch.ones(2))
    with pytest.raises(OptimizerError, match="share of the steps"):
        BudgetMeter(torch.optim.Adam([x]), x.sum, rate=0)
    with pytest.raises(OptimizerError, match="maximize"):
        BudgetMeter(torch.optim.Adam([x], maximize=True), x.sum)
    with pytest.raises(OptimizerError, match="cannot be watched"):
        BudgetMeter(torch.optim.SGD([x], lr=0.1), x.sum)
    with pytest.raises(TheoremError, match="no step was measured yet"):
        BudgetMeter(torch.optim.Adam([x]), x.sum).budget()
    with pytest.raises(TheoremError, match="no finite number at step"):
        quadratic(steps=20, probe=lambda x: lambda: math.inf * x.sum())[0].budget()
