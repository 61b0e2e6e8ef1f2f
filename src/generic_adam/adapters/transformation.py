"""The algorithm of an Optax transformation, read off the closures it is made of; nothing of Optax is called.

`optax.adam(1e-3)` is a chain of functions whose settings are the variables they close over. Each link that is
known adds its part to the algorithm; one that is not is named, with how to hand over the sequences instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.methods import Algorithm, Clipping, HeavyBall, Method, Nesterov, adagrad, adam
from generic_adam.methods.shipped import corrected_eps
from generic_adam.schedules import Opaque, Schedule, as_schedule, bias_correction, sqrt, t

_INSTEAD = "expected links of Optax's Adam family, or the sequences as ga.Algorithm(ga.Method(...))"


@dataclass
class _Chain:
    """What the links met so far make.

    Attributes:
        rate: lr_t, the product of all scales.
        algorithm: the preconditioner, without its rate, once it was met.
        settings: of the algorithm, from other links.
        decay: lambda of a decay after the preconditioner.
        scaled: whether a scale came before the present link.
    """

    rate: Schedule = field(default_factory=lambda: as_schedule(1))
    algorithm: Algorithm | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decay: float = 0.0
    scaled: bool = False


def read_transformation(transformation: Any) -> Algorithm:
    """The algorithm that a chain of Optax's transformations runs.

    Args:
        transformation: such as `optax.adamw(1e-3)`, `optax.chain(...)`, or one of `generic_adam.optax`.

    Returns:
        The algorithm.

    Raises:
        OptimizerError: a link is not known; the message names it and says what to hand over instead.
    """
    chain = _Chain()
    names = []
    try:
        for name, settings in _links(transformation):
            names.append(name)
            _add(chain, name, settings)
        return _algorithm(chain, names)
    except OptimizerError:
        raise
    except GenericAdamError as error:
        raise OptimizerError(f"the Optax chain {', '.join(names)}: {error}") from error


def _links(transformation: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name of the function that made the link, what its init and update close over), in order."""
    for update, init in _functions(transformation.update, transformation.init):
        name = update.__qualname__.partition(".")[0]
        yield name, _closure(init) | _closure(update)


def _functions(update: Any, init: Any) -> Iterator[tuple[Any, Any]]:
    name, inner = getattr(update, "__qualname__", "").partition(".")[0], _closure(update)
    if name == "chain":
        starts = _closure(init).get("init_fns", ())
        for one, start in zip(inner["update_fns"], starts, strict=True):
            yield from _functions(one, start)
    elif name == "with_extra_args_support":
        yield from _functions(inner["tx"].update, inner["tx"].init)
    elif name == "masked":
        for one, _ in _functions(inner["inner"].update, inner["inner"].init):
            if one.__qualname__.partition(".")[0] != "add_decayed_weights":
                raise OptimizerError(f"optax.masked around {one.__qualname__} cannot be read; {_INSTEAD}")
            yield one, init
    else:
        yield update, init


def _closure(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}


def _add(chain: _Chain, name: str, settings: dict[str, Any]) -> None:
    match name:
        case "scale":
            chain.rate = chain.rate * as_schedule(-float(settings["step_size"]))
            chain.scaled = True
        case "scale_by_schedule":
            function = settings["step_size_fn"]
            chain.rate = chain.rate * Opaque(lambda step: -float(function(step - 1)), "Optax schedule")
            chain.scaled = True
        case "clip_by_global_norm" | "clip" if chain.algorithm is None and not chain.scaled:
            kind = "norm" if name == "clip_by_global_norm" else "value"
            limit = settings["max_norm" if kind == "norm" else "max_delta"]
            chain.settings["clipping"] = Clipping(float(limit), kind)
        case "add_decayed_weights":
            _add_decay(chain, settings)
        case "trace":
            _add_momentum(chain, settings)
        case "identity":
            pass
        case _ if name in _PRECONDITIONERS and chain.algorithm is None and not chain.scaled:
            chain.algorithm = _PRECONDITIONERS[name](settings)
        case _:
            raise OptimizerError(f"the Optax link {name} cannot be read here; {_INSTEAD}")


def _add_decay(chain: _Chain, settings: dict[str, Any]) -> None:
    amount = settings["weight_decay"]
    if callable(amount):
        raise OptimizerError(f"a scheduled weight decay cannot be read; {_INSTEAD}")
    if "mask" in settings:
        chain.notes.append("weight decay leaves masked parameters alone")
    if chain.scaled:
        chain.outside.append("weight decay after the learning rate")
    elif chain.algorithm is None:
        chain.settings["l2"] = float(amount)
    else:
        chain.decay += float(amount)


def _add_momentum(chain: _Chain, settings: dict[str, Any]) -> None:
    if settings["nesterov"]:
        chain.outside.append("Nesterov momentum after the division")
    chain.settings["heavy_ball"] = HeavyBall(Fraction(str(settings["decay"])), rate_inside=chain.scaled)


def _algorithm(chain: _Chain, names: list[str]) -> Algorithm:
    plain = Algorithm(Method(1, 0, 0.5), preconditioned=False, label="SGD")
    algorithm = plain if chain.algorithm is None else chain.algorithm
    method, own = algorithm.method, algorithm.source == "generic_adam"
    if not own or chain.scaled:
        method = Method(method.alpha * chain.rate, method.beta, method.theta)
    return replace(
        algorithm,
        method=method,
        decay=chain.rate * as_schedule(chain.decay),
        outside=(*algorithm.outside, *chain.outside),
        notes=(*algorithm.notes, *chain.notes),
        source=f"Optax: {', '.join(names)}",
        **chain.settings,
    )


def _of_adam(settings: dict[str, Any]) -> Algorithm:
    """mu_hat / (sqrt(nu_hat + eps_root) + eps)."""
    beta, theta, eps, under = (float(settings[name]) for name in ("b1", "b2", "eps", "eps_root"))
    place: dict[str, Any] = {"eps": corrected_eps(eps, theta)}
    if under:
        place |= {"eps": corrected_eps(under**0.5, theta), "eps_under_root": True}
        if eps:
            place["outside"] = (f"eps = {eps:g} is added beside eps_root",)
    if not settings.get("nesterov"):
        return Algorithm(adam(lr=1, beta=beta, theta=theta), initial_v=0, label="Adam", **place)
    ahead = as_schedule(beta) / (1 - as_schedule(beta) ** (t + 1))
    weights = Nesterov(ahead, (1 - as_schedule(beta)) / bias_correction(beta))
    method = Method(sqrt(bias_correction(theta)), beta, theta)
    return Algorithm(method, initial_v=0, nesterov=weights, label="NAdam", **place)


def _of_amsgrad(settings: dict[str, Any]) -> Algorithm:
    phrase = "the running maximum is that of the corrected v_t"
    algorithm = replace(_of_adam(settings), running_maximum=True, label="AMSGrad")
    return replace(algorithm, outside=(*algorithm.outside, phrase))


def _of_rms(settings: dict[str, Any]) -> Algorithm:
    """G / sqrt(nu + eps), or g / (sqrt(nu) + eps)."""
    under = bool(settings["eps_in_sqrt"])
    eps = float(settings["eps"])
    return Algorithm(
        Method(1, 0, float(settings["decay"])),
        initial_v=float(settings["initial_scale"]),
        eps=eps**0.5 if under else eps,
        eps_under_root=under,
        outside=("v_t is bias-corrected",) if settings["bias_correction"] else (),
        label="RMSprop",
    )


def _of_rss(settings: dict[str, Any]) -> Algorithm:
    """G / sqrt(s_t + eps) with s_t = (t + 1) v_t."""
    start = float(settings["initial_accumulator_value"])
    eps = sqrt(as_schedule(float(settings["eps"])) / (t + 1))
    method = adagrad(lr=1)
    return Algorithm(method, initial_v=start, eps=eps, eps_under_root=True, label="Adagrad")


def _of_generic_adam(settings: dict[str, Any]) -> Algorithm:
    """The transformation of `generic_adam.optax`, with its learning rate inside or after it."""
    sequences = settings["running"].schedules
    beta, theta, eps = sequences["beta"], sequences["theta"], float(settings["eps"])
    corrected = bool(settings["bias_correction"])
    method = adam(lr=sequences.get("alpha", 1), beta=beta, theta=theta, bias_correction=corrected)
    return Algorithm(
        method,
        initial_v=float(settings["initial_v"]),
        eps=corrected_eps(eps, theta) if corrected else eps,
        label="GenericAdam",
        source="generic_adam" if "alpha" in sequences else "",
    )


_PRECONDITIONERS = {
    "scale_by_adam": _of_adam,
    "scale_by_amsgrad": _of_amsgrad,
    "scale_by_rms": _of_rms,
    "scale_by_rss": _of_rss,
    "_transformation": _of_generic_adam,
}
