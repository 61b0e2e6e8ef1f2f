"""The measured floor: its estimator is the bias of the step that torch's Adam makes, and the study repeats itself."""

import copy
import math

import numpy as np
import pytest
import torch

from generic_adam.errors import RunError
from generic_adam_laboratory.runs.records import Occasion
from generic_adam_laboratory.studies import floors
from generic_adam_laboratory.studies.floors import BETA1, EPS, LEAST, LR, Case, Floors, bias_seen


@pytest.mark.parametrize("theta", [0.95, 0.999])
def test_the_estimator_is_the_bias_of_the_step_that_torch_makes(theta):
    torch.manual_seed(0)
    x = torch.nn.Parameter(torch.randn(50, dtype=torch.float64))
    optimizer = torch.optim.Adam([x], lr=LR, betas=(BETA1, theta), eps=EPS)
    points, steps = [x.detach().clone()], 7
    for _ in range(steps):
        x.grad = torch.randn(50, dtype=torch.float64)
        optimizer.step()
        points.append(x.detach().clone())
    m, v = (optimizer.state[x][name].clone() for name in ("exp_avg", "exp_avg_sq"))
    g, h = torch.randn(2, 50, dtype=torch.float64)
    mass = [1 - theta**t for t in (steps, steps + 1)]
    alpha = [LR * math.sqrt(1 - theta**t) / (1 - BETA1**t) for t in (steps, steps + 1)]
    gamma = BETA1 * math.sqrt(mass[0] / mass[1])
    scale, product, squares, size, taken = bias_seen([g], [h], [(m, v)], theta, *mass, gamma)

    floor = LEAST**2 * v.mean() / mass[0]
    hat = (theta * v + (1 - theta) * torch.clamp(v / mass[0], min=floor)).sqrt() + EPS * math.sqrt(mass[1])
    inherited = (points[-1] - points[-2]) / alpha[0]
    saved = copy.deepcopy(optimizer.state_dict())

    def misled(gradient):
        with torch.no_grad():
            x.copy_(points[-1])
        optimizer.load_state_dict(copy.deepcopy(saved))
        x.grad = gradient.clone()
        optimizer.step()
        made = (x.detach() - points[-1]) / alpha[1]
        return gradient / hat + (made - gamma * inherited) / (1 - BETA1)

    e, f = misled(g), misled(h)
    expected = [hat.sum(), (hat * e * f).sum(), (hat * (e * e + f * f)).sum() / 2, (g * h / hat).sum()]
    assert [scale, product, squares, size] == pytest.approx([float(one) for one in expected], rel=1e-9)
    assert taken == pytest.approx(float((h * e + g * f).sum() / 2), rel=1e-9)


def test_a_run_is_measured_the_same_twice_and_goes_on_from_a_checkpoint(tmp_path):
    cases = [Case("lenet", 1, "digits", 16, 40, beta2, 0) for beta2 in (0.95, 0.999)]
    whole, begun, resumed = (Floors(cases, None) for _ in range(3))
    for _ in cases:
        whole.advance()
    begun.advance()
    resumed.restore(begun.arrays())
    resumed.advance()
    np.testing.assert_array_equal(whole.state["found"], resumed.state["found"])
    assert np.isfinite(whole.state["found"]).all()
    floors.write_floors(tmp_path, whole, Occasion("generic-adam reproduce floors", {}, 1.0))
    table = (tmp_path / "outcomes.md").read_text(encoding="utf-8")
    assert "LeNet, batch 16" in table
    assert "0.407" in table


def test_no_seeds_are_refused():
    with pytest.raises(RunError, match="seeds"):
        floors.cases(0)
