"""The instruments inside Optax: the steps stay, the numbers are those of torch's Watch, causes are named."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402

from generic_adam.errors import OptimizerError  # noqa: E402
from generic_adam.optax import generic_adam  # noqa: E402
from generic_adam.watch import Watch  # noqa: E402
from generic_adam.watch.optax import Reader, watched  # noqa: E402

SCALES = {"a": np.geomspace(1e-2, 10, 12).reshape(3, 4).astype(np.float32), "b": np.ones(5, np.float32)}


def start():
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=scale.shape).astype(np.float32) for name, scale in SCALES.items()}


def noise(t):
    rng = np.random.default_rng(t)
    return {name: 0.1 * rng.normal(size=scale.shape).astype(np.float32) for name, scale in SCALES.items()}


def run(solver, steps, every=10, faults=None):
    """Train on a quadratic with noise; return the reader and the parameters."""
    params = {name: jnp.asarray(x) for name, x in start().items()}
    state, reader = solver.init(params), Reader(solver, params)
    update = jax.jit(solver.update)
    for t in range(1, steps + 1):
        grads = {name: jnp.asarray(SCALES[name] * x + noise(t)[name]) for name, x in params.items()}
        grads = faults(t, grads) if faults else grads
        loss = sum(float((SCALES[name] * np.asarray(x) ** 2).sum()) / 2 for name, x in params.items())
        updates, state = update(grads, state, params, value=loss)
        params = optax.apply_updates(params, updates)
        if t % every == 0:
            reader.take(state, params)
    return reader, params


def of_torch(steps, every=10, **options):
    params = {name: torch.nn.Parameter(torch.from_numpy(x.copy())) for name, x in start().items()}
    optimizer = torch.optim.AdamW(params.values(), **options)
    watch = Watch(optimizer, every=every)
    for t in range(1, steps + 1):
        loss = sum(float((SCALES[name] * x.detach().numpy() ** 2).sum()) / 2 for name, x in params.items())
        for name, x in params.items():
            x.grad = torch.from_numpy(SCALES[name] * x.detach().numpy() + noise(t)[name])
        watch.clip_grad_norm_(1.0)
        optimizer.step()
        watch.loss(loss)
    return watch


def test_the_numbers_are_those_of_torch_s_watch():
    solver = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.01, b2=0.99, weight_decay=0.1))
    reader, _ = run(watched(solver, every=10), 60)
    watch = of_torch(60, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    names = "step first alpha beta theta decay_rate loss loss_low stale update typical "
    names += "falling edge overshoot agreement reach eps_share lost decay stale_update excess dimension stale_step"
    for ours, theirs in zip(reader.records, watch.records, strict=True):
        for name in names.split():
            expected = pytest.approx(getattr(theirs, name), rel=2e-3, abs=1e-6, nan_ok=True)
            if not (ours.first == 1 and name in {"overshoot", "edge", "agreement"}):  # which the first step has none of
                assert getattr(ours, name) == expected, (ours.step, name)
        assert ours.wrong < 1e-3
    for name in ("mass_before", "mass_after", "clipped"):
        ours, theirs = (sum(getattr(one, name) for one in records) for records in (reader.records, watch.records))
        assert ours == pytest.approx(theirs, rel=1e-3)
    assert watch.diagnose().healthy == reader.diagnose().healthy
    assert reader.setting().gradient_norm == pytest.approx(watch.setting().gradient_norm, rel=1e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optax.adam(1e-2),
        lambda: optax.adamw(optax.cosine_decay_schedule(1e-2, 100), weight_decay=0.1),
        lambda: optax.rmsprop(1e-2, decay=0.9),
        lambda: generic_adam("0.01/sqrt(t)", 0.9, "1 - 1/(t+1)"),
        lambda: optax.chain(optax.clip(0.5), optax.add_decayed_weights(0.1), optax.adam(1e-2)),
        lambda: optax.adam(lambda count: 0.01 / (1 + count)),
    ],
)
def test_the_steps_stay_and_are_the_stated_ones(make):
    reader, params = run(watched(make(), every=10), 40)
    _, bare = run_bare(make(), 40)
    for name in params:
        np.testing.assert_allclose(params[name], bare[name], rtol=2e-5, atol=1e-7)
    assert not any(record.wrong > 1e-3 for record in reader.records)  # nan where a function cannot be traced
    assert [record.step for record in reader.records] == [10, 20, 30, 40]


def run_bare(solver, steps):
    params = {name: jnp.asarray(x) for name, x in start().items()}
    state, update = solver.init(params), jax.jit(solver.update)
    for t in range(1, steps + 1):
        grads = {name: jnp.asarray(SCALES[name] * x + noise(t)[name]) for name, x in params.items()}
        updates, state = update(grads, state, params)
        params = optax.apply_updates(params, updates)
    return state, params


def test_causes_are_named():
    too_large = run(watched(optax.adam(1e-3, eps=10.0)), 50, every=25)[0].diagnose()
    assert [one.cause for one in too_large.findings] == ["eps_too_large"]
    surprised = run(
        watched(optax.adam(3e-2, b2=0.999)),  # long enough for the loss to suffer
        400,
        every=25,
        faults=lambda t, grads: {name: g * (1.0 if t < 350 else 50.0) for name, g in grads.items()},
    )[0].diagnose()
    found = {one.cause: one for one in surprised.findings}
    assert 340 <= found["stale_second_moment"].since <= 370


def test_a_step_that_is_not_the_stated_one_is_seen():
    def twice(updates, state, params=None):
        updates, state = honest.update(updates, state, params)
        return jax.tree.map(lambda u: 2 * u, updates), state

    honest = optax.adam(1e-2)
    twice.__qualname__, twice.__module__ = honest.update.__qualname__, honest.update.__module__
    solver = watched(honest, every=10)
    reader, _ = run(solver, 20)
    assert reader.diagnose().healthy
    with pytest.raises(OptimizerError):
        watched(optax.GradientTransformation(honest.init, twice))


def test_fewer_looks_than_steps_keep_the_last():
    solver = watched(optax.adam(1e-2), every=10)
    reader, _ = run(solver, 60, every=30)
    assert [(record.first, record.step) for record in reader.records] == [(21, 30), (51, 60)]
    thorough, _ = run(watched(optax.adam(1e-2), every=30), 60, every=30)
    assert thorough.records[1].update >= reader.records[1].update * (1 - 1e-6)


@pytest.mark.parametrize("solver", [optax.sgd(0.1, 0.9), optax.amsgrad(1e-3), optax.nadam(1e-3)])
def test_what_cannot_be_watched_is_one_line(solver):
    with pytest.raises(OptimizerError, match="watched"):
        watched(solver)


def test_bad_use_is_one_line():
    solver, x = watched(optax.adam(1e-3)), {"w": jnp.ones(3)}
    with pytest.raises(OptimizerError, match="params"):
        solver.update(x, solver.init(x))
    with pytest.raises(OptimizerError, match="watched"):
        Reader(optax.adam(1e-3), x)
    with pytest.raises(OptimizerError, match="complex"):
        solver.init({"w": jnp.ones(3, complex)})
    masked = watched(optax.adam(1e-3))
    assert masked.init(x).ring.shape == (25, 25, 1)
