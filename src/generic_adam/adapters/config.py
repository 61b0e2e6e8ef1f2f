"""The algorithm that a training run's configuration file asks for: DeepSpeed's JSON, Trainer's arguments, YAML.

Four kinds of file are told apart by their keys. Each says which of its keys were used; a note of the algorithm names
those that were not, and one that may change the steps is refused.

- DeepSpeed: "optimizer" and "scheduler" with "type" and "params", "gradient_clipping";
- Trainer's arguments, and axolotl, which uses their names: "learning_rate", "lr_scheduler_type", "max_steps", ...;
- torchtitan: tables "optimizer" (name, lr, beta1, ...), "lr_scheduler" (warmup_steps, decay_ratio, ...), "training";
- Hydra, OmegaConf, torchtune and Lightning's command line: an "optimizer" with `_target_: torch.optim.AdamW` (or
  "class_path" and "init_args", or a plain "name"), and perhaps a "scheduler" or "lr_scheduler" of torch's or of
  transformers', at the top or inside one table, and Lightning's "trainer"; "${name}" is looked up.

A file is data: nothing in it is run, and what is not a configuration is refused in one line.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import stat
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.clock import Clock, length_of_epoch, ramp, scaled, stages
from generic_adam.adapters.schedulers import (
    MOMENTA,
    TRANSFORMERS,
    Nested,
    closed_form,
    steps_of_run,
    transformers_rate,
)
from generic_adam.adapters.trainer import rate_of, read_training_arguments, run_length, warm_up_steps
from generic_adam.errors import GenericAdamError, OptimizerError, shown
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm, Clipping
from generic_adam.schedules import Schedule, as_schedule

LARGEST = 2**18
"""A configuration of more bytes than this is none."""

_NAMED = 12  # as many unused keys are named; of more there is the number
_EXPECTED = {float: "a number", int: "a whole number", str: "a name", bool: "true or false"}


class _Keys:
    """A nested mapping that remembers, by dotted names, what was asked of it.

    Of the root: `folder` is where the file lies, `auto` what that word stands for, by the last part of a key's name.
    """

    folder = Path()

    def __init__(self, data: Mapping[Any, Any], where: str = "", root: _Keys | None = None, **auto: Any) -> None:
        self.data, self.where, self.root = data, where, self if root is None else root
        self.used: dict[str, None] = {} if root is None else root.used
        self.auto = auto

    def get(self, name: str, default: Any = None, depth: int = 8) -> Any:
        """The value of a key, or the default where there is none or it is null; "${a.b}" is looked up."""
        value = self.data.get(name)
        if name in self.data and not isinstance(value, Mapping):
            self.used[self.where + name] = None
        if value is None:
            return default
        if isinstance(value, str) and value == "auto":
            if name in self.root.auto:
                return self.root.auto[name]
            said = "is 'auto', which Trainer fills in; expected its value, or Trainer's arguments"
            raise OptimizerError(f"{self.where}{name} {said}")
        elsewhere = re.fullmatch(r"\$\{([\w.]+)\}", value) if isinstance(value, str) and depth else None
        if elsewhere is None:
            return value
        *tables, last = elsewhere[1].split(".")
        table = self.root
        for one in tables:
            table = table.table(one)
        found = table.get(last, None, depth - 1)
        if found is None:
            raise OptimizerError(f"{self.where}{name} is {shown(value)}, and there is no {elsewhere[1]}")
        return found

    def value(self, name: str, expected: Any) -> Any:
        """The value of a key, of the type of the default that is given, or of the type that is.

        Several defaults are the names that it may have, the first where it has none. Numbers are finite; YAML reads
        1e-3 as a text, so texts that are numbers are taken.
        """
        names = expected if isinstance(expected, tuple) else ()
        default = names[0] if names else None if isinstance(expected, type) else expected
        kind = expected if default is None else type(default)
        value = found = self.get(name, default)
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            value = float(found) if kind in {int, float} and not isinstance(found, bool) else found
        if isinstance(value, float) and kind is int and math.isfinite(value) and value % 1 == 0:
            value = int(value)
        if type(value) is not kind or (kind is float and not math.isfinite(value)) or (names and value not in names):
            said = " or ".join(repr(one) for one in names if one) or _EXPECTED[kind]
            raise OptimizerError(f"{self.where}{name} is {shown(found)}; expected {said}")
        return value

    def values(self, declared: Mapping[str, Any]) -> SimpleNamespace:
        """The values of several keys, by their names."""
        return SimpleNamespace(**{name: self.value(name, one) for name, one in declared.items()})

    def table(self, name: str) -> _Keys:
        """A mapping inside, or a list of them by number; empty where there is none."""
        value = self.data.get(name)
        if isinstance(value, list):
            value = {str(n): one for n, one in enumerate(value)}
        return _Keys(value if isinstance(value, Mapping) else {}, f"{self.where}{name}.", self.root)

    def unused(self) -> dict[str, Any]:
        """The keys here, and those of tables that were looked into, that nothing was made of."""
        found: dict[str, Any] = {}
        for key, value in self.data.items():
            name = f"{self.where}{key}"
            if any(used.startswith(f"{name}.") for used in self.used):
                found |= self.table(key).unused()
            elif name not in self.used:
                found[name] = value
        return found


# Tables that say how steps are taken, and numbers that do; then what does not, though it stands there.
_STEPS = re.compile(r"(^|\.)(optim(izer)?|(lr_)?sched(uler)?)(\.|$)")
_RATE = re.compile(r"(^|[._])(lr|learning_rate|warmup)(_|$)")
_IDLE = {"_partial_", "_convert_", "_recursive_", "name", "type", "fused", "foreach", "capturable"}
_IDLE |= {"differentiable", "implementation", "early_step_in_backward", "legacy_fusion", "set_grad_none", "verbose"}
_IDLE |= {"min_8bit_size", "block_wise", "is_paged"}


def _matters(name: str, value: Any) -> bool:
    """Whether a key that nothing was made of may change the steps."""
    if value in (None, False, "", -1, {}, []) or name.rpartition(".")[2] in _IDLE:
        return False
    inside = value if isinstance(value, Mapping) else ()
    if _STEPS.search(name) or any(_STEPS.search(str(key)) for key in inside):
        return True
    return bool(_RATE.search(name)) and isinstance(_numeric(value), int | float | tuple) and value is not True


def _numeric(value: Any) -> Any:
    """1e-3 is a text in YAML's first version; a list is a tuple."""
    if isinstance(value, list):
        return tuple(one if isinstance(one, list) else _numeric(one) for one in value)
    with contextlib.suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value


def read_config(
    path: str | Path, *, steps: int | None = None, steps_per_scheduler_step: int | None = None
) -> tuple[Algorithm, tuple[str, ...]]:
    """The algorithm of a configuration file, and the keys that were used.

    Args:
        path: a JSON, YAML or TOML file, or one that holds an optimizer's own block alone.
        steps: the number of optimizer steps; where the file has one too, its schedule is as long as the file says.
        steps_per_scheduler_step: the optimizer steps for each step of a scheduler of torch's or transformers'; None
            means 1, except that Lightning's has to be told the length of an epoch.

    Returns:
        The algorithm, and the names of the keys that it was made of, nested ones with dots.
    """
    file = Path(path)
    data = _load(file)
    is_block = "optimizer" not in data and (
        {*_TARGETS} & {*data} or ({"name", "type"} & {*data} and {"lr", "params"} & {*data})
    )
    keys = _Keys({"optimizer": data} if is_block else data)
    keys.folder = file.parent
    try:
        reading = _kind(keys)
        if steps_per_scheduler_step is None:
            algorithm = reading(keys, steps)
        elif reading is _hydra:
            algorithm = _hydra(keys, steps, steps_per_scheduler_step)
        else:
            raise OptimizerError("its scheduler steps with the optimizer; expected no pace of its own (--every)")
        notes, unused = algorithm.notes, _unused(keys)
    except Exception as error:
        raise OptimizerError(f"{file.name}: {textwrap.shorten(str(error), 400)}") from error
    if unused:
        more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
        names = (textwrap.shorten(name, 60) for name in list(unused)[:_NAMED])
        notes = (*notes, f"keys of {file.name} that were not used: {', '.join(names)}{more}")
    source = f"{file.name}: {algorithm.source or algorithm.label}"
    used = (name.removeprefix("optimizer.") if is_block else name for name in keys.used)
    return replace(algorithm, source=source, notes=notes), tuple(used)


def _unused(keys: _Keys) -> dict[str, Any]:
    """What nothing was made of, where none of it may change the steps."""
    unused = keys.unused()
    for name in (name for name, value in unused.items() if _matters(name, value)):
        said = "may change the steps and cannot be read here; expected a file without it, or the live objects"
        raise OptimizerError(f"{textwrap.shorten(name, 60)} {said} (--from)")
    return unused


def _load(file: Path) -> Mapping[Any, Any]:
    suffix = file.suffix.lower()
    if suffix not in _PARSERS:
        raise OptimizerError(f"{file.name} ends in {suffix!r}; expected .json, .yaml, .yml or .toml")
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe or a device may never end
            raise OptimizerError(f"{file.name} is no plain file; expected a configuration")
        with file.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise OptimizerError(f"{file.name} has more than {LARGEST} bytes; expected a configuration")
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise OptimizerError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        data = _PARSERS[suffix](text)
    except (ValueError, RecursionError) as error:
        raise OptimizerError(f"{file.name} cannot be parsed: {textwrap.shorten(str(error), 300)}") from error
    if not isinstance(data, Mapping):
        raise OptimizerError(f"{file.name} holds a {type(data).__name__}; expected keys and values")
    return data


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """The pairs as a dictionary, where no key comes again with another value."""
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} comes twice")
        found[key] = value
    return found


def _yaml(text: str) -> Any:
    with from_extra("cli"):
        import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            _once((key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<")
            return node

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > LARGEST // 4:  # merges of merges multiply
                raise yaml.YAMLError("its merged keys are more than the file has letters for")

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_PARSERS: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".yaml": _yaml, ".yml": _yaml}
_PARSERS[".json"] = partial(json.loads, object_pairs_hook=_once)


_TARGETS = ("class_path", "_target_", "_component_")  # Lightning's, Hydra's and torchtune's
_NAMES = (*_TARGETS, "name", "type")
_PACKAGES = {"torch", "transformers", "timm", "torchtune", "apex", "deepspeed", "bitsandbytes", "bnb", "colossalai"}
_PACKAGES |= {"transformer_engine", "torchao"}
_TITAN = {"warmup_steps", "decay_ratio", "decay_type", "min_lr_factor", "max_norm", "seq_len", "local_batch_size"}


def _kind(keys: _Keys) -> Callable[[_Keys, int | None], Algorithm]:
    """The reading that fits the keys."""
    optimizer, rates = keys.table("optimizer").data, keys.table("lr_scheduler").data
    if "type" in optimizer and "lr" not in optimizer:
        return _deepspeed
    if "learning_rate" in keys.data:
        return _trainer
    theirs = _TITAN & {*rates, *keys.table("training").data}
    if "lr" in optimizer and theirs and not {*_NAMES} & set(rates) and not {*_TARGETS} & set(optimizer):
        return _torchtitan
    if _hydra_tables(keys) is not None:
        return _hydra
    names = ", ".join(shown(name).strip("'") for name in list(keys.data)[:6])
    expected = "expected DeepSpeed's, Trainer's, torchtitan's or Hydra's names"
    raise OptimizerError(f"no optimizer is named (the keys are {names}); {expected}")


_DEEPSPEED: dict[str, dict[str, Any]] = {
    "WarmupLR": {"warmup_min_lr": 0.0},
    "WarmupDecayLR": {"warmup_min_lr": 0.0, "total_num_steps": int},
    "WarmupCosineLR": {"warmup_min_ratio": 0.0, "cos_min_ratio": 1e-4, "total_num_steps": int},
}


def _deepspeed(keys: _Keys, steps: int | None, shape: Callable[[float], Schedule] = as_schedule) -> Algorithm:
    """Its scheduler, or where it has none one of another's of this shape over the base rate."""
    optimizer, scheduler = keys.table("optimizer"), keys.table("scheduler")
    name, params = optimizer.value("type", str), optimizer.table("params")
    kind = scheduler.value("type", ("", *_DEEPSPEED))
    update, mode = _deepspeed_update(name, params)
    base, source = params.value("lr", update.defaults.get("lr", 1e-3)), f"DeepSpeed, {name}"
    rate = shape(base)
    if kind:
        given = scheduler.table("params")
        own = {"warmup_num_steps": 1000, "warmup_type": ("log", "linear"), **_DEEPSPEED[kind]}
        empty = [one for one in own if one in given.data and given.data[one] is None and one != "warmup_type"]
        if empty:
            raise OptimizerError(f"{given.where}{empty[0]} is null; expected its value, or no such key")
        if kind != "WarmupCosineLR":  # null is the optimizer's rate, and so is none at all for one of the two
            own["warmup_max_lr"] = base if kind == "WarmupLR" or "warmup_max_lr" in given.data else 1e-3
        s = given.values(own)
        s.warmup_num_steps, s.org_lrs = max(2, s.warmup_num_steps), base
        s.min_lrs, s.max_lrs = getattr(s, "warmup_min_lr", 0.0), getattr(s, "warmup_max_lr", base)
        rate, source = closed_form(f"deepspeed.{kind}", s, Clock()), f"{source} with {kind}"
        steps = steps_of_run(s) if steps is None else steps
    found, clip = update(updates.Settings(mode, params), rate), keys.value("gradient_clipping", 0.0)
    return updates.clipped(found, clip, source=source, horizon=steps)


def _deepspeed_update(name: str, params: _Keys) -> tuple[updates.Update, dict[str, Any]]:
    """DeepSpeed's Adam decays as AdamW does unless told otherwise, and by torch's 0.01 only where the class is torch's.

    Its AdamW does so whatever it is told.
    """
    if name.lower() not in {"adam", "adamw"}:
        return updates.by_name(name), {}
    mode = params.value("adam_w_mode", True) or name.lower() == "adamw"
    torchs, own = updates.by_name("AdamW" if mode else "Adam"), updates.UPDATES["torch.AdamW"]
    return torchs if params.value("torch_adam", False) else own, {"adam_w_mode": mode}


_TRAINER: dict[str, Any] = {"learning_rate": float, "max_steps": -1, "warmup_steps": 0.0, "warmup_ratio": 0.0}
_TRAINER |= {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8}
_TRAINER |= {"weight_decay": 0.0, "max_grad_norm": 1.0, "optim_args": ""}


def _trainer(keys: _Keys, steps: int | None) -> Algorithm:
    """Trainer's arguments; axolotl has other names for two of them, and other defaults."""
    arguments = keys.values(_TRAINER)
    axolotl = not {"lr_scheduler_type", "optim"} & set(keys.data) and bool(_AXOLOTL & set(keys.data))
    if axolotl:
        _warm_up_of_axolotl(keys, arguments, steps)
    elif keys.data.get("max_grad_norm", 1) is None:
        arguments.max_grad_norm = 0.0
    usual = "cosine" if axolotl else "linear"
    arguments.lr_scheduler_type = keys.value("lr_scheduler_type", "") or keys.value("lr_scheduler", usual)
    given, text = keys.table("lr_scheduler_kwargs"), keys.get("lr_scheduler_kwargs", {})  # a table, or JSON's text
    table = {name: _numeric(given.get(name)) for name in given.data}
    arguments.lr_scheduler_kwargs = table if isinstance(text, Mapping) else text
    arguments.optim = keys.value("optim", "") or keys.value("optimizer", "adamw_torch")
    beside = keys.data.get("deepspeed")
    if isinstance(beside, str) and (keys.folder / beside).is_file():
        beside = _load(keys.folder / beside)
    if isinstance(beside, Mapping):
        keys.used["deepspeed"], arguments.deepspeed = None, beside
    return read_trainer(arguments, steps=steps)


def read_trainer(arguments: Any, *, steps: int | None = None) -> Algorithm:
    """Trainer's arguments; an optimizer, a scheduler and clipping of DeepSpeed's take the place of Trainer's.

    Its "auto" is what the arguments say.
    """
    data = getattr(arguments, "deepspeed", None)
    if not data:
        return read_training_arguments(arguments, steps=steps)
    total, lr = run_length(arguments.max_steps, steps), arguments.learning_rate
    auto = {"lr": lr, "betas": [arguments.adam_beta1, arguments.adam_beta2], "eps": arguments.adam_epsilon}
    auto |= {"weight_decay": arguments.weight_decay, "gradient_clipping": arguments.max_grad_norm}
    auto |= {"warmup_num_steps": max(1, warm_up_steps(arguments, total)), "total_num_steps": total, "warmup_max_lr": lr}
    keys = _Keys(data if isinstance(data, Mapping) else _load(Path(data)), **auto, warmup_min_lr=0)
    for table in (keys, keys.table("optimizer").table("params"), keys.table("scheduler").table("params")):
        for name in table.data.keys() & auto.keys():
            if (said := table.data[name]) not in (None, "auto", auto[name]):
                raise OptimizerError(f"deepspeed: {table.where}{name} is {shown(said)}, and the arguments {auto[name]}")
    if "optimizer" in keys.data:
        found = _deepspeed(keys, steps or total, partial(rate_of, arguments, total))
    elif "scheduler" in keys.data:
        raise OptimizerError("deepspeed: its scheduler drives Trainer's optimizer; expected one beside it, or neither")
    else:
        found = read_training_arguments(arguments, steps=steps, clip=keys.value("gradient_clipping", 0.0))
    _unused(keys)
    return found


_AXOLOTL = {"base_model", "micro_batch_size", "optimizer", "lr_scheduler"}


def _warm_up_of_axolotl(keys: _Keys, arguments: SimpleNamespace, steps: int | None) -> None:
    """A share is rounded down; where nothing is said it is 3 % of all steps, at most 100; 1 step is made 2."""
    total = run_length(arguments.max_steps, steps)
    if keys.get("warmup_steps") is None:
        said = keys.get("warmup_ratio") is not None
        arguments.warmup_steps = int(arguments.warmup_ratio * total) if said else min(int(0.03 * total), 100)
    arguments.warmup_steps, arguments.warmup_ratio = (2 if arguments.warmup_steps == 1 else arguments.warmup_steps), 0.0


def _torchtitan(keys: _Keys, steps: int | None) -> Algorithm:
    """Linear warm-up, flat, then a decay over the last share of the run to the least factor."""
    training = keys.table("training")
    total = training.value("steps", int if steps is None else steps)
    place = keys.table("lr_scheduler") if "lr_scheduler" in keys.data else training
    declared = {"warmup_steps": 200, "min_lr_factor": 0.0, "decay_ratio": 1.0}
    s = place.values(declared | {"decay_type": ("linear", "sqrt", "cosine")})
    if not 0 <= s.decay_ratio <= 1:
        raise OptimizerError(f"{place.where}decay_ratio is {s.decay_ratio:g}; expected a share of the steps")
    warm, low = min(s.warmup_steps, total), s.min_lr_factor
    decay = min(round(total * s.decay_ratio), total - warm)
    flat = total + 1 - decay  # one step later than the numbers say: the last rate stays above the least
    fall = ramp(1, low, max(1, decay), s.decay_type, ahead=1)
    parts = [(warm, ramp(0, 1, max(1, warm), ahead=1)), (flat, 1), (total, fall)]
    optimizer = keys.table("optimizer")
    name, base = optimizer.value("name", "AdamW"), optimizer.value("lr", 8e-4)
    update = replace(updates.by_name(name), defaults={"beta2": 0.95, "weight_decay": 0.1})
    found = update(optimizer, scaled(base, stages(Clock(), parts, low if decay else 1)))
    clip = training.value("max_norm", 1.0)
    return updates.clipped(found, clip, source=f"torchtitan, {name}", horizon=steps or total)


_SCHEDULERS: Mapping[str, Mapping[str, Any]] = {
    "ConstantLR": {"factor": 1 / 3, "total_iters": 5},
    "LinearLR": {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5},
    "ExponentialLR": {"gamma": float},
    "StepLR": {"step_size": int, "gamma": 0.1},
    "MultiStepLR": {"gamma": 0.1},
    "PolynomialLR": {"total_iters": 5, "power": 1.0},
    "CosineAnnealingLR": {"T_max": int, "eta_min": 0.0},
    "CosineAnnealingWarmRestarts": {"T_0": int, "T_mult": 1, "eta_min": 0.0},
    "OneCycleLR": {"max_lr": float, "pct_start": 0.3, "anneal_strategy": "cos", "three_phase": False}
    | {"div_factor": 25.0, "final_div_factor": 1e4}
    | {"cycle_momentum": True, "base_momentum": 0.85, "max_momentum": 0.95},
    "CyclicLR": {"base_lr": float, "max_lr": float, "step_size_up": 2000, "mode": "triangular", "gamma": 1.0}
    | {"cycle_momentum": True, "base_momentum": 0.8, "max_momentum": 0.9},
    "SWALR": {"swa_lr": float, "anneal_epochs": 10, "anneal_strategy": "cos"},
    "SequentialLR": {},
    "ChainedScheduler": {},
}
"""The arguments of torch's classes with their defaults; a type for what has to be given."""


def _hydra_tables(keys: _Keys) -> tuple[_Keys, _Keys] | None:
    """The optimizer's table and the scheduler's, at the top or inside one table."""
    inside = [keys.table(name) for name, value in keys.data.items() if isinstance(value, Mapping)]
    for place in (keys, *inside):
        for name in ("optimizer", "optim"):
            table = place.table(name)
            if {*_TARGETS, "lr"} & set(table.data):
                return table, place.table("scheduler" if "scheduler" in place.data else "lr_scheduler")
    return None


def _hydra(keys: _Keys, steps: int | None, every: int | None = None) -> Algorithm:
    tables, trainer = _hydra_tables(keys) or (keys, keys), keys.table("trainer")
    (name, optimizer), (target, scheduler) = map(_target, tables)
    bare, kind = name.rpartition(".")[2], target.rpartition(".")[2]
    # A file has only the name of a class: of a package that is not known, it may do anything.
    strangers = [one for one in (name, target) if "." in one and one.partition(".")[0] not in _PACKAGES]
    outside = tuple(f"{one} may do other things than what torch or transformers has of that name" for one in strangers)
    notes = []
    if not name:
        raise OptimizerError(f"{optimizer.where[:-1]} names no class; expected {', '.join(_NAMES)}")
    update = updates.by_name(name, name.partition(".")[0])
    base = optimizer.value("lr", update.defaults.get("lr", 1e-3))
    more: dict[str, Any] = {"largest_lr": base}
    relative = update.defaults.get("relative_step") and optimizer.value("relative_step", True)
    if relative and optimizer.get("lr") is not None:
        if "eps_scale" not in update.defaults:  # timm takes a rate for a no, transformers refuses
            raise OptimizerError(f"{bare} takes no lr beside relative_step, its default; expected relative_step: false")
        more["relative_step"] = False
    clock = Clock(1 if every is None else every)
    rate, beta, end = _hydra_rate(kind, scheduler, base, steps, clock) if kind else (as_schedule(base), None, None)
    if kind and every is None:
        if "class_path" in tables[1].data or "lightning" in trainer.value("_target_", ""):
            length_of_epoch(f"Lightning steps {kind} once an epoch unless the module says otherwise (then 1)", None)
        notes.append(f"{kind} is read as if it stepped with the optimizer; --every N says otherwise")
    found = update(updates.Settings(more, optimizer), rate, beta)
    found = replace(found, notes=(*found.notes, *notes), outside=(*found.outside, *outside))
    said, clip = trainer.value("max_steps", -1), trainer.value("gradient_clip_val", 0.0)  # -1: as many as it takes
    end = steps if steps is not None else said if said > 0 else end
    if clip and trainer.value("gradient_clip_algorithm", "norm") == "value":
        found, clip = replace(found, clipping=Clipping(clip, "value")), 0.0
    return updates.clipped(found, clip, source=bare + (f" with {kind}" if kind else ""), horizon=end)


def _target(table: _Keys) -> tuple[str, _Keys]:
    """The class that a table names, and the table of its arguments."""
    for name in _NAMES:
        if name in table.data:
            return table.value(name, str), table.table("init_args") if name == "class_path" else table
    return "", table


def _hydra_rate(
    kind: str, table: _Keys, base: float, steps: int | None, clock: Clock
) -> tuple[Schedule, Schedule | None, int | None]:
    """lr_t, beta_t where it moves and the length of the run, of transformers' get_... or torch's classes."""
    getters = {f"get_{getter}": name for name, (getter, _) in TRANSFORMERS.items()}
    if kind in getters:
        name = getters[kind]
        given: dict[str, Any] = {"num_warmup_steps": 0}
        if steps is not None and clock.every == 1:
            given["num_training_steps"] = steps
        for one in table.data.keys() & {*given, "num_training_steps", *TRANSFORMERS[name][1]}:
            given[one] = table.value(one, int) if one.endswith("_steps") else _numeric(table.get(one))
        total = given.get("num_training_steps")
        return transformers_rate(name, base, given, clock), None, total and total * clock.every
    name, s = _torch_settings(kind, table, base)
    try:
        beta = MOMENTA[name](s, clock) if name in MOMENTA and s.cycle_momentum else None
        total = getattr(s, "T_max", steps_of_run(s))
        return closed_form(name, s, clock), beta, total and total * clock.every
    except (GenericAdamError, LookupError, AttributeError, ArithmeticError) as error:
        raise OptimizerError(f"{kind}: {error}; hand over the live one instead") from error


def _torch_settings(kind: str, table: _Keys, base: float) -> Nested:
    """A scheduler of torch's by the arguments of its class, as the attributes that it would have."""
    if kind == "ReduceLROnPlateau":
        raise OptimizerError(f"{kind} depends on the data: there is no sequence to read")
    if kind not in _SCHEDULERS:
        raise OptimizerError(f"the scheduler {kind!r} is none that can be read from a file; hand over the live one")
    s = table.values(_SCHEDULERS[kind])
    for name, value in vars(s).items():
        if type(value) is int and value < 1:
            raise OptimizerError(f"{kind}: {name} is {value}; expected at least 1")
    s.base_lrs, s.replayed = base, None
    match kind:
        case "MultiStepLR":
            s.milestones = Counter(_milestones(table))
        case "OneCycleLR":
            _one_cycle(s, table)
        case "CyclicLR":
            s.total_size = s.step_size_up + table.value("step_size_down", s.step_size_up)
            s.step_ratio, s.base_lrs, s.max_lrs = s.step_size_up / s.total_size, s.base_lr, s.max_lr
            s.base_momentums, s.max_momentums = s.base_momentum, s.max_momentum
        case "SWALR":
            s._anneal_strategy = s.anneal_strategy
        case "SequentialLR" | "ChainedScheduler":
            _compose(kind, s, table)
    return f"torch.{kind}", s


def _one_cycle(s: SimpleNamespace, table: _Keys) -> None:
    by_epochs = table.get("total_steps") is None
    names = ("epochs", "steps_per_epoch") if by_epochs else ("total_steps",)
    s.total_steps = math.prod(table.value(name, int) for name in names)
    s.initial_lr, s._anneal_func_type = s.max_lr / s.div_factor, s.anneal_strategy
    s.min_lr, rise = s.initial_lr / s.final_div_factor, s.pct_start * s.total_steps
    ends = [rise - 1, *([2 * rise - 2] if s.three_phase else []), s.total_steps - 1]
    s._schedule_phases = [{"end_step": end} for end in ends]


def _milestones(table: _Keys) -> list[int]:
    found = _numeric(table.get("milestones", []))
    if not isinstance(found, tuple) or any(type(one) not in {int, float} or one % 1 for one in found):
        raise OptimizerError(f"milestones is {shown(found)}; expected whole numbers")
    return list(map(int, found))


def _compose(kind: str, s: SimpleNamespace, table: _Keys) -> None:
    parts, s._schedulers = table.table("schedulers"), []
    s._milestones = _milestones(table)
    between = len(s._milestones) if kind == "SequentialLR" else len(parts.data) - 1
    if not 1 <= len(parts.data) <= 64 or between != len(parts.data) - 1:
        said = f"{len(parts.data)} schedulers and {len(s._milestones)} milestones"
        raise OptimizerError(f"{kind} has {said}; expected 1 to 64, in a sequence a milestone between each two")
    for part in map(parts.table, parts.data):
        name, own = _target(part)
        inner = name.rpartition(".")[2]
        # Those set the base rate of the ones beside them, or start from the rate that they find.
        if inner in {"SequentialLR", "ChainedScheduler", "OneCycleLR", "CyclicLR", "SWALR"}:
            raise OptimizerError(f"{inner} inside {kind} has no closed form; hand over the live one instead")
        s._schedulers.append(_torch_settings(inner, own, s.base_lrs))
