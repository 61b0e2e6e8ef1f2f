"""``generic-adam bound``: the bounds of Theorems 1 and 2 with every constant."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.method_options import NamedMethod, remarks, with_method

if TYPE_CHECKING:
    from generic_adam.theorems.bound import Bound
    from generic_adam.theorems.problem import Problem

_PANEL = "The problem"
NO_BOUND = 1


def _constant(flag: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(flag, help=text, rich_help_panel=_PANEL)


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""

    @app.command("bound")
    @with_method
    def bound(  # pyright: ignore[reportUnusedFunction]
        named: NamedMethod,
        steps: Annotated[float, typer.Option("--steps", help="T, the number of steps.")],
        smoothness: Annotated[
            float, _constant("--smoothness", "L, the gradient's Lipschitz constant.")
        ] = 1.0,
        gradient_bound: Annotated[
            float, _constant("--gradient-bound", "G: E|g_t|^2 <= G^2 whatever the past.")
        ] = 1.0,
        dimension: Annotated[float, _constant("--dimension", "d, the number of parameters.")] = 1.0,
        gap: Annotated[float, _constant("--gap", "f(x_1) - f*.")] = 1.0,
        epsilon: Annotated[float, _constant("--epsilon", "v_0, the start of the second moment.")] = 1e-8,
        delta: Annotated[
            float, typer.Option("--delta", help="Theorem 2 holds with probability 1 - delta^(2/3).")
        ] = 0.1,
        theta_prime: Annotated[
            float | None,
            typer.Option("--theta-prime", help="theta', between beta^2 and theta; by default the best."),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    ) -> None:
        """Bound the gradient after T steps: exit code 0 with a bound, 1 if a hypothesis is missing."""
        from generic_adam.theorems.bound import bound as evaluate
        from generic_adam.theorems.problem import Problem

        problem = Problem(smoothness, gradient_bound, dimension, gap, epsilon)  # type: ignore[arg-type]
        result = evaluate(named.method, problem, steps, delta, theta_prime)  # type: ignore[arg-type]
        if as_json:
            print_as_json(named, problem, result)
        else:
            print_for_people(named, problem, result)
        raise typer.Exit(0 if result.is_valid else NO_BOUND)


def print_as_json(named: NamedMethod, problem: "Problem", result: "Bound") -> None:
    """The bound, the problem and the method as JSON; an infinite number is null."""
    from dataclasses import asdict

    from generic_adam.cli.tables import print_json

    method = named.method
    sequences = {"alpha": str(method.alpha), "beta": str(method.beta), "theta": str(method.theta)}
    beside = {"not_covered": list(named.outside), "notes": list(named.notes)}
    print_json({**result.to_dict(), "problem": asdict(problem), "method": sequences, **beside})


def print_for_people(named: NamedMethod, problem: "Problem", result: "Bound") -> None:
    """The statement, and a table of every constant."""
    from rich.text import Text

    from generic_adam.cli.tables import make_console, print_table

    method = named.method
    console = make_console()
    console.print(Text(f"{named.label}: {result.statement}"))
    console.print(Text(f"  α_t = {method.alpha}   β_t = {method.beta}   θ_t = {method.theta}"))
    console.print(
        Text(
            f"  L = {problem.smoothness:g}   G = {problem.total_gradient_bound:g}   "
            f"d = {problem.dimension:g}   "
            f"f(x_1) - f* = {problem.gap:g}   ε = {problem.epsilon:g}   T = {result.steps:,}   "
            f"δ = {result.delta:g}"
        )
    )
    if result.estimate is not None:
        low, high = result.estimate.lower, result.estimate.upper
        sides = f"is between {low:.6g} and {high:.6g}, and " if math.isfinite(high) else ""
        console.print(Text(f"  θ stays below 1: B/δ {sides}never falls below {result.estimate.floor:.6g}"))
    for line in remarks(named.outside, named.notes):
        console.print(Text(f"  {line}"))
    if result.constants is not None:
        names = {"theta_prime": "θ'", "gamma": "γ", "below": "N", "C_prime": "C'", "C1_log": "log C1"}
        rows = [
            (names.get(name, name), f"{value:,}" if name == "below" else f"{value:.10g}", _MEANINGS[name])
            for name, value in result.constants.to_dict().items()
        ]
        rows.append(("sum", f"{result.total:.10g}", "sum of alpha_t sqrt(1 - theta_t), t <= T"))
        rows.append(("T alpha_T", f"{result.steps * result.alpha_last:.10g}", "what divides C + C' sum"))
        print_table(("constant", "value", "what it is"), rows, right=("value",))


_MEANINGS = {
    "theta_prime": "the free number between beta^2 and theta",
    "gamma": "beta^2 / theta'",
    "C0": "how far chi_t rises above its past minimum (R3)",
    "C1": "product of theta_j / theta' over the theta_j below theta'",
    "C1_log": "its logarithm",
    "below": "how many theta_j lie below theta'",
    "C2": "momentum's cost",
    "C3": "cost of a step's noise",
    "C": "the part that T alpha_T divides alone",
    "C_prime": "the part that multiplies the sum",
}
