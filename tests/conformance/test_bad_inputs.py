"""Every bad argument gets one line that says what, where and what was expected."""

import re

import numpy as np
import pytest
import torch

from generic_adam.torch import OptimizerError
from tests.conformance.optimizers import OPTIMIZERS, BadInput, OptimizerInfo

EVERY = [pytest.param(info, id=info.name) for info in OPTIMIZERS]
BAD = [
    pytest.param(info, bad, id=f"{info.name}-{'-'.join(bad.arguments)}-{index}")
    for info in OPTIMIZERS
    for index, bad in enumerate(info.bad)
]
# These are of the optimizer as a whole, or go with another.
BAD_IN_A_GROUP = [
    case
    for case in BAD
    if not {"capturable", "differentiable", "initial_weight"} & set(case.values[1].arguments)
    and "(beta, None)" not in case.values[1].message
]


def parameter() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.ones(3))


@pytest.mark.parametrize(("info", "bad"), BAD)
def test_a_bad_argument_is_named(info: OptimizerInfo, bad: BadInput) -> None:
    with pytest.raises(OptimizerError) as caught:
        info.constructor([parameter()], **bad.arguments)
    assert str(caught.value) == bad.message


@pytest.mark.parametrize(("info", "bad"), BAD_IN_A_GROUP)
def test_a_bad_option_of_a_group_is_named_and_the_group_not_added(info: OptimizerInfo, bad: BadInput) -> None:
    optimizer = info.constructor([parameter()])
    with pytest.raises(OptimizerError) as caught:
        optimizer.add_param_group({"params": [parameter()], **bad.arguments})
    assert str(caught.value) == bad.message
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("info", EVERY)
def test_a_misspelt_keyword_is_an_error(info: OptimizerInfo) -> None:
    with pytest.raises(TypeError, match="weigth_decay"):
        info.constructor([parameter()], weigth_decay=0.1)
    with pytest.raises(OptimizerError, match=re.escape("'weigth_decay'; did you mean 'weight_decay'?")):
        info.constructor([{"params": [parameter()], "weigth_decay": 0.1}])
    # A note of the user's own is no option, and stays.
    optimizer = info.constructor([{"params": [parameter()], "lr_scale": 0.5, "name": "head"}])
    assert optimizer.param_groups[0]["name"] == "head"


@pytest.mark.parametrize("info", EVERY)
def test_no_parameters_and_no_tensor(info: OptimizerInfo) -> None:
    with pytest.raises(ValueError, match="empty parameter list"):
        info.constructor([])
    with pytest.raises(TypeError, match="iterable of Tensors"):
        info.constructor(torch.ones(3))
    with pytest.raises(TypeError, match="must be a dict, got list"):
        info.constructor([parameter()]).add_param_group([parameter()])


@pytest.mark.parametrize("info", EVERY)
def test_sparse_gradients_are_refused_before_anything_changes(info: OptimizerInfo) -> None:
    dense, sparse = parameter(), parameter()
    dense.grad = torch.ones(3)
    indices, values = torch.tensor([[1]]), torch.tensor([2.0])
    sparse.grad = torch.sparse_coo_tensor(indices, values, (3,), check_invariants=True)
    optimizer = info.constructor([{"params": [dense]}, {"params": [dense.new_ones(3), sparse]}])
    with pytest.raises(RuntimeError, match=r"parameter 1 of its group, of shape \(3,\), is sparse"):
        optimizer.step()
    assert torch.equal(dense, torch.ones(3))
    assert optimizer.param_groups[0]["step"] == 0


@pytest.mark.parametrize("info", EVERY)
def test_a_schedule_that_leaves_its_range_changes_nothing(info: OptimizerInfo) -> None:
    x = parameter()
    optimizer = info.constructor([x], lr=lambda t: 0.1 if t < 3 else float("nan"))
    for _ in range(2):
        x.grad = torch.ones(3)
        optimizer.step()
    before, state = x.detach().clone(), optimizer.state_dict()
    with pytest.raises(OptimizerError, match="lr at t = 3 is nan; expected a finite lr >= 0"):
        optimizer.step()
    assert torch.equal(x, before)
    assert optimizer.param_groups[0]["step"] == 2
    torch.testing.assert_close(optimizer.state_dict()["state"], state["state"], rtol=0, atol=0)


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("key", ["lr", "lr_schedule", "step", "steps_done", "maximize", "beta", "betas"])
@pytest.mark.parametrize("value", ["x", [], -1.5, torch.ones(2), np.ones(3)], ids=str)
def test_what_somebody_wrote_into_a_group_is_named(info: OptimizerInfo, key: str, value: object) -> None:
    x = parameter()
    optimizer = info.constructor([x])
    key = key if key in optimizer.param_groups[0] else "lr"  # some have no beta or betas
    x.grad = torch.ones(3)
    optimizer.step()
    before = x.detach().clone()
    optimizer.param_groups[0][key] = value
    with pytest.raises(OptimizerError):
        optimizer.step()
    assert torch.equal(x, before)


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("value", ["x", None, -1.5], ids=str)
def test_a_count_that_somebody_wrote_into_the_state_is_named(info: OptimizerInfo, value: object) -> None:
    x = parameter()
    optimizer = info.constructor([x])
    x.grad = torch.ones(3)
    optimizer.step()
    key = "step" if "step" in optimizer.state[x] else "count"
    optimizer.state[x][key] = value
    before = x.detach().clone()
    with pytest.raises(OptimizerError, match=rf"the {key} of parameter 0 of its group is .*; expected a whole"):
        optimizer.step()
    assert torch.equal(x, before)
