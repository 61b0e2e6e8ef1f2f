"""AdaShift, which Generic Adam is compared with."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.methods.method import ScheduleLike
from generic_adam.torch import tensors
from generic_adam.torch.checkpoint import SHARE, WHOLE, Expected, Range
from generic_adam.torch.coefficients import (
    LEARNING_RATE,
    MOMENTUM,
    SECOND_MOMENT,
    Coefficient,
    UnsupportedError,
    check_flags,
    check_non_negative,
    shown,
)
from generic_adam.torch.kernels import smallest
from generic_adam.torch.scheduled import Plan, ScheduledOptimizer

Reduction = Literal["max", "none"]


class _Row(NamedTuple):
    parameter: Tensor
    gradient: Tensor
    state: dict[str, Any]


class AdaShift(ScheduledOptimizer):
    r"""AdaShift: v is built from gradients n steps old, so that v_t and g_t are independent.

    .. math::
        m_t &= \sum_{i<n} \beta^i g_{t-i} \Big/ \sum_{i<n} \beta^i \\
        v_t &= \theta v_{t-1} + (1 - \theta)\, \phi(g_{t-n}^2), \qquad v_n = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t \Big/ \Big(\sqrt{v_t / (1 - \theta^{t-n})} + \text{eps}\Big)

    where phi is the maximum over the tensor, or the identity. The first n steps only collect gradients. n and
    the correction count the gradients of each parameter. Under a schedule of theta the correction is the
    exact product.

    Nothing ties v_t to the present gradient, so the quotient has no bound: where v_t is still 0 a coordinate
    stays where it is, and the quotient is cut at the root of the largest number of its type.

    Args:
        params: the parameters, or groups of them.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter.
        theta: the second-moment parameter.
        keep: n, the number of gradients kept; the state of a parameter has that many times its size.
        reduction: "max" for the maximum over each tensor, "none" for the identity.
        eps: added to the root.
        weight_decay: decoupled weight decay.
        maximize: climb instead of descend.

    References:
        Zhou, Zhang, Lu, Wang, Zhang, Yu: AdaShift: Decorrelation and Convergence of Adaptive Learning Rate
        Methods. ICLR 2019.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (LEARNING_RATE, MOMENTUM, SECOND_MOMENT)
    _distinctive: ClassVar[tuple[str, ...]] = ("lr_schedule", "keep")

    def __init__(
        self,
        params: ParamsT,
        lr: ScheduleLike | Tensor = 1e-3,
        beta: ScheduleLike | Tensor = 0.9,
        theta: ScheduleLike | Tensor = 0.999,
        *,
        keep: int = 10,
        reduction: Reduction = "max",
        eps: float = 1e-16,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "beta": beta, "theta": theta},
            {
                "keep": keep,
                "reduction": reduction,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        check_non_negative(options_of_group, "eps", "weight_decay")
        check_flags(options_of_group, "maximize")
        keep, reduction = options_of_group["keep"], options_of_group["reduction"]
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise OptimizerError(f"keep is {shown(keep)}; expected a whole number >= 1")
        if not isinstance(reduction, str) or reduction not in {"max", "none"}:
            raise OptimizerError(f"reduction is {shown(reduction)}; expected 'max' or 'none'")

    def _state_of(self, parameter: Tensor, group: Mapping[str, Any]) -> dict[str, Expected | Range]:
        x = torch.view_as_real(parameter.detach()) if parameter.is_complex() else parameter
        dtype = tensors.state_dtype(x)
        second_moment = torch.Size([]) if group["reduction"] == "max" else x.shape
        return {
            "history": Expected(torch.Size([group["keep"], *x.shape]), dtype),
            "second_moment": Expected(second_moment, dtype),
            "count": WHOLE,
            "correction": SHARE,
        }

    def _gather(self, group: dict[str, Any], plan: Plan) -> list[_Row]:
        del plan
        rows = []
        for index, parameter in enumerate(group["params"]):
            if parameter.grad is None:
                continue
            tensors.refuse_sparse(parameter, index)
            if tensors.is_distributed(parameter):
                raise UnsupportedError("AdaShift needs whole tensors: sharded parameters are not supported")
            state = self.state[parameter]
            x, gradient = tensors.local_and_real([parameter, parameter.grad])
            if "history" not in state:
                state.update(_new_state(x, group["keep"], group["reduction"]))
            rows.append(_Row(x, gradient, state))
        return rows

    def _update(
        self, group: dict[str, Any], plan: Plan, values: tuple[float, ...], gathered: list[_Row]
    ) -> None:
        lr, beta, theta, _, one_minus_theta = values
        plan.used = (lr, beta, theta)
        keep = group["keep"]
        for row in gathered:
            state = row.state
            history, v = state["history"], state["second_moment"]
            count = state["count"]
            slot = count % keep
            gradient = row.gradient.to(history.dtype)
            if self.grad_divisor is not None:
                gradient = gradient / self.grad_divisor
            old = history[slot].square()
            history[slot] = -gradient if group["maximize"] else gradient
            state["count"] = count + 1
            if count < keep:
                continue
            # 0 * inf would be nan where v has overflowed.
            v = v.mul_(theta) if theta else v.zero_()
            if old.numel():  # an empty tensor has no maximum
                v.add_(old.max() if group["reduction"] == "max" else old, alpha=one_minus_theta)
            state["correction"] = theta * state["correction"] + one_minus_theta
            ages = [(slot - index) % keep for index in range(keep)]
            weights = torch.tensor([beta**age for age in ages], dtype=history.dtype, device=history.device)
            momentum = torch.tensordot(weights / weights.sum(), history, dims=1)
            root = (v / state["correction"]).sqrt_().add_(max(group["eps"], smallest(v.dtype)))
            limit = torch.finfo(v.dtype).max ** 0.5
            quotient = momentum.div_(root).clamp_(-limit, limit).masked_fill_(v == 0, 0.0)
            # In the precision of the state, then rounded once.
            x = row.parameter.to(history.dtype)
            moved = x * (1.0 - lr * group["weight_decay"]) - quotient.mul_(lr)
            row.parameter.copy_(moved)


def _new_state(parameter: Tensor, keep: int, reduction: Reduction) -> dict[str, Any]:
    history = torch.zeros_like(parameter, dtype=tensors.state_dtype(parameter))
    second_moment = history.new_zeros(()) if reduction == "max" else history.clone()
    return {
        "history": torch.stack([history] * keep),
        "second_moment": second_moment,
        "count": 0,
        "correction": 0.0,
    }
