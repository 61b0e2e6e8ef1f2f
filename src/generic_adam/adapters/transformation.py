"""The algorithm of an Optax transformation, read off the closures it is made of; Optax is not imported.

`optax.adam(1e-3)` is a chain of functions whose settings are the variables they close over, and so is a
schedule such as `optax.cosine_decay_schedule(...)`. Each link that is known adds its part to the algorithm; one
that is not is named, with how to hand over the sequences instead. A schedule's closed form is used only where it
gives the values of the function itself, which is called for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.adapters.clock import PAGE, Called, Clock
from generic_adam.adapters.schedulers import closed_form, plain
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.methods import Algorithm, Clipping, HeavyBall, Method, Nesterov, adagrad, adamw
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t, tree

_INSTEAD = "expected links of Optax's Adam family, or the sequences as ga.Algorithm(ga.Method(...))"
_PLAIN = Algorithm(Method(1, 0, 0.5), preconditioned=False, label="SGD")


@dataclass
class _Chain:
    """The links met so far: an algorithm with its step not scaled, the scale, and lambda of a decay."""

    algorithm: Algorithm = _PLAIN
    scale: Schedule | None = None
    decay: float = 0.0

    @property
    def starts(self) -> bool:
        """True while gradients are as they came, but for clipping and decay."""
        found = self.algorithm
        return not found.preconditioned and found.heavy_ball is None and self.scale is None

    def add(self, **fields: Any) -> None:
        """Set fields of the algorithm; phrases are added to those that are there."""
        for name in ("outside", "notes"):
            if name in fields:
                fields[name] = (*getattr(self.algorithm, name), *fields[name])
        self.algorithm = replace(self.algorithm, **fields)

    def times(self, factor: Schedule) -> None:
        """Scale what comes out of the chain."""
        self.scale = factor if self.scale is None else self.scale * factor


def read_transformation(transformation: Any) -> Algorithm:
    """Return the algorithm of a chain of Optax's transformations, `optax.adamw(1e-3)` or one of ours.

    A link that is not known, or not at its place, is refused: the message names it and says what to hand over
    instead.
    """
    chain, names = _Chain(), []
    try:
        for name, settings in _links(transformation.update, transformation.init):
            names.append(name)
            _add(chain, name, settings)
        if chain.scale is None:
            raise OptimizerError("there is no learning rate; expected one, as optax.scale_by_learning_rate")
        rate, found = -chain.scale, chain.algorithm
        return replace(
            found,
            method=Method(found.method.alpha * rate, found.method.beta, found.method.theta),
            decay=rate * as_schedule(chain.decay),
            label="AdamW" if chain.decay and found.label == "Adam" else found.label,
            source=f"Optax: {', '.join(names)}",
        )
    except GenericAdamError as error:
        raise OptimizerError(f"the Optax chain {', '.join(names)}: {error}") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # Closures of another version, a hyperparameter that is a schedule, a function under a known name.
        said = f"has other parts than expected ({error}); {_INSTEAD}"
        raise OptimizerError(f"the Optax chain {', '.join(names) or 'given'} {said}") from error


def _links(update: Any, init: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name of the function that made the link, what its init and update close over), in order."""
    name, inner = _maker(update), _closure(update)
    if hasattr(update, "runs"):  # one of `generic_adam.optax`, which says itself what it does
        yield "generic_adam", {"runs": update.runs}
        return
    _check_of_optax(update)
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


def _check_of_optax(function: Any) -> None:
    if not getattr(function, "__module__", "").startswith("optax."):
        raise OptimizerError(f"{_maker(function)} is none of Optax's functions; {_INSTEAD}")


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


def _add(chain: _Chain, name: str, s: dict[str, Any]) -> None:
    """Add a link; its meaning depends on the links before it."""
    found = chain.algorithm
    match name:
        case "identity":
            pass
        # A rate after an average of steps is another than one before it: only one place is a field's.
        case "scale" | "scale_by_schedule" if found.heavy_ball is None or not found.heavy_ball.rate_inside:
            chain.times(as_schedule(float(s["step_size"])) if name == "scale" else _scale(s["step_size_fn"]))
        case "clip_by_global_norm" if chain.starts and found.clipping is None and not found.l2:
            chain.add(clipping=Clipping(float(s["max_norm"]), "norm"))
        case "clip" if chain.starts and found.clipping is None and not found.l2:
            chain.add(clipping=Clipping(float(s["max_delta"]), "value"))
        case "trace" if found.heavy_ball is None and found.method.beta == as_schedule(0) and not chain.decay:
            chain.add(outside=("Nesterov momentum after the division",) if s["nesterov"] else ())
            inside = chain.scale is not None
            chain.add(heavy_ball=HeavyBall(Fraction(str(s["decay"])), rate_inside=inside))
        case "add_decayed_weights":
            _add_decay(chain, s)
        case _ if name in _PRECONDITIONERS and chain.starts:
            chain.algorithm = replace(_PRECONDITIONERS[name](s), clipping=found.clipping, l2=found.l2)
        case "generic_adam" if chain.starts:
            algorithm, sign = s["runs"]()
            chain.algorithm = replace(algorithm, clipping=found.clipping, l2=found.l2)
            if sign < 0:
                chain.times(as_schedule(-1))  # with its learning rate inside
        case _:
            raise OptimizerError(f"the Optax link {name} cannot be read there; {_INSTEAD}")
    narrow = [one for key in ("mu_dtype", "accumulator_dtype") if (one := s.get(key)) is not None]
    chain.add(notes=[f"momentum is kept in {one}, whose rounding does not count" for one in map(np.dtype, narrow)])


def _add_decay(chain: _Chain, s: dict[str, Any]) -> None:
    if callable(s["weight_decay"]):
        raise OptimizerError(f"a scheduled weight decay cannot be read; {_INSTEAD}")
    amount = float(s["weight_decay"])
    if "mask" in s:
        chain.add(notes=("weight decay leaves masked parameters alone",))
    if chain.scale is not None:
        chain.add(outside=("weight decay after the learning rate",))
    elif chain.starts:
        chain.add(l2=float(chain.algorithm.l2) + amount)
    else:
        chain.decay += amount


def _scale(function: Any) -> Schedule:
    if _maker(function) != "scale_by_learning_rate":
        return _schedule(function)
    inner = _closure(function)
    return inner["m"] * _schedule(inner["learning_rate"])


def _schedule(function: Any) -> Schedule:
    """u_t = function(t - 1) of an Optax schedule: in closed form where that gives its values, else called."""
    called = tree.Opaque(Called(partial(_values, function)), "Optax schedule")
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
    """Return a schedule's name in the table of forms, and its settings."""
    settings = plain(_closure(function))
    _check_of_optax(function)
    if "value" in settings or set(settings) == {"init_value"}:  # constants, and lengths of 0 that end in one
        return "optax.constant", SimpleNamespace(value=next(iter(settings.values())))
    if "schedules" in settings:
        settings["schedules"] = list(map(_nested, settings["schedules"]))
    return f"optax.{_maker(function)}", SimpleNamespace(**settings)


def _values(function: Any, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    try:  # counts of one length, for which JAX compiles once
        values = np.asarray(sys.modules["jax"].vmap(function)(np.resize(counts, PAGE)), dtype=float)
    except Exception:  # noqa: BLE001 - a function of one number alone
        values = np.empty(0)
    if values.shape == (PAGE,):
        return values[: len(counts)]
    return np.array([float(function(count)) for count in counts.tolist()])


def _adam(s: dict[str, Any]) -> Algorithm:
    """mu_hat / (sqrt(nu_hat + eps_root) + eps)."""
    beta, theta, eps, under = (float(s[name]) for name in ("b1", "b2", "eps", "eps_root"))
    found = adamw(lr=1, beta=beta, theta=theta, eps=under**0.5 if under else eps, weight_decay=0)
    if under:
        beside = (f"eps = {eps:g} is added beside eps_root",) if eps else ()
        found = replace(found, eps_under_root=True, outside=beside)
    if not s.get("nesterov"):
        return found
    ahead = as_schedule(beta) / (1 - as_schedule(beta) ** (t + 1))
    weights = Nesterov(ahead, (1 - as_schedule(beta)) / bias_correction(beta))
    method = Method(sqrt(bias_correction(theta)), beta, theta)
    return replace(found, method=method, nesterov=weights, label="NAdam")


def _amsgrad(s: dict[str, Any]) -> Algorithm:
    found, said = _adam(s), "the running maximum is that of the corrected v_t"
    return replace(found, running_maximum=True, label="AMSGrad", outside=(*found.outside, said))


def _rms(s: dict[str, Any]) -> Algorithm:
    """g / sqrt(nu + eps), or g / (sqrt(nu) + eps)."""
    under, eps = bool(s["eps_in_sqrt"]), float(s["eps"])
    return Algorithm(
        Method(1, 0, float(s["decay"])),
        initial_v=float(s["initial_scale"]),
        eps=eps**0.5 if under else eps,
        eps_under_root=under,
        outside=("v_t is bias-corrected",) if s["bias_correction"] else (),
        label="RMSprop",
    )


def _rss(s: dict[str, Any]) -> Algorithm:
    """g / sqrt(s_t + eps) with s_t = (t + 1) v_t."""
    start, eps = float(s["initial_accumulator_value"]), sqrt(as_schedule(float(s["eps"])) / (t + 1))
    return Algorithm(adagrad(lr=1), initial_v=start, eps=eps, eps_under_root=True, label="Adagrad")


_PRECONDITIONERS = {"scale_by_adam": _adam, "scale_by_amsgrad": _amsgrad, "scale_by_rms": _rms, "scale_by_rss": _rss}
