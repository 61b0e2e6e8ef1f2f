# pyright: reportPrivateImportUsage=false
r"""Instruments that look at every step: sums over evenly spread coordinates of each tensor, kept on the device.

The coordinates of all tensors are the rows of one matrix, a row a tensor, padded with zeros. So a step costs three
gathers (gradient, first and second moment), however large the network; the sums, some twenty operations on a matrix,
are made for eight steps at once; nothing waits for the device. Small tensors are taken whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import currentframe
from typing import Any, Generic, TypeVar

from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm

with from_extra("torch"):
    import torch
    from torch import Tensor

    from generic_adam.torch.contrib import AdaShift
    from generic_adam.torch.generic_adam import GenericAdam

Group = Mapping[str, Any]
State = Mapping[str, Any]
Masses = tuple[float, float]
Number = TypeVar("Number", bound="float | Tensor")


@dataclass(frozen=True)
class Coefficients(Generic[Number]):
    """The numbers of one step of one group.

    Attributes:
        alpha: alpha_t, with the bias correction in it, as it multiplies m_t / (sqrt(v_t) + e_t).
        beta: beta_t.
        theta: theta_t.
        added: e_t, what is added to sqrt(v_t).
        decay: the share of each weight that a decoupled decay takes off.
        pull: what multiplies the weight in a decay that is part of the gradient.
    """

    alpha: Number
    beta: Number
    theta: Number
    added: Number
    decay: Number
    pull: Number | float = 0.0


@dataclass(frozen=True)
class Look:
    """How to look into one class of optimizers.

    Attributes:
        second: (state of a parameter, group) -> v_t, whose root a step divides by; None before there is one.
        first: (state of a parameter, group) -> m_t; None where the step is along the gradient.
        coefficients: (optimizer, group, t, masses) -> the numbers of the step t that has been made; the masses are
            1 - prod beta and 1 - prod theta over the steps before it.
        replays: whether x_{t+1} = (1 - decay) x_t - alpha_t m_t / (sqrt(v_t) + e_t) is all of the step.
        averages: whether m_t and v_t are averages of g and g^2 with the weights beta and theta.
        known: whether the class is one of torch's or ours.
    """

    second: Callable[[State, Group], Any]
    first: Callable[[State, Group], Any]
    coefficients: Callable[[Any, Group, int, Masses], Coefficients[float]]
    replays: Callable[[Any, Group], bool] = lambda _optimizer, _group: False
    averages: bool = True
    known: bool = True


def _first(state: State, _group: Group) -> Any:
    return state.get("exp_avg")


def _second(state: State, group: Group) -> Any:
    moment = state.get("max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq")
    return moment ** (2 * group["partial"]) if moment is not None and "partial" in group else moment


def _adam(_optimizer: Any, group: Group, t: int, _masses: Masses) -> Coefficients[float]:
    beta, theta = (float(value) for value in group["betas"][:2])
    # torch's own bias correction: the power of the present beta, also where a scheduler moves it
    root = math.sqrt(1 - theta**t) if theta < 1 else 1.0
    lr, decay = float(group["lr"]), float(group.get("weight_decay") or 0.0)
    alpha = lr * root / (1 - beta**t)
    return Coefficients(alpha, beta, theta, float(group.get("eps", 1e-8)) * root, lr * decay)


def _torch_adam(optimizer: Any, group: Group, t: int, masses: Masses) -> Coefficients[float]:
    found = _adam(optimizer, group, t, masses)
    decoupled = group.get("decoupled_weight_decay", isinstance(optimizer, torch.optim.AdamW))
    return found if decoupled else replace(found, decay=0.0, pull=float(group.get("weight_decay") or 0.0))


def _generic(optimizer: Any, group: Group, _t: int, masses: Masses) -> Coefficients[float]:
    # () where no step was made yet
    alpha, beta, theta = (*optimizer.used(group), 0.0, 0.0, 0.0)[:3]
    lr, added = alpha, float(group["eps"])
    if group.get("bias_correction"):
        of_beta, root = 1 - beta * (1 - masses[0]), math.sqrt(1 - theta * (1 - masses[1]))
        lr, added = alpha * of_beta / root if root else 0.0, added * root
    return Coefficients(alpha, beta, theta, added, lr * float(group["weight_decay"]))


def _rmsprop(_optimizer: Any, group: Group, _t: int, _masses: Masses) -> Coefficients[float]:
    lr, theta, eps, pull = (float(group[name]) for name in ("lr", "alpha", "eps", "weight_decay"))
    return Coefficients(lr, 0.0, theta, eps, 0.0, pull)


def _rmsprop_second(state: State, group: Group) -> Any:
    if "square_avg" not in state:
        return None
    return state["square_avg"] - state["grad_avg"] ** 2 if group["centered"] else state["square_avg"]


def _adagrad(_optimizer: Any, group: Group, t: int, _masses: Masses) -> Coefficients[float]:
    # sum/(t + 1) is an average with theta_t = 1 - 1/(t + 1)
    rate = float(group["lr"]) / (1 + (t - 1) * float(group["lr_decay"]))
    root = math.sqrt(t + 1)
    pull = float(group["weight_decay"])
    return Coefficients(rate / root, 0.0, 1 - 1 / (t + 1), float(group["eps"]) / root, 0.0, pull)


def _adamax(_optimizer: Any, group: Group, t: int, _masses: Masses) -> Coefficients[float]:
    beta, theta = map(float, group["betas"])
    return Coefficients(float(group["lr"]) / (1 - beta**t), beta, theta, 0.0, 0.0)


def _none(_state: State, _group: Group) -> None:
    return None


def _replays(_optimizer: Any, group: Group) -> bool:
    """Return True if all that a step does is known: no option adds to it."""
    return not (group.get("momentum") or group.get("centered"))


def _is_adam(optimizer: Any, group: Group) -> bool:
    """Return True if a class that is known by its state alone says that it is Adam, or AdamW."""
    name = type(optimizer).__name__.casefold()
    plain = all(group.get(one, True) for one in ("bias_correction", "correct_bias", "adam_w_mode"))
    return plain and (name == "adamw" or (name in {"adam", "fusedadam", "cpuadam"} and not group.get("weight_decay")))


# Subclasses are looked into like their parents; the first that fits.
_LOOKS: dict[type[torch.optim.Optimizer], Look] = {
    GenericAdam: Look(_second, _first, _generic, _replays),
    # v_t / (1 - theta^(t - n)); 0 while it only collects gradients
    AdaShift: Look(
        lambda state, _group: state["second_moment"] / (state["correction"] or 1.0), _none, _generic, averages=False
    ),
    torch.optim.AdamW: Look(_second, _first, _torch_adam, _replays),
    torch.optim.Adam: Look(_second, _first, _torch_adam, _replays),
    torch.optim.NAdam: Look(_second, _first, _torch_adam),
    torch.optim.RMSprop: Look(_rmsprop_second, _none, _rmsprop, _replays),
    torch.optim.Adagrad: Look(
        lambda state, _group: state["sum"] / (state["step"] + 1) if "sum" in state else None,
        _none,
        _adagrad,
        _replays,
    ),
    torch.optim.Adamax: Look(
        lambda state, _group: state["exp_inf"] ** 2 if "exp_inf" in state else None, _first, _adamax, averages=False
    ),
}
_BY_STATE = Look(_second, _first, _adam, _is_adam, known=False)


def look_into(optimizer: torch.optim.Optimizer) -> Look:
    """Return how to look into an optimizer.

    Raises:
        OptimizerError: it keeps no second moment that can be read, or maximises.
    """
    if any(group.get("maximize") for group in optimizer.param_groups):
        raise OptimizerError("an optimizer with maximize=True cannot be watched; minimise the loss times -1")
    found = next((look for kind, look in _LOOKS.items() if isinstance(optimizer, kind)), None)
    if found is not None:
        return found
    # Others' Adams are known by what a group says and a state holds.
    groups = optimizer.param_groups
    name = type(optimizer).__name__
    if groups and all("betas" in group and "lr" in group for group in groups):
        states = list(vars(optimizer).get("state", {}).values())
        if all("exp_avg_sq" in state for state in states if state):
            return _BY_STATE
        if any("state1" in state for state in states):
            raise OptimizerError(f"{name} keeps its moments in 8 bits, which cannot be watched; use 32-bit states")
    names = ", ".join(kind.__name__ for kind in _LOOKS)
    raise OptimizerError(
        f"{name} cannot be watched; expected one of {names}, a subclass, or an Adam that keeps exp_avg and exp_avg_sq"
    )


def stated(algorithm: Algorithm, group: int, t: int) -> Coefficients[float]:
    """Return the numbers that an algorithm has at a step of a parameter group."""
    part = next((one for one in algorithm.parts if group in one.groups), algorithm)
    method = part.method
    values = (float(one(t)) for one in (method.alpha, method.beta, method.theta, part.eps, part.decay))
    return Coefficients(*values, pull=float(part.l2))


def comparable(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm that steps can be compared with.

    Raises:
        OptimizerError: its steps are not those of Adam or AdamW.
    """
    for part in algorithm.parts or (algorithm,):
        reason = part.beyond("initial_v", "eps", "decay", "l2", "clipping", "running_maximum", "others")
        if reason is not None:
            raise OptimizerError(f"{algorithm.source or 'the algorithm'} cannot be compared with steps: {reason}")
    return algorithm


# torch's wrapper of every `step`, which calls the hooks.
_HOOKED = torch.optim.Optimizer.profile_hook_step(torch.optim.Optimizer.step).__code__


def is_inner(optimizer: torch.optim.Optimizer) -> bool:
    """Return True in a hook of a step that a step of the same optimizer has called: its class calls its parent's.

    torch calls the hooks of both; what has been done is seen before and after the outer one.
    """
    frame, count = currentframe(), 0
    while frame is not None and count < 2:
        count += frame.f_code is _HOOKED and frame.f_locals.get("self") is optimizer
        frame = frame.f_back
    return count == 2


def real(tensor: Any) -> Tensor:
    """Return a tensor as a plain one of real numbers: this process's shard of it, complex numbers as pairs."""
    local = getattr(tensor, "to_local", None)
    if local is not None:
        tensor = local()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


# Coordinates of one tensor, and of all tensors of a device together.
_LARGEST_ROW, _SMALLEST_ROW, _WHOLE = 512, 64, 1 << 14
# Steps that wait for their sums; the numbers of a matrix that stay in a processor's cache; those of a small network.
_WAITING, _CACHED, _SMALL = 8, 1 << 15, 1 << 11
_TINY = 1e-30  # below every number that a float32 second moment holds with some accuracy

COLUMNS = ("ratio", "update", "falling", "square", "overshoot", "before", "curved", "agreement", "momentum", "second")
"""The sums over a row at each step: g^2/max(v, e^2); u^2, with u = m/(sqrt(v) + e); the coordinates with g^2 < v/10;
g^2; <g, u> and <g, u> of the step before, with the u of that step; <u, D u>; <g, m>; m^2; v."""


_NAMES = (
    "eps used live tiny unmoved driven off stated off_m square off_v fourth decayed stepped after pulled first along"
)
COMPARED = tuple(_NAMES.split())
"""The sums of `Sample.compare`: eps/(sqrt(v) + eps) where v > 0 and g is not 0; the number of these; coordinates with
v > 0; with a tiny v and a large step; unmoved by a step and a gradient that are not 0; with such; (step - stated
step)^2; stated step^2; (m - its average)^2; g^2; (v - its average)^2; v^2; (decay x)^2; (alpha u)^2; x^2 after it;
(pull x)^2; m^2 + g^2; step times stated step."""


@dataclass(eq=False)
class Member:
    """One tensor that is watched.

    Attributes:
        parameter: the tensor.
        group: the index of its parameter group.
        name: what it is called.
        numel: the number of its coordinates in this process.
        count: how many of them are looked at.
    """

    parameter: Tensor
    group: int
    name: str
    numel: int = 0
    count: int = 0
    _order: tuple[int, ...] | None = None
    _stride: int = 1
    _known: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        local = real(self.parameter.detach())
        self.numel = local.numel()
        self.count = self.numel
        whole = not hasattr(self.parameter, "to_local") and not self.parameter.is_complex()
        self._plain = whole and local.is_contiguous()
        if not local.is_contiguous():  # channels last, a transposed view: in the order of memory
            strides = local.stride()
            self._order = tuple(sorted(range(local.dim()), key=lambda one: -strides[one]))

    def take(self, most: int) -> None:
        """Look at no more than this many coordinates."""
        self.count = min(self.numel, most)
        self._stride = max(1, self.numel // max(1, self.count))
        self._shape = (self.count,), (self._stride,)

    def pick(self, tensor: Tensor) -> Tensor | None:
        """Return the coordinates that are looked at, of a tensor shaped as the parameter; None of any other."""
        if tensor.numel() == 1 and self.numel != 1:
            return tensor.reshape(()).expand(self.count)
        if tensor.numel() != self.numel:
            return None
        if self._order is not None:
            tensor = tensor.permute(self._order)
        elif tensor.is_contiguous():
            return tensor.as_strided(*self._shape)
        return tensor.reshape(-1)[:: self._stride][: self.count]

    def pick_of(self, kind: str, tensor: Tensor) -> Tensor | None:
        """`pick` of a moment, which is mostly the same tensor as at the step before."""
        known = self._known.get(kind)
        if known is not None and known[0] is tensor:
            return known[1]
        found = self.pick(real(tensor))
        if found is not None and found._base is not None:  # no copy
            self._known[kind] = tensor, found
        return found

    def gradient(self) -> Tensor | None:
        """Return the gradient at the coordinates; None where there is none."""
        gradient = self.parameter.grad
        if gradient is None:
            return None
        if self._plain and gradient.layout is torch.strided and gradient.is_contiguous():
            return gradient.as_strided(*self._shape)
        return self.pick(real(gradient if gradient.layout is torch.strided else gradient.to_dense()))

    def moments(self) -> list[Tensor]:
        """Return the moments that the optimizer keeps."""
        return [tensor for tensor, _ in self._known.values()]


class Sample:
    """The tensors of one device: what they were at the last steps, and the sums of the steps before.

    Args:
        members: the tensors.
        length: the number of steps that are kept until they are collected.
    """

    def __init__(self, members: Sequence[Member], length: int) -> None:
        self.members = list(members)
        rows = len(self.members)
        width = max(_SMALLEST_ROW, min(_LARGEST_ROW, _WHOLE // max(1, rows)))
        for member in self.members:
            member.take(width)
        width = max((member.count for member in self.members), default=1)
        device = next(m.parameter.device for m in self.members)
        self.counts = [member.count for member in self.members]

        def matrix(*shape: int) -> Tensor:
            return torch.zeros(*shape, rows, width, device=device)

        # g, m, v of the steps that wait for their sums, and before them those of the step before, which has them.
        self._waiting = min(length, _WAITING)
        self._kept, self._updates = matrix(self._waiting + 1, 3), matrix(self._waiting + 1)
        self._views = [
            [tuple(side[kind, row, :count] for kind in range(3)) for row, count in enumerate(self.counts)]
            for side in self._kept
        ]
        self._older = matrix(3)
        self._now = self._summed = 0
        self._added: list[list[float]] = []
        self._drawn: dict[int, list[float]] = {}
        # On a processor, so many steps at once that their matrices stay in its cache.
        fits = max(1, _CACHED // (rows * width)) if device.type == "cpu" else self._waiting
        self._chunk = min(fits, self._waiting)
        self._products, self._bound = matrix(self._chunk), matrix(self._chunk)
        self._ring = torch.zeros(length, len(COLUMNS), rows, device=device)
        self.present: list[list[bool]] = []
        # Whether a tensor has had a part in every step.
        self.complete = [True] * rows
        self._noise: list[Tensor] | None = None
        self._width = self.column([max(1.0, float(count)) for count in self.counts])
        self._filled = (torch.arange(width, device=device) < self._width).to(torch.float32)
        self._matrix = matrix

    @property
    def small(self) -> bool:
        """True if every step can be measured for `noise`."""
        return self._updates[0].numel() <= _SMALL

    def draw(self, betas: Sequence[float]) -> None:
        """Choose the last step for `noise`; the betas are the groups'."""
        self._drawn[self._now] = list(betas)

    def _sum(self) -> None:
        """Compute the sums of the steps that wait for them."""
        count = self._now - self._summed
        for start in range(self._summed, self._now, self._chunk):
            place = len(self.present) - count + start - self._summed
            self._sum_some(start, min(self._chunk, self._now - start), place)
        for step, betas in self._drawn.items():
            self._add_noise(step, self._by_row([betas])[0], self._by_row([self._added[step - 1]])[0])
        self._drawn.clear()
        self._summed = self._now

    def _by_row(self, by_group: Sequence[Sequence[float]]) -> Tensor:
        """Return numbers of the groups, at each of some steps, as a column for each step."""
        if all(value == values[0] for values in by_group for value in values):
            found = [values[:1] for values in by_group]
        else:
            found = [[values[member.group] for member in self.members] for values in by_group]
        return torch.tensor(found, device=self._kept.device).unsqueeze(2)

    def _sum_some(self, start: int, count: int, place: int) -> None:
        """Compute the sums of so many steps after a kept one, from a place of the ring on."""
        g, m, v = self._kept[start + 1 : start + 1 + count].unbind(1)
        old_g, old_u = self._kept[start : start + count, 0], self._updates[start : start + count]
        u, p, bound = self._updates[start + 1 : start + 1 + count], self._products[:count], self._bound[:count]
        ring = self._ring[place : place + count]
        added = self._added[start : start + count]

        def total(column: int, product: Tensor = p) -> None:
            ring[:, column] = product.sum(-1)

        torch.sqrt(v, out=bound).add_(self._by_row(added)).clamp_min_(_TINY)
        torch.div(m, bound, out=u)
        least = self._by_row([[max(one * one, _TINY) for one in values] for values in added])
        torch.maximum(v, least, out=bound)
        torch.mul(g, g, out=p)
        total(3)
        torch.div(p, bound, out=bound)
        total(0, bound)
        torch.mul(v, 0.1, out=bound).gt_(p)
        total(2, bound)
        for column, one, other in ((1, u, u), (4, g, old_u), (5, old_g, old_u), (6, u, m), (7, g, m), (8, m, m)):
            torch.mul(one, other, out=p)
            total(column)
        total(9, v)

    def _add_noise(self, step: int, beta: Tensor, added: Tensor) -> None:
        r"""Take in what Adam's scaling does to the gradient of a step.

        With the D of the step before, :math:`e_t = g_t/D + (\beta u_{t-1} - u_t)/(1-\beta)` has the mean 0 where the
        scaling takes nothing away. Its sum over many steps tells the mean from the noise.
        """
        g, u = self._kept[step, 0], self._updates[step]
        old_v, old_u = self._kept[step - 1, 2], self._updates[step - 1]
        # A regularised root, as a function of the past may be: never far below the tensor's mean.
        mean = old_v.sum(1, keepdim=True).div_(self._width)
        root = old_v.add(mean, alpha=0.01).sqrt_().add_(added).clamp_min_(_TINY)
        half = root.sqrt()
        kept = g / half
        lost = (old_u * beta).sub_(u).div_(1 - beta).mul_(half).add_(kept)
        if self._noise is None:
            self._noise = [torch.zeros_like(g), torch.zeros_like(g), torch.zeros(3, len(self.members), device=g.device)]
        self._noise[0] += lost
        self._noise[1] += kept
        self._noise[2] += torch.stack([(lost * lost).sum(1), (kept * kept).sum(1), (root * self._filled).sum(1)])

    def noise(self) -> Tensor:
        """Return the row sums |sum e|^2, |sum h|^2, sum |e|^2, sum |h|^2, sum D taken in so far, h = g/sqrt(D)."""
        self._sum()
        if self._noise is None:
            return torch.zeros(5, len(self.members), device=self._kept.device)
        lost, kept, sums = self._noise
        return torch.cat([torch.stack([(lost * lost).sum(1), (kept * kept).sum(1)]), sums])

    def forget_noise(self) -> None:
        """Begin the sums of `noise` anew."""
        self._sum()
        self._noise = None

    def column(self, values: Sequence[float]) -> Tensor:
        """Return a number for each tensor as a column on the device."""
        return torch.tensor(values, device=self._kept.device).unsqueeze(1)

    def points(self) -> Tensor:
        """Return the weights at the coordinates."""
        found = self._matrix()
        into, taken = [], []
        for row, member in enumerate(self.members):
            picked = member.pick(real(member.parameter.detach()))
            if picked is not None:
                into.append(found[row, : member.count])
                taken.append(picked)
        if into:
            torch._foreach_copy_(into, taken)
        return found

    def step(self, find: Callable[[Member], tuple[Any, Any]], added: Sequence[float]) -> None:
        """Take in a step that has been made: only copies, since sums are cheaper for some steps at once.

        Args:
            find: a tensor -> its m_t and v_t; None of one that has none.
            added: e_t of each group.
        """
        if self._now == self._waiting:
            self._sum()
            self._older = self._kept[self._now - 1].clone()
            self._kept[0], self._updates[0] = self._kept[self._now], self._updates[self._now]
            self._now = self._summed = 0
            self._added.clear()
        self._now += 1
        self._added.append(list(added))
        into: list[Tensor] = []
        taken: list[Tensor] = []
        there = [True] * len(self.members)
        self._along_g = False
        for row, (member, views) in enumerate(zip(self.members, self._views[self._now], strict=True)):
            first, second = find(member)
            g = member.gradient()
            v = None if second is None else member.pick_of("second", second)
            m = g if first is None else member.pick_of("first", first)
            if g is None or v is None or m is None:
                there[row] = False
                continue
            self._along_g = first is None
            into += views
            taken += (g, m, v)
        if into:
            torch._foreach_copy_(into, taken)
        if not all(there):
            self.complete = [whole and here for whole, here in zip(self.complete, there, strict=True)]
            absent = [row for row, here in enumerate(there) if not here]
            # Its moments are those of two steps before; no sum of this step counts.
            now, older = self._kept[self._now], self._kept[self._now - 2] if self._now > 1 else self._older
            now[0, absent], now[1:, absent] = 0.0, older[1:, absent]
        self.present.append(there)

    def compare(self, was: Tensor, expected: Coefficients[Any], scale: float | Tensor, rounding: Tensor) -> Tensor:
        """Return how the last step differs from the stated one: the columns `COMPARED`, a row a tensor.

        Args:
            was: the weights before the step, as `points` gave them.
            expected: the numbers of the stated step, each one number or a column of them.
            scale: what makes m/(sqrt(v) + e) the ratio of the corrected moments.
            rounding: the spacing of the weights' numbers at 1.
        """
        x, pulled = self.points(), expected.pull * was
        g, m, v = self._kept[self._now]
        old_v, old_m, square = self._kept[self._now - 1, 2], self._kept[self._now - 1, 1], (g * g).sum(1)
        root = (v.sqrt() + expected.added).clamp_min_(_TINY)
        g = g + pulled
        m = g if self._along_g else m
        u = m / root
        moved, stated = x - was, -expected.alpha * u - expected.decay * was
        # Rounding of the weights, twice, is no difference.
        off = ((moved - stated).abs() - 2 * rounding * x.abs()).clamp_min(0.0)
        live, driven = v > 0, (expected.alpha * u != 0) & (g != 0)
        used = live & (g != 0)
        share = (expected.added / root).masked_fill(~used, 0.0)
        tiny = live & (v < 1e-12 * v.amax(1, keepdim=True)) & (u.abs() * scale > 0.1)
        of_m = m - expected.beta * old_m - (1 - expected.beta) * g
        of_v = v - expected.theta * old_v - (1 - expected.theta) * g * g
        # Squares near the smallest float32 are rounded to anything.
        of_m, of_v = (one.masked_fill(v < _TINY, 0.0) for one in (of_m, of_v))
        return torch.stack([
            share.sum(1),
            used.sum(1),
            live.sum(1),
            tiny.sum(1),
            (driven & (moved == 0)).sum(1),
            driven.sum(1),
            (off * off).sum(1),
            (stated * stated).sum(1),
            (of_m * of_m).sum(1),
            square,
            (of_v * of_v).sum(1),
            (v * v).sum(1),
            (expected.decay * was).square_().sum(1),
            (expected.alpha * u).square_().sum(1),
            (x * x).sum(1),
            (pulled * pulled).sum(1),
            (m * m + g * g).sum(1),
            (moved * stated).sum(1),
        ])  # fmt: skip

    def collect(self) -> Any:
        """Return the sums of the steps since the last call, [steps, columns, rows], nan where a tensor had no part."""
        self._sum()
        kept = self._ring[: len(self.present)].double().cpu().numpy().copy()
        for one, there in zip(kept, self.present, strict=True):
            if not all(there):
                one[:, [not here for here in there]] = float("nan")
        self.present.clear()
        return kept
