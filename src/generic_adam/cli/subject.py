"""What a command is about: a method by name, its sequences, what people have in hand, a recipe or code.

``check``, ``bound`` and ``advise`` share these options; :func:`with_subject` adds them to a command, which
receives an `Algorithm` and what is taken for granted.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.errors import MethodError

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.schedules import Schedule
    from generic_adam.theorems.theorem import Assumptions

_METHOD, _HAND, _GRANTED = "The method", "What you have in hand", "What is taken for granted"
_SHAPES = ("constant", "cosine", "linear", "inverse-sqrt")


def _option(*flags: str, text: str, panel: str = _METHOD, metavar: str = "VALUE", kind: type = str) -> Any:
    return Annotated[kind | None, typer.Option(*flags, help=text, rich_help_panel=panel, metavar=metavar)]


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
    "bias_correction": Annotated[
        bool | None,
        typer.Option(
            "--bias-correction/--no-bias-correction", help="Adam's bias correction.", rich_help_panel=_METHOD
        ),
    ],
}
_OPTIONS: Mapping[str, Any] = {
    "name": Annotated[
        str | None,
        typer.Argument(metavar="METHOD", help="A name of the catalogue (see `generic-adam methods`)."),
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
    "factored": Annotated[
        bool | None, typer.Option("--factored", help="Second moments are factored.", rich_help_panel=_HAND)
    ],
    "warmup": _option("--warmup", text="Steps of linear warm-up.", panel=_HAND, metavar="STEPS", kind=float),
    "decay": _option(
        "--decay",
        text=f"How the rate falls over --steps: {', '.join(_SHAPES)}; a number is AdamNC's.",
        panel=_HAND,
    ),
    "min_lr": _option("--min-lr", text="Where it ends.", panel=_HAND, kind=float),
    "horizon": _option(
        "--steps", "--horizon", text="The number of steps of the run.", panel=_HAND, metavar="T", kind=float
    ),
}
_SOURCES: Mapping[str, Any] = {
    "recipe": _option("--recipe", text="A published recipe (see `generic-adam recipes`).", metavar="NAME"),
    "reference": _option(
        "--from",
        text="Your function: it returns an optimizer, or that and a scheduler.",
        metavar="MODULE:FUNCTION",
    ),
    "config": _option(
        "--config", text="A file: DeepSpeed, Trainer's arguments, a YAML optimizer block.", metavar="FILE"
    ),
    "steps_per_scheduler_step": _option(
        "--steps-per-scheduler-step",
        text="With --from: optimizer steps for each scheduler.step().",
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
    "full_batch": Annotated[
        bool | None, typer.Option("--full-batch", help="Every gradient is exact.", rich_help_panel=_GRANTED)
    ],
    "convex": Annotated[
        bool | None,
        typer.Option(
            "--convex",
            help="Convex losses on a bounded domain: ask for regret too.",
            rich_help_panel=_GRANTED,
        ),
    ],
}


@dataclass(frozen=True)
class Subject:
    """What a command is about.

    Attributes:
        algorithm: what is certified.
        assume: what is taken for granted.
        used: where a file was read, its keys that were used.
    """

    algorithm: "Algorithm"
    assume: "Assumptions"
    used: tuple[str, ...] = ()


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
        given["weights_bound"], given["gradient_norm"], bool(given["full_batch"]), bool(given["convex"])
    )
    steps = None if given["horizon"] is None else whole_steps(given["horizon"])
    flags = {"recipe": "--recipe", "reference": "--from", "config": "--config"}
    sources = [name for name in flags if given[name] is not None]
    written = [name for name in _OPTIONS if name != "horizon" and given[name] is not None]
    if len(sources) > 1 or (sources and written):
        raise MethodError(f"{flags[sources[0]]} stands alone: it says all about the method")
    if given["steps_per_scheduler_step"] is not None and sources != ["reference"]:
        raise MethodError("--steps-per-scheduler-step goes with --from")
    used: tuple[str, ...] = ()
    if sources == ["config"]:
        from pathlib import Path

        from generic_adam.adapters.config import read_config

        found, used = read_config(Path(given["config"]), steps=steps)
    elif sources:
        from generic_adam.adapters import load
        from generic_adam.certification import read

        options = {"steps_per_scheduler_step": given["steps_per_scheduler_step"], "steps": steps}
        found = read(given["recipe"]) if sources == ["recipe"] else read(load(given["reference"]), **options)
    else:
        found = _written(given, steps)
    return Subject(found if steps is None else replace(found, horizon=steps), assume, tuple(used))


def _written(given: Mapping[str, Any], steps: int | None) -> "Algorithm":
    """The algorithm that is written out on the command line."""
    from dataclasses import replace

    from generic_adam.methods import Method, as_algorithm, build, info
    from generic_adam.methods.parameters import exact_number
    from generic_adam.schedules import as_schedule

    values = {name: _value(given[name]) for name in _CATALOGUE if given[name] is not None}
    if given["betas"] is not None:
        values |= _pair(given["betas"], values)
    if given["alpha"] is not None:
        return _sequences(given, values)
    shaped = any(given[name] is not None for name in ("warmup", "min_lr")) or given["decay"] in _SHAPES
    if given["decay"] is not None and given["decay"] not in _SHAPES:
        values["decay"] = _value(given["decay"])
    if shaped:
        values["lr"] = _rate(values.get("lr"), given, steps)
    beside = {name: given[name] for name in ("eps", "weight_decay") if given[name] is not None}
    if given["name"] is None:
        if "lr" not in values:
            raise MethodError(
                "give the name of a method (see `generic-adam methods`), --lr with --betas, or --alpha, --beta "
                "and --theta; missing all of them"
            )
        found = as_algorithm(build("adamw", **{"weight_decay": 0.0, **values, **beside}))
    else:
        entry = info(given["name"])
        inside = {name: value for name, value in beside.items() if name in entry.parameters}
        found = build(given["name"], **values, **inside)
        label = "the method" if isinstance(found, Method) else found.label
        found = as_algorithm(found)
        found = replace(found, label=entry.name if label == "the method" else label)
        if "eps" in beside and "eps" not in inside:
            found = replace(found, initial_v=0.0, eps=as_schedule(beside["eps"]))
        if "weight_decay" in beside and "weight_decay" not in inside:
            decay = exact_number("weight_decay", beside["weight_decay"], at_least=0)
            found = replace(found, decay=found.method.alpha * decay)
    return _beside(found, given)


def _sequences(given: Mapping[str, Any], values: Mapping[str, Any]) -> "Algorithm":
    """Generic Adam from its three sequences."""
    from generic_adam.methods import Algorithm, Method
    from generic_adam.methods.parameters import exact_number

    if given["name"] is not None:
        raise MethodError(
            f"--alpha goes with --beta and --theta, not with the method {given['name']!r}; use --lr"
        )
    missing = [f"--{name}" for name in ("beta", "theta") if name not in values]
    if missing:
        raise MethodError(f"--alpha goes with --beta and --theta; missing {', '.join(missing)}")
    extra = [f"--{name.replace('_', '-')}" for name in values if name not in {"beta", "theta"}]
    if extra:
        raise MethodError(f"{', '.join(extra)} goes with the name of a method, not with --alpha")
    method = Method(_value(given["alpha"]), values["beta"], values["theta"])
    settings: dict[str, Any] = {"label": "Generic Adam"}
    if given["eps"] is not None:
        settings |= {"initial_v": 0.0, "eps": given["eps"]}
    if given["weight_decay"] is not None:
        settings["decay"] = method.alpha * exact_number("weight_decay", given["weight_decay"], at_least=0)
    return _beside(Algorithm(method, **settings), given)


def _beside(found: "Algorithm", given: Mapping[str, Any]) -> "Algorithm":
    """What stands beside the sequences: clipping and factored moments."""
    from dataclasses import replace

    from generic_adam.methods import Clipping

    clipping = None if given["clip"] is None else Clipping(given["clip"])
    return replace(found, clipping=clipping, factored=bool(given["factored"]))


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
    warmup = 0 if given["warmup"] is None else whole_steps(given["warmup"])
    return training_rate(
        float(peak),
        warmup=warmup,
        decay=given["decay"] or "constant",
        lowest=given["min_lr"] or 0.0,
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
