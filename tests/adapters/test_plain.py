"""Configuration files: the algorithm of each kind, the keys used, and what is refused."""

import json
import math
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from generic_adam.adapters import read, read_config
from generic_adam.adapters.plain import LARGEST
from generic_adam.cli import main
from generic_adam.errors import OptimizerError
from generic_adam.methods import Clipping

ADAMW = {"_target_": "torch.optim.AdamW", "lr": 1e-3}
COSINE = {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": 100}
TRAINING = {"learning_rate": 3e-4, "weight_decay": 0.1, "max_steps": 300, "warmup_steps": 50, "adam_beta2": 0.95}
TRAINING |= {"max_grad_norm": 0.5, "lr_scheduler_type": "cosine"}
AUTO = {"type": "AdamW", "params": dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")}
DECAY = {"type": "WarmupDecayLR", "params": {"warmup_type": "linear"}}
DECAY["params"] |= dict.fromkeys(("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "total_num_steps"), "auto")


def written(tmp_path, data, name="config.json"):
    file = tmp_path / name
    file.write_text(json.dumps(data) if name.endswith("json") else yaml.safe_dump(data), encoding="utf-8")
    return file


def read_block(tmp_path, **block):
    return read_config(written(tmp_path, {"optimizer": block}))[0]


def rates(algorithm, steps):
    """lr_t = nu_t / lambda, for a decoupled decay of lambda = 0.1."""
    return algorithm.decay.values(1, steps + 1) / 0.1


@pytest.mark.parametrize(
    ("block", "used"),
    [
        ({"_target_": "torch.optim.AdamW", "lr": 3e-4, "betas": [0.9, 0.95]}, ("_target_", "lr", "betas")),
        ({"name": "AdamW", "lr": "3e-4", "beta1": 0.9, "beta2": "0.95"}, ("name", "lr", "beta1", "beta2")),
        ({"type": "adamw", "lr": 3e-4, "betas": [0.9, 0.95]}, ("type", "lr", "betas")),
        ({"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}}, ("type", "params.lr", "params.betas")),
    ],
)
def test_an_optimizers_own_block_is_read_as_inside_its_file(tmp_path, block, used):
    read_alone, told = read_config(written(tmp_path, block, "block.yaml"), steps=1000)
    inside, _ = read_config(written(tmp_path, {"optimizer": block}))
    assert told == used
    assert (read_alone.method, read_alone.decay, read_alone.horizon) == (inside.method, inside.decay, 1000)
    assert read_alone.method.alpha(10**6) == pytest.approx(3e-4)
    assert (read_alone.method.beta(1), read_alone.method.theta(1)) == (0.9, 0.95)


def test_lightnings_class_has_its_settings_inside(tmp_path):
    block = {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.1, "betas": [0.8, 0.9]}}
    assert read_block(tmp_path, **block).method.theta(1) == 0.9
    block["init_args"]["momentum"] = 0.5
    with pytest.raises(OptimizerError, match=r"optimizer\.init_args\.momentum may change the steps"):
        read_block(tmp_path, **block)


FUSED = ["apex.optimizers.FusedAdam", "deepspeed.ops.adam.DeepSpeedCPUAdam", "colossalai.nn.optimizer.CPUAdam"]


@pytest.mark.parametrize("target", [*FUSED, "fused_adam"])
def test_fused_adam_is_adamw_unless_told(target, tmp_path):
    given = {"name": target, "lr": 0.01, "weight_decay": 0.1}
    found = read_block(tmp_path, **given)
    assert (found.decay(1), found.l2, found.label) == (pytest.approx(1e-3), 0, "AdamW")
    for mode in ("adam_w_mode", "adamw_mode"):
        inside = read_block(tmp_path, **given, **{mode: False})
        assert (inside.decay(1), float(inside.l2), inside.label) == (0, 0.1, "Adam")
    plain = read_block(tmp_path, name=target, lr=0.01, bias_correction=False)
    assert (plain.decay(1), plain.method.alpha(1), plain.eps(1)) == (0, 0.01, 1e-8)


@pytest.mark.parametrize(
    ("target", "decay", "bits"),
    [
        ("bitsandbytes.optim.Adam8bit", 0, 8),
        ("bitsandbytes.optim.PagedAdamW32bit", 0.01, None),
        ("torchao.optim.AdamW4bit", 0.01, 4),
        ("timm.optim.NAdamW", 0.01, None),
    ],
)
def test_weight_decay_has_the_default_of_the_class(target, decay, bits, tmp_path):
    found = read_block(tmp_path, _target_=target, lr=0.5)
    outside = () if bits is None else (f"the moments are kept in {bits} bits",)
    assert (found.decay(1), found.l2, found.outside) == (pytest.approx(0.5 * decay), 0, outside)
    assert read_block(tmp_path, _target_=target, lr=0.5, weight_decay=0.1).decay(1) == pytest.approx(0.05)


def test_adafactor_by_name_has_steps_of_its_own(tmp_path):
    for package in ("transformers.optimization", "timm.optim"):
        found = read_block(tmp_path, _target_=f"{package}.Adafactor")
        assert found.method.alpha(40_000) == pytest.approx(1 / 200)
        assert (found.scaled, found.outside) == (True, ())
        with pytest.raises(OptimizerError, match="takes no lr beside relative_step"):
            read_block(tmp_path, _target_=f"{package}.Adafactor", lr=0.1)
    told = read_block(tmp_path, _target_="transformers.Adafactor", lr=0.1, relative_step=False)
    assert told.method.alpha(40_000) == 0.1


def test_a_class_of_ones_own_may_do_anything_under_a_known_name(tmp_path):
    (said,) = read_block(tmp_path, _target_="mine.AdamW", lr=0.01).outside
    assert said.startswith("mine.AdamW may do other things")


def test_trainer_s_arguments(tmp_path):
    common = {"learning_rate": "3e-4", "max_steps": 300, "warmup_steps": 20, "weight_decay": 0.1, "seed": 3}
    file = written(tmp_path, common | {"lr_scheduler_type": "cosine", "optim": "adamw_torch"}, "run.yaml")
    found, used = read_config(file)
    expected = [3e-4 * (k / 20 if k < 20 else (1 + math.cos(math.pi * (k - 20) / 280)) / 2) for k in range(301)]
    np.testing.assert_allclose(rates(found, 301), expected, atol=1e-15)
    assert (found.horizon, found.clipping) == (300, Clipping(1.0))
    assert "learning_rate" in used
    assert "seed" not in used
    # Arguments of a scheduler may be the text that the command line has.
    cosine = common | {"lr_scheduler_type": "cosine"}
    tables = [cosine | {"lr_scheduler_kwargs": one} for one in ('{"num_cycles": 0.25}', {"num_cycles": 0.25})]
    text, table = (read_config(written(tmp_path, one))[0].method for one in tables)
    assert text == table != found.method
    # The schedule is as long as the file says, however much of it is run.
    half, _ = read_config(file, steps=150)
    assert (half.method, half.horizon) == (found.method, 150)


def test_what_trainer_takes_where_a_value_is_left_out(tmp_path):
    transformers = pytest.importorskip("transformers")
    plain = transformers.TrainingArguments(output_dir=str(tmp_path), max_steps=70, learning_rate=0.1, use_cpu=True)
    ours, theirs = read_config(written(tmp_path, {"max_steps": 70, "learning_rate": 0.1}))[0], read(plain)
    same = ("method", "clipping", "decay", "eps")
    assert [getattr(ours, one) for one in same] == [getattr(theirs, one) for one in same]
    (tmp_path / "dump.json").write_text(plain.to_json_string(), encoding="utf-8")  # with all its keys
    assert read_config(tmp_path / "dump.json")[0].method == theirs.method
    unclipped = written(tmp_path, {"max_steps": 70, "learning_rate": 0.1, "max_grad_norm": None})
    assert read_config(unclipped)[0].clipping is None


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
    told = {"warmup_min_lr": 0, "warmup_max_lr": 3e-4, "warmup_num_steps": 50, "total_num_steps": 300}
    optimizer = {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}}
    scheduler = {"type": "WarmupDecayLR", "params": told | {"warmup_type": "linear"}}
    alone, _ = read_config(written(tmp_path, {"optimizer": optimizer, "scheduler": scheduler}))
    assert [getattr(found, one) for one in same] == [getattr(alone, one) for one in same]
    bare = under_deepspeed(tmp_path, {"optimizer": {"type": "AdamW", "params": {"betas": "auto"}}})
    assert bare.method.alpha(60) == pytest.approx(plain.method.alpha(60) * 1e-3 / 3e-4)  # DeepSpeed's own rate
    inside, _ = read_config(written(tmp_path, TRAINING | {"deepspeed": {"optimizer": AUTO, "scheduler": DECAY}}))
    assert inside.method == found.method
    live = SimpleNamespace(**TRAINING, optim="adamw_torch", adam_beta1=0.9, adam_epsilon=1e-8)
    live.deepspeed = str(written(tmp_path, {"optimizer": AUTO, "scheduler": DECAY}, "zero.json"))
    assert read(live).method == found.method


def test_a_file_of_deepspeed_s_that_is_not_there_is_a_note_and_a_contradiction_refused(tmp_path):
    found, _ = read_config(written(tmp_path, TRAINING | {"deepspeed": "elsewhere.json"}))
    assert found.notes[-1].endswith("not used: deepspeed")
    with pytest.raises(OptimizerError, match=r"deepspeed: optimizer.params.lr is 0.1, and the arguments 0.0003"):
        under_deepspeed(tmp_path, {"optimizer": {"type": "Adam", "params": {"lr": 0.1}}})
    with pytest.raises(OptimizerError, match="its scheduler drives Trainer's optimizer"):
        under_deepspeed(tmp_path, {"scheduler": DECAY})
    with pytest.raises(OptimizerError, match=r"optimizer.params.momentum may change the steps"):
        under_deepspeed(tmp_path, {"optimizer": {"type": "Adam", "params": {"lr": "auto", "momentum": 0.1}}})


DEEPSPEED = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
WARM = {"type": "WarmupLR", "params": {"decay": 3, "warmup_num_steps": 3}}
# What a file says of the steps and nobody reads would be another algorithm than the one that is run.
IGNORED = {
    "embedding_lr": {"learning_rate": 3e-4, "max_steps": 300, "embedding_lr": "1e-5"},
    "lr_groups": {"learning_rate": 3e-4, "max_steps": 300, "lr_groups": [{"name": "x", "lr": 1e-5}]},
    "optimizer.momentum": {"optimizer": ADAMW | {"momentum": 0.5}},
    "optimizer.sched.warmup_steps": {"optimizer": ADAMW | {"sched": {"name": "CosineAnnealing", "warmup_steps": 5}}},
    "scheduler._target_": {"optimizer": ADAMW, "scheduler": COSINE},
    "lr_scheduler": {"optimizer": ADAMW, "lr_scheduler": "cosine", "training": {"steps": 100}},
    "train.scheduler._target_": {"optimizer": ADAMW, "train": {"scheduler": COSINE}},
    "trainer.gradient_clip_val": {"optimizer": ADAMW, "trainer": {"gradient_clip_val": 0.5}},
    "training.max_norm": {"optimizer": ADAMW, "training": {"steps": 100, "max_norm": 1.0}},
    "warmup_steps": {"optimizer": ADAMW, "warmup_steps": 100},
    "optimizer.params.momentum": {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "momentum": 0.5}}},
    "scheduler.params.decay": DEEPSPEED | {"scheduler": WARM},
}


@pytest.mark.parametrize("key", IGNORED)
def test_what_may_change_the_steps_and_is_not_read_is_refused(key, tmp_path):
    with pytest.raises(OptimizerError, match=re.escape(f"config.json: {key} may change the steps")) as caught:
        read_config(written(tmp_path, IGNORED[key]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"base_model": "x", "learning_rate": 3e-4, "max_steps": 300}, "base_model"),  # axolotl's, by default a cosine
        ({"learning_rate": 3e-4, "max_steps": 300, "optimizer": "adamw_torch"}, "optimizer"),
        ({"optimizer": {"lr": 1e-3}}, "names no class"),
        ({"name": "run 7", "lr": 3e-4}, "'run 7' is none that can be read"),
        ({"model": {"optimizer": ADAMW}}, "no optimizer is named"),
        (DEEPSPEED | {"scheduler": {"type": "OneCycle"}}, "scheduler.type is 'OneCycle'"),
        (DEEPSPEED | {"scheduler": DECAY}, "is 'auto', which Trainer fills in"),
        (
            DEEPSPEED | {"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": None}}},
            "total_num_steps is None",
        ),
    ],
)
def test_other_files_are_refused_in_one_line(data, word, tmp_path):
    with pytest.raises(OptimizerError, match=re.escape(word)) as caught:
        read_config(written(tmp_path, data))
    assert "\n" not in str(caught.value)


def test_what_does_not_change_the_steps_is_a_note(tmp_path):
    data = {"optimizer": ADAMW | {"fused": True, "_partial_": True}, "scheduler": None}
    data |= {"callbacks": {"lr_monitor": {"logging_interval": "step"}}, "trainer": {"max_epochs": 3}, "lr_find": True}
    found, used = read_config(written(tmp_path, data, "conf.yaml"))
    assert used == ("optimizer._target_", "optimizer.lr")
    names = "callbacks.lr_monitor.logging_interval, lr_find, optimizer._partial_, optimizer.fused, scheduler"
    assert found.notes[-1] == f"keys of conf.yaml that were not used: {names}, trainer.max_epochs"
    many = {f"key{n}": n for n in range(40)} | {"learning_rate": 1e-3, "max_steps": 10}
    assert read_config(written(tmp_path, many))[0].notes[-1].endswith("key10, key11 and 28 more")


RESTARTS = "{learning_rate: 1, max_steps: 9, lr_scheduler_type: cosine_with_restarts"
HOSTILE = {
    "10 MB": ("a.json", '{"learning_rate": ' + "1" * 10_000_000 + "}"),
    "deep JSON": ("a.json", '{"a":' * 20_000 + "1" + "}" * 20_000),
    "deep YAML": ("a.yaml", "[" * 50_000),
    "an alias": ("a.yaml", "a: &a [x, x]\noptimizer: {_target_: torch.optim.Adam, lr: *a}"),
    "a merge": ("a.yaml", "a: &a {x: 1}\nb: {<<: *a}\nlearning_rate: 1"),
    "itself": ("a.yaml", "optimizer: &o {_target_: torch.optim.Adam, lr: *o}"),
    "a tag": ("a.yaml", "learning_rate: !!python/object/new:os.system [x]"),
    "twice, JSON": ("a.json", '{"optimizer": {"name": "adam", "lr": 0.1, "lr": 0.2}}'),
    "twice, YAML": ("a.yaml", "optimizer: {name: adam}\nseed: 1\noptimizer: {name: adam, lr: 0.1}"),
    "NaN": ("a.json", '{"learning_rate": NaN, "max_steps": 5}'),
    "infinite": ("a.yaml", "learning_rate: .inf\nmax_steps: 5"),
    "huge": ("a.json", '{"learning_rate": 1e-3, "max_steps": ' + "9" * 500 + "}"),
    "a list": ("a.json", '{"learning_rate": [1, 2], "max_steps": 5}'),
    "a list of lists": ("a.yaml", "optimizer: {_target_: torch.optim.Adam, lr: 1, betas: [[0.9], [0.99]]}"),
    "true": ("a.json", '{"learning_rate": true}'),
    "numbers as names": ("a.yaml", "1: 2\n3: 4"),
    "a name that is a number": ("a.yaml", "optimizer: {type: 3}"),
    "a name without end": ("a.json", '{"optimizer": {"type": "' + "x" * 200_000 + '"}}'),
    "cycles": ("a.yaml", f"{RESTARTS}, lr_scheduler_kwargs: {{num_cycles: 1e9}}}}"),
    "another format": ("a.toml", "optimizer = 3"),
    "no bytes": ("a.yaml", ""),
    "no text": ("a.json", "\x00\x01"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_one_line(name, tmp_path):
    file, text = HOSTILE[name]
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(OptimizerError) as caught:
        read_config(tmp_path / file)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_never_ends_is_not_read(tmp_path):
    """A pipe that nobody writes to, and a device: both held the command for ever."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zeros.yaml").symlink_to("/dev/zero")
    (tmp_path / "large.json").write_bytes(b" " * (LARGEST + 1))
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    ends = {"pipe.json": "no plain", "zeros.yaml": "no plain", "large.json": "more than", "latin.json": "parsed"}
    for name, said in (ends | {"none.json": "cannot be read"}).items():
        with pytest.raises(OptimizerError, match=said):
            read_config(tmp_path / name)


def test_the_command_line_says_what_was_used_and_what_was_not(tmp_path, capsys):
    file = written(tmp_path, DEEPSPEED | {"zero_optimization": {"stage": 1}})
    main(["check", "--config", str(file), "--explain"])
    text = " ".join(capsys.readouterr().out.split())
    assert "read from the file: optimizer.type" in text
    assert "that were not used: zero_optimization.stage" in text
