"""Run by a test in a fresh process with several CPU devices: every way of sharing the work, one result."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

from generic_adam.optax import generic_adam

DEVICES = 4
STEPS = 20
SOLVER = generic_adam("0.1/sqrt(t)", 0.9, "theta_from_weights(t^0.5)", bias_correction=True)
DATA = np.random.default_rng(0).standard_normal((2 * DEVICES, 8)).astype(np.float32)
START = np.linspace(-1, 1, 8, dtype=np.float32)


def gradient(x: jax.Array, rows: jax.Array) -> jax.Array:
    return jax.grad(lambda x: jnp.mean((rows @ x - 1) ** 2))(x)


def step(x: jax.Array, state: optax.OptState, g: jax.Array) -> tuple[jax.Array, optax.OptState]:
    updates, state = SOLVER.update(g, state, x)
    return optax.apply_updates(x, updates), state


def on_one_device() -> np.ndarray:
    x, state = jnp.asarray(START), SOLVER.init(jnp.asarray(START))
    one = jax.jit(lambda x, state: step(x, state, gradient(x, jnp.asarray(DATA))))
    for _ in range(STEPS):
        x, state = one(x, state)
    return np.asarray(x)


def by_pmap() -> np.ndarray:
    """Each device has its rows; the gradients are averaged."""
    copies = jax.tree.map(lambda a: jnp.stack([a] * DEVICES), (jnp.asarray(START), SOLVER.init(jnp.asarray(START))))
    one = jax.pmap(lambda x, state, rows: step(x, state, jax.lax.pmean(gradient(x, rows), "devices")), "devices")
    rows = DATA.reshape(DEVICES, 2, 8)
    for _ in range(STEPS):
        copies = one(*copies, rows)
    return np.asarray(copies[0][0])


def by_shard_map() -> np.ndarray:
    """The rows are shared out, the parameters and the state are on every device."""
    mesh = jax.make_mesh((DEVICES,), ("devices",), axis_types=(jax.sharding.AxisType.Auto,))
    everywhere, shared = PartitionSpec(), PartitionSpec("devices")

    def one(x: jax.Array, state: optax.OptState, rows: jax.Array) -> tuple[jax.Array, optax.OptState]:
        # The gradient of the local mean, averaged over the devices by the transpose of the broadcast x.
        local = jax.grad(lambda x: jax.lax.pmean(jnp.mean((rows @ x - 1) ** 2), "devices"))(x)
        return step(x, state, local)

    mapped = jax.jit(
        jax.shard_map(one, mesh=mesh, in_specs=(everywhere, everywhere, shared), out_specs=(everywhere, everywhere))
    )
    x, state = jnp.asarray(START), SOLVER.init(jnp.asarray(START))
    for _ in range(STEPS):
        x, state = mapped(x, state, jnp.asarray(DATA))
    return np.asarray(x)


def by_sharded_parameters() -> np.ndarray:
    """The parameters, and with them m and v, are spread over the devices."""
    mesh = jax.make_mesh((DEVICES,), ("devices",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = NamedSharding(mesh, PartitionSpec("devices"))
    x = jax.device_put(jnp.asarray(START), spread)
    state = SOLVER.init(x)
    assert state.mu.sharding == spread
    assert state.nu.sharding == spread
    one = jax.jit(lambda x, state: step(x, state, gradient(x, jnp.asarray(DATA))))
    for _ in range(STEPS):
        x, state = one(x, state)
    assert state.nu.sharding.is_equivalent_to(spread, 1)
    return np.asarray(x)


def by_explicit_sharding() -> np.ndarray:
    """As above, with the sharding a part of every array's type: the updates have to have that of the parameters."""
    mesh = jax.make_mesh((DEVICES,), ("devices",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(jnp.asarray(START), PartitionSpec("devices"))
        state, rows = SOLVER.init(x), jnp.asarray(DATA)

        def one(x: jax.Array, state: optax.OptState) -> tuple[jax.Array, optax.OptState]:
            everywhere = jax.sharding.reshard(x, PartitionSpec())
            return step(x, state, jax.sharding.reshard(gradient(everywhere, rows), PartitionSpec("devices")))

        one = jax.jit(one)
        for _ in range(STEPS):
            x, state = one(x, state)
    assert jax.typeof(x).sharding.spec == jax.typeof(state.nu).sharding.spec == PartitionSpec("devices")
    return np.asarray(x)


if __name__ == "__main__":
    assert jax.device_count() == DEVICES, jax.devices()
    expected = on_one_device()
    assert np.abs(expected - START).max() > 0.1
    for way in (by_pmap, by_shard_map, by_sharded_parameters, by_explicit_sharding):
        np.testing.assert_allclose(way(), expected, rtol=1e-4, atol=1e-5, err_msg=way.__name__)
        print(way.__name__, "agrees")
