r"""What is guaranteed after T steps, from the sequences alone: noise, gap and drift (remark W.6).

For every problem, with :math:`G_1` the sum over the coordinates of the bounds on their gradients,

.. math::

    \frac{X_w}{G_1} \le c_{\text{noise}} + c_{\text{gap}} \frac{f(x_1) - f^*}{G_1}
    + c_{\text{drift}} \frac{d L}{G_1}, \qquad \mathbb{E}\|\nabla f(x_\tau)\|_1 \le G_1 \sqrt{X_w / G_1}.

Without any theorem the left side is at most 1: a :math:`c_{\text{noise}} \ge 1` says nothing on any problem
(*silent*), one below 1 says something on problems with a small enough gap and smoothness (*informative*).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import as_schedule
from generic_adam.theorems.decay import decay_bound
from generic_adam.theorems.epsilon import adam_terms, heavy_ball_terms
from generic_adam.theorems.floor import TYPICAL_GRADIENT, constant_floor, heavy_ball_floor, three_numbers
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import LONGEST, Sequences
from generic_adam.theorems.sweep import Form
from generic_adam.theorems.theorem import Assumptions, beyond

_NOTHING = as_schedule(0)
_ALLOWED = frozenset({"initial_v", "eps", "nesterov", "heavy_ball", "decay"})
# What is set aside where no theorem covers it, so that the sequences' own numbers can still be told.
_SET_ASIDE: dict[str, Any] = {"clipping": None, "factored": False, "centered": False, "outside": ()}


@dataclass(frozen=True)
class HorizonAnswer:
    """What is guaranteed after a number of steps.

    Attributes:
        steps: T.
        theorem: the letter of the theorem that the numbers are of; None where none covers the algorithm.
        noise: c_noise, what the gradients' noise leaves of the trivial bound.
        gap: c_gap, what multiplies (f(x_1) - f*) / G_1.
        drift: c_drift, what multiplies d L / G_1.
        decay: what decoupled decay adds for weights of the asserted size; None where none is asserted.
        floor: what c_noise tends to however long the run is, where beta_t and theta_t are constant.
        outside: what no theorem covers, one phrase each; the numbers, where there are some, set it aside.
        bound: the smallest bound on the problem that was given.
    """

    steps: int
    theorem: str | None = None
    noise: float | None = None
    gap: float | None = None
    drift: float | None = None
    decay: float | None = 0.0
    floor: float | None = None
    outside: tuple[str, ...] = ()
    bound: Any = None

    @property
    def relative(self) -> float | None:
        """The share of the trivial bound that noise and decay leave, in the preconditioned norm."""
        return None if self.noise is None or self.decay is None else self.noise + self.decay

    @property
    def informative(self) -> bool:
        """Whether noise and decay leave less than the trivial bound: it then speaks on some problem."""
        return not self.outside and self.relative is not None and self.relative < 1

    @property
    def statement(self) -> str:
        """One sentence: what is guaranteed for the run, or why nothing is."""
        run = f"for your {self.steps:,} steps"
        if self.outside:
            beside = "" if self.noise is None else f"; but for that, the noise leaves {self._leaves}"
            return f"{run}: no theorem covers it ({'; '.join(self.outside)}){beside}"
        if self.decay is None:
            return f"{run}: decoupled decay needs a bound on the weights; but for it, the noise leaves {self._leaves}"
        if not self.informative:
            return f"{run}: silent (noise and decay leave {self._leaves} of what holds without a theorem)"
        return f"{run}: guaranteed to within {self._leaves} of what holds without a theorem (informative)"

    @property
    def _leaves(self) -> str:
        number = self.noise if self.relative is None else self.relative
        return "nothing" if number is None else f"{number:.2g}" if number < 100 else "far more than all"

    def lines(self) -> list[str]:
        """The answer with its numbers, one line each."""
        if self.noise is None:
            return [self.statement]
        numbers = (
            f"  noise {self.noise:.4g}, gap {self.gap:.4g}, drift {self.drift:.4g} (Theorem {self.theorem})"
        )
        floor = (
            []
            if self.floor is None
            else [f"  noise never falls below {self.floor:.4g}, however long the run"]
        )
        return [self.statement, numbers, *floor]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only; a number that a double cannot hold is None."""
        numbers = {name: _finite(getattr(self, name)) for name in ("noise", "gap", "drift", "decay", "floor")}
        return {
            "steps": self.steps,
            "theorem": self.theorem,
            **numbers,
            "informative": self.informative,
            "statement": self.statement,
            "outside": list(self.outside),
        }


def read_horizon(x: Algorithm, steps: int, assume: Assumptions | None = None) -> HorizonAnswer:
    """The three numbers of an algorithm after T steps; what no theorem covers is named, and set aside.

    Raises:
        TheoremError: the number of steps is no whole number >= 1.
    """
    last = whole_steps(steps)
    outside = beyond(x, _ALLOWED)
    bare = replace(x, **_SET_ASIDE)
    if last > LONGEST:
        return HorizonAnswer(last, outside=(*outside, f"the recursions are run up to {LONGEST:,} steps"))
    if beyond(bare, _ALLOWED):
        return HorizonAnswer(last, outside=outside)
    try:
        return replace(_numbers(bare, last, assume or Assumptions()), outside=outside)
    except TheoremError as error:
        return HorizonAnswer(last, outside=(*outside, str(error)))


def whole_steps(steps: float) -> int:
    """A number of steps as an int; people also write 1e6.

    Raises:
        TheoremError: it is no whole number >= 1.
    """
    if isinstance(steps, bool) or not (math.isfinite(steps) and steps >= 1 and steps == math.floor(steps)):
        raise TheoremError(f"horizon: expected a whole number of steps >= 1, got {steps}")
    return int(steps)


def _numbers(x: Algorithm, steps: int, assume: Assumptions) -> HorizonAnswer:
    if x.initial_v == 0 and x.eps == _NOTHING:
        raise TheoremError("v_0 = 0 and nothing is added: the first step may divide by 0")
    sequences = Sequences.of_algorithm(x, steps)
    numbers = three_numbers(sequences, form_of(x))
    if not math.isfinite(numbers.gap):
        raise TheoremError("every learning rate up to the horizon is 0")
    return HorizonAnswer(
        steps,
        theorem=letter_of(x),
        noise=numbers.noise,
        gap=numbers.gap,
        drift=numbers.drift,
        decay=_decay_share(x, sequences, numbers.noise, assume),
        floor=noise_floor(x),
    )


def letter_of(x: Algorithm) -> str:
    """The letter of the theorem with weights that covers the algorithm."""
    if x.decay != _NOTHING:
        return "D"
    if x.heavy_ball is not None:
        return "H"
    if x.nesterov is not None:
        return "N"
    return "W" if x.eps == _NOTHING else "E"


def form_of(x: Algorithm) -> Form:
    """The terms of Theorem W, E, N or H for an algorithm."""
    ball = x.heavy_ball
    if ball is not None:
        return lambda block, _: heavy_ball_terms(block, float(ball.factor), rate_inside=ball.rate_inside)
    return lambda block, before: adam_terms(block, before, under_root=x.eps_under_root)


def noise_floor(x: Algorithm) -> float | None:
    """The number that c_noise tends to for constant beta and theta; None where one of them moves."""
    beta, theta = x.method.beta, x.method.theta
    if not (beta.is_constant and theta.is_constant and theta(1) > 0):
        return None
    if x.heavy_ball is not None:
        return heavy_ball_floor(float(x.heavy_ball.factor), theta(1)).noise
    return constant_floor(beta(1), theta(1), q=(1 - theta)(1)).noise


def _decay_share(x: Algorithm, sequences: Sequences, noise: float, assume: Assumptions) -> float | None:
    """What decoupled decay adds to the noise for weights within the asserted X: Theorem D on a flat, even problem."""
    if x.decay == _NOTHING:
        return 0.0
    if assume.weights_bound is None or x.nesterov is not None or x.heavy_ball is not None:
        return None
    flat = Problem(1e-30, [TYPICAL_GRADIENT], 1, 0.0, box=assume.weights_bound)
    found = decay_bound(sequences, flat, under_root=x.eps_under_root)
    return max(0.0, found.value / TYPICAL_GRADIENT - noise)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
