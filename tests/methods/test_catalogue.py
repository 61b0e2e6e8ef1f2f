"""Every method of the catalogue against the formulas of the literature, written again with plain floats."""

import math

import numpy as np
import pytest

from generic_adam.methods import (
    Method,
    MethodError,
    adaema,
    adafactor,
    adagrad,
    adam,
    adam_to_adaema,
    adamnc,
    certified_adam,
    entries,
    nosadam,
    nosadam_hh,
    polynomial_weights,
    power_family,
    rmsprop,
    rmsprop_mukkamala_hein,
)

TIMES = (1, 2, 3, 10, 999, 1000, 1001, 9_999, 10_000, 10_001, 100_000)


def theta_of_weights(weight):
    def theta(t):
        sums = 1 + math.fsum(weight(i) for i in range(1, t))
        return sums / (sums + weight(t))

    return theta


FORMULAS = [
    (
        adam(lr=0.01, beta=0.8, theta=0.99),
        lambda t: 0.01 * math.sqrt(1 - 0.99**t) / (1 - 0.8**t),
        lambda t: 0.8,
        lambda t: 0.99,
    ),
    (
        adam(lr="0.01/sqrt(t)", beta=0.8, theta=0.99, bias_correction=False),
        lambda t: 0.01 / math.sqrt(t),
        lambda t: 0.8,
        lambda t: 0.99,
    ),
    (
        certified_adam(lr=0.01, beta=0.8, theta=0.999, bias_correction=False),
        lambda t: 0.01 * min(1, math.sqrt(1000 / t)),
        lambda t: 0.8,
        lambda t: max(0.999, 1 - 1 / t),
    ),
    (
        certified_adam(lr=0.01, theta=0.99, K=400, bias_correction=False),
        lambda t: 0.01 * min(1, math.sqrt(400 / t)),
        lambda t: 0.9,
        lambda t: max(0.99, 1 - 1 / t),
    ),
    (
        adafactor(beta=0.9, r=0.7, K=50).method,
        lambda t: min(50**-0.5, t**-0.5),
        lambda t: 0.9,
        lambda t: 1 - t**-0.7,
    ),
    (rmsprop(lr=0.01, theta=0.95), lambda t: 0.01, lambda t: 0.0, lambda t: 0.95),
    (
        rmsprop_mukkamala_hein(lr=0.01, c=0.7),
        lambda t: 0.01 / math.sqrt(t),
        lambda t: 0.0,
        lambda t: 1 - 0.7 / t,
    ),
    (adagrad(lr=0.1), lambda t: 0.1 / math.sqrt(t + 1), lambda t: 0.0, lambda t: t / (t + 1)),
    (adaema(lr=0.1, beta=0.5), lambda t: 0.1 / math.sqrt(t), lambda t: 0.5, lambda t: 1 - 1 / t),
    (
        adamnc(lr=0.1, beta=0.9, decay=0.99),
        lambda t: 0.1 / math.sqrt(t),
        lambda t: 0.9 * 0.99**t,
        lambda t: 1 - 1 / t,
    ),
    (
        power_family(lr=0.1, beta=0.5, s=0.75, r=0.5, c=0.9, K=3),
        lambda t: 0.1 / t**0.75,
        lambda t: 0.5,
        lambda t: 1 - 0.9 / math.sqrt(max(t, 3)),
    ),
    (
        adam_to_adaema(lr=0.5, theta=0.99, r=0.25, s=0.4),
        lambda t: 0.5 / t**0.4,
        lambda t: 0.9,
        lambda t: 1 - (0.01 + 0.99 * 0.25) / t**0.25,
    ),
    (
        polynomial_weights(lr=0.1, r=0.5),
        lambda t: 0.1 / math.sqrt(t),
        lambda t: 0.9,
        theta_of_weights(math.sqrt),
    ),
    (
        nosadam(lr=0.1, weights="1 + 1/t"),
        lambda t: 0.1 / math.sqrt(t),
        lambda t: 0.9,
        theta_of_weights(lambda i: 1 + 1 / i),
    ),
    (
        nosadam_hh(lr=0.1, r=0.3),
        lambda t: 0.1 / math.sqrt(t),
        lambda t: 0.9,
        theta_of_weights(lambda i: i**-0.3),
    ),
]


@pytest.mark.parametrize(("method", "alpha", "beta", "theta"), FORMULAS)
def test_formula(method, alpha, beta, theta):
    for t in TIMES:
        np.testing.assert_allclose(method.at(t), (alpha(t), beta(t), theta(t)), rtol=1e-12, atol=1e-300)


def test_every_entry_has_a_formula_above():
    built = {entry.name for entry in entries() if isinstance(entry.build(), Method)}
    # adam and certified_adam twice, with and without an option; adafactor is an Algorithm; generic_adam is adam
    assert len(FORMULAS) == len(built) + 2


def test_the_path_from_adam_to_adaema_ends_at_both():
    assert adam_to_adaema(lr=0.1, r=1) == adaema(lr=0.1)
    start = adam_to_adaema(lr=0.1, r=0, theta=0.99)
    assert start.theta == Method(1, 0, 0.99).theta


def test_certified_adam_is_adam_until_one_over_one_minus_theta():
    ours, theirs = certified_adam(bias_correction=False), adam(bias_correction=False)
    assert all(ours.at(t) == theirs.at(t) for t in range(1, 1001))
    assert ours.at(1002) != theirs.at(1002)
    corrected, kingma = certified_adam(), adam()
    for t in (1, 2, 10, 500, 1000):
        np.testing.assert_allclose(corrected.at(t), kingma.at(t), rtol=1e-12)


def test_numpys_single_precision_is_a_number_without_a_warning(recwarn):
    assert adaema(lr=np.float32(0.25)) == adaema(lr=0.25)
    assert not recwarn.list


def test_correction_uses_exact_products_for_scheduled_parameters():
    method = adam(lr=1, beta="0.9/t", theta="1 - 1/(t + 1)")
    betas, thetas = 1.0, 1.0
    for t in range(1, 50):
        betas, thetas = betas * 0.9 / t, thetas * (1 - 1 / (t + 1))
        assert method.alpha(t) == pytest.approx(math.sqrt(1 - thetas) / (1 - betas), rel=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: certified_adam(K=10), r"^K: expected a number >= 1/\(1 - theta\) = 1000, got 10$"),
        (lambda: certified_adam(theta=1), r"^theta: expected a number > 0 and < 1, got 1$"),
        (lambda: adam_to_adaema(r=1.5), r"^r: expected a number >= 0 and <= 1, got 1.5$"),
        (lambda: adam(lr="0.1 *"), r"^lr: column"),
        (lambda: adam(beta=1), r"^beta: expected 0 <= beta_t < 1 at every t, got 1 at t = 1$"),
        (lambda: adaema(lr=0), r"^lr: expected a number > 0, got 0$"),
        (lambda: adaema(lr=math.nan), r"^lr: expected a finite number, got nan$"),
        (lambda: adaema(lr=10**400), r"^lr: expected a finite number, got 1000"),
        (lambda: adaema(lr=True), r"^lr: expected a finite number, got True$"),
        (lambda: adamnc(decay=1.1), r"^decay: expected a number > 0 and <= 1, got 1.1$"),
        (lambda: power_family(c=9), r"^theta: expected 0 <= theta_t < 1 at every t, got -3.5 at t = 1$"),
        (lambda: power_family(K=0), r"^K: expected a number >= 1, got 0$"),
        (lambda: rmsprop_mukkamala_hein(c=1.5), r"^c: expected a number > 0 and <= 1, got 1.5$"),
        (lambda: nosadam(weights="t - 5"), r"^theta: weights must be positive"),
    ],
)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(MethodError, match=message):
        build()
