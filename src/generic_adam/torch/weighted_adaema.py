"""Weighted AdaEMA (Algorithm 2): Generic Adam, told by its weights."""

from numbers import Real
from typing import Any, Self, Unpack

from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.schedules import Schedule, ScheduleError, theta_from_weights
from generic_adam.torch.generic_adam import GenericAdam, Options


class WeightedAdaEMA(GenericAdam):
    r"""Weighted AdaEMA: v is a weighted mean of all squared gradients so far.

    .. math::
        W_t = W_{t-1} + w_t, \qquad V_t = V_{t-1} + w_t g_t^2, \qquad
        x_{t+1} = x_t - \alpha_t m_t / (\sqrt{V_t / W_t} + \text{eps})

    It is Generic Adam with :math:`\theta_t = W_{t-1} / W_t`, and runs as such: V_t itself, which may grow
    beyond every number, is never formed. w_t = 1 is AdaGrad with momentum, w_t = t^r the polynomial weights
    of the paper.

    Args:
        params: the parameters, or groups of them; a group may have its own `weights`.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter beta_t.
        weights: w_t > 0, a number, text, schedule or callable of t.
        initial_weight: W_0 > 0.
        initial_v: V_0 / W_0.
        eps: added to the root.
        weight_decay: decoupled weight decay.
        amsgrad: as for GenericAdam.
        maximize: climb instead of descend.
        foreach: as for GenericAdam.
        fused: as for GenericAdam.

    Examples:
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([3.0]))
        >>> optimizer = WeightedAdaEMA([x], lr="0.5/sqrt(t)", weights="t^0.5")
        >>> x.square().sum().backward()
        >>> optimizer.step()
        >>> optimizer.param_groups[0]["theta"]
        0.5

    References:
        Zou, Shen, Jie, Zhang, Liu: A Sufficient Condition for Convergences of Adam and RMSProp. CVPR 2019.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: ScheduleLike = 1e-3,
        beta: ScheduleLike = 0.9,
        weights: ScheduleLike = 1.0,
        *,
        initial_weight: float = 1.0,
        initial_v: float = 1e-8,
        eps: float = 1e-16,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            beta,
            _theta(weights, initial_weight),
            initial_v=initial_v,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            foreach=foreach,
            fused=fused,
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; a group's own `weights`, with `initial_weight` (1 if not given), make its theta."""
        if isinstance(param_group, dict) and ("weights" in param_group or "initial_weight" in param_group):
            if "weights" not in param_group or "theta" in param_group or "betas" in param_group:
                raise OptimizerError(
                    "a group's initial_weight goes with weights, and weights stand for theta"
                )
            rest = {key: v for key, v in param_group.items() if key not in {"weights", "initial_weight"}}
            theta = _theta(param_group["weights"], param_group.get("initial_weight", 1.0))
            param_group = {**rest, "theta": theta}
        super().add_param_group(param_group)

    @classmethod
    def from_method(cls, params: ParamsT, method: Method, **others: Unpack[Options]) -> Self:
        """Not from a method: it has a theta, and no weights.

        Raises:
            OptimizerError: always; it names the class to use.
        """
        del params, method, others
        raise OptimizerError(
            "a method has a theta in place of weights: use GenericAdam.from_method, the same algorithm"
        )


def _theta(weights: ScheduleLike, initial_weight: float) -> Schedule:
    if isinstance(initial_weight, bool) or not isinstance(initial_weight, Real) or not initial_weight > 0:
        raise OptimizerError(f"initial_weight is {initial_weight!r}; expected a number > 0")
    try:
        return theta_from_weights(weights, float(initial_weight))
    except ScheduleError as error:
        raise OptimizerError(f"weights: {error}") from error
