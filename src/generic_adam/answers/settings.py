"""Numbers that follow from the settings alone: how long, how large, lost in rounding?

None of them needs a theorem or a run; each has its formula beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

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
_NO_EFFECT = 1.0
"""A decay that takes less than this many percent of a weight in all is told."""


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


def remarks(x: Algorithm, batch: int | None = None) -> list[str]:
    """Return what the settings alone tell of an optimizer, each with the rule it follows from.

    Args:
        x: one algorithm; others of the same optimizer are not looked at.
        batch: the examples of one step, where they are known.
    """
    return [said for _, said in _told(x, batch)]


def notes(x: Algorithm, at_most: int = 2) -> list[str]:
    """Return the remarks that matter in any training, worst first; a usual recipe has none."""
    several = len(x.parts) > 1
    found: list[tuple[int, str]] = []
    for one in x.parts:
        group = f"group{'s'[: len(one.groups) - 1]} {', '.join(map(str, one.groups))}: " if several else ""
        found += [(matters, group + said) for matters, said in _told(one) if matters]
    return [said for _, said in sorted(found, key=lambda one: -one[0])][:at_most]


def _told(x: Algorithm, batch: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield remarks, each with how much it matters: 0 where it only informs."""
    theta, beta, steps = x.method.theta, x.method.beta, x.horizon
    averages = x.preconditioned and theta.is_constant and 0 < theta(1) < 1
    beta2 = float(theta(1)) if averages else 0.0
    if averages:
        half = half_life(beta2)
        samples = f" ({half * batch:,.0f} samples)" if batch else " (times the batch size in samples)"
        run = f"; (1 - beta2) x steps = {(1 - beta2) * steps:.3g}" if steps else ""
        yield 0, f"beta2 = {beta2:g} forgets half in {half:,.0f} steps{samples}{run}"
        if steps and (1 - beta2) * steps < 1:
            memory = f"beta2 = {beta2:g} averages about {1 / (1 - beta2):,.0f} steps"
            yield 3, f"{memory}; the run has {steps:,}, and its first gradients count to its end"
        if beta.is_constant and _divides_plainly(x):
            most = worst_step(float(beta(1)), beta2)
            limit = "beta1^2 >= beta2: no multiple of lr limits the step that gradients can cause; use a larger beta2"
            yield (4, limit) if math.isinf(most) else (0, f"gradients can cause a step of {most:.3g} lr at most")
    try:
        at, lr = rates(x)
        shrinks = np.asarray(x.decay.at(at), dtype=np.float64)
    except GenericAdamError:
        return
    top = int(at[int(np.argmax(lr >= 0.99 * lr.max()))])
    if top > 1 and lr[0] < 0.5 * lr.max() and averages:
        settled = 2 / (1 - beta2)  # Ma and Yarats, 2021
        said = f"lr reaches its largest value at about step {float(f'{top:.2g}'):,.0f}"
        rule = f"beta2's average settles in about {settled:,.0f} (2/(1 - beta2))"
        # The grid of steps is coarse: a warm-up of this length is found up to a tenth shorter.
        yield (
            (2, f"{said}, before {rule}: a longer warm-up is safer") if top < 0.9 * settled else (0, f"{said}; {rule}")
        )
    most = float(shrinks.max())
    if 0 < most < math.inf:
        whole = 100 * float(np.trapezoid(shrinks, at))
        over = f", {whole:.2g} % over the run" if steps else ""
        yield 0, f"weight decay forgets a weight in 1/(lr wd) = {1 / most:,.0f} steps at the least{over}"
        if steps and whole < _NO_EFFECT:
            yield 1, f"weight decay takes {whole:.2g} % of a weight in all"
        if most < RESOLVED:
            yield 0, f"lr x weight decay = {most:.1g} is lost in bfloat16 weights without a float32 copy (below 2^-9)"
    if 0 < (least := float(x.eps(steps or 10**6))) < SMALLEST:  # without the factor of the bias correction
        yield 0, f"eps = {least:g} is 0 in float16, whose smallest number is 6e-8"


def _divides_plainly(x: Algorithm) -> bool:
    """Return whether the step is lr m/(sqrt(v) + eps) of the averages m and v, which `worst_step` takes for granted."""
    other = (x.running_maximum, x.nesterov, x.heavy_ball, x.delayed, x.factored, x.centered, x.scaled)
    return x.power == Fraction(1, 2) and not any(other)
