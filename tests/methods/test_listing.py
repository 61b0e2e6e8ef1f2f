"""The catalogue as data."""

from dataclasses import FrozenInstanceError

import pytest

from generic_adam import methods
from generic_adam.methods import Algorithm, Method, MethodError, entries


def test_names_are_the_public_functions():
    for entry in entries():
        assert getattr(methods, entry.name) is entry.build
        assert entry.name in methods.__all__
    assert methods.names() == tuple(entry.name for entry in entries())


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_an_entry_builds_with_its_defaults_and_cites(entry):
    assert isinstance(entry.build(), Method | Algorithm)
    assert entry.build() == entry.build(**entry.parameters)
    assert entry.citation.rstrip()[-1].isalnum()
    assert any(year in entry.citation for year in map(str, (1951, *range(2011, 2026))))
    assert 0 < len(entry.summary) < 60
    with pytest.raises(FrozenInstanceError):
        entry.name = "other"


def test_build_takes_the_arguments_of_the_function():
    assert methods.build("power_family", r=0.5, lr=0.1) == methods.power_family(r=0.5, lr=0.1)
    assert methods.build("Certified-Adam") == methods.certified_adam()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: methods.build("adamm"), r"^no method is called 'adamm'; did you mean 'adam'\?$"),
        (lambda: methods.build("RAdam"), r"^radam is not in the catalogue: it starts as momentum alone"),
        (lambda: methods.build("qqq"), r"^no method is called 'qqq'; expected one of adam, generic_adam, "),
        (lambda: methods.build("adam", bta=0.9), r"^adam has no argument 'bta'; did you mean 'beta'\?$"),
        (
            lambda: methods.build("rmsprop", weight_decay=1),
            r"^rmsprop has no argument 'weight_decay'; expected one of lr, theta$",
        ),
    ],
)
def test_a_misspelling_is_met_with_the_closest_name(call, message):
    with pytest.raises(MethodError, match=message):
        call()


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ("adma", "adam"),
        ("aadm", "adam"),
        ("amda", "adam"),
        ("admaw", "adamw"),
        ("adam-w", "adamw"),
        ("nadma", "nadam"),
        ("sdg", "sgd"),
        ("amsgard", "amsgrad"),
        ("adpot", "adopt"),
        ("rmsporp", "rmsprop"),
        ("rms prop", "rmsprop"),
        ("adaem", "adaema"),
    ],
)
def test_swapped_letters_come_before_longer_names(slip, name):
    with pytest.raises(MethodError, match=f"did you mean '{name}'"):
        methods.build(slip)
