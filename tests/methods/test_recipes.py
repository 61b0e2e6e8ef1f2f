"""Published recipes against their own formulas, written out plainly, and against readings made elsewhere."""

import math

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.methods import Algorithm, MethodError
from generic_adam.methods.recipes import named, recipe, recipe_names, recipes
from generic_adam.theorems.decide import ratio
from generic_adam.theorems.zou2019 import examine_method


def test_vit_on_jft_has_no_clipping():
    """Its table 3 has clipping for ImageNet alone."""
    assert not any("clipped" in one for one in recipe("vit").algorithm.departures)


def cosine(peak, lowest, start, end, t):
    share = min(1.0, max(0.0, (t - start) / (end - start)))
    return lowest + (peak - lowest) * (1 + math.cos(math.pi * share)) / 2


def corrected(rate, beta, theta, t):
    return rate * math.sqrt(-math.expm1(t * math.log(theta))) / -math.expm1(t * math.log(beta))


def bert(t):
    step = t - 1
    return 1e-4 * step / 10_000 if step < 10_000 else max(0.0, 1e-4 * (1 - step / 1_000_000))


def deepseek(t):
    tokens = t * 15_360 * 4_096
    if t < 2_000:
        return 2.2e-4 * t / 2_000
    if tokens < 10e12:
        return 2.2e-4
    return cosine(2.2e-4, 2.2e-5, 10e12, 14.3e12, tokens) if tokens < 14.633e12 else 7.3e-6


def nanogpt(t):
    it = t - 1
    return 6e-4 * (it + 1) / 2_001 if it < 2_000 else cosine(6e-4, 6e-5, 2_000, 600_000, it)


# alpha_t before bias correction, beta, theta (None: 1 - t^-0.8), bias correction
PLAIN = {
    "transformer": (lambda t: 512**-0.5 * min(t**-0.5, t * 4_000**-1.5), 0.9, 0.98, True),
    "bert": (bert, 0.9, 0.999, False),
    "gpt3": (
        lambda t: (
            6e-5 * min(1, t * 3.2e6 / 375e6) if t * 3.2e6 < 375e6 else cosine(6e-5, 6e-6, 375e6, 260e9, t * 3.2e6)
        ),
        0.9,
        0.95,
        True,
    ),
    "llama": (
        lambda t: 3e-4 * t / 2_000 if t < 2_000 else cosine(3e-4, 3e-5, 2_000, 250_000, t),
        0.9,
        0.95,
        True,
    ),
    "palm": (lambda t: 0.01 if t < 10_000 else t**-0.5, 0.9, None, False),
    "t5": (lambda t: max(t, 10_000) ** -0.5, 0.0, None, False),
    "vit": (
        lambda t: min(1, t / 10_000) * (1e-5 + (8e-4 - 1e-5) * (1 - min(1, max(0, (t - 10_000) / 507_822)))),
        0.9,
        0.999,
        True,
    ),
    "stable_diffusion": (
        lambda t: 1e-4 * ((1 - 1e-6) / 10_000 * (t - 1) + 1e-6) if t - 1 < 10_000 else 1e-4,
        0.9,
        0.999,
        True,
    ),
    "bloom": (
        lambda t: 6e-5 * t * 2048 / 183_105 if t * 2048 < 183_105 else cosine(6e-5, 6e-6, 183_105, 2e8, t * 2048),
        0.9,
        0.95,
        True,
    ),
    "deepseek_v3": (deepseek, 0.9, 0.95, True),
    "nanogpt": (nanogpt, 0.9, 0.95, True),
}


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_its_published_formula(name):
    rate, beta, theta, correction = PLAIN[name]
    one = recipe(name)
    around = [1, 2, 3, 89, 90, 91, 117, 118, 119, 1_999, 2_000, 2_001, 2_002, 9_999, 10_000, 10_001, 10_002]
    later = np.unique(np.geomspace(20_000, one.algorithm.horizon, 200).astype(int)).tolist()
    late = [
        81_249,
        81_250,
        81_251,
        158_945,
        158_946,
        227_292,
        227_293,
        232_585,
        232_586,
        one.algorithm.horizon + 5,
    ]
    for t in [*around, *later, *late]:
        alpha, beta_t, theta_t = one.algorithm.method.at(t)
        expected = corrected(rate(t), beta, theta, t) if correction else rate(t)
        assert alpha == pytest.approx(expected, rel=1e-8, abs=1e-18), t
        assert beta_t == beta
        assert theta_t == pytest.approx(1 - t**-0.8 if theta is None else theta, rel=1e-12)


def failing(name):
    return [c.number for c in examine_method(recipe(name).algorithm.method).conditions if c.status == "fails"]


@pytest.mark.parametrize("name", ["palm", "t5"])
def test_growing_theta_misses_condition_2_at_the_first_step_only(name):
    certificate = examine_method(recipe(name).algorithm.method)
    assert [str(c.status) for c in certificate.conditions] == ["holds", "fails", "holds", "holds"]
    assert certificate.conditions[1].witness == 1
    assert str(certificate.ratio_order) == "T^(-2/5)"
    assert certificate.verdict == "not certified"


@pytest.mark.parametrize("name", [n for n in recipe_names() if n not in {"palm", "t5", "bert"}])
def test_constant_theta_misses_condition_4_alone(name):
    assert failing(name) == [4]


def test_bert_starts_at_a_rate_of_0():
    certificate = examine_method(recipe("bert").algorithm.method)
    assert certificate.first_failing.number == 3
    assert certificate.first_failing.witness == 1
    assert certificate.conditions[3].status != "holds"


@pytest.mark.parametrize(
    ("name", "limit"), [("transformer", 2 * math.sqrt(0.02)), ("stable_diffusion", math.sqrt(0.001))]
)
def test_ratio_tends_to_what_was_computed_apart(name, limit):
    condition = examine_method(recipe(name).algorithm.method).conditions[3]
    assert float(condition.witness.removeprefix("ratio -> ")) == pytest.approx(limit, rel=1e-3)
    values = [ratio(recipe(name).algorithm.method, 10**k) for k in (6, 8, 10)]
    errors = [abs(value - limit) for value in values]
    assert errors == sorted(errors, reverse=True)
    assert values[-1] == pytest.approx(limit, rel=1e-3)


def test_palm_ratio_at_powers_of_ten():
    values = [ratio(recipe("palm").algorithm.method, 10**k) for k in (4, 5, 6, 7)]
    assert values == pytest.approx([0.042, 0.034, 0.019, 0.0092], rel=0.02)
    # From t = 10^4 on the terms are t^-1/2 t^-2/5, so the sums differ by an integral.
    sums = [ratio(recipe("palm").algorithm.method, T) * math.sqrt(T) for T in (10**8, 10**12)]
    assert sums[1] - sums[0] == pytest.approx(10 * (1e12**0.1 - 1e8**0.1), rel=1e-6)


def test_the_list_is_complete_and_says_what_it_knows():
    assert set(recipe_names()) == set(PLAIN)
    assert {one.name for one in recipes() if one.evidence == "known"} == {"gpt3", "llama", "vit"}
    for one in recipes():
        assert one.algorithm.departures
        assert one.algorithm.source
        assert one.algorithm.horizon > 50_000


def test_names_are_forgiving_and_errors_helpful():
    assert recipe("Stable-Diffusion") is recipe("stable_diffusion")
    with pytest.raises(MethodError, match="did you mean 'nanogpt'"):
        recipe("nanogtp")
    with pytest.raises(MethodError, match="expected one of transformer, bert"):
        recipe("zzz")


def test_a_name_means_one_thing():
    assert not set(recipe_names()) & set(methods.names())
    for name in recipe_names():
        assert named(name.upper()) == recipe(name).algorithm
    for name in methods.names():
        built = methods.adamw(weight_decay=0) if name == "adam" else methods.build(name)
        assert named(name) == (built if isinstance(built, Algorithm) else Algorithm(built, label=name))
    with pytest.raises(MethodError, match=r"^no method or recipe is called 'nanogtp'; did you mean 'nanogpt'\?$"):
        named("nanogtp")
    with pytest.raises(MethodError, match=r"^radam is not in the catalogue"):
        named("radam")
