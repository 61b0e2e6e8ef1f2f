"""From the sums of a window of steps to the numbers of its record: the worst tensor, means, ratios of sums."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMOOTHED = 8
"""The steps over which RMS_t is averaged; a record knows as many steps of the window before."""

NUMBERS = ("lr", "alpha", "beta", "theta", "decay", "scale", "corrected", "largest", "averaged")
"""The numbers of a group at a step: its learning rate; alpha_t, beta_t, theta_t; the share that the decay takes off;
what makes m/(sqrt(v) + e) the ratio of the corrected moments; 1 - prod theta; the largest |m|/sqrt(v) that any
gradients give; theta_t where v_t is the average of v_{t-1} and g_t^2 with it, else nan."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The tensors that are watched.

    Attributes:
        names: what they are called.
        groups: the index of the parameter group of each.
        counts: how many coordinates are looked at.
        numels: how many there are.
        started: the root mean square of their first weights; 0 of a tensor that starts at 0.
    """

    names: Sequence[str]
    groups: NDArray[np.intp]
    counts: Array
    numels: Array
    started: Array

    @property
    def scale(self) -> Array:
        """How many coordinates each one that is looked at stands for."""
        return self.numels / self.counts

    @property
    def judged(self) -> NDArray[np.bool_]:
        """The tensors that say something alone: not those of a few numbers where there are larger ones."""
        return self.numels >= min(16, self.numels.max(initial=0))


@dataclass(frozen=True, eq=False)
class Steps:
    """Sums over the coordinates of each tensor, at consecutive steps.

    Attributes:
        steps: t.
        sums: by the name of the column, [steps, tensors].
        numbers: by the names of `NUMBERS`, [steps, tensors].
        known: the first so many are of the window before.
    """

    steps: NDArray[np.intp]
    sums: dict[str, Array]
    numbers: dict[str, Array]
    known: int = 0

    def after(self, earlier: Steps | None) -> Steps:
        """Return these steps behind the last ones of the window before."""
        if earlier is None:
            return self

        def joined(before: dict[str, Array], now: dict[str, Array]) -> dict[str, Array]:
            return {name: np.concatenate([before[name][-SMOOTHED:], values]) for name, values in now.items()}

        last = earlier.steps[-SMOOTHED:]
        sums, numbers = joined(earlier.sums, self.sums), joined(earlier.numbers, self.numbers)
        return Steps(np.concatenate([last, self.steps]), sums, numbers, len(last))

    def total(self, name: str, rows: Rows) -> Array:
        """Return the sum over all coordinates at each step."""
        return np.nansum(self.sums[name] * rows.scale, axis=1)


def of_steps(s: Steps, rows: Rows) -> dict[str, Any]:
    """Return the numbers of a record that come from every step."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # all-nan rows: a tensor that had no part
        found = _stale(s, rows) | _sizes(s, rows) | _directions(s, rows) | _tampered(s, rows)
    last = {name: values[-1] for name, values in s.numbers.items()}
    largest = int(np.argmax(np.nan_to_num(last["alpha"])))
    for name in ("lr", "alpha", "beta", "theta"):
        found[name] = float(last[name][largest])
    found["decay_rate"] = float(np.max(last["decay"]))
    squares = s.total("square", rows)[s.known :]
    size, error = np.sqrt(squares.mean()), squares.std() / np.sqrt(len(squares))
    found |= {"gradient": float(size), "gradient_error": float(error / (2 * size)) if size else 0.0}
    return found | {"dimension": int(rows.numels.sum())}


def _worst(values: Array, s: Steps, rows: Rows) -> tuple[float, int, str]:
    """Return the largest of [steps, tensors], its step and its tensor; nan, 0 and "" where there is none."""
    inside = np.where(np.isnan(values), -np.inf, values)[s.known :]
    if not inside.size or not inside.max() > -np.inf:
        return math.nan, 0, ""
    step, row = divmod(int(np.argmax(inside)), inside.shape[1])
    return float(inside[step, row]), int(s.steps[s.known + step]), rows.names[row]


def _stale(s: Steps, rows: Rows) -> dict[str, Any]:
    """RMS_t and the update size in the same steps, each the mean of eight, of the worst tensor."""
    corrected = s.numbers["corrected"]
    size = np.sqrt(corrected * s.sums["ratio"] / rows.counts)
    update = s.numbers["scale"] * np.sqrt(s.sums["update"] / rows.counts)
    means, updates = _moving(size), _moving(update)
    value, step, name = _worst(means, s, rows)
    if not name:
        return {}
    at, row = int(np.flatnonzero(s.steps == step)[-1]), list(rows.names).index(name)
    return {"stale": value, "stale_step": step, "stale_tensor": name, "stale_update": float(updates[at, row])}


def _moving(values: Array, before: float = math.nan) -> Array:
    """Return the means of up to eight steps up to each; `before` the first there are steps with this value."""
    padded = np.concatenate([np.full((SMOOTHED - 1, values.shape[1]), before), values])
    return np.nanmean(np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED, axis=0), axis=-1)


def _sizes(s: Steps, rows: Rows) -> dict[str, Any]:
    size = np.sqrt(s.sums["update"] / rows.counts)
    update = s.numbers["scale"] * size
    excess = size / s.numbers["largest"]
    # A tensor that starts near 0 is measured by the others.
    usual = np.sqrt(np.sum(rows.started**2 * rows.numels) / np.sum(rows.numels))
    started = np.where(rows.judged & (rows.started > 0), np.maximum(rows.started, 0.1 * usual), np.nan)
    # The first steps alone may be long (RMSprop's): what is missing before them counts as nothing.
    reach = _moving(s.numbers["alpha"] * size / started, before=0.0)
    found: dict[str, Any] = {"typical": float(np.nanmedian(update[s.known :]))}
    for name, values in {"update": update, "excess": excess, "reach": reach}.items():
        found[name], found[f"{name}_step"], found[f"{name}_tensor"] = _worst(values, s, rows)
    return found


def _tampered(s: Steps, rows: Rows) -> dict[str, Any]:
    """How far the second moment is from the average of itself and the new squares, relative to it, at every step."""
    v, theta = s.sums["second"], s.numbers["averaged"][1:]
    stated = theta * v[:-1] + (1 - theta) * s.sums["square"][1:]
    size = np.maximum(v[1:], stated)
    off = np.where(size > 1e-30 * rows.counts, np.abs(v[1:] - stated) / size, np.nan)
    value, step, name = _worst(np.concatenate([np.full_like(v[:1], np.nan), off]), s, rows)
    return {"tampered": value, "tampered_step": step, "tampered_tensor": name}


def _directions(s: Steps, rows: Rows) -> dict[str, Any]:
    """Ratios of sums over the window: what falls freely, the edge, agreement, overshoot."""
    k, beta = s.known, s.numbers["beta"]
    here = ~np.isnan(s.sums["falling"][k:])
    falling = np.nansum(s.sums["falling"][k:] * rows.scale) / max(1.0, float((here * rows.numels).sum()))
    # m_{t-1} = (m_t - (1 - beta) g_t)/beta
    g2, gm, m2 = s.sums["square"], s.sums["agreement"], s.sums["momentum"]
    with_old = (gm - (1 - beta) * g2) / beta
    old2 = (m2 - 2 * (1 - beta) * gm + (1 - beta) ** 2 * g2) / beta**2
    dot, old, new = (np.nansum(one * rows.scale, axis=1)[k:] for one in (with_old, old2, g2))
    agreement = float(np.nanmean(dot / np.sqrt(old * new)))
    # A tensor without a gradient, or with one that is 0 throughout, learns nothing.
    silent = np.nansum(g2[k:], axis=0) == 0
    found = {"falling": float(falling), "agreement": agreement}
    found["dead"] = float((rows.numels * silent).sum() / rows.numels.sum())
    if len(s.steps) > 1:
        first = max(k, 1)
        after, before = s.total("overshoot", rows)[first:], s.total("before", rows)[first:]
        length, bend = s.total("update", rows)[first - 1 : -1], s.total("curved", rows)[first - 1 : -1]
        found["overshoot"] = float(np.nanmean(-after / np.sqrt(length * s.total("square", rows)[first:])))
        limit = float(np.nanmean((2 + 2 * beta) / (1 - beta)))
        whole = float(np.nansum(bend))
        # x moves by -alpha u, so that g turns by -alpha H u
        found["edge"] = float(np.nansum(before - after)) / whole / limit if whole > 0 else math.nan
    return found


def of_losses(losses: Sequence[float]) -> dict[str, Any]:
    """Return the numbers of a record that come from the losses of its steps."""
    values = np.asarray(losses, dtype=np.float64)
    good = values[np.isfinite(values)]
    if not len(good):
        return {"loss_bad": len(values)}
    return {
        "loss": float(good.mean()),
        "loss_low": float(good.min()),
        "loss_high": float(good.max()),
        "loss_error": float(good.std()) / math.sqrt(len(good)),
        "loss_bad": len(values) - len(good),
    }


def of_norms(norms: Sequence[float], limits: Sequence[float]) -> dict[str, Any]:
    """Return the numbers of a record that come from the norms before clipping."""
    before, limit = np.asarray(norms, dtype=np.float64), np.asarray(limits, dtype=np.float64)
    good = np.isfinite(before)
    if not good.any():
        return {}
    before, limit = before[good], limit[good]
    return {
        "norm": float(before.mean()),
        "norm_high": float(before.max()),
        "mass_before": float(before.sum()),
        "mass_after": float(np.minimum(before, limit).sum()),
        "clipped": int((before > limit).sum()),
    }


def of_comparison(
    sums: dict[str, Array], rows: Rows, replays: NDArray[np.bool_], rounding: Array, falling: float
) -> dict[str, Any]:
    """Return the numbers of a record that come from the comparison of one step with the stated one.

    The share in free fall, `falling` of all coordinates, becomes that of the coordinates with a second moment.
    """
    with np.errstate(all="ignore"):
        shares = {
            "eps": sums["eps"] / sums["used"],
            "tiny": sums["tiny"] / rows.counts,
            "lost": sums["unmoved"] / sums["driven"],
            "wrong": np.where(replays, np.maximum(0.0, _off(sums) - rounding), np.nan),
            "decay": np.where(rows.judged, np.sqrt(sums["decayed"] / sums["stepped"]), np.nan),
        }
        found: dict[str, Any] = {}
        along = sums["along"] / sums["stated"]
        square = float(np.nansum(sums["square"] * rows.scale))
        if square > 0 and "pulled" in sums:  # Optax' decay in the gradient is not told apart from the gradient
            found["pull"] = math.sqrt(float(np.nansum(sums["pulled"] * rows.scale)) / square)
        driven = float((sums["driven"] * rows.scale).sum())
        live = sums["live"] * rows.scale
        if live.sum() > 0:
            found["falling"] = min(1.0, falling * float(rows.numels.sum() / live.sum()))
        used = float((sums["used"] * rows.scale).sum())
        if used > 0:
            found["eps_share"] = float(np.nansum(sums["eps"] * rows.scale)) / used
        for name, values in shares.items():
            usable = np.where(np.isfinite(values), values, -np.inf)
            worst = int(np.argmax(usable))
            if usable[worst] > -np.inf:
                found["eps_worst" if name == "eps" else name] = float(usable[worst])
                found[f"{name}_tensor"] = rows.names[worst]
                if name == "wrong":
                    found["wrong_ratio"] = float(along[worst])
        found["tiny"] = float((sums["tiny"] * rows.scale).sum() / rows.numels.sum())
        found["decay"] = _weighted_median(shares["decay"], rows.numels)
        if driven > 0:
            found["lost"] = float((sums["unmoved"] * rows.scale).sum()) / driven
    return found


def _weighted_median(values: Array, sizes: Array) -> float:
    """Return the value that half of the weights are in tensors with less than; nan where there is none."""
    there = np.flatnonzero(np.isfinite(values))
    order = there[np.argsort(values[there])]
    reached = np.cumsum(sizes[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)]) if len(order) else math.nan


def _off(sums: dict[str, Array]) -> Array:
    """Return how far a step, m_t or v_t is from the stated one, whichever is furthest, relative to it."""
    pairs = (("off", "stated"), ("off_m", "first"), ("off_v", "fourth"))
    return np.sqrt(np.fmax.reduce([sums[off] / sums[whole] for off, whole in pairs]))
