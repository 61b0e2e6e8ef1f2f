r"""What each theorem beyond the paper's covers, and what it asks of the sequences for ever.

Their bounds after T steps are in files of their own. Every statement here is proved on the page named by its
`source`; what is common to all is (A1) f >= f*, (A2) a Lipschitz gradient, (A3) unbiased gradients, (A4) second
moments that are bounded given the past.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import Growth, Schedule, as_schedule, bias_correction, join, sqrt, t
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.growth import CONSTANT
from generic_adam.theorems import decide
from generic_adam.theorems.conditions import as_condition
from generic_adam.theorems.decide import Decision, two_sided
from generic_adam.theorems.rate import Rate, rate_of
from generic_adam.theorems.theorem import About, Assumptions, Finding, Theorem
from generic_adam.theorems.verdicts import Condition, Status

_NOTHING = as_schedule(0)
_ONE = CONSTANT
BOUNDED_GRADIENTS = "every stochastic gradient is bounded, |g_t| <= G (A4s)"


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
        missing = () if x.eps != _NOTHING else ("nothing is added to sqrt(v_t): Theorem W is the one to ask",)
        both = x.nesterov is not None and x.heavy_ball is not None
        return (*super().outside(x, assume), *missing, *(("two kinds of momentum",) if both else ()))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """eps_t in step with theta_t, and W-infinity."""
        del assume
        return self.finding(*epsilon_conditions(x))


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
    no_upper = x.eps_under_root or x.method.beta == _NOTHING or x.heavy_ball is not None
    if not eps(1) > 0:
        return Decision(
            Status.FAILS, "eps_1 = 0: nothing keeps the denominator positive.", decide.StepWitness(1, 0.0)
        )
    if eps.is_constant:
        if no_upper:
            return Decision(Status.HOLDS, "eps_t is constant.")
        return _theta_at_least(theta, Fraction(1, 4), "eps_t is constant")
    corrected = collected(eps / sqrt(bias_correction(theta))).is_constant
    if corrected or _corrects_constant(eps, theta):
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


def _corrects_constant(eps: Schedule, theta: Schedule) -> bool:
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


class Decay(Theorem):
    """Theorem D: decoupled weight decay beside W or E."""

    name: ClassVar = "D"
    title: ClassVar = "Theorem D"
    statement: ClassVar = Weighted.statement
    covered: ClassVar = "AdamW: decoupled decay beside what Theorems W and E cover"
    source: ClassVar = "docs/theorems/decay.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "decay"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed, and decay is what it is about."""
        missing = (
            ()
            if x.decay != _NOTHING
            else ("there is no decoupled decay: Theorems W and E are the ones to ask",)
        )
        bare = x.initial_v == 0 and x.eps == _NOTHING
        return (*super().outside(x, assume), *missing, *(("v_0 = 0 and nothing added",) if bare else ()))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """E's hypotheses, weights that stay bounded, and decay that vanishes beside alpha_t."""
        if x.eps == _NOTHING:
            decision = decide.weighted(x.method)
            conditions, rate = [as_condition(1, decision)], decision.rate
        else:
            conditions, rate = epsilon_conditions(x)
        number = len(conditions) + 1
        bounded = assume.weights_bound is not None
        told = (
            f"|x_t|_inf <= {assume.weights_bound:g} is asserted"
            if bounded
            else "no bound on the weights is asserted"
        )
        conditions.append(
            Condition(
                number, Status.HOLDS if bounded else Status.UNDECIDED, f"The weights stay bounded: {told}."
            )
        )
        vanishing, share = _decay_vanishes(x)
        conditions.append(as_condition(number + 1, vanishing))
        slower = rate if share is None or rate is None else _slower(rate, share)
        needs = ("weights that stay bounded, |x_t|_inf <= X",) if bounded else ()
        return self.finding(conditions, slower, needs=needs)


def _decay_vanishes(x: Algorithm) -> tuple[Decision, Growth | None]:
    """The alpha-weighted mean of lambda_t^2, lambda_t = nu_t / alpha_t, tends to 0: then decay leaves no floor."""
    alpha, decay = two_sided(x.method.alpha), x.decay.growth
    if alpha is None or decay is None:
        return Decision(Status.UNDECIDED, "The order of the decay or of alpha_t is not known."), None
    inverse, total = alpha.inverse(), alpha.partial_sums()
    terms = None if inverse is None else (decay * decay * inverse).partial_sums()
    divisor = None if total is None else total.inverse()
    if terms is None or divisor is None:
        return Decision(Status.UNDECIDED, "A sum of the decay is off the scale of growths."), None
    order = _ONE.largest(terms) * divisor
    if order.trend < 0:
        return Decision(Status.HOLDS, "The weighted mean of lambda_t^2 tends to 0."), order
    reason = (
        "The decay does not vanish beside alpha_t: grad f = 0 is then not what it solves (Proposition 9.2), and the "
        "bound has the floor (lambda X)^2."
    )
    return Decision(Status.FAILS, reason, decide.GrowthWitness("mean of lambda_t^2", order, "T")), None


def _slower(rate: Rate, share: Growth) -> Rate:
    """The slower of two rates."""
    mine = Growth.of(1, power=rate.power, log=rate.log, loglog=rate.loglog)
    return rate_of(mine.largest(share)) if share.rho.sign_of_log == 0 else rate


def vanishing_steps(alpha: Schedule) -> tuple[list[Condition], Rate | None]:
    """alpha_t -> 0 with an infinite sum; the rate is max(1, sum alpha_t^2) / sum alpha_t."""
    growth = two_sided(alpha)
    if growth is None:
        unknown = Decision(Status.UNDECIDED, "The order of alpha_t is not known.")
        return [as_condition(1, unknown)], None
    falls = (
        Decision(Status.HOLDS, f"alpha_t is of order {growth} and tends to 0.")
        if growth.trend < 0
        else Decision(Status.FAILS, "alpha_t does not tend to 0.", decide.GrowthWitness("alpha_t", growth))
    )
    diverges = decide.sum_diverges(alpha, "alpha")
    squares, total = (growth * growth).partial_sums(), growth.partial_sums()
    divisor = None if total is None or not growth.sum_diverges else total.inverse()
    rate = None
    if squares is not None and divisor is not None and falls.holds and diverges.holds:
        rate = rate_of(_ONE.largest(squares) * divisor)
    return [as_condition(1, falls), as_condition(2, diverges)], rate


class RunningMaximum(Theorem):
    """Theorem M: AMSGrad and Padam with constant theta and steps that vanish."""

    name: ClassVar = "M"
    title: ClassVar = "Theorem M"
    statement: ClassVar = "E |grad f(x_tau)|^2 tends to 0, tau drawn in proportion to alpha_t"
    covered: ClassVar = "AMSGrad and Padam with eps > 0 and constant theta"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "(A4s)")
    source: ClassVar = "docs/theorems/amsgrad.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum", "power"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed; the running maximum and something above 0 to start from are needed."""
        missing = () if x.running_maximum else ("v_t is not replaced by its running maximum",)
        bare = x.initial_v == 0 and x.eps == _NOTHING
        return (*super().outside(x, assume), *missing, *(("v_0 = 0 and nothing added",) if bare else ()))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """alpha_t -> 0 with an infinite sum, momentum below 1, theta constant, eps_t never falling."""
        del assume
        conditions, rate = vanishing_steps(x.method.alpha)
        conditions.append(as_condition(len(conditions) + 1, decide.bounded_below_one(x.method.beta)))
        theta = x.method.theta
        constant = (
            Decision(Status.HOLDS, f"theta_t = {theta} is constant.")
            if theta.is_constant and 0 < theta(1) < 1
            else Decision(
                Status.UNDECIDED, "theta_t is not a constant in (0, 1), which is what is proved for ever."
            )
        )
        conditions.append(as_condition(len(conditions) + 1, constant))
        steady = (
            x.eps.is_constant
            or _corrects_constant(x.eps, theta)
            or collected(x.eps / sqrt(bias_correction(theta))).is_constant
        )
        told = "eps_t never falls." if steady else "Whether eps_t never falls is open."
        conditions.append(Condition(len(conditions) + 1, Status.HOLDS if steady else Status.UNDECIDED, told))
        return self.finding(conditions, rate, needs=(BOUNDED_GRADIENTS,))


class Delayed(Theorem):
    """Theorem O: a preconditioner that does not see the gradient it divides."""

    name: ClassVar = "O"
    title: ClassVar = "Theorem O"
    statement: ClassVar = Weighted.statement
    covered: ClassVar = "ADOPT without clipping; AdaShift without momentum; any theta"
    source: ClassVar = "docs/theorems/delayed.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "delayed"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed; the delay and eps > 0 are needed."""
        missing = () if x.delayed else ("the divisor contains the gradient that it divides",)
        bare = () if x.eps.is_constant and x.eps(1) > 0 else ("no constant eps > 0 bounds the divisor below",)
        return (*super().outside(x, assume), *missing, *bare)

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """alpha_t -> 0 with an infinite sum, and momentum below 1."""
        del assume
        conditions, rate = vanishing_steps(x.method.alpha)
        conditions.append(as_condition(len(conditions) + 1, decide.bounded_below_one(x.method.beta)))
        return self.finding(conditions, rate)


class FullBatch(Theorem):
    """Theorem B: exact gradients and no momentum need no theta_t -> 1."""

    name: ClassVar = "B"
    title: ClassVar = "Theorem B"
    statement: ClassVar = Weighted.statement
    covered: ClassVar = "RMSProp with exact gradients, constant theta"
    source: ClassVar = "docs/theorems/clipping.md"
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed; exact gradients, no momentum and something above 0 to start from are needed."""
        exact = () if assume.full_batch else ("it is about exact gradients (a full batch)",)
        still = () if x.method.beta == _NOTHING else ("it has no momentum",)
        bare = ("v_0 = 0 and nothing added",) if x.initial_v == 0 and x.eps == _NOTHING else ()
        return (*super().outside(x, assume), *exact, *still, *bare)

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """alpha_t -> 0 with an infinite sum, theta constant."""
        del assume
        conditions, rate = vanishing_steps(x.method.alpha)
        constant = x.method.theta.is_constant and 0 < x.method.theta(1) < 1
        told = (
            "theta_t is constant."
            if constant
            else "theta_t is not a constant in (0, 1), which is what is proved."
        )
        conditions.append(Condition(3, Status.HOLDS if constant else Status.UNDECIDED, told))
        if x.eps != _NOTHING and not x.eps.is_constant:
            conditions.append(as_condition(4, eps_in_step(x)))
        return self.finding(conditions, rate, needs=("exact gradients",))


class RobbinsMonro(Theorem):
    r"""Robbins and Monro's conditions on plain SGD: sum eta_t = infinity, sum eta_t^2 < infinity."""

    name: ClassVar = "robbins_monro"
    title: ClassVar = "Robbins-Monro"
    statement: ClassVar = "the gradient at an iterate drawn in proportion to the steps tends to 0"
    covered: ClassVar = "stochastic gradient descent, x_{t+1} = x_t - alpha_t g_t"
    source: ClassVar = (
        'Robbins, Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22, 1951'
    )
    allows: ClassVar = frozenset({"preconditioned"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """Plain SGD alone."""
        return (*super().outside(x, assume), *(() if not x.preconditioned else ("it is about plain SGD",)))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """The two sums."""
        del assume
        return self.finding(robbins_monro_conditions(x.method.alpha))


def robbins_monro_conditions(alpha: Schedule) -> list[Condition]:
    """The sum of alpha_t is infinite and that of alpha_t^2 finite; exact on the scale of growths."""
    infinite = decide.sum_diverges(alpha, "alpha")
    squares = decide.sum_diverges(alpha * alpha, "alpha^2")
    turned = {Status.HOLDS: Status.FAILS, Status.FAILS: Status.HOLDS}
    finite = Condition(2, turned.get(squares.status, Status.UNDECIDED), squares.reason)
    return [as_condition(1, infinite), finite]


class Reddi2018(Theorem):
    r"""Reddi, Kale and Kumar's warning: for any constants beta < sqrt(theta) some convex problem defeats Adam.

    The problem depends on the constants: for any fixed problem, constants close enough to 1 may do well.
    """

    name: ClassVar = "reddi2018"
    title: ClassVar = "Reddi-Kale-Kumar"
    about: ClassVar = About.WARNING
    statement: ClassVar = (
        "a stochastic convex problem, built for these constants, on which it does not reach the optimum"
    )
    covered: ClassVar = "Adam with constant beta and theta"
    source: ClassVar = 'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018, Theorem 3'
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Beta and theta constant, beta < sqrt(theta), compared as exact numbers where they are rational."""
        del assume
        beta, theta = x.method.beta, x.method.theta
        first = [
            Condition(
                number,
                Status.HOLDS if one.is_constant else Status.FAILS,
                f"{name} is {'' if one.is_constant else 'not '}constant.",
            )
            for number, name, one in ((1, "beta_t", beta), (2, "theta_t", theta))
        ]
        if beta.is_constant and theta.is_constant:
            order = decide.positive(theta - beta * beta)
            told = "beta < sqrt(theta)." if order.holds else f"beta < sqrt(theta) {order.status}."
            first.append(Condition(3, order.status, told))
        return self.finding(first)


THEOREMS_BEYOND: tuple[Theorem, ...] = (
    Weighted(),
    Epsilon(),
    Decay(),
    RunningMaximum(),
    Delayed(),
    FullBatch(),
    RobbinsMonro(),
    Reddi2018(),
)
