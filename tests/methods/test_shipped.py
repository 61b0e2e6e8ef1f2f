"""The shipped algorithms against the framework's own optimizers, run step by step in plain floats."""

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.methods.catalogue import corrected_eps
from tests.steps import START, gradient, path, torch_path

torch = pytest.importorskip("torch")

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
    x = torch.nn.Parameter(torch.tensor(START))
    theirs = torch_path(x, build([x]))
    # torch keeps NAdam's product of momenta in float32.
    rtol = 1e-6 if build is torch.optim.NAdam else 1e-9
    np.testing.assert_allclose(path(algorithm, gradient, START, 60), theirs, rtol=rtol)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
def test_certified_adam_takes_torchs_first_hundred_steps(scale):
    """Its sequences are Adam's until t = 1000; run from where torch starts, so is every step, however small g is."""
    method = methods.certified_adam()
    algorithm = methods.Algorithm(method, initial_v=0, eps=corrected_eps(1e-8, method.theta))
    x, noise = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64)), lambda x, t: scale * gradient(x, t)
    theirs = torch_path(x, torch.optim.Adam([x]), steps=100, gradient=noise)
    np.testing.assert_allclose(path(algorithm, noise, np.zeros(3), 100), theirs, rtol=1e-10)
