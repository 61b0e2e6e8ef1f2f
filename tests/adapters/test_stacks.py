"""Stacks of torch's schedulers made at random: read right, against the scheduler, or refused in a line.

pytest tests/adapters/test_stacks.py -m exhaustive          (FUZZ_STACKS=10000)
"""

import copy
import os

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.optim import lr_scheduler as torch_lr

import generic_adam as ga
from generic_adam.adapters import read
from generic_adam.errors import GenericAdamError
from generic_adam.schedules import has_callable
from generic_adam.torch import ScheduleLR

# Closed forms are compared with their schedulers over 500 steps: what differs only later needs longer runs.
STEPS = {"short": 300, "long": 2_600}


def adam(groups=1, **settings):
    parts = [{"params": [torch.zeros(1, requires_grad=True)], "lr": 0.1 / (n + 1)} for n in range(groups)]
    return torch.optim.Adam(parts, **settings)


whole = st.one_of(st.integers(1, 60), st.integers(1, 60), st.integers(400, 1_300))
# Lengths that are not whole are torch's to bear.
length = st.one_of(whole, whole, whole, st.floats(0.5, 1_300).map(lambda x: round(2 * x) / 2))
share = st.floats(0.01, 1.0)
TRANSFORMERS = [
    *((name, {}) for name in ("constant", "constant_with_warmup", "linear", "cosine", "inverse_sqrt", "polynomial")),
    *(("cosine_with_restarts", {"num_cycles": n}) for n in (1, 3, 5)),
    ("cosine", {"num_cycles": 1.7}),
    ("cosine_with_min_lr", {"min_lr": 1e-3}),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1}),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1, "warmup_lr_rate": 0.3}),
    ("inverse_sqrt", {"timescale": 40}),
    ("polynomial", {"lr_end": 1e-4, "power": 2.0}),
    *(
        ("warmup_stable_decay", {"num_decay_steps": 20, "decay_type": kind, "warmup_type": up, "min_lr_ratio": 0.1})
        for kind in ("linear", "cosine", "1-sqrt")
        for up in ("linear", "cosine", "1-sqrt")
    ),
]
SIMPLE = st.one_of(
    st.builds(lambda f, n: lambda o: torch_lr.ConstantLR(o, f, n), share, st.just(0) | length),
    st.builds(lambda a, b, n: lambda o: torch_lr.LinearLR(o, a, b, n), share, st.floats(0, 1), st.just(0) | length),
    st.builds(lambda g: lambda o: torch_lr.ExponentialLR(o, g), st.just(0.0) | st.floats(0.9, 1.01)),
    st.builds(lambda n, g: lambda o: torch_lr.StepLR(o, n, g), length, st.just(0) | st.floats(0.1, 1.0)),
    st.builds(lambda m, g: lambda o: torch_lr.MultiStepLR(o, m, g), st.lists(st.just(0) | length, max_size=3), share),
    st.builds(lambda n, p: lambda o: torch_lr.PolynomialLR(o, n, p), length, st.just(0) | st.floats(0.5, 3)),
    st.builds(lambda n, e: lambda o: torch_lr.CosineAnnealingLR(o, n, e), length, st.sampled_from([0, 1e-3, 0.2])),
    st.builds(
        lambda n, m, e: lambda o: torch_lr.CosineAnnealingWarmRestarts(o, n, m, e),
        whole,
        st.integers(1, 3),
        st.sampled_from([0, 1e-3, 0.2]),
    ),
    st.builds(
        lambda most, n, share, s, three, c, first, last: (
            lambda o: torch_lr.OneCycleLR(
                o,
                [most / (k + 1) for k in range(len(o.param_groups))],
                n,
                pct_start=share,
                anneal_strategy=s,
                three_phase=three,
                cycle_momentum=c,
                base_momentum=0.6,
                max_momentum=0.9,
                div_factor=first,
                final_div_factor=last,
            )
        ),
        st.sampled_from([0.5, 1e-3]),
        st.integers(1, 2_500),
        st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]),
        st.sampled_from(["linear", "cos"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from([1, 25, 0.5]),
        st.sampled_from([1, 1e4]),
    ),
    st.builds(
        lambda low, n, down, m, c: (
            lambda o: torch_lr.CyclicLR(o, low, 0.1, n, down, mode=m, gamma=0.99, cycle_momentum=c)
        ),
        st.sampled_from([0.0, 0.01, 0.3]),
        whole,
        st.one_of(st.none(), whole),
        st.sampled_from(["triangular", "triangular2", "exp_range"]),
        st.booleans(),
    ),
    st.builds(
        lambda n, where: lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, n, scale_fn=lambda x: 1 / (1 + x), scale_mode=where),
        whole,
        st.sampled_from(["cycle", "iterations"]),
    ),
    st.builds(
        lambda shape, warm, total: lambda o: transformers.get_scheduler(shape[0], o, warm, total, shape[1]),
        st.sampled_from(TRANSFORMERS),
        st.integers(0, 30),
        st.integers(31, 1_300),
    ),
    st.builds(lambda n: lambda o: ScheduleLR(o, f"0.1 / sqrt(t + {n})"), whole),
    st.builds(lambda n: lambda o: ScheduleLR(o, f"0.1 if t < {n} else 0.2 / (t + 3)"), whole),
    st.builds(lambda g: lambda o: torch_lr.MultiplicativeLR(o, lambda _k: g), st.floats(0.9, 1.0)),
    st.builds(lambda g: lambda o: torch_lr.MultiplicativeLR(o, lambda k: 1 if k % 7 else g), share),
    st.builds(lambda g: lambda o: torch_lr.LambdaLR(o, lambda k: 1 / (1 + g * k)), share),
    st.builds(
        lambda g: lambda o: torch_lr.LambdaLR(o, [lambda k, n=n: g**n / (1 + k) for n, _ in enumerate(o.param_groups)]),
        share,
    ),
    st.builds(
        lambda n, s: lambda o: torch.optim.swa_utils.SWALR(o, 0.02, n, s),
        st.integers(0, 60),
        st.sampled_from(["linear", "cos"]),
    ),
    st.just(torch_lr.ReduceLROnPlateau),
)


def sequential(parts, gaps, ordered):
    milestones = (np.cumsum(gaps) if ordered else np.array(gaps)).tolist()[: len(parts) - 1]
    return lambda o: torch_lr.SequentialLR(o, [part(o) for part in parts], milestones)


def chained(parts):
    return lambda o: torch_lr.ChainedScheduler([part(o) for part in parts])


GAPS = st.lists(whole, min_size=2, max_size=2)
STACKS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(sequential, st.lists(inner, min_size=1, max_size=3), GAPS, st.booleans()),
        st.builds(chained, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)


def made(build, groups=1, before=0, every=1, resumed=False):
    """An optimizer, its scheduler and what was seen of (lr, betas) before each of `before` scheduler steps.

    Resumed, both are new ones that have loaded the states. None where torch itself refuses the stack.
    """
    optimizer, past = adam(groups), []
    try:
        scheduler = build(optimizer)
        for _ in range(before):
            past += [settings_of(optimizer)] * every
            scheduler.step()
        if resumed:
            states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
            optimizer = adam(groups)
            scheduler = build(optimizer)
            for one, state in zip((optimizer, scheduler), states, strict=True):
                one.load_state_dict(state)
    except Exception:  # noqa: BLE001
        return None
    return optimizer, scheduler, past


def settings_of(optimizer):
    return [(float(group["lr"]), *group["betas"]) for group in optimizer.param_groups]


def pictured(scheduler):
    """All that is in a scheduler and in those inside it, and its optimizer's groups."""
    own = {name: value for name, value in vars(scheduler).items() if name not in {"optimizer", "_schedulers"}}
    return repr([own, scheduler.optimizer.param_groups, *map(pictured, getattr(scheduler, "_schedulers", ()))])


def compared(build, every=1, groups=1, before=0, run="short", resumed=False):
    """What came of reading a stack: "refused", "torch refuses", or how it was read, from its first step on."""
    pair = made(build, groups, before, every, resumed)
    if pair is None:
        return "torch refuses"
    optimizer, scheduler, seen = pair
    picture = pictured(scheduler)
    try:
        algorithm = read(optimizer, scheduler, steps_per_scheduler_step=every)
    except GenericAdamError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - it may be read as well
        return "refused"
    finally:
        assert pictured(scheduler) == picture
    parts = {group: part.method for part in algorithm.parts for group in part.groups}
    limit = min(STEPS[run], scheduler.total_steps * every if isinstance(scheduler, torch_lr.OneCycleLR) else STEPS[run])
    outcome = "replayed" if algorithm_is_replayed(algorithm) else "read by form"
    for t in range(before * every + 1, limit + 1):
        seen.append(settings_of(optimizer))
        if t % every == 0:
            try:
                scheduler.step()
            except Exception:  # noqa: BLE001 - torch's own end: OneCycleLR in a chain, SWALR in a sequence
                outcome = "ends"
                break
    times = np.arange(1, len(seen) + 1)
    for group in range(groups if seen else 0):
        rate, beta, theta = np.array([row[group] for row in seen]).T
        rate[(rate > -1e-9) & (rate < 0)] = 0.0
        if group not in parts:  # it stands still
            np.testing.assert_array_equal(rate, 0.0)
            continue
        corrected = rate * np.sqrt(1 - theta**times) / (1 - beta**times)
        np.testing.assert_allclose(parts[group].alpha.at(times), corrected, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(parts[group].beta.at(times), beta, rtol=1e-6)
    return outcome


def algorithm_is_replayed(algorithm):
    return any(has_callable(part.method.alpha) for part in algorithm.parts)


OPTIONS = {
    "build": STACKS,
    "every": st.sampled_from([1, 1, 3]),
    "groups": st.sampled_from([1, 1, 2]),
    "before": st.sampled_from([0, 0, 0, 1, 17, 650]),
    "run": st.sampled_from(["short", "short", "short", "long"]),
    "resumed": st.sampled_from([False, False, True]),
}


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.fixed_dictionaries(OPTIONS))
def test_a_stack_is_read_right_or_refused_in_one_line(chosen):
    compared(**chosen)


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=int(os.environ.get("FUZZ_STACKS", "10000")), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(chosen=st.fixed_dictionaries(OPTIONS))
def test_many_stacks(chosen):
    compared(**chosen)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(build=STACKS, before=st.sampled_from([0, 0, 17]))
def test_certify_answers_or_refuses_in_one_line(build, before):
    pair = made(build, 1, before)
    if pair is None:
        return
    try:
        ga.certify(*pair[:2], horizon=500)
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
def test_replayed_schedulers_are_answered(name):
    optimizer = adam()
    scheduler = REPLAYED[name](optimizer)
    certificate = ga.certify(optimizer, scheduler, horizon=100_000)
    assert certificate.verdict in {"undecided", "not certified"}


@pytest.mark.parametrize("name", ["MultiplicativeLR", "a chain"])
def test_a_budget_ends_a_long_replay_too(name):
    optimizer = adam()
    answer = ga.certify(optimizer, REPLAYED[name](optimizer), horizon=3_000_000, budget=0.2)
    assert "the budget of 200,000 steps of a scheduler's replay was used up" in str(answer)
