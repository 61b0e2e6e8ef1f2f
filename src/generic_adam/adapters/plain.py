"""The algorithm that a configuration file asks for: an optimizer's block, Trainer's arguments, DeepSpeed's JSON.

Three kinds of file, JSON or YAML, are told apart by their keys:

- Trainer's arguments: "learning_rate", "lr_scheduler_type", "max_steps", ..., and what a "deepspeed" inside says;
- DeepSpeed: "optimizer" and "scheduler" with "type" and "params", "gradient_clipping";
- an optimizer at a constant rate: a table "optimizer", or that table alone, with the class under "name", "type",
  "_target_" or "class_path" (then its settings under "init_args") and torch's names beside it.

A file is data: nothing in it is run. A key that may change the steps and is not read is refused, and so is every other
kind of file: the live optimizer and scheduler say the same (`generic_adam.adapters.read`, ``--from``).
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.clock import Clock
from generic_adam.adapters.schedulers import closed_form, steps_of_run
from generic_adam.adapters.trainer import rate_of, read_training_arguments, run_length, warm_up_steps
from generic_adam.errors import OptimizerError, shown
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


class _Table:
    """A table of a file, which keeps the dotted names that were asked of it; `auto` is what that word stands for."""

    def __init__(self, data: Mapping[Any, Any], where: str = "", outer: _Table | None = None, **auto: Any) -> None:
        self.data, self.where = data, where
        self.used: dict[str, None] = {} if outer is None else outer.used
        self.auto = auto if outer is None else outer.auto

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a key, or the default where there is none or it is null."""
        value = self.data.get(name)
        if name in self.data and not isinstance(value, Mapping):
            self.used[self.where + name] = None
        if value == "auto" and name not in self.auto:
            said = "is 'auto', which Trainer fills in; expected its value, or Trainer's arguments"
            raise OptimizerError(f"{self.where}{name} {said}")
        value = self.auto[name] if value == "auto" else value
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

    def table(self, name: str) -> _Table:
        """Return a table inside, empty where there is none."""
        value = self.data.get(name)
        return _Table(value if isinstance(value, Mapping) else {}, f"{self.where}{name}.", self)

    def unused(self) -> Iterator[tuple[str, Any]]:
        """Yield the keys, here and in tables that were looked into, that nothing was made of."""
        for key, value in self.data.items():
            name = f"{self.where}{key}"
            if any(used.startswith(f"{name}.") for used in self.used):
                yield from self.table(key).unused()
            elif name not in self.used:
                yield name, value

    def checked(self) -> list[str]:
        """Return the names of unused keys, of which none may change the steps."""
        unused = dict(self.unused())
        if strange := [name for name, value in unused.items() if _matters(name, value)]:
            said = "may change the steps and cannot be read here; expected a file without it, or the live objects"
            raise OptimizerError(f"{textwrap.shorten(strange[0], 60)} {said} (--from)")
        return list(unused)


def _matters(name: str, value: Any) -> bool:
    """Return whether a key that nothing was made of may change the steps."""
    last = name.rpartition(".")[2]
    if value in (None, False, "", -1, {}, []) or last in _IDLE:
        return False
    if isinstance(value, Mapping):
        return any(_matters(f"{name}.{key}", one) for key, one in value.items())
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
    data = _load(file)
    inside = isinstance(data.get("optimizer"), Mapping)
    is_block = not inside and "learning_rate" not in data and bool({*_CLASS} & {*data})
    keys = _Table({"optimizer": data} if is_block else data)
    optimizer = keys.table("optimizer").data
    try:
        if "learning_rate" in data:
            algorithm = _trainer(keys, steps, file.parent)
        elif "type" in optimizer and "lr" not in optimizer:
            algorithm = _deepspeed(keys, steps)
        elif optimizer:
            algorithm = _block(keys.table("optimizer"), steps)
        else:
            names = ", ".join(shown(name).strip("'") for name in list(data)[:6])
            raise OptimizerError(
                f"no optimizer is named (the keys are {names}); expected DeepSpeed's or Trainer's names"
            )
        unused = keys.checked()
    except Exception as error:
        raise OptimizerError(f"{file.name}: {textwrap.shorten(str(error), 400)}") from error
    more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
    names = ", ".join(textwrap.shorten(name, 60) for name in unused[:_NAMED])
    notes = [f"keys of {file.name} that were not used: {names}{more}"] if unused else []
    used = (name.removeprefix("optimizer.") if is_block else name for name in keys.used)
    source = f"{file.name}: {algorithm.source or algorithm.label}"
    return replace(algorithm, source=source, notes=(*algorithm.notes, *notes)), tuple(used)


def _load(file: Path) -> Mapping[Any, Any]:
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
    except OSError as error:
        raise OptimizerError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise OptimizerError(f"{file.name} cannot be parsed: {textwrap.shorten(str(error), 300)}") from error
    if not isinstance(data, Mapping):
        raise OptimizerError(f"{file.name} holds a {type(data).__name__}; expected keys and values")
    return data


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the pairs as a dictionary, where no key comes twice."""
    given = list(pairs)
    if twice := [key for key, times in Counter(key for key, _ in given).items() if times > 1]:
        raise ValueError(f"the key {shown(twice[0])} comes twice")
    return dict(given)


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


def _block(table: _Table, steps: int | None) -> Algorithm:
    """Return the algorithm of an optimizer's own settings, at a constant rate."""
    key = next((one for one in _CLASS if one in table.data), None)
    if key is None:
        raise OptimizerError(f"{table.where[:-1]} names no class; expected {', '.join(_CLASS)}")
    name, given = table.value(key, str), table.table("init_args") if key == "class_path" else table
    package = name.partition(".")[0]
    update = updates.by_name(name, package)
    more: dict[str, Any] = {"largest_lr": given.value("lr", update.defaults.get("lr", 1e-3))}
    if update.defaults.get("relative_step") and given.value("relative_step", True) and given.get("lr") is not None:
        if package != "timm":  # which takes a rate for a no; transformers refuses
            raise OptimizerError(f"{name} takes no lr beside relative_step, its default; expected relative_step: false")
        more["relative_step"] = False
    found = update(updates.Settings(more, given), as_schedule(more["largest_lr"]))
    if "." in name and package not in _PACKAGES:  # a file has only the name of a class, which may do anything
        said = f"{name} may do other things than what torch or transformers has of that name"
        found = replace(found, outside=(*found.outside, said))
    return replace(found, source=name.rpartition(".")[2], horizon=steps)


_DEEPSPEED: dict[str, dict[str, Any]] = {
    "WarmupLR": {"warmup_min_lr": 0.0},
    "WarmupDecayLR": {"warmup_min_lr": 0.0, "total_num_steps": int},
    "WarmupCosineLR": {"warmup_min_ratio": 0.0, "cos_min_ratio": 1e-4, "total_num_steps": int},
}


def _deepspeed(keys: _Table, steps: int | None, shape: Callable[[float], Schedule] = as_schedule) -> Algorithm:
    """Return the algorithm of DeepSpeed's own scheduler, or where it has none of another's shape over the base rate.

    Its Adam decays as AdamW does unless told otherwise, and by torch's 0.01 only where the class is torch's; its AdamW
    does so whatever it is told.
    """
    optimizer, scheduler = keys.table("optimizer"), keys.table("scheduler")
    name, params = optimizer.value("type", str), optimizer.table("params")
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
            own["warmup_max_lr"] = base if kind == "WarmupLR" or "warmup_max_lr" in given.data else 1e-3
        s = given.values(own)
        s.warmup_num_steps, s.org_lrs = max(2, s.warmup_num_steps), base
        s.min_lrs, s.max_lrs = getattr(s, "warmup_min_lr", 0.0), getattr(s, "warmup_max_lr", base)
        rate, source = closed_form(f"deepspeed.{kind}", s, Clock()), f"{source} with {kind}"
        steps = steps_of_run(s) if steps is None else steps
    return updates.clipped(update(settings, rate), keys.value("gradient_clipping", 0.0), source=source, horizon=steps)


_TRAINER: dict[str, Any] = {"learning_rate": float, "max_steps": -1, "warmup_steps": 0.0, "warmup_ratio": 0.0}
_TRAINER |= {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "optim": "adamw_torch", "optim_args": ""}
_TRAINER |= {"weight_decay": 0.0, "max_grad_norm": 1.0, "lr_scheduler_type": "linear"}


def _trainer(keys: _Table, steps: int | None, folder: Path) -> Algorithm:
    """Return the algorithm of Trainer's arguments; axolotl's look like them and have other defaults."""
    if strange := keys.data.keys() & {"base_model", "micro_batch_size"}:
        said = "is none of Trainer's arguments; expected those, or the live objects (--from)"
        raise OptimizerError(f"{min(strange)} {said}")
    arguments = keys.values(_TRAINER)
    if keys.data.get("max_grad_norm", 1) is None:
        arguments.max_grad_norm = 0.0
    kwargs, given = keys.get("lr_scheduler_kwargs", {}), keys.table("lr_scheduler_kwargs")  # or JSON's text
    arguments.lr_scheduler_kwargs = {one: given.get(one) for one in given.data} if given.data else kwargs
    beside = keys.data.get("deepspeed")
    if isinstance(beside, Mapping) or (isinstance(beside, str) and (folder / beside).is_file()):
        keys.used["deepspeed"] = None
        arguments.deepspeed = beside if isinstance(beside, Mapping) else folder / beside
    return read_trainer(arguments, steps=steps)


def read_trainer(arguments: Any, *, steps: int | None = None) -> Algorithm:
    """Return the algorithm of Trainer's arguments; DeepSpeed's optimizer, scheduler and clipping replace Trainer's.

    Its "auto" is what the arguments say.
    """
    data = getattr(arguments, "deepspeed", None)
    if not data:
        return read_training_arguments(arguments, steps=steps)
    total, lr = run_length(arguments.max_steps, steps), arguments.learning_rate
    auto = {"lr": lr, "betas": [arguments.adam_beta1, arguments.adam_beta2], "eps": arguments.adam_epsilon}
    auto |= {"weight_decay": arguments.weight_decay, "gradient_clipping": arguments.max_grad_norm}
    auto |= {"warmup_num_steps": max(1, warm_up_steps(arguments, total)), "total_num_steps": total, "warmup_max_lr": lr}
    keys = _Table(data if isinstance(data, Mapping) else _load(Path(data)), **auto, warmup_min_lr=0)
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
    keys.checked()
    return found
