r"""The constants of Theorem 1, each in one place.

With :math:`\gamma = \beta^2/\theta'`, :math:`\chi_t = \alpha_t/\sqrt{1-\theta_t}` and :math:`d` coordinates,

.. math::

    C_1 &= \prod_{\theta_j < \theta'} \theta_j/\theta' \\
    C_2 &= 2 \Big(\frac{\beta/(1-\beta)}{\sqrt{C_1 (1-\gamma)\,\theta_1}} + 1\Big)^2 \\
    C_3 &= \frac{C_0}{\sqrt{C_1}(1-\sqrt\gamma)}
           \Big[\frac{C_0^2 \chi_1 L}{C_1 (1-\sqrt\gamma)^2} + C_2 G\Big] \\
    C   &= \frac{2 C_0\sqrt{G^2+\epsilon d}}{1-\beta}
           \Big[f(x_1) - f^* + C_3 C_0 d \chi_1 \log\Big(1+\frac{G^2}{\epsilon d}\Big)\Big] \\
    C'  &= \frac{2 C_0^2 C_3 d \sqrt{G^2+\epsilon d}}{(1-\beta)\,\theta_1}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generic_adam.theorems.problem import Problem


@dataclass(frozen=True)
class Sequences:
    r"""What Theorem 1 takes from the three sequences on the steps 1..T.

    Args:
      beta: :math:`\beta = \sup_t \beta_t`.
      theta_first: :math:`\theta_1`.
      chi_first: :math:`\chi_1`.
      C0: the constant of (R3), :math:`\sup_t \chi_t / \min_{i \le t} \chi_i`.
    """

    beta: float
    theta_first: float
    chi_first: float
    C0: float


@dataclass(frozen=True)
class Constants:
    """Every constant of Theorem 1, with the paper's letters.

    Args:
      theta_prime: the free number between beta^2 and theta.
      gamma: beta^2 / theta_prime.
      C0: the constant of (R3).
      C1_log: the logarithm of C1; C1 itself may be too small for a double.
      below: how many theta_j are smaller than theta_prime (the paper's N).
      C2: of Lemma "M_t".
      C3: of Lemma "sum of M_t".
      C: the constant that T alpha_T divides alone.
      C_prime: the factor of the sum of alpha_t sqrt(1 - theta_t).
    """

    theta_prime: float
    gamma: float
    C0: float
    C1_log: float
    below: int
    C2: float
    C3: float
    C: float
    C_prime: float

    @property
    def C1(self) -> float:
        """The product of theta_j / theta_prime over the theta_j below theta_prime; 1 if there are none."""
        return math.exp(self.C1_log)

    def to_dict(self) -> dict[str, float]:
        """Return the constants by name, C1 included."""
        names = ("theta_prime", "gamma", "C0", "C1", "C1_log", "below", "C2", "C3", "C", "C_prime")
        return {name: getattr(self, name) for name in names}


def constants(
    problem: Problem, sequences: Sequences, theta_prime: float, C1_log: float, below: int = 0
) -> Constants:
    """Compute the constants of Theorem 1; one that is too large for a double is infinite.

    Args:
      problem: L, G, d, the gap and epsilon.
      sequences: beta, theta_1, chi_1 and C0.
      theta_prime: the free number, above beta^2.
      C1_log: the logarithm of C1 for that theta_prime.
      below: how many theta_j lie below theta_prime.
    """
    beta, C0 = sequences.beta, sequences.C0
    C2_log = log_C2(sequences, theta_prime, C1_log)
    C3 = exponential(log_C3(problem, sequences, theta_prime, C1_log))
    scale = 2 * C0 * problem.second_moment_root / (1 - beta)
    start = C3 * C0 * problem.dimension * sequences.chi_first * problem.start_logarithm
    return Constants(
        theta_prime=theta_prime,
        gamma=beta**2 / theta_prime,
        C0=C0,
        C1_log=C1_log,
        below=below,
        C2=exponential(C2_log),
        C3=C3,
        C=scale * (problem.gap + start),
        C_prime=scale * C0 * C3 * problem.dimension / sequences.theta_first,
    )


def log_C2(sequences: Sequences, theta_prime: float, C1_log: float) -> float:
    """Return the logarithm of C2."""
    beta = sequences.beta
    if beta == 0:
        return math.log(2)
    # 1 - gamma as a difference over theta': positive for every theta' above beta^2, however close.
    one_minus_gamma_log = _log(theta_prime - beta**2) - math.log(theta_prime)
    momentum_log = (
        math.log(beta / (1 - beta)) - (C1_log + one_minus_gamma_log + math.log(sequences.theta_first)) / 2
    )
    return math.log(2) + 2 * _log_sum(0.0, momentum_log)


def log_C3(problem: Problem, sequences: Sequences, theta_prime: float, C1_log: float) -> float:
    """Return the logarithm of C3, finite for any theta_prime above beta^2.

    C and C' are increasing functions of C3 alone once the problem and the sequences are given, so the
    theta_prime that makes C3 least makes the bound least. As a function of log theta_prime, log C3 is convex:
    -log C1 has the increasing slope N, and -log(1 - sqrt gamma) is a sum of decaying exponentials.
    """
    beta, root = sequences.beta, math.sqrt(theta_prime)
    # 1 - sqrt(gamma) = (theta' - beta^2) / (sqrt(theta') (sqrt(theta') + beta)), for the same reason.
    root_log = _log(theta_prime - beta**2) - math.log(root * (root + beta))
    C0_log = math.log(sequences.C0)
    step_log = _log(sequences.chi_first) + math.log(problem.smoothness)
    squared_steps = 2 * C0_log + step_log - C1_log - 2 * root_log
    noise = log_C2(sequences, theta_prime, C1_log) + math.log(problem.total_gradient_bound)
    return C0_log - C1_log / 2 - root_log + _log_sum(squared_steps, noise)


def exponential(exponent: float) -> float:
    """Return e^exponent, infinite where a double cannot hold it."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def _log(number: float) -> float:
    """Return the logarithm, -infinity of a number that has rounded to 0 or below."""
    return math.log(number) if number > 0 else -math.inf


def _log_sum(first: float, second: float) -> float:
    """Return log(e^first + e^second)."""
    larger, smaller = max(first, second), min(first, second)
    if math.isinf(larger):
        return larger
    return larger + math.log1p(math.exp(smaller - larger))
