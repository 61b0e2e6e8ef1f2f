"""Stacks of torch's schedulers made at random: read right, against the scheduler, or refused in a line."""

import time
import warnings

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.optim import lr_scheduler as torch_lr

import generic_adam as ga
from generic_adam.adapters import read
from generic_adam.errors import GenericAdamError

STEPS = 300


def adam():
    return torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.1)


whole = st.integers(1, 60)
share = st.floats(0.01, 1.0)
SIMPLE = st.one_of(
    st.builds(lambda f, n: lambda o: torch_lr.ConstantLR(o, f, n), share, st.integers(0, 60)),
    st.builds(
        lambda a, b, n: lambda o: torch_lr.LinearLR(o, a, b, n), share, st.floats(0, 1), st.integers(0, 60)
    ),
    st.builds(lambda g: lambda o: torch_lr.ExponentialLR(o, g), st.floats(0.9, 1.01)),
    st.builds(lambda n, g: lambda o: torch_lr.StepLR(o, n, g), whole, st.floats(0.1, 1.0)),
    st.builds(lambda m, g: lambda o: torch_lr.MultiStepLR(o, m, g), st.lists(whole, max_size=3), share),
    st.builds(lambda n, p: lambda o: torch_lr.PolynomialLR(o, n, p), whole, st.floats(0.5, 3)),
    st.builds(lambda n, e: lambda o: torch_lr.CosineAnnealingLR(o, n, e), whole, st.sampled_from([0, 1e-3])),
    st.builds(
        lambda n, m: lambda o: torch_lr.CosineAnnealingWarmRestarts(o, n, m, 1e-3), whole, st.integers(1, 3)
    ),
    st.builds(
        lambda n, s: lambda o: torch_lr.OneCycleLR(o, 0.5, n, anneal_strategy=s),
        st.integers(2, 900),
        st.sampled_from(["linear", "cos"]),
    ),
    st.builds(
        lambda n, m, c: lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, n, mode=m, gamma=0.99, cycle_momentum=c),
        whole,
        st.sampled_from(["triangular", "triangular2", "exp_range"]),
        st.booleans(),
    ),
    st.builds(lambda g: lambda o: torch_lr.MultiplicativeLR(o, lambda _k: g), st.floats(0.9, 1.0)),
    st.builds(lambda g: lambda o: torch_lr.LambdaLR(o, lambda k: 1 / (1 + g * k)), share),
    st.builds(lambda n: lambda o: torch.optim.swa_utils.SWALR(o, 0.02, n), whole),
    st.just(torch_lr.ReduceLROnPlateau),
)


def sequential(parts, gaps):
    milestones = np.cumsum(gaps[: len(parts) - 1]).tolist()
    return lambda o: torch_lr.SequentialLR(o, [part(o) for part in parts], milestones)


def chained(parts):
    return lambda o: torch_lr.ChainedScheduler([part(o) for part in parts])


GAPS = st.lists(whole, min_size=2, max_size=2)
STACKS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(sequential, st.lists(inner, min_size=1, max_size=3), GAPS),
        st.builds(chained, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(build=STACKS, every=st.sampled_from([1, 1, 3]))
def test_a_stack_is_read_right_or_refused_in_one_line(build, every):
    optimizer = adam()
    try:
        scheduler = build(optimizer)
    except Exception:  # noqa: BLE001 - torch itself refuses the stack
        return
    try:
        algorithm = read(optimizer, scheduler, steps_per_scheduler_step=every)
    except GenericAdamError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - it may be read as well
        return
    ours, betas = algorithm.method.alpha, algorithm.method.beta
    if isinstance(scheduler, torch_lr.ReduceLROnPlateau):
        return
    limit = STEPS if algorithm.horizon is None else min(STEPS, algorithm.horizon)
    for t in range(1, limit + 1):
        rate, (beta, theta) = optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"]
        rate = 0.0 if -1e-9 < rate < 0 else float(rate)
        corrected = rate * np.sqrt(1 - theta**t) / (1 - beta**t)
        assert ours(t) == pytest.approx(corrected, rel=1e-5, abs=1e-9), t
        assert betas(t) == pytest.approx(beta, rel=1e-6), t
        if t % every == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    scheduler.step()
                except Exception:  # noqa: BLE001 - torch's own end: OneCycleLR inside a chain, SWALR in a sequence
                    return


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(build=STACKS)
def test_certify_answers_or_refuses_in_one_line(build):
    optimizer = adam()
    try:
        scheduler = build(optimizer)
    except Exception:  # noqa: BLE001 - torch itself refuses the stack
        return
    try:
        ga.certify(optimizer, scheduler, horizon=500)
    except GenericAdamError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - it may be answered as well


REPLAYED = {
    "MultiplicativeLR": lambda o: torch_lr.MultiplicativeLR(o, lambda k: 0.999),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.02),
    "a chain": lambda o: torch_lr.ChainedScheduler(
        [torch_lr.ConstantLR(o, 0.5, 400), torch_lr.CosineAnnealingLR(o, 150)]
    ),
    "a closure": lambda o: torch_lr.LambdaLR(o, lambda k: min((k + 1) / 100, 1) * 0.9 ** (k / 1000)),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_replayed_schedulers_are_answered_soon(name):
    optimizer = adam()
    scheduler = REPLAYED[name](optimizer)
    begin = time.process_time()
    certificate = ga.certify(optimizer, scheduler, horizon=10_000)
    assert certificate.verdict in {"undecided", "not certified"}
    assert time.process_time() - begin < 4  # half a second where nothing else runs
