"""``generic-adam advise``: what to change for a run, what that costs, and whether it is worth it."""

from typing import Annotated

import typer

from generic_adam.answers.terminal import bold, make_console, print_json, say, show
from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson, Budget, Subject, count, with_subject
from generic_adam.errors import MethodError

_PATCH = "Print the lines to paste for the first change, in the framework that was read, and nothing else."
_KEEP = "Up to which step a change for the long run leaves it as it is (three quarters of the run)."


@with_subject
def advise(
    subject: Subject,
    keep: Annotated[str | None, typer.Option(metavar="STEPS", help=_KEEP)] = None,
    as_patch: Annotated[bool, typer.Option("--patch", help=_PATCH)] = False,
    change: Annotated[int, typer.Option("--change", metavar="N", help="With --patch: which change.")] = 1,
    budget: Budget = 1.0,
    as_json: AsJson = False,
) -> None:
    """Suggest small changes that give a stronger guarantee, with their cost."""
    from generic_adam.answers.advice import advice_lines, patch
    from generic_adam.answers.certificates import title
    from generic_adam.answers.json import document
    from generic_adam.schedules.sums import whole_steps
    from generic_adam.theorems.advice import advise_algorithm

    parts = subject.algorithm.parts
    kept = None if keep is None else whole_steps(count("--keep", keep, parts[0].horizon), "--keep")
    with make_console(stderr=True).status("asking the theorems"):
        found = [advise_algorithm(x, x.horizon, kept, budget, subject.setting) for x in parts]
    if as_patch:
        for one in found:
            if not 1 <= change <= max(1, len(one)):
                raise MethodError(f"--change: expected a number from 1 to {len(one)}, got {change}")
            print(patch(one[change - 1], subject.framework, is_part=len(parts) > 1) if one else "# nothing to change")
    elif as_json:
        print_json(document(found[0]) if len(parts) == 1 else {"parts": [document(one) for one in found]})
    else:
        for number, (x, advices) in enumerate(zip(parts, found, strict=True)):
            say(*[""] * bool(number), bold(title(x, is_part=len(parts) > 1)))
            show(advice_lines(advices, setting=subject.setting, seen=subject.seen))
        if len(parts) > 1:
            alone = (
                "Each set of groups is answered alone; together they are covered if only their lr differs, in scale."
            )
            say("", alone)
    if subject.setting.loss in {"rl", "gan"}:
        raise typer.Exit(Exit.UNKNOWN)
    raise typer.Exit(0 if all(one.complete for one in found) else Exit.INCOMPLETE)
