"""Generic Adam (Algorithm 1) as a torch optimizer, and two forms of it that have names of their own."""

from collections.abc import Mapping, Sequence
from math import sqrt as _sqrt
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.methods import catalogue
from generic_adam.methods.algorithm import PAPERS_INITIAL_V, Algorithm, HeavyBall, Nesterov, as_algorithm
from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.schedules import Schedule, as_schedule, sqrt, theta_from_weights
from generic_adam.torch import checkpoint, compat, kernels, rules
from generic_adam.torch.checkpoint import one_minus_power
from generic_adam.torch.kernels import CLOSE_TO_ONE, SPACING, Kernel, fused
from generic_adam.torch.rules import Coefficient, Rule, UnsupportedError, Value
from generic_adam.torch.scheduled import Plan, ScheduledOptimizer
from generic_adam.torch.tensors import Bucket, Moment, State, state_dtype

# Where rounding has moved v by half a percent with theta_t = 1 - 1/t, as measured: docs/performance.md.
_BLURRED_FROM, _BLURRED_FROM_WITH_FOREACH = 2**20, 2**23
_ZERO = as_schedule(0)
# What is added to this is rounded to a multiple of 2^-24, the spacing of doubles there.
_ROUNDING = 1.5 * 2.0**52 * SPACING
# A number that is positive in every type that a state can have.
_SMALLEST = kernels.smallest(torch.float32)


PAPERS_EPS = 1e-16
"""The eps added to the root where the paper adds nothing; see GenericAdam.from_method."""
PAPERS: dict[str, Any] = {"initial_v": PAPERS_INITIAL_V, "eps": PAPERS_EPS, "bias_correction": False}


class GenericAdam(ScheduledOptimizer):
    r"""Generic Adam: Adam with any sequences of learning rate, momentum and second-moment parameter.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2, \qquad v_0 = \text{initial\_v} \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \text{lr}_t\, \hat m_t / (\sqrt{\hat v_t} + \text{eps}), \qquad
        \hat m_t = \frac{m_t}{1 - \prod \beta_i}, \quad \hat v_t = \frac{v_t}{1 - \prod \theta_i}

    ``GenericAdam(params, lr)`` is torch.optim.Adam, to rounding: v_0 = 0, eps = 1e-8, bias correction, and weight decay
    as AdamW has it. What it adds is that `lr`, `beta`, `theta`, `eps` and `weight_decay` are each a number, a tensor of
    one element, a text such as ``"0.5/sqrt(t)"``, a schedule, or a callable of t; t is the optimizer's iteration count,
    1 at the first step. Plain numbers are read from `param_groups` at every step, so that torch's learning-rate
    schedulers work as usual; scheduled ones show there the value of the step about to be taken.

    The correction has the exact products, over the steps that a parameter has taken part in. torch.optim.Adam has
    beta_t^t and theta_t^t there: the same for constants, and another number under a schedule of theirs or a scheduler
    that cycles the momentum (OneCycleLR, CyclicLR); ``bias_correction="torch"`` runs it so. Without a correction
    (``bias_correction=False``) and with v_0 > 0 this is Algorithm 1 of the paper, which is what `from_method` makes of
    a Method: there alpha_t is all that multiplies, and the first hundred steps of constant (0.9, 0.999) are up to 6.57
    times as long as Adam's.

    With eps = 0 the recursion is followed to the last bit, and 0/0 counts as 0. In float32 a small eps is
    needed where g^2 underflows (abs(g) < 1e-22): with v = 0 and a tiny m the quotient would be huge.

    In float32, v loses what is small against it. With theta_t = 1 - 1/t and gaussian gradients that moved v by 6e-4 in
    10^5 steps, 0.6 % in 10^6 and 2 % in 10^7; with ``foreach=True`` or False, whose form is v + (1 - theta)(g^2 - v),
    by 9e-6, 3e-5 and 0.6 % (benchmarks/drift.py). `certify` notes from which step on. In float64 it does not matter.

    The state is two tensors a parameter (three with AMSGrad), in float32 for half-precision parameters, under the names
    that torch.optim.Adam uses: state_dicts go both ways. Gradients with abs(g) up to half the largest number of their
    type leave the weights finite; where a square overflows, the weight stays where it is from then on, as in torch.

    Not supported, each with an error that says so: sparse gradients, capturable and differentiable steps.

    Args:
        params: the parameters, or groups of them with options of their own.
        lr: the base learning rate.
        betas: (beta, theta) in one, for code that knows torch's keyword.
        eps: added to the corrected root.
        weight_decay: decoupled weight decay: the weights are multiplied by `1 - lr * weight_decay` first.
        decoupled_weight_decay: False for torch.optim.Adam's: `weight_decay * x` is added to the gradient (L2).
        amsgrad: divide by the root of the running maximum of v (uncorrected, and it starts at 0).
        beta: the momentum parameter beta_t; 0.9 if not given.
        theta: the second-moment parameter theta_t; 0.999 if not given.
        initial_v: v_0.
        bias_correction: whether to correct for m_0 = v_0 = 0; "torch" for the powers in place of the products.
        momentum_weight: a_t of Nesterov's look-ahead, a_t m_t + b_t g_t in the place of m_t; 1 if not given. timm's
            NAdamW has beta_t and 1 - beta_t; torch's NAdam is ``GenericAdam.from_method(params, methods.nadam())``.
        gradient_weight: b_t, 0 if not given.
        heavy_ball: mu of torch.optim.RMSprop's momentum, b_t = mu b_{t-1} + g_t / (sqrt(v_t) + eps), by whose b_t the
            step goes; with it beta is 0.
        rate_inside: whether the learning rate is inside that average, as TensorFlow has it.
        maximize: climb instead of descend.
        foreach: True for multi-tensor operations, False for one parameter after the other.
        fused: True for torch's fused kernel; by default it is used wherever it exists.
        capturable: not supported; here so that asking for it gets a clear answer, as are the next two.
        differentiable: likewise.

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

    coefficients: ClassVar[tuple[Coefficient, ...]] = (*rules.OF_ADAM, *rules.LOOK_AHEAD)
    options: ClassVar[Mapping[str, Rule]] = {
        "initial_v": rules.NON_NEGATIVE,
        "heavy_ball": rules.SHARE_BELOW_ONE,
        **dict.fromkeys(("amsgrad", "maximize", "decoupled_weight_decay", "rate_inside"), rules.FLAG),
        "bias_correction": rules.CORRECTION,
        **dict.fromkeys(("foreach", "fused"), rules.FLAG_OR_NONE),
        **dict.fromkeys(("capturable", "differentiable"), rules.UNSUPPORTED),
    }
    running: ClassVar[Mapping[str, Rule]] = {
        "theta_carry": Rule("at most 2^-24", lambda one: rules.is_number(one) and abs(one) <= kernels.SPACING),
    }
    _marks: ClassVar[Mapping[str, bool]] = {"lr_schedule": True, "initial_v": True, "partial": False}
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
        bias_correction: bool | Literal["torch"] = True,
        decoupled_weight_decay: bool = True,
        momentum_weight: Value = 1.0,
        gradient_weight: Value = 0.0,
        heavy_ball: float = 0.0,
        rate_inside: bool = False,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _refuse_as_torch(lr, betas, foreach)
        beta, theta = _separate_betas({"beta": beta, "theta": theta, "betas": betas})
        if beta is None:
            beta = 0.0 if heavy_ball else 0.9
        theta = 0.999 if theta is None else theta
        numbers = {"lr": lr, "beta": beta, "theta": theta, "eps": eps, "weight_decay": weight_decay}
        numbers |= {"momentum_weight": momentum_weight, "gradient_weight": gradient_weight}
        start = {"betas": None, "initial_v": initial_v, "theta_carry": 0.0, "bias_correction": bias_correction}
        flags = {"amsgrad": amsgrad, "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}
        flags |= {"heavy_ball": heavy_ball, "rate_inside": rate_inside}
        ways = {"foreach": foreach, "fused": fused, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, {**numbers, **start, **flags, **ways, **self._more_options})
        # torch's cyclic schedulers look here whether there is a momentum to cycle.
        self.defaults["betas"] = (self.defaults["beta"], self.defaults["theta"])

    @classmethod
    def from_method(cls, params: ParamsT, method: Method | Algorithm, **others: Any) -> Self:
        """Make the optimizer that runs a method as the paper has it, or an algorithm as its fields say.

        A Method alone means Algorithm 1: v_0 = 1e-8, no bias correction beside what alpha_t contains, and
        nothing added to the root but 1e-16, for float32 where g^2 underflows; that is below the rounding
        error of sqrt(v) wherever sqrt(v) > 2e-9. The constructor's keywords among `others` count more.

        Raises:
            OptimizerError: the algorithm does something that this optimizer does not.
        """
        algorithm = as_algorithm(method)
        three, decay = algorithm.method.checked(), algorithm.decay
        fields = ("initial_v", "eps", "decay", "running_maximum", "maximize", "l2", "nesterov", "heavy_ball")
        reason = algorithm.beyond(*fields, "power") if "partial" in cls.options else algorithm.beyond(*fields)
        if reason is None and algorithm.l2 and decay != _ZERO:
            reason = "it has weight decay in two places"
        if reason is None and algorithm.heavy_ball and (algorithm.nesterov or three.beta != _ZERO):
            reason = "it has momentum before the division and after it"
        if reason is not None:
            raise OptimizerError(f"{cls.__name__} does not run this algorithm: {reason}")
        options: dict[str, Any] = {
            "initial_v": algorithm.initial_v,
            "eps": algorithm.eps,
            "weight_decay": float(algorithm.l2) or (decay if decay == _ZERO else decay / three.alpha),
            "decoupled_weight_decay": not algorithm.l2,
            "bias_correction": False,
            "maximize": algorithm.maximize,
        }
        if isinstance(method, Method):  # three sequences: the rest is the class's own
            options["eps"] = PAPERS_EPS
        else:
            options["amsgrad"] = algorithm.running_maximum
            options |= {"partial": float(algorithm.power)} if "partial" in cls.options else {}
        ahead, ball = algorithm.nesterov, algorithm.heavy_ball
        if ahead is not None:
            options |= {"momentum_weight": ahead.momentum_weight, "gradient_weight": ahead.gradient_weight}
        if ball is not None:
            options |= {"heavy_ball": float(ball.factor), "rate_inside": ball.rate_inside}
        return cls(params, lr=three.alpha, beta=three.beta, theta=three.theta, **{**options, **others})

    def algorithm_of(
        self, group: Mapping[str, Any], lr: Schedule | None = None, beta: Schedule | None = None
    ) -> Algorithm:
        """Return the algorithm that a parameter group gets; the bias correction is a part of alpha_t and e_t."""
        driven, plan = {"lr": lr, "beta": beta}, self._plans.get(id(group), Plan())
        group = {**group, **dict(zip(("beta", "theta"), self._betas(group, plan), strict=True))}

        def sequence(coefficient: Coefficient) -> Schedule:
            source, name = group[coefficient.schedule_key], coefficient.name
            if source is not None:
                return self._schedule(source, name)
            found = driven.get(name)
            return as_schedule(float(group[name])) if found is None else found

        rate, momentum, theta, eps, decay, of_momentum, of_gradient = map(sequence, self.coefficients)
        alpha, notes, outside = rate, self._rounding(group, theta), []
        if group["bias_correction"] == "torch":
            of_beta, of_theta = map(catalogue.power_correction, (momentum, theta))
            alpha, eps = rate * sqrt(of_theta) / of_beta, eps * sqrt(of_theta)
        elif group["bias_correction"]:
            alpha, eps = catalogue.corrected(rate, momentum, theta), catalogue.corrected_eps(eps, theta)
            if not momentum.is_constant:
                notes.append(
                    "beta1 moves; the bias correction has its exact product, torch's Adam a power of its last value"
                )
        elif eps.is_constant and eps(1) <= kernels.SPACING * _sqrt(group["initial_v"]) and eps(1):
            notes.append(f"eps = {eps(1):g} is added to sqrt(v_t), at the level of rounding")
            eps = _ZERO
        coupled = not group["decoupled_weight_decay"]
        if coupled and not decay.is_constant:
            outside.append("the weight decay inside the gradient moves")
        if group["maximize"]:
            notes.append("the gradient is climbed: f is to be read as -f")
        looks_ahead = (of_momentum, of_gradient) != (as_schedule(1), _ZERO)
        return Algorithm(
            Method(alpha, momentum, theta),
            initial_v=group["initial_v"],
            eps=eps,
            l2=decay(1) if coupled and decay.is_constant else 0,
            decay=_ZERO if coupled else rate * decay,
            running_maximum=bool(group["amsgrad"]),
            power=group["partial"] if "partial" in self.options else 0.5,
            nesterov=Nesterov(of_momentum, of_gradient) if looks_ahead else None,
            heavy_ball=HeavyBall(group["heavy_ball"], bool(group["rate_inside"])) if group["heavy_ball"] else None,
            maximize=bool(group["maximize"]),
            outside=outside,
            notes=notes,
            label=type(self).__name__,
        )

    def _rounding(self, group: Mapping[str, Any], theta: Schedule) -> list[str]:
        """From which step on float32 holds v_t no better than to 0.5 %, where a run may get there."""
        t = _BLURRED_FROM if _wants_fused(group) else _BLURRED_FROM_WITH_FOREACH
        try:
            share = theta.complement(t)
        except ScheduleError:
            return []
        if share > 2.0 / t or all(state_dtype(parameter) is not torch.float32 for parameter in group["params"]):
            return []
        note = f"v_t is kept in float32: about t = {t:,} 1 - theta_t is {share:.2g}, and from there on rounding"
        return [f"{note} moves v_t by 0.5 % and more; parameters in float64 have no such limit"]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; `betas` is taken in place of `beta` and `theta`."""
        if isinstance(param_group, dict) and param_group.get("betas") is not None:
            rest = {key: value for key, value in param_group.items() if key != "betas"}
            # A group taken from another optimizer has both, and they agree.
            both = {"beta", "theta"} <= rest.keys()
            if not both or _numbers(pair(param_group["betas"])) != _numbers((rest["beta"], rest["theta"])):
                own = zip(("beta", "theta"), _separate_betas(param_group), strict=True)
                rest |= {name: value for name, value in own if value is not None}
            param_group = rest
        super().add_param_group(param_group)

    def _check_options(self, group: Mapping[str, Any]) -> None:
        super()._check_options(group)
        if group["foreach"] and group["fused"]:
            raise UnsupportedError("foreach=True and fused=True contradict each other: choose one")
        if group["heavy_ball"] and (group["beta"] or group.get("beta_schedule")):
            raise OptimizerError(f"beta is {rules.shown(group['beta'])}; expected 0 beside heavy_ball")

    def _read(self, group: dict[str, Any], plan: Plan) -> None:
        group["betas"] = group["beta"], group["theta"] = self._betas(group, plan)
        super()._read(group, plan)
        if group["heavy_ball"]:
            self._check_options(group)  # a beta may have been written there since
        if plan.values[5:7] != [1.0, 0.0] and any(bucket.is_fused for bucket in plan.kept):
            plan.forget()  # torch's kernel does not look ahead

    def _betas(self, group: Mapping[str, Any], plan: Plan) -> tuple[Any, Any]:
        """Something may have written to `betas`, or to `beta` or `theta`: the written one counts."""
        betas, apart = pair(group["betas"]), (group["beta"], group["theta"])
        if betas[0] is apart[0] and betas[1] is apart[1]:
            return apart
        last = dict(zip(group, plan.shown, strict=False))
        before = _numbers((last["beta"], last["theta"])) if last else None
        if _numbers(betas) in (_numbers(apart), before):
            return apart
        if _numbers(apart) == before:
            return betas
        raise OptimizerError(
            f"the group's betas are {betas}, but its beta and theta are {apart[0]} and {apart[1]}: set one of them"
        )

    def _state_of(self, parameter: Tensor, group: Mapping[str, Any]) -> State:
        moment = Moment(parameter.shape, state_dtype(parameter))
        first = "momentum_buffer" if group["heavy_ball"] else "exp_avg"
        maximum = {"max_exp_avg_sq": moment._replace(late=True)} if group["amsgrad"] else {}
        moments = {first: moment, "exp_avg_sq": moment._replace(start=float(group["initial_v"])), **maximum}
        return {**moments, "step": rules.WHOLE, **dict.fromkeys(checkpoint.CORRECTIONS, rules.SHARE)}

    def _kernel_for(self, group: Mapping[str, Any], bucket: Bucket) -> Kernel:
        """Return the fused kernel where torch's has the form and nothing else was asked for."""
        power, ahead = float(group.get("partial", 0.5)), [one.schedule_key for one in rules.LOOK_AHEAD]
        looks_ahead = any(map(group.get, ahead)) or (group["momentum_weight"], group["gradient_weight"]) != (1, 0)
        plain = power == 0.5 and not group["heavy_ball"] and not looks_ahead
        if group["fused"] and not (plain and compat.has_fused(bucket.device_type)):
            missing = f"for the device {bucket.device_type!r}" if plain else "with this momentum or power"
            raise UnsupportedError(f"fused=True: torch has no fused kernel {missing}")
        if plain and _wants_fused(group) and bucket.aligned and compat.has_fused(bucket.device_type):
            return fused
        at_once = group["foreach"] in (None, True)
        return kernels.form(power, float(group["heavy_ball"]), bool(group["rate_inside"]), at_once)

    def _update(self, group: dict[str, Any], plan: Plan, buckets: Sequence[Bucket]) -> None:
        lr, beta, theta, eps, weight_decay, of_momentum, of_gradient, one_minus_beta, one_minus_theta = plan.values
        decay, l2 = (lr * weight_decay, 0.0) if group["decoupled_weight_decay"] else (0.0, weight_decay)
        correction = group["bias_correction"]
        rounded, plan.used = None, (lr, beta, theta)
        for bucket in buckets:
            alpha, added, held, one_minus_held, numbers = lr, eps, theta, one_minus_theta, bucket.numbers
            # 1 - prod beta_i and 1 - prod theta_i, by a recursion in which nothing cancels.
            of_beta = numbers["beta_correction"] = beta * numbers["beta_correction"] + one_minus_beta
            of_theta = numbers["theta_correction"] = theta * numbers["theta_correction"] + one_minus_theta
            numbers["step"] += 1
            if correction:
                if correction == "torch":
                    of_beta, of_theta = (one_minus_power(one, numbers["step"]) for one in (beta, theta))
                root = _sqrt(of_theta)
                alpha, added = lr * root / of_beta if of_beta else 0.0, eps * root
                plan.used = (alpha, beta, theta)
            if theta > CLOSE_TO_ONE and bucket.in_float32 and bucket.is_fused:
                if rounded is None:
                    # As float32 can hold both; what rounding leaves is carried to the next step. Rounded apart, the
                    # two would not add up to 1, and v would drift by a factor at every step.
                    wanted = one_minus_theta + group["theta_carry"]
                    rounded = wanted + _ROUNDING - _ROUNDING
                    group["theta_carry"] = wanted - rounded
                held, one_minus_held = 1.0 - rounded, rounded
            # The smallest positive number changes no root that is not 0, and makes 0/0 a 0.
            if added < _SMALLEST:
                added = max(added, kernels.smallest(bucket.dtype))
            others = (decay, added, group["maximize"], self.__dict__.get("grad_scale"), l2, of_momentum, of_gradient)
            bucket.kernel(bucket.lists, (alpha, beta, held, one_minus_beta, one_minus_held, *others))

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain types, which ``torch.load(weights_only=True)`` and torch.optim.AdamW read."""
        result = super().state_dict()
        checkpoint.mark(result)
        return result

    def _check_loaded(self, state: dict[str, Any], present: list[dict[str, Any]]) -> None:
        if checkpoint.take_if_of_adam(state):
            checkpoint.translate_adam(state, present)
        checkpoint.hand_down(state, "bias_corrections", checkpoint.CORRECTIONS)
        super()._check_loaded(state, present)


class WeightedAdaEMA(GenericAdam):
    r"""Weighted AdaEMA (Algorithm 2): v is a weighted mean of all squared gradients so far.

    .. math::
        W_t = W_{t-1} + w_t, \qquad V_t = V_{t-1} + w_t g_t^2, \qquad
        x_{t+1} = x_t - \alpha_t m_t / (\sqrt{V_t / W_t} + \text{eps})

    It is Generic Adam with :math:`\theta_t = W_{t-1} / W_t`, and runs as such: V_t itself, which may grow
    beyond every number, is never formed. w_t = 1 is AdaGrad with momentum, w_t = t^r the polynomial weights
    of the paper. It starts as the paper does: v_0 > 0, and no bias correction.

    Args:
        params: the parameters, or groups of them, which have the same weights.
        lr: the base learning rate alpha_t.
        beta: the momentum parameter beta_t.
        weights: w_t > 0, a number, text, schedule or callable of t.
        betas: (beta, None) in place of beta, for code that knows torch's keyword.
        initial_weight: W_0 > 0.
        **options: as for GenericAdam; initial_v is V_0 / W_0.

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
        **options: Any,
    ) -> None:
        beta, theta = _separate_betas({"beta": beta, "betas": betas})
        if theta is not None:
            raise OptimizerError(f"betas is {betas!r}; expected (beta, None): the weights stand for theta")
        if not rules.is_number(initial_weight) or not initial_weight > 0:
            raise OptimizerError(f"initial_weight is {initial_weight!r}; expected a number > 0")
        try:
            theta = theta_from_weights(weights, float(initial_weight))
        except ScheduleError as error:
            raise OptimizerError(f"weights: {error}") from error
        super().__init__(params, lr, beta=beta, theta=theta, **{**PAPERS, **options})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; their weights are those of the optimizer."""
        if isinstance(param_group, dict) and param_group.keys() & {"weights", "initial_weight"}:
            raise OptimizerError(
                "a group has no weights of its own; expected its theta, by theta_from_weights(weights)"
            )
        super().add_param_group(param_group)

    @classmethod
    def from_method(cls, params: ParamsT, method: Method | Algorithm, **others: Any) -> Self:
        """Raise an OptimizerError, as a method has a theta and no weights."""
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
        **options: as for GenericAdam; the running maximum starts at 0.

    References:
        Reddi, Kale, Kumar: On the Convergence of Adam and Beyond. ICLR 2018.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Value = 1e-3,
        betas: tuple[Value, Value] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, **{"amsgrad": True, **PAPERS, **options})


def pair(betas: Any) -> tuple[Any, Any]:
    """Return torch's betas, or raise an OptimizerError for what is no pair."""
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise OptimizerError(f"betas is {rules.shown(betas)}; expected a pair (beta, theta)")
    return betas[0], betas[1]


def _numbers(betas: tuple[Any, Any]) -> tuple[float, float]:
    return rules.MOMENTUM.plain(betas[0]), rules.SECOND_MOMENT.plain(betas[1])


def _separate_betas(options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return beta and theta from options that hold either these two or betas, as torch's Adam has them."""
    beta, theta, betas = options.get("beta"), options.get("theta"), options.get("betas")
    if betas is None:
        return beta, theta
    if beta is not None or theta is not None:
        raise OptimizerError("betas and beta or theta are given; expected betas=(beta, theta), or the two by name")
    return pair(betas)


def _wants_fused(group: Mapping[str, Any]) -> bool:
    return bool(group["fused"]) or (group["fused"] is None and group["foreach"] is None)


def _refuse_as_torch(lr: Any, betas: Any, foreach: bool | None) -> None:
    """Raise an OptimizerError for tensors where torch.optim.Adam takes none, so that code moves both ways."""
    both = betas if isinstance(betas, (tuple, list)) else ()
    for name, value in (("lr", lr), *((f"betas[{index}]", one) for index, one in enumerate(both))):
        if foreach and isinstance(value, Tensor):
            raise OptimizerError(
                f"{name} as a Tensor is not supported with foreach=True, as in torch; expected a number"
            )
    if any(isinstance(one, Tensor) for one in both) and any(map(rules.is_number, both)):
        raise OptimizerError(f"betas is {rules.shown(betas)}; expected both as numbers or both as tensors")
