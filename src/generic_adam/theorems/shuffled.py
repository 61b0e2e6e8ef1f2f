r"""Theorem RR: shuffled epochs. Every pass over the data uses each of n batches once, in any order.

No probability is involved: the order may be fixed, drawn, or chosen by an adversary who sees everything. What is
bounded is the gradient of f, the mean of the n batches' losses, at the starts :math:`x_a` of the epochs a..b,

.. math::

    X_w = \sum_j p_j \sum_k \frac{\bar g_{j,k}^2}{D_{b_j,k}} \le
    \frac1\Pi\Big[\text{gap} + \sum_{k,t} (2\hat A_t + F_k \hat B_t)(S_{t,k} - S_{t-1,k}) + \text{still}\Big],

with :math:`\bar g_j` the mean of the gradients used in epoch j. Momentum is finished before an epoch is looked at; what
an epoch costs is that the gradient (A), the divisor (K) and the weights (N) move while it lasts:

.. math::

    p_i &= \pi_i \sqrt{W_i/W_b}, \quad z_i = W_b/(W_i q_i), \\
    \bar\pi &= \textstyle\sum p_i z_i / \sum z_i, \quad N^2 = \sum (p_i - \bar\pi)^2 z_i, \\
    K_l^2 &= \textstyle\sum_{a \le i < l} \pi_i^2/q_i, \quad J = \sum z_i/n^2, \\
    \Pi_j &= n \bar\pi, \quad \mu^2 = \textstyle\sum q_i W_i/W_b \\
    \Gamma_t &= L\,\alpha_t (Q_t - \tfrac12\alpha_t) + \tfrac L2 \alpha_t \textstyle\sum_{t < i \le b} \pi_i \\
    &\quad + \tfrac{L}2 \bar\pi (b-t) \alpha_t, \quad H_i = R_i \Gamma_i + \rho_{i+1} H_{i+1} \\
    A_i &= \tfrac{1-\beta_i}{q_i} H_i + \tfrac{L\pi_i}{2 q_i} \textstyle\sum_{a \le t < i} \alpha_t \\
    &\quad + \tfrac L2 \bar\pi J \textstyle\sum_t (b-t) \alpha_t, \\
    B_l &= Q_l \rho_l \sqrt{M_{l-1}} + K_l + N/\mu

where L is the smoothness of every batch's loss. Decoupled decay of weights within X costs :math:`X F_1\sum\nu_t`, and
makes the steps longer. An epoch's N may instead be paid for outside of the logarithm (`still`): early epochs and the
last. Statement, proof and what it says of a data loader: docs/theorems/shuffled.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Growth
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.epsilon import VANISHING_MEAN_DECAY, eps_in_step
from generic_adam.theorems.sequences import Array, Block, Recursion, Sequences, backward, majorant
from generic_adam.theorems.sweep import Coordinates
from generic_adam.theorems.theorem import STARTS_FROM_NOTHING, Hypothesis, Offer, Reason, Theorem
from generic_adam.theorems.weighted import W_INFINITY, certain_parts

LONGEST = 1 << 22
"""The most steps that the bound is evaluated for: it looks at all of them at once."""

# W_b/W_i within an epoch, the exponential of this, has to be a double, and its square root to have digits left.
_LARGEST_EXPONENT = 600.0
# Epochs above one of these quantiles of N/mu are paid for outside of the logarithm. Any choice is a bound.
_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 1.0)


@dataclass(frozen=True)
class ShuffledBound:
    r"""The bound of Theorem RR after whole epochs.

    Attributes:
        steps: the steps that count, those of the whole epochs.
        batches: n, the steps of an epoch.
        gap: f(x_1) - f*.
        noise: what the order of the batches costs, the part of the numerator that F multiplies.
        drift: what the length of the steps costs, those of decay among them.
        decay: what decoupled decay costs beside.
        weight: :math:`\Pi`, the sum of the weights of the epochs.
        defect: :math:`\sum_k \eta_k`, where the epochs are not exact.
        defect_norm: the norm of :math:`\eta`.
        moved: :math:`\delta_1`, what the l1 norm of the gradient may change by within an epoch, in the mean.
        moved_norm: :math:`\delta_2`, the same for the norm.
        s1: what :math:`\sum_k D_{t,k}` is at most.
        largest: what the largest :math:`D_{t,k}` is at most.
        rounding: how far doubles may have carried the numbers, relatively.
    """

    steps: int
    batches: int
    gap: float
    noise: float
    drift: float
    weight: float
    defect: float
    defect_norm: float
    moved: float
    moved_norm: float
    s1: float
    largest: float
    rounding: float
    decay: float = 0.0

    @property
    def value(self) -> float:
        """The bound on X_w."""
        return (self.gap + self.noise + self.drift + self.decay) / self.weight

    @property
    def l1(self) -> float:
        r"""The bound on the weighted mean of :math:`\|\nabla f\|_1` over the starts of the epochs."""
        return math.sqrt(self.s1 * self.value) + self.moved + self.defect

    @property
    def l2(self) -> float:
        r"""The bound on the weighted mean of :math:`\|\nabla f\|_2^2` over the starts of the epochs."""
        return (math.sqrt(self.largest * self.value) + self.moved_norm + self.defect_norm) ** 2

    def offer(self) -> Offer:
        """Return the bound in the measure that all theorems share, rounded up."""
        up = 1 + self.rounding
        told = ("gap", "noise", "drift", "decay", "weight", "moved", "s1", "defect")
        constants = {name: float(getattr(self, name)) for name in told}
        return Offer(up * self.l2, up * self.l1, {**constants, "X_w": self.value, "batches": float(self.batches)})


def _earlier(rows: Array) -> Array:
    """Return, for each step, the sum over the steps of its epoch before it."""
    return np.cumsum(np.hstack([np.zeros((len(rows), 1)), rows[:, :-1]]), axis=1)


def _later(rows: Array) -> Array:
    return np.fliplr(_earlier(np.fliplr(rows)))


class _Epochs:
    """The numbers that depend on the sequences and the length of an epoch alone; an array's row is an epoch."""

    def __init__(self, block: Block, batches: int) -> None:
        self.block, self.batches, steps = block, batches, block.length

        def each(values: Array) -> Array:
            return np.broadcast_to(values, steps)

        self.alpha, self.gain, self.q, self.rho = map(each, (block.alpha, block.gain, block.q, block.rho))
        self.eps, self.nu = each(block.eps), each(block.decay)
        self.decays = np.where(self.nu > 0, 1.0, 0.0)
        self.decrease = each(np.log1p(block.growth))
        self.R = each(Recursion(block.rho, steps)(block.gain, 0.0))
        squares = block.gain**2 / block.q
        self.M = each(Recursion(block.rho**2, steps)(squares, 0.0))
        self.Q = each(backward(self.alpha, block.rho))
        self.pi = self.gain * self.Q
        exponents = _later(self.rows(self.decrease))
        if exponents.max() > _LARGEST_EXPONENT:
            raise TheoremError(
                f"an epoch of {self.batches:,} batches is too long for these theta_t: the bound is of no use"
            )
        tail = np.exp(exponents)
        z, p = tail / self.rows(self.q), self.rows(self.pi) / np.sqrt(tail)
        self.mean = (p * z).sum(1) / z.sum(1) if batches > 1 else p[:, 0]
        # A difference: what rounding may have taken from it is added.
        lost = 0.0 if self.batches == 1 else (32 * steps + 400) * 2.0**-53
        self.N = np.sqrt(((np.abs(p - self.mean[:, None]) + lost * p) ** 2 * z).sum(1))
        self.mu = np.sqrt((self.rows(self.q) / tail).sum(1))
        self.J = z.sum(1) / self.batches**2
        self.K = np.sqrt(_earlier(self.rows(self.pi) ** 2 / self.rows(self.q)).reshape(-1))
        self.later = _later(self.rows(self.pi)).reshape(-1)
        self.left = np.arange(self.batches - 1, -1, -1.0)
        self.weight = float(self.batches * self.mean.sum())

    def rows(self, values: Array) -> Array:
        return values.reshape(-1, self.batches)

    def steps(self, values: Array) -> Array:
        """Return an epoch's number at each of its steps."""
        return np.repeat(values, self.batches)

    def spread(self, gamma: Array) -> Array:
        r"""Return the coefficients A of :math:`\sum_t \gamma_t \|u_t\|^2 \le \sum_i A_i \omega_i`."""
        return self.gain * backward(self.R * gamma, self.block.rho) / self.q

    def drift(self) -> Array:
        """Return A for L = 1."""
        # A step that decays is longer, and what moves while it lasts is paid for twice (Theorem D's and RR's steps).
        twice = self.rows(self.alpha * (1 + self.decays))
        gamma = self.alpha * (self.Q - self.alpha / 2 + self.decays * self.Q / 2 + self.later / 2)
        gamma = gamma + self.movement(self.alpha) / 2
        moved = self.pi * _earlier(twice).reshape(-1) / self.q
        return self.spread(gamma) + (moved + self.steps(self.mean * self.J * (self.left * twice).sum(1))) / 2

    def decayed(self) -> float:
        r"""Return what decay adds to the drift for L = d = X = 1; a decay without a step is paid for with infinity."""
        if ((self.nu > 0) & (self.alpha == 0)).any():
            return math.inf
        ratio = np.where(self.nu > 0, self.nu**2 / self.alpha, 0.0)
        return float((ratio * (self.alpha + self.Q + self.later) + self.movement(ratio)).sum()) / 2

    def movement(self, lengths: Array) -> Array:
        r"""Return :math:`\bar\pi (b-t)` times the steps' lengths: :math:`\kappa_t` for those of alpha and L = 1."""
        return (self.mean[:, None] * self.left * self.rows(lengths)).reshape(-1)

    def noise(self, weighed: list[tuple[float, Array]]) -> float:
        """Return the sum of F_k (B S-increments + still) for (F, increments), over the best choice of the epochs."""
        before = np.concatenate([[0.0], self.M[:-1]])
        always, ratio, best = self.Q * self.rho * np.sqrt(before) + self.K, self.N / self.mu, math.inf
        for most in {-1.0, *np.quantile(ratio, _QUANTILES).tolist()}:
            inside = ratio <= most
            hat = majorant(always + self.steps(inside * ratio))
            still = float((self.N * np.where(inside, self.mu / 2, 1.0)).sum())
            best = min(best, sum(F * (float(hat @ change) + still) for F, change in weighed))
        return best

    def increments(self, bound: float, initial_v: float, *, under_root: bool) -> Array:
        r"""Return :math:`S_t - S_{t-1}` for :math:`|g_{t,k}| \le G`, the first one rounded up for all.

        :math:`S_t` is the logarithm of the largest :math:`\sqrt{W_t} D_t` over :math:`\sqrt{v_0} + \sqrt{W_1} e_1`.
        """
        grown = np.cumsum(self.decrease)
        first = float(self.eps[0]) * math.exp(grown[0] / 2)
        if self.block.theta[0] == 0:
            if initial_v or not self.eps[0] > 0:
                raise TheoremError("theta_1 = 0 wipes v_0 out: expected v_0 = 0 and eps_1 > 0")
            inside = np.full(len(grown), bound**2)
        else:
            inside = initial_v * np.exp(-grown) - bound**2 * np.expm1(-grown)
        size = np.sqrt(inside + self.eps**2) if under_root else np.sqrt(inside) + self.eps
        start = math.hypot(math.sqrt(initial_v), first) if under_root else math.sqrt(initial_v) + first
        if not start > 0:
            raise TheoremError("v_0 = 0 and eps_1 = 0: the first step may divide by 0; expected one of them positive")
        found = np.diff(grown / 2 + np.log(size / start), prepend=0.0)
        # Added to every S_t, so that the rounding of none of them matters (step (e) asks for upper bounds alone).
        found[0] += (len(grown) + 32) * 2.0**-52 * (1 + grown[-1] + abs(math.log(start)))
        return found


def _checked(block: Block) -> Block:
    """Return the block if its sequences are in their ranges and e_t keeps up; else say where they are not."""
    eps, theta = (np.broadcast_to(values, block.length) for values in (block.eps, block.theta))
    inside = np.broadcast_to((block.theta > 0) & (block.q > 0), block.length).copy()
    inside[0] |= block.theta[0] == 0
    keeps = np.ones(block.length, dtype=bool)
    keeps[1:] = eps[1:] >= np.sqrt(theta[1:]) * eps[:-1] * (1 - 2.0**-49)
    for claim, holds in (
        ("alpha_t >= 0", block.alpha >= 0),
        ("nu_t >= 0", block.decay >= 0),
        ("0 <= beta_t < 1", (block.beta >= 0) & (block.gain > 0)),
        ("0 < theta_t < 1", inside),
        ("e_t >= sqrt(theta_t) e_(t-1)", keeps),
    ):
        if not holds.all():
            raise TheoremError(f"expected {claim}, which fails at t = {int(np.argmin(holds)) + 1}")
    return block


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def shuffled_bound(x: Sequences, problem: Constants, batches: int, *, dropped: float = 0.0) -> ShuffledBound:
    r"""Evaluate Theorem RR after the whole epochs among the steps 1..T.

    Args:
        x: alpha, beta, theta and eps, with v_0.
        problem: `gradient_sup` bounds every entry of every batch's gradient at every iterate of the batch's epoch;
            the smoothness is one of every batch's loss; decay asks for `weights_bound`.
        batches: n, the number of steps of an epoch.
        dropped: the share :math:`\phi` of the data that an epoch leaves out; the mean of the rest is then within
            :math:`\eta_k = 2\phi G_k` of the gradient, if G_k bounds every example's.

    Raises:
        TheoremError: a hypothesis fails, no epoch is whole, or the steps are too many.
    """
    steps = x.steps - x.steps % batches
    if not steps:
        raise TheoremError(f"{x.steps:,} steps are less than one epoch of {batches:,} batches")
    if steps > LONGEST:
        raise TheoremError(f"Theorem RR is evaluated for at most {LONGEST:,} steps, got {steps:,}")
    if x.power != 0.5 or x.running_maximum or x.heavy_ball or x.looks_ahead:
        raise TheoremError("Theorem RR is about Adam and RMSProp, without Nesterov or a running maximum")
    if x.decays and problem.weights_bound is None:
        raise TheoremError("decoupled weight decay: expected a bound on the weights (`weights_bound`)")
    parts, found = certain_parts(problem), _Epochs(_checked(x.block(1, steps + 1)), batches)
    drift = found.drift()
    if not found.weight > 0:
        raise TheoremError("every learning rate up to the horizon is 0")
    if not (math.isfinite(found.weight) and np.isfinite(drift).all()):
        raise TheoremError("beta_t^2 exceeds theta_t for too long: the bound is beyond doubles")
    changes = [found.increments(p.gradient, x.initial_v, under_root=x.under_root) for p in parts]
    total: Array = sum((p.count * change for p, change in zip(parts, changes, strict=True)), np.zeros(1))
    defects = [2 * dropped * p.gradient for p in parts]
    weighed = [(p.count * (p.gradient + eta), change) for p, eta, change in zip(parts, defects, changes, strict=True)]
    noise, kappa = found.noise(weighed), problem.smoothness * found.movement(found.alpha)
    if dropped:
        root = batches * found.mean * np.sqrt(found.J)
        hat, still = majorant(found.steps(root / found.mu)), float((root * found.mu).sum()) / 2
        for p, eta, change in zip(parts, defects, changes, strict=True):
            noise += p.count * eta * (float(hat @ change) + still)
    dimension = sum(p.count for p in parts)
    X = problem.weights_bound if x.decays and problem.weights_bound else 0.0
    decayed = problem.smoothness * dimension * X**2 * found.decayed() if X else 0.0
    shrunk = problem.smoothness * X * (found.left * found.rows(found.nu)).sum(1)  # by what an epoch's decay moves
    faded, faded_norm = dimension * float(found.mean @ shrunk), math.sqrt(dimension) * float(shrunk.max()) / batches
    moving = 2 * float(majorant(found.spread(kappa)) @ total)
    worst = dimension * float(kappa @ np.sqrt(found.M))
    longest = float((found.left * found.rows(found.alpha)).sum(1).max())
    sizes = [_largest_divisor(p, x, float(found.eps.max())) for p in parts]
    return ShuffledBound(
        steps=steps,
        batches=batches,
        gap=problem.gap,
        noise=noise,
        drift=2 * problem.smoothness * float(majorant(drift) @ total) + decayed,
        decay=X * sum(F for F, _ in weighed) * float(found.nu.sum()),
        weight=found.weight,
        defect=sum(p.count * eta for p, eta in zip(parts, defects, strict=True)),
        defect_norm=math.sqrt(sum(p.count * eta**2 for p, eta in zip(parts, defects, strict=True))),
        moved=(min(math.sqrt(dimension * float(kappa.sum()) * moving), worst) + faded) / found.weight,
        moved_norm=math.sqrt(problem.smoothness / batches * longest * moving / found.weight) + faded_norm,
        s1=sum(p.count * size for p, size in zip(parts, sizes, strict=True)),
        largest=max(sizes),
        rounding=(80 * steps + 400) * 2.0**-53,
    )


def _largest_divisor(part: Coordinates, x: Sequences, eps: float) -> float:
    """Return what D is at most: v_t is a mean of v_0 and squares of gradients."""
    root = max(part.gradient, math.sqrt(x.initial_v))
    return math.hypot(root, eps) if x.under_root else root + eps


def floor(beta: float, theta: float, batches: int) -> float:
    r"""Return the part of the bound on :math:`X_w/G_1` that no number of steps takes away, for constants.

    About :math:`\sqrt{n(1-\theta)}/2`; infinite where an epoch is too long for doubles, or :math:`\beta^2 \ge \theta`.
    1 is what holds with no theorem.
    """
    if not (0 <= beta < 1 and 0 < theta < 1 and batches >= 1):
        raise TheoremError(f"expected 0 <= beta < 1, 0 < theta < 1 and n >= 1, got {beta:g}, {theta:g}, {batches}")
    q, ell, rho = 1 - theta, -math.log(theta), beta / math.sqrt(theta)
    if rho >= 1 or (batches - 1) * ell > _LARGEST_EXPONENT:
        return math.inf
    tail = np.exp(ell * np.arange(batches))
    z, p = tail / q, 1 / np.sqrt(tail)
    mean = float((p * z).sum() / z.sum())
    N = math.sqrt(float(((p - mean) ** 2 * z).sum()))
    mu = math.sqrt(-math.expm1(-batches * ell))
    turning = rho / math.sqrt(q * (1 - rho) * (1 + rho)) + math.sqrt((batches - 1) / q)
    return (ell / 2 * turning + min(N * ell / (2 * mu) + N * mu / (2 * batches), N / batches)) / mean * (1 + 1e-9)


def longest_epoch(beta: float, theta: float) -> int:
    """Return the most batches of an epoch with which constants leave a floor below 1; 0 where one batch is too many."""
    few, many = 0, 1
    while floor(beta, theta, many) < 1:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if floor(beta, theta, middle) < 1 else (few, middle)
    return few


@dataclass(frozen=True)
class Counterexample:
    r"""Proposition C1: RMSProp that goes to infinity in a fixed order, with a theta that is constant and any alpha.

    The n batches have the slopes C, -1, ..., -1 times that of h(x), which is :math:`|x|` outside of [-1, 1] and
    :math:`(x^2+1)/2` inside. f is :math:`(C-n+1)/n` times h: smooth, bounded below, bounded gradients, least at 0.

    Attributes:
        batches: n.
        theta: the constant theta.
        large: C.
        drift: by how much x grows in an epoch, over alpha, once v has come to its period.
    """

    batches: int
    theta: float
    large: float
    drift: float

    def gradient(self, x: Array, t: int) -> Array:
        """Return the gradient of the batch of step t at x."""
        return (self.large if (t - 1) % self.batches == 0 else -1.0) * np.clip(x, -1.0, 1.0)

    @property
    def slope(self) -> float:
        """The size of f' outside of [-1, 1]."""
        return (self.large - self.batches + 1) / self.batches


def counterexample(batches: int, theta: float) -> Counterexample:
    """Return the problem of Proposition C1, its large slope halfway to where x stops growing.

    Examples:
        >>> found = counterexample(3, 0.9)
        >>> round(found.large, 4), found.slope > 0, found.drift > 0
        (2.043, True, True)
    """
    if not (batches >= 3 and 0 < theta < 1):
        raise TheoremError(f"expected n >= 3 and 0 < theta < 1, got n = {batches}, theta = {theta:g}")
    growing, falling = batches - 1.0, 2.0 * batches
    # Where theta is near 0 no C that a double can square is too large; one that is large enough will do.
    while falling < 1e9 * batches and epoch_drift(falling, batches, theta) > 0:
        growing, falling = falling, 2 * falling
    while falling - growing > 1e-12 * growing:
        middle = (growing + falling) / 2
        growing, falling = (middle, falling) if epoch_drift(middle, batches, theta) > 0 else (growing, middle)
    large = (batches - 1 + growing) / 2
    return Counterexample(batches, theta, large, epoch_drift(large, batches, theta))


def epoch_drift(large: float, batches: int, theta: float) -> float:
    r"""Return :math:`\Delta(C)`, what RMSProp gains in an epoch of slopes C, -1, ..., -1, over alpha."""
    kept = theta ** np.arange(1, batches)
    # v just after the large gradient, less 1: v decays to 1 while the small ones last.
    above = (1 - theta) * (large**2 - 1) / -math.expm1(batches * math.log(theta))
    return float((1 / np.sqrt(1 + kept * above)).sum() - large / math.sqrt(1 + above))


_ONE_OVER_T = Growth.of(1, power=Fraction(-1))
_UNBIASED = {"replacement": "drawn with replacement", "streaming": "each seen once"}


def _regular(x: Algorithm, _: Setting) -> Decision:
    return decide.regular(x.method.alpha)


def _momentum_stays(x: Algorithm, _: Setting) -> Decision:
    if decide.late_constant(x.method.beta):
        return Decision(Status.HOLDS, "beta_t is constant, from some step on.")
    return Decision(Status.UNDECIDED, "beta_t is not constant from any known step on, which RR asks for.")


def _theta_rises(x: Algorithm, _: Setting) -> Decision:
    if decide.late_falls(1 - x.method.theta):
        return Decision(Status.HOLDS, "theta_t never falls from some step on.")
    return Decision(Status.UNDECIDED, "Whether theta_t never falls from some step on is open.")


def _eps_bounded(x: Algorithm, _: Setting) -> Decision:
    growth = x.eps.growth
    if growth is not None and growth.trend <= 0:
        return Decision(Status.HOLDS, "eps_t stays bounded.")
    return Decision(Status.UNDECIDED, "Whether eps_t stays bounded is open.")


def _weights_even(x: Algorithm, _: Setting) -> Decision:
    """alpha_t/(t q_t) does not grow: what the weights differ by within an epoch then adds up to sum alpha_t/t."""
    alpha, q = x.method.alpha.growth, (1 - x.method.theta).growth
    inverse = None if q is None or q.sign <= 0 else q.inverse()
    if alpha is None or inverse is None:
        return Decision(Status.UNDECIDED, "The exact order of alpha_t or of 1 - theta_t is not known.")
    if (alpha * _ONE_OVER_T * inverse).trend > 0:
        return Decision(Status.UNDECIDED, "alpha_t/(t (1 - theta_t)) grows, for which RR has no proof here.")
    order = decide.over_sums(alpha * _ONE_OVER_T, alpha)
    return Decision(Status.HOLDS, "alpha_t/(t (1 - theta_t)) does not grow.", order=order)


RR_INFINITY: tuple[Hypothesis, ...] = (
    *VANISHING_MEAN_DECAY,
    eps_in_step,
    *W_INFINITY,
    _regular,
    _momentum_stays,
    _theta_rises,
    _eps_bounded,
    _weights_even,
)


class Shuffled(Theorem):
    """Theorem RR, and RR-infinity: epochs of n batches in any order."""

    name: ClassVar = "RR"
    statement: ClassVar = "the gradient at the starts of the epochs tends to 0, whatever the order of the batches"
    covered: ClassVar = "Adam, AdamW and RMSProp on shuffled epochs, each batch once in each, in any order"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A4s)")
    source: ClassVar = "docs/theorems/shuffled.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "decay"})
    excludes: ClassVar = {
        **STARTS_FROM_NOTHING,
        "weight decay is added to the gradient": lambda x: x.l2 != 0,
    }
    takes: ClassVar = ("batches_per_epoch",)
    uses: ClassVar = ("weights_bound",)
    shuffled: ClassVar = True
    needs: ClassVar = (
        "every epoch uses each batch once",
        "the loss of every batch is smooth, and its gradient bounded at every iterate of its epoch",
    )
    hypotheses: ClassVar = RR_INFINITY

    def outside(self, x: Algorithm, setting: Setting) -> tuple[Reason, ...]:
        """Epochs alone: data that are drawn otherwise give unbiased gradients, which the other theorems are about."""
        how = _UNBIASED.get(setting.sampling or "")
        return (*super().outside(x, setting), *([Reason("drawn", how)] if how else []))

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Return the bound at the end of the last whole epoch."""
        n = problem.batches_per_epoch
        if n is None:
            raise TheoremError("it asks for the number of batches in an epoch")
        return shuffled_bound(Sequences.of_algorithm(x, steps), problem, n).offer()
