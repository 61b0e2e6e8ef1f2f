"""The shipped algorithms against the framework's own optimizers, run step by step in plain floats."""

import math

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.methods.catalogue import corrected_eps

torch = pytest.importorskip("torch")

GRADIENTS = np.random.default_rng(3).normal(size=40)


def iterates(algorithm):
    """x_2, ..., x_41 by the fields of the algorithm alone, from x_1 = 1."""
    x, m, v, b, largest, path = 1.0, 0.0, algorithm.initial_v, 0.0, 0.0, []
    for t, g in enumerate(GRADIENTS.tolist(), 1):
        alpha, beta, theta = algorithm.method.at(t)
        v = theta * v + (1 - theta) * g * g
        m = beta * m + (1 - beta) * g
        largest = max(largest, v)
        root = math.sqrt(largest if algorithm.running_maximum else v) if algorithm.preconditioned else 1.0
        divisor = root + algorithm.eps(t)
        step = m / divisor
        if algorithm.nesterov is not None:
            a, c = algorithm.nesterov.momentum_weight(t), algorithm.nesterov.gradient_weight(t)
            step = (a * m + c * g) / divisor
        if algorithm.heavy_ball is not None:
            step = b = float(algorithm.heavy_ball.factor) * b + g / divisor
        x = (1 - algorithm.decay(t)) * x - alpha * step
        path.append(x)
    return path


CASES = [
    (methods.adamw(lr=0.01), lambda p: torch.optim.AdamW(p, lr=0.01)),
    (methods.adamw(weight_decay=0), torch.optim.Adam),
    (methods.amsgrad(lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True)),
    (methods.nadam(), torch.optim.NAdam),
    (methods.rmsprop_torch(momentum=0.9), lambda p: torch.optim.RMSprop(p, momentum=0.9)),
    (methods.adagrad_torch(), torch.optim.Adagrad),
    (methods.sgd(momentum=0.5), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.5)),
]


@pytest.mark.parametrize(("algorithm", "build"), CASES, ids=lambda one: getattr(one, "label", ""))
def test_the_fields_say_what_torch_runs(algorithm, build):
    parameter = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
    optimizer, path = build([parameter]), []
    for g in GRADIENTS:
        parameter.grad = torch.tensor(g)
        optimizer.step()
        path.append(parameter.item())
    np.testing.assert_allclose(iterates(algorithm), path, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
def test_certified_adam_takes_torchs_first_hundred_steps(scale):
    """Its sequences are Adam's until t = 1000; run from where torch starts, so is every step, however small g is."""
    method = methods.certified_adam()
    algorithm = methods.Algorithm(method, initial_v=0, eps=corrected_eps(1e-8, method.theta))
    generator = np.random.default_rng(5)
    parameter = torch.nn.Parameter(torch.zeros(20, dtype=torch.float64))
    optimizer, m, v = torch.optim.Adam([parameter]), 0.0, algorithm.initial_v
    for t in range(1, 101):
        g, before = scale * generator.normal(size=20), parameter.detach().numpy().copy()
        parameter.grad = torch.tensor(g)
        optimizer.step()
        alpha, beta, theta = method.at(t)
        v = theta * v + (1 - theta) * g * g
        m = beta * m + (1 - beta) * g
        theirs = np.linalg.norm(parameter.detach().numpy() - before)
        assert np.linalg.norm(alpha * m / (np.sqrt(v) + algorithm.eps(t))) == pytest.approx(theirs, rel=1e-10)
