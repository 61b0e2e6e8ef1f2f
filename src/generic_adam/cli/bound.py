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
from generic_adam.setting import Source

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.theorems.bounds import Bound

NO_BOUND = 1


_DEFAULTS = {"smoothness": 1.0, "gradient_bound": 1.0, "dimension": 1, "gap": 1.0}
_EPSILON = typer.Option("--epsilon", help="v_0 of the paper's algorithm, the start of the second moment.")


@with_subject
def bound(
    subject: Subject,
    epsilon: Annotated[float | None, _EPSILON] = None,
    delta: Annotated[float, typer.Option(help="The bound holds with probability 1 - delta^(2/3).")] = 0.1,
    theorem: Theorem = None,
    explain: Explain = False,
    budget: Budget = 1.0,
    as_json: AsJson = False,
) -> None:
    """Bound the gradient after T steps: exit code 0 with a bound, 1 where no theorem has one."""
    from dataclasses import replace

    from generic_adam.theorems.bounds import bound_algorithm, informative_from
    from generic_adam.theorems.constants import Constants

    given, steps, setting = subject.algorithm, subject.algorithm.horizon, subject.setting.completed(**_DEFAULTS)
    if steps is None:
        raise TheoremError("bound needs a number of steps: --steps T")
    if setting.convex:
        raise TheoremError("--convex is about regret, of which `check` tells; bound is about the gradient")
    x = given if epsilon is None else replace(given, initial_v=epsilon)
    result = bound_algorithm(x, setting, steps, delta, theorem, budget)
    since, speaks = None, ""
    if result.is_valid and not result.informative:
        since = informative_from(x, setting, theorem, budget)
        speaks = "" if since is None else f"it says something at T = {since:,}"
    if as_json:
        beside = {"algorithm": given.to_dict(), "informative_from": since}
        print_json({**result.to_dict(), **beside})
    else:
        constants = {
            "L": setting.smoothness,
            "G": Constants.of(setting).total_gradient_bound,
            "d": setting.dimension,
            "f(x_1) - f*": setting.gap,
            "v_0": x.initial_v,
            "δ": delta,
            "variance": setting.variance,
            "|x_t|_inf <= X": setting.weights_bound,
            "sup |g_t|": setting.gradient_norm,
        }
        known = side_by_side(f"{name} = {number:g}" for name, number in constants.items() if number is not None)
        assumed = [one.replace("_", " ") for one in _DEFAULTS if setting.facts[one].source is Source.ASSUMED]
        told_assumed = [f"  assumed, as nothing is said of it: {', '.join(assumed)}"] * bool(assumed)
        answered = _bounds(result, speaks) if result.is_valid else _reasons(x, result)
        blocks = {name: [f"  {one}" for one in block] for name, block in answered.items()}
        why = blocks.get("why", [])
        first, second = (
            [*why[:most], *["    --explain says why the others do not"][: len(why) - most]] for most in (3, 1)
        )
        told = {
            "label": [bold(title(x))],
            **blocks,
            "why": why if explain else first,
            "assumed": told_assumed,
            "known": known,
        }
        shorter = (("norm", []), ("likely", []), ("why", second), ("assumed", []))
        say_in_brief(told, () if explain else shorter)
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


def _reasons(x: "Algorithm", result: "Bound") -> dict[str, list[str]]:
    """What to grant, and why no theorem has a bound: what the fewest say first, for that is the nearest."""
    granted = [*grant(x, result.setting)]
    if result.setting.gradient_norm is None and any("gradient_sup" in why for _, why in result.missing):
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
