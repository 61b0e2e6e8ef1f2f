r"""Theorems G, Z and S: three settings with bounds of their own, in closed form.

**G** (momentum that averages the noise away, after Guo, Xu, Yin, Jin, Yang 2021):
:math:`x_{t+1} = x_t - \alpha\,s_t m_t` with :math:`0 < c_l \le s_{t,k} \le c_u` for whatever reason and
constant beta.

**Z** (big batches, after Zaheer, Reddi, Sachan, Kale, Kumar 2018): RMSProp with
:math:`D = \sqrt v + \text{eps}`.

**S** (signSGD, after Bernstein, Wang, Azizzadenesheli, Anandkumar 2018): Adam with both betas 0 and no eps.

All three bound the plain average over the steps 1..T; the proofs are on the theorems' page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from generic_adam.errors import TheoremError


@dataclass(frozen=True)
class AverageBound:
    r"""A bound on an average over the steps, and the hypothesis under which it holds.

    Args:
      theorem: its letter.
      value: what the average of :math:`\mathbb{E}\|\nabla f(x_t)\|^2` (S: of
        :math:`\mathbb{E}\|\nabla f(x_t)\|_1`) is at most; infinite where the hypothesis fails.
      hypothesis: what is asked for, with its numbers.
      holds: whether it is so.
    """

    theorem: str
    value: float
    hypothesis: str
    holds: bool


def largest_averaging_rate(smoothness: float, beta: float, upper: float) -> float:
    r"""Return the largest alpha of Theorem G: :math:`\min\{1/(2Lc_u), (1-\beta)/(\sqrt2\,\beta L c_u)\}`."""
    first = 1 / (2 * smoothness * upper)
    return first if beta == 0 else min(first, (1 - beta) / (math.sqrt(2) * beta * smoothness * upper))


def averaging_bound(
    *,
    alpha: float,
    beta: float,
    lower: float,
    upper: float,
    smoothness: float,
    gap: float,
    variance: float,
    first_gradient: float,
    steps: int,
) -> AverageBound:
    r"""Evaluate Theorem G.

    .. math::

        \frac1T \sum_t \mathbb{E}\|\nabla f(x_t)\|^2 \le \frac{2\,\text{gap}}{\alpha c_l T}
        + \frac{c_u}{c_l}\Big[\frac{\beta\|\nabla f(x_1)\|^2}{(1-\beta) T} + (1-\beta)\sigma^2\Big]

    Args:
      alpha: the constant learning rate.
      beta: the constant momentum factor.
      lower: c_l, such as 1/(G + eps).
      upper: c_u, such as 1/eps (1/((1 - beta) eps) with bias correction).
      smoothness: L.
      gap: f(x_1) - f*.
      variance: sigma^2, a bound on the conditional variance of the gradient.
      first_gradient: the squared norm of grad f(x_1), or a bound on it.
      steps: T.
    """
    if not 0 < lower <= upper:
        raise TheoremError(f"step factors: expected 0 < lower <= upper, got {lower!r} and {upper!r}")
    if not (0 <= beta < 1 and alpha > 0 and steps >= 1):
        raise TheoremError("Theorem G: expected 0 <= beta < 1, alpha > 0 and at least one step")
    limit = largest_averaging_rate(smoothness, beta, upper)
    holds = alpha <= limit
    start = beta * first_gradient / ((1 - beta) * steps)
    value = 2 * gap / (alpha * lower * steps) + upper / lower * (start + (1 - beta) * variance)
    return AverageBound("G", value if holds else math.inf, f"alpha = {alpha:g} <= {limit:g}", holds)


def big_batch_bound(
    *,
    alpha: float,
    theta: float,
    eps: float,
    smoothness: float,
    gap: float,
    gradient_sup: float,
    variance: float,
    steps: int,
) -> AverageBound:
    r"""Evaluate Theorem Z, if :math:`1-\theta \le \text{eps}^2/(16G^2)`, :math:`\alpha \le \text{eps}/(2L)`.

    .. math::

        \frac1T \sum_t \mathbb{E}\|\nabla f(x_t)\|^2 \le \frac{2(\sqrt\theta G +
        \text{eps})\,\text{gap}}{\alpha T} + \frac{\sqrt\theta G + \text{eps}}{\text{eps}}\,\frac{\sigma^2}{b}

    Args:
      alpha: the constant learning rate.
      theta: the constant theta.
      eps: what is added to the root.
      smoothness: L.
      gap: f(x_1) - f*.
      gradient_sup: G, with |g_k| <= G always.
      variance: sigma^2/b, of a batch.
      steps: T.
    """
    if not (0 < theta < 1 and eps > 0 and alpha > 0 and steps >= 1):
        raise TheoremError("Theorem Z: expected 0 < theta < 1, eps > 0, alpha > 0 and at least one step")
    largest_q, largest_rate = eps**2 / (16 * gradient_sup**2), eps / (2 * smoothness)
    holds = 1 - theta <= largest_q and alpha <= largest_rate
    largest = math.sqrt(theta) * gradient_sup + eps
    value = 2 * largest * gap / (alpha * steps) + largest / eps * variance
    asked = f"1 - theta = {1 - theta:g} <= {largest_q:g} and alpha = {alpha:g} <= {largest_rate:g}"
    return AverageBound("Z", value if holds else math.inf, asked, holds)


def sign_bound(
    *, smoothness_sum: float, gap: float, deviation_sum: float, steps: int, rate: float, batch: float
) -> AverageBound:
    r"""Evaluate Theorem S, with :math:`L_k` and a standard deviation :math:`\sigma_k` for each coordinate.

    .. math::

        \frac1T \sum_t \mathbb{E}\|\nabla f(x_t)\|_1 \le \frac{\text{gap}}{\delta T}
        + \frac{2\|\sigma\|_1}{\sqrt n} + \frac{\delta\|L\|_1}{2}

    With :math:`\delta = 1/\sqrt{\|L\|_1 T}` and :math:`n = T` it is
    :math:`(\sqrt{\|L\|_1}(\text{gap}+\tfrac12) + 2\|\sigma\|_1)/\sqrt T`; with n = 1 the noise is a floor.

    Args:
      smoothness_sum: the sum of the L_k.
      gap: f(x_1) - f*.
      deviation_sum: the sum of the sigma_k of one example.
      steps: T.
      rate: delta, the length of a step in each coordinate.
      batch: n.
    """
    if not (rate > 0 and batch >= 1 and steps >= 1):
        raise TheoremError("Theorem S: expected a positive rate, a batch of at least 1 and at least one step")
    value = gap / (rate * steps) + 2 * deviation_sum / math.sqrt(batch) + rate * smoothness_sum / 2
    return AverageBound("S", value, "each coordinate moves by its gradient's sign", True)
