"""The reference algorithms against hand computation and the textbook forms of their special cases."""

import math

import numpy as np
import pytest

from generic_adam.methods import Method, adaema, adagrad, adam
from generic_adam.reference import generic_adam, weighted_adaema


def random_gradients(steps, shape=(3,), seed=0):
    values = np.random.default_rng(seed).normal(size=(steps, *shape))
    return lambda _x, t: values[t - 1]


def test_two_steps_by_hand():
    method = Method(alpha="1/t", beta=0.5, theta=0.75)
    gradients = [2.0, -1.0]
    run = generic_adam(method, lambda _x, t: gradients[t - 1], start=10.0, steps=2, epsilon=4.0)
    v1 = 0.75 * 4 + 0.25 * 4
    m1 = 0.5 * 2
    x2 = 10 - m1 / math.sqrt(v1)
    v2 = 0.75 * v1 + 0.25 * 1
    m2 = 0.5 * m1 - 0.5 * 1
    x3 = x2 - 0.5 * m2 / math.sqrt(v2)
    np.testing.assert_allclose(run.points, [10, x2, x3], rtol=1e-15)
    np.testing.assert_allclose(run.momentum, [m1, m2], rtol=1e-15)
    np.testing.assert_allclose(run.second_moment, [v1, v2], rtol=1e-15)


def test_two_steps_of_weighted_adaema_by_hand():
    run = weighted_adaema(
        1, 0, "t", lambda _x, t: float(t), start=[0.0], steps=2, epsilon=0.5
    )  # W = 2, 4; V = 0.5 + 1 = 1.5, 1.5 + 2*4 = 9.5
    x2 = -1 / math.sqrt(1.5 / 2)
    x3 = x2 - 2 / math.sqrt(9.5 / 4)
    np.testing.assert_allclose(run.points[:, 0], [0, x2, x3], rtol=1e-15)


def test_the_gradient_sees_the_point_and_the_time():
    seen = []

    def gradient(x, t):
        seen.append((x.copy(), t))
        return 2 * x

    run = generic_adam(adagrad(), gradient, start=[1.0, -2.0], steps=5)
    assert [t for _, t in seen] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal([x for x, _ in seen], run.points[:-1])
    assert run.points.shape == (6, 2)


def test_adagrad_is_the_textbook_form():
    lr, epsilon, steps = 0.3, 1e-3, 200
    gradient = random_gradients(steps)
    run = generic_adam(adagrad(lr=lr), gradient, np.zeros(3), steps, epsilon)
    x, total = np.zeros(3), np.full(3, epsilon)
    for t in range(1, steps + 1):
        g = gradient(x, t)
        total += g**2
        x = x - lr * g / np.sqrt(total)
        np.testing.assert_allclose(run.points[t], x, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("beta", "theta"), [(0.9, 0.999), (0.5, 0.9), (0.0, 0.99)])
def test_corrected_adam_is_kingma_and_bas_iteration(beta, theta):
    lr, steps = 0.01, 500
    gradient = random_gradients(steps, seed=1)
    # Kingma and Ba start from v_0 = 0 and, with their epsilon at 0, divide by the corrected root alone.
    run = generic_adam(adam(lr=lr, beta=beta, theta=theta), gradient, np.ones(3), steps, epsilon=0.0)
    x, m, v = np.ones(3), np.zeros(3), np.zeros(3)
    for t in range(1, steps + 1):
        g = gradient(x, t)
        m = beta * m + (1 - beta) * g
        v = theta * v + (1 - theta) * g**2
        x = x - lr * (m / (1 - beta**t)) / np.sqrt(v / (1 - theta**t))
        np.testing.assert_allclose(run.points[t], x, rtol=1e-11, atol=1e-12)


def test_scheduled_correction_gives_ten_where_the_power_of_the_last_theta_does_not():
    # theta_t = 1 - 1/t, g = 1, beta = 0, lr = 0.01: every corrected step is 0.01, so 1,000 steps make -10.
    method = adam(lr=0.01, beta=0, theta="1 - 1/t")
    run = generic_adam(method, lambda x, _t: np.ones_like(x), 0.0, 1000, epsilon=0.0)
    assert float(run.points[-1]) == pytest.approx(-10, abs=1e-10)


def test_a_coordinate_with_no_gradient_yet_stays_where_it_is():
    # AdaEMA has theta_1 = 0: v_1 = g_1^2 = 0 and m_1 = 0
    gradients = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    run = generic_adam(adaema(), lambda _x, t: gradients[t - 1], [5.0, 5.0], 3)
    np.testing.assert_array_equal(run.points[:3, 0], 5.0)
    assert run.points[1, 1] < 5.0
    assert run.points[3, 0] < 5.0
    assert np.isfinite(run.points).all()


def test_momentum_over_a_zero_second_moment_is_an_error():
    method = Method(1, 0.5, "0.5 if t < 2 else 0")
    gradients = [1.0, 0.0]
    with pytest.raises(ZeroDivisionError, match="v_t = 0 but m_t is not 0 at t = 2"):
        generic_adam(method, lambda _x, t: gradients[t - 1], 0.0, 2)


def test_projection_keeps_every_point_inside():
    method = Method(10, 0.9, 0.99)
    run = generic_adam(method, random_gradients(50), np.zeros(3), 50, projection=lambda x: np.clip(x, -1, 1))
    assert np.abs(run.points).max() == 1.0
    free = generic_adam(method, random_gradients(50), np.zeros(3), 50)
    assert np.abs(free.points).max() > 1.0


def test_start_is_not_changed():
    start = np.ones(2)
    generic_adam(adam(), lambda x, _t: x, start, 3)
    weighted_adaema(1, 0, 1, lambda x, _t: x, start, 3)
    np.testing.assert_array_equal(start, 1.0)
