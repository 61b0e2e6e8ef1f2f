"""The algorithm that a training run's configuration file asks for: DeepSpeed's JSON, Trainer's arguments, YAML.

Four kinds of file are told apart by their keys. Each says which of its keys were used; what the others mean for
the run is not looked at.

- DeepSpeed: "optimizer": {"type", "params"}, "scheduler": {"type", "params"}, "gradient_clipping";
- Trainer's arguments, and axolotl, which uses their names: "learning_rate", "lr_scheduler_type" or
  "lr_scheduler", "optim" or "optimizer", "max_steps", "warmup_steps", "warmup_ratio", ...;
- torchtitan: tables "optimizer" (name, lr, beta1, beta2, eps, weight_decay), "lr_scheduler" (warmup_steps,
  decay_ratio, decay_type, min_lr_factor), "training" (steps, max_norm);
- Hydra and OmegaConf: an "optimizer" with "_target_: torch.optim.AdamW", and perhaps a "scheduler" or
  "lr_scheduler" with a "_target_" of torch's or of transformers'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.clock import Clock, scaled
from generic_adam.adapters.trainer import read_training_arguments
from generic_adam.adapters.warmup_shapes import SHAPES
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm, Clipping
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Schedule, as_schedule, join, log, sqrt, t

LARGEST = 10 * 2**20
"""A configuration of more bytes than this is none."""


class _Keys:
    """A nested mapping that remembers, by dotted names, what was asked of it."""

    def __init__(self, data: Mapping[str, Any], where: str = "", used: dict[str, None] | None = None) -> None:
        self.data, self.where = data, where
        self.used: dict[str, None] = {} if used is None else used

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key, or the default where there is none or it is null."""
        value = self.data.get(name)
        if value is None or (isinstance(value, str) and value == "auto"):
            return default
        if not isinstance(value, Mapping):
            self.used[self.where + name] = None
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number; YAML reads 1e-3 as a text, so texts that are numbers are taken."""
        value = self.get(name, default)
        try:
            if isinstance(value, bool):
                raise TypeError
            return float(value)
        except (TypeError, ValueError):
            raise OptimizerError(f"{self.where}{name} is {value!r}; expected a number") from None

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number of steps."""
        value = self.number(name, default)
        if value != int(value):
            raise OptimizerError(f"{self.where}{name} is {value!r}; expected a whole number")
        return int(value)

    def table(self, name: str) -> _Keys:
        """A mapping inside; empty where there is none."""
        value = self.data.get(name)
        return _Keys(value if isinstance(value, Mapping) else {}, f"{self.where}{name}.", self.used)

    def settings(self) -> dict[str, Any]:
        """All keys of this table that are no tables, used."""
        found = {name: self.get(name) for name in self.data}
        return {name: value for name, value in found.items() if value is not None}


def read_config(path: str | Path, *, steps: int | None = None) -> tuple[Algorithm, tuple[str, ...]]:
    """The algorithm of a configuration file, and the keys that were used.

    Args:
        path: a JSON, YAML or TOML file.
        steps: the number of optimizer steps, where the file does not say.

    Returns:
        The algorithm, and the names of the keys that it was made of, nested ones with dots.

    Raises:
        OptimizerError: the file cannot be read, or says nothing of an optimizer that is known.
    """
    file = Path(path)
    keys = _Keys(_load(file))
    try:
        read = next((read for fits, read in _KINDS if fits(keys.data)), None)
        if read is None:
            names = ", ".join(map(str, list(keys.data)[:6]))
            raise OptimizerError(
                f"no optimizer is named (the keys are {names}); expected DeepSpeed's, Trainer's, torchtitan's "
                "or Hydra's names"
            )
        algorithm = read(keys, steps)
    except GenericAdamError as error:
        raise OptimizerError(f"{file.name}: {error}") from error
    return replace(algorithm, source=f"{file.name}: {algorithm.source or algorithm.label}"), tuple(keys.used)


def _load(file: Path) -> Mapping[str, Any]:
    try:
        if file.stat().st_size > LARGEST:
            raise OptimizerError(f"{file.name} has more than {LARGEST} bytes; expected a configuration")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptimizerError(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    suffix = file.suffix.lower()
    try:
        if suffix == ".json":
            data = json.loads(text)
        elif suffix == ".toml":
            import tomllib

            data = tomllib.loads(text)
        elif suffix in {".yaml", ".yml"}:
            with from_extra("cli"):
                import yaml
            data = yaml.safe_load(text)
        else:
            raise OptimizerError(f"{file.name} ends in {suffix!r}; expected .json, .yaml, .yml or .toml")
    except OptimizerError:
        raise
    except (ValueError, RecursionError) as error:
        raise OptimizerError(f"{file.name} cannot be parsed: {' '.join(str(error).split())}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        raise OptimizerError(f"{file.name} cannot be parsed: {' '.join(str(error).split())}") from error
    if not isinstance(data, Mapping):
        raise OptimizerError(f"{file.name} holds a {type(data).__name__}; expected keys and values")
    return data


def _update(name: str) -> updates.Update:
    """The update rule that is meant by a name, whatever its case and decoration."""
    bare = name.rpartition(".")[2].lower().replace("_", "").replace("-", "")
    for decoration in ("fused", "torch", "cpu", "deepspeed", "paged", "32bit", "apex", "xla", "hf"):
        bare = bare.replace(decoration, "")
    for known, update in updates.UPDATES.items():
        if known.lower() == bare:
            return update
    names = ", ".join(updates.UPDATES)
    raise OptimizerError(f"the optimizer {name!r} is none that can be read; expected one of {names}")


# DeepSpeed.


def _is_deepspeed(data: Mapping[str, Any]) -> bool:
    optimizer = data.get("optimizer")
    return isinstance(optimizer, Mapping) and "type" in optimizer


def _deepspeed(keys: _Keys, steps: int | None) -> Algorithm:
    optimizer = keys.table("optimizer")
    name, params = str(optimizer.get("type")), optimizer.table("params")
    base = params.number("lr", 1e-3)
    scheduler = keys.table("scheduler")
    kind = scheduler.get("type")
    horizon = steps
    if kind is None:
        rate = as_schedule(base)
    else:
        rate, end = _deepspeed_rate(str(kind), scheduler.table("params"), base)
        horizon = steps if steps is not None else end
    settings = params.settings()
    update = _update(name)
    if name.lower() == "adam" and settings.pop("adam_w_mode", True):
        update = updates.read_adamw  # DeepSpeed's Adam decays as AdamW does unless told otherwise
    algorithm = _made(update, settings, rate)
    clip = keys.number("gradient_clipping", 0.0)
    source = f"DeepSpeed, {name}" + (f" with {kind}" if kind is not None else "")
    return _finished(algorithm, source, horizon, clip)


def _deepspeed_rate(kind: str, params: _Keys, base: float) -> tuple[Schedule, int | None]:
    """DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR.

    Their count starts at -1, so that it is t - 2 at step t, and the first two steps have the least rate.
    """
    warm = max(2, params.whole("warmup_num_steps", 1000))
    share = _warm_up_share(str(params.get("warmup_type", "log")), warm)
    if kind == "WarmupCosineLR":
        total = params.whole("total_num_steps")
        low, floor = params.number("warmup_min_ratio", 0.0), params.number("cos_min_ratio", 1e-4)
        rise = join(0, 2, low + (1 - as_schedule(low)) * share)
        fall = floor + (1 - as_schedule(floor)) * half_cosine(t - (warm + 1), max(1, total - warm))
        return scaled(base, join(rise, warm + 2, join(fall, total + 1, floor))), total
    if kind not in {"WarmupLR", "WarmupDecayLR"}:
        raise OptimizerError(
            f"the scheduler {kind!r} is none that can be read; expected WarmupLR, WarmupDecayLR or "
            "WarmupCosineLR"
        )
    low = params.number("warmup_min_lr", 0.0)
    high = params.number("warmup_max_lr", base if kind == "WarmupLR" else 1e-3)
    delta = as_schedule(high) - low
    rise = join(low, 2, low + delta * share)
    if kind == "WarmupLR":
        return join(rise, warm + 2, high), None
    total = params.whole("total_num_steps")
    line = low + delta * (total + 2 - t) / max(1, total - warm)
    return join(rise, warm + 2, join(line, total + 2, low)), total


def _warm_up_share(kind: str, warm: int) -> Schedule:
    """The share of the warm-up that is done after t - 2 steps of it: a logarithm, or a line."""
    if kind == "log":
        return log(t - 1) / log(as_schedule(warm))
    if kind == "linear":
        return (t - 2) / warm
    raise OptimizerError(f"warmup_type is {kind!r}; expected 'log' or 'linear'")


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
    kind = keys.get("lr_scheduler_type") or keys.get("lr_scheduler") or "linear"
    arguments.lr_scheduler_type = str(kind)
    arguments.lr_scheduler_kwargs = dict(keys.table("lr_scheduler_kwargs").settings()) or None
    optimizer = str(keys.get("optim") or keys.get("optimizer") or "adamw_torch")
    arguments.optim = optimizer
    arguments.optim_args = keys.get("optim_args")
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
    name = str(optimizer.get("name", "AdamW"))
    algorithm = _made(_update(name), settings, rate)
    return _finished(algorithm, f"torchtitan, {name}", total, training.number("max_norm", 1.0))


def _torchtitan_factor(scheduler: _Keys, total: int) -> Schedule:
    """Linear warm-up to 1, flat, then a decay over the last share of the run to the least factor."""
    warm = min(scheduler.whole("warmup_steps", 200), total)
    share = scheduler.get("decay_ratio")
    decay = total - warm if share is None else round(total * scheduler.number("decay_ratio"))
    decay = min(decay, total - warm)
    low = as_schedule(scheduler.number("min_lr_factor", 0.0))
    kind = str(scheduler.get("decay_type", "linear"))
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


def _is_hydra(data: Mapping[str, Any]) -> bool:
    optimizer = data.get("optimizer") or data.get("optim")
    return isinstance(optimizer, Mapping) and ("_target_" in optimizer or "lr" in optimizer)


def _hydra(keys: _Keys, steps: int | None) -> Algorithm:
    optimizer = keys.table("optimizer" if isinstance(keys.data.get("optimizer"), Mapping) else "optim")
    name = str(optimizer.get("_target_") or optimizer.get("name") or "AdamW")
    base = optimizer.number("lr")
    settings = {k: v for k, v in optimizer.settings().items() if not k.startswith("_")}
    where = next(
        (one for one in ("scheduler", "lr_scheduler") if isinstance(keys.data.get(one), Mapping)), None
    )
    rate, horizon, kind = as_schedule(base), steps, None
    if where is not None:
        scheduler = keys.table(where)
        kind = str(scheduler.get("_target_") or scheduler.get("name")).rpartition(".")[2]
        rate, end = _hydra_rate(kind, scheduler, base, steps)
        horizon = steps if steps is not None else end
    algorithm = _made(_update(name), settings, rate)
    source = name.rpartition(".")[2] + (f" with {kind}" if kind else "")
    return _finished(algorithm, source, horizon, 0.0)


def _hydra_rate(kind: str, scheduler: _Keys, base: float, steps: int | None) -> tuple[Schedule, int | None]:
    """transformers' get_..._schedule_with_warmup, and torch's CosineAnnealingLR and ExponentialLR."""
    shape = kind.removeprefix("get_").removesuffix("_with_warmup").removesuffix("_schedule")
    if kind.startswith("get_") and shape in SHAPES:
        total = steps if steps is not None else scheduler.whole("num_training_steps")
        function, defaults = SHAPES[shape]
        warm = scheduler.whole("num_warmup_steps", 0)
        given = {"num_warmup_steps": warm, "num_training_steps": total, "lr_init": base}
        return scaled(base, function(Clock(), {**defaults, **given})), total
    if kind == "CosineAnnealingLR":
        length, low = scheduler.whole("T_max"), scheduler.number("eta_min", 0.0)
        fall = low + (as_schedule(base) - low) * half_cosine(t - 1, length)
        return join(fall, length + 1, as_schedule(low)), length
    if kind == "ExponentialLR":
        return base * as_schedule(scheduler.number("gamma")) ** (t - 1), None
    raise OptimizerError(
        f"the scheduler {kind!r} is none that can be read from a file; hand over the live one instead"
    )


def _made(update: updates.Update, settings: Mapping[str, Any], rate: Schedule) -> Algorithm:
    numbers = {name: _numeric(value) for name, value in settings.items()}
    return update(numbers, rate, None)


def _numeric(value: Any) -> Any:
    """1e-3 is a text in YAML's first version; lists are tuples of numbers."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return tuple(map(_numeric, value)) if isinstance(value, list) else value


def _finished(algorithm: Algorithm, source: str, horizon: int | None, clip: float) -> Algorithm:
    clipping = Clipping(clip) if clip > 0 and algorithm.clipping is None else algorithm.clipping
    return replace(algorithm, source=source, horizon=horizon, clipping=clipping)


_KINDS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[_Keys, int | None], Algorithm]], ...] = (
    (_is_deepspeed, _deepspeed),
    (_is_trainer, _trainer),
    (_is_torchtitan, _torchtitan),
    (_is_hydra, _hydra),
)
