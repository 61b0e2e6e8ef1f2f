r"""Theorems C1 to C3 and B: clipped gradients, and full batches.

Clipping replaces :math:`g_t` by :math:`\tilde g_t = g_t \min(1, c/\|g_t\|)` before m and v. C1: where it never acts,
nothing changes. C2: with full batches it shortens the gradient and leaves no noise of the new one; without momentum and
clipping that is B. C3: with noise its bias costs a third share phi of the descent. CS: symmetric noise with one peak
leaves clipping no bias against the gradient, however often it acts (Theorem Y then asks for a factor). Any other fixed
threshold that is often active is undecided. Statements and proofs are on the page docs/theorems/clipping.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping
from generic_adam.setting import Setting, number
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.epsilon import WEIGHTED_FOR_EVER, eps_in_step
from generic_adam.theorems.sequences import Array, Block, Sequences
from generic_adam.theorems.sweep import ADAM, Coordinates, Recursions, State, Sweep, Terms, adam_state, adam_terms
from generic_adam.theorems.theorem import (
    NOTHING,
    STARTS_FROM_NOTHING,
    WITHOUT_NOISE,
    Offer,
)
from generic_adam.theorems.weighted import Weighted, WeightedBound, concluded


def without_idle_clipping(x: Algorithm, setting: Setting) -> tuple[Algorithm, tuple[str, ...]]:
    """C1: return the algorithm without clipping, by norm or by value, that never acts, and the facts that say so."""
    clip, known = x.clipping, setting.completed()
    if clip is None or clip.kind == "update":
        return x, ()
    if known.gradient_norm is not None and known.gradient_norm <= clip.threshold:
        return replace(x, clipping=None), known.said("gradient_norm")
    each = known.gradient_sup
    if clip.kind == "value" and each is not None:
        largest = max(each) if isinstance(each, tuple) else each
        if largest <= clip.threshold:
            return replace(x, clipping=None), known.said("gradient_sup")
    return x, ()


def clipped_parts(problem: Constants, threshold: float, *, by_value: bool = False) -> tuple[Coordinates, ...]:
    """Return the coordinates with second moments of clipped gradients; the true gradient keeps its bound.

    Clipping to a norm is a projection, so that the whole gradient varies no more than before; a coordinate that stood
    still may vary with the others, so the whole variance stands for each.
    """
    if threshold != math.inf:
        number("clipping threshold", threshold, may_be_zero=False)
    spread = math.sqrt(problem.total_variance)
    second = threshold**2 / (1 if by_value or isinstance(problem.gradient_bound, Sequence) else problem.dimension)
    return tuple(
        replace(p, noise=min(p.gradient, spread), second_moment=min(p.second_moment, second)) for p in problem.parts
    )


def symmetric_factor(problem: Constants, clip: Clipping) -> float:
    r"""Return :math:`1/\lambda` of Theorem CS: what clipping leaves of the descent where the noise is symmetric.

    .. math:: \lambda^2 = 1 + \max_k (\mathbb{E}_t g_k^2 + 2 \operatorname{Var}_t g_k)/c^2,

    with :math:`\mathbb{E}_t\|g\|^2` for :math:`\mathbb{E}_t g_k^2` where the norm is clipped. No noise is left in it:
    without momentum the bound has none.
    """
    whole = problem.total_gradient_bound**2
    longest = max((p.gradient**2 if clip.kind == "value" else whole) + 2 * p.noise**2 for p in problem.parts)
    return 1 / math.sqrt(1 + longest / clip.threshold**2)


def full_batch_bound(x: Sequences, problem: Constants, *, threshold: float = math.inf) -> WeightedBound:
    """Evaluate Theorem B (no momentum) or C2 after T steps of full batches, clipped or not.

    Args:
      x: alpha, beta, theta and eps, with v_0.
      problem: L, d, the gap, and a bound G on the norm of the gradient (or one for each coordinate).
      threshold: c; infinite where nothing is clipped.
    """
    factor, parts = min(1.0, threshold / problem.total_gradient_bound), clipped_parts(problem, threshold)
    sweep = Sweep(x, replace(ADAM, noisy=False))
    letter = "C2" if factor < 1 or sweep.has_momentum else "B"
    return concluded(letter, sweep, problem, parts, keep=factor)


def _with_bias(x: Sequences, block: Block, state: State) -> Terms:
    def tally(_: Array, Q: Array) -> tuple[Array]:
        return (block.gain * Q / np.sqrt(block.q),)

    return replace(adam_terms(x, block, state), tally=tally)


def biased_bound(
    x: Sequences, problem: Constants, threshold: float, *, least_factor: float | None = None
) -> WeightedBound:
    r"""Evaluate Theorem C3 after T steps of gradients that are clipped to norm c.

    Args:
      x: alpha, beta, theta and eps, with v_0.
      problem: L, G, d and the gap, of the gradients before they are clipped.
      threshold: c.
      least_factor: :math:`\kappa` with :math:`\min(1, c/\|g_t\|) \ge \kappa` always, where that is known:
        then :math:`|b_k| \le (1/\kappa - 1)\sigma_k`, and eps does not matter.
    """
    parts, sweep = clipped_parts(problem, threshold), Sweep(x, Recursions(adam_state, _with_bias))

    def further(done: Sweep) -> float:
        bias, eps = problem.total_gradient_bound**2 / (4 * threshold), done.smallest_eps
        costs = [done.weight * bias**2 / eps if eps > 0 else math.inf]
        if least_factor is not None:
            spread = sum(part.count * math.sqrt(part.second_moment) for part in parts)
            costs.append((1 / least_factor - 1) ** 2 * spread * float(done.tally[0]))
        return min(costs) / 4

    return concluded("C3", sweep, problem, parts, by_share=True, further=further)


def _without_momentum(x: Algorithm, _: Setting) -> Decision | None:
    if x.method.beta == NOTHING:
        return None
    return Decision(Status.UNDECIDED, "With momentum nothing is proved here for the long run.")


class FullBatch(Weighted):
    """Theorem B: exact gradients and no momentum need no theta_t -> 1."""

    name: ClassVar = "B"
    covered: ClassVar = "RMSProp with exact gradients, any theta that stays away from 0"
    source: ClassVar = "docs/theorems/clipping.md"
    allows: ClassVar = frozenset({"initial_v", "eps"})
    excludes: ClassVar = STARTS_FROM_NOTHING
    takes: ClassVar = ("full_batch",)
    hypotheses: ClassVar = (
        *WITHOUT_NOISE,
        _without_momentum,
        lambda x, setting: None if x.eps.is_constant else eps_in_step(x, setting),
    )

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Theorem B after T steps, with momentum too (C2 with nothing clipped)."""
        return full_batch_bound(Sequences.of_algorithm(x, steps), problem).offer()


def _keeps_direction(_: Algorithm, setting: Setting) -> Decision:
    """C2 where gradients are exact and bounded; else (C4) the bias is not known to vanish."""
    if setting.full_batch and setting.gradient_norm is not None:
        told = "exact gradients, bounded: clipping shortens them and keeps their direction (C2)."
        return Decision(Status.HOLDS, told)
    told = "clipped gradients are biased, and the field they follow need not be a gradient (C4)."
    return Decision(Status.UNDECIDED, told)


class Clipped(Weighted):
    """Theorem C: clipped gradients, exact ones (C2) or with their bias in the bound (C3); in the long run only C2."""

    name: ClassVar = "C"
    covered: ClassVar = "gradients clipped to a norm, beside what Theorems W and E cover"
    source: ClassVar = "docs/theorems/clipping.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "clipping"})
    excludes: ClassVar = {
        "no norm is clipped": lambda x: x.clipping is None or x.clipping.kind != "norm",
        **STARTS_FROM_NOTHING,
        "weight decay is added to the gradient after it is clipped": lambda x: x.l2 != 0,
    }
    uses: ClassVar = ("full_batch", "gradient_norm")
    hypotheses: ClassVar = (_keeps_direction, *WEIGHTED_FOR_EVER)

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """C2 for exact gradients, C3 with the bias of the others, after T steps."""
        threshold, sequences = x.clipping.threshold if x.clipping else math.inf, Sequences.of_algorithm(x, steps)
        if not any(part.noise for part in problem.parts):
            return full_batch_bound(sequences, problem, threshold=threshold).offer()
        if x.eps == NOTHING:
            raise TheoremError("clipped gradients are biased, which costs 1/eps: expected eps > 0")
        return biased_bound(sequences, problem, threshold).offer()

    def bounds_by(self, x: Algorithm, setting: Setting) -> str:
        """C2 for exact gradients, C3 where eps pays for the bias."""
        if setting.full_batch:
            return "Theorem C2"
        return "" if x.eps == NOTHING else "Theorem C3"
