"""Numbers that follow from the settings alone: how long, how large, lost in rounding?

None of them needs a theorem or a run; each has its formula beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from generic_adam.errors import GenericAdamError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule, bias_correction, substitute
from generic_adam.schedules.enclosure import collected

Floats = npt.NDArray[np.float64]
RESOLVED = 2.0**-9
"""A relative change below this is lost in a bfloat16 weight without a float32 copy."""
SMALLEST = 2.0**-24
"""The smallest number above 0 that float16 has."""


def half_life(beta: float) -> float:
    """Return the steps after which an average has forgotten half of a gradient: log(1/2) / log(beta)."""
    return math.log(0.5) / math.log(beta) if 0 < beta < 1 else math.inf if beta >= 1 else 0.0


def worst_step(beta1: float, beta2: float, steps: int | None = None) -> float:
    r"""Return the largest step that any gradients can cause, in units of lr, with eps = 0 and bias correction.

    By Cauchy and Schwarz m_t^2 <= v_t sum_i w_i^2 / u_i for the weights w, u of the last gradients in the two averages:
    :math:`M_t = \frac{(1-\beta_1)^2}{1-\beta_2} \frac{1-\rho^t}{1-\rho} \frac{1-\beta_2^t}{(1-\beta_1^t)^2}` with
    :math:`\rho = \beta_1^2/\beta_2`; the root of its limit is returned without `steps`, infinity where rho >= 1.

    Examples:
        >>> [round(worst_step(0.9, beta2), 3) for beta2 in (0.999, 0.95, 0.9, 0.8)]
        [7.27, 1.165, 1.0, inf]
    """
    ratio = beta1**2 / beta2
    if steps is None:
        return math.inf if ratio >= 1 else (1 - beta1) / math.sqrt((1 - beta2) * (1 - ratio))
    terms = steps if ratio == 1 else (1 - ratio**steps) / (1 - ratio)
    corrected = (1 - beta2**steps) / (1 - beta1**steps) ** 2
    return math.sqrt((1 - beta1) ** 2 / (1 - beta2) * terms * corrected)


def rates(x: Algorithm) -> tuple[Floats, Floats]:
    """Return steps spread over the run and the learning rate there, without bias correction."""
    steps = np.unique(np.geomspace(1, x.horizon or 10**6, 400).round())
    return steps, np.asarray(plain_rate(x).at(steps), dtype=np.float64)


def plain_rate(x: Algorithm) -> Schedule:
    """Return the learning rate as a training script has it, without bias correction."""
    none = {bias_correction(one): as_schedule(1) for one in (x.method.beta, x.method.theta)}
    return collected(substitute(x.method.alpha, none))


def remarks(x: Algorithm) -> Iterator[str]:
    """Yield what the settings alone tell of an optimizer, each with the rule it follows from."""
    theta, beta, steps = x.method.theta, x.method.beta, x.horizon
    if x.preconditioned and theta.is_constant and 0 < theta(1) < 1:
        beta2 = float(theta(1))
        run = f"; (1 - beta2) x steps = {(1 - beta2) * steps:.3g}" if steps else ""
        yield f"beta2 = {beta2:g} forgets half in {half_life(beta2):,.0f} steps (times the batch size in samples){run}"
        if beta.is_constant:
            most = worst_step(float(beta(1)), beta2)
            limit = "beta1^2 >= beta2: there is no limit on the step that gradients can cause"
            yield limit if math.isinf(most) else f"the largest step that any gradients can cause is {most:.3g} lr"
    try:
        at, lr = rates(x)
        shrinks = np.asarray(x.decay.at(at), dtype=np.float64)
    except GenericAdamError:
        return
    top = int(at[int(np.argmax(lr >= 0.99 * lr.max()))])
    if top > 1 and lr[0] < 0.5 * lr.max() and x.preconditioned and theta.is_constant and theta(1) < 1:
        settled = 2 / (1 - float(theta(1)))  # Ma and Yarats, 2021
        yield f"lr reaches its largest value at about step {top:,}; v settles in about {settled:,.0f} (2/(1 - beta2))"
    most = float(shrinks.max())
    if 0 < most < math.inf:
        whole = f", {100 * float(np.trapezoid(shrinks, at)):.2g} % over the run" if steps else ""
        yield f"weight decay forgets a weight in 1/(lr wd) = {1 / most:,.0f} steps at the least{whole}"
        if most < RESOLVED:
            yield f"lr x weight decay = {most:.1g} is lost in bfloat16 weights without a float32 copy (below 2^-9)"
    if 0 < (least := float(x.eps(steps or 10**6))) < SMALLEST:  # without the factor of the bias correction
        yield f"eps = {least:g} is 0 in float16, whose smallest number is 6e-8"
