"""``generic-adam verify``: is the optimizer that runs the algorithm that you think it is?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson
from generic_adam.errors import OptimizerError

_CLAIM = "What you believe it to be"


def _claimed(flag: str, text: str, metavar: str | None = None) -> typer.models.OptionInfo:
    return typer.Option(flag, help=text, metavar=metavar, rich_help_panel=_CLAIM, show_default=False)


def verify(
    reference: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="CODE",
            help="MODULE:FUNCTION or FILE.py:FUNCTION that returns your optimizer, (optimizer, scheduler), or an "
            "object with named, optimizer, scheduler, step, resume. Your code runs.",
        ),
    ],
    algorithm: Annotated[str | None, _claimed("--as", "Adam, AdamW, NAdam, RMSprop, Adagrad or SGD.", "NAME")] = None,
    lr: Annotated[str | None, _claimed("--lr", 'A number, or a text in t: "3e-4 * min(1, t/100)".')] = None,
    betas: Annotated[str | None, _claimed("--betas", "Both at once: 0.9,0.999.", "B1,B2")] = None,
    eps: Annotated[float | None, _claimed("--eps", "What is added to the root.")] = None,
    weight_decay: Annotated[float | None, _claimed("--weight-decay", "The weight decay (AdamW: 0.01).")] = None,
    momentum: Annotated[float | None, _claimed("--momentum", "Of SGD and RMSprop.")] = None,
    clip_norm: Annotated[float | None, _claimed("--clip", "Your step clips gradients to this norm.")] = None,
    accumulate: Annotated[int | None, _claimed("--accumulate", "Micro-batches that your step averages.")] = None,
    state_dtype: Annotated[str | None, _claimed("--state-dtype", "The format of the moments.", "DTYPE")] = None,
    amsgrad: Annotated[bool, _claimed("--amsgrad", "The second moment is its maximum.")] = False,
    horizon: Annotated[int | None, _claimed("--steps", "Look at so many steps, 40 or more.", "T")] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="CHECKPOINT", help="Also say what loading this file of torch.save changes."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare your optimizer, step by step, with the algorithm that it is called."""
    from generic_adam.adapters import load
    from generic_adam.answers.terminal import print_json, say
    from generic_adam.verify import front

    if weight_decay is None and str(algorithm).lower() == "adamw":
        weight_decay = 0.01  # torch's default, which is what the name promises
    given = {
        "algorithm": algorithm,
        "lr": _number_or_text(lr),
        "betas": None if betas is None else _two(betas),
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "clip_norm": clip_norm,
        "accumulate": accumulate,
        "state_dtype": state_dtype,
        "amsgrad": amsgrad or None,
        "horizon": horizon,
    }
    claim = {name: value for name, value in given.items() if value is not None}
    if claim and algorithm is None:
        raise OptimizerError(f"{', '.join(claim)}: a claim begins with its algorithm, --as adamw")
    found = front.verify(lambda: load(reference), claim=claim or None, checkpoint=resume)
    if as_json:
        print_json(found.to_dict())
    else:
        say(*str(found).splitlines())
    if found.agrees is not True:
        raise typer.Exit(Exit.NOT if found.agrees is False else Exit.UNKNOWN)


def _number_or_text(given: str | None) -> Any:
    """Read a number, or a text of the library's own grammar: nothing that is typed is run."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def _two(given: str) -> tuple[Any, ...]:
    parts = tuple(_number_or_text(one.strip()) for one in given.split(","))
    if len(parts) != 2:
        raise OptimizerError(f"--betas is {given!r}; expected two numbers, such as 0.9,0.999")
    return parts
