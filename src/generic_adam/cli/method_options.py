"""How a method is given on the command line: by its name in the catalogue, or by its three sequences.

``check``, ``bound`` and ``advise`` share these options; :func:`with_method` adds them to a command.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
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


class MethodOptionError(ValueError):
    """The options do not name one method; the message is one line."""


@dataclass(frozen=True)
class NamedMethod:
    """A method and what the command line called it."""

    label: str
    method: "Method"


def with_method(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the method's options; it receives the method as its argument ``named``."""
    own = inspect.signature(command)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    rest = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        if parameter.name != "named"
    ]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in _OPTIONS}
        command(named=read_method(given), **arguments)

    parameters = [*shared, *rest]
    # What typer reads: the signature with the shared options in front.
    wrapped.__signature__ = own.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return wrapped


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

    chosen = {name: value for name, value in given.items() if value is not None and name != "name"}
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
