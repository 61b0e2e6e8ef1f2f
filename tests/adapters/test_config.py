"""Configuration files: the sequences against the frameworks' formulas, the keys used, and what is refused."""

import inspect
import json
import math
import os
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generic_adam.adapters import config, read, read_config
from generic_adam.adapters.config import LARGEST
from generic_adam.adapters.schedulers import TRANSFORMERS
from generic_adam.cli import main
from generic_adam.errors import OptimizerError
from generic_adam.methods import Clipping, Method
from generic_adam.schedules import has_callable

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
    expected = [deepspeed_rate(kind, t, warm=50, total=300, low=1e-6, high=2e-4, log=log) for t in range(1, STEPS + 1)]
    np.testing.assert_allclose(rates(algorithm), expected, rtol=1e-9, atol=1e-15)
    assert algorithm.clipping == Clipping(0.5)
    assert (algorithm.method.beta(1), algorithm.method.theta(1)) == (0.8, 0.95)
    assert algorithm.eps(10**6) == pytest.approx(1e-7)
    assert algorithm.horizon == (300 if kind != "WarmupLR" else None)
    assert {"optimizer.type", "optimizer.params.lr", "scheduler.params.warmup_num_steps"} <= set(used)
    assert not any(name.startswith(("zero", "train_batch")) for name in used)


@pytest.mark.parametrize(
    ("kind", "given", "top"),
    [
        ("WarmupLR", {}, 3e-4),
        ("WarmupLR", {"warmup_max_lr": None, "warmup_type": None}, 3e-4),
        ("WarmupDecayLR", {"total_num_steps": 1200}, 1e-3),
        ("WarmupDecayLR", {"total_num_steps": 1200, "warmup_max_lr": None}, 3e-4),
        ("WarmupDecayLR", {"total_num_steps": 700}, 1e-3),
        ("WarmupCosineLR", {"total_num_steps": 1200}, 3e-4),
        ("WarmupCosineLR", {"total_num_steps": 700}, 3e-4),
    ],
)
def test_what_deepspeed_takes_where_a_value_is_left_out(kind, given, top, tmp_path):
    algorithm, _ = read_config(written(tmp_path, deepspeed(kind, **given)))
    values = {"warm": 1000, "total": max(1001, given.get("total_num_steps", 0)), "low": 0.0, "high": top, "log": True}
    expected = [deepspeed_rate(kind, t, **values) for t in range(1, 1301)]
    if given.get("total_num_steps") == 700:  # the warm-up is longer than the run: what is left is the least rate
        expected[1001:] = [0.0 if kind == "WarmupDecayLR" else 3e-8] * 299
    np.testing.assert_allclose(rates(algorithm, 1300), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ["warmup_num_steps", "total_num_steps", "warmup_min_lr"])
def test_null_is_refused_where_deepspeed_cannot_run_with_it(name, tmp_path):
    data = deepspeed("WarmupDecayLR", **({"total_num_steps": 100} | {name: None}))
    with pytest.raises(OptimizerError, match=rf"scheduler\.params\.{name} is null"):
        read_config(written(tmp_path, data))


def test_deepspeed_adam_decays_as_adamw_unless_told(tmp_path):
    data = {"optimizer": {"type": "Adam", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
    assert read_config(written(tmp_path, data))[0].decay(1) == pytest.approx(1e-4)
    data["optimizer"]["params"]["adam_w_mode"] = False
    inside, _ = read_config(written(tmp_path, data))
    assert (inside.decay(1), float(inside.l2)) == (0, 0.1)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "adam"])
def test_deepspeed_has_torch_s_decay_only_where_the_class_is_torch_s(name, tmp_path):
    data = {"optimizer": {"type": name, "params": {"lr": 1e-3}}}
    assert read_config(written(tmp_path, data))[0].decay(1) == 0
    data["optimizer"]["params"]["torch_adam"] = True
    assert read_config(written(tmp_path, data))[0].decay(1) == pytest.approx(1e-5)
    data["optimizer"]["params"] |= {"adam_w_mode": False, "weight_decay": 0.1}
    told, _ = read_config(written(tmp_path, data))
    assert (told.l2 == 0) is (name == "AdamW")  # AdamW is AdamW whatever it is told


def test_deepspeed_leaves_other_names_to_torch(tmp_path):
    read_rate = read_config(written(tmp_path, {"optimizer": {"type": "RMSprop", "params": {}}}))[0].method.alpha
    assert read_rate(7) == 0.01


FUSED = ["apex.optimizers.FusedAdam", "deepspeed.ops.adam.FusedAdam", "deepspeed.ops.adam.DeepSpeedCPUAdam"]
FUSED += ["transformer_engine.pytorch.optimizers.FusedAdam", "colossalai.nn.optimizer.CPUAdam", "fused_adam"]


@pytest.mark.parametrize("target", FUSED)
def test_fused_adam_is_adamw_unless_told(target, tmp_path):
    key = "_target_" if "." in target else "name"
    data = {"optimizer": {key: target, "lr": 0.01, "weight_decay": 0.1}}
    algorithm, _ = read_config(written(tmp_path, data))
    assert (algorithm.decay(1), algorithm.l2, algorithm.label) == (pytest.approx(1e-3), 0, "AdamW")
    for mode in ("adam_w_mode", "adamw_mode"):
        inside, _ = read_config(written(tmp_path, {"optimizer": data["optimizer"] | {mode: False}}))
        assert (inside.decay(1), float(inside.l2), inside.label) == (0, 0.1, "Adam")
    del data["optimizer"]["weight_decay"]
    assert read_config(written(tmp_path, data))[0].decay(1) == 0
    data["optimizer"]["bias_correction"] = False
    plain, _ = read_config(written(tmp_path, data))
    assert (plain.method.alpha(1), plain.eps(1)) == (0.01, 1e-8)


@pytest.mark.parametrize(
    ("target", "decay", "outside"),
    [
        ("bitsandbytes.optim.Adam8bit", 0, ("the moments are kept in 8 bits",)),
        ("bitsandbytes.optim.AdamW8bit", 0.01, ("the moments are kept in 8 bits",)),
        ("bitsandbytes.optim.PagedAdamW32bit", 0.01, ()),
        ("bitsandbytes.optim.Adam", 0, ()),
        ("torchao.optim.AdamW4bit", 0.01, ("the moments are kept in 4 bits",)),
        ("timm.optim.NAdamW", 0.01, ()),
    ],
)
def test_weight_decay_has_the_default_of_the_class(target, decay, outside, tmp_path):
    data = {"optimizer": {"_target_": target, "lr": 0.5}}
    algorithm, _ = read_config(written(tmp_path, data))
    assert (algorithm.decay(1), algorithm.l2, algorithm.outside) == (pytest.approx(0.5 * decay), 0, outside)
    told, _ = read_config(written(tmp_path, {"optimizer": data["optimizer"] | {"weight_decay": 0.1}}))
    assert (told.decay(1), told.l2) == (pytest.approx(0.05), 0)  # also where the class is bitsandbytes' Adam


def test_options_of_bitsandbytes_that_no_theorem_covers(tmp_path):
    data = {"_target_": "bitsandbytes.optim.AdamW", "optim_bits": 8, "percentile_clipping": 5}
    algorithm, _ = read_config(written(tmp_path, {"optimizer": data}))
    assert algorithm.outside == (
        "the moments are kept in 8 bits",
        "gradients are clipped at a percentile of their past norms",
    )


@pytest.mark.parametrize("correct", [True, False])
def test_transformers_own_adamw(correct, tmp_path):
    data = {"_target_": "transformers.AdamW", "lr": 0.1, "weight_decay": 0.5, "correct_bias": correct}
    algorithm, _ = read_config(written(tmp_path, {"optimizer": data}))
    x, m, v = 1.0, 0.0, 0.0
    y, n, w = 1.0, 0.0, 0.0
    for t in range(1, 30):
        g = math.sin(t)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        step = 0.1 * (math.sqrt(1 - 0.999**t) / (1 - 0.9**t) if correct else 1)
        x -= step * m / (math.sqrt(v) + 1e-6)
        x -= 0.1 * 0.5 * x
        beta, theta = algorithm.method.beta(t), algorithm.method.theta(t)
        n, w = beta * n + (1 - beta) * g, theta * w + (1 - theta) * g * g
        y = (1 - algorithm.decay(t)) * y - algorithm.method.alpha(t) * n / (math.sqrt(w) + algorithm.eps(t))
        assert y == pytest.approx(x, rel=1e-12)
    del data["weight_decay"]
    assert read_config(written(tmp_path, {"optimizer": data}))[0].decay(1) == 0


def test_adafactor_by_name_has_steps_of_its_own(tmp_path):
    for package in ("transformers.optimization", "timm.optim"):
        algorithm, _ = read_config(written(tmp_path, {"optimizer": {"_target_": f"{package}.Adafactor"}}))
        assert algorithm.method.alpha(40_000) == pytest.approx(1 / 200)
        assert len(algorithm.outside) == 1  # scaled by the parameters
    given = {"_target_": "timm.optim.Adafactor", "lr": 0.1}
    assert read_config(written(tmp_path, {"optimizer": given}))[0].method.alpha(40_000) == 0.1
    given = {"_target_": "transformers.Adafactor", "lr": 0.1}
    with pytest.raises(OptimizerError, match="takes no lr beside relative_step"):
        read_config(written(tmp_path, {"optimizer": given}))
    given |= {"relative_step": False, "eps": [1e-30, 1e-3]}
    algorithm, _ = read_config(written(tmp_path, {"optimizer": given}))
    assert algorithm.method.alpha(40_000) == 0.1
    larger, _ = read_config(written(tmp_path, {"optimizer": given | {"eps": [1e-4, 1e-3]}}))
    assert larger.outside == (*algorithm.outside, "eps = 0.0001 beside the squares of the gradients")


def test_what_trainer_would_fill_in_is_asked_for(tmp_path):
    data = deepspeed("WarmupLR", warmup_num_steps="auto")
    with pytest.raises(OptimizerError, match=r"scheduler\.params\.warmup_num_steps is 'auto'") as caught:
        read_config(written(tmp_path, data))
    assert "\n" not in str(caught.value)


def test_trainer_arguments_and_axolotl(tmp_path):
    common = {"learning_rate": 3e-4, "max_steps": 300, "warmup_steps": 20, "weight_decay": 0.1}
    trainer, used = read_config(
        written(tmp_path, common | {"lr_scheduler_type": "cosine", "optim": "adamw_torch", "seed": 3})
    )
    names = common | {"lr_scheduler": "cosine", "optimizer": "adamw_torch_fused", "learning_rate": "3e-4"}
    axolotl, _ = read_config(written(tmp_path, names, "run.yaml"))
    expected = [3e-4 * (k / 20 if k < 20 else (1 + math.cos(math.pi * (k - 20) / 280)) / 2) for k in range(301)]
    for algorithm in (trainer, axolotl):
        np.testing.assert_allclose(rates(algorithm, 301), expected, atol=1e-15)
        assert algorithm.horizon == 300
        assert algorithm.clipping == Clipping(1.0)
    assert "learning_rate" in used
    assert "seed" not in used
    # Arguments of a scheduler may be the text that the command line has.
    text = names | {"lr_scheduler_kwargs": '{"num_cycles": 0.25}'}
    table = names | {"lr_scheduler_kwargs": {"num_cycles": "0.25"}}
    quarter = [read_config(written(tmp_path, one, "run.yaml"))[0].method for one in (text, table)]
    assert quarter[0] == quarter[1] != axolotl.method
    # The schedule is as long as the file says, however much of it is run.
    half, _ = read_config(written(tmp_path, names, "run.yaml"), steps=150)
    assert (half.method, half.horizon) == (axolotl.method, 150)


@pytest.mark.parametrize(
    ("given", "warm"),
    [
        ({}, 9),
        ({"max_steps": 9000}, 100),
        ({"max_steps": 50}, 2),
        ({"warmup_ratio": 0.0999}, 29),
        ({"warmup_steps": 0}, 0),
        ({"warmup_steps": 1}, 2),
        ({"warmup_steps": None, "warmup_ratio": 0.0}, 0),
    ],
)
def test_what_axolotl_takes_where_a_value_is_left_out(given, warm, tmp_path):
    common = {"base_model": "x", "learning_rate": 3e-4, "max_steps": 300, "weight_decay": 0.1} | given
    algorithm, _ = read_config(written(tmp_path, common, "run.yaml"))
    length = common["max_steps"] - warm
    expected = [
        3e-4 * (k / warm if k < warm else (1 + math.cos(math.pi * (k - warm) / length)) / 2) for k in range(300)
    ]
    np.testing.assert_allclose(rates(algorithm, 300), expected, rtol=1e-9, atol=1e-15)


ADAMW = {"_target_": "torch.optim.AdamW", "lr": 1e-3}
PLAIN = {"name": "adamw", "lr": 1e-3}
COSINE = {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": 100}
TITAN = {"optimizer": {"lr": 1e-3}, "training": {"steps": 100, "max_norm": 1.0}}
# What a file says of the steps and nobody reads would be another algorithm than the one that is run.
IGNORED = {
    "cosine_min_lr_ratio": {"base_model": "x", "learning_rate": 3e-4, "max_steps": 300, "cosine_min_lr_ratio": 0.1},
    "embedding_lr": {"base_model": "x", "learning_rate": 3e-4, "max_steps": 300, "embedding_lr": "1e-5"},
    "lr_groups": {"learning_rate": 3e-4, "max_steps": 300, "lr_groups": [{"name": "x", "lr": 1e-5}]},
    "lr_scheduler.lr_min": TITAN | {"lr_scheduler": {"warmup_steps": 3, "lr_min": 0.1}},
    "lr_scheduler.total_steps": TITAN | {"lr_scheduler": {"warmup_steps": 3, "total_steps": 50}},
    "optimizer.momentum": {"optimizer": PLAIN | {"momentum": 0.5}},
    "optimizer.decay": {"optimizer": PLAIN | {"decay": 0.5}},
    "optimizer.sched": {"optimizer": PLAIN | {"sched": {"name": "CosineAnnealing", "warmup_steps": 5}}},
    "optimizer.init_args.momentum": {
        "optimizer": {"class_path": "torch.optim.AdamW", "init_args": {"lr": 1e-3, "momentum": 0.5}}
    },
    "scheduler": {"optimizer": ADAMW, "scheduler": "cosine"},
    "lr_scheduler": {"optimizer": ADAMW, "lr_scheduler": {"scheduler": COSINE, "interval": "step"}},
    "train": {"optimizer": ADAMW, "train": {"scheduler": COSINE}},
    "warmup_steps": {"optimizer": ADAMW, "warmup_steps": 100},
    "scheduler.last_epoch": {"optimizer": ADAMW, "scheduler": COSINE | {"last_epoch": 7}},
    "scheduler.eta": {"optimizer": ADAMW, "scheduler": COSINE | {"eta": 1e-3}},
    "optimizer.params.momentum": {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "momentum": 0.5}}},
    "scheduler.params": deepspeed("WarmupLR", decay=3),
    "scheduler.params.decay": deepspeed("WarmupLR", decay=3, warmup_num_steps=3),
}


@pytest.mark.parametrize("key", IGNORED)
def test_what_may_change_the_steps_and_is_not_read_is_refused(key, tmp_path):
    with pytest.raises(OptimizerError, match=re.escape(f"config.json: {key} may change the steps")) as caught:
        read_config(written(tmp_path, IGNORED[key]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        {"optimizer": ADAMW | {"fused": True, "_partial_": True}, "scheduler": COSINE | {"last_epoch": -1}},
        {"optimizer": ADAMW, "callbacks": {"lr_monitor": {"logging_interval": "step"}}, "lr_find": True},
        {"optimizer": ADAMW, "scheduler": None, "trainer": {"max_epochs": 3, "log_every_n_steps": 5}},
    ],
)
def test_what_does_not_change_the_steps_is_a_note(data, tmp_path):
    algorithm, _ = read_config(written(tmp_path, data))
    assert "that were not used" in algorithm.notes[-1]


def test_a_name_is_not_taken_for_another_framework_s(tmp_path):
    # A table of its own for training does not make a file torchtitan's.
    hydra = {"optimizer": ADAMW | {"_target_": "torch.optim.Adam"}, "training": {"steps": 100, "max_norm": 1.0}}
    algorithm, _ = read_config(written(tmp_path, hydra))
    assert (algorithm.label, algorithm.method.theta(1), algorithm.clipping) == ("Adam", 0.999, None)
    # `type` is DeepSpeed's where the settings are in `params`.
    typed = {"optimizer": {"type": "adamw", "lr": 3e-4, "betas": [0.9, 0.98], "weight_decay": 0.1}}
    algorithm, _ = read_config(written(tmp_path, typed))
    assert (rates(algorithm, 1)[0], algorithm.method.theta(1)) == (pytest.approx(3e-4), 0.98)
    # Betas may come one by one.
    single = {"optimizer": PLAIN | {"beta1": 0.8, "beta2": "0.95"}}
    algorithm, used = read_config(written(tmp_path, single))
    assert (algorithm.method.beta(1), algorithm.method.theta(1)) == (0.8, 0.95)
    assert {"optimizer.beta1", "optimizer.beta2"} <= {*used}
    betas = TITAN | {"optimizer": {"name": "Adam", "lr": 1e-3, "betas": [0.8, 0.9]}}
    assert read_config(written(tmp_path, betas))[0].method.theta(1) == 0.9
    # torchtune's name for a target, whose scheduler is told the number of steps when it runs.
    tune = {
        "optimizer": {"_component_": "torch.optim.AdamW", "lr": 0.01, "weight_decay": 0.1},
        "lr_scheduler": {"_component_": "torchtune.x.get_cosine_schedule_with_warmup", "num_warmup_steps": 10},
    }
    with pytest.raises(OptimizerError, match="num_training_steps is missing"):
        read_config(written(tmp_path, tune))
    algorithm, _ = read_config(written(tmp_path, tune), steps=100)
    assert rates(algorithm, 100)[[0, 10, 55]] == pytest.approx([0, 0.01, 0.005])
    # A class of one's own may do anything under a known name.
    own = {
        "optimizer": {"_target_": "mine.AdamW", "lr": 0.01},
        "scheduler": COSINE | {"_target_": "x.CosineAnnealingLR"},
    }
    outside = read_config(written(tmp_path, own))[0].outside
    assert [said.split(" may do other things")[0] for said in outside] == ["mine.AdamW", "x.CosineAnnealingLR"]
    with pytest.raises(OptimizerError, match="optimizer names no class; expected class_path"):
        read_config(written(tmp_path, {"optimizer": {"lr": 1e-3}}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"optimizer": {"name": "adam", "lr": 0.1, "lr": 0.2}}'),
        ("a.yaml", "optimizer: {name: adam}\nseed: 1\noptimizer: {name: adam, lr: 0.1}"),
        ("a.toml", 'optimizer.name = "adam"\noptimizer.lr = 0.1\noptimizer.lr = 0.2'),
    ],
)
def test_a_key_that_comes_twice_is_refused(name, text, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(OptimizerError, match=r"cannot be parsed: .*(twice|overwrite)"):
        read_config(tmp_path / name)


def test_a_merged_key_may_be_set_again(tmp_path):
    text = "base: &b {name: adamw, lr: 0.1, weight_decay: 0.1}\noptimizer: {<<: *b, lr: 0.2}\nother: {<<: *b}"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert rates(read_config(tmp_path / "a.yaml")[0], 1)[0] == pytest.approx(0.2)


def test_what_trainer_takes_where_a_value_is_left_out(tmp_path):
    transformers = pytest.importorskip("transformers")
    plain = transformers.TrainingArguments(output_dir=str(tmp_path), max_steps=70, learning_rate=0.1, use_cpu=True)
    file = written(tmp_path, {"max_steps": 70, "learning_rate": 0.1})
    ours, theirs = read_config(file)[0], read(plain)
    assert (ours.method, ours.clipping, ours.decay, ours.eps) == (
        theirs.method, theirs.clipping, theirs.decay, theirs.eps,
    )  # fmt: skip
    (tmp_path / "dump.json").write_text(plain.to_json_string(), encoding="utf-8")  # with all its keys
    assert read_config(tmp_path / "dump.json")[0].method == theirs.method
    file = written(tmp_path, {"max_steps": 70, "learning_rate": 0.1, "max_grad_norm": None})
    assert read_config(file)[0].clipping is None


@pytest.mark.parametrize(
    "name", [name for name in config._SCHEDULERS if name not in {"SequentialLR", "ChainedScheduler"}]
)
def test_torch_s_defaults(name):
    home = torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler
    arguments = inspect.signature(getattr(home, name)).parameters
    for one, default in config._SCHEDULERS[name].items():
        real = arguments[one].default
        assert real is inspect.Parameter.empty if isinstance(default, type) else default == real, one


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_defaults(name):
    optimization = pytest.importorskip("transformers.optimization")
    getter, defaults = TRANSFORMERS[name]
    arguments = inspect.signature(getattr(optimization, f"get_{getter}")).parameters
    given = {one: arguments[one].default for one in defaults}
    assert given == {one: inspect.Parameter.empty if default is int else default for one, default in defaults.items()}
    assert set(arguments) - {"optimizer", "num_warmup_steps", "num_training_steps", "last_epoch"} == set(defaults)


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
    half, _ = read_config(tmp_path / "titan.yaml", steps=100)
    assert (half.method, half.horizon) == (algorithm.method, 100)
    for wrong in (-0.1, 1.5):
        data["lr_scheduler"]["decay_ratio"] = wrong
        with pytest.raises(OptimizerError, match=f"lr_scheduler.decay_ratio is {wrong}; expected a share of the steps"):
            read_config(written(tmp_path, data, "titan.yaml"))


def test_a_plain_block_is_read_as_it_stands(tmp_path):
    block = {"name": "adamw", "lr": "3e-4", "betas": [0.9, 0.99], "weight_decay": 0.1}
    plain, used = read_config(written(tmp_path, {"optimizer": block}, "plain.yaml"))
    assert (plain.method.theta(1), plain.horizon, plain.clipping) == (0.99, None, None)
    assert "optimizer.betas" in used
    trainer = {"max_steps": 700, "gradient_clip_val": 0.5}
    within, _ = read_config(written(tmp_path, {"optimizer": block, "trainer": trainer}, "within.yaml"))
    assert (within.horizon, within.clipping) == (700, Clipping(0.5))
    trainer |= {"max_steps": -1, "gradient_clip_algorithm": "value"}
    within, _ = read_config(written(tmp_path, {"optimizer": block, "trainer": trainer}, "value.yaml"))
    assert (within.horizon, within.clipping) == (None, Clipping(0.5, "value"))


def test_no_number_of_steps_is_made_up_for_torchtitan(tmp_path):
    data = {"optimizer": {"name": "AdamW", "lr": 1e-3}, "training": {"max_norm": 1.0}}
    with pytest.raises(OptimizerError, match=r"training\.steps"):
        read_config(written(tmp_path, data))
    assert read_config(written(tmp_path, data), steps=100)[0].horizon == 100


@pytest.mark.parametrize(
    ("name", "bits"), [("adamw_bnb_8bit", "8"), ("paged_adamw_8bit", "8"), ("adamw_torch_4bit", "4")]
)
def test_moments_in_few_bits_are_read_and_not_covered(name, bits, tmp_path):
    data = {"learning_rate": 1e-4, "max_steps": 100, "lr_scheduler": "cosine", "optimizer": name}
    algorithm, _ = read_config(written(tmp_path, data, "axolotl.yml"))
    assert algorithm.outside == (f"the moments are kept in {bits} bits",)
    whole, _ = read_config(written(tmp_path, data | {"optimizer": "paged_adamw_32bit"}, "whole.yml"))
    assert whole.outside == ()
    assert whole.method == algorithm.method


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
        ("a.json", '{"learning_rate": 0.1, "max_steps": 9, "warmup_steps": -5}', "warmup_steps is -5; expected"),
        ("a.yaml", "optimizer: {name: adam, lr: '${lr}'}", "optimizer.lr is '${lr}', and there is no lr"),
        (
            "a.yaml",
            "optimizer: {_target_: torch.optim.Adam, lr: 0.1}\nscheduler: {_target_: x.MyLR}",
            "'MyLR'",
        ),
        (
            "a.yaml",
            "optimizer: {name: adam, lr: 0.1}\nscheduler: {_target_: x.MultiStepLR, milestones: [50.5, 80]}",
            "milestones is (50.5, 80); expected whole numbers",
        ),
        (
            "a.yaml",
            "optimizer: {name: adam, lr: 0.1}\nscheduler: {_target_: x.MultiStepLR, milestones: [-3, 80]}",
            "milestones below 0 have no closed form",
        ),
        (
            "a.yaml",
            "optimizer: {name: adam, lr: 0.1}\nscheduler: {_target_: x.SequentialLR, milestones: [9, 6], schedulers: "
            + str([{"_target_": "x.LinearLR"}] * 3)
            + "}",
            "the milestones [9, 6] do not rise",
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


TORCH = {
    "ConstantLR": {"factor": 0.3, "total_iters": 7},
    "LinearLR": {"start_factor": 0.1, "total_iters": 20},
    "ExponentialLR": {"gamma": 0.97},
    "StepLR": {"step_size": 30},
    "MultiStepLR": {"milestones": [10, 10, 40], "gamma": 0.5},
    "PolynomialLR": {"total_iters": 60, "power": 2.0},
    "CosineAnnealingLR": {"T_max": 50, "eta_min": 1e-4},
    "CosineAnnealingWarmRestarts": {"T_0": 30},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 200},
    "CyclicLR": {"base_lr": 1e-3, "max_lr": 0.1, "step_size_up": 20, "step_size_down": 30},
}


@pytest.mark.parametrize("form", ["hydra", "lightning", "lightning's steps", "inside a table"])
@pytest.mark.parametrize("name", TORCH)
def test_torch_s_schedulers_are_read_as_the_live_ones(name, form, tmp_path):
    classes = {
        "optimizer": ("torch.optim.AdamW", {"betas": [0.9, 0.98]}),
        "lr_scheduler": (f"torch.optim.lr_scheduler.{name}", TORCH[name]),
    }
    if form.startswith("lightning"):
        data = {key: {"class_path": path, "init_args": given} for key, (path, given) in classes.items()}
    else:
        data = {key: {"_target_": path, "_partial_": True, **given} for key, (path, given) in classes.items()}
    data = {"model": data} if form == "inside a table" else data
    every = {"lightning": 3, "lightning's steps": 1}.get(form)
    algorithm, used = read_config(written(tmp_path, data, "conf.yaml"), steps_per_scheduler_step=every)
    live = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], betas=(0.9, 0.98))
    scheduler = getattr(torch.optim.lr_scheduler, name)(live, **TORCH[name])
    expected = read(live, scheduler, steps_per_scheduler_step=every)
    for ours, theirs in ((algorithm.method.alpha, expected.method.alpha), (algorithm.decay, expected.decay)):
        np.testing.assert_allclose(ours.values(1, 201), theirs.values(1, 201), rtol=1e-12, atol=1e-15)
    assert algorithm.horizon == {"CosineAnnealingLR": 50 * (every or 1), "OneCycleLR": 200 * (every or 1)}.get(name)
    assert any(key.endswith(next(iter(TORCH[name]))) for key in used)
    assert any("stepped with the optimizer" in note for note in algorithm.notes) is (every is None)


@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize("total", [1, 2, 3, 5, 7])
def test_a_cycle_of_few_steps_is_torch_s(total, three, tmp_path):
    given = {"max_lr": 0.1, "total_steps": total, "three_phase": three, "cycle_momentum": False}
    data = {"optimizer": {"_target_": "torch.optim.SGD"}}
    data |= {"lr_scheduler": {"_target_": "torch.optim.lr_scheduler.OneCycleLR", **given}}
    optimizer, rates = torch.optim.SGD([torch.zeros(1, requires_grad=True)]), []
    try:
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, **given)
    except ZeroDivisionError:
        pytest.skip("torch cannot make it")
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    algorithm, _ = read_config(written(tmp_path, data))
    np.testing.assert_allclose(algorithm.method.alpha.values(1, total + 1), rates, rtol=1e-9)


def lightning(scheduler, **given):
    path = {"class_path": f"torch.optim.lr_scheduler.{scheduler}", "init_args": given}
    return {"optimizer": {"class_path": "torch.optim.AdamW", "init_args": {"lr": 0.1}}, "lr_scheduler": path}


@pytest.mark.filterwarnings("ignore")
def test_lightning_steps_once_an_epoch(tmp_path):
    """What its command line builds from the file, against the file, over epochs of 4 batches."""
    pytest.importorskip("jsonargparse")
    cli = pytest.importorskip("pytorch_lightning.cli")
    lightning_module = pytest.importorskip("pytorch_lightning").LightningModule

    class Module(lightning_module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(3, 1), []

        def training_step(self, batch):
            self.seen.append(self.optimizers().param_groups[0]["lr"])
            return self.layer(batch).sum()

        def train_dataloader(self):
            return torch.utils.data.DataLoader(torch.ones(8, 3), batch_size=2)

    file = written(tmp_path, lightning("CosineAnnealingLR", T_max=5), "run.yaml")
    quiet = {"logger": False, "accelerator": "cpu", "enable_checkpointing": False, "max_epochs": 8}
    quiet |= {"enable_progress_bar": False, "enable_model_summary": False}
    made = cli.LightningCLI(
        Module, run=False, args=["--config", str(file)], save_config_callback=None, trainer_defaults=quiet
    )
    made.trainer.fit(made.model)
    algorithm, _ = read_config(file, steps_per_scheduler_step=4)
    np.testing.assert_allclose(algorithm.decay.values(1, 33) / 0.01, made.model.seen, rtol=1e-9, atol=1e-15)


def test_the_pace_of_a_lightning_scheduler_is_asked_for(tmp_path, capsys):
    file = str(written(tmp_path, lightning("CosineAnnealingLR", T_max=5), "run.yaml"))
    with pytest.raises(OptimizerError, match="once an epoch unless the module says otherwise"):
        read_config(file)
    assert main(["check", "--config", file]) == 2
    assert "--every N" in capsys.readouterr().err
    assert main(["check", "--config", file, "--every", "7", "--horizon", "50"]) != 2
    hydra = {"optimizer": {"_target_": "torch.optim.AdamW", "lr": 0.1}, "trainer": {"_target_": "lightning.Trainer"}}
    hydra["scheduler"] = {"_target_": "torch.optim.lr_scheduler.StepLR", "step_size": 3}
    file = written(tmp_path, hydra, "hydra.yaml")
    with pytest.raises(OptimizerError, match="--every N"):
        read_config(file)
    assert read_config(file, steps_per_scheduler_step=10)[0].decay.values(30, 32) == pytest.approx([1e-3, 1e-4])
    with pytest.raises(OptimizerError, match="its scheduler steps with the optimizer"):
        read_config(written(tmp_path, deepspeed("WarmupLR")), steps_per_scheduler_step=2)


def test_schedulers_of_transformers_once_an_epoch(tmp_path):
    data = lightning("x")
    data["lr_scheduler"] = {
        "class_path": "transformers.get_linear_schedule_with_warmup",
        "init_args": {"num_warmup_steps": 2, "num_training_steps": 10},
    }
    file = written(tmp_path, data, "run.yaml")
    algorithm, _ = read_config(file, steps=40, steps_per_scheduler_step=5)
    expected = [min(k / 2, (10 - k) / 8) for k in range(10) for _ in range(5)]
    np.testing.assert_allclose(algorithm.decay.values(1, 51) / 1e-3, expected, atol=1e-12)
    assert algorithm.horizon == 40
    assert read_config(file, steps_per_scheduler_step=5)[0].horizon == 50


VARIANTS = [
    ("OneCycleLR", {"max_lr": 0.1, "epochs": 10, "steps_per_epoch": 20, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 0.1, "total_steps": 200, "anneal_strategy": "linear", "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 1e-3, "max_lr": 0.1, "step_size_up": 20, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 1e-3, "max_lr": 0.1, "step_size_up": 20, "mode": "exp_range", "gamma": 0.99}),
    ("CosineAnnealingWarmRestarts", {"T_0": 30, "T_mult": 2}),
    ("MultiStepLR", {"milestones": [0, 80]}),
]
PARTS = st.sampled_from([*TORCH.items(), *VARIANTS])


def compared_with_torch(kind, arguments, parts, tmp_path):
    """A stack in a file against the live one: "read", or "refused" in one line."""
    targets = [{"_target_": f"torch.optim.lr_scheduler.{name}", **given} for name, given in parts]
    nested = {"schedulers": targets} if kind else targets[0]
    scheduler = nested | ({"_target_": f"torch.optim.lr_scheduler.{kind}", **arguments} if kind else {})
    data = {"optimizer": {"_target_": "torch.optim.AdamW", "lr": 0.02}, "scheduler": scheduler}
    live = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.02)
    built = [getattr(torch.optim.lr_scheduler, name)(live, **given) for name, given in parts]
    try:
        algorithm, used = read_config(written(tmp_path, data, "conf.yaml"))
    except OptimizerError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - it may be read as well
        return "refused"
    assert "scheduler._target_" in used
    made = {"SequentialLR": [live, built], "ChainedScheduler": [built]}
    stack = getattr(torch.optim.lr_scheduler, kind)(*made[kind], **arguments) if kind else built[0]
    for t in range(1, 200):
        (group,) = live.param_groups
        assert algorithm.decay(t) / 0.01 == pytest.approx(group["lr"], rel=1e-9, abs=1e-14), t
        assert algorithm.method.beta(t) == pytest.approx(group["betas"][0], rel=1e-12), t
        stack.step()
    return "read"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "given"), VARIANTS)
def test_variants_of_torch_s_schedulers(name, given, tmp_path):
    assert compared_with_torch(None, {}, [(name, given)], tmp_path) == "read"


COMPOSED = {
    "warm-up, then a cosine": ("SequentialLR", {"milestones": [20]}, ["LinearLR", "CosineAnnealingLR"]),
    "three": ("SequentialLR", {"milestones": [20, 90]}, ["LinearLR", "ConstantLR", "ExponentialLR"]),
    "a chain": ("ChainedScheduler", {}, ["LinearLR", "ExponentialLR"]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COMPOSED)
def test_sequences_and_chains(name, tmp_path):
    kind, arguments, parts = COMPOSED[name]
    made = [(part, TORCH[part]) for part in parts]
    assert compared_with_torch(kind, arguments, made, tmp_path) == "read"


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(["SequentialLR", "ChainedScheduler"]), parts=st.lists(PARTS, min_size=1, max_size=3))
def test_a_stack_in_a_file_is_read_as_torch_runs_it_or_refused(kind, parts, tmp_path):
    arguments = {"milestones": [30 * n for n in range(1, len(parts))]} if kind == "SequentialLR" else {}
    compared_with_torch(kind, arguments, parts, tmp_path)


def test_what_is_used_and_what_is_not_is_said(tmp_path):
    data = {
        "trainer": {"lr": "3e-4", "epochs": 3},
        "optimizer": {"_target_": "torch.optim.Adam", "lr": "${trainer.lr}", "fused": True},
        "data": {"path": "x"},
    }
    algorithm, used = read_config(written(tmp_path, data, "conf.yaml"))
    assert algorithm.method.alpha(10**6) == pytest.approx(3e-4)
    assert set(used) == {"optimizer._target_", "optimizer.lr", "trainer.lr"}
    assert algorithm.notes[-1] == "keys of conf.yaml that were not used: data, optimizer.fused, trainer.epochs"
    many = {f"key{n}": n for n in range(40)} | {"learning_rate": 1e-3, "max_steps": 10}
    assert read_config(written(tmp_path, many))[0].notes[-1].endswith("key10, key11 and 28 more")


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)
COMMON, MANY = "{learning_rate: 1, max_steps: 9", list(range(1, 20_000))
HOSTILE = {
    "10 MB": ("a.json", '{"learning_rate": ' + "1" * 10_000_000 + "}"),
    "deep JSON": ("a.json", '{"a":' * 20_000 + "1" + "}" * 20_000),
    "deep YAML": ("a.yaml", "[" * 50_000),
    "deep TOML": ("a.toml", "a = " + "[" * 20_000),
    "aliases": ("a.yaml", BOMB + "optimizer: {_target_: torch.optim.Adam, lr: *a11}"),
    "aliases as betas": ("a.yaml", BOMB + "optimizer: {_target_: torch.optim.Adam, lr: 1, betas: *a11}"),
    "aliases as a name": ("a.yaml", BOMB + "optimizer: {_target_: *a11, lr: 1}"),
    "merges": ("a.yaml", MERGES + "learning_rate: 1"),
    "itself": ("a.yaml", "optimizer: &o {_target_: torch.optim.Adam, lr: *o}"),
    "a tag": ("a.yaml", "learning_rate: !!python/object/new:os.system [x]"),
    "NaN": ("a.json", '{"learning_rate": NaN, "max_steps": 5}'),
    "infinite": ("a.yaml", "learning_rate: .inf\nmax_steps: 5"),
    "huge": ("a.json", '{"learning_rate": 1e-3, "max_steps": ' + "9" * 500 + "}"),
    "a list": ("a.json", '{"learning_rate": [1, 2], "max_steps": 5}'),
    "a list of lists": ("a.yaml", "optimizer: {_target_: torch.optim.Adam, lr: 1, betas: [[0.9], [0.99]]}"),
    "true": ("a.json", '{"learning_rate": true}'),
    "numbers as names": ("a.yaml", "1: 2\n3: 4"),
    "a name that is a number": ("a.yaml", "optimizer: {type: 3}"),
    "a name without end": ("a.json", '{"optimizer": {"type": "' + "x" * 200_000 + '"}}'),
    "round and round": ("a.yaml", "learning_rate: ${learning_rate}\nmax_steps: 5"),
    "cycles": ("a.yaml", f"{COMMON}, lr_scheduler: cosine_with_restarts, lr_scheduler_kwargs: {{num_cycles: 1e9}}}}"),
    "milestones": ("a.yaml", f"{{optimizer: {{lr: 1}}, scheduler: {{_target_: x.MultiStepLR, milestones: {MANY}}}}}"),
    "no bytes": ("a.yaml", ""),
    "no text": ("a.json", "\x00\x01"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_one_line_and_soon(name, tmp_path):
    file, text = HOSTILE[name]
    (tmp_path / file).write_text(text, encoding="utf-8")
    begin = time.process_time()
    with pytest.raises(OptimizerError) as caught:
        read_config(tmp_path / file)
    assert time.process_time() - begin < 10
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(OptimizerError, match="cannot be read"):
        read_config(tmp_path / "none.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_never_ends_is_not_read(tmp_path):
    """A pipe that nobody writes to, and a device: both held the command for ever."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zeros.yaml").symlink_to("/dev/zero")
    (tmp_path / "large.json").write_bytes(b" " * (LARGEST + 1))
    for name, said in (
        ("pipe.json", "no plain file"),
        ("zeros.yaml", "no plain file"),
        ("large.json", "more than"),
    ):
        with pytest.raises(OptimizerError, match=said):
            read_config(tmp_path / name)


TRAINING = {"learning_rate": 3e-4, "weight_decay": 0.1, "max_steps": 300, "warmup_steps": 50, "adam_beta2": 0.95}
TRAINING |= {"max_grad_norm": 0.5, "lr_scheduler_type": "cosine"}
AUTO = {"type": "AdamW", "params": dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")}
DECAY = {"type": "WarmupDecayLR", "params": {"warmup_type": "linear"}}
DECAY["params"] |= dict.fromkeys(("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "total_num_steps"), "auto")


def under_deepspeed(tmp_path, data, **training):
    written(tmp_path, data, "zero.json")
    return read_config(written(tmp_path, TRAINING | {"deepspeed": "zero.json"} | training, "arguments.json"))[0]


def test_what_deepspeed_s_file_says_takes_the_place_of_trainer_s_arguments(tmp_path):
    plain, _ = read_config(written(tmp_path, TRAINING))
    found = under_deepspeed(tmp_path, {"zero_optimization": {"stage": 2}})
    assert (found.method, found.clipping) == (plain.method, None)  # the engine clips, where its file says so
    found = under_deepspeed(tmp_path, {"gradient_clipping": "auto", "optimizer": AUTO})
    same = ("method", "clipping", "decay", "eps", "horizon")
    assert [getattr(found, one) for one in same] == [getattr(plain, one) for one in same]
    found = under_deepspeed(tmp_path, {"optimizer": AUTO, "scheduler": DECAY})
    values = {"warm": 50, "total": 300, "low": 0.0, "high": 3e-4, "log": False}
    expected = [deepspeed_rate("WarmupDecayLR", t, **values) for t in range(1, STEPS + 1)]
    np.testing.assert_allclose(rates(found), expected, rtol=1e-9, atol=1e-18)
    bare = under_deepspeed(tmp_path, {"optimizer": {"type": "AdamW", "params": {"betas": "auto"}}})
    assert bare.method.alpha(60) == pytest.approx(plain.method.alpha(60) * 1e-3 / 3e-4)  # DeepSpeed's own rate
    inside, _ = read_config(written(tmp_path, TRAINING | {"deepspeed": {"optimizer": AUTO, "scheduler": DECAY}}))
    assert inside.method == found.method
    live = SimpleNamespace(**TRAINING, optim="adamw_torch", adam_beta1=0.9, adam_epsilon=1e-8)
    live.deepspeed = str(written(tmp_path, {"optimizer": AUTO, "scheduler": DECAY}, "zero.json"))
    assert read(live).method == found.method


def test_a_file_of_deepspeed_s_that_is_not_there_is_a_note_and_a_contradiction_refused(tmp_path):
    algorithm, _ = read_config(written(tmp_path, TRAINING | {"deepspeed": "elsewhere.json"}))
    assert algorithm.notes[-1].endswith("not used: deepspeed")
    with pytest.raises(OptimizerError, match=r"deepspeed: optimizer.params.lr is 0.1, and the arguments 0.0003"):
        under_deepspeed(tmp_path, {"optimizer": {"type": "Adam", "params": {"lr": 0.1}}})
    faster = DECAY | {"params": DECAY["params"] | {"warmup_max_lr": 0.1}}
    with pytest.raises(OptimizerError, match=r"scheduler.params.warmup_max_lr is 0.1, and the arguments 0.0003"):
        under_deepspeed(tmp_path, {"optimizer": AUTO, "scheduler": faster})
    with pytest.raises(OptimizerError, match="its scheduler drives Trainer's optimizer"):
        under_deepspeed(tmp_path, {"scheduler": DECAY})
    with pytest.raises(OptimizerError, match=r"optimizer.params.momentum may change the steps"):
        under_deepspeed(tmp_path, {"optimizer": {"type": "Adam", "params": {"lr": "auto", "momentum": 0.1}}})


# DeepSpeed's live schedulers and optimizers. The package is not installed: these are stand-ins with the attributes, the
# name and the rates (those of `deepspeed_rate`) of its classes, and where it is they are compared with those.
GIVEN = {"WarmupLR": {"warmup_min_lr": 1e-6, "warmup_max_lr": 2e-4}, "WarmupCosineLR": {"total_num_steps": 300}}
GIVEN["WarmupDecayLR"] = GIVEN["WarmupLR"] | GIVEN["WarmupCosineLR"]


def stand_in(kind, optimizer, *, log):
    class Scheduler:
        def __init__(self):
            self.optimizer, self.warmup_num_steps, self.inverse_log_warm_up = optimizer, 50, 1 / math.log(50)
            self.warmup_type, self.last_batch_iteration = "log" if log else "linear", -2
            if kind != "WarmupLR":
                self.total_num_steps = 300
            if kind == "WarmupCosineLR":
                self.warmup_min_ratio, self.cos_min_ratio, self.org_lrs = 0.0, 1e-4, [3e-4]
            else:
                self.min_lrs, self.max_lrs, self.delta_lrs = [1e-6], [2e-4], [2e-4 - 1e-6]
            self.step()

        def step(self, last_batch_iteration=None):
            before = self.last_batch_iteration
            self.last_batch_iteration = before + 1 if last_batch_iteration is None else last_batch_iteration
            self._last_lr = [
                deepspeed_rate(kind, self.last_batch_iteration + 2, warm=50, total=300, low=1e-6, high=2e-4, log=log)
            ]
            self.optimizer.param_groups[0]["lr"] = self._last_lr[0]

    Scheduler.__name__ = kind
    Scheduler.__module__ = Scheduler.step.__module__ = "deepspeed.runtime.lr_schedules"
    return Scheduler()


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("kind", GIVEN)
def test_the_stand_ins_are_deepspeed_s(kind, log):
    real = pytest.importorskip("deepspeed.runtime.lr_schedules")
    optimizers = [torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=3e-4) for _ in range(2)]
    ours = stand_in(kind, optimizers[0], log=log)
    given = GIVEN[kind] | {"warmup_num_steps": 50, "warmup_type": "log" if log else "linear"}
    theirs = getattr(real, kind)(optimizers[1], **given)
    for _ in range(STEPS):
        one, other = ({key: value for key, value in vars(s).items() if key != "optimizer"} for s in (ours, theirs))
        assert one.pop("_last_lr") == pytest.approx(other.pop("_last_lr"), rel=1e-9, abs=1e-18)
        assert one == other
        ours.step()
        theirs.step()


class FusedAdam(torch.optim.Optimizer):
    """As DeepSpeed's and apex': where the decay is, is an attribute and no option of the groups."""

    def __init__(self, params, *, adam_w_mode, **settings):
        super().__init__(params, {"lr": 1e-3, "bias_correction": True, "betas": (0.9, 0.999), "eps": 1e-8} | settings)
        self.adam_w_mode = int(adam_w_mode)


@pytest.mark.parametrize("package", ["deepspeed.ops.adam.fused_adam", "apex.optimizers.fused_adam"])
@pytest.mark.parametrize("mode", [True, False])
def test_fused_adam_says_where_its_decay_is(mode, package, monkeypatch):
    monkeypatch.setattr(FusedAdam, "__module__", package)
    weights, settings = [torch.zeros(1, requires_grad=True)], {"lr": 0.1, "weight_decay": 0.3}
    torchs = (torch.optim.AdamW if mode else torch.optim.Adam)(weights, **settings)
    found, expected = read(FusedAdam(weights, adam_w_mode=mode, **settings)), read(torchs)
    assert replace(found, source="") == replace(expected, source="")
    assert (found.decay(1), float(found.l2)) == ((0.03, 0) if mode else (0, 0.3))
    plain = read(FusedAdam(weights, adam_w_mode=mode, bias_correction=False, **settings))
    assert plain.method == Method(0.1, 0.9, 0.999)


@pytest.mark.parametrize("stepped", [0, 77])
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("kind", ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR"])
def test_deepspeeds_live_schedulers(kind, log, stepped):
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=3e-4, weight_decay=0.1)
    scheduler = stand_in(kind, optimizer, log=log)
    for _ in range(stepped):
        scheduler.step()
    algorithm = read(optimizer, scheduler)
    expected = [deepspeed_rate(kind, t, warm=50, total=300, low=1e-6, high=2e-4, log=log) for t in range(1, STEPS + 1)]
    np.testing.assert_allclose(rates(algorithm), expected, rtol=1e-9, atol=1e-15)
    assert not has_callable(algorithm.method.alpha)
    assert algorithm.horizon == (None if kind == "WarmupLR" else 300)


def test_a_version_of_deepspeed_whose_cosine_rises_again_is_replayed():
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=3e-4, weight_decay=0.1)
    scheduler = stand_in("WarmupCosineLR", optimizer, log=True)
    plain = type(scheduler).step

    def step(self, last_batch_iteration=None):
        plain(self, last_batch_iteration)
        if self.last_batch_iteration > 600:
            self.optimizer.param_groups[0]["lr"] = 2e-4

    type(scheduler).step = step
    algorithm = read(optimizer, scheduler)
    assert "read off a copy" in algorithm.notes[0]
    assert rates(algorithm, 900)[-1] == pytest.approx(2e-4, rel=1e-6)


def test_the_command_line_says_what_was_used_and_what_was_not(tmp_path, capsys):
    file = written(tmp_path, {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {}})
    main(["check", "--config", str(file)])
    text = " ".join(capsys.readouterr().out.split())
    assert "read from the file: optimizer.type, optimizer.params.lr" in text
    assert "that were not used: zero_optimization" in text


@pytest.mark.parametrize(
    ("block", "used"),
    [
        ({"_target_": "torch.optim.AdamW", "lr": 3e-4, "betas": [0.9, 0.95]}, ("_target_", "lr", "betas")),
        ({"name": "AdamW", "lr": 3e-4, "beta1": 0.9, "beta2": 0.95}, ("name", "lr", "beta1", "beta2")),
        ({"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}}, ("type", "params.lr", "params.betas")),
    ],
)
def test_an_optimizers_own_block_is_read_as_inside_its_file(tmp_path, block, used):
    for name, data in (("block.json", block), ("file.json", {"optimizer": block})):
        (tmp_path / name).write_text(json.dumps(data))
    (alone, told), (inside, _) = (read_config(tmp_path / name) for name in ("block.json", "file.json"))
    assert alone.method == inside.method
    assert alone.decay == inside.decay
    assert told == used


def test_a_block_that_is_no_optimizers_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"name": "run 7", "lr": 3e-4}))
    with pytest.raises(OptimizerError, match="'run 7' is none that can be read"):
        read_config(tmp_path / "a.json")
