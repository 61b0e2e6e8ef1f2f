r"""What the sequences alone say: the three numbers of a horizon, and the floor of constant sequences.

Without a problem, Theorem W's bound (and E's, N's, H's) reads

.. math::

    \frac{X_w}{G_1} \le c_{\text{noise}} + c_{\text{gap}}\,\frac{f(x_1) - f^*}{G_1}
    + c_{\text{drift}}\,\frac{d L}{G_1},

and the l1 bound says something if and only if the right side is below 1 (up to eps). If
:math:`c_{\text{noise}} \ge 1`, the theorem is silent for every problem. With constant sequences the noise
does not vanish:

.. math::

    \limsup_T X_w \le G_1 (1+\sqrt{1+c})^2\,\frac{\ell}{\sqrt q}
    + d L\alpha\,\frac{\ell}{q}\,\frac{(1-\beta)(1+\rho)}{2(1-s^*)(1-\rho)^2}, \qquad
    \ell = \log\frac1\theta, \quad c = \frac{\rho}{\sqrt{1-\rho^2}}, \quad s^* = \frac{\sqrt{1+c}-1}{c}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from generic_adam.errors import TheoremError
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.sweep import FIRST, SECOND, SHARES, STEPS, Form, Part, Sweep
from generic_adam.theorems.weighted import Share, least_ratio

TYPICAL_GRADIENT = 1e-3
"""G_k in the logarithm and beside eps where no problem is given; the numbers barely depend on it."""


@dataclass(frozen=True)
class ThreeNumbers:
    """What a horizon says before the problem is known.

    Args:
      noise: the part of X_w/G_1 that needs no further constant.
      gap: what multiplies (f(x_1) - f*)/G_1.
      drift: what multiplies d L/G_1.
      s: the share of the descent that makes the noise least.
      zeta: the share for eps that does.
    """

    noise: float
    gap: float
    drift: float
    s: float
    zeta: float

    @property
    def informative(self) -> bool:
        """Whether there is a problem for which the theorem says something: the noise is below 1."""
        return self.noise < 1


def three_numbers(sequences: Sequences, form: Form, gradient: float = TYPICAL_GRADIENT) -> ThreeNumbers:
    """Return noise, gap and drift for a theorem's terms, the shares chosen for the least noise.

    The majorants of the four summands are taken one by one, so that the drift is the same for every L.

    Args:
      sequences: the steps 1..T.
      form: the theorem's terms, such as `epsilon.adam_terms`.
      gradient: G_k in the logarithm and beside eps.
    """
    part = Part(1, gradient, gradient, gradient**2)
    sweep = Sweep(sequences, form)
    first, second, lengths, growth = sweep.sums((part,), FIRST, SECOND, STEPS, SHARES)
    whole = sweep.weight + sweep.weight_own
    if not 0 < whole < math.inf:
        return ThreeNumbers(math.inf, math.inf, math.inf, 0.0, 0.0)
    shares = (
        Share(first, whole, None if first else 0.0),
        Share(growth, sweep.weight, None if growth else 0.0),
    )
    s, zeta = least_ratio(second, shares, whole)
    divisor = (1 - s) * whole - zeta * sweep.weight
    if gradient * divisor <= 0:  # learning rates too small for a double
        return ThreeNumbers(math.inf, math.inf, math.inf, s, zeta)
    noise = (second + (first / s if s else 0.0) + (growth / zeta if zeta else 0.0)) / (gradient * divisor)
    return ThreeNumbers(noise, 1 / divisor, lengths / divisor, s, zeta)


@dataclass(frozen=True)
class Floor:
    """Where the bound of constant sequences ends as T grows.

    Args:
      noise: the limit of X_w/G_1 without the drift; the theorem is silent for every problem where it is >= 1.
      drift: what multiplies d L alpha/G_1 beside it.
      s: the share of the descent that makes the noise least.
      zeta: the share for eps that does.
    """

    noise: float
    drift: float
    s: float
    zeta: float = 0.0


def constant_floor(beta: float, theta: float, *, q: float | None = None, share: float = 0.0) -> Floor:
    r"""Return the floor of Theorem W, or of E, for constant beta and theta.

    With eps beside the root a part for :math:`y_t` is added, 0.35 percent at (0.9, 0.999):

    .. math:: \frac{1}{\zeta}\,\frac{(s_\infty\rho)^2\,\ell}{2(1-\rho)^2\sqrt q}.

    Args:
      beta: in [0, 1).
      theta: in (0, 1); where it is not above beta^2 there is no floor but infinity.
      q: 1 - theta, where it has more digits than that.
      share: the limit of E's :math:`s_t`, 1 - sqrt(theta) with eps beside the root, q with it under the root.

    Raises:
      TheoremError: beta or theta is out of range.

    Examples:
      >>> f"{constant_floor(0.9, 0.999).noise:.9f}"
      '0.239649476'
    """
    if not (0 <= beta < 1 and 0 < theta < 1):
        raise TheoremError(f"beta = {beta!r}, theta = {theta!r}: expected 0 <= beta < 1 and 0 < theta < 1")
    q = 1 - theta if q is None else q
    if theta <= beta**2:
        return Floor(math.inf, math.inf, 0.5)
    rho = beta / math.sqrt(theta)
    decrease = -math.log1p(-q)
    first, growth = (
        decrease / math.sqrt(q),
        (share * rho) ** 2 * decrease / (2 * (1 - rho) ** 2 * math.sqrt(q)),
    )
    second = first * rho / math.sqrt(1 - rho**2)
    s, zeta = least_ratio(second, (Share(first, 1.0), Share(growth, 1.0, None if growth else 0.0)), 1.0)
    noise = (first / s + second + (growth / zeta if zeta else 0.0)) / (1 - s - zeta)
    drift = decrease / q * (1 - beta) * (1 + rho) / (2 * (1 - s - zeta) * (1 - rho) ** 2)
    return Floor(noise, drift, s, zeta)


def heavy_ball_floor(factor: float, theta: float) -> Floor:
    r"""Return the floor of Theorem H: noise :math:`4\ell/\sqrt q` whatever the momentum.

    Args:
      factor: mu, in [0, 1).
      theta: in (0, 1).
    """
    plain = constant_floor(0.0, theta)
    return Floor(plain.noise, plain.drift * (1 + factor) / (1 - factor) ** 2, plain.s)


def least_theta(beta: float) -> float:
    """Return the theta from which on the noise floor is below 1: below it the theory is silent.

    Args:
      beta: in [0, 1).

    Examples:
      >>> f"{least_theta(0.9):.6f}"
      '0.983483'
    """
    low, high = 1e-12, 1 - beta**2  # of q; the floor grows with q
    for _ in range(200):
        middle = (low + high) / 2
        if constant_floor(beta, 1 - middle, q=middle).noise < 1:
            low = middle
        else:
            high = middle
    return 1 - low
