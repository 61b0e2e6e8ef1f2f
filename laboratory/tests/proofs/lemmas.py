r"""Every lemma as something that can be evaluated: the paper's supplement, and the steps of W, E, N, M and their kin.

Each function returns the two sides of one lemma on given numbers as a `Statement`. First the paper's, in the
order of the supplement: the logarithmic sum, Abel's summation by parts, the two consequences of (R2) and
(R3), the estimates of m_t^2, of Delta_t, of M_t, and of the two sums from which Theorem 1 follows; where the
paper has a misprint, the corrected statement is evaluated and the docstring says so. Then the pointwise
inequalities of the theorems with weights, coordinate by coordinate: \|m\| and \|u\| in terms of v and omega, what
of u_t is not inherited, that the omegas sum to a logarithm. These use arithmetic and powers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laboratory.tests.proofs.paths import Array, Paths, Statement, before, recursion

if TYPE_CHECKING:
    from generic_adam.theorems.constants import Constants
    from generic_adam.theorems.zou2019 import PaperConstants


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
    return Statement(np.sum(factors * terms), right, equal=True)


def grows_at_most(values: Array, factor: float) -> Statement:
    r"""Lemma 3, for chi and for alpha: :math:`u_t \le C_0 u_i` for every :math:`i \le t`; entry (t, i)."""
    later, earlier = np.tril_indices(len(values))
    return Statement(values[later], factor * values[earlier])


def theta_products(theta: Array, known: PaperConstants) -> Statement:
    r"""Lemma 4, in logarithms: :math:`C_1 \theta'^{t-i} \le \prod_{j=i+1}^t \theta_j`; entry (t, i)."""
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(theta))])
    later, earlier = np.tril_indices(len(logarithms))
    left = known.C1_log + (later - earlier) * np.log(known.theta_prime)
    # An absolute error of a logarithm is a relative error of the product.
    return Statement(left, logarithms[later] - logarithms[earlier], scale=1.0)


def momentum_squared(paths: Paths, known: PaperConstants) -> Statement:
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
    root_v, root_hat = paths.divisor[:, 1:], paths.divisor_hat[:, 1:]
    root_before = np.sqrt(theta * paths.v_before[:, 1:])
    inherited = beta * paths.m[:, :-1]
    A = inherited / (root_v + root_before) + (1 - beta) * g / (root_v + root_hat)
    B = inherited / root_before * (1 - theta) * g * sigma / ((root_v + root_before) * (root_hat + root_before)) - (
        1 - beta
    ) * sigma / (root_v + root_hat)
    left = paths.delta[:, 1:] - _inheritance(paths)[:, None] * paths.delta[:, :-1]
    right = -(1 - beta) * eta_hat * g + eta_hat * (1 - theta) * g / root_v * (g * A + sigma * B)
    scale = np.abs(paths.delta[:, 1:]) + np.abs(eta_hat * g) + np.abs(paths.delta[:, :-1])
    return Statement(left, right, scale, equal=True)


def _inheritance(paths: Paths) -> Array:
    r"""Return :math:`\beta_t\alpha_t/(\sqrt{\theta_t}\alpha_{t-1})` for t = 2..T."""
    return paths.beta[1:] * paths.alpha[1:] / (np.sqrt(paths.theta[1:]) * paths.alpha[:-1])


def expected_progress(paths: Paths, smoothness: float) -> Array:
    r"""Return :math:`M_t = \mathbb{E}[\langle\nabla f(x_t), \Delta_t\rangle + L\|\Delta_t\|^2]`, all t."""
    inner = (paths.exact * paths.delta).sum(axis=2)
    return paths.expectation(inner + smoothness * (paths.delta**2).sum(axis=2))


def _expected_noise(paths: Paths, problem: Constants, known: PaperConstants) -> Array:
    r"""Return :math:`N_t = L\,\mathbb{E}\|\Delta_t\|^2 + C_2 G \chi_t \mathbb{E}\,\omega_t`."""
    squared = paths.expectation((paths.delta**2).sum(axis=2))
    omega = paths.expectation(paths.omega)
    return problem.smoothness * squared + known.C2 * problem.total_gradient_bound * paths.chi * omega


def progress_recursion(paths: Paths, problem: Constants, known: PaperConstants) -> Statement:
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


def sum_of_squared_steps(paths: Paths, known: PaperConstants) -> Statement:
    r"""Lemma 8: the squared steps, on every path.

    .. math:: \sum_t \|\Delta_t\|^2 \le \frac{C_0^2\chi_1}{C_1(1-\sqrt\gamma)^2} \sum_t \chi_t\omega_t
    """
    factor = known.C0**2 * paths.chi[0] / (known.C1 * (1 - np.sqrt(known.gamma)) ** 2)
    return Statement((paths.delta**2).sum(axis=(1, 2)), factor * (paths.chi * paths.omega).sum(axis=1))


def sum_of_progress(paths: Paths, problem: Constants, known: PaperConstants) -> Statement:
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
    right = paths.exact.shape[2] * np.log1p(weighted / (paths.initial_v * paths.exact.shape[2]))
    return Statement(np.cumsum(paths.omega, axis=1), right)


def sum_of_omega(paths: Paths, problem: Constants) -> Statement:
    r"""Lemma 10, for every t.

    .. math::

        \mathbb{E}\sum_{i\le t}\omega_i
        \le d\,\Big[\log\Big(1+\frac{G^2}{\epsilon d}\Big) + \sum_{i\le t}\log\theta_i^{-1}\Big]
    """
    right = problem.dimension * (problem.start_logarithm - np.cumsum(np.log(paths.theta)))
    return Statement(np.cumsum(paths.expectation(paths.omega)), right)


def weighted_sum_of_omega(paths: Paths, problem: Constants, known: PaperConstants) -> Statement:
    r"""Lemma 11, with the sign of the paper's statement; the last display of its proof prints a minus.

    .. math::

        \mathbb{E}\sum_t\chi_t\omega_t \le C_0 d\,\Big[\chi_1\log\Big(1+\frac{G^2}{\epsilon d}\Big)
        + \frac{1}{\theta_1}\sum_t\alpha_t\sqrt{1-\theta_t}\Big]
    """
    sums = np.sum(paths.alpha * np.sqrt(1 - paths.theta))
    right = known.C0 * problem.dimension * (paths.chi[0] * problem.start_logarithm + sums / paths.theta[0])
    return Statement(np.sum(paths.chi * paths.expectation(paths.omega)), right)


def random_iterate(paths: Paths, problem: Constants, known: PaperConstants) -> Statement:
    r"""Lemma 12, with :math:`\tau` uniform on 1..T.

    .. math::

        \big(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3}\big)^{3/2}
        \le \frac{C_0\sqrt{G^2+\epsilon d}}{T\alpha_T}\,\mathbb{E}\sum_t\|\nabla f(x_t)\|^2_{\hat\eta_t}
    """
    total = paths.expectation(paths.weighted_gradient.sum(axis=1))
    factor = known.C0 * problem.second_moment_root / (len(paths.alpha) * paths.alpha[-1])
    return Statement(measured(paths), factor * total)


def theorem_1(paths: Paths, known: PaperConstants) -> Statement:
    r"""Theorem 1, with :math:`\tau` uniform on 1..T.

    .. math::

        \big(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3}\big)^{3/2}
        \le \frac{C + C'\sum_t\alpha_t\sqrt{1-\theta_t}}{T\alpha_T}
    """
    sums = np.sum(paths.alpha * np.sqrt(1 - paths.theta))
    return Statement(measured(paths), (known.C + known.C_prime * sums) / (len(paths.alpha) * paths.alpha[-1]))


def measured(paths: Paths) -> Array:
    r"""Return :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` with :math:`\tau` uniform on 1..T."""
    norms = np.sqrt((paths.exact**2).sum(axis=2))
    return paths.expectation((norms ** (4 / 3)).mean(axis=1)) ** 1.5


def momentum_bound(paths: Paths) -> Statement:
    r""":math:`m_t^2 \le M_t v_t`, by Cauchy and Schwarz."""
    return Statement(paths.m**2, paths.M * paths.v)


def direction_bound(paths: Paths) -> Statement:
    r""":math:`u_t^2 \le R_t \sum_{i\le t} (1-\beta_i)\,r_{t,i}\,\omega_i/q_i` with R of the sweep, r the products."""
    keep = paths.keep[:, 0]
    R = recursion(keep, paths.gain[None])
    return Statement(paths.u**2, R * recursion(keep, paths.gain * paths.omegas / paths.q))


def decomposition(paths: Paths) -> Statement:
    r"""Step (a) of W, E, E under the root and :math:`M_E`: what of a direction is not inherited.

    .. math::

        u_t - r_t u_{t-1} = -(1-\beta_t)\frac{g_t}{D_t} - r_t u_{t-1}\Big(1 - \frac{\tilde D_t}{D_t}\Big)

    with :math:`\tilde D_t = \sqrt{\theta_t}\,D_{t-1}`, or :math:`D_{t-1}` with a running maximum.
    """
    inherited = paths.keep * before(paths.u)
    kept = 1 + 0 * paths.q if paths.running_maximum else paths.theta[:, None] ** 0.5
    new = paths.gain * paths.gradients / paths.divisor
    grown = inherited * (1 - kept * before(paths.divisor) / paths.divisor)
    return Statement(paths.u - inherited, -new - grown, abs(paths.u) + abs(inherited) + abs(new), equal=True)


def variance_bound(paths: Paths) -> Statement:
    r"""W's remark on the variance: :math:`|g_t|\,|1/D_t - 1/\hat D_t| \le h_t w_t\,\big||g_t| - \sigma_t\big|`."""
    left = abs(paths.gradients) * abs(1 / paths.divisor - 1 / paths.divisor_hat)
    right = paths.omegas**0.5 / paths.divisor_hat * abs(abs(paths.gradients) - paths.sigma)
    return Statement(left, right, scale=abs(paths.gradients) / paths.divisor)


def exponential_of_sum(paths: Paths) -> Statement:
    r"""Compare products: the logarithm, exponentiated term by term so that no logarithm is taken.

    .. math::

        \prod_{i\le t} \frac{1}{1-\omega'_i} = 1 + \frac{\sum_{i\le t} w_i g_i^2}{v_0 + e_1^2/\theta_1},
        \qquad \omega_i \le \omega'_i := \frac{w_i g_i^2}{v_0 + e_1^2/\theta_1 + \sum_{l\le i} w_l g_l^2}

    and :math:`\omega' \le -\log(1-\omega')`; the statement is :math:`\omega_i \le \omega'_i`. Asks for
    :math:`e_t \ge \sqrt{\theta_t}\,e_{t-1}`; where :math:`\theta_1 = 0` it starts at t = 2 and
    :math:`\omega_1 \le 1`.
    """
    wiped = bool(paths.theta[0] == 0)
    theta = np.where(paths.theta == 0, 1 + 0 * paths.theta, paths.theta)
    weighted = paths.q / np.multiply.accumulate(theta)[:, None] * paths.gradients**2
    if wiped:
        weighted[:, 0] = 0 * weighted[:, 0]
    start = (0 if wiped else paths.initial_v) + paths.added[0, 0] ** 2 / theta[0]
    share = weighted / (start + np.add.accumulate(weighted, axis=1))
    if wiped:
        share[:, 0] = 1 + 0 * share[:, 0]
    return Statement(paths.omegas, share)


def monotone_identity(paths: Paths) -> Statement:
    r"""M's identity, with :math:`D_0 = \sqrt{v_0} + e_1`.

    .. math:: u_t - \beta_t u_{t-1} = -(1-\beta_t) g_t/D_{t-1} + m_t (1/D_{t-1} - 1/D_t)
    """
    earlier = before(paths.divisor, paths.initial_v**0.5 + paths.added[0, 0])
    left = paths.u - paths.beta[:, None] * before(paths.u)
    jump = paths.m * (1 / earlier - 1 / paths.divisor)
    scale = abs(paths.u) + abs(paths.gradients / earlier) + abs(paths.m / earlier)
    return Statement(left, -paths.gain * paths.gradients / earlier + jump, scale, equal=True)


def jumps_telescope(paths: Paths, weights: Array) -> Statement:
    r"""M: :math:`\sum_i Q_i (1/D_{i-1} - 1/D_i) \le \max_i Q_i/D_0` for a divisor that never falls."""
    first = paths.initial_v**0.5 + paths.added[0, 0]
    jumps = 1 / before(paths.divisor, first) - 1 / paths.divisor
    return Statement((weights * jumps).sum(axis=1), weights.max(axis=1) / first)


def padam_bound(paths: Paths, power: Any, bound: Any) -> Statement:
    r"""Padam, :math:`D = \bar v^p + e`, :math:`\epsilon' = e^{1/p}`; G bounds every \|g\| and the root of v_0.

    .. math:: g^2/D^2 \le (G^2 + \epsilon')^{1-2p}\,g^2/(v + \epsilon')
    """
    floor = paths.added ** (1 / power)
    left = paths.gradients**2 / (paths.largest_v**power + paths.added) ** 2
    factor = (bound**2 + floor) ** (1 - 2 * power)
    return Statement(left, factor * paths.gradients**2 / (paths.v + floor))


def averaged_descent(paths: Paths) -> Statement:
    r"""G: :math:`\nabla s m = \tfrac s2 [\nabla^2 + m^2 - (\nabla - m)^2]` with :math:`s = 1/D`."""
    squares = paths.exact**2 + paths.m**2
    right = (squares - (paths.exact - paths.m) ** 2) / (2 * paths.divisor)
    return Statement(paths.exact * paths.m / paths.divisor, right, squares / paths.divisor, equal=True)


def clipping_bias(sizes: Array, threshold: Any) -> Statement:
    r"""C3: what clipping at c takes off, :math:`(|g| - c)_+ \le |g|^2/(4c)`; hence :math:`\|b\| \le G^2/(4c)`."""
    return Statement(np.maximum(sizes - threshold, 0 * sizes), sizes**2 / (4 * threshold))


def corrected_products(a: Any, b: Any, steps: int) -> Statement:
    r"""Check the box of AdamW: :math:`(1-a^t)(1-b^t) \le (1-(ab)^{t/2})^2` for all t, a and b in [0, 1]."""
    powers = range(1, steps + 1)
    left = np.array([(1 - a**t) * (1 - b**t) for t in powers])
    return Statement(left, np.array([(1 - (a * b) ** (0.5 * t)) ** 2 for t in powers]), scale=1.0)


def majorised_sum(values: Array, terms: Array, bounds: Array) -> Statement:
    r"""Step (e), last: Abel's summation with a majorant, if :math:`\sum_{i\le t}\omega_i \le S_t` for all t.

    .. math:: \sum_i c_i \omega_i \le \sum_t \hat c_t (S_t - S_{t-1})

    Args:
      values: c, not negative.
      terms: omega, not negative.
      bounds: S, non-decreasing.
    """
    hat = np.maximum.accumulate(values[::-1])[::-1]
    increments = bounds - np.concatenate([0 * bounds[:1], bounds[:-1]])
    return Statement(np.sum(values * terms), np.sum(hat * increments))


def nesterov_step(u: Array, quotient: Array, a: Array, b: Array) -> tuple[Statement, Statement]:
    r"""N: the step :math:`s = a u - b\,g/D` beside :math:`u`, and by itself.

    .. math::

        |s||u| \le (a+\tfrac b2)u^2 + \tfrac b2 (g/D)^2, \qquad s^2 \le (a+b)(a u^2 + b (g/D)^2)
    """
    step = a * u - b * quotient
    return (
        Statement(abs(step) * abs(u), (a + b / 2) * u**2 + b / 2 * quotient**2),
        Statement(step**2, (a + b) * (a * u**2 + b * quotient**2)),
    )
