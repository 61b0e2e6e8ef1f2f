"""The update rules that optimizers run, from their settings: one small function each, whoever names them.

Every function takes settings under torch's names (a parameter group, or what a configuration file says),
lr_t, and beta_t where a scheduler drives it, and returns the algorithm. A setting that is missing has torch's
default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm, Clipping, Method, adagrad_torch, nadam, rmsprop_torch, sgd
from generic_adam.methods import adam as adam_sequences
from generic_adam.methods.shipped import corrected_eps
from generic_adam.schedules import (
    Bounded,
    Join,
    Schedule,
    as_schedule,
    bias_correction,
    join,
    minimum,
    sqrt,
    t,
)

Settings = Mapping[str, Any]
Update = Callable[[Settings, Schedule, Schedule | None], Algorithm]

# An eps below this share of sqrt(v_0) is lost when it is added in float32.
_ROUNDING = 2.0**-24


def _number(settings: Settings, name: str, default: float) -> float:
    value = settings.get(name)
    try:
        return float(default if value is None else value)
    except (TypeError, ValueError):
        raise OptimizerError(f"{name} is {value!r}; expected a number") from None


def _betas(settings: Settings, default: tuple[float, float] = (0.9, 0.999)) -> tuple[float, float]:
    given = settings.get("betas")
    try:
        beta, theta = map(float, default if given is None else given)
    except (TypeError, ValueError):
        raise OptimizerError(f"betas is {given!r}; expected two numbers") from None
    return beta, theta


def _with_decay(algorithm: Algorithm, settings: Settings, rate: Schedule, *, decoupled: bool) -> Algorithm:
    """The weight decay lambda: nu_t = lr_t lambda where decoupled, else lambda x_t in the gradient."""
    amount = _number(settings, "weight_decay", 0.0)
    notes = algorithm.notes
    if settings.get("maximize"):
        notes = (*notes, "maximize=True: what is said is about the negative of the objective")
    if not amount:
        return replace(algorithm, notes=notes)
    if decoupled:
        return replace(algorithm, decay=rate * as_schedule(amount), notes=notes)
    return replace(algorithm, l2=amount, notes=notes)


def _adam(settings: Settings, rate: Schedule, beta: Schedule | None, *, decoupled: bool) -> Algorithm:
    """alpha_t = lr_t sqrt(1 - theta^t) / (1 - beta_t^t), which for constant beta is Kingma and Ba's."""
    constant, theta = _betas(settings)
    notes: tuple[str, ...] = ()
    if beta is None:
        method = adam_sequences(lr=rate, beta=constant, theta=theta)
    else:
        method = Method(rate * sqrt(bias_correction(theta)) / _torch_correction(beta), beta, theta)
        notes = ("beta_t moves; the bias correction is torch's, with beta_t^t in place of the product",)
    maximum = bool(settings.get("amsgrad"))
    algorithm = Algorithm(
        method,
        initial_v=0,
        eps=corrected_eps(_number(settings, "eps", 1e-8), theta),
        running_maximum=maximum,
        notes=notes,
        label="AMSGrad" if maximum else "AdamW" if decoupled else "Adam",
    )
    return _with_decay(algorithm, settings, rate, decoupled=decoupled)


def read_adam(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """Adam; weight decay is a part of the gradient unless `decoupled_weight_decay` says otherwise."""
    return _adam(settings, rate, beta, decoupled=bool(settings.get("decoupled_weight_decay")))


def read_adamw(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """AdamW: x_t shrinks by lr_t lambda."""
    return _adam(settings, rate, beta, decoupled=True)


def read_nadam(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """NAdam, as `generic_adam.methods.nadam` has it."""
    constant, theta = _betas(settings)
    algorithm = nadam(
        lr=rate,
        beta=constant,
        theta=theta,
        eps=_number(settings, "eps", 1e-8),
        momentum_decay=_number(settings, "momentum_decay", 4e-3),
    )
    if beta is not None:
        algorithm = replace(algorithm, outside=("a scheduler moves beta_1 beside NAdam's own momentum",))
    decoupled = bool(settings.get("decoupled_weight_decay"))
    return _with_decay(algorithm, settings, rate, decoupled=decoupled)


def read_rmsprop(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """RMSprop: alpha_t = lr_t, theta_t = torch's alpha, momentum after the division, centred or not."""
    algorithm = rmsprop_torch(
        lr=rate,
        theta=_number(settings, "alpha", 0.99),
        eps=_number(settings, "eps", 1e-8),
        momentum=_number(settings, "momentum", 0.0),
    )
    outside = () if beta is None else ("a scheduler moves the momentum",)
    algorithm = replace(algorithm, centered=bool(settings.get("centered")), outside=outside)
    return _with_decay(algorithm, settings, rate, decoupled=False)


def read_adagrad(settings: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Adagrad: the sum of squares is (t + 1) v_t for theta_t = 1 - 1/(t + 1), alpha_t = lr_t/sqrt(t + 1)."""
    start, added = _number(settings, "initial_accumulator_value", 0.0), _number(settings, "eps", 1e-10)
    kept, notes = _unless_swallowed(added, start)
    plain = adagrad_torch(eps=kept, initial_accumulator=start)
    eps = plain.eps if kept else 0
    decayed = rate / (1 + (t - 1) * as_schedule(_number(settings, "lr_decay", 0.0)))
    algorithm = replace(
        plain, method=Method(decayed / sqrt(t + 1), 0, plain.method.theta), eps=eps, notes=notes
    )
    return _with_decay(algorithm, settings, rate, decoupled=False)


def read_sgd(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """Stochastic gradient descent: D_t = 1, with heavy-ball momentum or without."""
    momentum = _number(settings, "momentum", 0.0)
    outside = [
        phrase
        for said, phrase in (
            (momentum and settings.get("nesterov"), "Nesterov momentum without a second moment"),
            (_number(settings, "dampening", 0.0), "the momentum is dampened"),
            (beta is not None, "a scheduler moves the momentum"),
        )
        if said
    ]
    algorithm = replace(sgd(lr=rate, momentum=momentum), outside=tuple(outside))
    return _with_decay(algorithm, settings, rate, decoupled=False)


def read_adafactor(settings: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Torch's Adafactor: alpha_t = min(lr_t, 1/sqrt(t)), beta_t = 0, theta_t = 1 - t^beta2_decay."""
    theta = 1 - t ** as_schedule(_number(settings, "beta2_decay", -0.8))
    scale = (
        "the step is multiplied by max(eps, root mean square of the parameters), which depends on the data"
    )
    algorithm = Algorithm(
        Method(minimum(rate, 1 / sqrt(t)), 0, theta),
        initial_v=0,
        clipping=Clipping(_number(settings, "d", 1.0), "update"),
        factored=any(parameter.dim() > 1 for parameter in settings.get("params", ())),
        outside=(scale,),
        label="Adafactor",
    )
    return _with_decay(algorithm, settings, rate, decoupled=True)


def read_trainer_adafactor(settings: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Transformers' Adafactor as Trainer makes it, with scale_parameter and relative_step off."""
    algorithm = Algorithm(
        Method(rate, 0, 1 - t ** as_schedule(-0.8)),
        initial_v=0,
        clipping=Clipping(1.0, "update"),
        factored=True,
        label="Adafactor",
    )
    return _with_decay(algorithm, settings, rate, decoupled=True)


def _unless_swallowed(eps: float, start: float) -> tuple[float, tuple[str, ...]]:
    """eps, or 0 and a remark where rounding swallows it: it is far below sqrt(v_0)."""
    if eps == 0 or not (start > 0 and eps <= _ROUNDING * start**0.5):
        return eps, ()
    return 0.0, (f"eps = {eps:g} is added to sqrt(v_t), at the level of rounding",)


UPDATES: dict[str, Update] = {
    "Adam": read_adam,
    "AdamW": read_adamw,
    "NAdam": read_nadam,
    "RMSprop": read_rmsprop,
    "Adagrad": read_adagrad,
    "SGD": read_sgd,
    "Adafactor": read_adafactor,
}
"""By the names that torch, and the configuration files of others, use."""


def _torch_correction(beta: Schedule) -> Schedule:
    """1 - beta_t^t as torch computes it, in a form whose limit can be read off."""
    if isinstance(beta, Join):
        return join(1 - beta.before**t, beta.threshold, _torch_correction(beta.after))
    if beta.is_constant:
        return bias_correction(beta)
    exact = 1 - beta**t
    order = beta.order
    if order is None or order.trend != 0 or not 0 <= order.low <= order.high < 1:
        return exact
    # beta_t^t <= beta_t <= sup beta, so the correction lies between 1 - sup beta and 1.
    return Bounded(exact, (1 - order.high) * (1 - 1e-12), 1.0)
