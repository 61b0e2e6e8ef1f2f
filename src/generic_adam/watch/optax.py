r"""The instruments inside an Optax transformation: pure functions of its state, read outside of `jax.jit`.

`watched` wraps a whole optimizer. At each step it sums up, over evenly spread coordinates of each leaf, what
`generic_adam.watch.instruments` sums up in torch, and keeps the sums of the last steps in its state; `Reader` makes
records and a diagnosis of them. What needs more than a step (the distance covered, the curvature by a probe, the noise
that Adam's scaling skews) is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from generic_adam.adapters.transformation import read_transformation
from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.watch import summary
from generic_adam.watch.diagnosis import Diagnosis, diagnose, setting
from generic_adam.watch.records import Record

with from_extra("optax"):
    import jax
    import jax.numpy as jnp
    import optax

    from generic_adam.optax import as_optax_schedule

_WIDTH, _TINY = 512, 1e-30
_NAMES = "ratio update falling square overshoot before curved agreement momentum second "  # at every step
_NAMES += "eps used live tiny unmoved driven off stated off_m first off_v fourth "  # compared at the last one
_NAMES += "stepped decayed along"
COLUMNS = tuple(_NAMES.split())
"""The sums over a leaf's coordinates, by the names of `generic_adam.watch.instruments`."""


class WatchState(NamedTuple):
    """The state that is kept between steps.

    Attributes:
        inner: the state of the optimizer.
        count: the steps made.
        old: g, m / (sqrt(v) + e), m, v and the weights after the last step, at the coordinates that are looked at: the
            state before a step is not looked at, so that it can be changed in place.
        ring: the sums of the last steps, [steps, columns, leaves].
        scalars: the loss, the norm of the gradient and the threshold it was clipped to, nan where not known.
    """

    inner: Any
    count: jax.Array
    old: tuple[jax.Array, ...]
    ring: jax.Array
    scalars: jax.Array


def watched(solver: optax.GradientTransformation, every: int = 25) -> optax.GradientTransformationExtraArgs:
    """Return an optimizer that takes the same steps and carries the instruments in its state.

    Args:
        solver: a whole optimizer, as `optax.adamw(1e-3)` or `generic_adam(...)`, with v_t for every parameter. Its
            update is called with the parameters, and with `value=loss` where the loss is to be looked at.
        every: the steps that are kept until they are read.

    Raises:
        OptimizerError: what the optimizer does cannot be read, or is none of m_t / (sqrt(v_t) + e_t).
    """
    algorithm, inner = read_transformation(solver), optax.with_extra_args_support(solver)
    reason = algorithm.beyond("initial_v", "eps", "eps_under_root", "decay", "clipping", "l2")
    if reason is not None:
        raise OptimizerError(f"{algorithm.source} cannot be watched: {reason}")
    method, clipping = algorithm.method, algorithm.clipping
    threshold, by_norm = (math.inf, False) if clipping is None else (clipping.threshold, clipping.kind == "norm")
    schedules = [_traceable(one) for one in (method.alpha, method.beta, method.theta, algorithm.eps, algorithm.decay)]

    def init(params: optax.Params) -> WatchState:
        state, rows = inner.init(params), len(jax.tree.leaves(params))
        if any(map(jnp.iscomplexobj, jax.tree.leaves(params))):
            raise OptimizerError("complex parameters cannot be watched; expected real ones")
        if rows == 0 or len(jax.tree.leaves(_moment(state, "nu"))) != rows:
            raise OptimizerError(f"{algorithm.source} cannot be watched: expected a v_t for every parameter")
        firsts = zip(_picked(_moment(state, "nu")), _picked(params), strict=True)
        old = tuple(jnp.stack([*[jnp.zeros_like(v)] * 3, v, x]) for v, x in firsts)
        zeros = jnp.zeros((every, len(COLUMNS), rows)), jnp.full((every, 3), jnp.nan)
        return WatchState(state, jnp.zeros([], jnp.int32), old, *zeros)

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra: Any
    ) -> tuple[optax.Updates, WatchState]:
        if params is None:
            raise OptimizerError("a watched optimizer looks at the parameters; expected update(updates, state, params)")
        made, following = inner.update(updates, state.inner, params, **extra)
        norm, limit = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(updates))), threshold if by_norm else jnp.nan
        mu = _moment(following, "mu")  # none without momentum, where the step is along the gradient
        numbers = [one(state.count) for one in schedules]
        leaves = zip(jax.tree.leaves(params), jax.tree.leaves(made), strict=True)
        kinds = [(leaf.dtype, float(jnp.finfo(one.dtype).eps)) for leaf, one in leaves]
        picked = (_picked(tree) for tree in (updates, made, _moment(following, "nu"), updates if mu is None else mu))
        sums, old = [], []
        for (kind, rounding), raw, step, v, first, own in zip(kinds, *picked, state.old, strict=True):
            _, _, old_m, old_v, x = own
            g = raw * jnp.minimum(1, threshold / norm) if by_norm else jnp.clip(raw, -threshold, threshold)
            g = g + float(algorithm.l2) * x
            m, old_m = (g, g) if mu is None else (first, old_m)
            after = (x.astype(kind) + step.astype(kind)).astype(x.dtype)  # rounded as the weights are
            seen = {"g": g, "m": m, "v": v, "old_m": old_m, "old_v": old_v, "x": x, "step": step, "after": after}
            found, u = _sums(seen, own[:2], numbers, rounding, under_root=algorithm.eps_under_root)
            sums.append(found)
            old.append(jnp.stack([g, u, m, v, after]))
        loss = jnp.asarray(extra.get("value", jnp.nan), jnp.float32)
        place = state.count % every
        return made, WatchState(
            following,
            jnp.asarray(optax.safe_increment(state.count)),
            tuple(old),
            state.ring.at[place].set(jnp.stack(sums, axis=1)),
            state.scalars.at[place].set(jnp.stack([loss, norm, jnp.asarray(limit)])),
        )

    made = optax.GradientTransformationExtraArgs(init, update)
    vars(made.update)["algorithm"] = algorithm
    return made


def _traceable(schedule: Any) -> Any:
    """Return a schedule as a function of the count; nan where it is a function that JAX cannot trace."""
    found = as_optax_schedule(schedule)
    try:
        jax.eval_shape(found, jax.ShapeDtypeStruct((), jnp.int32))
    except ScheduleError:
        return lambda _count: jnp.nan
    return found


def _moment(state: Any, name: str) -> Any:
    try:
        return optax.tree_utils.tree_get(state, name)
    except KeyError as error:
        raise OptimizerError(f"there are several {name} in the state; expected one optimizer") from error


def _picked(tree: Any) -> list[jax.Array]:
    """Return evenly spread coordinates of each leaf."""
    found = []
    for leaf in jax.tree.leaves(tree):
        count = min(leaf.size, _WIDTH)
        picked = jnp.ravel(leaf)[:: max(1, leaf.size // max(1, count))][:count]
        found.append(picked.astype(jnp.result_type(float)))
    return found


def _sums(
    seen: dict[str, jax.Array], old: jax.Array, numbers: Sequence[jax.Array], rounding: float, *, under_root: bool
) -> tuple[jax.Array, jax.Array]:
    """Return the columns of one step of a leaf, and m / (sqrt(v) + e)."""
    g, m, v, x = (seen[name] for name in ("g", "m", "v", "x"))
    (old_g, old_u), (alpha, beta, theta, added, decay) = old, numbers
    root = jnp.sqrt(v + added**2) if under_root else jnp.sqrt(v) + added
    u = m / jnp.maximum(root, _TINY)
    moved, stated = seen["step"], -alpha * u - decay * x
    off = jnp.maximum(jnp.abs(moved - stated) - 4 * rounding * jnp.abs(stated), 0.0)
    live, driven = v > 0, moved != 0
    columns = {
        "ratio": g * g / jnp.maximum(v, jnp.maximum(added**2, _TINY)),
        "update": u * u,
        "falling": g * g < 0.1 * v,
        "square": g * g,
        "overshoot": g * old_u,
        "before": old_g * old_u,
        "curved": u * m,
        "agreement": g * m,
        "momentum": m * m,
        "second": v,
        "eps": jnp.where(live & (g != 0), added / root, 0.0),
        "used": live & (g != 0),
        "live": live,
        "tiny": live & (v < 1e-12 * jnp.max(v, initial=0.0)) & (jnp.abs(u) > 0.1),
        "unmoved": driven & (seen["after"] == x),
        "driven": driven,
        "off": off**2,
        "stated": stated**2,
        "along": moved * stated,
        "off_m": (m - beta * seen["old_m"] - (1 - beta) * g) ** 2,
        "first": m * m + g * g,
        "off_v": (v - theta * seen["old_v"] - (1 - theta) * g * g) ** 2,
        "fourth": v * v,
        "stepped": (alpha * u) ** 2,
        "decayed": (decay * x) ** 2,
    }
    return jnp.stack([columns[name].astype(u.dtype).sum() for name in COLUMNS]), u


class Reader:
    """Makes records of the states of a watched optimizer, and a diagnosis of these.

    Args:
        solver: what `watched` returned.
        params: the parameters before the first step.

    Attributes:
        records: a record for each state that was read.

    Examples:
        >>> solver, x = watched(optax.adam(0.1), every=10), {"w": jnp.ones(3)}
        >>> state, reader = solver.init(x), Reader(solver, x)
        >>> for _ in range(20):
        ...     loss, g = jax.value_and_grad(lambda x: jnp.sum(x["w"] ** 2))(x)
        ...     updates, state = solver.update(g, state, x, value=loss)
        ...     x = optax.apply_updates(x, updates)
        ...     if state.count % 10 == 0:
        ...         reader.take(state, x)
        >>> [record.step for record in reader.records], reader.diagnose().healthy
        ([10, 20], True)
    """

    def __init__(self, solver: optax.GradientTransformation, params: optax.Params) -> None:
        algorithm = vars(solver.update).get("algorithm")
        if not isinstance(algorithm, Algorithm):
            raise OptimizerError(f"expected what `watched` returned, got {type(solver).__name__}")
        self.records: list[Record] = []
        self._algorithm = algorithm
        leaves = jax.tree_util.tree_leaves_with_path(params)
        numels = np.array([leaf.size for _, leaf in leaves], dtype=float)
        started = np.array([float(jnp.sqrt(jnp.mean(jnp.square(leaf)))) if leaf.size else 0.0 for _, leaf in leaves])
        names = [jax.tree_util.keystr(path) or "the parameter" for path, _ in leaves]
        counts = np.minimum(numels, _WIDTH)
        self._rows = summary.Rows(names, np.zeros(len(leaves), dtype=int), np.maximum(counts, 1), numels, started)
        self._done, self._masses = 0, (0.0, 0.0, 0.0)
        self._tail: summary.Steps | None = None

    def take(self, state: WatchState, params: optax.Params | None = None) -> None:
        """Take in the steps since the last state, as many of them as the state keeps.

        Args:
            state: the state after a step; of several devices, one of them.
            params: the parameters after it, for the largest weight; without them it is not known.
        """
        count, every = int(state.count), state.ring.shape[0]
        if count <= self._done:
            return
        first = max(self._done, count - every) + 1
        places = (np.arange(first, count + 1) - 1) % every
        ring = np.asarray(state.ring, dtype=float)[places]
        losses, norms, limits = np.asarray(state.scalars, dtype=float)[places].T.tolist()
        rows, sums = self._rows, {name: ring[:, index] for index, name in enumerate(COLUMNS)}
        steps = summary.Steps(np.arange(first, count + 1), sums, self._numbers(first, count))
        self._tail = steps = steps.after(self._tail if first == self._done + 1 else None)
        found: dict[str, Any] = summary.of_steps(steps, rows) | {"step": count, "first": first}
        last = {name: values[-1] for name, values in sums.items()}
        stated = np.isfinite(last["stated"]) & (count > 1)
        found |= summary.of_comparison(last, rows, stated, np.full(len(rows.names), 1e-3), found["falling"])
        if params is not None:
            found["weights"] = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(params) if leaf.size)
        found |= summary.of_losses(losses) if not all(map(math.isnan, losses)) else {}
        found |= summary.of_norms(norms, [math.inf if math.isnan(one) else one for one in limits])
        self.records.append(Record(**found))
        self._done = count

    def _numbers(self, first: int, last: int) -> dict[str, Any]:
        """Return the columns of `summary.NUMBERS` at the steps first, ..., last, the same for all leaves."""
        x = self._algorithm
        named = {"alpha": x.method.alpha, "beta": x.method.beta, "theta": x.method.theta, "decay": x.decay}
        begun = self._done + 1
        at = {name: one.values(begun, last + 1) for name, one in named.items()}
        rows = []
        for beta, theta in zip(at["beta"], at["theta"], strict=True):
            of_m, of_v, spread = self._masses
            spread = (beta**2 / theta * spread if beta else 0.0) + (1 - beta) ** 2 / (1 - theta)
            self._masses = (1 - beta * (1 - of_m), 1 - theta * (1 - of_v), spread)
            of_m, of_v, spread = self._masses
            rows.append((math.sqrt(of_v) / of_m if of_m else 1.0, of_v, math.sqrt(spread)))
        at |= dict(zip(("scale", "corrected", "largest"), np.array(rows).T, strict=True))
        at["lr"] = at["alpha"]
        at["averaged"] = at["theta"]
        leaves = len(self._rows.names)
        return {name: np.repeat(values[first - begun :, None], leaves, axis=1) for name, values in at.items()}

    def diagnose(self) -> Diagnosis:
        """Return what is wrong so far, the worst first."""
        return diagnose(self.records)

    def setting(self) -> Setting:
        """Return what was measured as facts, with the steps that they are from."""
        return setting(self.records)
