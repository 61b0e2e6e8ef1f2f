"""The equivalence proposition: Generic Adam and Weighted AdaEMA are one algorithm, for any sequences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from generic_adam.methods import Method, adam
from generic_adam.reference import generic_adam, weighted_adaema

STEPS = 25
gradients = npst.arrays(np.float64, (STEPS, 2), elements=st.floats(-100, 100, allow_subnormal=False))
thetas = npst.arrays(np.float64, STEPS, elements=st.floats(0.01, 0.9999))
weights = npst.arrays(np.float64, STEPS, elements=st.floats(0.1, 10))
betas = npst.arrays(np.float64, STEPS, elements=st.floats(0, 0.99))
initials = st.floats(0.1, 10)


def sequence(values):
    """The callable of t (one or an array of them) with these values; past the end it stays."""
    return lambda t: values[np.minimum(t, STEPS).astype(int) - 1]


def weights_of(theta, initial):
    """Return w_t = W_0 (1 - theta_t) / prod_{i<=t} theta_i."""
    return initial * (1 - theta) / np.cumprod(theta)


def assert_same(first, second):
    scale = np.maximum(1.0, np.abs(first.points))
    assert np.max(np.abs(first.points - second.points) / scale) < 1e-12
    np.testing.assert_allclose(first.second_moment, second.second_moment, rtol=1e-12)


@given(theta=thetas, beta=betas, g=gradients, epsilon=st.floats(1e-8, 1), initial=initials)
def test_generic_adam_is_weighted_adaema_with_the_weights_of_its_theta(theta, beta, g, epsilon, initial):
    method = Method(0.01, sequence(beta), sequence(theta))
    w = weights_of(theta, initial)
    ours = generic_adam(method, lambda _x, t: g[t - 1], np.zeros(2), STEPS, epsilon)
    theirs = weighted_adaema(
        0.01, sequence(beta), sequence(w), lambda _x, t: g[t - 1], np.zeros(2), STEPS, epsilon, initial
    )
    assert_same(ours, theirs)


@given(w=weights, beta=betas, g=gradients, epsilon=st.floats(1e-8, 1), initial=initials)
def test_weighted_adaema_is_generic_adam_with_the_theta_of_its_weights(w, beta, g, epsilon, initial):
    method = Method.from_weights(0.01, sequence(beta), sequence(w), initial)
    ours = generic_adam(method, lambda _x, t: g[t - 1], np.zeros(2), STEPS, epsilon)
    theirs = weighted_adaema(
        0.01, sequence(beta), sequence(w), lambda _x, t: g[t - 1], np.zeros(2), STEPS, epsilon, initial
    )
    assert_same(ours, theirs)


@given(theta=thetas, initial=initials)
def test_theta_to_weights_and_back(theta, initial):
    back = Method.from_weights(1, 0, sequence(weights_of(theta, initial)), initial).theta
    np.testing.assert_allclose(back.values(1, STEPS + 1), theta, rtol=1e-12)
    np.testing.assert_allclose((1 - back).values(1, STEPS + 1), 1 - theta, rtol=1e-10)


@given(w=weights, initial=initials)
def test_weights_to_theta_and_back(w, initial):
    theta = Method.from_weights(1, 0, sequence(w), initial).theta
    np.testing.assert_allclose(weights_of(theta.values(1, STEPS + 1), initial), w, rtol=1e-10)


@given(
    lr=st.floats(1e-6, 1),
    beta=st.floats(0, 0.99),
    theta=st.floats(0.01, 0.9999),
    g=npst.arrays(np.float64, (STEPS,), elements=st.floats(0.01, 100)),
)
def test_corrected_adam_is_kingma_and_bas_iteration(lr, beta, theta, g):
    run = generic_adam(adam(lr=lr, beta=beta, theta=theta), lambda _x, t: g[t - 1], 0.0, STEPS, epsilon=0.0)
    x = m = v = 0.0
    for t in range(1, STEPS + 1):
        m = beta * m + (1 - beta) * g[t - 1]
        v = theta * v + (1 - theta) * g[t - 1] ** 2
        x -= lr * (m / (1 - beta**t)) / np.sqrt(v / (1 - theta**t))
        # 1 - theta^t loses digits here, not in the schedule, which is exact
        np.testing.assert_allclose(run.points[t], x, rtol=1e-9)
