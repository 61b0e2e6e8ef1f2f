r"""Two logarithms that pay for noise, momentum and drift, and the sharp constant of the first of them.

With :math:`U_t = W_t v_t` plus a constant, :math:`\ell_t = \log(U_t/U_{t-1})` and :math:`\ell'_t = 2\log(D_t/
(\sqrt{\theta_t}\,D_{t-1}))` telescope, and their sums are at most :math:`S_t` and :math:`S'_t` in the mean (Jensen):

- :math:`q_t g_t^2/D_t^2 \le 1 - U_{t-1}/U_t \le \ell_t` pays the drift;
- the part of the direction that momentum inherits wrongly is exactly :math:`\rho_t |u_{t-1}| (1 - \sqrt{\theta_t}
  D_{t-1}/D_t) \le \rho_t\sqrt{M_{t-1}}\,\ell'_t/2`, as :math:`1 - e^{-y/2} \le y/2`;
- Lemma N: :math:`\mathbb{E}_t[g(1/\hat D - 1/D)]\,\mathbb{E}_t g \le \bar N \sigma\,\mathbb{E}_t\ell_t/\sqrt{q_t}`
  pays for a divisor that contains the gradient which it divides.

The proofs are on the page docs/theorems/weighted.md; the inequalities are laws in the tests.
"""

from __future__ import annotations

import math

import numpy as np

from generic_adam.theorems.sequences import Array

LEMMA_N = (1 + math.sqrt(5)) / (4 * math.sqrt(2))
"""N = 0.572, the constant of Lemma N where :math:`e_t` is at most the root of the mean second moment, or under it."""

LEMMA_N_ANY_EPS = (1 + math.sqrt(2)) / 2
"""N' = 1.207, its constant whatever :math:`e_t` is."""


def eps_factor(eps: Array, q: Array, gradient: float) -> Array:
    r"""Return what Lemma N's constant is multiplied by for eps beside the root.

    The lemma holds with :math:`\max(N G, N'\min(G, e_t/\sqrt{q_t}))` for :math:`N G`: where :math:`e_t` exceeds the
    root of the mean second moment, the gradients are smaller than :math:`e_t/\sqrt{q_t}`.

    Args:
      eps: :math:`e_t`.
      q: :math:`1 - \theta_t`.
      gradient: G.
    """
    return np.maximum(1.0, LEMMA_N_ANY_EPS / LEMMA_N * np.minimum(1.0, eps / (np.sqrt(q) * gradient)))


def divisor_growth(
    growth: Array, before: Array | float, second_moment: float, eps_before: Array, new_eps: Array, *, under_root: bool
) -> Array:
    r"""Return the increments of :math:`S'_t`, the logarithm of how far the divisor grows.

    .. math::

        S'_t = 2\log\frac{\sqrt{v_0 + G^2(W_t-1)} + \sqrt{W_t}\,e_t}{\sqrt{v_0} + e_1/\sqrt{\theta_1}}, \qquad
        S'_t = \log\frac{v_0 + G^2(W_t-1) + W_t e_t^2}{v_0 + e_1^2/\theta_1}

    with eps beside the root, or under it. Divided by :math:`\sqrt{W_{t-1}}`, every step's growth is a sum of positive
    terms, in which nothing cancels or overflows.

    Args:
      growth: :math:`q_t/\theta_t`.
      before: :math:`v_0/W_{t-1} + G^2(1 - 1/W_{t-1})`, the mean second moment before the step.
      second_moment: :math:`G^2`.
      eps_before: :math:`e_{t-1}`; :math:`e_0 = e_1/\sqrt{\theta_1}`.
      new_eps: :math:`e_t/\sqrt{\theta_t} - e_{t-1} \ge 0`.
      under_root: whether eps is under the root.
    """
    rise = second_moment * growth
    if under_root:
        return np.log1p((rise + new_eps * (new_eps + 2 * eps_before)) / (before + eps_before**2))
    root = np.sqrt(before)
    added = rise / (np.sqrt(before + rise) + root + np.finfo(float).tiny)  # 0 where nothing is there yet
    return 2 * np.log1p((added + new_eps) / (root + eps_before))
