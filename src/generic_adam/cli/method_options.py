"""How a method is given on the command line: by name, by its three sequences, as a recipe, or by a function.

``check``, ``bound`` and ``advise`` share these options; :func:`with_method` adds them to a command.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from generic_adam.methods import Method

_PANEL = "The method"


def _option(flag: str, text: str) -> Any:
    return Annotated[str | None, typer.Option(flag, help=text, rich_help_panel=_PANEL, metavar="VALUE")]


# The arguments of the catalogue's functions, by their names there; `alpha` is for methods outside it.
_OPTIONS: Mapping[str, Any] = {
    "name": Annotated[
        str | None,
        typer.Argument(metavar="[METHOD]", help="A method of the catalogue (see `generic-adam methods`)."),
    ],
    "alpha": _option("--alpha", 'The base learning rate, a number or a text: "0.5/sqrt(t)".'),
    "beta": _option("--beta", "The momentum parameter, a number or a text."),
    "theta": _option("--theta", 'The second-moment parameter, a number or a text: "1 - 1/max(t, 2)".'),
    "lr": _option("--lr", "The learning rate of a method of the catalogue."),
    "r": _option("--r", "The exponent of 1 - theta_t, or of the weights."),
    "s": _option("--s", "The exponent of the learning rate."),
    "c": _option("--c", "The numerator of 1 - theta_t."),
    "K": _option("--K", "How long a constant beginning lasts."),
    "decay": _option("--decay", "The factor by which AdamNC's momentum fades each step."),
    "weights": _option("--weights", "The weights of Weighted AdaEMA or NosAdam, a text."),
    "initial": _option("--initial", "W_0 of Weighted AdaEMA or NosAdam."),
    "bias_correction": Annotated[
        bool | None,
        typer.Option(
            "--bias-correction/--no-bias-correction", help="Adam's bias correction.", rich_help_panel=_PANEL
        ),
    ],
}

# Other sources of a method: each stands alone.
_SOURCES: Mapping[str, Any] = {
    "recipe": Annotated[
        str | None,
        typer.Option(
            "--recipe",
            help="A published recipe (see `generic-adam recipes`).",
            rich_help_panel=_PANEL,
            metavar="NAME",
        ),
    ],
    "reference": Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Your function, called without arguments: it returns an optimizer, or that and a scheduler.",
            rich_help_panel=_PANEL,
            metavar="MODULE:FUNCTION",
        ),
    ],
    "steps_per_scheduler_step": Annotated[
        int | None,
        typer.Option(
            "--steps-per-scheduler-step",
            help="With --from: optimizer steps for each scheduler.step(), such as an epoch's.",
            rich_help_panel=_PANEL,
            metavar="N",
        ),
    ],
}


class MethodOptionError(ValueError):
    """The options do not name one method; the message is one line."""


@dataclass(frozen=True)
class NamedMethod:
    """A method and what the command line called it.

    Attributes:
        label: what to call it.
        method: the three sequences.
        outside: what it comes with that the theorem does not cover.
        notes: remarks on where it is from.
        horizon: the number of steps it is meant for, where that is known.
    """

    label: str
    method: "Method"
    outside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    horizon: int | None = None


def remarks(outside: Sequence[str], notes: Sequence[str]) -> list[str]:
    """What a method comes with, a line each: what the theorem does not cover, and where it is from."""
    return [*(f"not covered: {one}" for one in outside), *(f"note: {one}" for one in notes)]


def with_method(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the method's options; it receives the method as its argument ``named``."""

    def single(**arguments: Any) -> None:
        found = arguments.pop("named")
        if len(found) > 1:
            groups = "; ".join(one.label for one in found)
            raise MethodOptionError(
                f"the optimizer has parameter groups that differ ({groups}); expected one method"
            )
        command(named=found[0], **arguments)

    functools.update_wrapper(single, command)
    return with_methods(single)


def with_methods(command: Callable[..., None]) -> Callable[..., None]:
    """As :func:`with_method`, for a command that takes several: an optimizer's groups may differ."""
    own = inspect.signature(command)
    options = {**_OPTIONS, **_SOURCES}
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in options.items()
    ]
    rest = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        if parameter.name != "named"
    ]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in options}
        steps = arguments.get("horizon", arguments.get("steps"))  # `bound` has the second
        command(named=read_methods(given, steps), **arguments)

    parameters = [*shared, *rest]
    # What typer reads: the signature with the shared options in front.
    wrapped.__signature__ = own.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return wrapped


def read_methods(given: Mapping[str, Any], horizon: float | None = None) -> tuple[NamedMethod, ...]:
    """The methods that the options mean: several only where an optimizer's parameter groups differ.

    Args:
        given: the options by name, None where absent.
        horizon: the number of steps on the command line, for arguments that need one.

    Raises:
        MethodOptionError: no method, or options that contradict each other.
        AdapterError: the function or what it returns cannot be read.
    """
    from generic_adam.cli.method_sources import from_function, from_recipe

    named = [name for name in _OPTIONS if given.get(name) is not None]
    sources = [name for name in ("recipe", "reference") if given.get(name) is not None]
    flags = {"recipe": "--recipe", "reference": "--from"}
    if len(sources) > 1 or (sources and named):
        raise MethodOptionError(f"{flags[sources[0]]} stands alone: it says all about the method")
    if given.get("steps_per_scheduler_step") is not None and sources != ["reference"]:
        raise MethodOptionError("--steps-per-scheduler-step goes with --from")
    if sources == ["recipe"]:
        return (from_recipe(given["recipe"]),)
    if sources == ["reference"]:
        steps = int(horizon) if horizon is not None and horizon >= 1 and horizon == int(horizon) else None
        return from_function(given["reference"], given["steps_per_scheduler_step"], steps)
    return (read_method(given),)


def read_method(given: Mapping[str, Any]) -> NamedMethod:
    """Build the method that the options mean.

    Args:
        given: the options by name, None where absent; "name" is the catalogue's name.

    Returns:
        The method with a label.

    Raises:
        MethodOptionError: no method, or options that contradict each other.
        MethodError: the catalogue or one of its functions refuses an option.
    """
    from generic_adam.methods import Method, build, info

    chosen = {name: given[name] for name in _OPTIONS if name != "name" and given.get(name) is not None}
    values = {name: _value(value) for name, value in chosen.items()}
    if given["name"] is not None:
        if "alpha" in values:
            raise MethodOptionError(
                f"--alpha goes with --beta and --theta, not with the method {given['name']!r}; use --lr"
            )
        return NamedMethod(info(given["name"]).name, build(given["name"], **values))
    missing = [f"--{name}" for name in ("alpha", "beta", "theta") if name not in values]
    if missing:
        known = "give the name of a method (see `generic-adam methods`), or --alpha, --beta and --theta"
        raise MethodOptionError(f"{known}; missing {', '.join(missing)}")
    extra = [f"--{name.replace('_', '-')}" for name in values if name not in {"alpha", "beta", "theta"}]
    if extra:
        raise MethodOptionError(f"{', '.join(extra)} goes with the name of a method, not with --alpha")
    return NamedMethod("the method", Method(**values))


def _value(value: Any) -> Any:
    """A number where the text is one; the catalogue decides where an expression may stand."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
