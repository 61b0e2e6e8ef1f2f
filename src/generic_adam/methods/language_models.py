"""Published training set-ups of language models with a growing theta_t: Adafactor, unfactored."""

from generic_adam.methods.errors import MethodError
from generic_adam.methods.method import Method
from generic_adam.methods.parameters import ScheduleLike, exact_number
from generic_adam.schedules import Schedule, join, maximum, sqrt
from generic_adam.schedules.nodes import Time

t = Time()


def palm(*, lr: float = 1e-2, beta: ScheduleLike = 0.9, hold: int = 10_000, r: float = 0.8) -> Method:
    r"""PaLM: a constant learning rate, then 1/sqrt(t).

    .. math::
        \alpha_t = \mathrm{lr} \text{ if } t < \mathrm{hold} \text{ else } 1 / \sqrt t, \qquad
        \beta_t = \beta, \qquad \theta_t = 1 - t^{-r}

    theta_1 = 0, so condition 2 fails at t = 1 as published.

    Args:
        lr: the learning rate while it is held.
        beta: the momentum parameter.
        hold: where the decay begins.
        r: the exponent of 1 - theta_t.

    Returns:
        The method.
    """
    return Method(
        join(exact_number("lr", lr, above=0), _whole("hold", hold), 1 / sqrt(t)), beta, _adafactor_theta(r)
    )


def t5(*, hold: int = 10_000, r: float = 0.8) -> Method:
    r"""T5: Adafactor's inverse square root, flat at first, without momentum.

    .. math:: \alpha_t = 1 / \sqrt{\max(t, \mathrm{hold})}, \qquad \beta_t = 0, \qquad \theta_t = 1 - t^{-r}

    theta_1 = 0, so condition 2 fails at t = 1 as published.

    Args:
        hold: where the decay begins.
        r: the exponent of 1 - theta_t.

    Returns:
        The method.
    """
    return Method(1 / sqrt(maximum(t, _whole("hold", hold))), 0, _adafactor_theta(r))


def _adafactor_theta(r: float) -> Schedule:
    return 1 - t ** -exact_number("r", r, above=0)


def _whole(name: str, value: int) -> int:
    number = exact_number(name, value, at_least=1)
    if number.denominator != 1:
        raise MethodError(f"{name}: expected a whole number >= 1, got {value!r}")
    return int(number)
