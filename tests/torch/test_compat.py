"""Without the names that torch keeps private, steps are the same: slower, and no less safe."""

import subprocess
import sys

import pytest
import torch

from generic_adam.torch import compat

SCRIPT = """
import sys
import torch
import torch._compile, torch._C._dynamo, torch.utils._foreach_utils, torch.optim.optimizer

theirs = torch.optim.Adam
reference = [torch.nn.Parameter(torch.arange(6.0).reshape(2, 3)), torch.nn.Parameter(torch.ones(()))]
peer = theirs(reference, lr=0.1)
for module, name in {names}:
    if name == "TensorGuards":
        sys.modules[module] = None
    else:
        delattr(sys.modules[module], name)

from generic_adam.torch import GenericAdam, compat
from generic_adam.errors import OptimizerError

params = [torch.nn.Parameter(x.detach().clone()) for x in reference]
optimizer = GenericAdam(params, lr=0.1)
for t in range(1, 40):
    for own in (params, reference):
        for x in own:
            x.grad = torch.cos(x.detach() * t)
    optimizer.step()
    peer.step()
    if t == 20:
        assert optimizer.state[params[0]]["step"] == 20
for x, y in zip(params, reference):
    torch.testing.assert_close(x, y)
assert optimizer._plans[id(optimizer.param_groups[0])].kept
params[0].grad.data = torch.zeros(3)
try:
    optimizer.step()
except OptimizerError as error:
    assert "shape" in str(error)
else:
    raise AssertionError("a gradient of another shape was taken")
print(*sorted(compat.MISSING))
"""
NAMES = [
    ("torch._C._dynamo.guards", "TensorGuards"),
    ("torch", "_fused_adam_"),
    ("torch._compile", "_disable_dynamo"),
    ("torch.utils._foreach_utils", "_get_fused_kernels_supported_devices"),
]


@pytest.mark.parametrize("names", [NAMES, NAMES[:1], NAMES[3:]], ids=["all", "guards", "devices"])
def test_it_runs_without_what_torch_keeps_private(names: list[tuple[str, str]]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{names}", repr(names))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(f"{module}.{name}" for module, name in names)


@pytest.mark.parametrize("without", [False, True])
def test_tensors_are_compared(without: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not compat.MISSING
    if without:
        monkeypatch.setattr(compat, "_Guards", None)
    same = compat.same_kind_as([torch.zeros(2, 3), torch.zeros(3)])
    assert same(torch.ones(2, 3), torch.ones(3))
    assert not same(torch.ones(2, 3, dtype=torch.float64), torch.ones(3))
    assert not same(torch.ones(3, 2).t(), torch.ones(3))
    assert not same(torch.nn.Parameter(torch.ones(2, 3)), torch.ones(3))
    assert not same(torch.ones(2, 3), None)
