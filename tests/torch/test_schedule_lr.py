"""ScheduleLR drives any torch optimizer by a schedule: exactly, through checkpoints, inside SequentialLR."""

import io

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import ConstantLR, SequentialLR

from generic_adam.schedules import ScheduleError, parse
from generic_adam.torch import GenericAdam, ScheduleLR


def sgd(groups=1):
    return torch.optim.SGD([{"params": [torch.zeros(1, requires_grad=True)]} for _ in range(groups)], lr=9.0)


def run(optimizer, scheduler, steps):
    rates = []
    for _ in range(steps):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return np.array(rates)


def test_step_t_has_the_rate_u_t():
    optimizer = sgd()
    schedule = parse("0.5 / sqrt(t) if t < 40 else 0.01 + 1/t^2")
    rates = run(optimizer, ScheduleLR(optimizer, schedule), 100)
    np.testing.assert_array_equal(rates[:, 0], [schedule(t) for t in range(1, 101)])


def test_one_schedule_for_each_group():
    optimizer = sgd(2)
    rates = run(optimizer, ScheduleLR(optimizer, ["1/t", 0.25]), 4)
    np.testing.assert_array_equal(rates, [[1, 0.25], [0.5, 0.25], [1 / 3, 0.25], [0.25, 0.25]])


def test_same_weights_as_generic_adam_with_the_schedule():
    def train(build):
        x = torch.nn.Parameter(torch.arange(1.0, 5.0, dtype=torch.float64))
        optimizer, scheduler = build(x)
        for t in range(1, 60):
            x.grad = torch.sin(x.detach() * t)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
        return x.detach()

    def driven(x):
        optimizer = GenericAdam([x], lr=1.0, theta="1 - 1/max(t, 2)")
        return optimizer, ScheduleLR(optimizer, "0.1/sqrt(t)")

    inner = train(lambda x: (GenericAdam([x], lr="0.1/sqrt(t)", theta="1 - 1/max(t, 2)"), None))
    assert torch.equal(train(driven), inner)


def test_a_checkpoint_continues_where_it_was():
    optimizer = sgd()
    scheduler = ScheduleLR(optimizer, "1/t")
    run(optimizer, scheduler, 6)
    file = io.BytesIO()
    torch.save({"scheduler": scheduler.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    resumed = sgd()
    continued = ScheduleLR(resumed, "1/t")
    continued.load_state_dict(saved["scheduler"])
    resumed.load_state_dict(saved["optimizer"])
    np.testing.assert_array_equal(run(resumed, continued, 5), run(optimizer, scheduler, 5))


def test_a_checkpoint_of_another_schedule_is_refused():
    optimizer = sgd()
    state = ScheduleLR(optimizer, "1/t").state_dict()
    with pytest.raises(ScheduleError, match="1 / t"):
        ScheduleLR(optimizer, "1/t^2").load_state_dict(state)


@pytest.mark.filterwarnings("ignore:The epoch parameter")  # of SequentialLR itself, in older releases
def test_inside_sequential_lr_it_starts_at_u_1():
    optimizer = sgd()
    scheduler = SequentialLR(optimizer, [ConstantLR(optimizer, 0.5, 100), ScheduleLR(optimizer, "1/t")], [3])
    np.testing.assert_allclose(run(optimizer, scheduler, 6)[:, 0], [4.5, 4.5, 4.5, 1, 1 / 2, 1 / 3])


def test_bad_arguments_are_one_line():
    with pytest.raises(ScheduleError, match="got 3 schedules for 2 parameter groups"):
        ScheduleLR(sgd(2), [0.1, 0.2, 0.3])
    with pytest.raises(ScheduleError, match="unknown name"):
        ScheduleLR(sgd(), "1/x")
    with pytest.raises(ScheduleError, match="got NoneType"):
        ScheduleLR(sgd(), None)
