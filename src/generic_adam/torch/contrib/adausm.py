"""AdaUSM, which Generic Adam is compared with."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.methods.method import ScheduleLike
from generic_adam.torch import tensors
from generic_adam.torch.coefficients import (
    LEARNING_RATE,
    Coefficient,
    check_flags,
    check_non_negative,
    is_number,
    shown,
)
from generic_adam.torch.kernels import Lists, Step, smallest
from generic_adam.torch.scheduled import Plan, ScheduledOptimizer

WEIGHTS = Coefficient("weights", positive=True)


class AdaUSM(ScheduledOptimizer):
    r"""AdaUSM: weighted AdaGrad with unified heavy-ball and Nesterov momentum.

    .. math::
        A_t &= A_{t-1} + a_t, \qquad v_t = v_{t-1} + a_t g_t^2 \\
        m_t &= \mu m_{t-1} - \eta_t g_t \Big/ \Big(\sqrt{v_t / (A_t / t)} + \text{eps}\Big) \\
        x_{t+1} &= x_t + m_t + \lambda (m_t - m_{t-1})

    with A_0 = 0 and v_0 = m_0 = 0. The state keeps v_t / A_t, a weighted mean that does not overflow as v_t
    does.

    Args:
        params: the parameters, or groups of them.
        lr: eta_t.
        weights: a_t > 0; 1 is AdaGrad, "t^r" the polynomial weights.
        momentum: mu, in [0, 1).
        interpolation: lambda, in [0, mu / (1 - mu)]; 0 is heavy ball, mu is Nesterov.
        eps: added to the root.
        weight_decay: decoupled weight decay.
        maximize: climb instead of descend.

    References:
        Zou, Shen, Jie, Sun, Liu: Weighted AdaGrad with Unified Momentum. 2018.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (LEARNING_RATE, WEIGHTS)
    _distinctive: ClassVar[tuple[str, ...]] = ("lr_schedule", "weight_sum")

    def __init__(
        self,
        params: ParamsT,
        lr: ScheduleLike | Tensor = 1e-3,
        weights: ScheduleLike = "t",
        *,
        momentum: float = 0.9,
        interpolation: float = 0.0,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "weights": weights},
            {
                "momentum": momentum,
                "interpolation": interpolation,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "weight_sum": 0.0,
            },
        )

    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        check_non_negative(options_of_group, "eps", "weight_decay", "weight_sum")
        check_flags(options_of_group, "maximize")
        momentum, interpolation = options_of_group["momentum"], options_of_group["interpolation"]
        if not is_number(momentum) or not 0.0 <= momentum < 1.0:
            raise OptimizerError(f"momentum is {shown(momentum)}; expected 0 <= momentum < 1")
        # mu / (1 - mu) is itself rounded, and may be asked for.
        most = momentum / (1.0 - momentum)
        if not is_number(interpolation) or not 0.0 <= interpolation <= most * (1.0 + 1e-12):
            raise OptimizerError(
                f"interpolation is {shown(interpolation)}; expected 0 <= interpolation <= "
                f"momentum / (1 - momentum) = {most:g}"
            )

    def _gather(self, group: dict[str, Any], plan: Plan) -> list[tensors.Bucket]:
        del plan
        return tensors.gather(group["params"], self.state, 0.0, amsgrad=False)

    def _update(
        self, group: dict[str, Any], plan: Plan, values: tuple[float, ...], gathered: list[tensors.Bucket]
    ) -> None:
        lr, weight = values
        past, momentum, interpolation = group["weight_sum"], group["momentum"], group["interpolation"]
        weight_sum = past + weight
        group["weight_sum"] = weight_sum

        root_of_t = math.sqrt(plan.step + 1)

        def kernel(lists: Lists, step: Step) -> None:
            for x, g, m, mean in zip(
                lists.params, lists.grads, lists.momenta, lists.second_moments, strict=True
            ):
                if step.grad_scale is not None:
                    g.div_(step.grad_scale)
                if step.decay:
                    x.mul_(1.0 - step.decay)
                mean.mul_(step.theta) if step.theta else mean.zero_()
                mean.addcmul_(g, g, value=step.one_minus_theta)
                # x + m + lambda (m - m_before), with m_before taken off first.
                if interpolation:
                    x.sub_(m, alpha=interpolation)
                m.mul_(momentum)
                m.addcdiv_(
                    g,
                    mean.sqrt().mul_(root_of_t).add_(step.eps),
                    value=step.alpha if step.maximize else -step.alpha,
                )
                x.add_(m, alpha=1.0 + interpolation)

        for bucket in gathered:
            eps = max(group["eps"], smallest(bucket.lists.second_moments[0].dtype))
            decay = lr * group["weight_decay"]
            share = weight / weight_sum
            step = Step(
                lr, momentum, past / weight_sum, 0.0, share, decay, eps, group["maximize"], self.grad_divisor
            )
            bucket.kernel = kernel
            tensors.update_bucket(bucket, step)
