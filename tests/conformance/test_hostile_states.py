"""A state_dict is others' data: whatever it holds, it is taken whole or refused in one line, and nothing changes."""

import copy
import math
import random
from typing import Any

import pytest
import torch

from generic_adam.errors import ScheduleError
from generic_adam.torch import OptimizerError
from generic_adam.torch.scheduled import ScheduledOptimizer
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo

EVERY = [pytest.param(info, id=info.name) for info in OPTIMIZERS]
CASES = 250


class Stranger:
    """An object that no state_dict has."""


HOSTILE = (
    *(
        None,
        True,
        -1,
        0,
        10**400,
        2**63,
        -1e-9,
        math.nan,
        math.inf,
        -math.inf,
        0.5,
        1.0,
        -0.0,
    ),
    *("x", "0.1/t", "t+" * 100_000 + "t", "0e9999999", "callable: x", "1/t\0", b"x"),
    *(
        [],
        (),
        {},
        [1, 2],
        (0.9,),
        (0.9, 0.99),
        (math.nan, math.nan),
        ("a", "b"),
        (None, None),
        set(),
        range(3),
    ),
    *(torch.tensor(3.0), torch.tensor(math.nan), torch.zeros(0), torch.zeros(3), torch.zeros(1, 1)),
    *(torch.tensor(1 + 2j), torch.tensor(0.1, device="meta"), torch.tensor([1, 2]), torch.tensor(True)),
    *(Stranger(), Stranger),
)
OTHER_STATES = (None, [], {7: {}}, {0: 3}, {"a": {}}, {0: {}}, {0: {3: torch.zeros(3)}}, {0: {"exp_avg": 1}})
OTHER_GROUPS = (None, [], {}, [1, 2], ["a", {}], [{}, {}], [{"params": [0]}, {"params": [1]}], "ab")
NO_STATE_DICTS = (None, 3, [], "x", {}, {"state": {}}, {"param_groups": []})


def damaged(whole: dict[str, Any], choose: random.Random) -> Any:
    """A state_dict with something wrong in it, most of the time."""
    result = copy.deepcopy(whole)
    kind = choose.random()
    if kind < 0.04:
        return choose.choice(NO_STATE_DICTS)
    if kind < 0.08:
        return {**result, "state": choose.choice(OTHER_STATES)}
    if kind < 0.12:
        groups = result["param_groups"]
        return {**result, "param_groups": choose.choice((*OTHER_GROUPS, groups * 2, groups[:1]))}
    place = result["param_groups"] if kind < 0.6 else result["state"]
    part = place[choose.randrange(2)]
    key = choose.choice([*part, "unknown", 3])
    if choose.random() < 0.15:
        part.pop(key, None)
    else:
        part[key] = choose.choice(HOSTILE)
    return result


def assert_one_line(message: str) -> None:
    assert "\n" not in message
    assert len(message) < 400


def steps(optimizer: ScheduledOptimizer, count: int) -> None:
    for _ in range(count):
        for group in optimizer.param_groups:
            for x in group["params"]:
                x.grad = torch.ones_like(x)
        optimizer.step()


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_state_is_taken_whole_or_refused_and_nothing_changes(info: OptimizerInfo, seed: int) -> None:
    choose = random.Random(f"{info.name} {seed}")
    refused = 0
    for _ in range(CASES):
        arguments = choose.choice([one for one in info.valid if not any(map(callable, one.values()))])
        groups = [{"params": [torch.nn.Parameter(torch.ones(shape))]} for shape in ((3, 4), (5,))]
        optimizer = info.constructor(groups, **arguments)
        steps(optimizer, 4)
        before = copy.deepcopy(optimizer.state_dict())
        try:
            optimizer.load_state_dict(damaged(before, choose))
        except OptimizerError as error:
            refused += 1
            assert_one_line(str(error))
            after = optimizer.state_dict()
            torch.testing.assert_close(after["state"], before["state"], rtol=0, atol=0)
            assert after["param_groups"] == before["param_groups"]
            steps(optimizer, 2)
        try:
            steps(optimizer, 2)
        except (OptimizerError, ScheduleError) as error:
            # A text that is a schedule, and out of range at the next step; or a t at which it has no value.
            assert_one_line(str(error))
        repr(optimizer)
        copy.deepcopy(optimizer.state_dict())
    assert CASES / 3 < refused < CASES


def _released() -> torch.Tensor:
    tensor = torch.zeros(64, 64)
    tensor.untyped_storage().resize_(128)
    return tensor


@pytest.mark.parametrize("info", EVERY)
def test_a_tensor_whose_memory_is_gone_is_refused(info: OptimizerInfo) -> None:
    """A kernel would read and write what lies behind it."""
    for arguments in (one for one in info.valid if not any(map(callable, one.values()))):
        optimizer = info.constructor([torch.nn.Parameter(torch.ones(64, 64))], **arguments)
        steps(optimizer, 2)
        for key, value in optimizer.state_dict()["state"][0].items():
            if not torch.is_tensor(value) or value.shape != (64, 64):
                continue
            saved = copy.deepcopy(optimizer.state_dict())
            saved["state"][0][key] = _released()
            with pytest.raises(OptimizerError, match=f"the saved {key} .* has less memory than its shape"):
                optimizer.load_state_dict(saved)
            steps(optimizer, 1)


@pytest.mark.parametrize("arguments", [{}, {"foreach": True}, {"foreach": False}], ids=str)
@pytest.mark.parametrize(
    "strange",
    [
        torch._neg_view(-torch.ones(4, 4)),
        torch.ones(7).as_strided((4, 4), (1, 1)),
        torch.ones(1).expand(4, 4),
    ],
    ids=["negated", "shared", "expanded"],
)
def test_a_view_of_other_memory_counts_by_its_values(arguments: dict[str, Any], strange: torch.Tensor) -> None:
    """As others' tensors may be views; the elements of one that share memory cannot be updated in place."""
    found = []
    for saved_average in (strange, torch.ones(4, 4)):
        x = torch.nn.Parameter(torch.zeros(4, 4))
        optimizer = OPTIMIZERS[0].constructor([x], **arguments)
        steps(optimizer, 1)
        saved = optimizer.state_dict()
        saved["state"][0]["exp_avg"] = saved_average
        optimizer.load_state_dict(saved)
        steps(optimizer, 3)
        found.append(x.detach())
    assert torch.equal(*found)


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": math.nan}, "the saved lr is nan; expected a finite lr >= 0"),
        ({"lr": -0.1}, "the saved lr is -0.1; expected a finite lr >= 0"),
        ({"lr": torch.zeros(3)}, r"the saved lr is a tensor of shape \(3,\); expected one real number"),
        ({"maximize": "no"}, "maximize is 'no'; expected True or False"),
        ({"maximize": None}, "maximize is None; expected True or False"),
        ({"params": [0, 1]}, "group 0 of the saved state has 2 parameters; expected 1, as this optimizer"),
        ({"step": 2.5}, "the saved step is 2.5; expected a whole number >= 0"),
    ],
    ids=str,
)
def test_the_line_says_what_is_wrong(info: OptimizerInfo, change: dict[str, Any], message: str) -> None:
    optimizer = info.constructor([torch.nn.Parameter(torch.ones(3))])
    saved = optimizer.state_dict()
    saved["param_groups"][0].update(change)
    with pytest.raises(OptimizerError, match=f"^{message}$"):
        optimizer.load_state_dict(saved)


@pytest.mark.parametrize(
    "change",
    [{"betas": (2.0, 0.9)}, {"betas": None}, {"lr": None}, {"eps": "1"}, {"weight_decay": torch.ones(2)}],
)
def test_a_state_of_torchs_adam_is_others_data_too(change: dict[str, Any]) -> None:
    x = torch.nn.Parameter(torch.ones(3))
    adam, optimizer = torch.optim.Adam([x]), OPTIMIZERS[0].constructor([x])
    x.grad = torch.ones(3)
    adam.step()
    saved = adam.state_dict()
    saved["param_groups"][0].update(change)
    with pytest.raises(OptimizerError, match="expected"):
        optimizer.load_state_dict(saved)
    optimizer.step()
