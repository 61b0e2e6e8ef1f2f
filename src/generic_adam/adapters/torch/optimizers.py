"""alpha_t, beta_t, theta_t of torch's own optimizers: one small function each, and why some have none.

Every function takes a parameter group and lr_t, beta_t as the scheduler drives them, and returns the method
together with what the optimizer does that the theorem does not cover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from generic_adam.adapters.reading import AdapterError
from generic_adam.adapters.remarks import (
    clipped_updates,
    decay_in_gradient,
    decoupled_decay,
    start_and_epsilon,
)
from generic_adam.methods import Method, adam
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
from generic_adam.torch.generic_adam import GenericAdam

Group = Mapping[str, Any]
Reader = Callable[[Group, Schedule, Schedule | None], "Described"]

# An eps below this share of sqrt(v_0) is lost when it is added in float32.
_ROUNDING = 2.0**-24
# The code of every function that torch wraps around a step to call hooks.
_HOOKED = torch.optim.Optimizer.profile_hook_step(lambda _: None).__code__


@dataclass(frozen=True)
class Described:
    """A method, what its optimizer does outside the theorem, and remarks."""

    method: Method
    outside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_adam(group: Group, rate: Schedule, beta: Schedule | None) -> Described:
    """Adam: alpha_t = lr_t sqrt(1 - theta^t) / (1 - beta_t^t), which for constant beta is Kingma and Ba's."""
    outside = [start_and_epsilon(0.0, group["eps"])]
    if group["amsgrad"]:
        outside.append(
            "amsgrad=True: the certificate is for the method without the maximum; with it, a regret bound is "
            "known for convex losses on a bounded set and alpha_t of order 1/sqrt(t) (Reddi et al. 2018)"
        )
    if group["weight_decay"]:
        outside.append(
            decoupled_decay(group["weight_decay"])
            if group.get("decoupled_weight_decay")
            else decay_in_gradient(group["weight_decay"])
        )
    theta = float(group["betas"][1])
    if beta is None:
        return Described(adam(lr=rate, beta=float(group["betas"][0]), theta=theta), tuple(outside))
    note = "beta_t moves; the bias correction is torch's, with the power beta_t^t in place of the product"
    alpha = rate * sqrt(bias_correction(theta)) / _torch_correction(beta)
    return Described(Method(alpha, beta, theta), tuple(outside), (note,))


def read_rmsprop(group: Group, rate: Schedule, beta: Schedule | None) -> Described:
    """RMSprop without momentum and not centred: alpha_t = lr_t, beta_t = 0, theta_t = alpha of torch."""
    if group["momentum"] or beta is not None:
        raise AdapterError(
            f"RMSprop with momentum {group['momentum']:g} is outside: it averages g_t / sqrt(v_t), where "
            "Generic Adam averages g_t; expected momentum=0, or Adam"
        )
    if group["centered"]:
        raise AdapterError(
            "RMSprop with centered=True is outside: it divides by the deviation from the mean gradient, "
            "which can be 0 where v_t is not; expected centered=False"
        )
    outside = [start_and_epsilon(0.0, group["eps"])]
    if group["weight_decay"]:
        outside.append(decay_in_gradient(group["weight_decay"]))
    return Described(Method(rate, 0, float(group["alpha"])), tuple(outside))


def read_adagrad(group: Group, rate: Schedule, _beta: Schedule | None) -> Described:
    """Adagrad: the sum of squares is (t + 1) v_t for theta_t = 1 - 1/(t + 1), alpha_t = lr_t/sqrt(t + 1)."""
    outside, notes = _start(float(group["initial_accumulator_value"]), float(group["eps"]))
    if group["weight_decay"]:
        outside.append(decay_in_gradient(group["weight_decay"]))
    decayed = rate / (1 + (t - 1) * as_schedule(float(group["lr_decay"])))
    return Described(Method(decayed / sqrt(t + 1), 0, 1 - 1 / (t + 1)), tuple(outside), tuple(notes))


def read_adafactor(group: Group, rate: Schedule, _beta: Schedule | None) -> Described:
    """Adafactor, unfactored: alpha_t = min(lr_t, 1/sqrt(t)), beta_t = 0, theta_t = 1 - t^beta2_decay."""
    outside = [
        "the step is multiplied by max(eps, root mean square of the parameters), which depends on the data",
        clipped_updates(group["d"]),
    ]
    if any(parameter.dim() > 1 for parameter in group["params"]):
        outside.insert(
            0,
            "second moments of matrices are factored into rows and columns; the certificate is for full ones",
        )
    if group["weight_decay"]:
        outside.append(decoupled_decay(group["weight_decay"]))
    theta = 1 - t ** as_schedule(float(group["beta2_decay"]))
    return Described(Method(minimum(rate, 1 / sqrt(t)), 0, theta), tuple(outside))


def read_generic_adam(group: Group, rate: Schedule, beta: Schedule | None) -> Described:
    """GenericAdam: its own sequences; those given as numbers may be driven by the scheduler."""
    if "partial" in group:
        raise AdapterError("Padam is not a Generic Adam: it divides by a power of v_t other than its root")
    if group["eps_schedule"] or group["weight_decay_schedule"]:
        raise AdapterError("GenericAdam with an eps or a weight decay that follows a schedule is outside")
    outside, notes = _start(float(group["initial_v"]), float(group["eps"]))
    if group["amsgrad"]:
        outside.append("amsgrad=True: the certificate is for the method without the maximum")
    if group["weight_decay"]:
        outside.append(decoupled_decay(group["weight_decay"]))
    method = adam(
        lr=group["lr_schedule"] or rate,
        beta=group["beta_schedule"] or beta or float(group["beta"]),
        theta=group["theta_schedule"] or float(group["theta"]),
        bias_correction=group["bias_correction"],
    )
    return Described(method, tuple(outside), tuple(notes))


READERS: dict[type, Reader] = {
    torch.optim.Adam: read_adam,
    torch.optim.AdamW: read_adam,
    torch.optim.RMSprop: read_rmsprop,
    torch.optim.Adagrad: read_adagrad,
    torch.optim.Adafactor: read_adafactor,
    GenericAdam: read_generic_adam,
}

# Other algorithms, and the one sentence why.
NOT_GENERIC_ADAM: dict[type, str] = {
    torch.optim.NAdam: "its step mixes m_t with the present gradient (Nesterov), which no m_t gives",
    torch.optim.Adamax: "it divides by a decayed maximum of |g|, not by the root of an average of g^2",
    torch.optim.RAdam: "its first steps (five for theta = 0.999) do not divide by sqrt(v_t) at all",
    torch.optim.SGD: "it has no second moment",
    torch.optim.Adadelta: "its step size is itself an average of past updates, which depends on the data",
    torch.optim.Rprop: "it uses the signs of gradients only",
    torch.optim.ASGD: "it has no second moment",
    torch.optim.LBFGS: "it is a quasi-Newton method",
    torch.optim.SparseAdam: "coordinates without a gradient keep their moments: each has its own t",
}


def reader_of(optimizer: torch.optim.Optimizer) -> Reader:
    """The function that reads an optimizer's groups.

    Raises:
        AdapterError: the optimizer is no Generic Adam, or its class is not known.
    """
    kind = type(optimizer)
    for known, reader in READERS.items():
        # A subclass is read like its parent only while it takes the parent's steps.
        if kind is known or (issubclass(kind, known) and _own_step(kind) is _own_step(known)):
            return reader
    for other, reason in NOT_GENERIC_ADAM.items():
        if isinstance(optimizer, other):
            raise AdapterError(f"{other.__name__} is not a Generic Adam: {reason}")
    names = ", ".join(one.__name__ for one in READERS)
    raise AdapterError(f"{kind.__name__} is not an optimizer that can be read; expected one of {names}")


def _own_step(kind: type[torch.optim.Optimizer]) -> Any:
    """The class's step without the layers that torch puts around it, on the first instance of each class."""
    step: Any = kind.step
    while getattr(step, "__code__", None) is _HOOKED:
        step = step.__wrapped__
    return step


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


def _start(start: float, epsilon: float) -> tuple[list[str], list[str]]:
    """The same, as something outside the theorem or, where eps is lost in rounding, as a remark."""
    if start > 0 and epsilon <= _ROUNDING * start**0.5:
        return [], [f"eps = {epsilon:g} is added to sqrt(v_t), at the level of rounding"] if epsilon else []
    return [start_and_epsilon(start, epsilon)], []
