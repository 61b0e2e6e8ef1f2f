r"""Every path that Generic Adam can take on a finite probability space, and what the proofs derive from it.

The lemmas of the supplement speak of expectations. On a finite space (each step's noise takes finitely many
values) an expectation is a finite weighted sum over the paths, so that each lemma can be evaluated exactly
and not only estimated. One path of probability 1 is the deterministic case.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Paths:
    r"""Gradients along every path, with the sequences that turned them into steps.

    The axes are path, step t = 1..T, coordinate k = 1..d. The sequences have one value a step.

    Args:
      alpha: :math:`\alpha_t`, shape (T,).
      beta: :math:`\beta_t`, shape (T,).
      theta: :math:`\theta_t`, shape (T,).
      gradients: :math:`g_t`, shape (paths, T, d).
      exact: :math:`\nabla f(x_t)`, shape (paths, T, d).
      sigma: :math:`\sigma_t = \sqrt{\mathbb{E}_t[g_t^2]}`, given the path so far, shape (paths, T, d).
      probability: of each path, shape (paths,); they sum to 1.
      epsilon: the value of every coordinate of :math:`v_0`.
    """

    alpha: Array
    beta: Array
    theta: Array
    gradients: Array
    exact: Array
    sigma: Array
    probability: Array
    epsilon: float

    @property
    def steps(self) -> int:
        """T."""
        return self.gradients.shape[1]

    @property
    def dimension(self) -> int:
        """The number of coordinates, d."""
        return self.gradients.shape[2]

    @cached_property
    def chi(self) -> Array:
        r""":math:`\chi_t = \alpha_t / \sqrt{1-\theta_t}`."""
        return self.alpha / np.sqrt(1 - self.theta)

    @cached_property
    def m(self) -> Array:
        r""":math:`m_t = \beta_t m_{t-1} + (1-\beta_t) g_t`, with :math:`m_0 = 0`."""
        return _moving_average(self.gradients, self.beta, 0.0)

    @cached_property
    def v(self) -> Array:
        r""":math:`v_t = \theta_t v_{t-1} + (1-\theta_t) g_t^2`, with :math:`v_0 = \epsilon`."""
        return _moving_average(self.gradients**2, self.theta, self.epsilon)

    @cached_property
    def v_before(self) -> Array:
        r""":math:`v_{t-1}`."""
        return _shifted(self.v, self.epsilon)

    @cached_property
    def m_before(self) -> Array:
        r""":math:`m_{t-1}`."""
        return _shifted(self.m, 0.0)

    @cached_property
    def v_hat(self) -> Array:
        r""":math:`\hat v_t = \theta_t v_{t-1} + (1-\theta_t) \sigma_t^2`, known before :math:`g_t` is."""
        theta = self.theta[:, None]
        return theta * self.v_before + (1 - theta) * self.sigma**2

    @cached_property
    def eta_hat(self) -> Array:
        r""":math:`\hat\eta_t = \alpha_t / \sqrt{\hat v_t}`."""
        return self.alpha[:, None] / np.sqrt(self.v_hat)

    @cached_property
    def delta(self) -> Array:
        r""":math:`\Delta_t = x_{t+1} - x_t = -\alpha_t m_t/\sqrt{v_t}`."""
        return -self.alpha[:, None] * self.m / np.sqrt(self.v)

    @cached_property
    def omega(self) -> Array:
        r""":math:`\omega_t = \|\sqrt{1-\theta_t}\, g_t/\sqrt{v_t}\|^2`, shape (paths, T)."""
        return ((1 - self.theta)[:, None] * self.gradients**2 / self.v).sum(axis=2)

    @cached_property
    def weighted_gradient(self) -> Array:
        r""":math:`\|\nabla f(x_t)\|^2_{\hat\eta_t}`, shape (paths, T)."""
        return (self.eta_hat * self.exact**2).sum(axis=2)

    @property
    def second_moment(self) -> float:
        r"""The least :math:`G` of (A4): the root of the largest :math:`\mathbb{E}_t\|g_t\|^2` on any path."""
        return float(np.sqrt((self.sigma**2).sum(axis=2).max()))

    def expectation(self, values: Array) -> Array:
        """Average over the paths, by their probabilities; the first axis of `values` is the path."""
        return np.tensordot(self.probability, values, axes=1)


def _moving_average(values: Array, factors: Array, start: float) -> Array:
    average = np.empty_like(values)
    current = np.full_like(values[:, 0], start)
    for step, factor in enumerate(factors):
        current = factor * current + (1 - factor) * values[:, step]
        average[:, step] = current
    return average


def _shifted(values: Array, start: float) -> Array:
    before = np.full_like(values, start)
    before[:, 1:] = values[:, :-1]
    return before
