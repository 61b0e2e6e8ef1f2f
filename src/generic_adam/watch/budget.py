r"""Measures the budget of a run (Theorem K.0m, theorems/measured.py): is it still descending, is it lr, is it Adam?

At steps that lots have chosen in advance, two fresh mini-batches give gradients h and k at :math:`x_t`, and the
first of them once more, h', at :math:`x_{t+1}`. With the step as it was made, :math:`u_t = (x_{t+1}-x_t)/\alpha_t`,

.. math::

    X: \sum_k h_k k_k/\hat D_k, \qquad
    \text{bias}: X + \frac{\langle \tfrac12(h+k), u_t - \gamma_t u_{t-1}\rangle}{1-\beta_t}, \qquad
    c_{t+1}: \langle h' - h, u_t\rangle, \qquad
    r_t: \ell'(x_{t+1}) - \ell(x_t) - \alpha_t\langle h, u_t\rangle

are unbiased given the past, whatever drew the batches of the run (epochs, clipping, decay, dropout): of the run itself
only the step is used. The bias takes the step that was made for the mean step, so that it has the budget's noise in it.
The loss at both ends is measured by batches of its own: where the changes along the steps do not add up to it,
something else moves the weights.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from generic_adam.errors import OptimizerError, TheoremError
from generic_adam.extras import from_extra
from generic_adam.theorems.measured import Budget, Estimate, Observation, budget, drawn, weights
from generic_adam.watch.instruments import is_inner, look_into, real

with from_extra("torch"):
    import torch
    from torch import Tensor
    from torch.nn.attention import SDPBackend, sdpa_kernel

# Power iterations for the largest curvature.
_PRODUCTS = 10
# The loss at both ends is seen on this many mini-batches, the same ones.
_EVALUATIONS = 16
# What the random numbers of a batch are for; numpy takes a seed of (a, b) for one of (a, b, 0).
_FIRST, _SECOND, _ENDS = 1, 2, 3
# c of D: a coordinate whose second moment is smaller than c^2 of the mean counts as that.
_LEAST = 0.1
# Losses of one batch at one point, computed twice, agree to this.
_SAME = 1e-4


@contextmanager
def _undisturbed(model: torch.nn.Module | None, *seed: int) -> Iterator[None]:
    """Give the probe random numbers of its own, the same for the same seed, and the run back those that it had.

    So it does with the model's buffers, such as the running means of batch norm.
    """
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    buffers = [] if model is None else [(one, one.clone()) for one in model.buffers()]
    plain, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002  (what a probe may draw from)
    one = int(np.random.SeedSequence(seed).generate_state(1)[0])
    with torch.random.fork_rng(devices):
        torch.manual_seed(one)
        random.seed(one)
        np.random.seed(one)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(plain)
            np.random.set_state(numbers)  # noqa: NPY002
            with torch.no_grad():
                for one, was in buffers:
                    one.copy_(was)


def _dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    """Return the inner product, its sums in double; nothing waits for the device."""
    return _total(a * b for a, b in zip(one, other, strict=True))


@dataclass
class _Step:
    """One step of the run: its numbers, and where it was measured, what was seen (on the device)."""

    alpha: float
    beta: float
    gamma: float
    stands_for: int = 1
    seen: Tensor | None = None


@dataclass
class _Open:
    """The measurement of the step that is being made."""

    loss: Tensor
    h: list[Tensor]
    k: list[Tensor]
    size: Tensor
    scale: Tensor


class BudgetMeter:
    """Measures what the size of the gradient along a run is made of.

    It sits on the optimizer's step hooks. A measured step costs three gradients and copies of the weights; the others
    cost nothing that grows with the network. The run's own random numbers are left as they are.

    Args:
        optimizer: one that `Watch` can look into.
        probe: returns the loss of a fresh mini-batch at the present weights, with its graph. If it draws the batch
            with the global random numbers of torch, numpy or Python, the same batch is seen before and after a step,
            and the budget can be tested; else the loss along the steps is not measured, and `closes` is None.
        rate: the share of the steps that is measured; of the early ones it is 16/t.
        seed: of the lots and of the probe's batches.
        model: the module that the probe runs, whose buffers are then left as they are.

    Raises:
        OptimizerError: the optimizer cannot be looked into, or maximises; its weights are sharded; the rate is wrong.

    Examples:
        >>> x = torch.nn.Parameter(torch.ones(3))
        >>> optimizer = torch.optim.Adam([x], lr=0.01)
        >>> meter = BudgetMeter(optimizer, lambda: (x - 0.1 * torch.randn(3)).square().sum(), rate=1)
        >>> for _ in range(50):
        ...     optimizer.zero_grad()
        ...     (x - 0.1 * torch.randn(3)).square().sum().backward()
        ...     optimizer.step()
        >>> meter.budget().closes
        True
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        probe: Callable[[], Tensor],
        *,
        rate: float = 0.01,
        seed: int = 0,
        model: torch.nn.Module | None = None,
    ) -> None:
        if not 0 < rate <= 1:
            raise OptimizerError(f"rate is {rate!r}; expected a share of the steps in (0, 1]")
        self._probe, self._seed, self._model = probe, seed, model
        self._look = look_into(optimizer)
        self._params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        if any(hasattr(p, "to_local") for p in self._params):
            raise OptimizerError("the budget of sharded weights is not measured")
        self._steps: list[_Step] = []
        self._first: Tensor | None = None  # the losses before the first step
        self._lots = drawn(rate, seed)
        self._next = next(self._lots)
        self._done: int | None = None
        self._mass = self._beta_mass = 0.0  # 1 - prod theta and 1 - prod beta so far
        self._last = (0.0, 0.0, 0.0, 0.0)
        self._points: list[Tensor] | None = None
        self._earlier: list[Tensor] | None = None  # u_{t-1}
        self._open: _Open | None = None
        self._repeats: bool | None = None
        self._handles = [
            optimizer.register_step_pre_hook(self._before_step),
            optimizer.register_step_post_hook(self._after_step),
        ]

    def detach(self) -> None:
        """Take the hooks off the optimizer; what was measured stays."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._points, self._earlier, self._open = [], None, None, None

    def budget(self) -> Budget:
        """Return the budget of the steps so far.

        Raises:
            TheoremError: too little was measured, or it is no finite number.
        """
        steps, first = self._steps, self._first
        seen = [(t, one.stands_for, one.seen) for t, one in enumerate(steps) if one.seen is not None]
        if not seen or first is None:
            raise TheoremError("budget: no step was measured yet")
        weighing = weights([one.alpha for one in steps], [one.beta for one in steps], [one.gamma for one in steps])
        rows = torch.stack([row for *_, row in seen]).cpu().tolist()
        found = [
            Observation(t, *row[:-1], change=row[-1] if self._repeats else None, stands_for=count)
            for (t, count, _), row in zip(seen, rows, strict=True)
        ]
        fell = (first - self._losses()).cpu()
        error = float(fell.std()) / math.sqrt(len(fell))
        return budget(weighing, found, Estimate(float(fell.mean()), error, len(fell)))

    def _gradients(self, *seed: int) -> tuple[Tensor, list[Tensor]]:
        """Return loss and gradient of the batch that the seed draws, at the present weights."""
        with torch.enable_grad(), _undisturbed(self._model, self._seed, *seed):
            loss = self._probe()
            found = torch.autograd.grad(loss, self._params, allow_unused=True)
        return loss.detach().double(), [
            _real(torch.zeros_like(p) if g is None else g.to_dense() if g.layout is not torch.strided else g)
            for p, g in zip(self._params, found, strict=True)
        ]

    def _losses(self) -> Tensor:
        """Return the losses of the batches with which both ends are seen."""
        found: list[Tensor] = []
        for one in range(_EVALUATIONS):
            with torch.no_grad(), _undisturbed(self._model, self._seed, _ENDS, one):
                found.append(self._probe().detach().double().reshape(()))
        return torch.stack(found)

    @torch.no_grad()
    def _before_step(self, optimizer: torch.optim.Optimizer, *_args: Any) -> None:
        if is_inner(optimizer):
            return
        if self._done is None and not self._join(optimizer):  # no second moment yet: nothing to measure with
            return
        t = len(self._steps)
        if self._first is None:
            self._first = self._losses()
        if self._repeats is None:
            (one, _), (other, _) = self._gradients(_FIRST, t), self._gradients(_FIRST, t)
            self._repeats = bool((one - other).abs() <= _SAME * (one.abs() + other.abs()))
        chosen, _ = self._next
        if t == chosen:
            (loss, h), (_, k), scales = self._gradients(_FIRST, t), self._gradients(_SECOND, t), self._scales(optimizer)
            size = _dot(h, [g / scale for g, scale in zip(k, scales, strict=True)])
            self._open = _Open(loss, h, k, size, _total(scales))
        if t in (chosen - 1, chosen):
            self._points = [_real(p.detach()).clone() for p in self._params]

    @torch.no_grad()
    def _after_step(self, optimizer: torch.optim.Optimizer, *_args: Any) -> None:
        if is_inner(optimizer) or self._done is None:
            return
        self._done += 1
        alpha, beta, theta, _ = self._last = self._coefficients(optimizer)
        mass, self._mass = self._mass, 1 - theta * (1 - self._mass)
        self._beta_mass = 1 - beta * (1 - self._beta_mass)
        t, open_, points = len(self._steps), self._open, self._points
        step = _Step(alpha, beta, beta * math.sqrt(mass / self._mass) if self._mass else 0.0)
        self._steps.append(step)
        self._open = self._points = None
        if points is None:
            self._earlier = None
            return
        moved = [_real(p.detach()) - x for p, x in zip(self._params, points, strict=True)]
        u = [one / alpha for one in moved] if alpha else moved
        if open_ is not None:
            loss, after = self._gradients(_FIRST, t)
            turned = [b - a for a, b in zip(open_.h, after, strict=True)]
            mean = [(a + b) / 2 for a, b in zip(open_.h, open_.k, strict=True)]
            inherited = torch.zeros_like(open_.size) if self._earlier is None else _dot(mean, self._earlier)
            change = (loss - open_.loss).to(open_.size.device)
            slopes = _dot(open_.h, u), _dot(open_.k, u), inherited
            step.seen = torch.stack([open_.size, open_.scale, *slopes, _dot(turned, u), change])
            step.stands_for, self._next = self._next[1], next(self._lots)
        self._earlier = u

    def _join(self, optimizer: torch.optim.Optimizer) -> bool:
        """Take in the steps that have been made, and return whether there is a second moment."""
        if all(one is None for one in self._moments(optimizer)):
            return False
        places = (*optimizer.param_groups, *vars(optimizer)["state"].values())
        self._done = max((int(place["step"]) for place in places if "step" in place), default=1)
        # As if the betas had been constant before.
        _, beta, theta, _ = self._coefficients(optimizer)
        self._beta_mass, self._mass = 1 - beta**self._done, 1 - theta**self._done
        self._last = self._coefficients(optimizer)
        return True

    def _coefficients(self, optimizer: torch.optim.Optimizer) -> tuple[float, float, float, float]:
        """Return alpha, beta, theta and e of the last step, of the group with the largest alpha."""
        masses = self._beta_mass, self._mass
        found = [self._look.coefficients(optimizer, group, self._done or 1, masses) for group in optimizer.param_groups]
        most = max(found, key=lambda one: one.alpha)
        return most.alpha, most.beta, most.theta, most.added

    def _moments(self, optimizer: torch.optim.Optimizer) -> list[Tensor | None]:
        states = vars(optimizer)["state"]
        groups = {p: group for group in optimizer.param_groups for p in group["params"]}
        known = [(states.get(p), groups.get(p)) for p in self._params]
        found = [self._look.second(state, group) if state and group else None for state, group in known]
        return [None if one is None else _real(one) for one in found]

    def _scales(self, optimizer: torch.optim.Optimizer) -> list[Tensor]:
        r"""Return :math:`\hat D` of each tensor, from what is known before the step."""
        _, _, theta, added = self._last
        moments = [
            _real(p.detach()) * 0 if v is None else v
            for p, v in zip(self._params, self._moments(optimizer), strict=True)
        ]
        least = _LEAST**2 * (_total(moments) / sum(v.numel() for v in moments)).clamp(min=0)
        new = (1 - theta) / (self._mass or 1.0)
        return [
            (theta * v + new * torch.maximum(v, least.to(v.device, v.dtype))).clamp_(min=0).sqrt_().add_(added)
            for v in moments
        ]


def _total(tensors: Iterable[Tensor]) -> Tensor:
    sums = [one.sum(dtype=torch.float64) for one in tensors]
    return torch.stack([part.to(sums[0].device) for part in sums]).sum()


def _real(tensor: Tensor) -> Tensor:
    """Return a complex tensor as pairs of real numbers, in single precision at least."""
    found = real(tensor)
    return found.float() if found.element_size() < 4 else found


def curvature(probe: Callable[[], Tensor], parameters: Sequence[Tensor], scales: Sequence[Tensor]) -> float:
    r"""Return the largest curvature of the loss in the metric of the steps, from below.

    It is the largest Rayleigh quotient of :math:`P^{-1/2} H P^{-1/2}` over ten power iterations, P = sqrt(v) + e.

    Args:
        probe: returns the loss of a mini-batch at the present weights, with its graph.
        parameters: the weights.
        scales: P of each.
    """
    devices = sorted({p.device.index for p in parameters if p.device.type == "cuda" and p.device.index is not None})
    # Nothing of the run may depend on whether it is looked at: dropout draws as it would have.
    # Of attention's kernels the plain one alone can be differentiated twice.
    with torch.random.fork_rng(devices), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        gradients = torch.autograd.grad(probe(), parameters, create_graph=True, allow_unused=True)
        used = [k for k, g in enumerate(gradients) if g is not None and g.requires_grad]
        if not used:
            raise RuntimeError("the gradient of its loss has no graph")
        roots = [scales[k].detach().sqrt() for k in used]
        outputs = [gradients[k] for k in used]
        vector = [g.detach() / root for g, root in zip(outputs, roots, strict=True)]
        largest = -math.inf
        for _ in range(_PRODUCTS):
            norm = torch.sqrt(sum(((v * v).sum() for v in vector), start=torch.zeros((), device=vector[0].device)))
            if not float(norm) > 0:
                break
            vector = [v / norm for v in vector]
            seen = torch.autograd.grad(
                outputs,
                [parameters[k] for k in used],
                [v / root for v, root in zip(vector, roots, strict=True)],
                retain_graph=True,
                allow_unused=True,
            )
            product = [
                torch.zeros_like(v) if s is None else s / root for v, s, root in zip(vector, seen, roots, strict=True)
            ]
            largest = max(largest, float(sum((v * s).sum() for v, s in zip(vector, product, strict=True))))
            vector = product
    return largest
