r"""One rule carried out in float64, from the weights that were seen, with a bound on the rounding of the real one.

The step of every family here is

.. math::
    x_{t+1} = (1 - \nu_t) x_t - a_t (A_t m_t + B_t g_t) / (\sqrt{C_t v_t + R_t} + E_t)

and the rule says how m, v and the six scalars come about. x_t is read from the trace at every step, so that errors of
one step are not carried to the next; only m, v and the momentum buffer are, each with a running bound on its error.

Worked example: float32, beta_2 = 0.999. A kernel that keeps 1 - beta_2 in float32 is off by 2^-24 / 0.001 = 6e-5
of (1 - beta_2) g^2, which is most of the bound on v, and 3e-5 of the step is what may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half of the distance from 1 to the next number of a format."""
HALF = frozenset({"float16", "bfloat16"})
EIGHT_BITS = "eight bits"
SMALLEST = {"float64": 2.3e-308, "float32": 1.2e-38, "float16": 6.0e-8, "bfloat16": 1.2e-38}
"""Numbers below which a format flushes to zero, or their distance there."""
SEQUENCES = ("lr", "beta1", "beta2", "eps", "decay", "momentum")
"""The fields of a rule with one number for each step and parameter."""
_SCALAR = 2.0**-24  # scalars such as 1 - beta^t may have been float32 in any implementation
_OPERATIONS = 4  # roundings of one line of a kernel, at most


@dataclass(frozen=True)
class Trace:
    """A run that was watched: T steps of N coordinates of P parameters.

    Attributes:
        names: the parameters.
        owner: the parameter of each coordinate.
        group: the parameter group of each parameter; -1 where none holds it.
        numel: the coordinates of each parameter, watched or not; only those watched have gradients.
        dtypes: the format of each parameter.
        weights: x_t of every coordinate, T + 1 rows.
        gradients: of every micro-batch: K, T, N; 0 where missing.
        present: whether a parameter has a gradient at a step.
        overflow: whether a step's gradients are infinite, so that a loss scaler skips it.
        settings: what the parameter groups say at each step: T, P by name; nan where they say nothing.
        resumed: the number of steps before the run was saved and loaded, or None.
        loaded: the weights after the load.
        state_dtypes: the formats of the state's tensors, by parameter.
        calls: the steps that the optimizer takes in each step of the author's loop; 0 without one.
    """

    names: tuple[str, ...]
    owner: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    numel: npt.NDArray[np.int64]
    dtypes: tuple[str, ...]
    weights: Floats
    gradients: Floats
    present: npt.NDArray[np.bool_]
    overflow: npt.NDArray[np.bool_]
    settings: Mapping[str, Floats] = field(default_factory=dict)
    resumed: int | None = None
    loaded: Floats | None = None
    state_dtypes: tuple[frozenset[str], ...] = ()
    calls: int = 0

    @property
    def steps(self) -> int:
        """T."""
        return len(self.present)

    def until(self, steps: int) -> Trace:
        """Return the first steps of the run."""
        settings = {name: values[:steps] for name, values in self.settings.items()}
        cut = {"weights": self.weights[: steps + 1], "gradients": self.gradients[:, :steps], "settings": settings}
        return replace(self, present=self.present[:steps], overflow=self.overflow[:steps], **cut)


@dataclass(frozen=True, eq=False)
class Rule:
    """How a step is carried out, in every respect in which implementations have been seen to differ.

    The SEQUENCES have T rows of P numbers; the rest are choices.
    """

    family: str
    lr: Floats
    beta1: Floats
    beta2: Floats
    eps: Floats
    decay: Floats
    momentum: Floats
    # none, first, second, "once" (as at a first step), swapped, "not rooted", product, multiplied
    correction: str = "both"
    eps_place: str = "outside"  # hat, root, root squared, at least
    # coupled, "in momentum", both, none; beside: absolute, "first rate", corrected, "after", ascending, growing
    decay_form: str = "decoupled"
    maximum: str = "none"  # uncorrected, corrected, kept (in place of v)
    initial_v: float = 0.0
    count: str = "parameter"
    offset: int = 0
    missing: str = "stand still"
    dampening: float = 0.0
    nesterov: bool = False
    looks: str = "next"  # the correction of the momentum that looks ahead: of the next step, or the "same"
    look_ahead: tuple[Floats, Floats] | None = None  # a_t and b_t of a_t m_t + b_t g_t
    centered: bool = False
    rate_in_momentum: bool = False
    momentum_decay: float = 4e-3
    rate_decay: float = 0.0
    first_moment: str = "average"  # sum, heavy (no 1 - beta), none
    second_moment: str = "average"  # sum, plain, delayed, absolute, of momentum, of the tensor, no root, first
    sign: float = 1.0
    scale: float = 1.0
    accumulate: str = "mean"  # sum, last, first, never cleared
    clip_norm: float | None = None
    # each parameter, each group, largest, value, upside down, inverse, always, each micro-batch, as they come
    clip_how: str = "norm"
    clip_update: float | None = None
    clip_update_how: str = "norm"  # upside down, inverse
    skipped_count: bool = False
    state_dtype: str | None = None
    narrow: str = "mv"  # the moments that are kept in it
    resume: frozenset[str] = frozenset()
    exchanged: tuple[int, int] | None = None  # two parameters whose state a load exchanges

    def but(self, **changes: Any) -> Rule:
        """Return the rule with some choices changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Replay:
    """A rule's prediction of each step: x_{t+1} = fixed - lr slope, within lr slope_error + write; T, N each."""

    fixed: Floats
    slope: Floats
    slope_error: Floats
    write: Floats
    lr: Floats
    seen: Floats

    @property
    def predicted(self) -> Floats:
        """x_{t+1}."""
        with np.errstate(all="ignore"):
            return self.fixed - self.lr * self.slope

    @property
    def bound(self) -> Floats:
        """How far from it a right implementation may be."""
        with np.errstate(all="ignore"):
            return np.abs(self.lr) * self.slope_error + self.write

    @property
    def differs(self) -> npt.NDArray[np.bool_]:
        """True where no rounding explains the step that was seen."""
        with np.errstate(invalid="ignore"):
            within = np.abs(self.seen - self.predicted) <= self.bound
        return ~within & (np.isfinite(self.predicted) | np.isfinite(self.seen))


def active(rule: Rule, trace: Trace) -> npt.NDArray[np.bool_]:
    """Which parameters take part in which step."""
    present, begun = trace.present, np.maximum.accumulate(trace.present, axis=0)
    taking = {"zero": np.ones_like(present), "zero once begun": begun, "stale": begun}.get(rule.missing, present)
    taking = begun if rule.accumulate == "never cleared" else taking
    return taking & ~trace.overflow[:, None]


def counts(rule: Rule, trace: Trace, taking: npt.NDArray[np.bool_]) -> Floats:
    """Return the step count that each parameter uses at each step."""
    if rule.skipped_count:
        taking = taking | (trace.overflow[:, None] & trace.present)
    own = np.cumsum(taking, axis=0).astype(float)
    parameters = np.arange(own.shape[1])
    group = {"shared": parameters, "optimizer": 0 * parameters}.get(rule.count, trace.group)
    groups, place = np.unique(group, return_inverse=True)
    moved = np.array([taking[:, group == one].any(axis=1) for one in groups]).reshape(len(groups), len(own)).T
    if rule.count in {"group", "optimizer"}:
        own = np.cumsum(moved, axis=0)[:, place].astype(float)
    elif rule.count in {"groups", "shared"}:  # one counter, moved by each in turn
        own = np.cumsum(moved.reshape(-1)).reshape(moved.shape)[:, place].astype(float)
    elif rule.count in {"first", "last"}:
        found = own.copy()
        for of in (np.flatnonzero(group == one) for one in groups):
            for t, there in enumerate(of[on] for on in taking[:, of]):
                if there.size:
                    found[t, of] = own[t, there[-1 if rule.count == "last" else 0]]
        own = found
    own = {
        "frozen": np.ones_like(own),
        "micro-batches": own * len(trace.gradients),
        "twice": 2 * own,
        "bfloat16": np.minimum(own, 256),
    }.get(rule.count, own)
    return own + rule.offset


def gradients(rule: Rule, trace: Trace) -> tuple[Floats, Floats]:
    """g_t as the rule's step is given it, and a bound on its error: accumulated, clipped, scaled."""
    micro, several = trace.gradients, len(trace.gradients)
    unit = np.array([ROUNDOFF[one] for one in trace.dtypes])[trace.owner]
    if rule.clip_norm is not None and rule.clip_how == "each micro-batch":
        micro = np.stack([_clipped(rule.but(clip_how="norm"), trace, one)[0] for one in micro])
    elif rule.clip_norm is not None and rule.clip_how == "as they come":
        sums = np.zeros_like(micro[0])
        for one in micro:
            sums = _clipped(rule.but(clip_how="norm"), trace, sums + one / several)[0]
        error = np.abs(sums) * (16 * unit + 2e-6 / max(rule.clip_norm, 1e-6)) * several
        return rule.sign * rule.scale * sums, abs(rule.scale) * error
    pick = {"last": micro[-1], "first": micro[0], "sum": micro.sum(axis=0)}
    g = pick.get(rule.accumulate, micro.mean(axis=0))
    error = _OPERATIONS * unit * np.abs(micro).sum(axis=0) / (several if rule.accumulate == "mean" else 1)
    error = error if several > 1 and rule.accumulate in {"mean", "sum"} else np.zeros_like(g)
    if rule.accumulate == "never cleared":
        error = np.cumsum(np.abs(g), axis=0) * _OPERATIONS * unit
        g = np.cumsum(g, axis=0)
    if rule.missing == "stale":
        for t in range(1, len(g)):
            gone = ~trace.present[t][trace.owner]
            g[t, gone], error[t, gone] = g[t - 1, gone], error[t - 1, gone]
    if rule.clip_norm is not None and rule.clip_how != "each micro-batch":
        g, factor = _clipped(rule, trace, g)
        # some add 1e-6 to the norm
        error = error * factor + np.abs(g) * (16 * unit + 2e-6 * factor / max(rule.clip_norm, 1e-6))
    return rule.sign * rule.scale * g, abs(rule.scale) * error


def acts(rule: Rule, trace: Trace) -> npt.NDArray[np.bool_]:
    """Return the steps at which the claimed clipping changes gradients."""
    return (_clipped(rule, trace, trace.gradients.mean(axis=0))[1] != 1).any(axis=1)


def _clipped(rule: Rule, trace: Trace, g: Floats) -> tuple[Floats, Floats]:
    limit = float(rule.clip_norm or 0)
    if rule.clip_how == "value":
        return np.clip(g, -limit, limit), np.ones_like(g)
    square = np.where(np.isfinite(g), g, 0.0) ** 2
    if rule.clip_how in {"each parameter", "each group"}:
        place = trace.owner if rule.clip_how == "each parameter" else (trace.group - trace.group.min())[trace.owner]
        norm = np.sqrt(np.stack([np.bincount(place, row) for row in square]))[:, place]
    elif rule.clip_how == "largest":
        norm = np.broadcast_to(np.sqrt(square.max(axis=1, initial=0.0))[:, None], g.shape)
    else:
        norm = np.broadcast_to(np.sqrt(square.sum(axis=1))[:, None], g.shape)
    ratio = limit / (norm + 1e-6)
    factor = {"always": ratio, "upside down": np.maximum(1.0, ratio), "inverse": np.maximum(1.0, 1 / ratio)}.get(
        rule.clip_how, np.minimum(1.0, ratio)
    )
    return g * factor, np.abs(factor)


def replay(rule: Rule, trace: Trace) -> Replay:
    """Carry the rule out along the trace."""
    with np.errstate(all="ignore"):
        return _Run(rule, trace).replay()


class _Run:
    """One replay: the state m, v, buffer, each with its error bound, and one method for each part of a step."""

    def __init__(self, rule: Rule, trace: Trace) -> None:
        self.rule, self.trace = rule, trace
        n, of = len(trace.owner), trace.owner
        self.taking = active(rule, trace)
        self.count = counts(rule, trace, self.taking)
        self.g, self.g_error = gradients(rule, trace)
        self.sequences = {name: getattr(rule, name)[:, of] for name in SEQUENCES}
        state = [rule.state_dtype or ("float64" if one == "float64" else "float32") for one in trace.dtypes]
        wide = ["float64" if one == "float64" else "float32" for one in trace.dtypes]
        kept, full = (np.array([ROUNDOFF[one] for one in kinds])[of] for kinds in (state, wide))
        self.unit_m, self.unit_v = (kept if name in rule.narrow else full for name in "mv")
        self.unit = kept if rule.narrow == "mv" else full
        self.least = np.array([SMALLEST[one] for one in state])[of]
        self.weight_unit = np.array([ROUNDOFF[one] for one in trace.dtypes])[of]
        self.weight_least = np.array([SMALLEST[one] for one in trace.dtypes])[of]
        self.reset()
        self.n = n

    def reset(self) -> None:
        """Begin with no moments."""
        n = len(self.trace.owner)
        self.m, self.v, self.top, self.mean, self.ball = np.zeros((5, 2, n))  # each beside its error
        self.v[0] = self.rule.initial_v
        self.product, self.powers = np.ones(n), [np.ones(n), np.ones(n)]
        self.begun = np.zeros(n, dtype=bool)

    def replay(self) -> Replay:
        """Every step in turn."""
        trace, rows = self.trace, [[], [], [], []]
        for t in range(trace.steps):
            if t == trace.resumed:
                self._resume()
            for row, value in zip(rows, self._step(t), strict=True):
                row.append(value)
        fixed, slope, error, write = (np.array(row).reshape(trace.steps, self.n) for row in rows)
        return Replay(fixed, slope, error, write, self.sequences["lr"], trace.weights[1:])

    def _resume(self) -> None:
        lost, count = self.rule.resume, self.count
        kept_m, kept_v = (self.m, self.ball), (self.v, self.top, self.mean)
        product, begun, powers, at = self.product, self.begun, self.powers, self.trace.resumed or 0
        if self.rule.exchanged is not None:
            one, other = (np.flatnonzero(self.trace.owner == p) for p in self.rule.exchanged)
            place = np.arange(self.n)
            place[one], place[other] = other, one
            kept_m, kept_v = (tuple(value[:, place] for value in kept) for kept in (kept_m, kept_v))
            begun, (p, q) = begun[place], self.rule.exchanged
            change = self.count[at - 1, q] - self.count[at - 1, p]
            self.count = self.count.copy()
            self.count[at:, p] += change
            self.count[at:, q] -= change
        self.reset()
        if "m" not in lost:
            self.m, self.ball = kept_m
            self.begun = begun
        if "v" not in lost:
            self.v, self.top, self.mean = kept_v
        if "count" in lost:
            self.count = count.copy()
            self.count[at:] -= count[at - 1]
        else:
            self.product, self.powers = product, powers

    def _step(self, t: int) -> tuple[Floats, Floats, Floats, Floats]:
        rule, of = self.rule, self.trace.owner
        x, on = self.trace.weights[t], self.taking[t][of]
        x = self.trace.loaded if t == self.trace.resumed and self.trace.loaded is not None else x
        lr, b1, b2, eps, decay, momentum = (self.sequences[name][t] for name in SEQUENCES)
        g, dg = self.g[t], self.g_error[t]
        on = on & (g != 0) if rule.missing == "zeros wait" else on
        g, dg = np.where(on, g, 0.0), np.where(on, dg, 0.0)
        if rule.decay_form in {"coupled", "both"}:
            g, dg = (
                g + decay * x,
                dg + (2 * self.unit + 2 * self.weight_unit) * np.abs(decay * x) + self.unit * np.abs(g),
            )
        inside = rule.rate_in_momentum and bool(rule.momentum.any())
        if rule.family == "sgd":
            b1 = momentum
            g, dg = (lr * g, lr * dg) if inside else (g, dg)
        count = self.count[t][of]
        moves = on | ((rule.missing == "moments only") & self.begun)
        before = self.v
        self._moments(moves, g, dg, b1, b2, decay * x if rule.decay_form == "in momentum" else 0.0)
        direction, error = self._direction(t, g, dg, b1, b2, eps, count, before, moves)
        if rule.clip_update is not None:
            direction, error = self._clip_update(direction, error)
        direction, error = self._heavy_ball(on, direction, error, lr, momentum)
        still = ~on
        if rule.missing in {"decay only", "decay once begun"}:
            idle = still & (self.begun | (rule.missing == "decay only"))
            direction, error, still = np.where(idle, 0.0, direction), np.where(idle, 0.0, error), still & ~idle
        pace, fixed, beside = 1 / (1 + (count - 1) * rule.rate_decay), x, 0.0
        slope, error = pace * direction, pace * error
        if inside:
            fixed, beside, slope, error = x - slope, error, np.zeros_like(x), np.zeros_like(x)
        pull, gone = self._decayed(slope, x, lr, decay, b1, b2, count)
        fixed, slope, beside = fixed - gone, slope + pull, beside + 4 * _SCALAR * np.abs(gone + lr * pull)
        moved = fixed - lr * slope
        write = 3 * self.weight_unit * (np.abs(x) + np.abs(moved)) + beside + self.weight_least
        slope, error = np.where(still, 0.0, slope), np.where(still, 0.0, error)
        return np.where(still, x, fixed), slope, error, np.where(still, 0.0, write)

    def _moments(
        self, on: npt.NDArray[np.bool_], g: Floats, dg: Floats, b1: Floats, b2: Floats, pull: Floats | float
    ) -> None:
        rule, unit = self.rule, self.unit
        first, second = (
            np.ones_like(b1) if kind in {"heavy", "plain", "sum"} else 1 - b
            for kind, b in ((rule.first_moment, b1), (rule.second_moment, b2))
        )
        if rule.family == "sgd":
            first = np.where(self.begun, 1 - rule.dampening, 1.0)
        keep2 = np.ones_like(b2) if rule.second_moment == "sum" else b2
        (old_m, old_dm), (old_v, old_dv) = self.m, self.v
        into = first * (g + pull)
        m = b1 * old_m + into
        dm = b1 * old_dm + first * dg + _OPERATIONS * self.unit_m * (np.abs(b1 * old_m) + np.abs(into))
        dm = dm + 4 * _SCALAR * np.abs(g) + 2 * self.least
        base, dbase = (m, dm) if rule.second_moment == "of momentum" else (g, dg)
        square, dsquare = base * base, 2 * np.abs(base) * dbase + dbase * dbase
        if rule.second_moment in {"absolute", "absolute, no root"}:
            square, dsquare = np.abs(base), dbase
        if rule.second_moment == "of the tensor":
            square, dsquare = (self._mean(one) for one in (square, dsquare))
        if rule.second_moment == "first":
            second, keep2 = np.where(self.begun, second, 1.0), np.where(self.begun, keep2, 0.0)
        v = keep2 * old_v + second * square
        dv = keep2 * old_dv + second * dsquare + _OPERATIONS * self.unit_v * v + 4 * _SCALAR * (square + old_v)
        v = np.maximum(old_v, v) if rule.maximum == "kept" else v
        self.m, self.v = np.where(on, (m, dm), self.m), np.where(on, (v, dv + 2 * self.least), self.v)
        if rule.centered:
            mean, dmean = b2 * self.mean + (1 - b2) * np.array((g, dg))
            dmean = dmean + _OPERATIONS * unit * (np.abs(b2 * self.mean[0]) + np.abs(g))
            self.mean = np.where(on, (mean, dmean), self.mean)
        self.begun = self.begun | on

    def _direction(
        self,
        t: int,
        g: Floats,
        dg: Floats,
        b1: Floats,
        b2: Floats,
        eps: Floats,
        count: Floats,
        before: Floats,
        on: npt.NDArray[np.bool_],
    ) -> tuple[Floats, Floats]:
        """Return (A m + B g) / (sqrt(C v + R) + E) without the rate, and a bound on its error."""
        rule = self.rule
        if rule.family == "sgd":
            m, dm = np.where(b1 != 0, self.m, (g, dg))
            if rule.nesterov:
                m, dm = np.where(b1 != 0, (g + b1 * m, dg + b1 * dm), (m, dm))
            return m, dm + _OPERATIONS * self.unit * np.abs(m)
        at = np.ones_like(count) if rule.correction == "once" else count
        corrects1 = rule.family == "adam" and rule.correction not in {"none", "second"}
        corrects2 = rule.family in {"adam", "nadam"} and rule.correction not in {"none", "first"}
        one, two = (
            1 - power if corrects else np.ones_like(b1)
            for power, corrects in zip(self._powers(at, b1, b2, on), (corrects1, corrects2), strict=True)
        )
        if rule.correction == "multiplied":
            one, two = 1 / one, 1 / two
        # 1 - beta^t in float32 is off by about 2^-24 of 1.
        loose1, loose2 = (
            2 * _SCALAR * (2 + at * b**at) / np.abs(c) if corrects else np.zeros_like(b)
            for b, c, corrects in ((b1, one, corrects1), (b2, two, corrects2))
        )
        v, dv = before if rule.second_moment == "delayed" else self.v
        if rule.maximum in {"uncorrected", "corrected"}:
            if rule.maximum == "corrected":
                v, dv, two = v / two, dv / two, np.ones_like(two)
            v, dv = self.top = np.where(on, np.maximum(self.top, (v, dv)), self.top)
        if rule.centered:
            mean, dmean = self.mean
            v, dv = np.maximum(v - mean**2, 0), dv + 2 * np.abs(mean) * dmean + dmean**2
        two = two * two if rule.correction == "not rooted" else two
        scale = np.sqrt(two) if rule.eps_place == "hat" else np.ones_like(two)  # multiplies the step instead
        v, dv = (v, dv) if rule.eps_place == "hat" else (v / two, dv / two + loose2 * v / two)
        root, low, high = self._roots(v, dv, eps)
        numerator, error = self._numerator(t, g, dg, b1, count, one, on)
        numerator, error = numerator * scale, error * scale
        quotient = numerator / root
        most = (np.abs(numerator) + error) / low - np.abs(quotient)
        least = np.abs(quotient) - np.maximum(np.abs(numerator) - error, 0) / high
        nothing = (numerator == 0) & (error <= 8 * self.least)  # 0 / 0: a coordinate that never had a gradient
        quotient = np.where(nothing & (root == 0), 0.0, quotient)
        loose = loose1 + loose2 + 8 * (self.unit + _SCALAR)
        error = np.maximum(most, least) + loose * np.abs(quotient)
        return quotient, np.where(nothing & (low <= 0), 0.0, error)

    def _powers(self, at: Floats, b1: Floats, b2: Floats, on: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """beta^t of both moments, or the products of the betas that were, where betas move."""
        if self.rule.correction == "product":
            self.powers = [np.where(on, power * b, power) for power, b in zip(self.powers, (b1, b2), strict=True)]
            return self.powers[0], self.powers[1]
        return (b2**at, b1**at) if self.rule.correction == "swapped" else (b1**at, b2**at)

    def _roots(self, v: Floats, dv: Floats, eps: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the divisor, and between which numbers it may lie."""
        inside = {"root": eps, "root squared": eps * eps}.get(self.rule.eps_place)
        shape = (lambda u: u) if self.rule.second_moment in {"no root", "absolute, no root"} else np.sqrt
        loose = 8 * (self.unit + _SCALAR)
        around = (v, np.maximum(v - dv, 0), v + dv)
        if self.rule.eps_place == "at least":
            ends = [np.maximum(shape(one), eps) for one in around]
        else:
            ends = [shape(one + inside) if inside is not None else shape(one) + eps for one in around]
        return ends[0], ends[1] * (1 - loose), ends[2] * (1 + loose)

    def _numerator(
        self, t: int, g: Floats, dg: Floats, b1: Floats, count: Floats, one: Floats, on: npt.NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        rule = self.rule
        if rule.family in {"rmsprop", "adagrad"} or rule.first_moment == "none":
            return g, dg
        a, b = 1 / one, np.zeros_like(one)
        if rule.look_ahead is not None:
            a, b = (each[t][self.trace.owner] for each in rule.look_ahead)
        if rule.family == "nadam":
            now, later = (b1 * (1 - 0.5 * 0.96 ** (at * rule.momentum_decay)) for at in (count, count + 1))
            self.product = np.where(on, self.product * now, self.product)
            a, b = later / (1 - self.product * later), (1 - now) / (1 - self.product)
        elif rule.nesterov:
            a, b = b1 / (1 - b1 ** (count + (rule.looks == "next"))), (1 - b1) / (1 - b1**count)
        if rule.correction == "none" and rule.nesterov:
            a, b = b1, 1 - b1
        m, dm = self.m
        numerator = a * m + b * g
        error = np.abs(a) * dm + np.abs(b) * dg + _OPERATIONS * self.unit * (np.abs(a * m) + np.abs(b * g))
        # the products of NAdam are float32 in some implementations
        return numerator, error + (16 * _SCALAR / (1 - b1)) * np.abs(numerator) * (rule.family == "nadam")

    def _mean(self, values: Floats) -> Floats:
        """Return the mean over each tensor: coordinates that are not watched are 0."""
        total = np.bincount(self.trace.owner, values, len(self.trace.names))
        return (total / np.maximum(self.trace.numel, 1))[self.trace.owner]

    def _clip_update(self, d: Floats, error: Floats) -> tuple[Floats, Floats]:
        size = np.sqrt(self._mean(d * d))
        slack = np.sqrt(np.bincount(self.trace.owner, error * error, len(self.trace.names)))[self.trace.owner]
        ratio = np.maximum(size / float(self.rule.clip_update or 1), 1e-300)
        how = {"upside down": 1 / np.minimum(1.0, ratio), "inverse": np.maximum(1.0, ratio)}
        factor = how.get(self.rule.clip_update_how, 1 / np.maximum(1.0, ratio))
        return d * factor, error * factor + np.abs(d * factor) * (1e-5 + slack / np.maximum(size, 1e-300))

    def _heavy_ball(
        self, on: npt.NDArray[np.bool_], d: Floats, error: Floats, lr: Floats, momentum: Floats
    ) -> tuple[Floats, Floats]:
        rule = self.rule
        if rule.family != "rmsprop" or not rule.momentum.any():
            return d, error
        d, error = (lr * d, lr * error) if rule.rate_in_momentum else (d, error)
        ball, slack = momentum * self.ball + (d, error)
        slack = slack + _OPERATIONS * self.unit * (np.abs(self.ball[0]) + np.abs(d))
        self.ball = np.where(on, (ball, slack), self.ball)
        return self.ball[0], self.ball[1]

    def _decayed(
        self, slope: Floats, x: Floats, lr: Floats, decay: Floats, b1: Floats, b2: Floats, count: Floats
    ) -> tuple[Floats | float, Floats | float]:
        """Return the decay beside the step: the part that lr multiplies, and the rest."""
        form, pull = self.rule.decay_form, decay * x
        if form in {"absolute", "first rate", "growing"}:
            first, one = self.sequences["lr"][0], np.ones_like(x)
            return 0.0, pull * {"absolute": one, "growing": -one, "first rate": first}[form]
        if form == "corrected":
            return pull * np.sqrt(1 - b2**count) / (1 - b1**count), 0.0
        of = {"decoupled": pull, "both": pull, "ascending": -pull, "after": decay * (x - lr * slope)}
        return of.get(form, 0.0), 0.0
