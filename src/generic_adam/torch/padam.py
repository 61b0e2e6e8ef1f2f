"""Padam, which Generic Adam is compared with."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.methods.method import ScheduleLike
from generic_adam.torch import options, tensors
from generic_adam.torch.coefficients import (
    LEARNING_RATE,
    MOMENTUM,
    SECOND_MOMENT,
    Coefficient,
)
from generic_adam.torch.kernels import Lists, Step, average, smallest
from generic_adam.torch.scheduled import ScheduledOptimizer


class Padam(ScheduledOptimizer):
    r"""Padam: AMSGrad with a power p of v in place of the root, between SGD with momentum and AMSGrad.

    .. math::
        \hat v_t = \max(\hat v_{t-1}, v_t), \qquad x_{t+1} = x_t - \alpha_t m_t / (\hat v_t^p + \text{eps})

    with m_t and v_t as in :class:`~generic_adam.torch.GenericAdam`. p = 1/2 is AMSGrad.

    Args:
        params: the parameters, or groups of them.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter beta_t.
        theta: the second-moment parameter theta_t.
        partial: p, in (0, 1/2]; the authors use 1/8.
        initial_v: v_0; the running maximum starts at 0.
        eps: added to the power of v.
        weight_decay: decoupled weight decay.
        maximize: climb instead of descend.

    References:
        Chen, Zhou, Tang, Yang, Cao, Gu: Closing the Generalization Gap of Adaptive Gradient Methods in
        Training Deep Neural Networks. IJCAI 2020.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (LEARNING_RATE, MOMENTUM, SECOND_MOMENT)
    _distinctive: ClassVar[tuple[str, ...]] = ("lr_schedule", "partial")

    def __init__(
        self,
        params: ParamsT,
        lr: ScheduleLike = 0.1,
        beta: ScheduleLike = 0.9,
        theta: ScheduleLike = 0.999,
        *,
        partial: float = 0.125,
        initial_v: float = 1e-8,
        eps: float = 1e-16,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "beta": beta, "theta": theta},
            {
                "partial": partial,
                "initial_v": initial_v,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        options.check_non_negative(options_of_group, "initial_v", "eps", "weight_decay")
        partial = options_of_group["partial"]
        if not options.is_number(partial) or not 0.0 < partial <= 0.5:
            raise OptimizerError(f"partial is {partial!r}; expected 0 < partial <= 0.5")

    def _gather(self, group: dict[str, Any]) -> list[tensors.Bucket]:
        return tensors.gather(group["params"], self.state, group["initial_v"], amsgrad=True)

    def _update(
        self, group: dict[str, Any], t: int, values: tuple[float, ...], gathered: list[tensors.Bucket]
    ) -> None:
        lr, beta, theta = values
        partial = group["partial"]
        one_minus_beta = self.complement(group, MOMENTUM, beta, t)
        one_minus_theta = self.complement(group, SECOND_MOMENT, theta, t)

        def kernel(lists: Lists, step: Step) -> None:
            average(lists, step)
            for x, m, v_hat in zip(lists.params, lists.momenta, lists.maxima, strict=True):
                x.addcdiv_(m, v_hat.pow(partial).add_(step.eps), value=-step.alpha)

        for bucket in gathered:
            eps = max(group["eps"], smallest(bucket.lists.second_moments[0].dtype))
            decay = lr * group["weight_decay"]
            step = Step(
                lr,
                beta,
                theta,
                one_minus_beta,
                one_minus_theta,
                decay,
                eps,
                group["maximize"],
                self.grad_divisor,
            )
            tensors.update_bucket(bucket, step, kernel)
