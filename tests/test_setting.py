"""The facts of a problem and a run: what is read, what is refused, and that provenance is never lost or made up."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import generic_adam as ga
from generic_adam.setting import Fact, SettingError, Source, kinds

VALUES = {
    "smoothness": (1.0, 2.0),
    "gradient_bound": (1.0, (3.0, 4.0)),
    "gradient_norm": (1.0, 2.0),
    "gradient_sup": (1.0, (3.0, 4.0)),
    "variance": (0.5, (0.0, 4.0)),
    "full_batch": (True, False),
    "dimension": (2, 3),
    "gap": (0.0, 1.0),
    "weights_bound": (0.8, 5.0),
    "noise": ("symmetric", None),
    "smooth_samples": (True, False),
    "update_rms": (2.0, 3.0),
    "batches_per_epoch": (390, 12),
    "batch": (32, 64),
    "sampling": ("shuffled", "streaming"),
    "convex": (True, False),
    "loss": ("rl", "gan"),
}


def measured(value):
    return Fact(value, Source.MEASURED, steps=(1, 390))


def test_every_fact_is_tried_here():
    assert set(VALUES) == set(kinds())


@pytest.mark.parametrize(("name", "values"), VALUES.items(), ids=list(VALUES))
def test_a_measured_fact_never_reads_as_given(name, values):
    value, other = values
    beside = {} if name == "dimension" or not isinstance(other, tuple) else {"dimension": 2}
    setting = ga.Setting(**{name: measured(value)}, **beside)
    assert getattr(setting, name) == value
    for one in (setting, replace(setting, **({"gap": 2} if name != "gap" else {"smoothness": 2})), setting.completed()):
        assert one.facts[name].source is Source.MEASURED
        assert "1 to 390" in one.said(name)[0]
    assert ga.Setting.from_dict(json.loads(json.dumps(setting.to_dict()))) == setting
    changed = replace(setting, **{name: other})
    assert name not in changed.facts if other in (None, False) else changed.facts[name].source is Source.GIVEN
    assert getattr(changed, name) == other


def test_an_estimate_has_its_standard_error_and_a_maximum_has_none():
    estimate = Fact(0.25, Source.MEASURED, steps=(100, 200), error=0.015)
    setting = ga.Setting(variance=estimate, weights_bound=measured(0.8))
    assert "standard error 0.015" in setting.said("variance")[0]
    assert "largest" in setting.said("weights_bound")[0]
    assert setting.to_dict()["variance"] == {
        "value": 0.25,
        "source": "measured",
        "steps": [100, 200],
        "error": 0.015,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "measured"},
        {"steps": (1, 2)},
        {"source": "measured", "steps": (0, 2)},
        {"source": "measured", "steps": (3, 2)},
        {"source": "measured", "steps": "12"},
        {"source": "measured", "steps": (1, 2), "error": -1},
        {"source": "derived", "error": 1},
        {"source": "guessed"},
    ],
)
def test_impossible_provenance_is_refused_in_one_line(wrong):
    with pytest.raises(SettingError) as caught:
        Fact(1.0, **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("smoothness", -1),
        ("smoothness", "steep"),
        ("smoothness", float("nan")),
        ("gradient_bound", 0),
        ("gradient_bound", [1, -1]),
        ("gap", float("inf")),
        ("gap", 10**400),
        ("dimension", 1.5),
        ("dimension", True),
        ("dimension", 10**400),
        ("full_batch", 1),
        ("noise", "gaussian"),
        ("batches_per_epoch", 0),
        ("loss", "vae"),
        ("sampling", ["shuffled"]),
    ],
)
def test_impossible_facts_are_refused_in_one_line_that_names_them(name, value):
    beside = {} if name == "dimension" else {"dimension": 2}
    for given_as in (value, measured(value)):
        with pytest.raises(SettingError, match=name) as caught:
            ga.Setting(**{name: given_as}, **beside)
        assert "\n" not in str(caught.value)


def test_one_number_for_each_weight_goes_with_their_number():
    with pytest.raises(SettingError, match="gradient_bound has 3"):
        ga.Setting(gradient_bound=[1, 2, 3], dimension=2)
    assert ga.Setting(gradient_bound=np.array([1, 2]), dimension=2).gradient_bound == (1.0, 2.0)
    assert ga.Setting(gradient_bound=np.float32(2)).gradient_bound == 2.0
    assert ga.Setting(dimension=25.6e6).dimension == 25_600_000


def test_what_is_derived_says_from_what():
    known = ga.Setting(gradient_norm=measured(2), full_batch=True).completed()
    assert (known.gradient_sup, known.gradient_bound, known.variance) == (2.0, 2.0, 0.0)
    assert {known.facts[name].of for name in ("gradient_sup", "gradient_bound")} == {("gradient_norm",)}
    # What rests on a derived fact rests on the measured one.
    assert known.said("gradient_sup", "gradient_bound") == ga.Setting(gradient_norm=measured(2)).said("gradient_norm")
    assert known.completed() == known


def test_derivations_do_not_chain():
    """From a norm follow bounds on the entries; from those no norm that is sqrt(d) larger."""
    norm = ga.Setting(gradient_norm=2, dimension=100).completed()
    assert norm.gradient_norm == 2
    again = replace(norm, gradient_norm=None).completed()
    assert again.gradient_norm is None


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_the_norm_of_bounds_on_the_entries(bounds):
    known = ga.Setting(gradient_sup=bounds, dimension=len(bounds)).completed()
    assert known.gradient_norm == pytest.approx(np.linalg.norm(bounds), rel=1e-12)
    assert known.gradient_norm >= np.linalg.norm(bounds)
    assert known.gradient_bound == known.gradient_sup


def test_what_is_assumed_gives_way_to_what_is_known():
    known = ga.Setting(weights_bound=measured(0.8)).completed(weights_bound=1, gap=1, smoothness=1)
    assert known.weights_bound == 0.8
    assert known.facts["gap"].source is Source.ASSUMED
    assert "assumed" in known.said("gap")[0]


def test_facts_are_saved_and_loaded(tmp_path):
    known = ga.Setting(weights_bound=measured(0.8), gradient_bound=[3, 4], dimension=2, noise="symmetric")
    path = tmp_path / "watch.json"
    known.save(path)
    assert ga.Setting.load(path) == known
    assert [one.name for one in tmp_path.iterdir()] == ["watch.json"]
    path.write_text(json.dumps({"steps": 390, "setting": known.to_dict()}))
    assert ga.Setting.load(str(path)) == known


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        '{"smothness": 1}',
        '{"smoothness": {"value": 1, "from": "me"}}',
        '{"gap": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"setting": 3}',
        '{"gap": {"value": {}}}',
    ],
)
def test_a_damaged_file_is_one_line(tmp_path, text):
    path = tmp_path / "watch.json"
    path.write_text(text)
    with pytest.raises(SettingError) as caught:
        ga.Setting.load(path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_misspelt_fact_offers_the_nearest():
    with pytest.raises(SettingError, match="smoothness"):
        ga.Setting.from_dict({"smothness": 1})


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(SettingError, match=r"none\.json"):
        ga.Setting.load(tmp_path / "none.json")


def test_settings_compare_and_hash_by_what_is_known():
    assert ga.Setting(gap=1) == ga.Setting(gap=1.0)
    assert ga.Setting(gap=1) != ga.Setting(gap=measured(1))
    assert len({ga.Setting(gap=1), ga.Setting(gap=1.0), ga.Setting()}) == 2
    assert repr(ga.Setting(gap=1, convex=True)) == "Setting(gap=1.0, convex=True)"


class TestEarlierNames:
    """`Assumptions` and `Problem` are settings, and warn."""

    def test_they_are_settings(self):
        with pytest.warns(DeprecationWarning, match="Setting"):
            assert ga.Assumptions(weights_bound=2) == ga.Setting(weights_bound=2)
        with pytest.warns(DeprecationWarning, match="weights_bound"):
            problem = ga.Problem(1, [1, 1], 2, 0.5, box=3, variance=0.25)
        assert problem == ga.Setting(
            smoothness=1, gradient_bound=[1, 1], dimension=2, gap=0.5, weights_bound=3, variance=0.25
        )

    def test_a_start_of_the_second_moment_is_no_fact(self):
        with pytest.warns(DeprecationWarning, match="epsilon"), pytest.raises(SettingError, match="initial_v"):
            ga.Problem(1, 1, 1, 1, 1e-4)

    def test_earlier_arguments_of_certify_are_joined(self):
        method = ga.Method("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
        problem = ga.Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
        with pytest.warns(DeprecationWarning, match="setting"):
            found = ga.certify(method, 1000, problem=problem, assume=ga.Setting(weights_bound=2))
        assert found.setting == replace(problem, weights_bound=2)
        assert found.horizon.bound == ga.bound(method, found.setting, 1000)


class TestTheoremsTakeFacts:
    """What theorems make of a setting; they know fields by name."""

    FADING = ga.Algorithm(ga.Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)"), decay="1e-3/t")

    def test_a_measured_fact_is_told_as_measured(self):
        setting = ga.Setting(weights_bound=measured(0.8))
        found = ga.certify(self.FADING, 1000, setting=setting)
        assert found.verdict == "certified"
        assert any("1 to 390" in need for need in found.needs)
        assert any("1 to 390" in need for need in found.horizon.needs)
        assert ga.Certificate.from_dict(json.loads(json.dumps(found.to_dict()))).setting == setting

    def test_a_bound_says_of_what_was_measured(self):
        given = ga.Setting(smoothness=measured(2.0), gradient_bound=1, dimension=10, gap=1)
        needs = ga.bound(ga.methods.certified_adam(), given, 1000).needs
        assert len(needs) == 1
        assert "1 to 390" in needs[0]

    def test_a_missing_fact_is_named(self):
        with pytest.raises(SettingError, match="smoothness, gap"):
            ga.bound(ga.methods.adam(), ga.Setting(gradient_norm=1, dimension=10), 100)

    def test_a_bound_on_every_gradient_is_the_trivial_one(self):
        known = ga.Setting(smoothness=1, gradient_bound=10, gradient_norm=1, dimension=4, gap=1)
        assert ga.bound(ga.methods.adam(), known, 100).trivial == 1

    @pytest.mark.parametrize("kind", ["rl", "gan"])
    def test_no_theorem_covers_a_loss_that_changes(self, kind):
        found = ga.certify(ga.methods.certified_adam(), 1000, setting=ga.Setting(loss=kind))
        assert found.verdict == "undecided"
        assert all(not one.covers for one in found)
        assert not found.horizon.useful
        assert not ga.bound(
            ga.methods.certified_adam(),
            ga.Setting(loss=kind, smoothness=1, gradient_bound=1, dimension=1, gap=1),
            steps=1000,
        ).is_valid

    def test_shuffled_epochs_are_outside_but_for_exact_gradients(self):
        x = ga.methods.certified_adam()
        assert ga.certify(x, setting=ga.Setting(sampling="shuffled")).verdict == "undecided"
        assert ga.certify(x, setting=ga.Setting(sampling="shuffled", full_batch=True)).verdict == "certified"
        assert ga.certify(x, setting=ga.Setting(sampling="replacement")).verdict == "certified"
