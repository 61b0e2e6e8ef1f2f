"""The algorithm that a training run's configuration file asks for: DeepSpeed's JSON, Trainer's arguments, YAML.

Four kinds of file are told apart by their keys. Each says which of its keys were used, and a note of the
algorithm names those that were not.

- DeepSpeed: "optimizer": {"type", "params"}, "scheduler": {"type", "params"}, "gradient_clipping";
- Trainer's arguments, and axolotl, which uses their names: "learning_rate", "lr_scheduler_type" or
  "lr_scheduler", "optim" or "optimizer", "max_steps", "warmup_steps", "warmup_ratio", ...;
- torchtitan: tables "optimizer" (name, lr, beta1, beta2, eps, weight_decay), "lr_scheduler" (warmup_steps,
  decay_ratio, decay_type, min_lr_factor), "training" (steps, max_norm);
- Hydra, OmegaConf and Lightning's command line: an "optimizer" with "_target_: torch.optim.AdamW" (or
  "class_path" and "init_args"), and perhaps a "scheduler" or "lr_scheduler" of torch's or of transformers',
  at the top or inside one table; "${name}" is looked up.

A file is data: nothing in it is run, and what is not a configuration is refused in one line.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generic_adam.adapters import shapes, updates
from generic_adam.adapters.clock import Clock, scaled
from generic_adam.adapters.schedulers import FACTORS, RATES
from generic_adam.adapters.trainer import read_training_arguments
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm, Clipping
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Schedule, as_schedule, join, sqrt, t

LARGEST = 2**18
"""A configuration of more bytes than this is none."""

_NAMED = 12  # as many unused keys are named; of more there is the number


class _Keys:
    """A nested mapping that remembers, by dotted names, what was asked of it."""

    def __init__(self, data: Mapping[Any, Any], where: str = "", root: _Keys | None = None) -> None:
        self.data, self.where, self.root = data, where, self if root is None else root
        self.used: dict[str, None] = {} if root is None else root.used

    def get(self, name: str, default: Any = None, depth: int = 8) -> Any:
        """The value of a key, or the default where there is none or it is null; "${a.b}" is looked up."""
        value = self.data.get(name)
        if value is None or (isinstance(value, str) and value == "auto"):
            return default
        if not isinstance(value, Mapping):
            self.used[self.where + name] = None
        elsewhere = re.fullmatch(r"\$\{([\w.]+)\}", value) if isinstance(value, str) and depth else None
        if elsewhere is None:
            return value
        *tables, last = elsewhere[1].split(".")
        table = self.root
        for one in tables:
            table = table.table(one)
        return table.get(last, default, depth - 1)

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number; YAML reads 1e-3 as a text, so texts that are numbers are taken."""
        value = self.get(name, default)
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise OptimizerError(f"{self.where}{name} is {reprlib.repr(value)}; expected a number")
        return number

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number of steps."""
        value = self.number(name, default)
        if value != int(value):
            raise OptimizerError(f"{self.where}{name} is {value!r}; expected a whole number")
        return int(value)

    def text(self, name: str, default: str = "") -> str:
        """A name."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise OptimizerError(f"{self.where}{name} is {reprlib.repr(value)}; expected a name")
        return value

    def table(self, name: str) -> _Keys:
        """A mapping inside; empty where there is none."""
        value = self.data.get(name)
        return _Keys(value if isinstance(value, Mapping) else {}, f"{self.where}{name}.", self.root)

    def settings(self) -> dict[str, Any]:
        """All keys of this table that are no tables, used; texts that are numbers are numbers."""
        found = {str(name): _numeric(self.get(name)) for name in self.data if isinstance(name, str)}
        return {
            name: value
            for name, value in found.items()
            if value is not None and not isinstance(value, Mapping)
        }

    def unused(self) -> list[str]:
        """The keys at the top, and those of tables that were looked into, that nothing was made of."""
        names = [name.rpartition(".")[0] for name in self.used]
        tables = {
            ".".join(name.split(".")[:n]) for name in names if name for n in range(1, name.count(".") + 2)
        }
        found = []
        for path in ("", *sorted(tables)):
            table = self
            for one in path.split(".") if path else ():
                table = table.table(one)
            for key in table.data:
                name = f"{table.where}{key}"
                if name not in self.used and name not in tables:
                    found.append(name)
        return found


def _numeric(value: Any) -> Any:
    """1e-3 is a text in YAML's first version; a list of numbers is a tuple of them."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return (
        tuple(float(one) if isinstance(one, str) else one for one in value)
        if isinstance(value, list)
        else value
    )


def read_config(path: str | Path, *, steps: int | None = None) -> tuple[Algorithm, tuple[str, ...]]:
    """The algorithm of a configuration file, and the keys that were used.

    Args:
        path: a JSON, YAML or TOML file.
        steps: the number of optimizer steps, where the file does not say.

    Returns:
        The algorithm, and the names of the keys that it was made of, nested ones with dots. The keys that were
        not used are in its notes.

    Raises:
        OptimizerError: the file cannot be read, or says nothing of an optimizer that is known.
    """
    file = Path(path)
    keys = _Keys(_load(file))
    try:
        read = next((read for fits, read in _KINDS if fits(keys.data)), None)
        if read is None:
            names = ", ".join(reprlib.repr(name).strip("'") for name in list(keys.data)[:6])
            raise OptimizerError(
                f"no optimizer is named (the keys are {names}); expected DeepSpeed's, Trainer's, torchtitan's "
                "or Hydra's names"
            )
        algorithm = read(keys, steps)
    except (GenericAdamError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise OptimizerError(f"{file.name}: {textwrap.shorten(str(error), 400)}") from error
    notes, unused = algorithm.notes, keys.unused()
    if unused:
        more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
        names = (textwrap.shorten(name, 60) for name in unused[:_NAMED])
        notes = (*notes, f"keys of {file.name} that were not used: {', '.join(names)}{more}")
    source = f"{file.name}: {algorithm.source or algorithm.label}"
    return replace(algorithm, source=source, notes=notes), tuple(keys.used)


def _load(file: Path) -> Mapping[Any, Any]:
    suffix = file.suffix.lower()
    if suffix not in _PARSERS:
        raise OptimizerError(f"{file.name} ends in {suffix!r}; expected .json, .yaml, .yml or .toml")
    try:
        if file.stat().st_size > LARGEST:
            raise OptimizerError(f"{file.name} has more than {LARGEST} bytes; expected a configuration")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptimizerError(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    try:
        data = _PARSERS[suffix](text)
    except (ValueError, RecursionError) as error:
        raise OptimizerError(f"{file.name} cannot be parsed: {textwrap.shorten(str(error), 300)}") from error
    if not isinstance(data, Mapping):
        raise OptimizerError(f"{file.name} holds a {type(data).__name__}; expected keys and values")
    return data


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    with from_extra("cli"):
        import yaml

    class Loader(yaml.SafeLoader):
        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > LARGEST // 4:  # merges of merges multiply
                raise yaml.YAMLError("its merged keys are more than the file has letters for")

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def _update(name: str) -> updates.Update:
    """The update rule that is meant by a name, whatever its case and decoration."""
    bare = name.rpartition(".")[2].lower().replace("_", "").replace("-", "")
    for decoration in ("fused", "torch", "cpu", "deepspeed", "paged", "32bit", "apex", "xla", "hf"):
        bare = bare.replace(decoration, "")
    for known in updates.names():
        if known.lower() == bare:
            return updates.UPDATES[f"torch.{known}"]
    names = ", ".join(updates.names())
    raise OptimizerError(f"the optimizer {name!r} is none that can be read; expected one of {names}")


# DeepSpeed.


_DEEPSPEED: Mapping[str, Callable[[Any, int, Clock], Schedule]] = {
    "WarmupLR": shapes.deepspeed_warmup,
    "WarmupDecayLR": shapes.deepspeed_warmup_decay,
    "WarmupCosineLR": shapes.deepspeed_warmup_cosine,
}


def _is_deepspeed(data: Mapping[str, Any]) -> bool:
    optimizer = data.get("optimizer")
    return isinstance(optimizer, Mapping) and "type" in optimizer


def _deepspeed(keys: _Keys, steps: int | None) -> Algorithm:
    optimizer = keys.table("optimizer")
    name, params = optimizer.text("type"), optimizer.table("params")
    base = params.number("lr", 1e-3)
    scheduler = keys.table("scheduler")
    kind = scheduler.text("type")
    rate, end = _deepspeed_rate(kind, scheduler.table("params"), base) if kind else (as_schedule(base), None)
    settings = params.settings()
    update = _update(name)
    if name.lower() == "adam" and settings.pop("adam_w_mode", True):
        update = updates.read_adamw  # DeepSpeed's Adam decays as AdamW does unless told otherwise
    clip = keys.number("gradient_clipping", 0.0)
    source = f"DeepSpeed, {name}" + (f" with {kind}" if kind else "")
    return _finished(update(settings, rate, None), source, end if steps is None else steps, clip)


def _deepspeed_rate(kind: str, params: _Keys, base: float) -> tuple[Schedule, int | None]:
    """The rate of DeepSpeed's WarmupLR, WarmupDecayLR or WarmupCosineLR with its defaults, and its length."""
    if kind not in _DEEPSPEED:
        raise OptimizerError(
            f"the scheduler {kind!r} is none that can be read; expected WarmupLR, WarmupDecayLR or "
            "WarmupCosineLR"
        )
    total = None if kind == "WarmupLR" else params.whole("total_num_steps")
    ramp = params.text("warmup_type", "log")
    if ramp not in {"log", "linear"}:
        raise OptimizerError(f"warmup_type is {ramp!r}; expected 'log' or 'linear'")
    cosine = kind == "WarmupCosineLR"
    scheduler = SimpleNamespace(
        warmup_num_steps=max(2, params.whole("warmup_num_steps", 1000)),
        warmup_type=ramp,
        total_num_steps=total,
        org_lrs=[base],
        min_lrs=[0.0 if cosine else params.number("warmup_min_lr", 0.0)],
        max_lrs=[base if cosine else params.number("warmup_max_lr", base if kind == "WarmupLR" else 1e-3)],
        warmup_min_ratio=params.number("warmup_min_ratio", 0.0) if cosine else 0.0,
        cos_min_ratio=params.number("cos_min_ratio", 1e-4) if cosine else 0.0,
    )
    return _DEEPSPEED[kind](scheduler, 0, Clock()), total


# Trainer's arguments, and axolotl with the same names.


def _is_trainer(data: Mapping[str, Any]) -> bool:
    return "learning_rate" in data


_TRAINER_DEFAULTS: dict[str, Any] = {
    "max_steps": -1,
    "warmup_steps": 0,
    "warmup_ratio": 0.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
}


def _trainer(keys: _Keys, steps: int | None) -> Algorithm:
    arguments = SimpleNamespace(learning_rate=keys.number("learning_rate"))
    for name, default in _TRAINER_DEFAULTS.items():
        value = keys.number(name, default)
        setattr(arguments, name, int(value) if name == "max_steps" else value)
    arguments.lr_scheduler_type = keys.text("lr_scheduler_type") or keys.text("lr_scheduler", "linear")
    arguments.lr_scheduler_kwargs = keys.table("lr_scheduler_kwargs").settings() or None
    arguments.optim = keys.text("optim") or keys.text("optimizer", "adamw_torch")
    arguments.optim_args = keys.text("optim_args") or None
    return read_training_arguments(arguments, steps=steps)


# torchtitan.


def _is_torchtitan(data: Mapping[str, Any]) -> bool:
    optimizer = data.get("optimizer")
    return (
        isinstance(optimizer, Mapping) and "lr" in optimizer and ("name" in optimizer or "training" in data)
    )


def _torchtitan(keys: _Keys, steps: int | None) -> Algorithm:
    optimizer, training = keys.table("optimizer"), keys.table("training")
    total = steps if steps is not None else training.whole("steps", 10_000)
    base = optimizer.number("lr", 8e-4)
    scheduler = keys.table("lr_scheduler") if "lr_scheduler" in keys.data else training
    rate = scaled(base, _torchtitan_factor(scheduler, total))
    settings = {
        "betas": (optimizer.number("beta1", 0.9), optimizer.number("beta2", 0.95)),
        "eps": optimizer.number("eps", 1e-8),
        "weight_decay": optimizer.number("weight_decay", 0.1),
    }
    name = optimizer.text("name", "AdamW")
    return _finished(
        _update(name)(settings, rate, None), f"torchtitan, {name}", total, training.number("max_norm", 1.0)
    )


def _torchtitan_factor(scheduler: _Keys, total: int) -> Schedule:
    """Linear warm-up to 1, flat, then a decay over the last share of the run to the least factor."""
    warm = min(scheduler.whole("warmup_steps", 200), total)
    share = scheduler.get("decay_ratio")
    decay = total - warm if share is None else round(total * scheduler.number("decay_ratio"))
    decay = min(decay, total - warm)
    low = as_schedule(scheduler.number("min_lr_factor", 0.0))
    kind = scheduler.text("decay_type", "linear")
    flat_until = total + 1 - decay  # one step later than the numbers say: the last rate stays above the least
    progress = (t - flat_until) / max(1, decay)
    shapes: dict[str, Callable[[], Schedule]] = {
        "linear": lambda: 1 - progress,
        "sqrt": lambda: 1 - sqrt(progress),
        "cosine": lambda: half_cosine(t - flat_until, max(1, decay)),
    }
    if kind not in shapes:
        raise OptimizerError(f"decay_type is {kind!r}; expected linear, sqrt or cosine")
    fall = low + (1 - low) * shapes[kind]()
    tail = join(fall, total + 1, low) if decay else as_schedule(1)
    flat = join(1, flat_until + 1, tail)
    return join(t / warm, warm + 1, flat) if warm else flat


# Hydra and OmegaConf.


_OPTIMIZERS: Mapping[str, Mapping[str, float]] = {
    "adamw": {"lr": 1e-3, "weight_decay": 1e-2},
    "nadam": {"lr": 2e-3},
    "adagrad": {"lr": 1e-2},
    "rmsprop": {"lr": 1e-2},
    "adafactor": {"lr": 1e-2},
}
_SCHEDULERS: Mapping[str, Mapping[str, Any]] = {
    "ConstantLR": {"factor": 1 / 3, "total_iters": 5},
    "LinearLR": {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5},
    "ExponentialLR": {"gamma": None},
    "StepLR": {"step_size": None, "gamma": 0.1},
    "MultiStepLR": {"milestones": None, "gamma": 0.1},
    "PolynomialLR": {"total_iters": 5, "power": 1.0},
    "CosineAnnealingLR": {"T_max": None, "eta_min": 0.0},
    "CosineAnnealingWarmRestarts": {"T_0": None, "T_mult": 1, "eta_min": 0.0},
}
"""Torch's defaults, where they are others than the readings'; None for what has to be given."""


def _is_hydra(data: Mapping[Any, Any]) -> bool:
    return _hydra_tables(_Keys(data)) is not None


def _hydra_tables(keys: _Keys) -> tuple[_Keys, _Keys] | None:
    """The optimizer's table and the scheduler's, at the top or inside one table."""
    inside = [keys.table(str(name)) for name, value in keys.data.items() if isinstance(value, Mapping)]
    for place in (keys, *inside):
        for name in ("optimizer", "optim"):
            table = place.table(name)
            if {"_target_", "class_path", "lr"} & set(table.data):
                return table, place.table("scheduler" if "scheduler" in place.data else "lr_scheduler")
    return None


def _hydra(keys: _Keys, steps: int | None) -> Algorithm:
    (name, optimizer), (kind, scheduler) = map(_target, _hydra_tables(keys) or (keys, keys))
    settings = dict(_OPTIMIZERS.get(name.rpartition(".")[2].lower(), {"lr": 1e-3})) | optimizer.settings()
    base = optimizer.number("lr", settings["lr"])
    kind = kind.rpartition(".")[2]
    rate, end = _hydra_rate(kind, scheduler, base, steps) if kind else (as_schedule(base), None)
    source = name.rpartition(".")[2] + (f" with {kind}" if kind else "")
    return _finished(_update(name)(settings, rate, None), source, end if steps is None else steps, 0.0)


def _target(table: _Keys) -> tuple[str, _Keys]:
    """The class that a table names, and the table of its arguments."""
    if "class_path" in table.data:
        return table.text("class_path"), table.table("init_args")
    return table.text("_target_") or table.text("name", "AdamW" if "lr" in table.data else ""), table


def _hydra_rate(kind: str, scheduler: _Keys, base: float, steps: int | None) -> tuple[Schedule, int | None]:
    """Transformers' get_..._schedule_with_warmup, and torch's schedulers by the arguments of their classes."""
    shape = kind.removeprefix("get_").removesuffix("_with_warmup").removesuffix("_schedule")
    if kind.startswith("get_") and shape in shapes.SHAPES:
        total = steps if steps is not None else scheduler.whole("num_training_steps")
        function, defaults = shapes.SHAPES[shape]
        warm = scheduler.whole("num_warmup_steps", 0)
        given = {"num_warmup_steps": warm, "num_training_steps": total, "lr_init": base}
        return scaled(base, function(Clock(), {**defaults, **given})), total
    if kind == "ReduceLROnPlateau":
        raise OptimizerError(f"{kind} depends on the data: there is no sequence to read")
    if kind not in _SCHEDULERS:
        raise OptimizerError(
            f"the scheduler {kind!r} is none that can be read from a file; hand over the live one instead"
        )
    values: dict[str, Any] = {"base_lrs": [base]}
    for name, default in _SCHEDULERS[kind].items():
        if name == "milestones":
            values[name] = Counter(map(int, _numeric(scheduler.get(name, []))))
        else:
            whole = name in {"total_iters", "step_size", "T_max", "T_0", "T_mult"}
            values[name] = (scheduler.whole if whole else scheduler.number)(name, default)
            if whole and values[name] < 1:
                raise OptimizerError(f"{kind}: {name} is {values[name]}; expected at least 1")
    live = SimpleNamespace(**values)
    end = values.get("T_max")
    if f"torch.{kind}" in RATES:
        return RATES[f"torch.{kind}"](live, 0, Clock()) or as_schedule(base), end
    factor = FACTORS[f"torch.{kind}"](live, Clock())
    if factor is None:
        raise OptimizerError(f"{kind} with these settings has no closed form; hand over the live one instead")
    return scaled(base, factor), end


def _finished(algorithm: Algorithm, source: str, horizon: int | None, clip: float) -> Algorithm:
    clipping = Clipping(clip) if clip > 0 and algorithm.clipping is None else algorithm.clipping
    return replace(algorithm, source=source, horizon=horizon, clipping=clipping)


_KINDS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[_Keys, int | None], Algorithm]], ...] = (
    (_is_deepspeed, _deepspeed),
    (_is_trainer, _trainer),
    (_is_torchtitan, _torchtitan),
    (_is_hydra, _hydra),
)
