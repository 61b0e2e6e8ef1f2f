"""``generic-adam bound``: a number that the gradient stays below, and whether it beats the trivial one."""

from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.answers.terminal import (
    bold,
    print_json,
    print_table,
    say,
    say_in_brief,
    sequences,
    side_by_side,
    title,
)
from generic_adam.cli.check import grant
from generic_adam.cli.subject import AsJson, Budget, Explain, Subject, Theorem, with_subject
from generic_adam.errors import TheoremError

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.theorems.bounds import Bound
    from generic_adam.theorems.theorem import Assumptions

NO_BOUND = 1


def _constant(flag: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(flag, help=text, rich_help_panel="The problem")


_GRADIENT_BOUND = _constant("--gradient-bound", "G: E|g_t|^2 <= G^2 given the past (--gradient-norm, or 1).")
_EPSILON = _constant("--epsilon", "v_0 of the paper's algorithm, the start of the second moment.")


@with_subject
def bound(
    subject: Subject,
    gradient_bound: Annotated[float | None, _GRADIENT_BOUND] = None,
    dimension: Annotated[float, _constant("--dimension", "d, the number of parameters.")] = 1.0,
    gap: Annotated[float, _constant("--gap", "f(x_1) - f*.")] = 1.0,
    epsilon: Annotated[float | None, _EPSILON] = None,
    delta: Annotated[float, typer.Option(help="The bound holds with probability 1 - delta^(2/3).")] = 0.1,
    theorem: Theorem = None,
    explain: Explain = False,
    budget: Budget = 1.0,
    as_json: AsJson = False,
) -> None:
    """Bound the gradient after T steps: exit code 0 with a bound, 1 where no theorem has one."""
    from dataclasses import asdict, replace

    from generic_adam.theorems.bounds import bound_algorithm, informative_from
    from generic_adam.theorems.certificate import without_idle_clipping
    from generic_adam.theorems.problem import Problem

    given, assume, steps = subject.algorithm, subject.assume, subject.algorithm.horizon
    if steps is None:
        raise TheoremError("bound needs a number of steps: --steps T")
    if assume.convex:
        raise TheoremError("--convex is about regret, of which `check` tells; bound is about the gradient")
    x, _ = without_idle_clipping(given, assume)
    x = x if epsilon is None else replace(x, initial_v=epsilon)
    largest = assume.gradient_norm
    problem = Problem(
        1.0 if assume.smoothness is None else assume.smoothness,
        gradient_bound if gradient_bound is not None else 1.0 if largest is None else largest,
        dimension,  # type: ignore[arg-type]  # a whole number, which Problem checks
        gap,
        x.initial_v or 1e-8,
        variance=0.0 if assume.full_batch else None,
        box=assume.weights_bound,
        gradient_sup=largest,
    )
    result = bound_algorithm(x, problem, steps, delta, theorem, budget)
    since, speaks = None, ""
    if result.is_valid and not result.informative:
        since = informative_from(x, problem, theorem, budget)
        speaks = "" if since is None else f"it says something at T = {since:,}"
    if as_json:
        beside = {"problem": asdict(problem), "algorithm": given.to_dict(), "informative_from": since}
        print_json({**result.to_dict(), **beside})
    else:
        idle = given.clipping if x.clipping is None else None
        provided = [] if idle is None else [f"  provided no gradient is longer than {idle.threshold:g}:"]
        constants = {
            "L": problem.smoothness,
            "G": problem.total_gradient_bound,
            "d": problem.dimension,
            "f(x_1) - f*": problem.gap,
            "v_0": x.initial_v,
            "δ": delta,
            "variance": problem.variance,
            "|x_t|_inf <= X": problem.box,
            "sup |g_t|": largest,
        }
        known = side_by_side(f"{name} = {number:g}" for name, number in constants.items() if number is not None)
        answered = _bounds(result, speaks) if result.is_valid else _reasons(x, result, assume)
        blocks = {name: [f"  {one}" for one in block] for name, block in answered.items()}
        why = blocks.get("why", [])
        first, second = (
            [*why[:most], *["    --explain says why the others do not"][: len(why) - most]] for most in (3, 1)
        )
        told = {"label": [bold(title(x)), *provided], **blocks, "why": why if explain else first, "known": known}
        say_in_brief(told, () if explain else (("norm", []), ("likely", []), ("why", second)))
        if explain:
            _print_constants(x, result)
    raise typer.Exit(0 if result.is_valid else NO_BOUND)


def _bounds(result: "Bound", speaks: str) -> dict[str, list[str]]:
    """The statement with the trivial bound beside it, what it says with some probability, and when it speaks."""
    from generic_adam.schedules.balls import rounded_up

    unlikely = rounded_up(result.delta ** (2 / 3), 4)
    likely = f"|grad f(x_tau)|^2 <= {rounded_up(result.value, 6)} with probability at least 1 - {unlikely}"
    bound, trivial, *norm = result.statement.split("; ")
    return {"bound": [bound, trivial], "norm": norm, "likely": [likely], "speaks": [speaks] * bool(speaks)}


def _reasons(x: "Algorithm", result: "Bound", assume: "Assumptions") -> dict[str, list[str]]:
    """What to grant, and why no theorem has a bound: what the fewest say first, for that is the nearest."""
    granted = [*grant(x, assume)]
    if assume.gradient_norm is None and any("gradient_sup" in why for _, why in result.missing):
        granted.append("if no gradient is longer than some G: add --gradient-norm G")
    theorems: dict[str, list[str]] = {}
    for name, why in result.missing:
        theorems.setdefault(why, []).append(name)
    nearest = sorted(theorems.items(), key=lambda one: len(one[1]))
    none = f"after {result.steps:,} steps: no bound by any theorem that was asked"
    return {"none": [none, *granted], "why": [f"  {', '.join(names)}: {why}" for why, names in nearest]}


def _print_constants(x: "Algorithm", result: "Bound") -> None:
    """The sequences, what the other theorems say, and the numbers that the bound is made of."""
    from generic_adam.schedules.balls import rounded_up

    say(*sequences(x, full=True))
    if result.others:
        say(f"  other theorems: {', '.join(f'{name} {rounded_up(number, 6)}' for name, number in result.others)}")
    rows = [(name, f"{number:.10g}", _MEANINGS.get(name, "")) for name, number in result.constants.items()]
    if rows:
        print_table(("constant", "value", "what it is"), rows, right=("value",))


_MEANINGS = {
    "gap": "f(x_1) - f*",
    "X_w": "the bound in the preconditioned norm",
    "noise": "the part of the numerator that the gradients' noise makes",
    "drift": "the part that the length of the steps makes",
    "decay": "the part that weight decay makes",
    "jump": "the part that the running maximum makes",
    "weight": "the sum of the steps' weights",
    "divisor": "what divides the numerator",
    "s": "the share of the descent spent on the noise",
    "zeta": "the share spent on eps",
    "phi": "the share spent on weight decay",
    "s1": "turns X_w into the l1 norm",
    "s2": "turns X_w into the l2 norm",
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
    "sum": "sum of alpha_t sqrt(1 - theta_t), t <= T",
    "alpha_last": "alpha_T",
}
