"""``generic-adam check``: is this method guaranteed to converge, how fast, and what would make it?"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.cli.method_options import MethodOptionError, NamedMethod, with_method

if TYPE_CHECKING:
    from generic_adam.theory.advice import Advice
    from generic_adam.theory.certificate import Certificate
    from generic_adam.theory.criteria import Criterion

CERTIFIED, NOT_CERTIFIED, UNDECIDED = 0, 1, 3
EXIT_CODES = {"certified": CERTIFIED, "not certified": NOT_CERTIFIED, "undecided": UNDECIDED}

_MEANING = {
    "certified": "it converges on every problem of the theorem, with rate {rate}",
    "not certified": "no guarantee from this theorem, which is not to say that it fails on your problem",
    "undecided": "the form of the sequences does not settle it",
}


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("check")
    @with_method
    def check(  # pyright: ignore[reportUnusedFunction]
        named: NamedMethod,
        horizon: Annotated[
            float | None, typer.Option("--horizon", help="Also read the conditions for this many steps.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
        explain: Annotated[bool, typer.Option("--explain", help="Print the whole argument.")] = False,
        criteria: Annotated[
            bool, typer.Option("--all-criteria", help="Also ask the other theorems that are known.")
        ] = False,
        weight_decay: Annotated[
            float, typer.Option("--weight-decay", help="Weight decay in use: is it covered?")
        ] = 0.0,
        clip: Annotated[
            float | None, typer.Option("--clip", help="Gradient clipping in use: is it covered?")
        ] = None,
        factored: Annotated[
            bool, typer.Option("--factored", help="Factored second moments in use: are they covered?")
        ] = False,
        plot: Annotated[
            Path | None,
            typer.Option("--plot", help="Draw the certificate against t into this .svg, .png or .pdf file."),
        ] = None,
        against: Annotated[
            list[str] | None,
            typer.Option("--against", help="With --plot: another method of the catalogue. Can be repeated."),
        ] = None,
    ) -> None:
        """Decide the sufficient condition: exit code 0 certified, 1 not, 3 undecided, 2 bad input."""
        from generic_adam.theory.advice import advise
        from generic_adam.theory.certificate import certify

        steps = whole_steps(horizon)
        certificate = certify(named.method, horizon=steps)
        advice = advise(named.method)[:1]
        others = other_theorems(named, steps) if criteria else ()
        outside = not_covered(weight_decay=weight_decay, clip=clip, factored=factored)
        draw_plot(named, against or (), steps, plot)
        if as_json:
            print_as_json(certificate, advice, others, outside)
        else:
            print_for_people(named.label, certificate, advice, others, outside, explain=explain)
        raise typer.Exit(exit_code(certificate, outside))


def whole_steps(horizon: float | None) -> int | None:
    """A number of steps, which people also write as 1e6."""
    from generic_adam.theory.sums import checked_horizon

    if horizon is None:
        return None
    return checked_horizon(int(horizon) if horizon.is_integer() else horizon, "--horizon")  # type: ignore[arg-type]


def other_theorems(named: NamedMethod, steps: int | None) -> tuple["Criterion", ...]:
    """What the further theorems say; imported only when asked for."""
    from generic_adam.theory.criteria import all_criteria

    return all_criteria(named.method, steps)


def draw_plot(named: NamedMethod, against: Sequence[str], steps: int | None, path: Path | None) -> None:
    """Draw chi_t, the ratio of condition 4 and the bound for the method and those it is compared with."""
    if path is None:
        if against:
            raise MethodOptionError("--against goes with --plot FILE")
        return
    from generic_adam.extras import require

    require("matplotlib")
    from generic_adam.cli.tables import make_console
    from generic_adam.methods import build
    from generic_adam.report.check_plot import LONGEST, draw_check
    from generic_adam.report.style import check_figure_path, write_figure

    check_figure_path(path)
    methods = {named.label: named.method} | {name: build(name) for name in against}
    with make_console(stderr=True).status("drawing"):
        write_figure(draw_check(methods, min(steps or 10**6, LONGEST)), path)
    typer.echo(f"wrote {path}", err=True)


def exit_code(certificate: "Certificate", outside: Sequence[str]) -> int:
    """The verdict as an exit code; what the theorem does not cover is at best undecided."""
    code = EXIT_CODES[str(certificate.verdict)]
    return UNDECIDED if code == CERTIFIED and outside else code


def not_covered(*, weight_decay: float, clip: float | None, factored: bool) -> tuple[str, ...]:
    """What is in use that the theorem does not speak of, each with the reason."""
    found: list[str] = []
    if weight_decay:
        found.append(f"weight decay {weight_decay:g}: the theorem's step has no such term")
    if clip is not None:
        found.append(f"gradient clipping at {clip:g}: a clipped gradient is biased, against (A3)")
    if factored:
        found.append("factored second moments: the theorem's v_t has one entry a coordinate")
    return tuple(found)


def print_as_json(
    certificate: "Certificate",
    advice: Sequence["Advice"],
    criteria: Sequence["Criterion"],
    outside: Sequence[str],
) -> None:
    """The certificate as JSON, with the nearest advice and, where asked for, the other theorems."""
    from generic_adam.cli.tables import print_json

    content: dict[str, Any] = {
        **certificate.to_dict(),
        "advice": [one.to_dict() for one in advice],
        "not_covered": list(outside),
    }
    if criteria:
        content["criteria"] = [criterion.to_dict() for criterion in criteria]
    print_json(content)


def print_for_people(
    label: str,
    certificate: "Certificate",
    advice: Sequence["Advice"],
    criteria: Sequence["Criterion"],
    outside: Sequence[str],
    *,
    explain: bool,
) -> None:
    """The answer in a few lines: the verdict, the conditions, the floor, the nearest certified change."""
    from rich.text import Text

    from generic_adam.cli.tables import answer, make_console

    console = make_console()
    verdict = str(certificate.verdict)
    meaning = _MEANING[verdict].format(rate=certificate.rate)
    console.print(Text.assemble(f"{label}: ", answer(verdict), f" ({meaning})"))
    method = certificate.method
    console.print(Text(f"  α_t = {method.alpha}   β_t = {method.beta}   θ_t = {method.theta}"))
    for condition in certificate.conditions:
        status = answer(str(condition.status))
        status.pad_right(9 - len(status))
        console.print(Text.assemble(f"  {condition.number} ", status, f" {condition.reason}"))
    for line in (
        *floor_lines(certificate),
        *advice_lines(advice),
        *(f"not covered: {one}" for one in outside),
    ):
        console.print(Text(f"  {line}"))
    if certificate.horizon is not None:
        console.print(Text("\n".join(certificate.horizon.lines())))
    if explain:
        console.print(Text("\n" + certificate.explain()))
    if criteria:
        print_criteria(criteria)


def floor_lines(certificate: "Certificate") -> Iterator[str]:
    """For constant theta: the height of the floor that the bound cannot fall below (the corollary)."""
    complement = (1 - certificate.method.theta).constant_value
    if complement is not None and certificate.rate is None:
        yield (
            f"floor: Theorem 1's bound never falls below C' sqrt(1-θ) = {math.sqrt(complement):.4g} C', "
            "however long the run"
        )


def advice_lines(advice: Sequence["Advice"]) -> Iterator[str]:
    """The nearest certified change, in one line."""
    for one in advice:
        yield f"nearest certified: {one.changes} ({one.differs}; rate {one.rate})"


def print_criteria(criteria: Sequence["Criterion"]) -> None:
    """A table of what the other theorems say."""
    from generic_adam.cli.tables import answer, print_table

    print_table(
        ("theorem", "about", "answer", "what follows"),
        [
            (one.name, one.about, "warning" if _warns(one) else answer(str(one.verdict)), one.conclusion)
            for one in criteria
        ],
        title="other theorems",
    )
    print_table(
        ("theorem", "no.", "status", "reason"),
        [
            (one.name, condition.number, answer(str(condition.status)), condition.reason)
            for one in criteria
            for condition in one.conditions
        ],
        title="their hypotheses",
    )


def _warns(criterion: "Criterion") -> bool:
    return criterion.warning and str(criterion.verdict) == "not certified"
