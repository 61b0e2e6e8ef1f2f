"""The update rules in float64 NumPy, as on paper, with the options of the torch optimizers."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from generic_adam.schedules import Schedule, as_schedule

Gradient = Callable[[np.ndarray, int], np.ndarray]


def _divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """0/0 is 0: the coordinate does not move."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def _sequence(value: Any) -> Schedule:
    return as_schedule(value.item() if isinstance(value, torch.Tensor) else value)


def generic_adam(
    gradient: Gradient,
    x: np.ndarray,
    steps: int,
    *,
    lr: Any = 1e-3,
    beta: Any = 0.9,
    theta: Any = 0.999,
    betas: tuple[Any, Any] | None = None,
    initial_v: float = 0.0,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    amsgrad: bool = False,
    maximize: bool = False,
    bias_correction: bool | str = True,
    decoupled_weight_decay: bool = True,
    momentum_weight: Any = 1.0,
    gradient_weight: Any = 0.0,
    heavy_ball: float = 0.0,
    rate_inside: bool = False,
    power: float = 0.5,
    foreach: bool | None = None,
    fused: bool | None = None,
) -> np.ndarray:
    """x_1, ..., x_{T+1} of Generic Adam with every option; `power` is Padam's p."""
    beta, theta = betas or (0 if heavy_ball else beta, theta)
    lr, beta, theta, eps, weight_decay = map(_sequence, (lr, beta, theta, eps, weight_decay))
    momentum_weight, gradient_weight = map(_sequence, (momentum_weight, gradient_weight))
    m, v, v_hat, ball = np.zeros_like(x), np.full_like(x, initial_v), np.zeros_like(x), np.zeros_like(x)
    beta_product = theta_product = 1.0
    points = [x]
    for t in range(1, steps + 1):
        g = -gradient(x, t) if maximize else gradient(x, t)
        if not decoupled_weight_decay:
            g = g + weight_decay(t) * x
        v = theta(t) * v + (1 - theta)(t) * g**2
        m = beta(t) * m + (1 - beta)(t) * g
        v_hat = np.maximum(v_hat, v) if amsgrad else v
        beta_product *= beta(t)
        theta_product *= theta(t)
        if bias_correction == "torch":
            beta_product, theta_product = beta(t) ** t, theta(t) ** t
        ahead = momentum_weight(t) * m + gradient_weight(t) * g
        if bias_correction:
            update = _divide(ahead / (1 - beta_product), np.sqrt(v_hat / (1 - theta_product)) + eps(t))
        else:
            update = _divide(ahead, v_hat**power + eps(t))
        rate = lr(t)
        if heavy_ball:
            # A bias correction multiplies the rate and eps, as everywhere: alpha_t = lr_t sqrt(1 - prod theta).
            root = np.sqrt(1 - theta_product) if bias_correction else 1.0
            divided = _divide(g, v_hat**power + eps(t) * root)
            ball = heavy_ball * ball + (rate * root if rate_inside else 1.0) * divided
            update, rate = ball, 1.0 if rate_inside else rate * root
        if decoupled_weight_decay:
            x = x * (1 - lr(t) * weight_decay(t))
        x = x - rate * update
        points.append(x)
    return np.array(points)


def weighted_adaema(
    gradient: Gradient,
    x: np.ndarray,
    steps: int,
    *,
    lr: Any = 1e-3,
    beta: Any = 0.9,
    weights: Any = 1.0,
    betas: tuple[Any, None] | None = None,
    initial_weight: float = 1.0,
    initial_v: float = 1e-8,
    eps: float = 1e-16,
    weight_decay: float = 0.0,
) -> np.ndarray:
    """Algorithm 2, with the weights as they are."""
    beta = betas[0] if betas else beta
    lr, beta, weights = as_schedule(lr), as_schedule(beta), as_schedule(weights)
    m, W, V = np.zeros_like(x), initial_weight, np.full_like(x, initial_v * initial_weight)
    points = [x]
    for t in range(1, steps + 1):
        g = gradient(x, t)
        W = W + weights(t)
        V = V + weights(t) * g**2
        m = beta(t) * m + (1 - beta)(t) * g
        x = x * (1 - lr(t) * weight_decay) - lr(t) * m / (np.sqrt(V / W) + eps)
        points.append(x)
    return np.array(points)


def padam(
    gradient: Gradient, x: np.ndarray, steps: int, *, lr: Any = 0.1, partial: float = 0.125, **rest: Any
) -> np.ndarray:
    """AMSGrad with a power."""
    return amsgrad(gradient, x, steps, lr=lr, power=partial, **rest)


def amsgrad(gradient: Gradient, x: np.ndarray, steps: int, **rest: Any) -> np.ndarray:
    """Generic Adam with the running maximum, started as its authors do."""
    start = {"initial_v": 1e-8, "eps": 1e-16, "bias_correction": False}
    return generic_adam(gradient, x, steps, amsgrad=True, **{**start, **rest})


def adashift(
    gradient: Gradient,
    x: np.ndarray,
    steps: int,
    *,
    lr: Any = 1e-3,
    beta: Any = 0.9,
    theta: Any = 0.999,
    keep: int = 10,
    reduction: str = "max",
    eps: float = 1e-16,
    weight_decay: float = 0.0,
    maximize: bool = False,
    foreach: bool | None = None,
) -> np.ndarray:
    """The sum over the last `keep` gradients, written out."""
    lr, beta, theta = as_schedule(lr), as_schedule(beta), as_schedule(theta)
    reduce = np.max if reduction == "max" else np.array
    gradients: list[np.ndarray] = []
    v, theta_product = 0.0, 1.0
    points = [x]
    for t in range(1, steps + 1):
        gradients.append(-gradient(x, t) if maximize else gradient(x, t))
        if t > keep:
            v = theta(t) * v + (1 - theta)(t) * reduce(gradients[t - 1 - keep] ** 2)
            theta_product *= theta(t)
            numerator = sum(beta(t) ** i * gradients[t - 1 - i] for i in range(keep))
            m = numerator / sum(beta(t) ** i for i in range(keep))
            # A coordinate without an old gradient stays.
            quotient = np.where(v == 0, 0.0, m / (np.sqrt(v / (1 - theta_product)) + eps))
            x = x * (1 - lr(t) * weight_decay) - lr(t) * quotient
        points.append(x)
    return np.array(points)


def adausm(
    gradient: Gradient,
    x: np.ndarray,
    steps: int,
    *,
    lr: Any = 1e-3,
    weights: Any = "t",
    momentum: float = 0.9,
    betas: tuple[float, None] | None = None,
    interpolation: float = 0.0,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> np.ndarray:
    """Sums as they are, m before and after."""
    lr, weights = as_schedule(lr), as_schedule(weights)
    momentum = betas[0] if betas else momentum
    m, A, v = np.zeros_like(x), 0.0, np.zeros_like(x)
    points = [x]
    for t in range(1, steps + 1):
        g = -gradient(x, t) if maximize else gradient(x, t)
        A = A + weights(t)
        v = v + weights(t) * g**2
        before = m
        m = momentum * m - lr(t) * g / (np.sqrt(v / (A / t)) + eps)
        x = x * (1 - lr(t) * weight_decay) + m + interpolation * (m - before)
        points.append(x)
    return np.array(points)


REFERENCES: Mapping[str, Callable[..., np.ndarray]] = {
    "GenericAdam": generic_adam,
    "WeightedAdaEMA": weighted_adaema,
    "AMSGrad": amsgrad,
    "Padam": padam,
    "AdaShift": adashift,
    "AdaUSM": adausm,
}
