"""The learning rate and the number of steps that a guarantee asks for.

The bound of a run is noise + start + curvature (+ decay). A factor k on the learning rate leaves noise and decay as
they are, divides the start by k and multiplies the curvature by k. So it is least at k = sqrt(start / curvature), and
that is the rate for the bound: a rate for the loss is chosen by validation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.parts import Part
from generic_adam.setting import Setting
from generic_adam.theorems.certificate import reading, usual
from generic_adam.theorems.horizon import HorizonAnswer
from generic_adam.theorems.sequences import LONGEST

_LONGEST_SEARCHED = min(LONGEST, 1_000_000)


@dataclass(frozen=True)
class BestRate(Part):
    """The learning rate that makes the bound of a run least.

    Attributes:
        factor: the factor on every learning rate of the run.
        algorithm: the algorithm with that rate, its decay in proportion.
        before: the guarantee as it is.
        after: the guarantee with that rate, computed anew.
    """

    factor: float
    algorithm: Algorithm
    before: HorizonAnswer
    after: HorizonAnswer


def best_rate(subject: Method | Algorithm, steps: int, setting: Setting | None = None) -> BestRate | None:
    """Return the learning rate with the least bound after T steps; None where no bound has a start and a curvature.

    The gap and the curvature are the setting's, else 1 in units of the gradients.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm.
        steps: T.
        setting: what is known of the problem and the run; weights within 1 and idle clipping are assumed beyond it.

    Examples:
        >>> from generic_adam import methods
        >>> found = best_rate(methods.adamw(lr=1.0, weight_decay=0), 100_000)
        >>> f"{found.factor:.2g}: {found.before.relative:.2g} -> {found.after.relative:.2g}"
        '0.00089: 13 -> 0.089'
    """
    x = as_algorithm(subject)
    known = usual(x, setting or Setting())
    before = reading(x, steps, known)
    factor = before.best_rate
    if factor is None:
        return None
    rate = Method(x.method.alpha * factor, x.method.beta, x.method.theta)
    scaled = replace(x, method=rate, decay=x.decay * factor)
    return BestRate(factor, scaled, before, reading(scaled, steps, known))


def steps_needed(subject: Method | Algorithm, setting: Setting | None = None) -> int | None:
    """Return the number of steps from which on the guarantee is useful; None where no number of them is enough.

    Of a schedule that goes on it is the least, to two digits, up to a million. Of one that ends with its run it is
    the length to which that run would have to be stretched, by the closed form of its parts.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm.
        setting: what is known of the problem and the run; weights within 1 and idle clipping are assumed beyond it.

    Examples:
        >>> from generic_adam import methods
        >>> steps_needed(methods.adamw(weight_decay=0))
        3091
    """
    x = as_algorithm(subject)
    known = usual(x, setting or Setting())
    if x.horizon is not None:
        return reading(x, x.horizon, known).steps_needed
    low, high = 1, 10
    while not reading(x, high, known).useful:
        low, high = high, high * 10
        if high > _LONGEST_SEARCHED:
            return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if reading(x, middle, known).useful else (middle, high)
    return high
