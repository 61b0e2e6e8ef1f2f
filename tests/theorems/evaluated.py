"""Statements of the theorems' pages that the product never evaluates, so that the tests can: the box, the regret."""

from __future__ import annotations

import math

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.sequences import Recursion, Sequences, rounding
from generic_adam.theorems.weighted import certain_parts


def box_bound(sequences: Sequences, start: float) -> float:
    r"""Return X of the box lemma on the steps 1..T.

    .. math:: X = \max\Big(|x_1|_\infty, \max_{t} \frac{\alpha_t}{\nu_t}\sqrt{M_t}\Big), \qquad 0/0 := 0.

    With Nesterov's step, :math:`a_t\sqrt{M_t} + b_t/\sqrt{q_t}` stands for the root.

    Args:
      sequences: the steps 1..T.
      start: :math:`|x_1|_\infty`.

    Raises:
      TheoremError: some :math:`\nu_t` is outside [0, 1], so that x may overshoot 0 or grow; or the step is not W's, E's
        or N's.
    """
    if sequences.heavy_ball is not None or sequences.power != 0.5:
        raise TheoremError("box lemma: expected m_t over the root of v_t, not a heavy ball or another power")
    box, squares = start, 0.0
    for block in sequences.blocks():
        if not 0 <= block.decay.min() <= block.decay.max() <= 1:
            raise TheoremError("box lemma: expected 0 <= nu_t <= 1")
        M = Recursion(block.rho**2, block.length)(block.gain**2 / block.q, squares)
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = block.momentum_weight * np.sqrt(M) + block.gradient_weight / np.sqrt(block.q)
            reach = np.where(block.alpha > 0, block.alpha * largest / block.decay, 0.0)
        squares, box = float(M[-1]), max(box, float(reach.max()) * (1 + rounding(sequences.steps)))
    return box


def largest_update(beta: float, theta: float) -> float:
    r"""Return U, with :math:`|\hat m_t|/\sqrt{\hat v_t} \le U` for Adam with both bias corrections, every t.

    .. math:: U = \frac{1-\beta}{\sqrt{(1-\beta^2/\theta)(1-\theta)}} \quad (\beta^2 < \theta),

    so that AdamW has :math:`|x_t|_\infty \le \max(|x_1|_\infty, U/\lambda)` for all t. It is attained in the
    limit by :math:`g_t = (\theta/\beta)^t`. The corrected quantity only grows towards U, by
    :math:`(1-a^t)(1-b^t) \le (1-(ab)^{t/2})^2` with :math:`a = \beta^2/\theta`, :math:`b = \theta`.

    Args:
      beta: in [0, 1).
      theta: in (beta^2, 1); below that U is infinite.

    Examples:
      >>> round(largest_update(0.9, 0.999), 7)
      7.2702918
    """
    if theta <= beta**2:
        return math.inf
    return (1 - beta) / math.sqrt((1 - beta**2 / theta) * (1 - theta))


def regret_bound(x: Sequences, problem: Constants, diameter: float) -> float:
    r"""Return the bound on :math:`R_T`, rounded up: R-AMS with the maximum, else R-NC.

    It is that of the worst case :math:`|g_{t,k}| = G_k`.

    Args:
      x: alpha, constant beta and eps, and theta: constant for R-AMS; with (a) for R-NC (`gamma` decides it exactly).
      problem: its `gradient_sup`.
      diameter: D.

    Raises:
      TheoremError: a hypothesis fails by more than rounding.
    """
    fixed: dict[str, float] = {}
    rates = zeta = last = 0.0
    for block in x.blocks():
        for name in ("beta", "eps", *(["theta", "q"] if x.running_maximum else [])):
            values = getattr(block, name)
            if (values != fixed.setdefault(name, float(values[0]))).any():
                raise TheoremError(f"regret: expected a constant {name}")
        alpha = np.broadcast_to(block.alpha, block.length)
        least = np.concatenate([[last], alpha[:-1]]) * (1.0 if x.running_maximum else np.sqrt(block.theta))
        if (alpha[block.start == 1 :] > least[block.start == 1 :] * (1 + 1e-12)).any():
            asked = "learning rates that never rise" if x.running_maximum else "(a), alpha_t^2 <= theta_t alpha_(t-1)^2"
            raise TheoremError(f"regret: expected {asked}, and it fails from {block.start} on")
        rates, last = rates + block.total(block.alpha), float(alpha[-1])
        zeta = max(zeta, float((alpha / np.sqrt(block.q)).max()))
    beta, sizes = fixed["beta"], [(part.count, part.gradient) for part in certain_parts(problem)]
    if x.running_maximum:
        if beta**2 >= fixed["theta"]:
            raise TheoremError(f"regret: expected beta^2 < theta, got beta = {beta:g} and theta = {fixed['theta']:g}")
        slope = (1 + beta) / (2 * math.sqrt(fixed["q"] * (1 - beta**2 / fixed["theta"]))) * rates
    else:
        slope = (1 + beta) / (1 - beta) * zeta * math.sqrt(x.steps)
    divisors = sum(count * (max(size, math.sqrt(x.initial_v)) + fixed["eps"]) for count, size in sizes)
    start = diameter**2 / (2 * (1 - beta) * last) if last > 0 else math.inf
    # 1 - beta and theta - beta^2 lose digits where they are small.
    apart = fixed["theta"] - beta**2 if x.running_maximum else 1.0
    up = 1 + rounding(x.steps) + 2.0**-50 * (1 / (1 - beta) + 1 / apart)
    return up * (divisors * start + slope * sum(count * size for count, size in sizes))
