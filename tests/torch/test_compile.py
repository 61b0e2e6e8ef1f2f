"""Under torch.compile a step runs outside the graph: the same numbers, and no compilation at every step."""

from collections.abc import Callable, Iterator

import pytest
import torch

from generic_adam.torch import GenericAdam
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo

EVERY = [pytest.param(info, id=info.name) for info in OPTIMIZERS]
STEPS = 15
# torch warns of its own modules while it compiles.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def parameter() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4))


def train(x: torch.nn.Parameter, step: Callable[[], object]) -> torch.Tensor:
    for t in range(1, STEPS + 1):
        x.grad = torch.cos(x.detach() * t)
        step()
    return x.detach()


def compilations() -> int:
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("info", EVERY)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_compiled_step_is_the_step(info: OptimizerInfo, backend: str) -> None:
    x, y = parameter(), parameter()
    arguments = {"lr": "0.1/sqrt(t)", **({"keep": 2} if info.name == "AdaShift" else {})}
    one, other = info.constructor([x], **arguments), info.constructor([y], **arguments)
    compiled = torch.compile(other.step, backend=backend)
    assert torch.equal(train(y, compiled), train(x, one.step))
    assert other.param_groups[0]["step"] == STEPS
    assert compilations() == 0


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_compiled_training_step_keeps_the_network_in_its_graph(backend: str) -> None:
    def run(compiled: bool) -> tuple[torch.Tensor, int]:
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
        optimizer = GenericAdam(network.parameters(), lr="0.1/sqrt(t)", theta="1 - 1/max(t, 2)")

        def step(inputs: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = network(inputs).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        call = torch.compile(step, backend=backend) if compiled else step
        for t in range(STEPS):
            call(torch.randn(5, 4, generator=torch.Generator().manual_seed(t), dtype=torch.float64))
            if t == 2:
                settled = compilations()
        assert compilations() == settled  # nothing is compiled again, whatever the schedules do
        return torch.cat([x.detach().ravel() for x in network.parameters()]), settled

    straight, _ = run(compiled=False)
    result, graphs = run(compiled=True)
    torch.testing.assert_close(result, straight, rtol=1e-12, atol=1e-14)
    assert graphs >= 1


def test_a_whole_graph_cannot_hold_a_step() -> None:
    x = parameter()
    optimizer = GenericAdam([x], lr=0.1)
    x.grad = torch.ones_like(x)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(optimizer.step, backend="eager", fullgraph=True)()
    assert torch.equal(x, parameter())
