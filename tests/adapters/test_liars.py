"""Objects that do another thing than their class says: it is told, or they are refused, and stay as they are."""

import random
import types

import pytest
import torch
from torch.optim import lr_scheduler as torch_lr
from torch.optim.optimizer import register_optimizer_step_post_hook

import generic_adam as ga
from generic_adam.adapters.torch import read
from generic_adam.errors import OptimizerError
from generic_adam.torch import GenericAdam


def weights():
    return [torch.zeros(2, requires_grad=True)]


def adam(**settings):
    return torch.optim.Adam(weights(), lr=0.1, **settings)


def floored(scheduler, bound):
    """Its step with a least rate, far beyond the steps that can be tried out."""
    plain = scheduler.step

    def step(self=scheduler, epoch=None):
        type(self).step(self) if bound else plain()
        for group in scheduler.optimizer.param_groups:
            group["lr"] = max(group["lr"], 0.01)

    scheduler.step = types.MethodType(step, scheduler) if bound else step
    return scheduler


def higher(scheduler):
    plain = scheduler.get_lr
    scheduler.get_lr = lambda: [max(rate, 0.01) for rate in plain()]
    return scheduler


PATCHED = {
    "step, a closure": lambda o: floored(torch_lr.CosineAnnealingLR(o, 2_000), bound=False),
    "step, bound": lambda o: floored(torch_lr.CosineAnnealingLR(o, 2_000), bound=True),
    "get_lr": lambda o: higher(torch_lr.CosineAnnealingLR(o, 2_000)),
    "get_lr inside a chain": lambda o: torch_lr.ChainedScheduler(
        [torch_lr.LinearLR(o), higher(torch_lr.CosineAnnealingLR(o, 2_000))]
    ),
}


@pytest.mark.parametrize("name", PATCHED)
def test_a_scheduler_with_a_replaced_function_is_refused_and_left_alone(name):
    optimizer = adam()
    scheduler = PATCHED[name](optimizer)
    before = [dict(group) for group in optimizer.param_groups], scheduler.state_dict()["_last_lr"]
    with pytest.raises(OptimizerError, match="has been replaced by another function") as caught:
        ga.certify(optimizer, scheduler)
    assert "\n" not in str(caught.value)
    assert before == ([dict(group) for group in optimizer.param_groups], scheduler.state_dict()["_last_lr"])


class Itself(torch_lr.CosineAnnealingLR):
    def __deepcopy__(self, _memo):
        return self


def shared(optimizer):
    """A class that holds the optimizer, not an object of it: copies of objects keep it."""

    class Shared:
        last_epoch = 0

        def step(self):
            self.optimizer.param_groups[0]["lr"] *= 0.5

    Shared.optimizer = optimizer
    return Shared()


@pytest.mark.parametrize("build", [lambda o: Itself(o, 100), shared], ids=["itself", "shared"])
def test_a_scheduler_whose_copy_holds_the_optimizer_is_refused_before_it_is_stepped(build):
    optimizer = adam()
    with pytest.raises(OptimizerError, match="its optimizer stays in the copy"):
        read(optimizer, build(optimizer))
    assert optimizer.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize("rate", [None, "fast", float("nan"), -1.0, [0.1], 10**400], ids=lambda rate: str(rate)[:5])
def test_a_rate_that_is_none_is_refused_in_one_line(rate):
    optimizer = adam()
    optimizer.param_groups[0]["lr"] = rate
    with pytest.raises(ga.GenericAdamError) as caught:
        ga.certify(optimizer)
    assert "\n" not in str(caught.value)


class Moves(torch_lr.LRScheduler):
    """From a step on it sets something else too."""

    def __init__(self, optimizer, after=0, **settings):
        self.after, self.settings = after, settings
        super().__init__(optimizer)

    def get_lr(self):
        if self.last_epoch > self.after:
            for group in self.optimizer.param_groups:
                group.update(self.settings)
        return list(self.base_lrs)


@pytest.mark.parametrize("settings", [{"weight_decay": 0.5}, {"betas": (0.9, 0.5)}, {"eps": 0.1}], ids=str)
def test_a_scheduler_of_more_than_the_rate_is_refused(settings):
    optimizer = adam()
    with pytest.raises(OptimizerError, match=f"Moves moves {next(iter(settings))}") as caught:
        read(optimizer, Moves(optimizer, **settings))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"weight_decay": 0.5}, {"betas": (0.5, 0.999)}], ids=str)
def test_what_it_moves_late_is_refused_where_it_is_met(settings):
    optimizer = adam()
    scheduler = Moves(optimizer, after=700, **settings)
    assert ga.certify(optimizer, scheduler, horizon=600).horizon.steps == 600
    alpha = read(optimizer, scheduler).method.alpha
    with pytest.raises(ga.GenericAdamError, match=f"Moves moves {next(iter(settings))} at its step 701"):
        alpha.values(1, 1_001)
    assert alpha.values(1, 702).size == 701


def test_a_momentum_that_a_class_of_ones_own_moves_is_read():
    optimizer = adam()
    algorithm = read(optimizer, Moves(optimizer, after=50, betas=(0.5, 0.999)))
    assert [algorithm.method.beta(t) for t in (1, 51, 52, 900)] == [0.9, 0.9, 0.5, 0.5]


class Started(torch.optim.Adam):
    """Its v starts at 1."""

    def _init_group(self, group, params, gradients, means, squares, *rest):
        found = super()._init_group(group, params, gradients, means, squares, *rest)
        for square in squares:
            square.fill_(1.0)
        return found


class Halved(GenericAdam):
    def step(self, closure=None):
        return super().step(closure)


def test_an_optimizer_whose_class_changes_a_part_of_the_step():
    assert "Started takes its own steps" in read(Started(weights())).outside[0]
    assert "Halved takes its own steps" in read(Halved(weights())).outside[0]
    optimizer = adam()
    optimizer._init_group = lambda *_: False
    assert "replaced" in read(optimizer).outside[0]


def test_hooks_of_every_optimizer_are_outside():
    hook = register_optimizer_step_post_hook(lambda *_: None)
    try:
        assert read(adam()).outside == ("hooks run at every step",)
    finally:
        hook.remove()
    assert read(adam()).outside == ()


def test_a_group_with_no_learning_rate_stands_still():
    optimizer = torch.optim.Adam([{"params": weights()}, {"params": weights(), "lr": 0.0}], lr=0.1)
    for scheduler in (None, torch_lr.CosineAnnealingLR(optimizer, 100)):
        algorithm = read(optimizer, scheduler)
        assert [part.groups for part in algorithm.parts] == [(0,)]
        assert "group 1 stands still: its learning rate is 0" in algorithm.notes
    with pytest.raises(OptimizerError, match="every learning rate is 0"):
        read(torch.optim.Adam(weights(), lr=0.0))


@pytest.mark.parametrize(("steps", "every"), [(1, 1), (7, 1), (7, 3), (9, 3)])
def test_an_optimizer_and_a_scheduler_at_the_same_place_need_no_remark(steps, every):
    optimizer = adam()
    scheduler = torch_lr.LinearLR(optimizer, 1.0, 0.1, 1_000)
    (parameter,) = optimizer.param_groups[0]["params"]
    for step in range(1, steps + 1):
        parameter.grad = torch.ones(2)
        optimizer.step()
        assert read(optimizer, scheduler, steps_per_scheduler_step=every).notes == ()
        if step % every == 0:
            scheduler.step()
            assert read(optimizer, scheduler, steps_per_scheduler_step=every).notes == ()


def test_a_new_scheduler_for_an_optimizer_that_has_stepped_is_a_remark():
    optimizer = adam()
    (parameter,) = optimizer.param_groups[0]["params"]
    for _ in range(50):
        parameter.grad = torch.ones(2)
        optimizer.step()
    notes = read(optimizer, torch_lr.LinearLR(optimizer, 1.0, 0.1, 1_000)).notes
    assert notes == ("the optimizer has taken 50 steps and its scheduler 0: read as if both began together",)


def rising(optimizer):
    scheduler = torch_lr.ReduceLROnPlateau(optimizer)
    scheduler._reduce_lr = lambda epoch: None
    return scheduler


PLATEAUS = [(torch_lr.ReduceLROnPlateau, "depends on the data"), (rising, "replaced by another")]


@pytest.mark.parametrize(("build", "said"), PLATEAUS)
def test_a_plateau_is_refused_in_one_line(build, said):
    optimizer = adam()
    with pytest.raises(OptimizerError, match=said):
        ga.certify(optimizer, build(optimizer))


def ahead(optimizer, steps):
    """A drop 2,000 steps ahead, further than can be tried out, that has come nearer."""
    scheduler = torch_lr.StepLR(optimizer, 2_000)
    for _ in range(steps):
        scheduler.step()
    return scheduler


def stepped(optimizer, steps):
    scheduler = torch_lr.SequentialLR(optimizer, [torch_lr.ConstantLR(optimizer), ahead(optimizer, 0)], [5])
    for _ in range(steps):
        scheduler.step()
    scheduler._schedulers[1].step()
    return scheduler


APART = {
    "a part of a chain": lambda o: torch_lr.ChainedScheduler([torch_lr.LinearLR(o, 1.0), ahead(o, 3)]),
    "the first of a sequence": lambda o: torch_lr.SequentialLR(o, [ahead(o, 3), torch_lr.ConstantLR(o)], [3_000]),
    "stepped inside a sequence": lambda o: stepped(o, 20),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", APART)
def test_parts_that_were_not_stepped_together_are_tried_out_or_refused(name):
    optimizer = adam()
    scheduler = APART[name](optimizer)
    if name.startswith("stepped"):
        with pytest.raises(OptimizerError, match="has been stepped 20 times"):
            read(optimizer, scheduler)
        return
    alpha = read(optimizer, scheduler).method.alpha
    assert alpha(1_990) == pytest.approx(0.1, rel=0.1)
    assert alpha(1_999) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("make", [torch_lr.LambdaLR, torch_lr.MultiplicativeLR])
def test_a_rate_that_is_drawn_is_no_sequence(make):
    optimizer, draw = adam(), random.Random(1)
    with pytest.raises(OptimizerError, match="other learning rates when it is asked again"):
        ga.certify(optimizer, make(optimizer, lambda count: 1 - draw.random() / 10))


def test_an_object_that_counts_its_calls_is_left_alone():
    class Counting:
        calls = 0

        def __call__(self, count):
            self.calls += 1
            return 1 / self.calls

    optimizer, counting = adam(), Counting()
    found = read(optimizer, torch_lr.LambdaLR(optimizer, counting))
    assert counting.calls == 1
    plain = read(adam()).method.alpha
    assert found.method.alpha(700) / plain(700) == pytest.approx(1 / 700)


def test_a_cycle_inside_a_sequence_ends_where_torch_ends_it():
    optimizer = adam()
    parts = [torch_lr.LinearLR(optimizer, 0.5, 1.0, 600), torch_lr.OneCycleLR(optimizer, 0.5, 500)]
    alpha = read(optimizer, torch_lr.SequentialLR(optimizer, parts, [600])).method.alpha
    assert alpha.values(1, 1_102).size == 1_101
    with pytest.raises(ga.GenericAdamError, match="Tried to step 501 times"):
        alpha(1_102)
