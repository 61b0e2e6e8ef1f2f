# pyright: reportPrivateImportUsage=false
r"""One step of Generic Adam on lists of plain tensors, in three ways that give the same numbers to rounding.

.. math::
    v &\leftarrow \theta v + (1 - \theta) g^2 \\
    m &\leftarrow \beta m + (1 - \beta) g \\
    x &\leftarrow (1 - \delta)\, x - \alpha\, m / (\sqrt{v} + \epsilon)

With AMSGrad the root is that of the running maximum of v, with Padam it is another power. Decay inside the gradient
(L2) adds lambda x to g first. Nesterov's look-ahead has a m + b g for m. A heavy ball averages what was divided:
b <- mu b + g / (sqrt(v) + eps), and b in the place of the quotient.

Every tensor of one call has the same dtype and device, and the tensors of one parameter have the same strides:
:mod:`generic_adam.torch.tensors` sees to that.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from generic_adam.torch import compat

# With this many steps behind it, beta^step is 0 for every beta < 1, so torch's bias correction is exactly 1.
FOREVER = 1e30
BELOW_ONE = 1.0 - 2.0**-53
# From here on float32 would round theta and 1 - theta to numbers that do not add up to 1.
CLOSE_TO_ONE = 1.0 - 2.0**-10
# The spacing of float32 below 1: a theta that is a multiple of it, and its complement, are exact in float32.
SPACING = 2.0**-24

Lists = tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor]]
"""The tensors of one update: parameters, gradients, m, v, and v's running maxima (none without AMSGrad)."""


class Step(NamedTuple):
    """The numbers of one update: alpha includes the bias correction, decay is lr times weight_decay, l2 is lambda.

    The complements are without cancellation; the gradients are to be divided by `grad_scale` (GradScaler). What is
    divided is of_momentum m + of_gradient g.
    """

    alpha: float
    beta: float
    theta: float
    one_minus_beta: float
    one_minus_theta: float
    decay: float
    eps: float
    maximize: bool
    grad_scale: Tensor | None
    l2: float = 0.0
    of_momentum: float = 1.0
    of_gradient: float = 0.0


Numbers = tuple[float, float, float, float, float, float, float, bool, Tensor | None, float, float, float]
"""Those of a Step without their names, which a small network's step has no time for."""
Kernel = Callable[[Lists, Numbers], None]


@cache
def forever_on(device: torch.device) -> Tensor:
    """Return the step count that stands for "no bias correction", as a tensor where torch's kernel wants it."""
    return torch.tensor(FOREVER, dtype=torch.float32, device=device)


_FOREVER_ON_CPU = forever_on(torch.device("cpu"))
_fused_adam, _fused_adamw = compat.fused_adam, compat.fused_adamw


@cache
def smallest(dtype: torch.dtype) -> float:
    """Return the smallest positive normal number of the state of parameters of a dtype."""
    return torch.finfo(torch.float64 if dtype is torch.float64 else torch.float32).tiny


def fused(lists: Lists, numbers: Numbers) -> None:
    """One call of the kernel that ships with torch, which takes this step's numbers as they are.

    The kernel forms 1 - theta by itself from the double theta. That is exact to rounding in v, whose error is
    2^-53 (g^2 - v) at most, however close theta is to 1; theta = 1 itself would make its bias correction 0/0.
    """
    params, grads, momenta, second_moments, maxima = lists
    alpha, beta, theta, _, _, decay, eps, maximize, grad_scale, l2, _, _ = numbers
    update, first = _fused_adam, params[0]
    if decay and alpha:
        # The kernel multiplies the weights by 1 - lr * weight_decay, and its lr is alpha.
        update, l2 = _fused_adamw, decay / alpha
    update(
        params,
        grads,
        momenta,
        second_moments,
        maxima,
        [_FOREVER_ON_CPU if first.is_cpu else forever_on(first.device)] * len(params),
        lr=alpha,
        beta1=beta if beta < 1.0 else BELOW_ONE,
        beta2=theta if theta < 1.0 else BELOW_ONE,
        weight_decay=l2,
        eps=eps,
        amsgrad=bool(maxima),
        maximize=bool(maximize),
        grad_scale=grad_scale,
    )


@dataclass(frozen=True)
class Form:
    """The update of a group beyond its numbers, with multi-tensor operations.

    Attributes:
        power: the power of v that divides.
        heavy_ball: mu, or 0 for a momentum before the division.
        rate_inside: whether the learning rate is inside the heavy ball.
        at_once: all tensors in few launches, with one temporary of the size of the parameters; otherwise one after
            the other, whose temporary is that of one parameter.
    """

    power: float = 0.5
    heavy_ball: float = 0.0
    rate_inside: bool = False
    at_once: bool = True

    def __call__(self, lists: Lists, numbers: Numbers) -> None:
        """Carry out one update."""
        step = Step(*numbers)
        if self.at_once:
            return self._update(lists, step)
        for row in zip(*(part for part in lists if part), strict=True):
            x, g, m, v, *rest = ([tensor] for tensor in row)
            self._update((x, g, m, v, rest[0] if rest else []), step)
        return None

    def _update(self, lists: Lists, step: Step) -> None:
        params, _, momenta, second_moments, maxima = lists
        grads = average(lists, step, has_momentum=not self.heavy_ball)
        below = maxima or second_moments
        roots = torch._foreach_sqrt(below) if self.power == 0.5 else torch._foreach_pow(below, self.power)
        torch._foreach_add_(roots, step.eps)
        if self.heavy_ball:
            inside, outside = (step.alpha, 1.0) if self.rate_inside else (1.0, step.alpha)
            torch._foreach_mul_(momenta, self.heavy_ball)
            torch._foreach_addcdiv_(momenta, grads, roots, value=inside)
            torch._foreach_add_(params, momenta, alpha=-outside)
            return
        if step.of_gradient or step.of_momentum != 1.0:
            momenta = torch._foreach_mul(momenta, step.of_momentum)
            torch._foreach_add_(momenta, grads, alpha=step.of_gradient)
        torch._foreach_addcdiv_(params, momenta, roots, value=-step.alpha)


@cache
def form(power: float, heavy_ball: float, rate_inside: bool, at_once: bool) -> Form:
    """Return the update of this form, which is one object."""
    return Form(power, heavy_ball, rate_inside, at_once)


def average(lists: Lists, step: Step, has_momentum: bool) -> tuple[Tensor, ...] | list[Tensor]:
    """Bring m, v and the running maximum of v up to date; return the gradients that they follow."""
    params, grads, momenta, second_moments, maxima = lists
    if step.grad_scale is not None:
        torch._foreach_div_(grads, step.grad_scale)
    if step.maximize:
        grads = torch._foreach_neg(grads)
    if step.l2:
        grads = torch._foreach_add(grads, params, alpha=step.l2)
    if step.decay:
        torch._foreach_mul_(params, 1.0 - step.decay)
    if step.theta > CLOSE_TO_ONE and second_moments[0].dtype is torch.float32:
        # v + (1 - theta)(g^2 - v): of theta v the rounding alone would be a part of what v changes by.
        torch._foreach_lerp_(second_moments, torch._foreach_mul(grads, grads), step.one_minus_theta)
        for v in second_moments:
            v.nan_to_num_(nan=math.inf, posinf=math.inf)  # inf - inf
    else:
        torch._foreach_mul_(second_moments, step.theta)
        torch._foreach_addcmul_(second_moments, grads, grads, step.one_minus_theta)
    if has_momentum:
        torch._foreach_mul_(momenta, step.beta)
        torch._foreach_add_(momenta, grads, alpha=step.one_minus_beta)
    if maxima:
        torch._foreach_maximum_(maxima, second_moments)
    return grads


def flat(tensor: Tensor) -> Tensor:
    """Return a dense tensor's elements in the order of memory, as a view."""
    return tensor.as_strided((tensor.numel(),), (1,))
