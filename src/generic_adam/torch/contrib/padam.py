"""Padam, which Generic Adam is compared with."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Unpack

from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.methods.algorithm import Algorithm
from generic_adam.schedules import Schedule
from generic_adam.torch import tensors
from generic_adam.torch.coefficients import is_number, shown
from generic_adam.torch.forms import as_the_paper
from generic_adam.torch.generic_adam import GenericAdam, Options, Value
from generic_adam.torch.kernels import Kernel, Lists, Step, average


class Padam(GenericAdam):
    r"""Padam: AMSGrad with a power p of v in place of the root, between SGD with momentum and AMSGrad.

    .. math::
        \hat v_t = \max(\hat v_{t-1}, v_t), \qquad x_{t+1} = x_t - \alpha_t m_t / (\hat v_t^p + \text{eps})

    with m_t and v_t as in :class:`~generic_adam.torch.GenericAdam`, without bias correction. p = 1/2 is
    AMSGrad.

    Args:
        params: the parameters, or groups of them.
        lr: the base learning rate alpha_t.
        betas: (beta, theta) in one.
        beta: the momentum parameter beta_t.
        theta: the second-moment parameter theta_t.
        partial: p, in (0, 1/2]; the authors use 1/8.
        **options: initial_v, eps (added to the power of v), weight_decay and maximize, as for GenericAdam.

    References:
        Chen, Zhou, Tang, Yang, Cao, Gu: Closing the Generalization Gap of Adaptive Gradient Methods in
        Training Deep Neural Networks. IJCAI 2020.
    """

    _distinctive: ClassVar[tuple[str, ...]] = ("lr_schedule", "partial")
    _foreign: ClassVar[tuple[str, ...]] = ()
    _watched: ClassVar[tuple[str, ...]] = (*GenericAdam._watched, "partial")

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 0.1,
        betas: tuple[Value, Value] | None = None,
        *,
        beta: Value | None = None,
        theta: Value | None = None,
        partial: float = 0.125,
        **options: Unpack[Options],
    ) -> None:
        self._more_options = {"partial": partial}
        options = {"amsgrad": True, **as_the_paper(options)}
        super().__init__(params, lr, betas, beta=beta, theta=theta, **options)

    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        super()._check_options(options_of_group)
        partial = options_of_group["partial"]
        if not is_number(partial) or not 0.0 < partial <= 0.5:
            raise OptimizerError(f"partial is {shown(partial)}; expected 0 < partial <= 0.5")
        for name, needed in (("amsgrad", True), ("bias_correction", False)):
            if options_of_group[name] is not needed:
                raise OptimizerError(f"{name} is {shown(options_of_group[name])}; Padam has {name}={needed}")

    def _kernel_for(self, group: Mapping[str, Any], bucket: tensors.Bucket) -> Kernel:
        del bucket
        partial = group["partial"]

        def kernel(lists: Lists, step: Step) -> None:
            average(lists, step)
            for x, m, v_hat in zip(lists.params, lists.momenta, lists.maxima, strict=True):
                x.addcdiv_(m, v_hat.pow(partial).add_(step.eps), value=-step.alpha)

        return kernel

    def algorithm_of(
        self, group: Mapping[str, Any], lr: Schedule | None = None, beta: Schedule | None = None
    ) -> Algorithm:
        """What this optimizer does to a parameter group: a running maximum, raised to the power p."""
        return replace(super().algorithm_of(group, lr, beta), power=Fraction(group["partial"]))
