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

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import Schedule, as_schedule, bias_correction, join, sqrt, t
from generic_adam.schedules.enclosure import collected
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.rate import Rate
from generic_adam.theorems.recursions import Array
from generic_adam.theorems.sequences import Block, Sequences
from generic_adam.theorems.sweep import Sweep, Terms
from generic_adam.theorems.theorem import Assumptions, Finding, Offer, Theorem, as_condition
from generic_adam.theorems.verdicts import Condition, Status
from generic_adam.theorems.weighted import Norms, WeightedBound, concluded, offered, parts_of

NOTHING = as_schedule(0)
# How far rounding may carry a share past its bounds.
_ROUNDING = 1e-9


def adam_terms(
    block: Block, eps_before: Array, *, under_root: bool = False, running_maximum: bool = False
) -> Terms:
    r"""Return the terms of Theorems W, E and N, or of :math:`M_E` with a running maximum.

    Args:
      block: the sequences.
      eps_before: :math:`e_{t-1}`.
      under_root: whether :math:`D_t = \sqrt{v_t + e_t^2}`.
      running_maximum: whether :math:`D_t = \sqrt{\max_{i\le t} v_i} + e_t`; then :math:`\beta_t` stands for
        :math:`\rho_t` everywhere but in M.
    """
    alpha, gain, q = block.alpha, 1 - block.beta, block.q
    a, b = block.momentum_weight, block.gradient_weight
    if block.theta[0] > 0:
        rho = block.beta / np.sqrt(block.theta)
    else:  # theta_1 = 0: nothing is inherited by the first step
        rho = np.where(
            block.theta > 0, block.beta / np.sqrt(np.where(block.theta > 0, block.theta, 1.0)), 0.0
        )
    keep = block.beta if running_maximum else rho
    root_q = np.sqrt(q)
    share_e = share_g = None
    if block.eps.any() and keep.any():
        share = _share(block, eps_before, under_root=under_root, running_maximum=running_maximum)
        common = (share * keep) ** 2 * (0.5 / gain)
        share_e, share_g = common * block.eps, common * root_q
    has_gradient = bool(b.any())
    return Terms(
        keep=keep,
        gain=gain,
        own=alpha * a,
        spread=gain,
        rest_u=alpha * (a + b / 2),
        own_u=alpha**2 * ((a + b) * a / 2),
        rest_g=alpha * b / 2 if has_gradient else None,
        own_g=alpha**2 * (a + b) * b / 2 if has_gradient else None,
        first=gain / root_q,
        first_own=alpha * b / root_q if has_gradient else None,
        second=keep if keep.any() else None,
        share_e=share_e,
        share_g=share_g,
        weight=gain,
        weight_own=alpha * b if has_gradient else None,
        squares=(rho**2, gain**2 / q),
    )


def _share(block: Block, eps_before: Array, *, under_root: bool, running_maximum: bool) -> Array:
    r"""Return :math:`s_t`, checked against the hypothesis on :math:`e_t`; 0 at t = 1.

    Raises:
      TheoremError: the hypothesis fails, with the step at which it does.
    """
    eps, before = block.eps, eps_before
    theta, q = (np.ones(1), np.zeros(1)) if running_maximum else (block.theta, block.q)
    # e^2 - theta e'^2 without cancellation.
    surplus = (eps - before) * (eps + before) + q * before**2
    share = surplus / eps**2 if under_root else surplus / (eps * (eps + np.sqrt(theta) * before))
    if block.start == 1:  # nothing is inherited by the first step
        share = np.broadcast_to(share, block.stop - 1).copy()
        share[0] = 0.0
    upper = np.inf if under_root else 0.5
    least, most = float(share.min()), float(share.max())
    if not (least >= -_ROUNDING and most <= upper + _ROUNDING):
        inside = (share >= -_ROUNDING) & (share <= upper + _ROUNDING)
        at = block.start + int(np.argmin(inside))
        root = "" if running_maximum else "sqrt(theta_t) "
        bound = "" if under_root else f" <= 2 {root}e_(t-1)"
        raise TheoremError(f"eps: expected {root}e_(t-1) <= e_t{bound}, which fails at t = {at}")
    return share if least >= 0 else np.maximum(share, 0.0)


def epsilon_bound(
    sequences: Sequences,
    problem: Problem,
    *,
    s: float | None = None,
    zeta: float | None = None,
    under_root: bool = False,
    scales: Sequence[tuple[int, float]] | None = None,
) -> WeightedBound:
    """Evaluate Theorem E after T steps; it is W where eps is 0, N where the gradient has its own weight.

    Args:
      sequences: alpha, beta, theta, eps and Nesterov's weights, with v_0.
      problem: L, G, d and the gap; where a variance is given, the noise of a mini-batch counts (W.3).
      s: a number in (0, 1); None takes the best one.
      zeta: likewise, for eps.
      under_root: whether eps^2 is added under the root.
      scales: groups of coordinates with proportional learning rates (W.4).

    Raises:
      TheoremError: eps and v_0 are both 0, or the hypothesis on e_t fails.
    """
    sweep = Sweep(sequences, lambda block, before: adam_terms(block, before, under_root=under_root))
    if sequences.initial_v == 0 and sweep.smallest_eps <= 0:
        raise TheoremError(
            "v_0 = 0 and eps = 0: the first step may divide by 0; expected one of them positive"
        )
    parts = parts_of(problem, scales)
    norms = Norms.of(parts, sequences.initial_v, sweep.largest_eps, under_root=under_root)
    letter = "W" if sweep.largest_eps == 0 else "N" if sweep.has_gradient_weight else "E"
    with_share = sweep.largest_eps > 0 and sweep.has_momentum
    return concluded(letter, sweep, parts, problem, norms, s=s, zeta=zeta if with_share else 0.0)


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
    sweep = Sweep(sequences, lambda block, _: heavy_ball_terms(block, factor, rate_inside=rate_inside))
    if sequences.initial_v == 0 and sweep.smallest_eps <= 0:
        raise TheoremError(
            "v_0 = 0 and eps = 0: the first step may divide by 0; expected one of them positive"
        )
    parts = problem.parts
    norms = Norms.of(parts, sequences.initial_v, sweep.largest_eps, under_root=under_root)
    return concluded("H", sweep, parts, problem, norms, s=s, zeta=0.0)


class Weighted(Theorem):
    """Theorem W and W-infinity (SC', SC''): any schedule, an iterate drawn by the steps' weights."""

    name: ClassVar = "W"
    title: ClassVar = "Theorem W"
    statement: ClassVar = (
        "the gradient in the preconditioned norm tends to 0, tau drawn in proportion to alpha_t"
    )
    covered: ClassVar = "Generic Adam with v_0 > 0 and nothing added, on any schedule"
    source: ClassVar = "docs/theorems/weighted.md"

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """W-infinity on the scale of growths."""
        del assume
        decision = decide.weighted(x.method)
        return self.finding([as_condition(1, decision)], decision.rate)

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem W after T steps."""
        return offered(epsilon_bound(Sequences.of_algorithm(x, steps), problem))


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
        conditions.append(as_condition(len(conditions) + 1, _weights_stay(x)))
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


def _weights_stay(x: Algorithm) -> Decision:
    """a_t and b_t of Nesterov's step are bounded, and their sum is bounded below: N's weights are alpha_t's."""
    assert x.nesterov is not None  # noqa: S101 - the caller has looked
    both = [x.nesterov.momentum_weight.growth, x.nesterov.gradient_weight.growth]
    if all(one is not None and one.trend <= 0 for one in both) and any(
        one is not None and one.trend == 0 for one in both
    ):
        return Decision(
            Status.HOLDS, "The weights of momentum and gradient are bounded, and not both vanish."
        )
    return Decision(Status.UNDECIDED, "Whether the weights of momentum and gradient stay bounded is open.")
