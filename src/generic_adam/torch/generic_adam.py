"""Generic Adam (Algorithm 1) as a torch optimizer."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypedDict, Unpack

import torch
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.torch import checkpoint, kernels, options, overflow, tensors
from generic_adam.torch.coefficients import (
    LEARNING_RATE,
    MOMENTUM,
    SECOND_MOMENT,
    Coefficient,
)
from generic_adam.torch.kernels import Kernel, Step
from generic_adam.torch.scheduled import ScheduledOptimizer

DEFAULT_BETA = 0.9
DEFAULT_THETA = 0.999


class Options(TypedDict, total=False):
    """What every form of Generic Adam takes beside its sequences."""

    initial_v: float
    eps: float
    weight_decay: float
    amsgrad: bool
    maximize: bool
    bias_correction: bool
    foreach: bool | None
    fused: bool | None


class GenericAdam(ScheduledOptimizer):
    r"""Generic Adam: Adam with any sequences of learning rate, momentum and second-moment parameter.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2, \qquad v_0 = \text{initial\_v} \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\sqrt{v_t} + \text{eps})

    `lr` (the paper's alpha), `beta` and `theta` are each a number, a text such as ``"0.5/sqrt(t)"``, a
    schedule, or a callable of t; t is the optimizer's iteration count, 1 at the first step. A number is read
    from `param_groups` at every step, so that torch's learning-rate schedulers work as usual; scheduled
    values are shown there at every step.

    The paper has no eps in the denominator: its epsilon is v_0, here `initial_v`. The default eps = 1e-16 is
    there for float32, where g^2 underflows for abs(g) < 1e-22: with v = 0 and a tiny m the quotient would be
    huge instead of about 1. It is below the rounding error of sqrt(v) wherever sqrt(v) > 2e-9. With eps = 0
    the recursion is that of the paper to the last bit, and 0/0 counts as 0.

    `weight_decay` is decoupled, as in AdamW: the weights are multiplied by 1 - lr * weight_decay first.

    `bias_correction` multiplies the step by :math:`\sqrt{1 - \prod \theta_i} / (1 - \prod \beta_i)`, with the
    exact products (theta_t^t, which torch.optim.Adam would use, is wrong under a schedule), and eps is then
    added to the corrected root. With constant parameters, initial_v = 0 and eps = 1e-8 that is
    torch.optim.Adam. The products run from the step at which the group was added.

    The state is two tensors a parameter (three with AMSGrad), in float32 for half-precision parameters, under
    the names that torch.optim.Adam uses; its state_dict can be loaded. Gradients with abs(g) up to half the
    largest number of their type leave everything finite, whatever their squares do; see
    :mod:`generic_adam.torch.overflow`.

    Not supported, each with an error that says so: sparse gradients, capturable and differentiable steps.

    Args:
        params: the parameters, or groups of them with options of their own.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter beta_t; 0.9 if not given.
        theta: the second-moment parameter theta_t; 0.999 if not given.
        betas: (beta, theta) in one, in place of the two, for code that knows torch's keyword.
        initial_v: v_0.
        eps: added to the root.
        weight_decay: decoupled weight decay.
        amsgrad: divide by the root of the running maximum of v (uncorrected, and it starts at 0).
        maximize: climb instead of descend.
        bias_correction: whether to correct for m_0 = v_0 = 0.
        foreach: True for multi-tensor operations, False for one parameter after the other.
        fused: True for torch's fused kernel; by default it is used wherever it exists.
        capturable: not supported; here so that asking for it gets a clear answer.
        differentiable: likewise.

    Raises:
        OptimizerError: an argument is out of range, or two of them contradict each other.

    Examples:
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([3.0]))
        >>> optimizer = GenericAdam([x], lr="0.5/sqrt(t)", theta="1 - 1/max(t, 2)")
        >>> for _ in range(100):
        ...     optimizer.zero_grad()
        ...     x.square().sum().backward()
        ...     optimizer.step()
        >>> optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["theta"]
        (0.05, 0.99)

    References:
        Zou, Shen, Jie, Zhang, Liu: A Sufficient Condition for Convergences of Adam and RMSProp. CVPR 2019.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (LEARNING_RATE, MOMENTUM, SECOND_MOMENT)
    _distinctive: ClassVar[tuple[str, ...]] = ("lr_schedule", "bias_corrections")

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
        amsgrad: bool = False,
        maximize: bool = False,
        bias_correction: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        if capturable or differentiable:
            name = "capturable" if capturable else "differentiable"
            raise OptimizerError(f"{name}=True is not supported: each step's numbers come from Python")
        beta, theta = _separate({"beta": beta, "theta": theta, "betas": betas})
        super().__init__(
            params,
            {
                "lr": lr,
                "beta": DEFAULT_BETA if beta is None else beta,
                "theta": DEFAULT_THETA if theta is None else theta,
            },
            {
                "betas": None,
                "initial_v": initial_v,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "bias_correction": bias_correction,
                "bias_corrections": (0.0, 0.0),
                "foreach": foreach,
                "fused": fused,
            },
        )
        # torch's cyclic schedulers look here whether there is a momentum to cycle.
        self.defaults["betas"] = (self.defaults["beta"], self.defaults["theta"])

    def _forget(self) -> None:
        super()._forget()
        self._snapshots: dict[int, tensors.Snapshot] = {}

    @classmethod
    def from_method(cls, params: ParamsT, method: Method, **others: Unpack[Options]) -> Self:
        """The optimizer that runs a method: its alpha, beta and theta.

        Args:
            params: the parameters.
            method: the three sequences.
            **others: the constructor's other keywords.
        """
        return cls(params, lr=method.alpha, beta=method.beta, theta=method.theta, **others)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; `betas` is taken in place of `beta` and `theta`."""
        if isinstance(param_group, dict) and param_group.get("betas") is not None:
            # A group taken from another optimizer has both, and they agree; its products start anew here.
            rest = {key: v for key, v in param_group.items() if key not in {"betas", "bias_corrections"}}
            if param_group["betas"] == (rest.get("beta"), rest.get("theta")):
                param_group = rest
            else:
                beta, theta = _separate(param_group)
                param_group = {**rest, "beta": beta, "theta": theta}
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group["betas"] = (group["beta"], group["theta"])

    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        options.check_non_negative(options_of_group, "initial_v", "eps", "weight_decay")
        if options_of_group["foreach"] and options_of_group["fused"]:
            raise OptimizerError("foreach=True and fused=True contradict each other: choose one")

    def _gather(self, group: dict[str, Any]) -> list[tensors.Bucket]:
        params, amsgrad = group["params"], group["amsgrad"]
        snapshot = self._snapshots.get(id(group))
        if snapshot is not None:
            buckets = tensors.gather_again(params, self.state, snapshot, amsgrad=amsgrad)
            if buckets is not None:
                return buckets
        buckets = tensors.gather(params, self.state, group["initial_v"], amsgrad=amsgrad)
        snapshot = tensors.take_snapshot(params, buckets)
        if snapshot is not None:
            self._snapshots[id(group)] = snapshot
        return buckets

    def _values(self, group: dict[str, Any], t: int) -> tuple[float, ...]:
        beta, theta = group["betas"]
        if beta != group["beta"] or theta != group["theta"]:
            self._settle_betas(group)
        return super()._values(group, t)

    def _settle_betas(self, group: dict[str, Any]) -> None:
        """Something wrote to `betas`, or to `beta` or `theta`: the written one counts."""
        _, *shown = self._shown_by(group)
        if tuple(group["betas"]) == tuple(shown):
            return
        if (group["beta"], group["theta"]) != tuple(shown):
            raise OptimizerError(
                f"the group's betas are {group['betas']}, but its beta and theta are {group['beta']} and "
                f"{group['theta']}: set one of them"
            )
        group["beta"], group["theta"] = group["betas"]

    def _update(
        self, group: dict[str, Any], t: int, values: tuple[float, ...], gathered: list[tensors.Bucket]
    ) -> None:
        lr, beta, theta = values
        alpha, eps = lr, group["eps"]
        if group["bias_correction"]:
            corrections = self._correct(group, beta, theta, t)
            root = math.sqrt(corrections[1])
            alpha, eps = lr * root / corrections[0], eps * root
        decay, maximize, grad_scale = lr * group["weight_decay"], group["maximize"], self.grad_divisor
        for bucket in gathered:
            lists = bucket.lists
            kernel = _choose_kernel(group, bucket)
            one_minus_beta, one_minus_theta = 1.0 - beta, 1.0 - theta
            if kernel is not kernels.fused:
                # torch's kernel forms them itself; ours take them from the schedules, where nothing cancels.
                one_minus_beta = self.complement(group, MOMENTUM, beta, t)
                one_minus_theta = self.complement(group, SECOND_MOMENT, theta, t)
            # The smallest positive number changes no root that is not 0, and makes 0/0 a 0.
            added = max(eps, kernels.smallest(lists.second_moments[0].dtype))
            step = Step(
                alpha, beta, theta, one_minus_beta, one_minus_theta, decay, added, maximize, grad_scale
            )
            tensors.update_bucket(bucket, step, kernel)
            if t % overflow.STEPS_BETWEEN_LOOKS == 0 and not lists.maxima:
                overflow.revive(lists.momenta, lists.second_moments)

    def _correct(self, group: dict[str, Any], beta: float, theta: float, t: int) -> tuple[float, float]:
        """1 - prod beta_i and 1 - prod theta_i up to t, by a recursion in which nothing cancels."""
        past_beta, past_theta = group["bias_corrections"]
        corrections = (
            beta * past_beta + self.complement(group, MOMENTUM, beta, t),
            theta * past_theta + self.complement(group, SECOND_MOMENT, theta, t),
        )
        group["bias_corrections"] = corrections
        return corrections

    def _publish(self, group: dict[str, Any], t: int, values: tuple[float, ...]) -> None:
        super()._publish(group, t, values)
        group["betas"] = values[1:]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of this class, or of torch.optim.Adam or AdamW.

        From those, m, v and t are taken, and the numbers that are not scheduled here. Weight decay must be
        decoupled.
        """
        super().load_state_dict(state_dict)

    def _translate(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        if checkpoint.is_of_adam(state["param_groups"]):
            checkpoint.translate_adam(state, present)


def _separate(options: Mapping[str, Any]) -> tuple[Any, Any]:
    """The pair beta, theta from options that hold either them or betas."""
    beta, theta, betas = options.get("beta"), options.get("theta"), options.get("betas")
    if betas is None:
        return beta, theta
    if beta is not None or theta is not None:
        raise OptimizerError(
            "betas and beta or theta are given; expected betas=(beta, theta), or the two by name"
        )
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise OptimizerError(f"betas is {betas!r}; expected a pair (beta, theta)")
    return betas[0], betas[1]


def _choose_kernel(group: Mapping[str, Any], bucket: tensors.Bucket) -> Kernel:
    """The fused kernel where it applies and nothing else was asked for."""
    wants_fused, wants_foreach = group["fused"], group["foreach"]
    device_type = bucket.device_type
    if device_type == "cuda":
        _refuse_capture()
    if wants_fused or (wants_fused is None and wants_foreach is None):
        supported = kernels.has_fused(device_type)
        if supported and bucket.aligned:
            return kernels.fused
        if wants_fused and not supported:
            raise OptimizerError(f"fused=True: torch has no fused kernel for the device {device_type!r}")
    return kernels.single_tensor if wants_foreach is False else kernels.foreach


def _refuse_capture() -> None:
    if torch.cuda.is_current_stream_capturing():
        raise OptimizerError(
            "a CUDA graph would repeat the numbers of this one step: capturing is not supported, step outside"
        )
