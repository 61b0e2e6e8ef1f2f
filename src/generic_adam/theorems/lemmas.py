r"""Every lemma of the paper's supplement as something that can be evaluated.

Each function returns the two sides of one lemma on given numbers as a `Statement`. In the order of the
supplement: the logarithmic sum, Abel's summation by parts, the two consequences of (R2) and (R3), the
estimates of m_t^2, of Delta_t, of M_t, and of the two sums from which Theorem 1 follows. Where the paper has
a misprint, the corrected statement is evaluated and the docstring says so.

The lemmas speak of expectations. On a finite probability space (each step's noise takes finitely many values)
an expectation is a finite weighted sum over the paths (`Paths`), so that each lemma is evaluated exactly and
not only estimated. One path of probability 1 is the deterministic case.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from generic_adam.theorems.problem import Problem
    from generic_adam.theorems.zou2019_bound import Constants

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


class Relation(StrEnum):
    """How the two sides of a lemma compare."""

    AT_MOST = "<="
    EQUAL = "=="


@dataclass(frozen=True, eq=False)
class Statement:
    """The two sides of a lemma, evaluated.

    Args:
      left: the left side; a number, or one for each step, path or coordinate.
      right: the right side, of the same shape.
      relation: "<=" or "==".
      scale: the size of the terms each side is summed from, where these may nearly cancel; else 0.
    """

    left: Array | np.float64
    right: Array | np.float64
    relation: Relation = Relation.AT_MOST
    scale: Array | float = 0.0

    def holds(self, tolerance: float = 1e-9) -> bool:
        """Whether every entry satisfies the relation, up to rounding relative to its sides and scale."""
        scale = np.maximum(np.abs(self.left), np.abs(self.right)) + self.scale
        excess = self.left - self.right
        if self.relation is Relation.EQUAL:
            excess = np.abs(excess)
        # Squares of gradients below 1e-154 are subnormal and have lost their digits.
        return bool(np.all(excess <= tolerance * scale + 1e-300))


def almost_non_increasing(chi: Array) -> float:
    r"""Return the least :math:`C_0` of (R3) on the steps: :math:`\max_t \chi_t / \min_{i\le t}\chi_i`."""
    return float(np.max(chi / np.minimum.accumulate(chi)))


def log_product_below(theta: Array, theta_prime: float) -> float:
    r"""Return :math:`\log C_1 = \sum_{\theta_j < \theta'} \log(\theta_j/\theta')`."""
    below = theta[theta < theta_prime]
    return float(np.log(below / theta_prime).sum())


def logarithmic_sum(start: float, terms: Array) -> Statement:
    r"""Lemma 1, a sum against the logarithm of its total, for non-negative terms.

    .. math:: \sum_{t\le T} \frac{s_t}{S_t} \le \log S_T - \log S_0, \qquad S_t = S_0 + \sum_{i\le t} s_i
    """
    sums = start + np.cumsum(terms)
    return Statement(np.sum(terms / sums), np.log1p(np.sum(terms) / start))


def summation_by_parts(factors: Array, terms: Array) -> Statement:
    r"""Lemma 2 (Abel): :math:`\sum_t u_t s_t = \sum_{t<T} (u_t - u_{t+1}) S_t + u_T S_T`."""
    sums = np.cumsum(terms)
    right = np.sum((factors[:-1] - factors[1:]) * sums[:-1]) + factors[-1] * sums[-1]
    return Statement(np.sum(factors * terms), right, Relation.EQUAL)


def chi_grows_at_most(chi: Array, C0: float) -> Statement:
    r"""Lemma 3, first half: :math:`\chi_t \le C_0 \chi_i` for every :math:`i \le t`; entry (t, i)."""
    return _grows_at_most(chi, C0)


def alpha_grows_at_most(alpha: Array, C0: float) -> Statement:
    r"""Lemma 3, second half: :math:`\alpha_t \le C_0 \alpha_i` for every :math:`i \le t`; entry (t, i)."""
    return _grows_at_most(alpha, C0)


def _grows_at_most(values: Array, factor: float) -> Statement:
    later, earlier = np.tril_indices(len(values))
    return Statement(values[later], factor * values[earlier])


def theta_products(theta: Array, known: Constants) -> Statement:
    r"""Lemma 4, in logarithms: :math:`C_1 \theta'^{t-i} \le \prod_{j=i+1}^t \theta_j`; entry (t, i)."""
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(theta))])
    later, earlier = np.tril_indices(len(logarithms))
    left = known.C1_log + (later - earlier) * np.log(known.theta_prime)
    # An absolute error of a logarithm is a relative error of the product.
    return Statement(left, logarithms[later] - logarithms[earlier], scale=1.0)


def momentum_squared(paths: Paths, known: Constants) -> Statement:
    r"""Lemma 5: :math:`m_t^2 \le v_t / (C_1 (1-\gamma)(1-\theta_t))`, in every coordinate."""
    factor = known.C1 * (1 - known.gamma) * (1 - paths.theta)
    return Statement(paths.m**2, paths.v / factor[:, None])


def step_decomposition(paths: Paths) -> Statement:
    r"""Lemma 6, for :math:`t \ge 2`: what of a step is not inherited from the one before.

    .. math::

        \Delta_t - \frac{\beta_t\alpha_t}{\sqrt{\theta_t}\,\alpha_{t-1}} \Delta_{t-1}
        = -(1-\beta_t)\hat\eta_t g_t + \hat\eta_t g_t \frac{(1-\theta_t) g_t}{\sqrt{v_t}} A_t
        + \hat\eta_t \sigma_t \frac{(1-\theta_t) g_t}{\sqrt{v_t}} B_t
    """
    beta, theta = paths.beta[1:, None], paths.theta[1:, None]
    g, sigma, eta_hat = (values[:, 1:] for values in (paths.gradients, paths.sigma, paths.eta_hat))
    root_v, root_hat = np.sqrt(paths.v[:, 1:]), np.sqrt(paths.v_hat[:, 1:])
    root_before = np.sqrt(theta * paths.v_before[:, 1:])
    inherited = beta * paths.m_before[:, 1:]
    A = inherited / (root_v + root_before) + (1 - beta) * g / (root_v + root_hat)
    B = inherited / root_before * (1 - theta) * g * sigma / (
        (root_v + root_before) * (root_hat + root_before)
    ) - (1 - beta) * sigma / (root_v + root_hat)
    left = paths.delta[:, 1:] - _inheritance(paths)[:, None] * paths.delta[:, :-1]
    right = -(1 - beta) * eta_hat * g + eta_hat * (1 - theta) * g / root_v * (g * A + sigma * B)
    scale = np.abs(paths.delta[:, 1:]) + np.abs(eta_hat * g) + np.abs(paths.delta[:, :-1])
    return Statement(left, right, Relation.EQUAL, scale)


def _inheritance(paths: Paths) -> Array:
    r"""Return :math:`\beta_t\alpha_t/(\sqrt{\theta_t}\alpha_{t-1})` for t = 2..T."""
    return paths.beta[1:] * paths.alpha[1:] / (np.sqrt(paths.theta[1:]) * paths.alpha[:-1])


def expected_progress(paths: Paths, smoothness: float) -> Array:
    r"""Return :math:`M_t = \mathbb{E}[\langle\nabla f(x_t), \Delta_t\rangle + L\|\Delta_t\|^2]`, all t."""
    inner = (paths.exact * paths.delta).sum(axis=2)
    return paths.expectation(inner + smoothness * (paths.delta**2).sum(axis=2))


def _expected_noise(paths: Paths, problem: Problem, known: Constants) -> Array:
    r"""Return :math:`N_t = L\,\mathbb{E}\|\Delta_t\|^2 + C_2 G \chi_t \mathbb{E}\,\omega_t`."""
    squared = paths.expectation((paths.delta**2).sum(axis=2))
    omega = paths.expectation(paths.omega)
    return problem.smoothness * squared + known.C2 * problem.total_gradient_bound * paths.chi * omega


def progress_recursion(paths: Paths, problem: Problem, known: Constants) -> Statement:
    r"""Lemma 7: the expected progress of a step against that of the one before.

    .. math::

        M_t \le \frac{\beta_t\alpha_t}{\sqrt{\theta_t}\,\alpha_{t-1}} M_{t-1} + N_t
        - \frac{1-\beta}{2}\,\mathbb{E}\|\nabla f(x_t)\|^2_{\hat\eta_t}, \qquad
        N_t = L\,\mathbb{E}\|\Delta_t\|^2 + C_2 G \chi_t\,\mathbb{E}\,\omega_t

    For t = 1, with :math:`M_0 = 0`, the last term is in the paper's proof and missing in its statement.
    """
    progress = expected_progress(paths, problem.smoothness)
    inherited = np.concatenate([[0.0], _inheritance(paths) * progress[:-1]])
    descent = (1 - paths.beta.max()) / 2 * paths.expectation(paths.weighted_gradient)
    return Statement(progress, inherited + _expected_noise(paths, problem, known) - descent)


def sum_of_squared_steps(paths: Paths, known: Constants) -> Statement:
    r"""Lemma 8: the squared steps, on every path.

    .. math:: \sum_t \|\Delta_t\|^2 \le \frac{C_0^2\chi_1}{C_1(1-\sqrt\gamma)^2} \sum_t \chi_t\omega_t
    """
    factor = known.C0**2 * paths.chi[0] / (known.C1 * (1 - np.sqrt(known.gamma)) ** 2)
    return Statement((paths.delta**2).sum(axis=(1, 2)), factor * (paths.chi * paths.omega).sum(axis=1))


def sum_of_progress(paths: Paths, problem: Problem, known: Constants) -> Statement:
    r"""Lemma 9: the expected progress of all steps.

    .. math::

        \sum_t M_t \le C_3\,\mathbb{E}\sum_t\chi_t\omega_t
        - \frac{1-\beta}{2}\,\mathbb{E}\sum_t\|\nabla f(x_t)\|^2_{\hat\eta_t}
    """
    gain = known.C3 * paths.expectation((paths.chi * paths.omega).sum(axis=1))
    descent = (1 - paths.beta.max()) / 2 * paths.expectation(paths.weighted_gradient.sum(axis=1))
    return Statement(expected_progress(paths, problem.smoothness).sum(), gain - descent)


def sum_of_omega_on_a_path(paths: Paths) -> Statement:
    r"""Lemma 10 before its expectation, with the weights of Weighted AdaEMA.

    .. math::

        \sum_{i\le t}\omega_i \le d\log\Big(1 + \frac{1}{\epsilon d}\sum_{i\le t} w_i\|g_i\|^2\Big), \qquad
        w_t = (1-\theta_t)\Big/\prod_{i\le t}\theta_i
    """
    weights = (1 - paths.theta) / np.cumprod(paths.theta)
    weighted = np.cumsum(weights * (paths.gradients**2).sum(axis=2), axis=1)
    right = paths.dimension * np.log1p(weighted / (paths.epsilon * paths.dimension))
    return Statement(np.cumsum(paths.omega, axis=1), right)


def sum_of_omega(paths: Paths, problem: Problem) -> Statement:
    r"""Lemma 10, for every t.

    .. math::

        \mathbb{E}\sum_{i\le t}\omega_i
        \le d\,\Big[\log\Big(1+\frac{G^2}{\epsilon d}\Big) + \sum_{i\le t}\log\theta_i^{-1}\Big]
    """
    right = problem.dimension * (problem.start_logarithm - np.cumsum(np.log(paths.theta)))
    return Statement(np.cumsum(paths.expectation(paths.omega)), right)


def weighted_sum_of_omega(paths: Paths, problem: Problem, known: Constants) -> Statement:
    r"""Lemma 11, with the sign of the paper's statement; the last display of its proof prints a minus.

    .. math::

        \mathbb{E}\sum_t\chi_t\omega_t \le C_0 d\,\Big[\chi_1\log\Big(1+\frac{G^2}{\epsilon d}\Big)
        + \frac{1}{\theta_1}\sum_t\alpha_t\sqrt{1-\theta_t}\Big]
    """
    sums = np.sum(paths.alpha * np.sqrt(1 - paths.theta))
    right = known.C0 * problem.dimension * (paths.chi[0] * problem.start_logarithm + sums / paths.theta[0])
    return Statement(np.sum(paths.chi * paths.expectation(paths.omega)), right)


def random_iterate(paths: Paths, problem: Problem, known: Constants) -> Statement:
    r"""Lemma 12, with :math:`\tau` uniform on 1..T.

    .. math::

        \big(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3}\big)^{3/2}
        \le \frac{C_0\sqrt{G^2+\epsilon d}}{T\alpha_T}\,\mathbb{E}\sum_t\|\nabla f(x_t)\|^2_{\hat\eta_t}
    """
    total = paths.expectation(paths.weighted_gradient.sum(axis=1))
    factor = known.C0 * problem.second_moment_root / (paths.steps * paths.alpha[-1])
    return Statement(measured(paths), factor * total)


def theorem_1(paths: Paths, known: Constants) -> Statement:
    r"""Theorem 1, with :math:`\tau` uniform on 1..T.

    .. math::

        \big(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3}\big)^{3/2}
        \le \frac{C + C'\sum_t\alpha_t\sqrt{1-\theta_t}}{T\alpha_T}
    """
    sums = np.sum(paths.alpha * np.sqrt(1 - paths.theta))
    return Statement(measured(paths), (known.C + known.C_prime * sums) / (paths.steps * paths.alpha[-1]))


def measured(paths: Paths) -> Array:
    r"""Return :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` with :math:`\tau` uniform on 1..T."""
    norms = np.sqrt((paths.exact**2).sum(axis=2))
    return paths.expectation((norms ** (4 / 3)).mean(axis=1)) ** 1.5


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
