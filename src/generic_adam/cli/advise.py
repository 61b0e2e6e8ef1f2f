"""``generic-adam advise``: what would be guaranteed more, what changes, and what that costs the run."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from generic_adam.answers.terminal import (
    answer,
    bold,
    make_console,
    print_json,
    print_table,
    say,
    sequences,
    title,
    write_plot,
)
from generic_adam.cli.app import INCOMPLETE
from generic_adam.cli.check import verdict_lines
from generic_adam.cli.subject import AsJson, Budget, Plot, Subject, with_subject
from generic_adam.errors import MethodError

if TYPE_CHECKING:
    from generic_adam.theorems.advice import Advice, Advices
    from generic_adam.theorems.certificate import Certificate
    from generic_adam.theorems.horizon import HorizonAnswer

_KEEP = "Up to which step it stays yours (three quarters of the run)."


@with_subject
def advise(
    subject: Subject,
    keep: Annotated[float | None, typer.Option(metavar="STEPS", help=_KEEP)] = None,
    budget: Budget = 1.0,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Algorithms near yours that are guaranteed more, nearest first: exit code 0, or 4 where not all were tried."""
    from generic_adam.schedules.sums import whole_steps
    from generic_adam.theorems.advice import advise_algorithm
    from generic_adam.theorems.certificate import certify_algorithm

    kept = None if keep is None else whole_steps(keep, "--keep")
    parts = subject.algorithm.parts
    found: list[tuple[Certificate, Advices]] = []
    with make_console(stderr=True).status("asking the theorems"):
        for x in parts:
            certificate = certify_algorithm(x, setting=subject.setting, budget=budget)
            found.append((certificate, advise_algorithm(x, x.horizon, kept, budget, subject.setting)))
    code = 0 if all(advice.complete for _, advice in found) else INCOMPLETE
    if plot is not None:
        from generic_adam.answers.plots import LONGEST, draw_sequences

        if len(parts) > 1:
            raise MethodError("--plot draws one set of parameter groups; these have sequences of their own")
        methods = {"yours": subject.algorithm.method} | {
            f"proposal {n}": one.method for n, one in enumerate(found[0][1], 1)
        }
        write_plot(plot, lambda: draw_sequences(methods, min(subject.algorithm.horizon or 10**6, LONGEST)))
    if as_json:
        plain = [{**c.to_dict(), **advice.to_dict()} for c, advice in found]
        print_json(plain[0] if len(plain) == 1 else {"parts": plain})
        raise typer.Exit(code)
    for number, (certificate, advice) in enumerate(found):
        say(*[""] * bool(number), bold(title(certificate.algorithm, is_part=len(parts) > 1)))
        _print(certificate, advice)
    if len(parts) > 1:
        say(
            "", "Each set of groups is answered alone; together they are covered if their rates alone differ, in scale."
        )
    raise typer.Exit(code)


def _print(certificate: "Certificate", found: "Advices") -> None:
    """What is guaranteed as it is, then each proposal: what changes, what that guarantees, its price."""
    say(*(line for block in verdict_lines(certificate).values() for line in block))
    if not found:
        certified = str(certificate.verdict) == "certified"
        say("  nothing to change" if certified else "  no change that helps was found")
    if not found.complete:
        say(f"  not everything was tried: {found.spent[0]}")
    for number, one in enumerate(found, start=1):
        known = one.certificate
        for_ever = Text.assemble(f"   differs {one.differs}; for ever: ", answer(known.verdict), known.terms)
        run = [] if one.after is None else [f"   {one.after.statement}"]
        price = [] if one.price is None else [f"   price: the summed step size is {_percent(one.price.kept)} of yours"]
        say("", bold(f"{number}. {one.changes}"), for_ever, *run, *price, *sequences(one.algorithm, 3))
    if found:
        say("")
        if found[0].before is None:
            say("The price, and how long it had better stay yours, depend on the length of the run: add --steps T.")
        else:
            _print_prices(found[0].before, found)


def _print_prices(before: "HorizonAnswer", found: "Sequence[Advice]") -> None:
    """The numbers before and after each change, and the learning rate against yours along the run."""
    numbers = ["noise", *(["decay"] if before.decay else []), "gap", "drift"]
    rows = [("yours", *_shown(before, numbers), *["1"] * 3, "100%")]
    for number, one in enumerate(found, start=1):
        if one.price is not None and one.after is not None:
            rates = (_ratio(ratio) for _, ratio in one.price.rates)
            rows.append((str(number), *_shown(one.after, numbers), *rates, _percent(one.price.kept)))
    headings = ("", *numbers, "lr at 10%", "50%", "100%", "summed")
    print_table(headings, rows, title=f"Over {before.steps:,} steps", right=headings[1:])
    from_zero = " (from 0: yours is 0)" if any("from 0" in row for row in rows) else ""
    provided = f", all provided {before.provided}" if before.provided else ""
    say(f"lr: the learning rate over yours there{from_zero}; summed: the summed step size over yours{provided}.")


def _ratio(number: float) -> str:
    return "unknown" if math.isnan(number) else "from 0" if math.isinf(number) else f"{number:.2g}"


def _percent(share: float) -> str:
    return "an unknown share" if math.isnan(share) else f"{100 * share:.3g}%"


def _shown(reading: "HorizonAnswer", names: Sequence[str]) -> list[str]:
    from generic_adam.schedules.balls import rounded_up

    numbers = (getattr(reading, name) for name in names)
    return ["none" if number is None else rounded_up(number, 3) for number in numbers]
