"""DeepSpeed's schedulers, live and from its JSON, against its own code; its Adam, which says where its decay is.

`make test` puts DeepSpeed's sources beside the environment (its package would be imported by others that find it).
"""

import logging
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from generic_adam.adapters import read, read_config
from generic_adam.adapters.updates import UPDATES
from generic_adam.methods import Method
from generic_adam.schedules import has_callable
from tests.adapters.test_plain import rates, written

STEPS = 400
SOURCE = Path(sys.prefix, "deepspeed/deepspeed/runtime/lr_schedules.py")
WARM = {"warmup_min_lr": 1e-6, "warmup_max_lr": 2e-4}
KINDS = {"WarmupLR": WARM, "WarmupDecayLR": WARM | {"total_num_steps": 300}, "WarmupCosineLR": {"total_num_steps": 300}}
CASES = [(kind, log) for kind, log in product(KINDS, ["log", "linear"])]


@pytest.fixture
def schedulers(monkeypatch):
    """DeepSpeed's module alone: all that it needs of the package is a logger."""
    if not SOURCE.exists():
        pytest.skip("no sources of DeepSpeed here: `make test` brings them")
    utilities = ModuleType("deepspeed.utils")
    utilities.logger = logging.getLogger("deepspeed")
    monkeypatch.setitem(sys.modules, "deepspeed", ModuleType("deepspeed"))
    monkeypatch.setitem(sys.modules, "deepspeed.utils", utilities)
    spec = spec_from_file_location("deepspeed.runtime.lr_schedules", SOURCE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adamw():
    return torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=3e-4, weight_decay=0.1)


def run(scheduler, steps=STEPS):
    """The rates of a run, and the scheduler after it."""
    found = []
    for _ in range(steps):
        found.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.step()
    return found


@pytest.mark.parametrize(("kind", "shape"), CASES)
@pytest.mark.parametrize("stepped", [0, 77])
def test_a_live_scheduler_is_read_as_it_runs(kind, shape, stepped, schedulers):
    given = KINDS[kind] | {"warmup_num_steps": 50, "warmup_type": shape}
    scheduler = getattr(schedulers, kind)(adamw(), **given)
    run(scheduler, stepped)
    found = read(scheduler.optimizer, scheduler)
    expected = run(getattr(schedulers, kind)(adamw(), **given))
    np.testing.assert_allclose(rates(found, STEPS), expected, rtol=1e-9, atol=1e-15)
    assert not has_callable(found.method.alpha)
    assert found.horizon == (None if kind == "WarmupLR" else 300)


def in_json(kind, given):
    params = {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-7, "weight_decay": 0.1}
    scheduler = {"type": kind, "params": given}
    return {"optimizer": {"type": "AdamW", "params": params}, "scheduler": scheduler, "gradient_clipping": 0.5}


@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_its_json_is_read_as_it_runs(kind, shape, schedulers, tmp_path):
    given = KINDS[kind] | {"warmup_num_steps": 50, "warmup_type": shape}
    found, used = read_config(written(tmp_path, in_json(kind, given) | {"train_batch_size": 32}))
    expected = run(getattr(schedulers, kind)(adamw(), **given))
    np.testing.assert_allclose(rates(found, STEPS), expected, rtol=1e-9, atol=1e-15)
    assert (found.clipping.threshold, found.method.beta(1), found.method.theta(1)) == (0.5, 0.8, 0.95)
    assert found.eps(10**6) == pytest.approx(1e-7)
    assert {"optimizer.type", "scheduler.params.warmup_num_steps"} <= {*used}
    assert "train_batch_size" not in used


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("WarmupLR", {}),
        ("WarmupLR", {"warmup_max_lr": None}),
        ("WarmupDecayLR", {"total_num_steps": 1200}),
        ("WarmupDecayLR", {"total_num_steps": 1200, "warmup_max_lr": None}),
        ("WarmupDecayLR", {"total_num_steps": 700}),
        ("WarmupCosineLR", {"total_num_steps": 1200}),
    ],
)
def test_what_it_takes_where_a_value_is_left_out(kind, given, schedulers, tmp_path):
    found, _ = read_config(written(tmp_path, in_json(kind, given)))
    expected = run(getattr(schedulers, kind)(adamw(), **given), 1300)
    np.testing.assert_allclose(rates(found, 1300), expected, rtol=1e-9, atol=1e-15)


def test_a_version_whose_rate_rises_again_is_replayed(schedulers):
    class Later(schedulers.WarmupCosineLR):
        def step(self, last_batch_iteration=None):
            super().step(last_batch_iteration)
            if self.last_batch_iteration > 600:
                self.optimizer.param_groups[0]["lr"] = 2e-4

    Later.__name__, Later.__module__ = "WarmupCosineLR", "deepspeed.runtime.lr_schedules"
    scheduler = Later(adamw(), 300, warmup_num_steps=50)
    found = read(scheduler.optimizer, scheduler)
    assert "read off a copy" in found.notes[0]
    assert rates(found, 900)[-1] == pytest.approx(2e-4, rel=1e-6)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "adam"])
def test_its_adam_decays_as_adamw_unless_told_and_as_torch_s_where_it_is_torch_s(name, tmp_path):
    def found(**params):
        data = {"optimizer": {"type": name, "params": {"lr": 1e-3, **params}}}
        return read_config(written(tmp_path, data))[0]

    assert found().decay(1) == 0
    assert found(weight_decay=0.1).decay(1) == pytest.approx(1e-4)
    assert found(torch_adam=True).decay(1) == pytest.approx(1e-5)
    told = found(adam_w_mode=False, weight_decay=0.1)
    assert (told.l2 == 0) is (name == "AdamW")  # AdamW is AdamW whatever it is told


def test_other_names_are_left_to_torch(tmp_path):
    data = {"optimizer": {"type": "RMSprop", "params": {}}}
    assert read_config(written(tmp_path, data))[0].method.alpha(7) == 0.01


class FusedAdam(torch.optim.Optimizer):
    """As DeepSpeed's and apex', which need a GPU: where the decay is, is an attribute and no option of the groups."""

    def __init__(self, params, *, adam_w_mode, **settings):
        super().__init__(params, {"lr": 1e-3, "bias_correction": True, "betas": (0.9, 0.999), "eps": 1e-8} | settings)
        self.adam_w_mode = int(adam_w_mode)


@pytest.mark.parametrize("package", ["deepspeed.ops.adam.fused_adam", "apex.optimizers.fused_adam"])
@pytest.mark.parametrize("mode", [True, False])
def test_fused_adam_says_where_its_decay_is(mode, package, monkeypatch):
    assert f"{package.partition('.')[0]}.FusedAdam" in UPDATES
    monkeypatch.setattr(FusedAdam, "__module__", package)
    weights, settings = [torch.zeros(1, requires_grad=True)], {"lr": 0.1, "weight_decay": 0.3}
    torchs = (torch.optim.AdamW if mode else torch.optim.Adam)(weights, **settings)
    found, expected = read(FusedAdam(weights, adam_w_mode=mode, **settings)), read(torchs)
    assert replace(found, source="") == replace(expected, source="")
    assert (found.decay(1), float(found.l2)) == ((0.03, 0) if mode else (0, 0.3))
    plain = read(FusedAdam(weights, adam_w_mode=mode, bias_correction=False, **settings))
    assert plain.method == Method(0.1, 0.9, 0.999)
