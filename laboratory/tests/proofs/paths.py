r"""Paths of Generic Adam on a finite probability space, and a lemma's two sides: what `lemmas` is written in.

On a finite probability space (each step's noise takes finitely many values) an expectation is a finite weighted
sum over the paths, so that a lemma is evaluated exactly and not only estimated. One path of probability 1 is the
deterministic case. The arrays may hold floats or mpmath's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Paths:
    r"""Gradients along every path, with the sequences that turned them into steps.

    The axes are path, step t = 1..T, coordinate k = 1..d. The sequences have one value a step.

    Args:
      alpha: :math:`\alpha_t`, shape (T,).
      beta: :math:`\beta_t`, shape (T,).
      theta: :math:`\theta_t`, shape (T,); the first may be 0.
      gradients: :math:`g_t`, shape (paths, T, d).
      exact: :math:`\nabla f(x_t)`, shape (paths, T, d).
      sigma: :math:`\sigma_t = \sqrt{\mathbb{E}_t[g_t^2]}`, given the path so far, shape (paths, T, d).
      probability: of each path, shape (paths,); they sum to 1.
      initial_v: :math:`v_0`, the value of every coordinate.
      eps: :math:`e_t`, shape (T,), or 0: :math:`D_t = \sqrt{v_t} + e_t`.
      under_root: whether :math:`D_t = \sqrt{v_t + e_t^2}`.
      running_maximum: whether :math:`D_t = \sqrt{\max_{i\le t} v_i} + e_t`.
    """

    alpha: Array
    beta: Array
    theta: Array
    gradients: Array
    exact: Array
    sigma: Array
    probability: Array
    initial_v: Any
    eps: Any = 0.0
    under_root: bool = False
    running_maximum: bool = False

    @cached_property
    def added(self) -> Array:
        """e_t, shape (T, 1)."""
        return np.broadcast_to(self.eps, self.beta.shape)[:, None]

    @cached_property
    def chi(self) -> Array:
        r""":math:`\chi_t = \alpha_t / \sqrt{1-\theta_t}`."""
        return self.alpha / np.sqrt(1 - self.theta)

    @cached_property
    def gain(self) -> Array:
        r""":math:`1 - \beta_t`, shape (T, 1)."""
        return (1 - self.beta)[:, None]

    @cached_property
    def q(self) -> Array:
        r""":math:`q_t = 1 - \theta_t`, shape (T, 1)."""
        return (1 - self.theta)[:, None]

    @cached_property
    def rho(self) -> Array:
        r""":math:`\rho_t = \beta_t/\sqrt{\theta_t}`; 0 where :math:`\theta_1 = 0`."""
        positive = self.theta > 0
        return np.where(positive, self.beta / np.where(positive, self.theta, 1) ** 0.5, 0 * self.beta)

    @property
    def keep(self) -> Array:
        r""":math:`r_t`: :math:`\rho_t`, or :math:`\beta_t` with a running maximum, shape (T, 1)."""
        return (self.beta if self.running_maximum else self.rho)[:, None]

    @cached_property
    def m(self) -> Array:
        r""":math:`m_t = \beta_t m_{t-1} + (1-\beta_t) g_t`, with :math:`m_0 = 0`."""
        return recursion(self.beta, self.gain * self.gradients)

    @cached_property
    def v(self) -> Array:
        r""":math:`v_t = \theta_t v_{t-1} + (1-\theta_t) g_t^2`, from :math:`v_0`."""
        return recursion(self.theta, self.q * self.gradients**2, self.initial_v)

    @property
    def v_before(self) -> Array:
        r""":math:`v_{t-1}`."""
        return before(self.v, self.initial_v)

    @cached_property
    def largest_v(self) -> Array:
        r""":math:`\max_{i\le t} v_i`, from :math:`v_0`; :math:`v_t` itself without a running maximum."""
        if not self.running_maximum:
            return self.v
        return np.maximum(np.maximum.accumulate(self.v, axis=1), self.initial_v)

    def _divisor(self, v: Array) -> Array:
        return (v + self.added**2) ** 0.5 if self.under_root else v**0.5 + self.added

    @cached_property
    def divisor(self) -> Array:
        """D_t."""
        return self._divisor(self.largest_v)

    @cached_property
    def divisor_hat(self) -> Array:
        r""":math:`\hat D_t`: :math:`D_t` with :math:`\sigma_t` for :math:`g_t`, known before :math:`g_t` is."""
        hat = self.theta[:, None] * self.v_before + self.q * self.sigma**2
        if self.running_maximum:
            hat = np.maximum(hat, before(self.largest_v, self.initial_v))
        return self._divisor(hat)

    @cached_property
    def eta_hat(self) -> Array:
        r""":math:`\hat\eta_t = \alpha_t / \hat D_t`."""
        return self.alpha[:, None] / self.divisor_hat

    @cached_property
    def u(self) -> Array:
        """u_t = -m_t/D_t."""
        return -self.m / self.divisor

    @cached_property
    def delta(self) -> Array:
        r""":math:`\Delta_t = x_{t+1} - x_t = \alpha_t u_t`."""
        return self.alpha[:, None] * self.u

    @cached_property
    def omegas(self) -> Array:
        r""":math:`\omega_{t,k} = q_t g_{t,k}^2/D_{t,k}^2`."""
        return self.q * self.gradients**2 / self.divisor**2

    @cached_property
    def omega(self) -> Array:
        r""":math:`\omega_t`, the sum of the :math:`\omega_{t,k}`, shape (paths, T)."""
        return self.omegas.sum(axis=2)

    @cached_property
    def weighted_gradient(self) -> Array:
        r""":math:`\|\nabla f(x_t)\|^2_{\hat\eta_t}`, shape (paths, T)."""
        return (self.eta_hat * self.exact**2).sum(axis=2)

    @cached_property
    def M(self) -> Array:
        r""":math:`M_t = \rho_t^2 M_{t-1} + (1-\beta_t)^2/q_t`, shape (1, T, 1)."""
        return recursion(self.rho**2, (self.gain**2 / self.q)[None])

    @property
    def second_moment(self) -> float:
        r"""The least :math:`G` of (A4): the root of the largest :math:`\mathbb{E}_t\|g_t\|^2` on any path."""
        return float(np.sqrt((self.sigma**2).sum(axis=2).max()))

    def expectation(self, values: Array) -> Array:
        """Average over the paths, by their probabilities; the first axis of `values` is the path."""
        return np.tensordot(self.probability, values, axes=1)


def recursion(factors: Array, terms: Array, start: Any = 0.0) -> Array:
    r"""Return :math:`F_t = \rho_t F_{t-1} + f_t` along the second axis, from :math:`F_0` = `start`."""
    values: list[Array] = []
    current = start + 0 * terms[:, 0]
    for step, factor in enumerate(factors):
        current = factor * current + terms[:, step]
        values.append(current)
    return np.stack(values, axis=1)


def before(values: Array, first: Any = 0.0) -> Array:
    """Return the values one step earlier along the second axis, `first` at t = 1."""
    return np.concatenate([first + 0 * values[:, :1], values[:, :-1]], axis=1)


@dataclass(frozen=True, eq=False)
class Statement:
    """Both sides of a lemma, evaluated.

    Args:
      left: the left side; a number, or one for each step, path or coordinate.
      right: the right side, of the same shape.
      scale: the size of the terms each side is summed from, where these may nearly cancel; else 0.
      equal: whether the sides are to be equal, and not the left at most the right.
    """

    left: Array | np.float64
    right: Array | np.float64
    scale: Array | float = 0.0
    equal: bool = False

    def holds(self, tolerance: float = 1e-9) -> bool:
        """Return whether every entry keeps its relation, up to rounding relative to its sides and scale."""
        scale = np.maximum(np.abs(self.left), np.abs(self.right)) + self.scale
        excess = np.abs(self.left - self.right) if self.equal else self.left - self.right
        # Squares of gradients below 1e-154 are subnormal and have lost their digits.
        return bool(np.all(excess <= tolerance * scale + 1e-300))
