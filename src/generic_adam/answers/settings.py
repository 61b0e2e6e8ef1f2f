"""Numbers that follow from the settings alone, and the lines that tell them: how long, how large, lost in rounding?

None of them needs a theorem or a run; each has its formula beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from generic_adam.answers.layout import Line
from generic_adam.errors import GenericAdamError
from generic_adam.methods import Algorithm
from generic_adam.schedules import as_schedule, bias_correction, substitute

Floats = npt.NDArray[np.float64]
_SHORT_MEMORY, _LONG_STEP, _FAINT = 10, 20, 0.1
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


@dataclass(frozen=True)
class Remark:
    """A number that follows from the settings, in words, and whether it matters for this run."""

    text: str
    matters: bool


def remarks(x: Algorithm, dtype: str | None = None) -> Iterator[Remark]:
    """Yield what the settings alone tell of an optimizer; `dtype` is the format of weights without wider copies."""
    theta, beta, steps = x.method.theta, x.method.beta, x.horizon
    if x.preconditioned and theta.is_constant and 0 < theta(1) < 1:
        beta2 = float(theta(1))
        fits = (1 - beta2) * (steps or math.inf)
        run = f"; (1 - beta2) x steps = {fits:.3g}" if steps else ""
        said = f"beta2 = {beta2:g} forgets half in {half_life(beta2):,.0f} steps (times the batch size in samples){run}"
        yield Remark(f"{said}{', a short run for it' * (fits < _SHORT_MEMORY)}", fits < _SHORT_MEMORY)
        if beta.is_constant:
            most = worst_step(float(beta(1)), beta2)
            said = f"the largest step that any gradients can cause is {most:.3g} lr"
            if math.isinf(most):
                said = "beta1^2 >= beta2: there is no limit on the step that gradients can cause"
            yield Remark(said, most > _LONG_STEP)
        yield from _warm_up(x, beta2)
    yield from _decay(x, dtype)
    least = float(x.eps(x.horizon or 10**6))  # without the factor of the bias correction
    if 0 < least < SMALLEST:
        yield Remark(f"eps = {least:g} is 0 in float16, whose smallest number is 6e-8", dtype == "float16")


def rates(x: Algorithm) -> tuple[Floats, Floats]:
    """Return steps spread over the run and the learning rate there, without bias correction."""
    plain = {bias_correction(one): as_schedule(1) for one in (x.method.beta, x.method.theta)}
    steps = np.unique(np.geomspace(1, x.horizon or 10**6, 400).round())
    return steps, np.asarray(substitute(x.method.alpha, plain).at(steps), dtype=np.float64)


def _warm_up(x: Algorithm, beta2: float) -> Iterator[Remark]:
    """The warm-up beside 2 / (1 - beta2), the steps after which v has settled (Ma and Yarats, 2021)."""
    settled = 2 / (1 - beta2)
    try:
        steps, lr = rates(x)
    except GenericAdamError:
        return
    top = int(steps[int(np.argmax(lr >= 0.99 * lr.max()))])
    if top > 1 and lr[0] < 0.5 * lr.max():
        said = f"lr reaches its largest value at about step {top:,}; v settles in about {settled:,.0f} (2/(1 - beta2))"
        yield Remark(said, top < settled / 2)


def _decay(x: Algorithm, dtype: str | None) -> Iterator[Remark]:
    """The decay's own time, what it does in the whole run, and whether half precision has it at all."""
    try:
        steps, _ = rates(x)
        shrinks = np.asarray(x.decay.at(steps), dtype=np.float64)
    except GenericAdamError:
        return
    most = float(shrinks.max())
    if not 0 < most < math.inf:
        return
    whole = float(np.trapezoid(shrinks, steps)) if x.horizon else math.inf
    run = f", {100 * whole:.2g} % over the run" if whole < _FAINT else ""
    yield Remark(
        f"weight decay forgets a weight in 1/(lr wd) = {1 / most:,.0f} steps at the least{run}", whole < _FAINT
    )
    if most < RESOLVED:
        said = f"lr x weight decay = {most:.1g} is lost in bfloat16 weights that have no float32 copy (below 2^-9)"
        yield Remark(said, dtype == "bfloat16")


def setting_lines(x: Algorithm) -> list[Line]:
    """Return a line for each number that matters."""
    return [Line(f"{one.text}.", "Settings", 3) for one in remarks(x) if one.matters]
