"""Generic Adam (Algorithm 1) as a torch optimizer."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypedDict, Unpack

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.methods.algorithm import Algorithm, as_algorithm
from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt
from generic_adam.torch import checkpoint, kernels, tensors
from generic_adam.torch.coefficients import (
    DECAY,
    EPSILON,
    LEARNING_RATE,
    MOMENTUM,
    SECOND_MOMENT,
    Coefficient,
    UnsupportedError,
    check_flags,
    check_non_negative,
    is_number,
    separate_betas,
    shown,
)
from generic_adam.torch.kernels import Kernel
from generic_adam.torch.scheduled import Plan, ScheduledOptimizer

DEFAULT_BETA = 0.9
DEFAULT_THETA = 0.999
PAPERS_EPS = 1e-16
"""What is added to the root where the paper adds nothing; see GenericAdam.from_method."""

Value = ScheduleLike | Tensor
# Where rounding has moved v by half a percent with theta_t = 1 - 1/t, as measured: docs/performance-torch.md.
_BLURRED_FROM, _BLURRED_FROM_WITH_FOREACH = 2**20, 2**23
# A number that is positive in every type that a state can have.
_SMALLEST = kernels.smallest(torch.float32)


class Options(TypedDict, total=False):
    """What every form of Generic Adam takes beside its sequences."""

    initial_v: float
    eps: Value
    weight_decay: Value
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
        x_{t+1} &= x_t - \text{lr}_t\, \hat m_t / (\sqrt{\hat v_t} + \text{eps}), \qquad
        \hat m_t = \frac{m_t}{1 - \prod \beta_i}, \quad \hat v_t = \frac{v_t}{1 - \prod \theta_i}

    ``GenericAdam(params, lr)`` is torch.optim.Adam, to rounding: v_0 = 0, eps = 1e-8, bias correction, and
    weight decay as AdamW has it. What it adds is that `lr`, `beta`, `theta`, `eps` and `weight_decay` are
    each a number, a tensor of one element, a text such as ``"0.5/sqrt(t)"``, a schedule, or a callable of t;
    t is the optimizer's iteration count, 1 at the first step. Plain numbers are read from `param_groups` at
    every step, so that torch's learning-rate schedulers work as usual; scheduled ones show there the value of
    the step about to be taken.

    The correction has the exact products (theta_t^t, which torch.optim.Adam would use, is wrong under a
    schedule), over the steps that a parameter has taken part in. Without it (``bias_correction=False``) and
    with v_0 > 0 this is Algorithm 1 of the paper, which is what `from_method` makes of a Method: there
    alpha_t is all that multiplies, and the first hundred steps of constant (0.9, 0.999) are up to 6.57 times
    as long as Adam's.

    With eps = 0 the recursion is followed to the last bit, and 0/0 counts as 0. In float32 a small eps is
    needed where g^2 underflows (abs(g) < 1e-22): with v = 0 and a tiny m the quotient would be huge.

    In float32, v loses what is small against it. torch's fused kernel forms theta v + (1 - theta) g^2; theta_t
    and 1 - theta_t are rounded so that they add up to 1 and nothing is lost of them in the mean, and what
    remains is the rounding of v itself. With theta_t = 1 - 1/t and gaussian gradients it moved v by 6e-4 in 10^5
    steps, 0.6 % in 10^6, 2 % in 10^7 and 6.5 % in 3 x 10^7. With ``foreach=True`` or False the form is
    v + (1 - theta)(g^2 - v), and it was 9e-6, 3e-5, 0.6 % and 3.5 % (benchmarks/drift.py). Parameters in
    float64 have no such limit in practice. `certify` notes from which step on.

    The state is two tensors a parameter (three with AMSGrad), in float32 for half-precision parameters, under
    the names that torch.optim.Adam uses: state_dicts go both ways. Gradients with abs(g) up to half the
    largest number of their type leave everything finite, whatever their squares do; see
    :func:`generic_adam.torch.kernels.revive`.

    Not supported, each with an error that says so: sparse gradients, capturable and differentiable steps.

    Args:
        params: the parameters, or groups of them with options of their own.
        lr: the base learning rate.
        betas: (beta, theta) in one, for code that knows torch's keyword.
        eps: added to the corrected root.
        weight_decay: decoupled weight decay: the weights are multiplied by 1 - lr * weight_decay first.
        amsgrad: divide by the root of the running maximum of v (uncorrected, and it starts at 0).
        beta: the momentum parameter beta_t; 0.9 if not given.
        theta: the second-moment parameter theta_t; 0.999 if not given.
        initial_v: v_0.
        bias_correction: whether to correct for m_0 = v_0 = 0.
        maximize: climb instead of descend.
        foreach: True for multi-tensor operations, False for one parameter after the other.
        fused: True for torch's fused kernel; by default it is used wherever it exists.
        capturable: not supported; here so that asking for it gets a clear answer.
        differentiable: likewise.
        decoupled_weight_decay: as torch's groups say it; False with a weight decay is not supported.

    Raises:
        OptimizerError: an argument is out of range, or two of them contradict each other.

    Examples:
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([3.0]))
        >>> optimizer = GenericAdam([x], lr="0.5/sqrt(t)", theta="1 - 1/max(t, 2)")
        >>> for _ in range(99):
        ...     optimizer.zero_grad()
        ...     x.square().sum().backward()
        ...     optimizer.step()
        >>> optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["theta"]
        (0.05, 0.99)

    References:
        Zou, Shen, Jie, Zhang, Liu: A Sufficient Condition for Convergences of Adam and RMSProp. CVPR 2019.
    """

    coefficients: ClassVar[tuple[Coefficient, ...]] = (
        LEARNING_RATE,
        MOMENTUM,
        SECOND_MOMENT,
        EPSILON,
        DECAY,
    )
    _distinctive: ClassVar[tuple[str, ...]] = ("lr_schedule", "bias_corrections")
    _foreign: ClassVar[tuple[str, ...]] = ("partial",)
    _watched: ClassVar[tuple[str, ...]] = ("betas", "amsgrad", "foreach", "fused")
    # What a form of it has beside; set before the constructor runs.
    _more_options: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 1e-3,
        betas: tuple[Value, Value] | None = None,
        eps: Value = 1e-8,
        weight_decay: Value = 0.0,
        amsgrad: bool = False,
        *,
        beta: Value | None = None,
        theta: Value | None = None,
        initial_v: float = 0.0,
        bias_correction: bool = True,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        decoupled_weight_decay: bool = True,
    ) -> None:
        if capturable or differentiable:
            name = "capturable" if capturable else "differentiable"
            raise OptimizerError(f"{name}=True is not supported: each step's numbers come from Python")
        beta, theta = separate_betas({"beta": beta, "theta": theta, "betas": betas})
        super().__init__(
            params,
            {
                "lr": lr,
                "beta": DEFAULT_BETA if beta is None else beta,
                "theta": DEFAULT_THETA if theta is None else theta,
                "eps": eps,
                "weight_decay": weight_decay,
            },
            {
                "betas": None,
                "initial_v": initial_v,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "bias_correction": bias_correction,
                "bias_corrections": (0.0, 0.0),
                "theta_carry": 0.0,
                "foreach": foreach,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
                **self._more_options,
            },
        )
        # torch's cyclic schedulers look here whether there is a momentum to cycle.
        self.defaults["betas"] = (self.defaults["beta"], self.defaults["theta"])

    @classmethod
    def from_method(cls, params: ParamsT, method: Method | Algorithm, **others: Unpack[Options]) -> Self:
        """The optimizer that runs a method as the paper has it, or an algorithm as it says itself.

        A Method alone means Algorithm 1: v_0 = 1e-8, no bias correction beside what alpha_t contains, and
        nothing added to the root but 1e-16, for float32 where g^2 underflows; that is below the rounding
        error of sqrt(v) wherever sqrt(v) > 2e-9.

        Args:
            params: the parameters.
            method: the three sequences; with what an Algorithm says of v_0, eps, decay and AMSGrad's maximum.
            **others: the constructor's other keywords, which count more.

        Raises:
            OptimizerError: the algorithm does something that this optimizer does not.
        """
        algorithm = as_algorithm(method)
        three, decay = algorithm.method, algorithm.decay
        options: dict[str, Any] = {
            "initial_v": algorithm.initial_v,
            "eps": PAPERS_EPS if isinstance(method, Method) else algorithm.eps,
            "weight_decay": decay if decay == as_schedule(0) else decay / three.alpha,
            "bias_correction": False,
        }
        if algorithm.running_maximum:
            options["amsgrad"] = True
        runs = Algorithm(
            three,
            initial_v=algorithm.initial_v,
            eps=algorithm.eps,
            decay=decay,
            running_maximum=algorithm.running_maximum,
        )
        beyond = [phrase for phrase in algorithm.departures if phrase not in runs.departures]
        if beyond or algorithm.others:
            raise OptimizerError(
                f"{cls.__name__} does not run this algorithm: "
                + (beyond[0] if beyond else "its groups have sequences of their own")
            )
        return cls(params, lr=three.alpha, beta=three.beta, theta=three.theta, **{**options, **others})

    def algorithm_of(
        self, group: Mapping[str, Any], lr: Schedule | None = None, beta: Schedule | None = None
    ) -> Algorithm:
        """What this optimizer does to a parameter group; the bias correction is a part of alpha_t and e_t.

        Args:
            group: one of `param_groups`.
            lr: the learning rate as a scheduler drives it, where the group's is a plain number.
            beta: likewise for the momentum parameter.
        """
        rate = self._sequence(group, LEARNING_RATE, lr)
        momentum = self._sequence(group, MOMENTUM, beta)
        theta = self._sequence(group, SECOND_MOMENT, None)
        eps = self._sequence(group, EPSILON, None)
        alpha, notes = rate, self._rounding(group, theta)
        if group["bias_correction"]:
            root = sqrt(bias_correction(theta))
            alpha, eps = rate * root / bias_correction(momentum), eps * root
        elif eps.is_constant and eps(1) <= kernels.SPACING * math.sqrt(group["initial_v"]) and eps(1):
            notes.append(f"eps = {eps(1):g} is added to sqrt(v_t), at the level of rounding")
            eps = as_schedule(0)
        return Algorithm(
            Method(alpha, momentum, theta),
            initial_v=group["initial_v"],
            eps=eps,
            decay=rate * self._sequence(group, DECAY, None),
            running_maximum=group["amsgrad"],
            notes=[*notes, "the gradient is climbed: f is to be read as -f"] if group["maximize"] else notes,
            label=type(self).__name__,
        )

    def _rounding(self, group: Mapping[str, Any], theta: Schedule) -> list[str]:
        """From which step on float32 holds v_t no better than to 0.5 %, where a run may get there."""
        t = _BLURRED_FROM if group["foreach"] is None else _BLURRED_FROM_WITH_FOREACH
        in_float32 = any(tensors.state_dtype(parameter) is torch.float32 for parameter in group["params"])
        try:
            share = theta.complement(t)
        except ScheduleError:
            return []
        if not in_float32 or share > 2.0 / t:
            return []
        note = (
            f"v_t is kept in float32: about t = {t:,} 1 - theta_t is {share:.2g}, and from there on rounding"
        )
        return [f"{note} moves v_t by 0.5 % and more; parameters in float64 have no such limit"]

    def _sequence(
        self, group: Mapping[str, Any], coefficient: Coefficient, driven: Schedule | None
    ) -> Schedule:
        source = group[coefficient.schedule_key]
        if source is not None:
            return self._schedule(source, coefficient.name)
        return driven if driven is not None else as_schedule(float(group[coefficient.name]))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; `betas` is taken in place of `beta` and `theta`."""
        if isinstance(param_group, dict) and param_group.get("betas") is not None:
            # A group taken from another optimizer has both, and they agree; its products start anew here.
            own = {"betas", "bias_corrections", "theta_carry"}
            rest = {key: v for key, v in param_group.items() if key not in own}
            if param_group["betas"] == (rest.get("beta"), rest.get("theta")):
                param_group = rest
            else:
                beta, theta = separate_betas(param_group)
                param_group = {**rest, "beta": beta, "theta": theta}
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if group["fused"]:
            for parameter in group["params"]:
                _refuse_unfused(parameter.device.type)

    def _check_options(self, options_of_group: Mapping[str, Any]) -> None:
        check_non_negative(options_of_group, "initial_v")
        check_flags(options_of_group, "amsgrad", "maximize", "bias_correction", "decoupled_weight_decay")
        check_flags(options_of_group, "foreach", "fused")
        if options_of_group["foreach"] and options_of_group["fused"]:
            raise OptimizerError("foreach=True and fused=True contradict each other: choose one")
        if options_of_group["weight_decay"] and not options_of_group["decoupled_weight_decay"]:
            raise OptimizerError(
                "weight decay inside the gradient (L2) is not supported; "
                "expected decoupled_weight_decay=True, as in AdamW"
            )
        corrections = options_of_group["bias_corrections"]
        if not isinstance(corrections, (tuple, list)) or len(corrections) != 2:
            raise OptimizerError(f"bias_corrections is {shown(corrections)}; expected two numbers in [0, 1]")
        for one in corrections:
            checkpoint.SHARE.check("bias_corrections", one)
        if not is_number(carry := options_of_group["theta_carry"]) or not abs(carry) <= kernels.SPACING:
            raise OptimizerError(f"theta_carry is {shown(carry)}; expected at most 2^-24")

    def _mirror(self, group: dict[str, Any]) -> None:
        group["betas"] = (group["beta"], group["theta"])

    def _settle(self, group: dict[str, Any], plan: Plan) -> None:
        """Something may have written to `betas`, or to `beta` or `theta`: the written one counts."""
        super()._settle(group, plan)
        betas, apart, shown = group["betas"], (group["beta"], group["theta"]), plan.shown[1:3]
        if tuple(betas) == apart:
            return
        if apart == shown:
            group["beta"], group["theta"] = betas
        elif tuple(betas) == shown:
            group["betas"] = apart
        else:
            raise OptimizerError(
                f"the group's betas are {betas}, but its beta and theta are {apart[0]} and {apart[1]}: "
                "set one of them"
            )

    def _gather(self, group: dict[str, Any], plan: Plan) -> list[tensors.Bucket]:
        params, t = group["params"], plan.step + 1
        buckets = plan.gathered
        if buckets is not None and buckets[0].gather_again(params, self.state, t):
            return buckets
        if group["bias_correction"]:
            self._part_corrections(group)
        buckets = tensors.gather(params, self.state, group["initial_v"], amsgrad=group["amsgrad"])
        for bucket in buckets:
            bucket.kernel = self._kernel_for(group, bucket)
        plan.gathered = None
        if tensors.is_simple(params, buckets):
            buckets[0].remember(t)
            plan.gathered = buckets
        return buckets

    def _part_corrections(self, group: dict[str, Any]) -> None:
        """Parameters that miss a step of their group have corrections of their own from then on."""
        past_beta, past_theta = group["bias_corrections"]
        for parameter in group["params"]:
            moments = self.state.get(parameter)
            if not moments and parameter.grad is not None and past_theta:
                self.state[parameter].update(beta_correction=0.0, theta_correction=0.0)
            elif moments and parameter.grad is None:
                moments.setdefault("beta_correction", past_beta)
                moments.setdefault("theta_correction", past_theta)

    def _update(
        self, group: dict[str, Any], plan: Plan, values: tuple[float, ...], gathered: list[tensors.Bucket]
    ) -> None:
        lr, beta, theta, eps, weight_decay, one_minus_beta, one_minus_theta = values
        alpha, added, corrected = lr, eps, group["bias_correction"]
        if corrected:
            # 1 - prod beta_i and 1 - prod theta_i, by a recursion in which nothing cancels.
            past_beta, past_theta = group["bias_corrections"]
            of_beta, of_theta = beta * past_beta + one_minus_beta, theta * past_theta + one_minus_theta
            group["bias_corrections"] = (of_beta, of_theta)
            root = math.sqrt(of_theta)
            alpha, added = lr * root / of_beta if of_beta else 0.0, eps * root
        plan.used = (alpha, beta, theta)
        rounded: tuple[float, float] | None = None
        for bucket in gathered:
            theta_pair = (theta, one_minus_theta)
            if theta > kernels.CLOSE_TO_ONE and bucket.kernel is kernels.fused and bucket.in_float32:
                theta_pair = rounded = rounded or _round_theta(group, one_minus_theta)
            step_alpha, step_eps = alpha, added
            if corrected and "theta_correction" in bucket.states[0]:
                of_beta, of_theta = _correct_apart(
                    bucket.states, beta, theta, one_minus_beta, one_minus_theta
                )
                root = math.sqrt(of_theta)
                step_alpha, step_eps = lr * root / of_beta if of_beta else 0.0, eps * root
            # The smallest positive number changes no root that is not 0, and makes 0/0 a 0.
            if step_eps < _SMALLEST:
                step_eps = max(step_eps, kernels.smallest(bucket.dtype))
            numbers = (step_alpha, beta, theta_pair[0], one_minus_beta, theta_pair[1], lr * weight_decay)
            step = kernels.as_step((*numbers, step_eps, group["maximize"], self.grad_divisor))
            tensors.update_bucket(bucket, step)
            if (plan.step + 1) % kernels.STEPS_BETWEEN_LOOKS == 0 and not bucket.lists.maxima:
                kernels.revive(bucket.lists.momenta, bucket.lists.second_moments)
            bucket.release()

    def _kernel_for(self, group: Mapping[str, Any], bucket: tensors.Bucket) -> Kernel:
        """The fused kernel where it applies and nothing else was asked for."""
        wants_fused, wants_foreach = group["fused"], group["foreach"]
        if wants_fused or (wants_fused is None and wants_foreach is None):
            if bucket.aligned and kernels.has_fused(bucket.device_type):
                return kernels.fused
            if wants_fused:
                _refuse_unfused(bucket.device_type)
        return kernels.single_tensor if wants_foreach is False else kernels.foreach

    def state_dict(self) -> dict[str, Any]:
        """The state in plain types; torch.optim.Adam and AdamW load it too, and go on with the numbers."""
        result = super().state_dict()
        for group in result["param_groups"]:
            if group["bias_correction"]:
                # Every parameter's own, so that checkpoints that are read key by key have them.
                of_beta, of_theta = group["bias_corrections"]
                own = {"beta_correction": of_beta, "theta_correction": of_theta}
                for index in group["params"]:
                    if index in result["state"]:
                        result["state"][index] = {**own, **result["state"][index]}
        return result

    def _translate(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        if checkpoint.is_of_adam(state["param_groups"]):
            checkpoint.translate_adam(state, present)
        for group in state["param_groups"]:
            corrections = group.get("bias_corrections")
            for parameter in group["params"]:
                moments = state["state"].get(parameter)
                if moments:
                    moments.setdefault("step", checkpoint.Kept(group.get("step")))
                    checkpoint.part_corrections(moments, corrections)


def _round_theta(group: dict[str, Any], one_minus_theta: float) -> tuple[float, float]:
    """theta_t and its complement as float32 can hold both; what rounding left is carried to the next step.

    Rounded apart, the two do not add up to 1 and v drifts by a factor at every step.
    """
    wanted = one_minus_theta + group["theta_carry"]
    held = round(wanted / kernels.SPACING) * kernels.SPACING
    group["theta_carry"] = wanted - held
    return 1.0 - held, held


def _correct_apart(
    states: list[dict[str, Any]], beta: float, theta: float, one_minus_beta: float, one_minus_theta: float
) -> tuple[float, float]:
    """The corrections of parameters that have missed steps, brought up to date."""
    of_beta = beta * states[0]["beta_correction"] + one_minus_beta
    of_theta = theta * states[0]["theta_correction"] + one_minus_theta
    for moments in states:
        moments["beta_correction"], moments["theta_correction"] = of_beta, of_theta
    return of_beta, of_theta


def _refuse_unfused(device_type: str) -> None:
    if not kernels.has_fused(device_type):
        raise UnsupportedError(f"fused=True: torch has no fused kernel for the device {device_type!r}")
