"""Bad sequences are refused with the sequence, the t and the value; good ones that only look bad are not."""

import math

import pytest

from generic_adam.methods import Algorithm, Method, MethodError, build
from generic_adam.theorems.certificate import certify_algorithm

GOOD = {"alpha": 1e-3, "beta": 0.9, "theta": 0.999}


@pytest.mark.parametrize(
    ("sequence", "value", "message"),
    [
        ("alpha", 0, "alpha: expected a finite number > 0 at every t, got 0 at t = 1"),
        ("alpha", -0.1, "alpha: expected a finite number > 0 at every t, got -0.1 at t = 1"),
        ("alpha", math.inf, "alpha: expected a finite number, got inf"),
        ("alpha", "2 - t", "alpha: expected a finite number >= 0 at every t, got -1 at t = 3"),
        ("alpha", "sqrt(10 - t)", "alpha: expected a finite number >= 0 at every t, got nan at t = 11"),
        ("alpha", "1/abs(t - 5)", "alpha: expected a finite number >= 0 at every t, got inf at t = 5"),
        (
            "alpha",
            lambda t: 1 - t / 8,
            "alpha: expected a finite number >= 0 at every t, got -0.125 at t = 9",
        ),
        ("beta", 1, "beta: expected 0 <= beta_t < 1 at every t, got 1 at t = 1"),
        ("beta", "-0.1/t", "beta: expected 0 <= beta_t < 1 at every t, got -0.1 at t = 1"),
        ("beta", "0.9 if t < 3 else 1", "beta: expected 0 <= beta_t < 1 at every t, got 1 at t = 3"),
        ("theta", "1 - 2/t", "theta: expected 0 <= theta_t < 1 at every t, got -1 at t = 1"),
        ("theta", "max(0.9, t/200)", "theta: expected 0 <= theta_t < 1 at every t, got 1 at t = 200"),
        (
            "theta",
            "0.9 if t < 1000000 else 1.5",
            "theta: expected 0 <= theta_t < 1 at every t, got 1.5 at t = ",
        ),
        ("theta", "0.9 +", "theta: column"),
        ("theta", None, "theta: expected a number, a text, a schedule or a callable of t, got NoneType"),
    ],
)
def test_the_message_names_sequence_time_and_value(sequence, value, message):
    with pytest.raises(MethodError) as caught:
        Method(**{**GOOD, sequence: value}).checked()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_method_is_made_without_a_proof_and_refused_where_it_is_used():
    late = {**GOOD, "theta": "0.9 if t < 1000000 else 1.5"}
    made = Method(**late)
    assert not made.theta.known_facts
    for ask in (made.checked, lambda: certify_algorithm(made), lambda: Algorithm.from_dict({**late, "beta": "0.9"})):
        with pytest.raises(MethodError, match=r"^theta: .* at t = 1000000"):
            ask()
    assert Method(**GOOD).checked() == Method(**GOOD)


def test_a_callable_that_raises_is_named():
    with pytest.raises(MethodError, match=r"^beta: the callable .* raised at t = 3: IndexError"):
        Method(1, [0.9, 0.9, 0.9].__getitem__, 0.9)


def test_weights_that_are_not_positive_are_refused():
    with pytest.raises(MethodError, match=r"weights must be positive, got w_t = 0.0 at t = 2"):
        Method.from_weights(1, 0, "2 - t")


@pytest.mark.parametrize(
    ("sequence", "value"),
    [
        ("alpha", "0.99^t"),  # 0.0 in floats from t = 75,000 on, positive all the same
        ("alpha", "1.01^t"),  # inf in floats from t = 72,000 on
        ("alpha", "max(0, 1 - t/1000)"),  # a linear decay to 0
        ("alpha", "(t - 1)/100 if t < 100 else 1"),  # a warm-up from 0
        ("beta", "1 - 1/(t + 1)"),
        ("theta", "1 - 1/t"),  # theta_1 = 0: AdaEMA
        ("theta", 0),
        ("theta", "1 - 0.9^t"),  # rounds to 1 from t = 350 on, and its complement to 0 from t = 7,100 on
        ("theta", "1 - 1e-20"),
        ("theta", lambda t: 1 - 1 / t),
    ],
)
def test_what_only_rounding_or_a_finite_table_makes_look_bad_is_let_through(sequence, value):
    assert str(getattr(Method(**{**GOOD, sequence: value}), sequence))


def test_a_callable_is_asked_for_its_beginning_only():
    asked = []

    def rate(t):
        asked.append(t)
        return 0.1

    Method(rate, 0.9, 0.999)
    assert set(asked) == set(range(1, 17))


@pytest.mark.parametrize("name", ["adam", "certified_adam"])
@pytest.mark.parametrize("value", ["no", 1, None, [True, False]])
def test_a_bias_correction_is_on_or_off(name, value):
    with pytest.raises(MethodError, match=r"^bias_correction is .*, expected True or False$"):
        build(name, bias_correction=value)
