"""The algorithm of an Optax transformation, read off the closures it is made of; Optax is not imported.

`optax.adam(1e-3)` is a chain of functions whose settings are the variables they close over, and so is a
schedule such as `optax.cosine_decay_schedule(...)`. Each link that is known adds its part to the algorithm; one
that is not is named, with how to hand over the sequences instead. A schedule's closed form is used only where it
gives the values of the function itself, which is called for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.adapters.clock import Called, Clock
from generic_adam.adapters.schedulers import closed_form
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.methods import Algorithm, Clipping, HeavyBall, Method, Nesterov, adagrad, adam
from generic_adam.methods.catalogue import corrected_eps
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t, tree

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
    chain, names = _Chain(), []
    try:
        for name, settings in _links(transformation.update, transformation.init):
            names.append(name)
            _add(chain, name, settings)
        return _algorithm(chain, names)
    except OptimizerError:
        raise
    except GenericAdamError as error:
        raise OptimizerError(f"the Optax chain {', '.join(names)}: {error}") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # Closures of another version, a hyperparameter that is a schedule, a function under a known name.
        said = " ".join(str(error).split())
        raise OptimizerError(
            f"the Optax chain {', '.join(names) or 'given'} has other parts than expected ({said}); {_INSTEAD}"
        ) from error


def _links(update: Any, init: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name of the function that made the link, what its init and update close over), in order."""
    name, inner = _maker(update), _closure(update)
    match name:
        case "chain":
            for pair in zip(inner["update_fns"], _closure(init).get("init_fns", ()), strict=True):
                yield from _links(*pair)
        case "named_chain":
            for _, one in inner["transforms"]:
                yield from _links(one.update, one.init)
        case "inject_hyperparams":
            given = _closure(init) | inner
            scheduled = {key: value.schedule_fn for key, value in given["sched_hps"].items()}
            built = given["inner_factory"](**given["other_hps"], **given["numeric_hps"], **scheduled)
            yield from _links(built.update, built.init)
        case "with_extra_args_support":
            yield from _links(inner["tx"].update, inner["tx"].init)
        case "masked":
            for one, settings in _links(inner["inner"].update, inner["inner"].init):
                if one != "add_decayed_weights":
                    raise OptimizerError(f"optax.masked around {one} cannot be read; {_INSTEAD}")
                yield one, {**settings, "mask": True}
        case _:
            yield name, _closure(init) | inner


def _maker(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__).partition(".")[0]


def _closure(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a variable that was never given a value
            continue
    return found


def _add(chain: _Chain, name: str, settings: dict[str, Any]) -> None:
    match name:
        case "scale":
            chain.rate = chain.rate * as_schedule(-float(settings["step_size"]))
            chain.scaled = True
        case "scale_by_schedule":
            function, sign = settings["step_size_fn"], -1
            if function.__qualname__.startswith("scale_by_learning_rate"):  # of -1 and the learning rate
                function, sign = _closure(function)["learning_rate"], -_closure(function)["m"]
            chain.rate = chain.rate * (_schedule(function) if sign == 1 else -_schedule(function))
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


def _schedule(function: Any) -> Schedule:
    """u_t = function(t - 1) of an Optax schedule: in closed form where that gives its values, else called."""
    called = tree.Opaque(Called(partial(_values, function), paged=True), "Optax schedule")
    try:
        form = closed_form(*_nested(function), Clock())
        joins = [node.threshold for node in tree.walk(form) if isinstance(node, tree.Join)]
        times = {*range(1, 17), *(int(10 * 1.5**n) for n in range(30))}
        steps = sorted(times.union(join + n for join in joins for n in (-1, 0, 1) if join + n > 0))
        ours, real = form.at(steps), np.array([float(function(step - 1)) for step in steps])
    except (GenericAdamError, AttributeError, ArithmeticError, LookupError, TypeError, ValueError):
        return called
    # Optax computes in float32, and its cosine loses digits near 0.
    return form if np.allclose(ours, real, rtol=1e-5, atol=1e-6 * np.abs(real).max()) else called


def _nested(function: Any) -> tuple[str, SimpleNamespace]:
    """A schedule's name in the table of forms, and its settings."""
    settings = {
        name: getattr(value, "item", lambda v=value: v)() for name, value in _closure(function).items()
    }
    if "value" in settings or set(settings) == {"init_value"}:  # constants, and lengths of 0 that end in one
        return "optax.constant", SimpleNamespace(value=next(iter(settings.values())))
    if "schedules" in settings:
        settings["schedules"] = list(map(_nested, settings["schedules"]))
    return f"optax.{_maker(function)}", SimpleNamespace(**settings)


def _values(function: Any, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    try:
        values = np.asarray(sys.modules["jax"].vmap(function)(counts), dtype=float)
    except Exception:  # noqa: BLE001 - a function of one number alone
        values = np.empty(0)
    if values.shape == counts.shape:
        return values
    return np.array([float(function(count)) for count in counts.tolist()])


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
    """g / sqrt(nu + eps), or g / (sqrt(nu) + eps)."""
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
    """g / sqrt(s_t + eps) with s_t = (t + 1) v_t."""
    start = float(settings["initial_accumulator_value"])
    eps = sqrt(as_schedule(float(settings["eps"])) / (t + 1))
    method = adagrad(lr=1)
    return Algorithm(method, initial_v=start, eps=eps, eps_under_root=True, label="Adagrad")


def _of_generic_adam(settings: dict[str, Any]) -> Algorithm:
    """The transformation of `generic_adam.optax`, with its learning rate inside or after it."""
    sequences = settings["self"].schedules
    return Algorithm(
        Method(sequences["alpha"], sequences["beta"], sequences["theta"]),
        initial_v=float(settings["initial_v"]),
        eps=sequences["eps"],
        label="GenericAdam",
        source="generic_adam" if _closure(settings["move"])["sign"] < 0 else "",
    )


_PRECONDITIONERS = {
    "scale_by_adam": _of_adam,
    "scale_by_amsgrad": _of_amsgrad,
    "scale_by_rms": _of_rms,
    "scale_by_rss": _of_rss,
    "RunningSchedules": _of_generic_adam,
}
