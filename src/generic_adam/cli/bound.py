"""``generic-adam bound``: a number that the gradient stays below, and whether it beats the trivial one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.answers.json import SCHEMA
from generic_adam.answers.terminal import print_json, print_table, say, show
from generic_adam.answers.words import Line, argument, lines
from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson, Budget, Explain, Subject, Theorem, with_subject
from generic_adam.errors import TheoremError

if TYPE_CHECKING:
    from generic_adam.methods import Algorithm
    from generic_adam.theorems.advice import BestRate
    from generic_adam.theorems.bounds import Bound


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
    """Bound the gradient of a problem whose constants you know, after a number of steps."""
    from dataclasses import replace

    from generic_adam.answers.certificates import sequences
    from generic_adam.theorems.advice import best_rate
    from generic_adam.theorems.bounds import bound_algorithm, informative_from

    given, steps, setting = subject.algorithm, subject.algorithm.horizon, subject.setting.completed(**_DEFAULTS)
    if steps is None:
        raise TheoremError("bound needs a number of steps: --steps T")
    if setting.convex:
        raise TheoremError("--convex is about regret, of which `check` tells; bound is about the gradient")
    x = given if epsilon is None else replace(given, initial_v=epsilon)
    result = bound_algorithm(x, setting, steps, delta, theorem, budget)
    since = informative_from(x, setting, theorem, budget) if result.is_valid and not result.informative else None
    best = best_rate(x, steps, setting) if result.is_valid else None
    if as_json:
        beside = {"informative_from": since, "best_rate": best and best.factor}
        print_json({**result.to_dict(), "schema": SCHEMA, "algorithm": given.to_dict(), **beside})
    else:
        told = lines(result)
        show([*told[:1], *_beside(x, result, since, best), *told[1:]])
        if explain:
            say(*argument(result), *sequences(x))
            rows = [(name, f"{number:.10g}", _MEANINGS.get(name, "")) for name, number in result.constants.items()]
            if rows:
                print_table(("constant", "value", "what it is"), rows, right=("value",))
    raise typer.Exit(Exit.FINE if result.is_valid else Exit.NOT)


def _beside(x: "Algorithm", result: "Bound", since: int | None, best: "BestRate | None") -> "Iterator[Line]":
    """Yield the steps and the rate with which the bound says more, and what may be assumed where there is none."""
    if since is not None:
        yield Line(f"{since:,} steps", "Useful from")
    if best is not None:
        yield Line(f"{best.factor:.2g} x yours for the least bound; for the loss choose lr by validation", "Best lr")
    if result.is_valid:
        return
    asked: dict[str, str] = {}
    if x.clipping is not None and x.clipping.kind == "norm" and result.setting.gradient_norm is None:
        asked[f"--gradient-norm {x.clipping.threshold:g}"] = "clipping never acts"
    elif any(why.kind == "missing" and why.about == "gradient_sup" for _, why in result.missing):
        asked["--gradient-norm G"] = "no gradient is longer than G"
    if str(x.decay) != "0" and result.setting.weights_bound is None:
        asked["--weights-bound X"] = "the weights stay within X"
    if asked:
        yield Line(f"{' and '.join(asked.values())}: {' '.join(asked)}", "To assume")


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
