"""The clock of a run: silent where the certificate's sequences are executed, and exact about the first step else."""

import pytest

from generic_adam.errors import OptimizerError

pytest.importorskip("torch")

import torch

from generic_adam.methods import catalogue
from generic_adam.verify.clock import Clock


def trained(optimizer, steps, scheduler=None, meddle=lambda _t: None):
    generator = torch.Generator().manual_seed(1)
    for t in range(1, steps + 1):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = torch.randn(p.shape, generator=generator) * 10 ** (t % 5 - 3)
        meddle(t)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def adamw(**options):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((7, 5), (5,))]
    return torch.optim.AdamW(weights, **{"lr": 1e-2, "weight_decay": 0.1} | options)


@pytest.mark.parametrize("foreach", [True, False])
def test_it_is_silent_where_the_sequences_are_executed(foreach):
    optimizer = adamw(foreach=foreach)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda k: 1 / (1 + k)])
    clock = Clock(optimizer, catalogue.adamw(lr="0.01 / t", weight_decay=0.1), every=3)
    trained(optimizer, 40, scheduler)
    assert clock.difference is None


def test_the_first_other_step_is_told():
    optimizer = adamw()

    def meddle(t):
        if t == 13:
            optimizer.param_groups[0]["lr"] = 5e-3

    clock = Clock(optimizer, every=1)
    trained(optimizer, 20, meddle=meddle)
    assert (clock.difference.since, clock.difference.category) == (13, "learning rate")
    assert "0.5 times" in clock.difference.text


def test_other_betas_than_those_of_the_certificate_are_told():
    clock = Clock(optimizer := adamw(betas=(0.9, 0.95)), catalogue.adamw(lr=1e-2, weight_decay=0.1))
    trained(optimizer, 12)
    assert clock.difference.since == 2


def test_detached_it_sees_nothing_and_another_kind_is_refused():
    clock = Clock(optimizer := adamw(), catalogue.adamw(lr=1.0))
    clock.detach()
    trained(optimizer, 3)
    assert clock.difference is None
    with pytest.raises(OptimizerError, match="Adam"):
        Clock(torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1))
