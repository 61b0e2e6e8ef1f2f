"""Watch compares executed steps with the certificate's sequences, and is exact about the first step that is another."""

import pytest

from generic_adam.errors import OptimizerError

torch = pytest.importorskip("torch")

from generic_adam.adapters import read  # noqa: E402
from generic_adam.methods import catalogue  # noqa: E402
from generic_adam.watch import Watch  # noqa: E402


def adamw(kind=torch.optim.AdamW, **options):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((7, 5), (5,))]
    return kind(weights, **{"lr": 1e-2, "weight_decay": 0.1} | options)


def watched(optimizer, steps, algorithm=None, scheduler=None, meddle=lambda _t: None):
    """The finding about the optimizer after training with gradients of many sizes, or None."""
    generator = torch.Generator().manual_seed(1)
    with Watch(optimizer, algorithm=algorithm, on_event=lambda _: None) as watch:
        for t in range(1, steps + 1):
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = torch.randn(p.shape, generator=generator) * 10 ** (t % 5 - 3)
            meddle(t)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
    return next((one for one in watch.diagnose().findings if one.cause == "wrong_optimizer"), None)


@pytest.mark.parametrize("foreach", [True, False])
def test_it_is_silent_where_the_sequences_are_executed(foreach):
    optimizer = adamw(foreach=foreach)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda k: 1 / (1 + k)])
    assert watched(optimizer, 60, catalogue.adamw(lr="0.01 / t", weight_decay=0.1), scheduler) is None


def test_the_first_other_step_is_told_with_what_it_is_of_the_stated_one():
    optimizer = adamw(weight_decay=0.0)

    def meddle(t):
        if t == 7:
            optimizer.param_groups[0]["lr"] = 5e-3

    found = watched(optimizer, 60, read(optimizer), meddle=meddle)
    assert found.since == 7
    assert found.evidence["wrong_ratio"] == pytest.approx(0.5, rel=1e-5)
    assert watched(adamw(), 60, meddle=meddle) is None  # the groups say so themselves


def test_a_later_other_step_is_told_at_the_next_one_that_is_compared():
    optimizer = adamw()

    def meddle(t):
        if t == 33:
            optimizer.param_groups[0]["lr"] = 1.01e-2

    assert watched(optimizer, 80, read(optimizer), meddle=meddle).since == 50


def test_other_betas_than_those_of_the_certificate_are_told():
    optimizer = adamw(betas=(0.9, 0.95))
    assert watched(optimizer, 30, catalogue.adamw(lr=1e-2, weight_decay=0.1)).since == 1  # bias correction


@pytest.mark.parametrize("claim", [True, False])
def test_a_decay_in_the_gradient_is_a_part_of_the_step(claim):
    optimizer = adamw(torch.optim.Adam)
    assert watched(optimizer, 60, read(optimizer) if claim else None) is None
    found = watched(adamw(torch.optim.Adam), 60, catalogue.adamw(lr=1e-2, weight_decay=0.1))
    assert found.since == 1


def test_what_has_other_steps_is_refused():
    with pytest.raises(OptimizerError, match="cannot be compared with steps: "):
        Watch(adamw(), algorithm=read(torch.optim.NAdam([torch.nn.Parameter(torch.ones(2))])))
