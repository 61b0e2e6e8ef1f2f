r"""The pointwise inequalities behind Theorems W, E, N and M as something that can be evaluated.

Everything here speaks of one coordinate and one sequence of gradients; expectations come later. With

.. math::

    D_t = \sqrt{v_t} + e_t, \quad u_t = -m_t/D_t, \quad \hat v_t = \theta_t v_{t-1} + q_t\sigma_t^2, \quad
    h_t = 1/\hat D_t, \quad w_t = \sqrt{q_t}\,|g_t|/D_t, \quad \omega_t = w_t^2,

the proofs need: |m| and |u| in terms of v and omega, what of u_t is not inherited, how much of it is the
growth of e_t, and that the omegas sum to a logarithm. Arrays may hold floats or mpmath's numbers: only
arithmetic and powers are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from generic_adam.theorems.lemmas import Relation, Statement

Numbers = np.ndarray[tuple[int], np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Walk:
    r"""Gradients of one coordinate, and the sequences that turn them into directions.

    Args:
      beta: :math:`\beta_t`.
      theta: :math:`\theta_t`; the first may be 0.
      eps: :math:`e_t`.
      gradients: :math:`g_t`.
      exact: :math:`\nabla_k f(x_t)`.
      sigma: :math:`\sigma_t \ge |\nabla_k f(x_t)|`, the root of :math:`\mathbb{E}_t g_t^2`.
      initial_v: :math:`v_0`.
      under_root: whether :math:`D_t = \sqrt{v_t + e_t^2}`.
      running_maximum: whether :math:`D_t = \sqrt{\max_{i\le t} v_i} + e_t`.
    """

    beta: Numbers
    theta: Numbers
    eps: Numbers
    gradients: Numbers
    exact: Numbers
    sigma: Numbers
    initial_v: Any
    under_root: bool = False
    running_maximum: bool = False

    @property
    def q(self) -> Numbers:
        r""":math:`q_t = 1 - \theta_t`."""
        return 1 - self.theta

    @cached_property
    def keep(self) -> Numbers:
        r""":math:`r_t`: :math:`\rho_t`, or :math:`\beta_t` with a running maximum."""
        if self.running_maximum:
            return self.beta
        return self.rho

    @cached_property
    def rho(self) -> Numbers:
        r""":math:`\rho_t = \beta_t/\sqrt{\theta_t}`; 0 where :math:`\theta_1 = 0`."""
        positive = self.theta > 0
        return np.where(positive, self.beta / np.where(positive, self.theta, 1) ** 0.5, 0 * self.beta)

    @cached_property
    def m(self) -> Numbers:
        r""":math:`m_t`, from :math:`m_0 = 0`."""
        return _recursion(self.beta, (1 - self.beta) * self.gradients, 0)

    @cached_property
    def v(self) -> Numbers:
        r""":math:`v_t`, from :math:`v_0`."""
        return _recursion(self.theta, self.q * self.gradients**2, self.initial_v)

    @cached_property
    def v_before(self) -> Numbers:
        r""":math:`v_{t-1}`."""
        return _before(self.v, self.initial_v)

    @cached_property
    def largest_v(self) -> Numbers:
        r""":math:`\max_{i\le t} v_i`, from :math:`v_0`; :math:`v_t` itself without a running maximum."""
        if not self.running_maximum:
            return self.v
        return np.maximum.accumulate(np.concatenate([[self.initial_v], self.v]))[1:]

    def _divisor(self, v: Numbers) -> Numbers:
        return (v + self.eps**2) ** 0.5 if self.under_root else v**0.5 + self.eps

    @cached_property
    def divisor(self) -> Numbers:
        """D_t."""
        return self._divisor(self.largest_v)

    @cached_property
    def divisor_hat(self) -> Numbers:
        r""":math:`\hat D_t`: :math:`D_t` with :math:`\sigma_t` for :math:`g_t`."""
        hat = self.theta * self.v_before + self.q * self.sigma**2
        if self.running_maximum:
            hat = np.maximum(hat, _before(self.largest_v, self.initial_v))
        return self._divisor(hat)

    @cached_property
    def u(self) -> Numbers:
        """u_t = -m_t/D_t."""
        return -self.m / self.divisor

    @cached_property
    def omega(self) -> Numbers:
        r""":math:`\omega_t = q_t g_t^2/D_t^2`."""
        return self.q * self.gradients**2 / self.divisor**2

    @cached_property
    def share(self) -> Numbers:
        r""":math:`s_t`, the share of :math:`e_t` that is new; 0 at t = 1."""
        if not self.eps[0] > 0:
            return 0 * self.eps
        before = _before(self.eps, self.eps[0])
        theta = 1 + 0 * self.theta if self.running_maximum else self.theta
        if self.under_root:
            share = (self.eps**2 - theta * before**2) / self.eps**2
        else:
            share = (self.eps - theta**0.5 * before) / self.eps
        # Where e_t = sqrt(theta_t) e_{t-1} rounding leaves either sign.
        return np.maximum(np.concatenate([[0 * share[0]], share[1:]]), 0 * share)

    @cached_property
    def M(self) -> Numbers:
        r""":math:`M_t = \rho_t^2 M_{t-1} + (1-\beta_t)^2/q_t`."""
        return _recursion(self.rho**2, (1 - self.beta) ** 2 / self.q, 0)

    @cached_property
    def R(self) -> Numbers:
        r""":math:`R_t = r_t R_{t-1} + 1 - \beta_t`."""
        return _recursion(self.keep, 1 - self.beta, 0)


def momentum_bound(walk: Walk) -> Statement:
    r""":math:`m_t^2 \le M_t v_t`, by Cauchy and Schwarz."""
    return Statement(walk.m**2, walk.M * walk.v)


def direction_bound(walk: Walk) -> Statement:
    r""":math:`u_t^2 \le R_t \sum_{i\le t} (1-\beta_i)\,r_{t,i}\,\omega_i/q_i`, :math:`r` the products."""
    return Statement(walk.u**2, walk.R * _recursion(walk.keep, (1 - walk.beta) * walk.omega / walk.q, 0))


def decomposition(walk: Walk) -> Statement:
    r"""What of a direction is not inherited, for Theorems W, E, E under the root and :math:`M_E`.

    .. math::

        |u_t - r_t u_{t-1} + (1-\beta_t) h_t g_t| \le (1-\beta_t) h_t (|g_t|+\sigma_t) w_t
        + r_t\sqrt{M_{t-1}}\,\omega_t + r_t|u_{t-1}|\,s_t e_t/D_t
    """
    inherited = walk.keep * _before(walk.u, 0)
    new = (1 - walk.beta) * walk.gradients / walk.divisor_hat
    noise = (1 - walk.beta) / walk.divisor_hat * (abs(walk.gradients) + walk.sigma) * walk.omega**0.5
    second = walk.keep * _before(walk.M, 0) ** 0.5 * walk.omega
    growth = abs(inherited) * walk.share * walk.eps / walk.divisor
    scale = abs(walk.u) + abs(inherited) + abs(new)
    return Statement(abs(walk.u - inherited + new), noise + second + growth, scale=scale)


def variance_decomposition(walk: Walk) -> Statement:
    r"""W.3, sharper, with the conditional variance :math:`\nu_t^2 = \sigma_t^2 - (\nabla_k f)^2`.

    .. math:: |g_t|\,|1/D_t - 1/\hat D_t| \le h_t w_t\,(|g_t - \nabla_k f(x_t)| + \nu_t).

    Since :math:`|g^2-\sigma^2| \le |g-\nabla|(|g|+|\nabla|) + \nu^2`,
    :math:`\sqrt q(|g|+|\nabla|) \le \sqrt v + \sqrt{\hat v}` and :math:`\sqrt q\,\nu \le \sqrt{\hat v}`. The
    second moment of the bracket is at most :math:`4\nu^2`, so that the standard deviation itself replaces
    :math:`G_k` beside the new gradient's noise.
    """
    deviation = np.maximum(walk.sigma**2 - walk.exact**2, 0 * walk.sigma) ** 0.5
    left = abs(walk.gradients) * abs(1 / walk.divisor - 1 / walk.divisor_hat)
    right = walk.omega**0.5 / walk.divisor_hat * (abs(walk.gradients - walk.exact) + deviation)
    return Statement(left, right, scale=abs(walk.gradients) / walk.divisor)


def share_bound(walk: Walk) -> Statement:
    r"""E, step (b): :math:`s_t e_t/D_t \le (s_t e_t + s_t\sqrt{q_t}\,\sigma_t)/\hat D_t`."""
    new = walk.share * walk.eps
    return Statement(new / walk.divisor, (new + walk.share * walk.q**0.5 * walk.sigma) / walk.divisor_hat)


def young_for_the_share(walk: Walk, zeta: float, bound: float) -> Statement:
    r"""E, step (b), whole: what the growth of :math:`e_t` costs against the descent.

    .. math::

        |\nabla_k f|\,r_t|u_{t-1}|\,\frac{\delta_t}{D_t} \le \zeta(1-\beta_t) h_t (\nabla_k f)^2
        + y_{t,k} u_{t-1}^2, \qquad y_{t,k} = \frac{r_t^2 s_t^2 (e_t + G_k\sqrt{q_t})}{2\zeta(1-\beta_t)}

    Args:
      walk: the sequences and gradients.
      zeta: a positive number.
      bound: :math:`G_k`, at least every sigma.
    """
    before = abs(_before(walk.u, 0))
    left = abs(walk.exact) * walk.keep * before * walk.share * walk.eps / walk.divisor
    price = walk.eps + bound * walk.q**0.5
    y = (walk.keep * walk.share) ** 2 * price / (2 * zeta * (1 - walk.beta))
    return Statement(left, zeta * (1 - walk.beta) * walk.exact**2 / walk.divisor_hat + y * before**2)


def exponential_of_sum(walk: Walk) -> Statement:
    r"""The logarithm, exponentiated term by term so that no logarithm is taken.

    .. math::

        \prod_{i\le t} \frac{1}{1-\omega'_i} = 1 + \frac{\sum_{i\le t} w_i g_i^2}{v_0 + e_1^2/\theta_1},
        \qquad \omega_i \le \omega'_i := \frac{w_i g_i^2}{v_0 + e_1^2/\theta_1 + \sum_{l\le i} w_l g_l^2}

    and :math:`\omega' \le -\log(1-\omega')`; the statement is :math:`\omega_i \le \omega'_i`. Asks for
    :math:`e_t \ge \sqrt{\theta_t}\,e_{t-1}`; where :math:`\theta_1 = 0` it starts at t = 2 and
    :math:`\omega_1 \le 1`.
    """
    first_is_zero = bool(walk.theta[0] == 0)
    theta = np.concatenate([[1 + 0 * walk.theta[0]], walk.theta[1:]]) if first_is_zero else walk.theta
    growth = _recursion(1 / theta, 0 * theta, 1)
    weighted = walk.q * growth * walk.gradients**2
    if first_is_zero:
        weighted = np.concatenate([[0 * weighted[0]], weighted[1:]])
    start = walk.initial_v * (0 if first_is_zero else 1) + walk.eps[0] ** 2 / theta[0]
    share = weighted / (start + np.add.accumulate(weighted))
    if first_is_zero:
        share = np.concatenate([[1 + 0 * share[0]], share[1:]])
    return Statement(walk.omega, share)


def monotone_identity(walk: Walk) -> Statement:
    r"""M's identity, with :math:`D_0 = \sqrt{v_0} + e_1`.

    .. math:: u_t - \beta_t u_{t-1} = -(1-\beta_t) g_t/D_{t-1} + m_t (1/D_{t-1} - 1/D_t)
    """
    before = _before(walk.divisor, walk.initial_v**0.5 + walk.eps[0])
    left = walk.u - walk.beta * _before(walk.u, 0)
    jump = walk.m * (1 / before - 1 / walk.divisor)
    right = -(1 - walk.beta) * walk.gradients / before + jump
    scale = abs(walk.u) + abs(walk.gradients / before) + abs(walk.m / before)
    return Statement(left, right, Relation.EQUAL, scale)


def jumps_telescope(walk: Walk, weights: Numbers) -> Statement:
    r"""M: :math:`\sum_i Q_i (1/D_{i-1} - 1/D_i) \le \max_i Q_i/D_0` for a divisor that never falls."""
    first = walk.initial_v**0.5 + walk.eps[0]
    jumps = 1 / _before(walk.divisor, first) - 1 / walk.divisor
    return Statement(np.sum(weights * jumps), np.max(weights) / first)


def padam_bound(walk: Walk, power: float, bound: float) -> Statement:
    r"""Padam, :math:`D = \bar v^p + e` and :math:`\epsilon' = e^{1/p}`.

    .. math:: g^2/D^2 \le (G^2 + \epsilon')^{1-2p}\,g^2/(v + \epsilon')

    Args:
      walk: with a running maximum and constant e.
      power: p in (0, 1/2].
      bound: G, at least every \|g\| and the root of v_0.
    """
    divisor = walk.largest_v**power + walk.eps
    floor = walk.eps ** (1 / power)
    factor = (bound**2 + floor) ** (1 - 2 * power)
    return Statement(walk.gradients**2 / divisor**2, factor * walk.gradients**2 / (walk.v + floor))


def majorised_sum(values: Numbers, terms: Numbers, bounds: Numbers) -> Statement:
    r"""Step (e), last: Abel's summation with a majorant, if :math:`\sum_{i\le t}\omega_i \le S_t` for all t.

    .. math:: \sum_i c_i \omega_i \le \sum_t \hat c_t (S_t - S_{t-1})

    Args:
      values: c, not negative.
      terms: omega, not negative.
      bounds: S, non-decreasing.
    """
    hat = np.maximum.accumulate(values[::-1])[::-1]
    return Statement(np.sum(values * terms), np.sum(hat * (bounds - _before(bounds, 0))))


def nesterov_step(u: Numbers, quotient: Numbers, a: Numbers, b: Numbers) -> tuple[Statement, Statement]:
    r"""N: the step :math:`s = a u - b\,g/D` beside :math:`u`, and by itself.

    .. math::

        |s||u| \le (a+\tfrac b2)u^2 + \tfrac b2 (g/D)^2, \qquad s^2 \le (a+b)(a u^2 + b (g/D)^2)
    """
    step = a * u - b * quotient
    return (
        Statement(abs(step) * abs(u), (a + b / 2) * u**2 + b / 2 * quotient**2),
        Statement(step**2, (a + b) * (a * u**2 + b * quotient**2)),
    )


def _recursion(factors: Numbers, terms: Numbers, start: Any) -> Numbers:
    values: list[Any] = []
    current = start
    for factor, term in zip(factors, terms, strict=True):
        current = factor * current + term
        values.append(current)
    return np.array(values)


def _before(values: Numbers, first: Any) -> Numbers:
    return np.concatenate([np.array([first]), values[:-1]])
