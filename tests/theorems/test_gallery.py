"""The gallery says of each recipe what the certificate, the sums and the advice say."""

import pytest

from generic_adam.methods.recipes import recipe, recipe_names
from generic_adam.theorems.certificate import certify
from generic_adam.theorems.gallery import exhibit
from generic_adam.theorems.sums import ratio


@pytest.mark.parametrize("name", recipe_names())
def test_an_exhibit_is_put_together_from_the_theory(name):
    one = exhibit(recipe(name))
    assert one.certificate.verdict == "not certified"
    assert one.ratio == ratio(one.recipe.method, one.recipe.horizon)
    assert one.certificate.horizon is not None
    assert one.certificate.horizon.steps == one.recipe.horizon
    assert one.certificate.horizon.ratios[-1] == pytest.approx((one.recipe.horizon, one.ratio), rel=1e-12)
    if one.nearest is None:
        assert name == "bert"  # a learning rate of 0 at both ends: nothing nearby
    else:
        assert certify(one.nearest.method).verdict == "certified"


def test_the_nearest_change_of_palm_is_its_first_step():
    nearest = exhibit(recipe("palm")).nearest
    assert nearest is not None
    assert (nearest.first_step, nearest.last_step) == (1, 1)
    assert str(nearest.rate) == "T^(-2/5)"


def test_the_transformer_keeps_its_own_steps_until_theta_is_1_minus_1_over_t():
    nearest = exhibit(recipe("transformer")).nearest
    assert nearest is not None
    assert nearest.first_step == 51  # 1/(1 - 0.98) = 50
    assert str(nearest.rate) == "T^(-1/2) log T"


def test_plain_types_come_out():
    import json

    for name in ("bert", "t5"):
        entry = exhibit(recipe(name)).to_dict()
        assert json.loads(json.dumps(entry, allow_nan=False)) == entry
