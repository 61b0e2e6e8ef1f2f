"""``generic-adam check``: is this method guaranteed to converge, how fast, and what would make it?"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.cli.method_options import MethodOptionError, NamedMethod, remarks, with_methods

if TYPE_CHECKING:
    from generic_adam.theorems.advice import Advice
    from generic_adam.theorems.certificate import Certificate
    from generic_adam.theorems.criteria import Criterion

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
    @with_methods
    def check(  # pyright: ignore[reportUnusedFunction]
        named: tuple[NamedMethod, ...],
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
        steps = whole_steps(horizon)
        beside = not_covered(weight_decay=weight_decay, clip=clip, factored=factored)
        answers = [find_answer(one, steps or one.horizon, beside, criteria=criteria) for one in named]
        draw_plot(named, against or (), steps, plot)
        if as_json:
            print_as_json(answers)
        else:
            for number, one in enumerate(answers):
                print_for_people(one, explain=explain, apart=number > 0)
        raise typer.Exit(worst(answers).exit_code)


@dataclass(frozen=True)
class Answer:
    """What is known of one method.

    Attributes:
        named: the method.
        certificate: what the sufficient condition says about it.
        advice: the nearest certified change.
        criteria: what other theorems say, where they were asked.
        outside: what is in use that the theorem does not cover.
    """

    named: NamedMethod
    certificate: "Certificate"
    advice: Sequence["Advice"]
    criteria: Sequence["Criterion"]
    outside: Sequence[str]

    @property
    def verdict(self) -> str:
        """The certificate's, at best undecided with what the theorem does not cover."""
        found = str(self.certificate.verdict)
        return "undecided" if found == "certified" and self.outside else found

    @property
    def exit_code(self) -> int:
        """0 certified, 1 not certified, 3 undecided."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Plain types: the certificate's keys and a few more."""
        content: dict[str, Any] = {
            **self.certificate.to_dict(),
            "verdict": self.verdict,
            "label": self.named.label,
            "advice": [one.to_dict() for one in self.advice],
            "not_covered": list(self.outside),
            "notes": list(self.named.notes),
        }
        if self.criteria:
            content["criteria"] = [criterion.to_dict() for criterion in self.criteria]
        return content


def find_answer(named: NamedMethod, steps: int | None, beside: Sequence[str], *, criteria: bool) -> Answer:
    """Decide one method."""
    from generic_adam.theorems.advice import advise
    from generic_adam.theorems.certificate import certify

    return Answer(
        named,
        certify(named.method, horizon=steps),
        advise(named.method)[:1],
        other_theorems(named, steps) if criteria else (),
        (*named.outside, *beside),
    )


def worst(answers: Sequence[Answer]) -> Answer:
    """The answer that decides for all: not certified before undecided before certified."""
    return min(answers, key=lambda one: (NOT_CERTIFIED, UNDECIDED, CERTIFIED).index(one.exit_code))


def whole_steps(horizon: float | None) -> int | None:
    """A number of steps, which people also write as 1e6."""
    from generic_adam.theorems.sums import checked_horizon

    if horizon is None:
        return None
    return checked_horizon(int(horizon) if horizon.is_integer() else horizon, "--horizon")  # type: ignore[arg-type]


def other_theorems(named: NamedMethod, steps: int | None) -> tuple["Criterion", ...]:
    """What the further theorems say; imported only when asked for."""
    from generic_adam.theorems.criteria import all_criteria

    return all_criteria(named.method, steps)


def draw_plot(
    named: Sequence[NamedMethod], against: Sequence[str], steps: int | None, path: Path | None
) -> None:
    """Draw chi_t, the ratio of condition 4 and the bound for the methods and those they are compared with."""
    if path is None:
        if against:
            raise MethodOptionError("--against goes with --plot FILE")
        return
    from generic_adam.cli.tables import make_console
    from generic_adam.methods import build
    from generic_adam.report.check_plot import LONGEST, draw_check
    from generic_adam.report.style import check_figure_path, write_figure

    check_figure_path(path)
    methods = {one.label: one.method for one in named} | {name: build(name) for name in against}
    with make_console(stderr=True).status("drawing"):
        write_figure(draw_check(methods, min(steps or 10**6, LONGEST)), path)
    typer.echo(f"wrote {path}", err=True)


def not_covered(*, weight_decay: float, clip: float | None, factored: bool) -> tuple[str, ...]:
    """What is in use that the theorem does not speak of, each with the reason."""
    if not 0 <= weight_decay < math.inf:
        raise MethodOptionError(f"--weight-decay is {weight_decay!r}, expected a number of at least 0")
    if clip is not None and not 0 < clip < math.inf:
        raise MethodOptionError(f"--clip is {clip!r}, expected a positive number")
    found: list[str] = []
    if weight_decay:
        found.append(f"weight decay {weight_decay:g}: the theorem's step has no such term")
    if clip is not None:
        found.append(f"gradient clipping at {clip:g}: a clipped gradient is biased, against (A3)")
    if factored:
        found.append("factored second moments: the theorem's v_t has one entry a coordinate")
    return tuple(found)


def print_as_json(answers: Sequence[Answer]) -> None:
    """The answer as JSON: that of the worst where there are several, and all of them in "parts"."""
    from generic_adam.cli.tables import print_json

    content = worst(answers).to_dict()
    if len(answers) > 1:
        content["parts"] = [one.to_dict() for one in answers]
    print_json(content)


def print_for_people(found: Answer, *, explain: bool, apart: bool) -> None:
    """The answer in a few lines: the verdict, the conditions, the floor, the nearest certified change."""
    from rich.text import Text

    from generic_adam.cli.tables import answer, make_console

    certificate = found.certificate
    console = make_console()
    if apart:
        console.print()
    meaning = _MEANING[found.verdict].format(rate=certificate.rate)
    if found.verdict != certificate.verdict:
        meaning = f"certified as a method, with rate {certificate.rate}; what it comes with is not covered"
    console.print(Text.assemble(f"{found.named.label}: ", answer(found.verdict), f" ({meaning})"))
    method = certificate.method
    console.print(Text(f"  α_t = {method.alpha}   β_t = {method.beta}   θ_t = {method.theta}"))
    for condition in certificate.conditions:
        status = answer(str(condition.status))
        status.pad_right(9 - len(status))
        console.print(Text.assemble(f"  {condition.number} ", status, f" {condition.reason}"))
    for line in (
        *floor_lines(certificate),
        *advice_lines(found.advice),
        *remarks(found.outside, found.named.notes),
    ):
        console.print(Text(f"  {line}"))
    if certificate.horizon is not None:
        console.print(Text("\n".join(certificate.horizon.lines())))
    if explain:
        console.print(Text("\n" + certificate.explain()))
    if found.criteria:
        print_criteria(found.criteria)


def floor_lines(certificate: "Certificate") -> Iterator[str]:
    """Where the ratio of condition 4 has a positive limit: the floor that Theorem 1's bound tends to.

    Without (R1) to (R3), theta > beta^2 included, there is no bound and so no floor of one.
    """
    theta, beta = certificate.method.theta, certificate.method.beta.constant_value
    complement = (1 - theta).constant_value
    if complement is None or (beta is not None and theta(1) <= beta**2):
        return
    *first_three, fourth = certificate.conditions
    bounded = all(str(condition.status) == "holds" for condition in first_three)
    witness = fourth.witness
    if bounded and isinstance(witness, str) and witness.startswith("ratio -> "):
        limit, root = witness.removeprefix("ratio -> "), math.sqrt(complement)
        yield (
            f"floor: Theorem 1's bound tends to no less than {limit} C' (sqrt(1-θ) = {root:.4g}), "
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
        [(one.name, one.about, answer(_word(one)), one.conclusion) for one in criteria],
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


def _word(criterion: "Criterion") -> str:
    """The verdict, or whether a theorem that can only warn does."""
    if not criterion.warning:
        return str(criterion.verdict)
    statuses = {str(one.status) for one in criterion.conditions}
    return "no warning" if "fails" in statuses else "undecided" if "undecided" in statuses else "warning"
