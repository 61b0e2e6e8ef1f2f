"""What a command is about: a method by name, its sequences, what people have in hand, a recipe or code.

``check``, ``bound`` and ``advise`` share these options; :func:`with_subject` adds them to a command, which
receives an `Algorithm` and what is taken for granted.
"""

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.errors import MethodError

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.schedules import Schedule
    from generic_adam.theorems.theorem import Assumptions

_SHAPES = ("constant", "cosine", "linear", "inverse-sqrt")


def method_names() -> list[str]:
    """The names of the catalogue, for the shell's completion."""
    from generic_adam.methods import names

    return list(names())


def recipe_names() -> list[str]:
    """The names of the recipes, for the shell's completion."""
    from generic_adam.methods import recipes

    return list(recipes.recipe_names())


def theorem_names() -> list[str]:
    """The names of the theorems and of what is only cited, for the shell's completion."""
    from generic_adam.theorems.catalogue import REPORTED, THEOREMS

    return [one.name for one in (*THEOREMS, *REPORTED)]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it against t: an .svg, .png or .pdf file.")
]
Theorem = Annotated[
    str | None,
    typer.Option("--theorem", metavar="NAME", help="Ask one theorem alone.", autocompletion=theorem_names),
]


def _options(panel: str, rows: Mapping[str, tuple[Any, str, str]]) -> dict[str, Any]:
    """Options as typer reads them, from rows of type, flags with what they take, and help; bool is a flag."""
    found: dict[str, Any] = {}
    for name, (kind, spelled, text) in rows.items():
        flags = [word for word in spelled.split() if word.startswith("--")]
        metavar = None if kind is bool else spelled.removeprefix(" ".join(flags)).strip() or "VALUE"
        complete = _COMPLETIONS.get(name)
        given = typer.Option(
            *flags, metavar=metavar, help=text, rich_help_panel=panel, autocompletion=complete
        )
        found[name] = Annotated[kind | None, given]
    return found


_COMPLETIONS = {"recipe": recipe_names, "decay": lambda: list(_SHAPES)}
_NAME = typer.Argument(
    metavar="METHOD",
    help="A name of the catalogue (see `generic-adam methods`).",
    autocompletion=method_names,
)
# Arguments of the catalogue's functions, by their names there.
_CATALOGUE = {
    "beta": (str, "--beta --beta1", "The momentum parameter, a number or a text."),
    "theta": (str, "--theta --beta2", 'The second-moment parameter: 0.999 or "1 - 1/max(t, 2)".'),
    "lr": (str, "--lr", "The (peak) learning rate, a number or a text."),
    "r": (str, "--r", "The exponent of 1 - theta_t, or of the weights."),
    "s": (str, "--s", "The exponent of the learning rate."),
    "c": (str, "--c", "The numerator of 1 - theta_t."),
    "K": (str, "--K", "How long a constant beginning lasts."),
    "weights": (str, "--weights", "The weights of Weighted AdaEMA or NosAdam, a text."),
    "initial": (str, "--initial", "W_0 of Weighted AdaEMA or NosAdam."),
    "momentum": (str, "--momentum", "Heavy-ball momentum of RMSprop or SGD."),
    "bias_correction": (bool, "--no-bias-correction", "Adam without its bias correction."),
}
_ALPHA = {"alpha": (str, "--alpha", 'The base learning rate of the paper: "0.5/sqrt(t)".')}
_FALLS = f"How the rate falls over --steps: {', '.join(_SHAPES)}; a number is AdamNC's."
_IN_HAND = {
    "betas": (str, "--betas B1,B2", "Both at once: 0.9,0.999."),
    "eps": (float, "--eps", "What is added to the root (1e-8 where the options are torch's)."),
    "weight_decay": (float, "--weight-decay", "Decoupled weight decay."),
    "clip": (float, "--clip", "Gradients are clipped to this norm."),
    "factored": (bool, "--factored", "Second moments are factored."),
    "warmup": (float, "--warmup STEPS", "Steps of linear warm-up."),
    "decay": (str, "--decay", _FALLS),
    "min_lr": (float, "--min-lr", "Where it ends."),
    "horizon": (float, "--steps --horizon T", "The number of steps of the run."),
}
_SOURCES = {
    "recipe": (str, "--recipe NAME", "A published recipe (see `generic-adam recipes`)."),
    "reference": (str, "--from CODE", "MODULE:FUNCTION that returns an optimizer, or that and a scheduler."),
    "config": (str, "--config FILE", "DeepSpeed's, Trainer's, or an optimizer block, in JSON or YAML."),
    "every": (int, "--every N", "With --from: scheduler.step() is called every N optimizer steps."),
}
_ASSUMPTIONS = {
    "weights_bound": (float, "--weights-bound X", "No weight exceeds this."),
    "gradient_norm": (float, "--gradient-norm G", "No gradient's norm exceeds this."),
    "full_batch": (bool, "--full-batch", "Every gradient is exact."),
    "smoothness": (float, "--smoothness-bound L", "The gradient is L-Lipschitz."),
    "convex": (bool, "--convex", "Convex losses on a bounded domain: ask for regret too."),
}
_OPTIONS = {
    "name": Annotated[str | None, _NAME],
    **_options("The method", _ALPHA | _CATALOGUE),
    **_options("What you have in hand", _IN_HAND),
    **_options("Where it is read from", _SOURCES),
    **_options("What is taken for granted", _ASSUMPTIONS),
}


@dataclass(frozen=True)
class Subject:
    """What a command is about.

    Attributes:
        algorithm: what is certified.
        assume: what is taken for granted.
        used: where a file was read, its keys that were used.
        written: the options that say it, as they can be typed again.
    """

    algorithm: "Algorithm"
    assume: "Assumptions"
    used: tuple[str, ...] = ()
    written: str = ""


def with_subject(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it receives a `Subject` as its argument ``subject``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        command(subject=read_subject({name: arguments.pop(name) for name in _OPTIONS}), **arguments)

    own = inspect.signature(command)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    rest = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own.parameters.values()][1:]
    # What typer reads: the signature with the shared options in front.
    wrapped.__signature__ = own.replace(parameters=[*shared, *rest])  # pyright: ignore[reportAttributeAccessIssue]
    wrapped.__annotations__ = {one.name: one.annotation for one in (*shared, *rest)}
    return wrapped


def read_subject(given: Mapping[str, Any]) -> Subject:
    """The subject that the options, None where absent, mean.

    Raises:
        GenericAdamError: no subject, options that contradict each other, or a value that is refused.
    """
    from dataclasses import replace

    from generic_adam.theorems.horizon import whole_steps
    from generic_adam.theorems.theorem import Assumptions

    assume = Assumptions(**{name: given[name] for name in _ASSUMPTIONS if given[name] is not None})
    steps = None if given["horizon"] is None else whole_steps(given["horizon"], "--steps")
    sources = [name for name in ("recipe", "reference", "config") if given[name] is not None]
    written = ["name", *_ALPHA, *_CATALOGUE, *_IN_HAND]
    if len(sources) > 1 or (sources and any(given[one] is not None for one in written if one != "horizon")):
        flag = _SOURCES[sources[0]][1].split()[0]
        raise MethodError(f"{flag} stands alone: it says all about the method")
    if given["every"] is not None and sources != ["reference"]:
        raise MethodError("--every goes with --from")
    every = None if given["every"] is None else whole_steps(given["every"], "--every")
    used: tuple[str, ...] = ()
    if sources == ["config"]:
        from generic_adam.adapters.config import read_config

        found, used = read_config(Path(given["config"]), steps=steps)
    elif sources:
        from generic_adam.adapters import load
        from generic_adam.certification import read

        options = {"steps_per_scheduler_step": every, "steps": steps}
        found = read(given["recipe"]) if sources == ["recipe"] else read(load(given["reference"]), **options)
    else:
        found = _written(given, steps)
    found = found if steps is None else replace(found, horizon=steps)
    return Subject(found, assume, tuple(used), _typed(given))


def _typed(given: Mapping[str, Any]) -> str:
    """The options as text for a shell; the method's name comes first."""
    words = [] if given["name"] is None else [str(given["name"])]
    for name, (kind, spelled, _) in (_ALPHA | _CATALOGUE | _IN_HAND | _SOURCES | _ASSUMPTIONS).items():
        value = given[name]
        if value is not None:
            words.append(spelled.split()[0])
            words += [] if kind is bool else [f"{value:.12g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _written(given: Mapping[str, Any], steps: int | None) -> "Algorithm":
    """The algorithm that is written out on the command line."""
    values = {name: _value(given[name]) for name in _CATALOGUE if given[name] is not None}
    if given["bias_correction"]:  # the flag is --no-bias-correction
        values["bias_correction"] = False
    if given["betas"] is not None:
        values |= _pair(given["betas"], values)
    if given["alpha"] is not None:
        return _beside(_sequences(given, values), given)
    if isinstance(values.get("lr"), float) and not values["lr"] > 0:
        raise MethodError(f"--lr: expected a finite number > 0, got {values['lr']:g}")
    return _named(given, values, steps)


def _named(given: Mapping[str, Any], values: dict[str, Any], steps: int | None) -> "Algorithm":
    """A method of the catalogue; --lr alone means torch's Adam, or AdamW with --weight-decay."""
    from dataclasses import replace

    from generic_adam.methods import Method, as_algorithm, build, info

    if given["name"] is None and "lr" not in values:
        raise MethodError(
            "give the name of a method (see `generic-adam methods`), --lr with --betas, or --alpha, --beta "
            "and --theta; missing all of them"
        )
    entry = info(given["name"] or "adamw")
    if given["decay"] in _SHAPES or not given["warmup"] is given["min_lr"] is None:
        values["lr"] = _rate(values.get("lr", entry.parameters.get("lr")), given, steps)
    if given["decay"] is not None and given["decay"] not in _SHAPES:
        values["decay"] = _value(given["decay"])
        if isinstance(values["decay"], str):
            raise MethodError(f"--decay: expected one of {', '.join(_SHAPES)}, got {given['decay']!r}")
    inside = {name: given[name] for name in ("eps", "weight_decay") if name in entry.parameters}
    inside = {name: value for name, value in inside.items() if value is not None}
    if given["name"] is None:
        inside.setdefault("weight_decay", 0.0)
    built = build(entry.name, **values, **inside)
    found = as_algorithm(built)
    found = replace(found, label=entry.name) if isinstance(built, Method) else found
    return _beside(found, {**given, **dict.fromkeys(inside)})


def _sequences(given: Mapping[str, Any], values: Mapping[str, Any]) -> "Algorithm":
    """Generic Adam from its three sequences."""
    from generic_adam.methods import Algorithm, Method

    if given["name"] is not None:
        raise MethodError(
            f"--alpha goes with --beta and --theta, not with the method {given['name']!r}; use --lr"
        )
    missing = [f"--{name}" for name in ("beta", "theta") if name not in values]
    if missing:
        raise MethodError(f"--alpha goes with --beta and --theta; missing {', '.join(missing)}")
    extra = [name for name in values if name not in {"beta", "theta"}]
    extra += [name for name in ("warmup", "decay", "min_lr") if given[name] is not None]
    if extra:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in extra)
        raise MethodError(f"{flags} goes with --lr or the name of a method, not with --alpha")
    return Algorithm(Method(_value(given["alpha"]), values["beta"], values["theta"]), label="Generic Adam")


def _beside(found: "Algorithm", given: Mapping[str, Any]) -> "Algorithm":
    """What stands beside the sequences: eps, decoupled decay, clipping, factored moments."""
    from dataclasses import replace

    from generic_adam.methods import Clipping
    from generic_adam.methods.method import exact_number
    from generic_adam.schedules import as_schedule

    settings: dict[str, Any] = {}
    if given["eps"] is not None:
        settings |= {"initial_v": 0.0, "eps": as_schedule(given["eps"])}
    if given["weight_decay"] is not None:
        decay = exact_number("weight_decay", given["weight_decay"], at_least=0)
        settings["decay"] = found.method.alpha * decay
    if given["clip"] is not None:
        settings["clipping"] = Clipping(given["clip"])
    if given["factored"]:
        settings["factored"] = True
    return replace(found, **settings)


def _pair(text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """beta and theta from "0.9,0.95"."""
    parts = [part.strip() for part in text.strip("()[] ").split(",")]
    if len(parts) != 2 or not all(parts):
        raise MethodError(f"--betas: expected two numbers such as 0.9,0.999, got {text!r}")
    if {"beta", "theta"} & set(values):
        raise MethodError("--betas stands for --beta and --theta: give one or the other")
    return {"beta": _value(parts[0]), "theta": _value(parts[1])}


def _rate(peak: Any, given: Mapping[str, Any], steps: int | None) -> "Schedule":
    """The learning rate from its peak, its warm-up and how it falls."""
    from generic_adam.methods.shapes import training_rate
    from generic_adam.theorems.horizon import whole_steps

    if not isinstance(peak, float | int):
        raise MethodError(f"--warmup, --decay and --min-lr go with a number for --lr, got {peak!r}")
    lowest, shape = given["min_lr"] or 0.0, given["decay"] or "constant"
    if not 0 <= lowest <= peak:
        raise MethodError(f"--min-lr: expected a number from 0 to --lr, got {lowest:g}")
    warmup = 0 if given["warmup"] is None else whole_steps(given["warmup"], "--warmup")
    return training_rate(float(peak), warmup=warmup, decay=shape, lowest=lowest, steps=steps)


def _value(value: Any) -> Any:
    """A number where the text is one; the catalogue decides where an expression may stand."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
