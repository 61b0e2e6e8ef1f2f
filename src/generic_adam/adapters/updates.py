"""The update rules that optimizers run, from their settings: one small function each, whoever names them.

A rule takes settings under torch's names (a parameter group, or what a configuration file says), lr_t, and beta_t
where a scheduler drives it, and returns the algorithm. A setting that is missing has the default of torch's
functions, which decay nothing. `UPDATES` names the classes that run the rules, by package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generic_adam.errors import OptimizerError, shown
from generic_adam.methods import Algorithm, Clipping, HeavyBall, Method, Nesterov, catalogue
from generic_adam.schedules import Schedule, as_schedule, bias_correction, minimum, sqrt, t

# An eps below this share of sqrt(v_0) is lost when it is added in float32.
_ROUNDING = 2.0**-24
# Apex, DeepSpeed and those after them have one class for both places of the decay, and a flag under either name.
_MODES = ("adam_w_mode", "adamw_mode")


def name_of(kind: type) -> str:
    """Return a class by its package and its name, such as "torch.Adam": the key of the tables of readings."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


class Settings:
    """The settings of an optimizer, by name, from what has a `get`: the first that has a value says it."""

    def __init__(self, *sources: Any) -> None:
        self._sources = sources

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting."""
        return next((value for one in self._sources if (value := one.get(name)) is not None), default)

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a setting as a number."""
        value = self.get(name, default)
        try:
            return float(value)
        except Exception:  # noqa: BLE001 - tensors and arrays of several numbers have errors of their own
            raise OptimizerError(f"{name} is {shown(value)}; expected a number") from None

    def betas(self, theta: float = 0.999) -> tuple[float, float]:
        """Return (beta_1, beta_2), which may be named one by one."""
        given = self.get("betas")
        if given is None:
            return self.number("beta1", 0.9), self.number("beta2", theta)
        try:
            first, second = map(float, given)
        except (TypeError, ValueError):
            raise OptimizerError(f"betas is {shown(given)}; expected two numbers") from None
        return first, second


@dataclass(frozen=True)
class Update:
    """The rule of an optimizer, and where its weight decay is.

    Attributes:
        rule: the algorithm without decay, from the settings, lr_t and beta_t where a scheduler moves it.
        decoupled: True where the decay is decoupled, or the name of the setting that says so.
        outside: what a variant does beside the rule that no theorem covers.
        defaults: the settings of a class that is named in a file, where the file leaves them out; without a name
            (`of_class`) the live settings say all.
    """

    rule: Callable[[Settings, Schedule, Schedule | None], Algorithm]
    decoupled: bool | str = False
    outside: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, given: Any, rate: Schedule, beta: Schedule | None = None) -> Algorithm:
        """Return the algorithm with what any class may have: weight decay lambda, maximize, caution.

        nu_t = lr_t lambda where the decay is decoupled (timm's "corrected" one: lr_t^2 lambda / lr), else lambda
        x_t in the gradient.
        """
        s = Settings(given, self.defaults)
        decoupled = bool(s.get(self.decoupled) if isinstance(self.decoupled, str) else self.decoupled)
        decoupled = bool(next((mode for mode in map(s.get, _MODES) if mode is not None), decoupled))
        found, amount = self.rule(s, rate, beta), s.number("weight_decay")
        outside, notes = [*found.outside, *self.outside], [*found.notes]
        climbs = bool(s.get("maximize"))
        if climbs:
            notes.append("maximize=True: what is said is about the negative of the objective")
        if s.get("caution"):
            outside.append("caution=True: coordinates whose step and gradient disagree stand still")
        bits = s.number("optim_bits", 32)  # bitsandbytes' names, as the next
        if bits < 32 and not self.outside:
            outside.append(f"the moments are kept in {bits:g} bits")
        if s.number("percentile_clipping", 100) < 100:
            outside.append("gradients are clipped at a percentile of their past norms")
        if s.number("max_unorm"):
            outside.append("updates are clipped to a share of the norm of their parameter")
        pace = found.method.alpha if s.get("relative_step") else rate
        if s.get("corrected_weight_decay"):
            pace = pace * pace / s.number("largest_lr", 1.0)
        return replace(
            found,
            l2=0 if decoupled else amount,
            decay=pace * as_schedule(amount) if decoupled and amount else 0,
            maximize=climbs,
            outside=outside,
            notes=notes,
            label="AdamW" if decoupled and found.label == "Adam" else found.label,
        )


def _moved(beta: Schedule | None, said: str = "a scheduler moves the momentum") -> tuple[str, ...]:
    return () if beta is None else (said,)


def _adam(s: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """Return alpha_t = lr_t sqrt(1 - theta^t) / (1 - beta_t^t), which for constant beta is Kingma and Ba's."""
    constant, theta = s.betas()
    found = catalogue.adamw(lr=rate, beta=constant, theta=theta, eps=s.number("eps", 1e-8), weight_decay=0)
    if not s.get("bias_correction", True):  # an option of apex's and DeepSpeed's
        plain = Method(rate, constant if beta is None else beta, theta)
        found = replace(found, method=plain, eps=as_schedule(s.number("eps", 1e-8)))
    elif beta is not None:
        method = Method(rate * sqrt(bias_correction(theta)) / catalogue.power_correction(beta), beta, theta)
        said = "beta1 moves with the schedule; the bias correction is torch's, a power of its last value"
        found = replace(found, method=method, notes=(said,))
    return replace(found, running_maximum=True, label="AMSGrad") if s.get("amsgrad") else found


def _nadam(s: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    (constant, theta), eps, psi = s.betas(), s.number("eps", 1e-8), s.number("momentum_decay", 4e-3)
    found = catalogue.nadam(lr=rate, beta=constant, theta=theta, eps=eps, momentum_decay=psi)
    return replace(found, outside=_moved(beta, "a scheduler moves beta_1 beside NAdam's own momentum"))


def _timm_nadamw(s: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """Return timm's NAdamW: AdamW whose step is along beta m_t + (1 - beta) g_t."""
    plain = _adam(s, rate, beta)
    return replace(plain, nesterov=Nesterov(plain.method.beta, 1 - plain.method.beta), label="NAdamW")


def _rmsprop(s: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """RMSprop: alpha_t = lr_t, theta_t = torch's alpha, momentum after the division, centred or not."""
    theta, eps = s.number("alpha", 0.99), s.number("eps", 1e-8)
    found = catalogue.rmsprop_torch(lr=rate, theta=theta, eps=eps, momentum=s.number("momentum"))
    return replace(found, centered=bool(s.get("centered")), outside=_moved(beta))


def _timm_rmsprop(s: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """timm's RMSpropTF: v_0 = 1, eps under the root, the rate inside the momentum."""
    plain, eps = _rmsprop(s, rate, beta), sqrt(as_schedule(s.number("eps", 1e-10)))
    ball = plain.heavy_ball and HeavyBall(plain.heavy_ball.factor, bool(s.get("lr_in_momentum", True)))
    return replace(plain, initial_v=1.0, eps=eps, eps_under_root=True, heavy_ball=ball)


def _adagrad(s: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Adagrad: `generic_adam.methods.adagrad_torch`, whose rate may fall further by lr_decay."""
    start, eps = s.number("initial_accumulator_value"), s.number("eps", 1e-10)
    swallowed = start > 0 and 0 < eps <= _ROUNDING * start**0.5
    plain = catalogue.adagrad_torch(lr=1, eps=0.0 if swallowed else eps, initial_accumulator=start)
    decayed = rate / (1 + (t - 1) * as_schedule(s.number("lr_decay")))
    said = (f"eps = {eps:g} is added to sqrt(v_t), at the level of rounding",) if swallowed else ()
    return replace(plain, method=Method(decayed * plain.method.alpha, 0, plain.method.theta), notes=said)


def _sgd(s: Settings, rate: Schedule, beta: Schedule | None) -> Algorithm:
    """Stochastic gradient descent: D_t = 1, with heavy-ball momentum or without."""
    momentum, nesterov, outside = s.number("momentum"), s.get("nesterov"), _moved(beta)
    if momentum and nesterov:
        outside += ("Nesterov momentum without a second moment",)
    if s.number("dampening"):
        outside += ("the momentum is dampened",)
    return replace(catalogue.sgd(lr=rate, momentum=momentum), outside=outside)


def _adafactor(
    s: Settings, rate: Schedule, clip: str, exponent: str, *, scaled: bool, adds: bool = False, outside: str = ""
) -> Algorithm:
    """beta_t = 0, theta_t = 1 - t^-0.8, clipped updates and, for matrices, factored moments.

    The first of its eps (timm's is alone) is added to the squares, or (torch's) holds their average up.
    """
    shapes, eps = s.get("params"), s.get("eps", 1e-30 if adds else None)
    floor = float((eps[0] if isinstance(eps, tuple | list) else eps) or 0)
    said = [outside] if outside else []
    if floor > 1e-16:
        said.append(f"eps = {floor:g} beside the squares of the gradients")
    return Algorithm(
        Method(rate, 0, catalogue.adafactor(r=-s.number(exponent, -0.8)).method.theta),
        initial_v=0,
        eps=math.sqrt(floor) if adds and floor <= 1e-16 else 0,
        eps_under_root=adds,
        clipping=Clipping(s.number(clip, 1.0), "update"),
        factored=shapes is None or any(parameter.dim() > 1 for parameter in shapes),
        scaled=scaled,
        outside=said,
        label="Adafactor",
    )


def _torch_adafactor(s: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Torch's Adafactor: alpha_t = min(lr_t, 1/sqrt(t)), times the scale of the parameters; lr_t decays."""
    return _adafactor(s, minimum(rate, 1 / sqrt(t)), "d", "beta2_decay", scaled=True)


def _relative_adafactor(s: Settings, rate: Schedule, _beta: Schedule | None) -> Algorithm:
    """Return transformers' or timm's Adafactor: relative_step has its own rate, scale_parameter multiplies it."""
    relative, slow = bool(s.get("relative_step")), s.get("warmup_init")
    if relative:
        rate = minimum(as_schedule("1e-6 * t" if slow else "0.01"), 1 / sqrt(t))
    timm = s.get("eps_scale") is not None
    scaled = bool(s.get("scale_parameter")) and (relative or not timm)
    averaged = "" if s.get("beta1") is None else "updates are averaged after they were divided and clipped"
    return _adafactor(s, rate, "clip_threshold", "decay_rate", scaled=scaled, adds=True, outside=averaged)


# Where a class is named in a file, lr = 0.001 and no decay are its defaults unless others are said.
UPDATES: dict[str, Update] = {
    "torch.Adam": Update(_adam, "decoupled_weight_decay"),
    "torch.AdamW": Update(_adam, True, defaults={"weight_decay": 1e-2}),
    "torch.NAdam": Update(_nadam, "decoupled_weight_decay", defaults={"lr": 2e-3}),
    "torch.RMSprop": Update(_rmsprop, defaults={"lr": 1e-2}),
    "torch.Adagrad": Update(_adagrad, defaults={"lr": 1e-2}),
    "torch.SGD": Update(_sgd),
    "torch.Adafactor": Update(_torch_adafactor, True, defaults={"lr": 1e-2}),
    "transformers.Adafactor": Update(
        _relative_adafactor, True, defaults={"relative_step": True, "scale_parameter": True}
    ),
    "apex.FusedAdam": Update(_adam, True),
    "deepspeed.FusedAdam": Update(_adam, True),
    "deepspeed.DeepSpeedCPUAdam": Update(_adam, True),
    "timm.Adafactor": Update(
        _relative_adafactor, True, defaults={"relative_step": True, "scale_parameter": True, "eps_scale": 1e-3}
    ),
    "timm.AdamWLegacy": Update(_adam, True, defaults={"weight_decay": 1e-2}),
    "timm.NAdamW": Update(_timm_nadamw, True, defaults={"weight_decay": 1e-2}),
    "timm.RMSpropTF": Update(_timm_rmsprop, "decoupled_decay", defaults={"lr": 1e-2, "alpha": 0.9}),
}

# Other algorithms by the bare name of their class, in whatever package, and the one sentence why.
NOT_READ: dict[str, str] = {
    "adamax": "it divides by a decayed maximum of |g|, not by the root of an average of g^2",
    "radam": "its first steps (five for theta = 0.999) do not divide by sqrt(v_t) at all",
    "adadelta": "its step size is itself an average of past updates, which depends on the data",
    "rprop": "it uses the signs of gradients only",
    "adopt": "it divides each gradient before it averages, and clips the quotient",
    "asgd": "its iterates are averaged, and nothing divides them",
    "lbfgs": "it is a quasi-Newton method",
    "sparseadam": "coordinates without a gradient keep their moments: each has its own t",
    "muon": "its step is an orthogonalised momentum, not a division by coordinates",
    "lion": "its step is the sign of an average",
    "lamb": "it rescales each layer's step by the norm of the weights",
    "lars": "it rescales each layer's step by the norm of the weights",
    "lookahead": "its weights are pulled back to slow ones",
    "ademamix": "its step adds a second, slower average of the gradients",
    "shampoo": "it multiplies by roots of matrices, not by a number for each coordinate",
    "soap": "it averages squares in a rotated basis, not by coordinates",
}

_DECORATIONS = re.compile("fused|torch|cpu|deepspeed|paged|apex|xla|npu|hf|bnb|ao|32bit|8bit|4bit|fp8")
# Their Adams keep the moments in few bits, under names that say so.
_LOW_PRECISION = {"bitsandbytes", "torchao"}


def _bare(name: str) -> str:
    """Return an optimizer's name without its case and decoration: "adamw" for "PagedAdamW8bit"."""
    return _DECORATIONS.sub("", re.sub("[_-]", "", name.rpartition(".")[2].lower()))


def of_class(kind: type) -> Update | None:
    """Return the update rule of exactly this class; None where it is not known."""
    package, _, name = name_of(kind).partition(".")
    if package in _LOW_PRECISION:
        return by_name(name, package) if _bare(name) in {"adam", "adamw"} else None
    found = UPDATES.get(name_of(kind))
    return found and replace(found, defaults={})


def why_not(kind: type) -> str | None:
    """Return why a class of a package that is known here cannot be read; None where nothing says so."""
    known = _LOW_PRECISION | {name.partition(".")[0] for name in UPDATES}
    return NOT_READ.get(_bare(kind.__name__)) if name_of(kind).partition(".")[0] in known else None


def not_read(kind: type) -> OptimizerError:
    """Return the one line for an optimizer that is none of these."""
    for base in kind.__mro__:
        if (reason := why_not(base)) is not None:
            return OptimizerError(f"{base.__name__} is none of the algorithms here: {reason}")
    named = NOT_READ.get(_bare(kind.__name__))
    why = f"by its name, {named}" if named else "its step is not known here"
    if kind.__name__ in _names():
        why += f", and it is not torch.optim.{kind.__name__}"
    return OptimizerError(
        f"{kind.__module__}.{kind.__qualname__} cannot be read: {why}; expected one of {', '.join(_names())} (torch), "
        "or its sequences as an Algorithm"
    )


def by_name(name: str, package: str = "torch") -> Update:
    """Return the update rule that a name means, whatever its case and decoration; the package's own comes first.

    FusedAdam and CPUAdam (apex, DeepSpeed, Transformer Engine, ColossalAI) decay as AdamW does unless `adam_w_mode` or
    `adamw_mode` says otherwise, and by nothing unless told; the Adam of bitsandbytes runs the kernel of its AdamW.
    """
    last, bare = name.rpartition(".")[2], _bare(name)
    spelled = re.sub("[_-]", "", last.lower())
    bits = re.search("[48](?=bit)|(?<=fp)8", spelled)
    known = [one for one in _names() if one.lower() == bare]
    owned = [f"{package}.{one}" for one in (last, *known) if f"{package}.{one}" in UPDATES]
    key = next(iter([*owned, *(f"torch.{one}" for one in known)]), None)
    if key is None:
        why = f": {NOT_READ[bare]}" if bare in NOT_READ else ""
        raise OptimizerError(
            f"the optimizer {name!r} is none that can be read{why}; expected one of {', '.join(_names())}"
        )
    found = UPDATES[key]
    if key == "torch.Adam" and (spelled.endswith(("fusedadam", "cpuadam")) or package in {"bitsandbytes", "bnb"}):
        found = replace(UPDATES["torch.AdamW"], defaults={})
    return replace(found, outside=(f"the moments are kept in {bits[0]} bits",)) if bits else found


def clipped(algorithm: Algorithm, norm: float, **fields: Any) -> Algorithm:
    """Return an algorithm with gradients clipped to a norm, unless it is 0, and other fields."""
    if norm > 0 and algorithm.clipping is None:
        fields["clipping"] = Clipping(norm)
    elif norm > 0:
        fields["outside"] = (*algorithm.outside, f"gradients are clipped to norm {norm:g} before updates are")
    return replace(algorithm, **fields)


def _names() -> list[str]:
    """Return the names of torch's classes that are read."""
    return [name.removeprefix("torch.") for name in UPDATES if name.startswith("torch.")]
