"""The subject of a command: options that people have in hand, a method or a recipe by name, sequences, a file or code.

``check``, ``bound`` and ``advise`` share these options; :func:`with_subject` adds them to a command, which
receives an `Algorithm` and what is taken for granted. Options are declared as rows; :func:`declared` makes of
them what typer reads.
"""

import contextlib
import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from generic_adam.errors import MethodError
from generic_adam.setting import Setting, kinds

if TYPE_CHECKING:
    from generic_adam.answers.suspicion import Suspicion
    from generic_adam.methods import Algorithm
    from generic_adam.schedules import Schedule

_SHAPES = ("constant", "cosine", "linear", "inverse-sqrt", "wsd", "1-sqrt")  # `shapes.DECAYS`, imported late
_OF_THE_RUN = {"horizon", "epochs", "examples", "batch"}
_MULTIPLES = {"k": 1_000, "m": 1_000_000}


def method_names() -> list[str]:
    """Return the names of the catalogue, for the shell's completion."""
    return list(import_module("generic_adam.methods").names())


def recipe_names() -> list[str]:
    """Return the names of the recipes, for the shell's completion."""
    return list(import_module("generic_adam.methods.recipes").recipe_names())


def theorem_names() -> list[str]:
    """Return the names of the theorems, for the shell's completion."""
    return [one.name for one in import_module("generic_adam.theorems").THEOREMS]


Budget = Annotated[
    float,
    typer.Option("--budget", metavar="FACTOR", help="A factor on the work that a question may take; 0: form only."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Explain = Annotated[bool, typer.Option("--explain", help="Print the whole argument.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it against t: an .svg, .png or .pdf file.")
]
Theorem = Annotated[
    str | None, typer.Option("--theorem", metavar="NAME", help="Ask one theorem alone.", autocompletion=theorem_names)
]


Rows = Mapping[str, tuple[Any, str, str]]
"""Options by the name of their argument: type (bool is a flag), flags with what they take, and help."""

_IN_HAND: Rows = {
    "lr": (str, "--lr", "The (peak) learning rate, a number or a text."),
    "betas": (str, "--betas B1,B2", "Both at once: 0.9,0.999 or 0.9 0.999."),
    "eps": (float, "--eps", "What is added to the root (1e-8 where the options are torch's)."),
    "weight_decay": (float, "--weight-decay", "Decoupled weight decay."),
    "clip": (float, "--clip", "Gradients are clipped to this norm."),
    "warmup": (str, "--warmup STEPS", "Linear warm-up: 2000, 2k, or a share of the run, 0.03 or 3%."),
    "decay": (str, "--decay", f"Decay shape over --steps: {', '.join(_SHAPES)}; a number is AdamNC's."),
    "cooldown": (str, "--cooldown STEPS", "How long --decay wsd or 1-sqrt falls: steps or a share (20%)."),
    "min_lr": (float, "--min-lr", "The learning rate at the end of --decay cosine or linear."),
    "horizon": (str, "--steps --horizon T", "The number of steps of the run: 100000, 1e5, 100k."),
    "epochs": (str, "--epochs N", "In place of --steps, with --examples and --batch."),
    "examples": (str, "--examples N", "The size of the training set."),
    "batch": (str, "--batch N", "The examples of one step, over all devices; alone it is for --explain."),
    "factored": (bool, "--factored", "Second moments are factored."),
}
_SOURCES: Rows = {
    "recipe": (str, "--recipe NAME", "A published recipe (see `generic-adam recipes`)."),
    "reference": (str, "--from CODE", "MODULE:FUNCTION or FILE.py:FUNCTION that returns your optimizer."),
    "config": (str, "--config FILE", "DeepSpeed's or Trainer's file, or an optimizer's block."),
    "every": (int, "--every N", "With --from: scheduler.step() is called every N optimizer steps."),
}
# Arguments of the catalogue's functions, by their names there; --lr is one of them too.
_CATALOGUE: Rows = {
    "beta": (str, "--beta --beta1", "The momentum parameter, a number or a text."),
    "theta": (str, "--theta --beta2", 'The second-moment parameter: 0.999 or "1 - 1/max(t, 2)".'),
    "r": (str, "--r", "The exponent of 1 - theta_t, or of the weights."),
    "s": (str, "--s", "The exponent of the learning rate."),
    "c": (str, "--c", "The numerator of 1 - theta_t."),
    "K": (str, "--K", "How long a constant beginning lasts."),
    "weights": (str, "--weights", "The weights of Weighted AdaEMA or NosAdam, a text."),
    "initial": (str, "--initial", "W_0 of Weighted AdaEMA or NosAdam."),
    "momentum": (str, "--momentum", "Heavy-ball momentum of RMSprop or SGD."),
    "bias_correction": (bool, "--no-bias-correction", "Adam without its bias correction."),
}
_SEQUENCES: Rows = {"alpha": (str, "--alpha", 'The base learning rate of the paper: "0.5/sqrt(t)".')} | _CATALOGUE
_FACTS: Rows = {name: (kind.of_text, kind.option, kind.help) for name, kind in kinds().items() if kind.option}
_RUN: Rows = {"run": (Path, "--run DIR", "What `Watch(optimizer, out=DIR)` measured; options beside it win.")}
_PANELS = {
    "What you have in hand": _IN_HAND,
    "Where it is read from": _SOURCES,
    "The sequences, and arguments of the catalogue": _SEQUENCES,
    "What is known of the problem and the run": _RUN | _FACTS,
}
_NAME = typer.Argument(
    metavar="METHOD",
    help="A method or a recipe by name (see `generic-adam methods`, `recipes`).",
    autocompletion=lambda: [*method_names(), *recipe_names()],
)
_COMPLETIONS = {"recipe": recipe_names, "decay": lambda: list(_SHAPES)}


def declared(rows: Rows, panel: str | None = None) -> dict[str, Any]:
    """Return options as typer reads them, by the names of their arguments."""
    found: dict[str, Any] = {}
    for name, (kind, spelled, text) in rows.items():
        flags = [word for word in spelled.split() if word.startswith("--")]
        metavar = None if kind is bool else spelled.removeprefix(" ".join(flags)).strip() or "VALUE"
        given = typer.Option(
            *flags, metavar=metavar, help=text, rich_help_panel=panel, autocompletion=_COMPLETIONS.get(name)
        )
        found[name] = Annotated[kind | None, given]
    return found


def taking(function: Callable[..., None], annotations: Mapping[str, Any]) -> Callable[..., None]:
    """Give the function the signature that typer reads: these options, None where absent, before its own."""
    own = [one for one in inspect.signature(function).parameters.values() if one.default is not one.empty]
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(name, keyword, default=None, annotation=one) for name, one in annotations.items()]
    parameters = [*shared, *(one.replace(kind=keyword) for one in own)]
    function.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    return function


Framework = Literal["torch", "trainer", "optax"]


@dataclass(frozen=True)
class Subject:
    """The subject of a command.

    Attributes:
        algorithm: what is checked.
        setting: what is known of the problem and the run.
        used: where a file was read, its keys that were used.
        framework: "torch", "trainer" or "optax": where the optimizer is from.
        seen: the kind of training, RL or a GAN, that it looks like where --setting says nothing.
        ends: the last step that the source plans, where --steps goes beyond it.
    """

    algorithm: "Algorithm"
    setting: Setting
    used: tuple[str, ...] = ()
    framework: Framework = "torch"
    seen: "Suspicion | None" = None
    ends: int | None = None


def with_subject(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it receives a `Subject` as its argument ``subject``."""
    options: dict[str, Any] = {"name": Annotated[str | None, _NAME]}
    for panel, rows in _PANELS.items():
        options |= declared(rows, panel)

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        from generic_adam.guard import guard

        with guard(arguments["budget"]):
            command(subject=read_subject({name: arguments.pop(name) for name in options}), **arguments)

    return taking(wrapped, options)


def read_subject(given: Mapping[str, Any]) -> Subject:
    """Return the subject that the options, None where absent, mean.

    Raises:
        GenericAdamError: no subject, options that contradict each other, or a value that is refused.
    """
    from generic_adam.answers.suspicion import suspected
    from generic_adam.methods.catalogue import REFUSED, names, spelled
    from generic_adam.theorems.certificate import of_origin

    measured = Setting()
    if given["run"] is not None:
        from generic_adam.watch.diagnosis import setting as measured_in
        from generic_adam.watch.records import read_records

        measured = measured_in(read_records(given["run"] / "watch.csv"))
    steps, batches = _length(given)
    facts = {name: given[name] for name in _FACTS if given[name] is not None}
    if batches is not None:
        facts = {"batches_per_epoch": batches} | facts
    if given["batch"] is not None:
        facts["batch"] = _positive("--batch", given["batch"])
    setting = replace(measured, **facts)
    name = given["name"]
    is_recipe = name is not None and spelled(name) not in (*names(), *REFUSED)
    sources = [one for one in ("recipe", "reference", "config") if given[one] is not None]
    sources = ["name", *sources] if is_recipe else sources
    written = {"name", *_SEQUENCES, *_IN_HAND} - _OF_THE_RUN - {*sources}
    if len(sources) > 1 or (sources and any(given[one] is not None for one in written)):
        said = name if is_recipe else _SOURCES[sources[0]][1].split()[0]
        raise MethodError(f"{said} stands alone: it names the method and its numbers")
    if given["every"] is not None and sources != ["reference"]:
        raise MethodError("--every goes with --from")
    source, text = (sources[0], "") if sources else ("", "")
    used, framework = cast("tuple[str, ...]", ()), cast("Framework", "torch")
    match source:
        case "config":
            from generic_adam.adapters.plain import read_config

            found, used = read_config(Path(given["config"]), steps=steps)
            text = Path(given["config"]).read_text(encoding="utf-8", errors="replace")
        case "reference":
            found, framework = _of_code(given["reference"], given["every"], steps)
            text = _source(given["reference"])
        case "name" | "recipe":
            from generic_adam.methods.recipes import named, recipe

            found = named(given["name"]) if is_recipe else recipe(given["recipe"]).algorithm
            setting = of_origin(found, setting, "recipe")
        case _:
            found = _written(given, steps)
    seen = suspected(found, text) if setting.loss is None else None
    ends = found.horizon if steps is not None and found.horizon is not None and found.horizon < steps else None
    if steps is not None:
        found = replace(found, horizon=steps, others=[replace(one, horizon=steps) for one in found.others])
    framework = "trainer" if "learning_rate" in used else framework  # Trainer's key
    if framework == "trainer" and seen is None:
        setting = of_origin(found, setting, "trainer")
    return Subject(found, setting, used, framework, seen, ends)


def _of_code(reference: str, every: int | None, steps: int | None) -> "tuple[Algorithm, Framework]":
    """Run the user's code; return the algorithm of what it returns, and the framework."""
    from generic_adam.adapters import load
    from generic_adam.certification import read
    from generic_adam.schedules.sums import whole_steps

    pace = None if every is None else whole_steps(every, "--every")
    with contextlib.redirect_stdout(sys.stderr):  # what a script prints is no part of the answer
        loaded = load(reference)
        one = loaded[0] if isinstance(loaded, tuple) and type(loaded) is tuple and loaded else loaded
        package = type(one).__module__.partition(".")[0]
        framework: Framework = "trainer" if package == "transformers" else "optax" if package == "optax" else "torch"
        return read(loaded, steps_per_scheduler_step=pace, steps=steps), framework


def _source(reference: str) -> str:
    """Return the text of the script that was loaded; empty where there is none."""
    name = reference.rpartition(":")[0]
    path = name if name.endswith(".py") else getattr(sys.modules.get(name), "__file__", None)
    with contextlib.suppress(OSError, TypeError):
        return Path(str(path)).read_text(encoding="utf-8", errors="replace")
    return ""


def count(option: str, text: str, of: int | None = None) -> int:
    """Read a number of steps as people write it: 2000, 1e5, 2k, 1_000, 100,000, or a share of a run: 0.03, 3%.

    Args:
        option: the option, for the message.
        text: what was typed.
        of: the steps of the run; None where none is known.

    Raises:
        MethodError: it is no number of steps, or a share of nothing.

    Examples:
        >>> [count("--warmup", text, 10_000) for text in ("2k", "1e3", "10,000", "3%", "0.03", "0")]
        [2000, 1000, 10000, 300, 300, 0]
    """
    from generic_adam.schedules.sums import LONGEST_HORIZON

    body = text.strip().lower()
    body = body.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", body) else body
    body, factor = (body[:-1], _MULTIPLES[body[-1]]) if body[-1:] in _MULTIPLES else (body, 1)
    is_percent = body.endswith("%")
    number = Decimal("NaN")
    with contextlib.suppress(ArithmeticError):
        number = Decimal(body.removesuffix("%")) * factor / (100 if is_percent else 1)
    if number.is_finite() and (is_percent or 0 < number < 1):
        if not 0 <= number <= 1:
            raise MethodError(f"{option}: expected a share of at most 100%, got {text!r}")
        if of is None:
            raise MethodError(f"{option} {text}: a share of the run; expected --steps beside it")
        return math.ceil(number * of)
    if number == 0:
        return 0
    if number.is_finite() and 0 < number <= LONGEST_HORIZON and number % 1 == 0:
        return int(number)
    raise MethodError(f"{option}: expected a whole number of steps from 1 to 10^15, got {text}")


def _length(given: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the steps of the run, and those of an epoch where they are counted in epochs."""
    counted = [name for name in ("epochs", "examples", "batch") if given[name] is not None]
    if counted in ([], ["batch"]):
        return None if given["horizon"] is None else _positive("--steps", given["horizon"]), None
    if len(counted) < 3 or given["horizon"] is not None:
        raise MethodError("--epochs, --examples and --batch go together, in place of --steps")
    examples, batch = (_positive(f"--{name}", given[name]) for name in ("examples", "batch"))
    batches = -(-examples // batch)  # the last batch of an epoch may be a short one
    with contextlib.suppress(ArithmeticError, ValueError):
        epochs = Decimal(given["epochs"])
        if 0 < epochs < 10**9:
            return math.ceil(epochs * batches), batches
    raise MethodError(f"--epochs: expected a number, got {given['epochs']!r}")


def _positive(option: str, text: str) -> int:
    if found := count(option, text):
        return found
    raise MethodError(f"{option}: expected a whole number of steps from 1 to 10^15, got {text}")


def _written(given: Mapping[str, Any], steps: int | None) -> "Algorithm":
    """Return the algorithm that is written out on the command line."""
    values = {name: _value(given[name]) for name in ("lr", *_CATALOGUE) if given[name] is not None}
    if given["bias_correction"]:  # the flag is --no-bias-correction
        values["bias_correction"] = False
    if given["betas"] is not None:
        values |= _pair(given["betas"], values)
    if given["alpha"] is not None:
        found = _sequences(given, values)
        return _beside(found, given, found.method.alpha)
    if isinstance(values.get("lr"), float) and not values["lr"] > 0:
        raise MethodError(f"--lr: expected a finite number > 0, got {values['lr']:g}")
    return _named(given, values, steps)


def _named(given: Mapping[str, Any], values: dict[str, Any], steps: int | None) -> "Algorithm":
    """Return a method of the catalogue; --lr alone means torch's Adam, or AdamW with --weight-decay."""
    from generic_adam.methods import Method, as_algorithm, build, info
    from generic_adam.methods.method import read_schedule

    if given["name"] is None and "lr" not in values:
        raise MethodError(
            "give the name of a method (see `generic-adam methods`), --lr with --betas, or --alpha, --beta "
            "and --theta; missing all of them"
        )
    entry = info(given["name"] or "adamw")
    is_torchs = given["name"] is None or (entry.name == "adam" and "bias_correction" not in values)
    if is_torchs:
        entry = info("adamw")
    elif entry.name == "adam" and given["eps"] is None:  # the one without is the paper's, generic_adam
        given = {**given, "eps": 1e-8}
    if given["decay"] in _SHAPES or any(given[one] is not None for one in ("warmup", "cooldown", "min_lr")):
        values["lr"] = _rate(values.get("lr", entry.parameters.get("lr")), given, steps)
    if given["decay"] is not None and given["decay"] not in _SHAPES:
        values["decay"] = _value(given["decay"])
        if isinstance(values["decay"], str):
            raise MethodError(f"--decay: expected one of {', '.join(_SHAPES)}, got {given['decay']!r}")
    inside = {name: given[name] for name in ("eps", "weight_decay") if name in entry.parameters}
    inside = {name: value for name, value in inside.items() if value is not None}
    if is_torchs:
        inside.setdefault("weight_decay", 0.0)
    built = build(entry.name, **values, **inside)
    if isinstance(built, Method):
        said = () if given["eps"] is not None else ("v_0 = 1e-8 and no eps, as in the paper",)
        built = replace(as_algorithm(built), label=entry.name, notes=said)
    # What decoupled decay is proportional to: the rate before its bias correction.
    pace = built.method.alpha
    if "bias_correction" in entry.parameters:
        pace = as_algorithm(build(entry.name, **{**values, "bias_correction": False})).method.alpha
    elif entry.name in {"amsgrad", "nadam"}:
        pace = read_schedule("lr", values.get("lr", entry.parameters["lr"]))
    return _beside(built, {**given, **dict.fromkeys(inside)}, pace)


def _sequences(given: Mapping[str, Any], values: Mapping[str, Any]) -> "Algorithm":
    """Return Generic Adam from its three sequences."""
    from generic_adam.methods import Algorithm, Method

    if given["name"] is not None:
        raise MethodError(f"--alpha goes with --beta and --theta, not with the method {given['name']!r}; use --lr")
    missing = [f"--{name}" for name in ("beta", "theta") if name not in values]
    if missing:
        raise MethodError(f"--alpha goes with --beta and --theta; missing {', '.join(missing)}")
    extra = [name for name in values if name not in {"beta", "theta"}]
    extra += [name for name in ("warmup", "decay", "cooldown", "min_lr") if given[name] is not None]
    if extra:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in extra)
        raise MethodError(f"{flags} goes with --lr or the name of a method, not with --alpha")
    return Algorithm(Method(_value(given["alpha"]), values["beta"], values["theta"]), label="Generic Adam")


def _beside(found: "Algorithm", given: Mapping[str, Any], pace: "Schedule") -> "Algorithm":
    """Add to the sequences: eps, decoupled decay at a pace, clipping, factored moments."""
    from generic_adam.methods import Clipping
    from generic_adam.methods.method import exact_number
    from generic_adam.schedules import as_schedule

    settings: dict[str, Any] = {}
    if given["eps"] is not None:
        if not found.preconditioned:
            raise MethodError(f"--eps is added to a divisor, and {found.label} has none")
        settings |= {"initial_v": 0.0, "eps": as_schedule(given["eps"])}
    if given["weight_decay"] is not None:
        decay = exact_number("weight_decay", given["weight_decay"], at_least=0)
        settings["decay"] = pace * decay
    if given["clip"] is not None:
        settings["clipping"] = Clipping(given["clip"])
    if given["factored"]:
        settings["factored"] = True
    return replace(found, **settings)


def _pair(text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return beta and theta from "0.9,0.95" or "0.9 0.95"."""
    parts = [part.strip() for part in text.strip("()[] ").replace(" ", "," if "," not in text else "").split(",")]
    if len(parts) != 2 or not all(parts):
        raise MethodError(f"--betas: expected two numbers such as 0.9,0.999, got {text!r}")
    if {"beta", "theta"} & set(values):
        raise MethodError("--betas stands for --beta and --theta: give one or the other")
    return {"beta": _value(parts[0]), "theta": _value(parts[1])}


def _rate(peak: Any, given: Mapping[str, Any], steps: int | None) -> "Schedule":
    """Return the learning rate from its peak, its warm-up and its decay."""
    from generic_adam.methods.shapes import training_rate

    if not isinstance(peak, float | int):
        raise MethodError(f"--warmup, --decay and --min-lr go with a number for --lr, got {peak!r}")
    lowest, shape = given["min_lr"] or 0.0, given["decay"] or "constant"
    if given["min_lr"] is not None and shape in {"constant", "inverse-sqrt"}:
        raise MethodError("--min-lr is where --decay cosine, linear, wsd or 1-sqrt ends")
    if not 0 <= lowest <= peak:
        raise MethodError(f"--min-lr: expected a number from 0 to --lr, got {lowest:g}")
    warmup = 0 if given["warmup"] is None else count("--warmup", given["warmup"], steps)
    cooldown = None if given["cooldown"] is None else count("--cooldown", given["cooldown"], steps)
    return training_rate(float(peak), warmup=warmup, decay=shape, lowest=lowest, steps=steps, cooldown=cooldown)


def _value(value: Any) -> Any:
    """Return a number where the text is one; the catalogue decides where an expression may stand."""
    with contextlib.suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value
