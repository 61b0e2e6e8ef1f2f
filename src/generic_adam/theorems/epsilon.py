r"""Theorems E, N and H: Adam as it is shipped, with eps beside the root, :math:`v_0 = 0`, a bias correction.

**E.** :math:`x_{t+1} = x_t - \alpha_t m_t/D_t` with :math:`D_t = \sqrt{v_t} + e_t`, and for :math:`t \ge 2`

.. math:: \sqrt{\theta_t}\,e_{t-1} \le e_t \le 2\sqrt{\theta_t}\,e_{t-1}.

torch's Adam is :math:`\alpha_t = \text{lr}_t\sqrt{1-\theta^t}/(1-\beta^t)`,
:math:`e_t = \text{eps}\sqrt{1-\theta^t}`; Keras' and BERT's have constant :math:`e_t`. With
:math:`D_t = \sqrt{v_t + e_t^2}` only the left inequality is needed. With :math:`e_t = 0` and :math:`v_0 > 0`
it is Theorem W.

**N.** :math:`x_{t+1} = x_t - \alpha_t (a_t m_t + b_t g_t)/D_t`, the Nesterov step of NAdam.

**H.** :math:`b_t = \mu b_{t-1} + g_t/D_t`, :math:`x_{t+1} = x_t - \alpha_t b_t`, the heavy ball of torch's
RMSprop, or with the rate inside the buffer, :math:`b_t = \mu b_{t-1} + \alpha_t g_t/D_t`, as in TensorFlow's.

The free number zeta pays for :math:`e_t` growing faster than :math:`\sqrt{\theta_t} e_{t-1}`, by the share
:math:`s_t = 1 - \sqrt{\theta_t}\,e_{t-1}/e_t` of it:

.. math:: y_{t,k} = \frac{\rho_t^2 s_t^2\,(e_t + G_k\sqrt{q_t})}{2\zeta(1-\beta_t)}.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method, Nesterov
from generic_adam.schedules import Schedule, as_schedule, bias_correction, join, sqrt, t
from generic_adam.schedules.enclosure import collected
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Block, Sequences
from generic_adam.theorems.sweep import Terms
from generic_adam.theorems.theorem import NOTHING, Assumptions, Finding, Offer, Theorem, as_condition
from generic_adam.theorems.verdicts import Condition, Rate, Status
from generic_adam.theorems.weighted import (
    Norms,
    Weighted,
    WeightedBound,
    concluded,
    epsilon_bound,
    offered,
    swept,
)


def heavy_ball_terms(block: Block, factor: float, *, rate_inside: bool) -> Terms:
    r"""Return the terms of Theorem H.

    Args:
      block: the sequences; beta is not used.
      factor: :math:`\mu`.
      rate_inside: whether the buffer holds :math:`\alpha_t g_t/D_t`.
    """
    alpha, one = block.alpha, np.ones(1)
    own = one if rate_inside else alpha
    inside = alpha if rate_inside else one
    return Terms(
        keep=np.array([factor]),
        gain=one,
        own=own,
        spread=inside**2,
        rest_u=own,
        own_u=own**2 / 2,
        first=inside / np.sqrt(block.q),
        weight=inside,
    )


def heavy_ball_bound(
    sequences: Sequences,
    problem: Problem,
    factor: float,
    *,
    rate_inside: bool = False,
    s: float | None = None,
    under_root: bool = False,
) -> WeightedBound:
    r"""Evaluate Theorem H after T steps.

    Where :math:`e_t \ge \sqrt{\theta_t}\,e_{t-1}` fails, the smallest :math:`e_t` stands for the first in
    the logarithm.

    Args:
      sequences: alpha, theta and eps, with v_0.
      problem: L, G, d and the gap.
      factor: the momentum mu, in [0, 1).
      rate_inside: whether the learning rate is inside the buffer.
      s: a number in (0, 1); None takes the best one.
      under_root: whether eps^2 is added under the root.
    """
    if not 0 <= factor < 1:
        raise TheoremError(f"momentum is {factor!r}, expected a number in [0, 1)")
    sweep = swept(sequences, lambda block, _: heavy_ball_terms(block, factor, rate_inside=rate_inside))
    parts = problem.parts
    norms = Norms.of(parts, sequences.initial_v, sweep.largest_eps, under_root=under_root)
    return concluded("H", sweep, parts, problem, norms, s=s, zeta=0.0)


class Epsilon(Theorem):
    """Theorems E, N and H: eps in the denominator, v_0 = 0, bias correction, Nesterov or heavy-ball momentum."""

    name: ClassVar = "E"
    title: ClassVar = "Theorem E"
    statement: ClassVar = Weighted.statement
    covered: ClassVar = (
        "Adam as frameworks ship it: eps added or under the root, v_0 = 0, bias correction; NAdam; RMSprop with "
        "momentum; Adagrad"
    )
    source: ClassVar = "docs/theorems/epsilon.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "nesterov", "heavy_ball"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed, and some eps > 0 is needed."""
        missing = () if x.eps != NOTHING else ("nothing is added to sqrt(v_t): Theorem W is the one to ask",)
        both = x.nesterov is not None and x.heavy_ball is not None
        return (*super().outside(x, assume), *missing, *(("two kinds of momentum",) if both else ()))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """eps_t in step with theta_t, and W-infinity."""
        del assume
        return self.finding(*epsilon_conditions(x))

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem E, N or H after T steps."""
        sequences, ball = Sequences.of_algorithm(x, steps), x.heavy_ball
        if ball is None:
            return offered(epsilon_bound(sequences, problem, under_root=x.eps_under_root))
        factor, inside = float(ball.factor), ball.rate_inside
        found = heavy_ball_bound(sequences, problem, factor, rate_inside=inside, under_root=x.eps_under_root)
        return offered(found)


def weighted_conditions(x: Algorithm) -> tuple[list[Condition], Rate | None]:
    """The hypotheses of W or, where something is added to the root, of E, N or H for ever."""
    if x.eps != NOTHING:
        return epsilon_conditions(x)
    decision = decide.weighted(x.method)
    return [as_condition(1, decision)], decision.rate


def epsilon_conditions(x: Algorithm) -> tuple[list[Condition], Rate | None]:
    """The hypotheses of E, N or H for ever, with the rate."""
    conditions = [as_condition(1, eps_in_step(x))]
    if x.nesterov is not None:
        conditions.append(as_condition(len(conditions) + 1, _weights_stay(x.nesterov)))
    # Heavy-ball momentum comes after the division: theta and beta have no part in it.
    method = x.method if x.heavy_ball is None else Method(x.method.alpha, 0, x.method.theta)
    decision = decide.weighted(method, first_theta_may_be_zero=True)
    conditions.append(as_condition(len(conditions) + 1, decision))
    return conditions, decision.rate


def eps_in_step(x: Algorithm) -> Decision:
    r"""sqrt(theta_t) e_{t-1} <= e_t <= 2 sqrt(theta_t) e_{t-1} for t >= 2, and e_t's share of growth O(1 - theta_t).

    Known forms: e_t constant (needs theta_t >= 1/4 where there is momentum); e_t = eps sqrt(1 - prod theta_i), the bias
    correction's (needs theta_t >= 1/3); e_t = eps / sqrt(t + k) with theta_t = 1 - 1/(t + k), AdaGrad's, where the
    left side is an equality.
    """
    theta, eps = x.method.theta, x.eps
    no_upper = x.eps_under_root or x.method.beta == NOTHING or x.heavy_ball is not None
    if not eps(1) > 0:
        return Decision(
            Status.FAILS, "eps_1 = 0: nothing keeps the denominator positive.", decide.StepWitness(1, 0.0)
        )
    if eps.is_constant:
        if no_upper:
            return Decision(Status.HOLDS, "eps_t is constant.")
        return _theta_at_least(theta, Fraction(1, 4), "eps_t is constant")
    corrected = collected(eps / sqrt(bias_correction(theta))).is_constant
    if corrected or corrects_constant(eps, theta):
        what = "eps_t = eps sqrt(1 - prod theta_i), the bias correction's"
        if theta(1) == 0:  # the product is 0 from the first step on: eps_t is constant after all
            return (
                Decision(Status.HOLDS, f"{what}.")
                if no_upper
                else _theta_at_least(theta, Fraction(1, 4), what)
            )
        rising = decide.non_decreasing(theta)
        if not rising.holds:
            return rising
        return (
            Decision(Status.HOLDS, f"{what}.") if no_upper else _theta_at_least(theta, Fraction(1, 3), what)
        )
    for shift in (0, 1):
        sums = as_schedule(1) - 1 / (t + shift)
        if theta == sums and collected(eps * sqrt(t + shift)).is_constant:
            return Decision(
                Status.HOLDS, f"eps_t sqrt(t + {shift}) is constant and theta_t = {theta}: the two keep step."
            )
    return Decision(
        Status.UNDECIDED, f"Whether eps_t = {eps} keeps step with theta_t is open: the form is not known."
    )


def corrects_constant(eps: Schedule, theta: Schedule) -> bool:
    """Whether eps_t = c sqrt(1 - theta^t) for a constant theta, written out."""
    return theta.is_constant and collected(eps / sqrt(1 - theta**t)).is_constant


def _theta_at_least(theta: Schedule, least: Fraction, what: str) -> Decision:
    """theta_t >= least for t >= 2."""
    decision = decide.positive(join(1, 2, theta - least))
    if decision.holds or theta == as_schedule(least):
        return Decision(Status.HOLDS, f"{what}, and theta_t >= {least} from t = 2 on.")
    if isinstance(decision.witness, decide.StepWitness) and decision.witness.value == 0:
        return Decision(
            Status.UNDECIDED, f"Whether theta_t >= {least} is open: it is equal at t = {decision.witness.t}."
        )
    words = {
        Status.FAILS: f"{what}, but theta_t < {least}",
        Status.UNDECIDED: f"whether theta_t >= {least} is open",
    }
    return Decision(decision.status, f"{words[decision.status]}: {decision.reason}", decision.witness)


def _weights_stay(nesterov: Nesterov) -> Decision:
    """a_t and b_t of Nesterov's step are bounded, not negative, and do not both vanish: N's weights are alpha_t's."""
    both = (nesterov.momentum_weight, nesterov.gradient_weight)
    for name, weights in zip(("a_t", "b_t"), both, strict=True):
        inside = decide.not_negative(weights, name=name)
        if not inside.holds:
            return inside
    orders = [one.growth for one in both]
    bounded = all(one is not None and one.trend <= 0 for one in orders)
    if bounded and any(one is not None and one.trend == 0 and one.sign > 0 for one in orders):
        return Decision(
            Status.HOLDS, "The weights of momentum and gradient are bounded, and not both vanish."
        )
    return Decision(Status.UNDECIDED, "Whether the weights of momentum and gradient stay bounded is open.")
