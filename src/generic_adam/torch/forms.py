"""Two forms of Generic Adam that have names of their own: Weighted AdaEMA (Algorithm 2) and AMSGrad."""

from typing import Any, Self, Unpack

from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.methods.algorithm import PAPERS_INITIAL_V, Algorithm
from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.schedules import Schedule, theta_from_weights
from generic_adam.torch.coefficients import is_number, separate_betas
from generic_adam.torch.generic_adam import PAPERS_EPS, GenericAdam, Options, Value


class WeightedAdaEMA(GenericAdam):
    r"""Weighted AdaEMA (Algorithm 2): v is a weighted mean of all squared gradients so far.

    .. math::
        W_t = W_{t-1} + w_t, \qquad V_t = V_{t-1} + w_t g_t^2, \qquad
        x_{t+1} = x_t - \alpha_t m_t / (\sqrt{V_t / W_t} + \text{eps})

    It is Generic Adam with :math:`\theta_t = W_{t-1} / W_t`, and runs as such: V_t itself, which may grow
    beyond every number, is never formed. w_t = 1 is AdaGrad with momentum, w_t = t^r the polynomial weights
    of the paper. It starts as the paper does: v_0 > 0, and no bias correction.

    Args:
        params: the parameters, or groups of them; a group may have its own `weights`.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter beta_t.
        weights: w_t > 0, a number, text, schedule or callable of t.
        betas: (beta, None) in place of beta, for code that knows torch's keyword.
        initial_weight: W_0 > 0.
        **options: initial_v (V_0 / W_0), eps, weight_decay, amsgrad, maximize, bias_correction, foreach and
            fused, as for GenericAdam.

    Examples:
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([3.0]))
        >>> optimizer = WeightedAdaEMA([x], lr="0.5/sqrt(t)", weights="t^0.5")
        >>> optimizer.param_groups[0]["theta"]
        0.5
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 1e-3,
        beta: Value | None = None,
        weights: ScheduleLike = 1.0,
        *,
        betas: tuple[Value, None] | None = None,
        initial_weight: float = 1.0,
        **options: Unpack[Options],
    ) -> None:
        beta, theta = separate_betas({"beta": beta, "betas": betas})
        if theta is not None:
            raise OptimizerError(f"betas is {betas!r}; expected (beta, None): the weights stand for theta")
        theta = _theta(weights, initial_weight)
        super().__init__(params, lr, beta=beta, theta=theta, **as_the_paper(options))

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
    def from_method(cls, params: ParamsT, method: Method | Algorithm, **others: Unpack[Options]) -> Self:
        """Not from a method: it has a theta, and no weights.

        Raises:
            OptimizerError: always; it names the class to use.
        """
        del params, method, others
        raise OptimizerError(
            "a method has a theta in place of weights: use GenericAdam.from_method, the same algorithm"
        )


class AMSGrad(GenericAdam):
    """AMSGrad: ``GenericAdam(..., amsgrad=True)`` as its authors have it, without bias correction.

    Args:
        params: the parameters, or groups of them.
        lr: the base learning rate alpha_t.
        betas: (beta, theta) in one.
        beta: the momentum parameter beta_t.
        theta: the second-moment parameter theta_t.
        **options: as for GenericAdam; the running maximum starts at 0.

    References:
        Reddi, Kale, Kumar: On the Convergence of Adam and Beyond. ICLR 2018.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 1e-3,
        betas: tuple[Value, Value] | None = None,
        *,
        beta: Value | None = None,
        theta: Value | None = None,
        **options: Unpack[Options],
    ) -> None:
        options = {"amsgrad": True, **as_the_paper(options)}
        super().__init__(params, lr, betas, beta=beta, theta=theta, **options)


def as_the_paper(options: Options) -> Options:
    """Options with the paper's start where nothing else is given: v_0 = 1e-8, no correction, no eps."""
    return {"initial_v": PAPERS_INITIAL_V, "eps": PAPERS_EPS, "bias_correction": False, **options}


def _theta(weights: ScheduleLike, initial_weight: float) -> Schedule:
    if not is_number(initial_weight) or not initial_weight > 0:
        raise OptimizerError(f"initial_weight is {initial_weight!r}; expected a number > 0")
    try:
        return theta_from_weights(weights, float(initial_weight))
    except ScheduleError as error:
        raise OptimizerError(f"weights: {error}") from error
