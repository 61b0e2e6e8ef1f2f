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

_METHOD, _HAND = "The method", "What you have in hand"
_READ, _GRANTED = "Where it is read from", "What is taken for granted"
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
    """The names of the theorems, for the shell's completion."""
    from generic_adam.theorems.catalogue import THEOREMS

    return [one.name for one in THEOREMS]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it against t: an .svg, .png or .pdf file.")
]
Theorem = Annotated[
    str | None,
    typer.Option("--theorem", metavar="NAME", help="Ask one theorem alone.", autocompletion=theorem_names),
]


def _option(
    *flags: str,
    text: str,
    panel: str = _METHOD,
    metavar: str = "VALUE",
    kind: type = str,
    complete: Callable[[], list[str]] | None = None,
) -> Any:
    given = typer.Option(*flags, help=text, rich_help_panel=panel, metavar=metavar, autocompletion=complete)
    return Annotated[kind | None, given]


def _flag(flag: str, text: str, panel: str) -> Any:
    return Annotated[bool | None, typer.Option(flag, help=text, rich_help_panel=panel)]


# Arguments of the catalogue's functions, by their names there.
_CATALOGUE: Mapping[str, Any] = {
    "beta": _option("--beta", "--beta1", text="The momentum parameter, a number or a text."),
    "theta": _option("--theta", "--beta2", text='The second-moment parameter: 0.999 or "1 - 1/max(t, 2)".'),
    "lr": _option("--lr", text="The (peak) learning rate, a number or a text."),
    "r": _option("--r", text="The exponent of 1 - theta_t, or of the weights."),
    "s": _option("--s", text="The exponent of the learning rate."),
    "c": _option("--c", text="The numerator of 1 - theta_t."),
    "K": _option("--K", text="How long a constant beginning lasts."),
    "weights": _option("--weights", text="The weights of Weighted AdaEMA or NosAdam, a text."),
    "initial": _option("--initial", text="W_0 of Weighted AdaEMA or NosAdam."),
    "momentum": _option("--momentum", text="Heavy-ball momentum of RMSprop or SGD."),
    "bias_correction": _flag("--no-bias-correction", "Adam without its bias correction.", _METHOD),
}
_OPTIONS: Mapping[str, Any] = {
    "name": Annotated[
        str | None,
        typer.Argument(
            metavar="METHOD",
            help="A name of the catalogue (see `generic-adam methods`).",
            autocompletion=method_names,
        ),
    ],
    "alpha": _option("--alpha", text='The base learning rate of the paper: "0.5/sqrt(t)".'),
    **_CATALOGUE,
    "betas": _option("--betas", text="Both at once: 0.9,0.999.", panel=_HAND, metavar="B1,B2"),
    "eps": _option(
        "--eps",
        text="What is added to the root (1e-8 where the options are torch's).",
        panel=_HAND,
        kind=float,
    ),
    "weight_decay": _option("--weight-decay", text="Decoupled weight decay.", panel=_HAND, kind=float),
    "clip": _option("--clip", text="Gradients are clipped to this norm.", panel=_HAND, kind=float),
    "factored": _flag("--factored", "Second moments are factored.", _HAND),
    "warmup": _option("--warmup", text="Steps of linear warm-up.", panel=_HAND, metavar="STEPS", kind=float),
    "decay": _option(
        "--decay",
        text=f"How the rate falls over --steps: {', '.join(_SHAPES)}; a number is AdamNC's.",
        panel=_HAND,
        complete=lambda: list(_SHAPES),
    ),
    "min_lr": _option("--min-lr", text="Where it ends.", panel=_HAND, kind=float),
    "horizon": _option(
        "--steps", "--horizon", text="The number of steps of the run.", panel=_HAND, metavar="T", kind=float
    ),
}
_SOURCES: Mapping[str, Any] = {
    "recipe": _option(
        "--recipe",
        text="A published recipe (see `generic-adam recipes`).",
        panel=_READ,
        metavar="NAME",
        complete=recipe_names,
    ),
    "reference": _option(
        "--from",
        text="MODULE:FUNCTION of yours that returns an optimizer, or that and a scheduler.",
        panel=_READ,
        metavar="CODE",
    ),
    "config": _option(
        "--config",
        text="DeepSpeed's or Trainer's arguments, or an optimizer block, in JSON or YAML.",
        panel=_READ,
        metavar="FILE",
    ),
    "steps_per_scheduler_step": _option(
        "--every",
        text="With --from: scheduler.step() is called every N optimizer steps.",
        panel=_READ,
        metavar="N",
        kind=int,
    ),
}
_ASSUMPTIONS: Mapping[str, Any] = {
    "weights_bound": _option(
        "--weights-bound", text="No weight exceeds this.", panel=_GRANTED, metavar="X", kind=float
    ),
    "gradient_norm": _option(
        "--gradient-norm", text="No gradient's norm exceeds this.", panel=_GRANTED, metavar="G", kind=float
    ),
    "full_batch": _flag("--full-batch", "Every gradient is exact.", _GRANTED),
    "smoothness_bound": _option(
        "--smoothness-bound", text="The gradient is L-Lipschitz.", panel=_GRANTED, metavar="L", kind=float
    ),
    "convex": _flag("--convex", "Convex losses on a bounded domain: ask for regret too.", _GRANTED),
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
    own = inspect.signature(command)
    options = {**_OPTIONS, **_SOURCES, **_ASSUMPTIONS}
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in options.items()
    ]
    rest = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        if parameter.name != "subject"
    ]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        command(subject=read_subject({name: arguments.pop(name) for name in options}), **arguments)

    parameters = [*shared, *rest]
    # What typer reads: the signature with the shared options in front.
    wrapped.__signature__ = own.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return wrapped


def read_subject(given: Mapping[str, Any]) -> Subject:
    """The subject that the options mean.

    Args:
        given: the options by name, None where absent.

    Raises:
        GenericAdamError: no subject, options that contradict each other, or a value that is refused.
    """
    from dataclasses import replace

    from generic_adam.theorems.horizon import whole_steps
    from generic_adam.theorems.theorem import Assumptions

    assume = Assumptions(
        given["weights_bound"],
        given["gradient_norm"],
        bool(given["full_batch"]),
        bool(given["convex"]),
        given["smoothness_bound"],
    )
    steps = None if given["horizon"] is None else whole_steps(given["horizon"], "--steps")
    flags = {"recipe": "--recipe", "reference": "--from", "config": "--config"}
    sources = [name for name in flags if given[name] is not None]
    written = [name for name in _OPTIONS if name != "horizon" and given[name] is not None]
    if len(sources) > 1 or (sources and written):
        raise MethodError(f"{flags[sources[0]]} stands alone: it says all about the method")
    every = given["steps_per_scheduler_step"]
    if every is not None and sources != ["reference"]:
        raise MethodError("--every goes with --from")
    if every is not None:
        whole_steps(every, "--every")
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
    words: list[str] = []
    for name, annotation in {**_OPTIONS, **_SOURCES, **_ASSUMPTIONS}.items():
        value = given[name]
        if value is not None and name != "name":
            words.append(annotation.__metadata__[0].default)  # where typer keeps the first flag
        if value is not None and value is not True:
            words.append(f"{value:.12g}" if isinstance(value, float) else str(value))
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
    lowest = given["min_lr"] or 0.0
    if not 0 <= lowest <= peak:
        raise MethodError(f"--min-lr: expected a number from 0 to --lr, got {lowest:g}")
    warmup = 0 if given["warmup"] is None else whole_steps(given["warmup"], "--warmup")
    return training_rate(
        float(peak),
        warmup=warmup,
        decay=given["decay"] or "constant",
        lowest=lowest,
        steps=steps,
    )


def _value(value: Any) -> Any:
    """A number where the text is one; the catalogue decides where an expression may stand."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
