"""The algorithm that a configuration asks for: Trainer's arguments, an optimizer's block, DeepSpeed's JSON.

Three kinds of file, JSON or YAML, are told apart by their keys:

- Trainer's arguments: "learning_rate", "lr_scheduler_type", "max_steps", ..., and what a "deepspeed" inside says;
- DeepSpeed: "optimizer" and "scheduler" with "type" and "params", "gradient_clipping";
- an optimizer at a constant rate: a table "optimizer", or that table alone, with the class under "name", "type",
  "_target_" or "class_path" (then its settings under "init_args") and torch's names beside it.

A file is data: nothing in it is run. A key that may change the steps and is not read is refused, and so is every other
kind of file: the live optimizer and scheduler say the same (`generic_adam.adapters.read`, ``--from``). Trainer's live
arguments are read by name: transformers is not imported.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.clock import Clock
from generic_adam.adapters.schedulers import closed_form, steps_of_run, transformers_rate
from generic_adam.errors import GenericAdamError, OptimizerError, shown, told_as
from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule

LARGEST = 2**18
"""A configuration of more bytes than this is none."""

_NAMED = 12  # as many unused keys are named; of more there is the number
_EXPECTED = {float: "a number", int: "a whole number", str: "a name", bool: "true or false"}
_CLASS = ("_target_", "class_path", "name", "type")
_PACKAGES = {"torch", "transformers", "timm", "torchtune", "apex", "deepspeed", "bitsandbytes", "bnb", "colossalai"}
_PACKAGES |= {"transformer_engine", "torchao"}
# Tables that say how steps are taken, and numbers that do; then what does not, though it stands there.
_STEPS = re.compile(r"(^|\.)(optim(izer)?|(lr_)?sched(uler)?)(\.|$)")
_NUMBER = re.compile(r"\s*[-+]?[\d._]+(e[-+]?\d+)?\s*", re.IGNORECASE)
_RATE = re.compile(r"(^|[._])(lr|learning_rate|warmup|clip\w*|max_norm|max_grad_norm)(_|$)")
_IDLE = {"_partial_", "_convert_", "_recursive_", "name", "type", "fused", "foreach", "capturable", "differentiable"}
_IDLE |= {"implementation", "legacy_fusion", "set_grad_none", "verbose", "min_8bit_size", "block_wise", "is_paged"}


class _Keys:
    """The settings of a file by dotted name, or those of a table inside; it keeps the names that were asked for."""

    def __init__(self, flat: Mapping[str, Any], where: str = "", used: dict[str, None] | None = None) -> None:
        self.flat, self.where = flat, where
        self.used: dict[str, None] = {} if used is None else used

    def __contains__(self, name: str) -> bool:
        """Return whether there is a setting or a table of this name."""
        return any(f"{key}.".startswith(f"{self.where}{name}.") for key in self.flat)

    def table(self, name: str) -> _Keys:
        """Return a table inside, empty where there is none."""
        return _Keys(self.flat, f"{self.where}{name}.", self.used)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a key, or the default where there is none or it is null."""
        key = self.where + name
        if key not in self.flat:
            return default
        self.used[key], value = None, self.flat[key]
        if value == "auto":
            raise OptimizerError(f"{key} is 'auto', which Trainer fills in; expected its value, or Trainer's arguments")
        return default if value is None else value

    def value(self, name: str, expected: Any) -> Any:
        """Return the value of a key, of the type of the default that is given, or of the type that is.

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
        """Return the values of several keys, by their names."""
        return SimpleNamespace(**{name: self.value(name, one) for name, one in declared.items()})

    def taken(self) -> dict[str, Any]:
        """Return all that is in here, as used."""
        found = {key.removeprefix(self.where): value for key, value in self.flat.items() if key.startswith(self.where)}
        self.used.update(dict.fromkeys(map(self.where.__add__, found)))
        return found

    def unused(self) -> list[str]:
        """Return the names that nothing was made of; raise where one may change the steps."""
        unused = [name for name in self.flat if name not in self.used]
        for name in unused:
            if _matters(name, self.flat[name]):
                said = "may change the steps and cannot be read here; expected a file without it, or the live objects"
                raise OptimizerError(f"{textwrap.shorten(name, 60)} {said} (--from)")
        return unused


def _matters(name: str, value: Any) -> bool:
    """Return whether a key that nothing was made of may change the steps."""
    last = name.rpartition(".")[2]
    if value in (None, False, "", -1, []) or last in _IDLE:
        return False
    # A rate may be a text, as 1e-3 in YAML's first version, or one for each group.
    may_be_rate = value is not True and (isinstance(value, int | float | list) or _NUMBER.fullmatch(str(value)))
    return bool(_STEPS.search(name) or (may_be_rate and _RATE.search(last)))


def read_config(path: str | Path, *, steps: int | None = None) -> tuple[Algorithm, tuple[str, ...]]:
    """Return the algorithm of a configuration file, and the keys that were used.

    Args:
        path: a JSON or YAML file.
        steps: the number of optimizer steps; where the file has one too, its schedule is as long as the file says.

    Returns:
        The algorithm, and the names of the keys that it was made of, nested ones with dots.

    Raises:
        OptimizerError: the file cannot be read, or says something that may change the steps and is not read.
    """
    file = Path(path)
    flat = _load(file)
    keys = _Keys(flat)
    is_block = "optimizer" not in keys and "learning_rate" not in keys and bool({*_CLASS} & {*flat})
    optimizer = keys if is_block else keys.table("optimizer")
    try:
        if "learning_rate" in keys:
            algorithm = _trainer(keys, steps, file.parent)
        elif "type" in optimizer and "lr" not in optimizer:
            algorithm = _deepspeed(keys, optimizer, steps)
        elif is_block or any(name.startswith("optimizer.") for name in flat):
            algorithm = _block(optimizer, steps)
        else:
            names = ", ".join(shown(name).strip("'") for name in list(flat)[:6])
            raise OptimizerError(
                f"no optimizer is named (the keys are {names}); expected DeepSpeed's or Trainer's names"
            )
        unused = keys.unused()
    except Exception as error:
        raise OptimizerError(f"{file.name}: {textwrap.shorten(str(error), 400)}") from error
    more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
    names = ", ".join(textwrap.shorten(name, 60) for name in unused[:_NAMED])
    notes = [f"keys of {file.name} that were not used: {names}{more}"] if unused else []
    source = f"{file.name}: {algorithm.source or algorithm.label}"
    return replace(algorithm, source=source, notes=(*algorithm.notes, *notes)), tuple(keys.used)


def _load(file: Path) -> dict[str, Any]:
    """Return the settings of a file by dotted name."""
    suffix = file.suffix.lower()
    if suffix not in _PARSERS:
        raise OptimizerError(f"{file.name} ends in {suffix!r}; expected .json, .yaml or .yml")
    try:
        if file.exists() and not file.is_file():  # a pipe or a device may never end
            raise OptimizerError(f"{file.name} is no plain file; expected a configuration")
        with file.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise OptimizerError(f"{file.name} has more than {LARGEST} bytes; expected a configuration")
        data = _PARSERS[suffix](raw.decode())
        if not isinstance(data, Mapping):
            raise OptimizerError(f"{file.name} holds a {type(data).__name__}; expected keys and values")
        return _once(_flat(data))
    except OSError as error:
        raise OptimizerError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, OptimizerError):
            raise
        raise OptimizerError(f"{file.name} cannot be parsed: {textwrap.shorten(str(error), 300)}") from error


def _flat(data: Mapping[Any, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a table and those inside it, by dotted name."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{where}{key}.")
        else:
            yield f"{where}{key}", value


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the pairs as a dictionary, where no key comes twice."""
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} comes twice")
        found[key] = value
    return found


def _yaml(text: str) -> Any:
    import yaml  # here, so that other readers start without it

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # aliases of aliases multiply
                raise yaml.YAMLError("it has aliases, which are not looked up")
            return super().compose_node(parent, index)

        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            _once((key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            return node

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".json": partial(json.loads, object_pairs_hook=_once),
    ".yaml": _yaml,
    ".yml": _yaml,
}


def _block(table: _Keys, steps: int | None) -> Algorithm:
    """Return the algorithm of an optimizer's own settings, at a constant rate."""
    key = next((one for one in _CLASS if one in table), None)
    if key is None:
        raise OptimizerError(f"{table.where[:-1]} names no class; expected {', '.join(_CLASS)}")
    name, given = table.value(key, str), table.table("init_args") if key == "class_path" else table
    package = name.partition(".")[0]
    update = updates.by_name(name, package)
    if update.defaults.get("relative_step") and given.value("relative_step", True) and given.get("lr") is not None:
        raise OptimizerError(f"{name} takes no lr beside relative_step, its default; expected relative_step: false")
    rate = given.value("lr", update.defaults.get("lr", 1e-3))
    found = update(updates.Settings({"largest_lr": rate}, given), as_schedule(rate))
    if "." in name and package not in _PACKAGES:  # a file has only the name of a class, which may do anything
        said = f"{name} may do other things than what torch or transformers has of that name"
        found = replace(found, outside=(*found.outside, said))
    return replace(found, source=name.rpartition(".")[2], horizon=steps)


_DEEPSPEED: dict[str, dict[str, Any]] = {
    "WarmupLR": {"warmup_min_lr": 0.0},
    "WarmupDecayLR": {"warmup_min_lr": 0.0, "total_num_steps": int},
    "WarmupCosineLR": {"warmup_min_ratio": 0.0, "cos_min_ratio": 1e-4, "total_num_steps": int},
}


def _deepspeed(
    keys: _Keys, optimizer: _Keys, steps: int | None, shape: Callable[[float], Schedule] = as_schedule
) -> Algorithm:
    """Return the algorithm of DeepSpeed's own scheduler, or where it has none of another's shape over the base rate.

    Its Adam decays as AdamW does unless told otherwise, and by torch's 0.01 only where the class is torch's; its AdamW
    does so whatever it is told.
    """
    scheduler, params = keys.table("scheduler"), optimizer.table("params")
    name = optimizer.value("type", str)
    kind = scheduler.value("type", ("", *_DEEPSPEED))
    update, settings = updates.by_name(name), updates.Settings(params)
    if name.lower() in {"adam", "adamw"}:
        mode = params.value("adam_w_mode", True) or name.lower() == "adamw"
        update = updates.by_name(("AdamW" if mode else "Adam") if params.value("torch_adam", False) else "FusedAdam")
        settings = updates.Settings({"adam_w_mode": mode}, params)
    base, source = params.value("lr", update.defaults.get("lr", 1e-3)), f"DeepSpeed, {name}"
    rate = shape(base)
    if kind:
        given = scheduler.table("params")
        own = {"warmup_num_steps": 1000, "warmup_type": ("log", "linear"), **_DEEPSPEED[kind]}
        if kind != "WarmupCosineLR":  # null is the optimizer's rate, and so is none at all for one of the two
            own["warmup_max_lr"] = base if kind == "WarmupLR" or "warmup_max_lr" in given else 1e-3
        s = given.values(own)
        s.warmup_num_steps, s.org_lrs = max(2, s.warmup_num_steps), base
        s.min_lrs, s.max_lrs = getattr(s, "warmup_min_lr", 0.0), getattr(s, "warmup_max_lr", base)
        rate, source = closed_form(f"deepspeed.{kind}", s, Clock()), f"{source} with {kind}"
        steps = steps_of_run(s) if steps is None else steps
    return updates.clipped(update(settings, rate), keys.value("gradient_clipping", 0.0), source=source, horizon=steps)


_TRAINER: dict[str, Any] = {"learning_rate": float, "max_steps": -1, "warmup_steps": 0.0, "warmup_ratio": 0.0}
_TRAINER |= {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "optim": "adamw_torch", "optim_args": ""}
_TRAINER |= {"weight_decay": 0.0, "max_grad_norm": 1.0, "lr_scheduler_type": "linear"}


def _trainer(keys: _Keys, steps: int | None, folder: Path) -> Algorithm:
    """Return the algorithm of Trainer's arguments; axolotl's look like them and have other defaults."""
    if strange := keys.flat.keys() & {"base_model", "micro_batch_size"}:
        said = "is none of Trainer's arguments; expected those, or the live objects (--from)"
        raise OptimizerError(f"{min(strange)} {said}")
    arguments = keys.values(_TRAINER)
    if keys.flat.get("max_grad_norm", 1) is None:
        arguments.max_grad_norm = 0.0
    # Arguments of a scheduler are a table, or JSON's text.
    arguments.lr_scheduler_kwargs = keys.table("lr_scheduler_kwargs").taken() or keys.get("lr_scheduler_kwargs", {})
    beside = keys.flat.get("deepspeed")
    if isinstance(beside, str) and (folder / beside).is_file():
        keys.used["deepspeed"] = None
        arguments.deepspeed = folder / beside
    else:
        arguments.deepspeed = keys.table("deepspeed").taken()
    return read_trainer(arguments, steps=steps)


def read_trainer(arguments: Any, *, steps: int | None = None) -> Algorithm:
    """Return the algorithm that Trainer runs with transformers.TrainingArguments, or anything with its attributes.

    DeepSpeed's optimizer, scheduler and clipping replace Trainer's; its "auto" is what the arguments say.

    Args:
        arguments: what Trainer is given.
        steps: the number of optimizer steps where `max_steps` is not set (it then follows from the data); where it is,
            it says how long the schedule is, and `steps` how much of it is run.
    """
    with told_as(OptimizerError, f"{type(arguments).__name__} cannot be read:"):
        total, data = _run_length(arguments.max_steps, steps), getattr(arguments, "deepspeed", None)
        if not data:
            return _of_arguments(arguments, total, steps, getattr(arguments, "max_grad_norm", None))
        warm, lr = _warm_up_steps(arguments, total), float(arguments.learning_rate)
        auto = {"lr": lr, "betas": [arguments.adam_beta1, arguments.adam_beta2], "eps": arguments.adam_epsilon}
        auto |= {"weight_decay": arguments.weight_decay, "gradient_clipping": arguments.max_grad_norm}
        auto |= {"warmup_num_steps": max(1, warm), "total_num_steps": total, "warmup_max_lr": lr}
        flat = _once(_flat(data)) if isinstance(data, Mapping) else _load(Path(data))
        for key, said in flat.items():
            table, _, name = key.rpartition(".")
            if said == "auto":
                flat[key] = (auto | {"warmup_min_lr": 0}).get(name, said)
            elif (
                name in auto
                and table in {"", "optimizer.params", "scheduler.params"}
                and said not in (None, auto[name])
            ):
                raise OptimizerError(f"deepspeed: {key} is {shown(said)}, and the arguments {auto[name]}")
        keys = _Keys(flat)
        if "optimizer" in keys:
            found = _deepspeed(keys, keys.table("optimizer"), steps or total, partial(_rate_of, arguments, total))
        elif "scheduler" in keys:
            said = "its scheduler drives Trainer's optimizer; expected one beside it, or neither"
            raise OptimizerError(f"deepspeed: {said}")
        else:
            found = _of_arguments(arguments, total, steps, keys.value("gradient_clipping", 0.0))
        keys.unused()
        return found


def _of_arguments(arguments: Any, total: int, steps: int | None, clip: Any) -> Algorithm:
    """Return the algorithm of Trainer's own optimizer, with gradients clipped to a norm."""
    optimizer, rate = _text(arguments.optim), _rate_of(arguments, total, float(arguments.learning_rate))
    name = optimizer.lower()
    update = updates.by_name(name, "transformers" if name == "adafactor" else "torch")
    settings: dict[str, Any] = {"weight_decay": arguments.weight_decay}
    if "adam" in name:
        settings["betas"] = (arguments.adam_beta1, arguments.adam_beta2)
        settings["eps"] = arguments.adam_epsilon
    elif name == "adafactor":
        settings |= {"scale_parameter": False, "relative_step": False}  # whatever optim_args says
    # "name=value, name=value", of which Trainer passes some on.
    text = str(getattr(arguments, "optim_args", None) or "").replace(" ", "")
    given, taken = [part.split("=") for part in text.split(",") if text], _TAKEN.get(name.partition("_")[0], ())
    if any(len(pair) != 2 for pair in given):
        raise OptimizerError(f"optim_args is {shown(text)}; expected name=value, name=value")
    settings |= {one: value.lower() in _TRUE if one in _FLAGS else value for one, value in given if one in taken}
    source = f"Trainer, {optimizer} with {_text(arguments.lr_scheduler_type)}"
    try:
        found = updates.clipped(update(settings, rate), float(clip or 0), source=source, horizon=steps or total)
    except GenericAdamError as error:
        raise OptimizerError(f"{source}: {error}") from error
    ignored = ", ".join(one for one, _ in given if one not in taken)
    said = f"optim_args that Trainer does not pass on to {optimizer}: {ignored}"
    return replace(found, notes=(*found.notes, said)) if ignored else found


# What Trainer passes on of `optim_args`; its weight_decay is overridden in every parameter group.
_TAKEN = {
    "sgd": ("momentum", "dampening", "nesterov"),
    "adagrad": ("lr_decay", "eps"),
    "rmsprop": ("momentum", "alpha", "eps", "centered"),
}
_FLAGS, _TRUE = ("nesterov", "centered"), ("true", "1", "yes")


def _text(said: Any) -> str:
    """Return a name, which may be a member of an enumeration."""
    return str(getattr(said, "value", said))


def _run_length(said: Any, steps: int | None) -> int:
    """Return `max_steps`, or the number that was given beside the arguments where it is not above 0."""
    total = steps if steps is not None and (said is None or said < 1) else said
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        said = f"the number of steps is not known (max_steps is {shown(total)})"
        raise OptimizerError(f"{said}; expected max_steps > 0, --steps T, or --epochs E --examples N --batch B")
    return total


def _warm_up_steps(arguments: Any, total: int) -> int:
    """Return Trainer's count: a number below 1 is a share of all steps, and so is warmup_ratio."""
    steps = float(arguments.warmup_steps or 0)
    if steps < 0:
        raise OptimizerError(f"warmup_steps is {steps:g}; expected a number of at least 0")
    share = steps or float(getattr(arguments, "warmup_ratio", 0) or 0)
    return int(steps) if steps >= 1 else math.ceil(total * share)


def _rate_of(arguments: Any, total: int, base: float) -> Schedule:
    """Return lr_t over a run of so many steps, from a base rate."""
    given = getattr(arguments, "lr_scheduler_kwargs", None) or {}
    if isinstance(given, str):
        with told_as(OptimizerError, "lr_scheduler_kwargs is no JSON:"):
            given = json.loads(given)
    if not isinstance(given, Mapping):
        raise OptimizerError(f"expected lr_scheduler_kwargs as a dictionary, got {type(given).__name__}")
    run = {"num_warmup_steps": _warm_up_steps(arguments, total), "num_training_steps": total}
    return transformers_rate(_text(arguments.lr_scheduler_type), base, run | dict(given))
