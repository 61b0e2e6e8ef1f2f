"""The update rules that optimizers run, from their settings: one small function each, whoever names them.

Every function takes settings under torch's names (a parameter group, or what a configuration file says),
lr_t, and beta_t where a scheduler drives it, and returns the algorithm. A setting that is missing has the
default of torch's functions, which decay nothing. `UPDATES` names the classes that run them, by package.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from generic_adam.errors import OptimizerError
from generic_adam.methods import (
    Algorithm,
    Clipping,
    HeavyBall,
    Method,
    Nesterov,
    adagrad_torch,
    adopt,
    nadam,
    rmsprop_torch,
    sgd,
    t5,
)
from generic_adam.methods import adam as adam_sequences
from generic_adam.methods.catalogue import corrected_eps
from generic_adam.schedules import Schedule, as_schedule, bias_correction, join, minimum, sqrt, t, tree

Settings = Mapping[str, Any]
Update = Callable[[Settings, Schedule, Schedule | None], Algorithm]

# An eps below this share of sqrt(v_0) is lost when it is added in float32.
_ROUNDING = 2.0**-24


def name_of(kind: type) -> str:
    """A class by its package and its name, such as "torch.Adam": what the tables of readings are keyed by."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def _number(settings: Settings, name: str, default: float) -> float:
    value = settings.get(name)
    try:
        return float(default if value is None else value)
    except (TypeError, ValueError):
        raise OptimizerError(f"{name} is {reprlib.repr(value)}; expected a number") from None


def _betas(settings: Settings, default: tuple[float, float] = (0.9, 0.999)) -> tuple[float, float]:
    given = settings.get("betas")
    try:
        beta, theta = map(float, default if given is None else given)
    except (TypeError, ValueError):
        raise OptimizerError(f"betas is {reprlib.repr(given)}; expected two numbers") from None
    return beta, theta


def _finished(algorithm: Algorithm, settings: Settings, rate: Schedule, *, decoupled: bool) -> Algorithm:
    """With what any class may have: weight decay lambda, a maximum in place of a minimum, caution.

    nu_t = lr_t lambda where the decay is decoupled (timm's "corrected" one: lr_t^2 lambda / lr), else lambda
    x_t in the gradient.
    """
    amount = _number(settings, "weight_decay", 0.0)
    if settings.get("maximize"):
        said = "maximize=True: what is said is about the negative of the objective"
        algorithm = replace(algorithm, notes=(*algorithm.notes, said))
    if settings.get("caution"):
        said = "caution=True: coordinates whose step and gradient disagree stand still"
        algorithm = replace(algorithm, outside=(*algorithm.outside, said))
    if not amount:
        return algorithm
    if not decoupled:
        return replace(algorithm, l2=amount)
    pace = rate
    if settings.get("corrected_weight_decay"):
        pace = rate * rate / _number(settings, "largest_lr", 1.0)
    return replace(algorithm, decay=pace * as_schedule(amount))


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
    return _finished(algorithm, settings, rate, decoupled=decoupled)


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
    return _finished(algorithm, settings, rate, decoupled=decoupled)


def read_timm_nadamw(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """timm's NAdamW: AdamW whose step is along beta m_t + (1 - beta) g_t."""
    plain = read_adamw(settings, rate, beta)
    moment = plain.method.beta
    return replace(plain, nesterov=Nesterov(moment, 1 - moment), label="NAdamW")


def read_timm_nadam(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """timm's NAdamLegacy: NAdam whose momentum_decay has another name."""
    return read_nadam({**settings, "momentum_decay": settings.get("schedule_decay")}, rate, beta)


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
    return _finished(algorithm, settings, rate, decoupled=bool(settings.get("decoupled_decay")))


def read_timm_rmsprop(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """timm's RMSpropTF: v_0 = 1, eps under the root, the rate inside the momentum."""
    plain = read_rmsprop(settings, rate, beta)
    ball = plain.heavy_ball and HeavyBall(plain.heavy_ball.factor, bool(settings.get("lr_in_momentum", True)))
    eps = as_schedule(_number(settings, "eps", 1e-10))
    return replace(plain, initial_v=1.0, eps=sqrt(eps), eps_under_root=True, heavy_ball=ball)


def read_timm_adopt(settings: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """timm's Adopt: its first step only sets v, and what is divided is clipped at t^clip_exp."""
    constant, theta = _betas(settings, (0.9, 0.9999))
    momentum = constant if beta is None else beta
    algorithm = adopt(lr=rate, beta=momentum, theta=theta, eps=_number(settings, "eps", 1e-6))
    clip = settings.get("clip_exp", 0.333)
    outside = () if clip is None else (f"what was divided is clipped at (t - 1)^{clip:g}",)
    algorithm = replace(algorithm, outside=outside, notes=("the first step only sets v",))
    return _finished(algorithm, settings, rate, decoupled=bool(settings.get("decoupled")))


def read_adagrad(settings: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Adagrad: `generic_adam.methods.adagrad_torch`, whose rate may fall further by lr_decay."""
    start, eps = _number(settings, "initial_accumulator_value", 0.0), _number(settings, "eps", 1e-10)
    swallowed = start > 0 and 0 < eps <= _ROUNDING * start**0.5
    plain = adagrad_torch(lr=1, eps=0.0 if swallowed else eps, initial_accumulator=start)
    decayed = rate / (1 + (t - 1) * as_schedule(_number(settings, "lr_decay", 0.0)))
    algorithm = replace(
        plain,
        method=Method(decayed * plain.method.alpha, 0, plain.method.theta),
        eps=0 if swallowed else plain.eps,
        notes=(f"eps = {eps:g} is added to sqrt(v_t), at the level of rounding",) if swallowed else (),
    )
    return _finished(algorithm, settings, rate, decoupled=False)


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
    return _finished(algorithm, settings, rate, decoupled=False)


def _adafactor(settings: Settings, rate: Schedule, clip: str, exponent: str, **fields: Any) -> Algorithm:
    """beta_t = 0, theta_t = 1 - t^-0.8, clipped updates and, for matrices, factored moments."""
    shapes = settings.get("params")
    algorithm = Algorithm(
        Method(rate, 0, t5(r=-_number(settings, exponent, -0.8)).theta),
        initial_v=0,
        clipping=Clipping(_number(settings, clip, 1.0), "update"),
        factored=shapes is None or any(parameter.dim() > 1 for parameter in shapes),
        label="Adafactor",
        **fields,
    )
    return _finished(algorithm, settings, rate, decoupled=True)


_SCALED = "the step is multiplied by max(eps, root mean square of the parameters), which depends on the data"


def read_adafactor(settings: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Torch's Adafactor: alpha_t = min(lr_t, 1/sqrt(t)), times the scale of the parameters; lr_t decays."""
    found = _adafactor(settings, rate, "d", "beta2_decay", outside=(_SCALED,))
    return replace(found, method=Method(minimum(rate, 1 / sqrt(t)), 0, found.method.theta))


def read_relative_adafactor(settings: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Transformers' and timm's Adafactor: relative_step has a rate of its own, scale_parameter multiplies it."""
    relative, outside = bool(settings.get("relative_step")), []
    if relative:
        start = as_schedule("1e-6 * t") if settings.get("warmup_init") else as_schedule("0.01")
        rate = minimum(start, 1 / sqrt(t))
    if settings.get("scale_parameter") and (relative or "eps_scale" not in settings):  # timm's name
        outside.append(_SCALED)
    if settings.get("beta1") is not None:
        outside.append("updates are averaged after they were divided and clipped")
    return _adafactor(settings, rate, "clip_threshold", "decay_rate", outside=tuple(outside))


UPDATES: dict[str, Update] = {
    "torch.Adam": read_adam,
    "torch.AdamW": read_adamw,
    "torch.NAdam": read_nadam,
    "torch.RMSprop": read_rmsprop,
    "torch.Adagrad": read_adagrad,
    "torch.SGD": read_sgd,
    "torch.Adafactor": read_adafactor,
    "transformers.Adafactor": read_relative_adafactor,
    "timm.Adafactor": read_relative_adafactor,
    "timm.AdamWLegacy": read_adamw,
    "timm.NAdamLegacy": read_timm_nadam,
    "timm.NAdamW": read_timm_nadamw,
    "timm.RMSpropTF": read_timm_rmsprop,
    "timm.Adopt": read_timm_adopt,
}

# Other algorithms, and the one sentence why.
NOT_READ: dict[str, str] = {
    "torch.Adamax": "it divides by a decayed maximum of |g|, not by the root of an average of g^2",
    "torch.RAdam": "its first steps (five for theta = 0.999) do not divide by sqrt(v_t) at all",
    "torch.Adadelta": "its step size is itself an average of past updates, which depends on the data",
    "torch.Rprop": "it uses the signs of gradients only",
    "torch.ASGD": "its iterates are averaged, and nothing divides them",
    "torch.LBFGS": "it is a quasi-Newton method",
    "torch.SparseAdam": "coordinates without a gradient keep their moments: each has its own t",
    "torch.Muon": "its step is an orthogonalised momentum, not a division by coordinates",
    "timm.Lion": "its step is the sign of an average",
    "timm.Lamb": "it rescales each layer's step by the norm of the weights",
    "timm.Lookahead": "its weights are pulled back to slow ones",
}


def not_read(kind: type) -> OptimizerError:
    """The one line for an optimizer that is none of these."""
    for base in kind.__mro__:
        if name_of(base) in NOT_READ:
            return OptimizerError(
                f"{base.__name__} is none of the algorithms here: {NOT_READ[name_of(base)]}"
            )
    return OptimizerError(
        f"{kind.__name__} is not an optimizer that can be read; expected one of {', '.join(_names())} (torch), or "
        "its sequences as an Algorithm"
    )


def by_name(name: str, package: str = "torch") -> Update:
    """The update rule that is meant by a name, whatever its case and decoration; the package's own comes first."""
    if f"{package}.{name.rpartition('.')[2]}" in UPDATES:
        return UPDATES[f"{package}.{name.rpartition('.')[2]}"]
    bare = name.rpartition(".")[2].lower().replace("_", "").replace("-", "")
    for decoration in ("fused", "torch", "cpu", "deepspeed", "paged", "32bit", "apex", "xla", "npu", "hf"):
        bare = bare.replace(decoration, "")
    for known in _names():
        if known.lower() == bare:
            return UPDATES.get(f"{package}.{known}", UPDATES[f"torch.{known}"])
    raise OptimizerError(
        f"the optimizer {name!r} is none that can be read; expected one of {', '.join(_names())}"
    )


def clipped(algorithm: Algorithm, norm: float) -> Algorithm:
    """With gradients clipped to a norm, unless it is 0."""
    if norm <= 0:
        return algorithm
    if algorithm.clipping is None:
        return replace(algorithm, clipping=Clipping(norm))
    said = f"gradients are clipped to norm {norm:g} before updates are"
    return replace(algorithm, outside=(*algorithm.outside, said))


def _names() -> list[str]:
    """Torch's classes that are read, by name."""
    return [name.removeprefix("torch.") for name in UPDATES if name.startswith("torch.")]


def _torch_correction(beta: Schedule) -> Schedule:
    """1 - beta_t^t as torch computes it, in a form whose limit can be read off."""
    if isinstance(beta, tree.Join):
        return join(1 - beta.before**t, beta.threshold, _torch_correction(beta.after))
    if beta.is_constant:
        return bias_correction(beta)
    exact = 1 - beta**t
    order = beta.order
    if order is None or order.trend != 0 or not 0 <= order.low <= order.high < 1:
        return exact
    # beta_t^t <= beta_t <= sup beta, so the correction lies between 1 - sup beta and 1.
    return tree.Bounded(exact, (1 - order.high) * (1 - 1e-12), 1.0)
