# pyright: reportPrivateImportUsage=false
"""Peers that Generic Adam is compared with: what each declares, and its step; all tested by tests/conformance."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError
from generic_adam.torch import checkpoint, rules
from generic_adam.torch.generic_adam import PAPERS, GenericAdam, pair
from generic_adam.torch.kernels import Kernel, Lists, Numbers, Step, smallest
from generic_adam.torch.rules import LEARNING_RATE, MOMENTUM, SECOND_MOMENT, Coefficient, Rule, UnsupportedError, Value
from generic_adam.torch.scheduled import Plan, ScheduledOptimizer
from generic_adam.torch.tensors import Bucket, Moment, State, is_distributed, state_dtype

_OPTIONS = {"eps": rules.NON_NEGATIVE, "weight_decay": rules.NON_NEGATIVE, "maximize": rules.FLAG}


class Padam(GenericAdam):
    r"""Padam: AMSGrad with a power p of v in place of the root, between SGD with momentum and AMSGrad.

    .. math::
        \hat v_t = \max(\hat v_{t-1}, v_t), \qquad x_{t+1} = x_t - \alpha_t m_t / (\hat v_t^p + \text{eps})

    with m_t and v_t as in :class:`~generic_adam.torch.GenericAdam`, without bias correction. p = 1/2 is AMSGrad.

    Args:
        params: the parameters, or groups of them.
        lr: the base learning rate alpha_t.
        betas: (beta, theta) in one.
        partial: p, in (0, 1/2]; the authors use 1/8.
        **options: as for GenericAdam; eps is added to the power of v.

    References:
        Chen, Zhou, Tang, Yang, Cao, Gu: Closing the Generalization Gap of Adaptive Gradient Methods in
        Training Deep Neural Networks. IJCAI 2020.
    """

    options: ClassVar[Mapping[str, Rule]] = {
        **GenericAdam.options,
        "amsgrad": Rule("True, as it is a part of Padam", lambda value: rules.FLAG.fits(value) and bool(value)),
        "bias_correction": Rule("False, as Padam has none", lambda value: rules.FLAG.fits(value) and not value),
        "partial": Rule("0 < partial <= 0.5", lambda p: rules.is_number(p) and 0.0 < p <= 0.5),
    }
    _marks: ClassVar[Mapping[str, bool]] = {"lr_schedule": True, "partial": True}

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 0.1,
        betas: tuple[Value, Value] | None = None,
        *,
        partial: float = 0.125,
        **options: Any,
    ) -> None:
        self._more_options = {"partial": partial}
        super().__init__(params, lr, betas, **{"amsgrad": True, **PAPERS, **options})


class AdaShift(ScheduledOptimizer):
    r"""AdaShift: v is built from gradients n steps old, so that v_t and g_t are independent.

    .. math::
        m_t &= \sum_{i<n} \beta^i g_{t-i} \Big/ \sum_{i<n} \beta^i \\
        v_t &= \theta v_{t-1} + (1 - \theta)\, \phi(g_{t-n}^2), \qquad v_n = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t \Big/ \Big(\sqrt{v_t / (1 - \theta^{t-n})} + \text{eps}\Big)

    where phi is the maximum over the tensor, or the identity. The first n steps only collect gradients. n and the
    correction count the gradients of each parameter. Under a schedule of theta the correction is the exact product.

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
        foreach: True for multi-tensor operations; otherwise one parameter after the other, with less memory.

    References:
        Zhou, Zhang, Lu, Wang, Zhang, Yu: AdaShift: Decorrelation and Convergence of Adaptive Learning Rate
        Methods. ICLR 2019.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (LEARNING_RATE, MOMENTUM, SECOND_MOMENT)
    options: ClassVar[Mapping[str, Rule]] = {
        "keep": Rule("a whole number >= 1", lambda n: isinstance(n, int) and rules.is_number(n) and 1 <= n < 2**31),
        "reduction": Rule("'max' or 'none'", lambda name: isinstance(name, str) and name in {"max", "none"}),
        "foreach": rules.FLAG_OR_NONE,
        **_OPTIONS,
    }
    _marks: ClassVar[Mapping[str, bool]] = {"lr_schedule": True, "keep": True}

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 1e-3,
        beta: Value = 0.9,
        theta: Value = 0.999,
        *,
        keep: int = 10,
        reduction: Literal["max", "none"] = "max",
        eps: float = 1e-16,
        weight_decay: float = 0.0,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        numbers = {"lr": lr, "beta": beta, "theta": theta, "eps": eps, "weight_decay": weight_decay}
        others = {"keep": keep, "reduction": reduction, "maximize": maximize, "foreach": foreach}
        super().__init__(params, {**numbers, **others})

    def _state_of(self, parameter: Tensor, group: Mapping[str, Any]) -> State:
        if is_distributed(parameter):
            raise UnsupportedError("AdaShift needs whole tensors: sharded parameters are not supported")
        x = torch.view_as_real(parameter.detach()) if parameter.is_complex() else parameter
        dtype = state_dtype(x)
        return {
            "history": Moment(torch.Size([group["keep"], *x.shape]), dtype),
            "second_moment": Moment(torch.Size([]) if group["reduction"] == "max" else x.shape, dtype),
            "count": rules.WHOLE,
            "correction": rules.SHARE,
        }

    def _update(self, group: dict[str, Any], plan: Plan, buckets: Sequence[Bucket]) -> None:
        lr, beta, theta, _, one_minus_theta = plan.values
        plan.used = (lr, beta, theta)
        for bucket in buckets:
            count, correction = bucket.numbers["count"], bucket.numbers["correction"]
            if count >= group["keep"]:
                correction = theta * correction + one_minus_theta
            bucket.numbers.update(count=count + 1, correction=correction)
            rows = list(zip(*bucket.lists[:4], strict=True))
            for chosen in [rows] if group["foreach"] else [[row] for row in rows]:
                self._shift(list(map(list, zip(*chosen, strict=True))), group, plan.values, count, correction)

    def _shift(
        self, lists: list[list[Tensor]], group: dict[str, Any], values: Sequence[float], count: int, correction: float
    ) -> None:
        """Carry out the step after `count` steps on parameters, gradients, histories and second moments."""
        (params, grads, histories, seconds), (lr, beta, theta, _, one_minus_theta) = lists, values
        keep, dtype, grad_scale = group["keep"], histories[0].dtype, self.__dict__.get("grad_scale")
        slot = count % keep
        slots, gradients = [history[slot] for history in histories], [g.to(dtype) for g in grads]
        if grad_scale is not None:
            gradients = torch._foreach_div(gradients, grad_scale)
        if group["maximize"]:
            gradients = torch._foreach_neg(gradients)
        olds = torch._foreach_mul(slots, slots)
        torch._foreach_copy_(slots, gradients)
        if count < keep:
            return
        torch._foreach_mul_(seconds, theta)
        if group["reduction"] == "max":  # an empty tensor has no maximum
            olds = [old.max() if old.numel() else old.new_zeros(()) for old in olds]
        torch._foreach_add_(seconds, olds, alpha=one_minus_theta)
        weights = histories[0].new_tensor([beta ** ((slot - index) % keep) for index in range(keep)])
        weights /= weights.sum()
        quotients = [torch.tensordot(weights, history, dims=1) for history in histories]
        roots = torch._foreach_div(seconds, correction)
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, max(group["eps"], smallest(dtype)))
        torch._foreach_div_(quotients, roots)
        limit = torch.finfo(dtype).max ** 0.5
        torch._foreach_clamp_max_(quotients, limit)
        torch._foreach_clamp_min_(quotients, -limit)
        for quotient, v in zip(quotients, seconds, strict=True):
            quotient.masked_fill_(v == 0, 0.0)
        # In the precision of the state, then rounded once.
        decayed = torch._foreach_mul([parameter.to(dtype) for parameter in params], 1.0 - lr * group["weight_decay"])
        torch._foreach_add_(decayed, quotients, alpha=-lr)
        torch._foreach_copy_(params, decayed)


class AdaUSM(ScheduledOptimizer):
    r"""AdaUSM: weighted AdaGrad with unified heavy-ball and Nesterov momentum.

    .. math::
        A_t &= A_{t-1} + a_t, \qquad v_t = v_{t-1} + a_t g_t^2 \\
        m_t &= \mu m_{t-1} - \eta_t g_t \Big/ \Big(\sqrt{v_t / (A_t / t)} + \text{eps}\Big) \\
        x_{t+1} &= x_t + m_t + \lambda (m_t - m_{t-1})

    with A_0 = 0 and v_0 = m_0 = 0. The state keeps A_t, over the steps that a parameter has taken part in, and
    v_t / A_t, a weighted mean that does not overflow as v_t does.

    Args:
        params: the parameters, or groups of them.
        lr: eta_t.
        weights: a_t > 0; 1 is AdaGrad, "t^r" the polynomial weights.
        momentum: mu, in [0, 1); 0.9 if not given.
        betas: (mu, None) in place of momentum, for code that knows torch's keyword.
        interpolation: lambda, in [0, mu / (1 - mu)]; 0 is heavy ball, mu is Nesterov.
        eps: added to the root.
        weight_decay: decoupled weight decay.
        maximize: climb instead of descend.

    References:
        Zou, Shen, Jie, Sun, Liu: Weighted AdaGrad with Unified Momentum. 2018.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (LEARNING_RATE, Coefficient("weights", positive=True))
    options: ClassVar[Mapping[str, Rule]] = {
        "momentum": Rule("0 <= momentum < 1", lambda mu: rules.is_number(mu) and 0.0 <= mu < 1.0),
        "interpolation": rules.NON_NEGATIVE,
        **_OPTIONS,
    }
    _marks: ClassVar[Mapping[str, bool]] = {"lr_schedule": True, "interpolation": True}

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 1e-3,
        weights: Value = "t",
        *,
        momentum: float | None = None,
        betas: tuple[float, None] | None = None,
        interpolation: float = 0.0,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        momentum = _momentum(betas, momentum)
        momentum = 0.9 if momentum is None else momentum
        numbers = {"lr": lr, "weights": weights, "momentum": momentum, "interpolation": interpolation}
        super().__init__(params, {**numbers, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; `betas` is (momentum, None) here too."""
        if isinstance(param_group, dict) and "betas" in param_group:
            momentum = _momentum(param_group["betas"], param_group.get("momentum"))
            rest = {key: value for key, value in param_group.items() if key not in {"betas", "momentum"}}
            param_group = rest if momentum is None else {**rest, "momentum": momentum}
        super().add_param_group(param_group)

    def _check_options(self, group: Mapping[str, Any]) -> None:
        super()._check_options(group)
        # mu / (1 - mu) is itself rounded, and may be asked for.
        most = group["momentum"] / (1.0 - group["momentum"])
        if group["interpolation"] > most * (1.0 + 1e-12):
            raise OptimizerError(
                f"interpolation is {rules.shown(group['interpolation'])}; expected 0 <= interpolation <= "
                f"momentum / (1 - momentum) = {most:g}"
            )

    def _state_of(self, parameter: Tensor, group: Mapping[str, Any]) -> State:
        del group
        moment = Moment(parameter.shape, state_dtype(parameter))
        return {"exp_avg": moment, "exp_avg_sq": moment, "step": rules.WHOLE, "weight_sum": rules.NON_NEGATIVE}

    def _kernel_for(self, group: Mapping[str, Any], bucket: Bucket) -> Kernel:
        del bucket
        momentum, interpolation = float(group["momentum"]), float(group["interpolation"])

        def kernel(lists: Lists, numbers: Numbers) -> None:
            step = Step(*numbers)
            for x, g, m, mean in zip(*lists[:4], strict=True):
                if step.grad_scale is not None:
                    g.div_(step.grad_scale)
                if step.decay:
                    x.mul_(1.0 - step.decay)
                mean.mul_(step.theta).addcmul_(g, g, value=step.one_minus_theta)
                # x + m + lambda (m - m_before), with m_before taken off first.
                if interpolation:
                    x.sub_(m, alpha=interpolation)
                rate = step.alpha if step.maximize else -step.alpha
                m.mul_(momentum).addcdiv_(g, mean.sqrt().add_(step.eps), value=rate)
                x.add_(m, alpha=1.0 + interpolation)

        return kernel

    def _update(self, group: dict[str, Any], plan: Plan, buckets: Sequence[Bucket]) -> None:
        lr, weight = plan.values
        # v_t / (A_t / t) is t times the mean that is kept.
        root, decay = math.sqrt(plan.step + 1), lr * group["weight_decay"]
        for bucket in buckets:
            past = bucket.numbers["weight_sum"]
            total = bucket.numbers["weight_sum"] = past + weight
            bucket.numbers["step"] += 1
            plan.used = (lr / root, group["momentum"], past / total)
            eps = max(group["eps"] / root, smallest(bucket.dtype))
            others = (decay, eps, group["maximize"], self.__dict__.get("grad_scale"))
            numbers = (lr / root, group["momentum"], past / total, 0.0, weight / total, *others, 0.0, 1.0, 0.0)
            bucket.kernel(bucket.lists, numbers)

    def _check_loaded(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        checkpoint.hand_down(state, "weight_sum", ("weight_sum",))
        super()._check_loaded(state, present)


def _momentum(betas: Any, momentum: float | None) -> float | None:
    """Return AdaUSM's momentum, from either of its names."""
    if betas is None:
        return momentum
    first, second = pair(betas)
    if second is not None or momentum is not None:
        raise OptimizerError(f"betas is {rules.shown(betas)}; expected (momentum, None) and no momentum beside it")
    return first
