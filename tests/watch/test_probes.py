"""Probes measure what is known of problems with a known answer, and leave no trace."""

import math

import pytest

torch = pytest.importorskip("torch")

from generic_adam.watch import Watch  # noqa: E402
from generic_adam.watch.budget import curvature  # noqa: E402


def test_the_curvature_of_a_quadratic_is_its_largest_preconditioned_eigenvalue():
    torch.manual_seed(0)
    root = torch.randn(6, 6, dtype=torch.float64)
    hessian = root @ root.T
    x = torch.nn.Parameter(torch.randn(6, dtype=torch.float64))
    scale = torch.rand(6, dtype=torch.float64) + 0.1
    found = curvature(lambda: 0.5 * x @ hessian @ x, [x], [scale])
    exact = torch.linalg.eigvalsh(hessian / (scale[:, None] * scale[None, :]).sqrt())[-1]
    assert 0.9 * exact <= found <= exact * (1 + 1e-12)


def test_a_probe_changes_no_draw():
    x = torch.nn.Parameter(torch.ones(50))

    def dropped():
        return (torch.nn.functional.dropout(x, 0.5) ** 2).sum()

    torch.manual_seed(1)
    curvature(dropped, [x], [torch.ones(50)])
    after = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(3))
    assert x.grad is None


def test_free_fall_is_seen_before_the_edge():
    """A loss that reaches 0 under a constant rate: v falls, the steps' curvature grows to the edge, the loss jumps."""
    torch.manual_seed(0)
    inputs = torch.randn(64, 10)
    targets = torch.sin(inputs.sum(1, keepdim=True))
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.99))

    def probe():
        return (model(inputs) - targets).square().mean()

    with Watch(optimizer, probe=probe) as watch:
        for _ in range(1500):
            optimizer.zero_grad()
            loss = probe()
            loss.backward()
            optimizer.step()
            watch.loss(loss)
    found = {finding.cause: finding for finding in watch.diagnose().findings}
    assert "free_fall" in found
    jumped = next(record.step for record in watch.records[20:] if record.loss_high > 1e-6)
    assert found["free_fall"].since < jumped
    # The curvature along the steps and the probe's agree that the edge was reached.
    assert 0.5 < max(record.edge for record in watch.records[5:]) < 1.5
    assert 0.5 < max(record.probed for record in watch.records if not math.isnan(record.probed)) < 1.5


def test_a_probe_that_cannot_be_differentiated_twice_is_left_out():
    x = torch.nn.Parameter(torch.ones(20))
    optimizer = torch.optim.Adam([x])

    def train(watch):
        for _ in range(230):
            x.grad = x.detach().clone()
            optimizer.step()
        return watch.records

    with Watch(optimizer, probe=x.sum) as watch:
        with pytest.warns(RuntimeWarning, match="differentiated twice"):
            records = train(watch)
        assert all(math.isnan(record.probed) for record in records)
