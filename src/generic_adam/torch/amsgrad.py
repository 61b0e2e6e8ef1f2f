"""AMSGrad, which Generic Adam is compared with."""

from typing import Self, Unpack

from torch.optim.optimizer import ParamsT

from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.torch.generic_adam import GenericAdam, Options


class AMSGrad(GenericAdam):
    r"""AMSGrad: Adam without bias correction, with v replaced by its running maximum.

    .. math::
        \hat v_t = \max(\hat v_{t-1}, v_t), \qquad x_{t+1} = x_t - \alpha_t m_t / (\sqrt{\hat v_t} +
        \text{eps})

    with m_t and v_t as in :class:`GenericAdam`, of which this is the form with ``amsgrad=True``.

    Args:
        params: the parameters, or groups of them.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter beta_t.
        theta: the second-moment parameter theta_t.
        betas: (beta, theta) in one, in place of the two.
        initial_v: v_0; the running maximum starts at 0.
        eps: added to the root.
        weight_decay: decoupled weight decay.
        maximize: climb instead of descend.
        foreach: as for GenericAdam.
        fused: as for GenericAdam.

    References:
        Reddi, Kale, Kumar: On the Convergence of Adam and Beyond. ICLR 2018.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: ScheduleLike = 1e-3,
        beta: ScheduleLike | None = None,
        theta: ScheduleLike | None = None,
        *,
        betas: tuple[ScheduleLike, ScheduleLike] | None = None,
        initial_v: float = 1e-8,
        eps: float = 1e-16,
        weight_decay: float = 0.0,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            beta,
            theta,
            betas=betas,
            initial_v=initial_v,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=True,
            maximize=maximize,
            foreach=foreach,
            fused=fused,
        )

    @classmethod
    def from_method(cls, params: ParamsT, method: Method, **others: Unpack[Options]) -> Self:
        """AMSGrad with the alpha, beta and theta of a method."""
        return cls(params, lr=method.alpha, beta=method.beta, theta=method.theta, **others)  # pyright: ignore[reportCallIssue]
