"""Configuration files: the sequences against the frameworks' formulas, the keys used, and what is refused."""

import json
import math

import numpy as np
import pytest
import torch
import yaml

from generic_adam.adapters import read, read_config
from generic_adam.errors import OptimizerError
from generic_adam.methods import Clipping

STEPS = 400


def written(tmp_path, data, name="config.json"):
    file = tmp_path / name
    file.write_text(json.dumps(data) if name.endswith("json") else yaml.safe_dump(data), encoding="utf-8")
    return file


def rates(algorithm, steps=STEPS):
    """lr_t = nu_t / lambda, for a decoupled decay of lambda = 0.1."""
    return algorithm.decay.values(1, steps + 1) / 0.1


def deepspeed(kind, **params):
    return {
        "train_batch_size": 32,
        "gradient_clipping": 0.5,
        "optimizer": {
            "type": "AdamW",
            "params": {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-7, "weight_decay": 0.1},
        },
        "scheduler": {"type": kind, "params": params},
        "zero_optimization": {"stage": 2},
    }


def deepspeed_rate(kind, t, *, warm, total, low, high, log):
    """What DeepSpeed's classes say, whose count is -1 at the first step."""
    count = t - 2
    done = 0.0 if count < 0 else math.log(count + 1) / math.log(warm) if log else count / warm
    if kind == "WarmupCosineLR":
        if count < 0:
            return 0.0
        if count < warm:
            return 3e-4 * done
        progress = min(1.0, (count - warm + 1) / (total - warm))
        return 3e-4 * (1e-4 + (1 - 1e-4) * (1 + math.cos(math.pi * progress)) / 2)
    if count < warm:
        return low + (high - low) * done
    share = max(0.0, (total - count) / (total - warm)) if kind == "WarmupDecayLR" else 1.0
    return low + (high - low) * share


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("kind", ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR"])
def test_deepspeed(kind, log, tmp_path):
    params = {"warmup_num_steps": 50, "warmup_type": "log" if log else "linear"}
    params |= {"total_num_steps": 300} if kind != "WarmupLR" else {}
    params |= {"warmup_min_lr": 1e-6, "warmup_max_lr": 2e-4} if kind != "WarmupCosineLR" else {}
    algorithm, used = read_config(written(tmp_path, deepspeed(kind, **params)))
    expected = [
        deepspeed_rate(kind, t, warm=50, total=300, low=1e-6, high=2e-4, log=log) for t in range(1, STEPS + 1)
    ]
    np.testing.assert_allclose(rates(algorithm), expected, rtol=1e-9, atol=1e-15)
    assert algorithm.clipping == Clipping(0.5)
    assert (algorithm.method.beta(1), algorithm.method.theta(1)) == (0.8, 0.95)
    assert algorithm.eps(10**6) == pytest.approx(1e-7)
    assert algorithm.horizon == (300 if kind != "WarmupLR" else None)
    assert {"optimizer.type", "optimizer.params.lr", "scheduler.params.warmup_num_steps"} <= set(used)
    assert not any(name.startswith(("zero", "train_batch")) for name in used)


def test_deepspeed_adam_decays_as_adamw_unless_told(tmp_path):
    data = {"optimizer": {"type": "Adam", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
    assert read_config(written(tmp_path, data))[0].decay(1) == pytest.approx(1e-4)
    data["optimizer"]["params"]["adam_w_mode"] = False
    inside, _ = read_config(written(tmp_path, data))
    assert (inside.decay(1), float(inside.l2)) == (0, 0.1)


def test_trainer_arguments_and_axolotl(tmp_path):
    common = {"learning_rate": 3e-4, "max_steps": 300, "warmup_steps": 20, "weight_decay": 0.1}
    trainer, used = read_config(
        written(tmp_path, common | {"lr_scheduler_type": "cosine", "optim": "adamw_torch", "seed": 3})
    )
    names = common | {"lr_scheduler": "cosine", "optimizer": "adamw_torch_fused", "learning_rate": "3e-4"}
    axolotl, _ = read_config(written(tmp_path, names, "run.yaml"))
    expected = [
        3e-4 * (k / 20 if k < 20 else (1 + math.cos(math.pi * (k - 20) / 280)) / 2) for k in range(301)
    ]
    for algorithm in (trainer, axolotl):
        np.testing.assert_allclose(rates(algorithm, 301), expected, atol=1e-15)
        assert algorithm.horizon == 300
        assert algorithm.clipping == Clipping(1.0)
    assert "learning_rate" in used
    assert "seed" not in used


@pytest.mark.parametrize("kind", ["linear", "sqrt", "cosine"])
@pytest.mark.parametrize("ratio", [None, 0.2])
def test_torchtitan(kind, ratio, tmp_path):
    data = {
        "optimizer": {"name": "AdamW", "lr": 8e-4, "weight_decay": 0.1},
        "lr_scheduler": {"warmup_steps": 30, "decay_ratio": ratio, "decay_type": kind, "min_lr_factor": 0.1},
        "training": {"steps": 200, "max_norm": 2.0, "seq_len": 8192},
    }
    algorithm, used = read_config(written(tmp_path, data, "titan.yaml"))
    decay = 170 if ratio is None else 40
    shape = {
        "linear": lambda x: 1 - x,
        "sqrt": lambda x: 1 - math.sqrt(x),
        "cosine": lambda x: 0.5 * (1 + math.cos(math.pi * x)),
    }[kind]

    def factor(t):
        if t <= 30:
            return t / 30
        flat = 201 - decay
        return 1.0 if t <= flat else 0.1 + 0.9 * shape((t - flat) / decay)

    np.testing.assert_allclose(rates(algorithm, 200), [8e-4 * factor(t) for t in range(1, 201)], rtol=1e-9)
    assert (algorithm.horizon, algorithm.clipping) == (200, Clipping(2.0))
    assert algorithm.method.theta(1) == 0.95
    assert "training.seq_len" not in used


def test_hydra(tmp_path):
    data = {
        "optimizer": {"_target_": "torch.optim.AdamW", "lr": 0.01, "betas": [0.9, 0.98], "weight_decay": 0.1},
        "scheduler": {
            "_target_": "torch.optim.lr_scheduler.CosineAnnealingLR",
            "T_max": 100,
            "eta_min": 1e-4,
        },
        "model": {"_target_": "net.Net"},
    }
    algorithm, used = read_config(written(tmp_path, data, "conf.yaml"))
    x = [torch.zeros(1, requires_grad=True)]
    live = torch.optim.AdamW(x, lr=0.01, betas=(0.9, 0.98), weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(live, 100, 1e-4)
    expected = read(live, scheduler)
    for name in ("alpha", "beta", "theta"):
        ours, theirs = (getattr(one.method, name).values(1, 101) for one in (algorithm, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(algorithm.decay.values(1, 101), expected.decay.values(1, 101), rtol=1e-9)
    assert used[0] == "optimizer._target_"
    assert not any(name.startswith("model") for name in used)
    data["scheduler"] = {
        "_target_": "transformers.get_linear_schedule_with_warmup",
        "num_warmup_steps": 10,
        "num_training_steps": 100,
    }
    linear, _ = read_config(written(tmp_path, data, "conf.yaml"))
    assert rates(linear, 100)[[0, 10, 55]] == pytest.approx([0, 0.01, 0.01 * 45 / 90])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json cannot be parsed"),
        ("a.yaml", "a: [1, 2", "a.yaml cannot be parsed"),
        ("a.yaml", "!!python/object/apply:os.system ['true']", "a.yaml cannot be parsed"),
        ("a.json", "[1]", "holds a list"),
        ("a.txt", "lr: 1", "expected .json"),
        ("a.json", '{"model": 3}', "no optimizer is named"),
        ("a.json", '{"optimizer": {"type": "Lion"}}', "'Lion' is none that can be read"),
        (
            "a.json",
            '{"optimizer": {"type": "AdamW", "params": {"lr": "fast"}}}',
            "lr is 'fast'; expected a number",
        ),
        ("a.json", '{"optimizer": {"type": "AdamW", "params": {"lr": -1}}}', "a.json: "),
        ("a.json", '{"learning_rate": 0.1, "lr_scheduler_type": "linear"}', "number of steps is not known"),
        (
            "a.yaml",
            "optimizer: {_target_: torch.optim.Adam, lr: 0.1}\nscheduler: {_target_: x.MyLR}",
            "'MyLR'",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(name, text, message, tmp_path):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OptimizerError) as caught:
        read_config(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(OptimizerError, match="cannot be read"):
        read_config(tmp_path / "none.json")


class WarmupDecay:
    """DeepSpeed's WarmupDecayLR in the parts that matter: no last_epoch, a count from -1."""

    def __init__(self, optimizer):
        self.optimizer, self.last_batch_iteration = optimizer, -1
        self._write()

    def step(self):
        self.last_batch_iteration += 1
        self._write()

    def _write(self):
        for group in self.optimizer.param_groups:
            group["lr"] = deepspeed_rate(
                "WarmupDecayLR", self.last_batch_iteration + 2, warm=50, total=300, low=0, high=1e-3, log=True
            )


def test_a_scheduler_with_deepspeeds_interface_is_replayed():
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=1e-3, weight_decay=0.1)
    algorithm = read(optimizer, WarmupDecay(optimizer))
    expected = [
        deepspeed_rate("WarmupDecayLR", t, warm=50, total=300, low=0, high=1e-3, log=True)
        for t in range(1, STEPS + 1)
    ]
    np.testing.assert_allclose(rates(algorithm), expected, atol=1e-15)
