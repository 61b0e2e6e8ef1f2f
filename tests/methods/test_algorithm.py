"""Algorithm: a method and how its step is carried out, frozen, with a dictionary that comes back."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from generic_adam import methods
from generic_adam.methods import (
    Algorithm,
    Clipping,
    HeavyBall,
    Method,
    MethodError,
    Nesterov,
    as_algorithm,
    merged,
)
from generic_adam.schedules import parse

PLAIN = Method("0.1/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
RICH = Algorithm(
    PLAIN,
    initial_v=0,
    eps="1e-8*sqrt(1 - 0.999^t)",
    l2=0.01,
    decay="1e-4/sqrt(t)",
    running_maximum=True,
    power=Fraction(1, 8),
    nesterov=Nesterov(parse("1 - 0.5^t"), parse("0.1")),
    heavy_ball=HeavyBall(Fraction(9, 10), rate_inside=True),
    clipping=Clipping(1.0),
    maximize=True,
    outside=("hooks run at every step",),
    label="Padam",
    horizon=1000,
    groups=(0, 2),
    others=(Algorithm(Method(1, 0, 0.5), groups=(1,)),),
)


def test_a_method_alone_means_the_papers_algorithm():
    plain = as_algorithm(PLAIN)
    assert (plain.initial_v, plain.departures) == (1e-8, ())
    assert as_algorithm(RICH) is RICH


@pytest.mark.parametrize(
    "algorithm",
    [Algorithm(PLAIN), RICH, replace(RICH, clipping=Clipping(Fraction(1, 2))), *(e.build() for e in methods.entries())],
)
def test_the_dictionary_is_plain_and_comes_back(algorithm):
    algorithm = as_algorithm(algorithm)
    assert Algorithm.from_dict(json.loads(json.dumps(algorithm.to_dict()))) == algorithm


def test_departures_name_everything_that_the_paper_has_not():
    assert len(RICH.departures) == 10
    assert replace(RICH, outside=(), clipping=None).departures == RICH.departures[:-2]


def test_climbing_is_no_departure_but_nothing_runs_it_unasked():
    # The theorems speak of -f then; whoever runs it has to climb too.
    climbing = Algorithm(PLAIN, maximize=True)
    assert climbing.departures == ()
    assert climbing != Algorithm(PLAIN)
    assert "climbs" in climbing.beyond()
    assert climbing.beyond("maximize") is None


def test_eps_is_added_to_the_power_that_there_is():
    assert Algorithm(PLAIN, eps=1, power=0.25).departures[0] == "eps_t = 1 is added to v_t^(1/4)"


def test_a_factor_is_the_decimal_that_was_written():
    assert HeavyBall(0.9) == HeavyBall(Fraction(9, 10))


def test_equal_groups_are_one_part_and_decay_apart_is_a_note():
    decayed, bare = Algorithm(PLAIN, decay=1e-4, groups=(0,)), Algorithm(PLAIN, groups=(1,))
    both = merged([decayed, bare, replace(decayed, groups=(2,))])
    assert both.groups == (0, 1, 2)
    assert both.decay == decayed.decay
    assert both.notes == ("group 1 has no decay",)
    assert len(both.parts) == 1
    apart = merged([decayed, Algorithm(Method(1, 0, 0.5), groups=(1,))])
    assert [part.groups for part in apart.parts] == [(0,), (1,)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Algorithm("adam"), r"^method: expected a Method, got str$"),
        (lambda: Algorithm(PLAIN, initial_v=-1), r"^initial_v: expected a number >= 0, got -1$"),
        (lambda: Algorithm(PLAIN, eps="-1/t"), r"^eps: expected a number >= 0 at every t, got -1 at t = 1$"),
        (lambda: Algorithm(PLAIN, power=0.75), r"^power: expected a number > 0 and <= 0.5, got 0.75$"),
        (lambda: Algorithm(PLAIN, nesterov=0.9), r"^nesterov: expected a Nesterov, got float$"),
        (lambda: Algorithm(PLAIN, outside="maximize"), r"^outside: expected a list, got str$"),
        (lambda: Algorithm(PLAIN, running_maximum="no"), r"^running_maximum: expected a bool, got str$"),
        (lambda: HeavyBall("x"), r"^factor: expected a finite number, got 'x'$"),
        (lambda: Clipping(1.0, "nrom"), r"^clipping: expected a kind of norm, value, update, got 'nrom'$"),
        (lambda: Algorithm.from_dict({"alpha": "1"}), r"^no algorithm that `to_dict` wrote: KeyError: 'beta'$"),
        (
            lambda: Algorithm(PLAIN, horizon=0),
            r"^horizon: expected a whole number of steps from 1 to 10\^15, got 0$",
        ),
        (
            lambda: Algorithm.from_dict({"alpha": "1", "beta": "0", "theta": "0.5", "x": 1}),
            r"^an algorithm has no 'x'",
        ),
    ],
)
def test_bad_values_are_named(build, message):
    with pytest.raises(MethodError, match=message):
        build()


@pytest.mark.parametrize("text", ["1e99999999", "1/0", "x", "9" * 5000])
def test_a_fraction_of_a_file_is_bounded(text):
    for name, value in (("power", text), ("l2", text), ("heavy_ball", {"factor": text, "rate_inside": True})):
        with pytest.raises(MethodError):
            Algorithm.from_dict({"alpha": "0.1", "beta": "0.9", "theta": "0.99", name: value})
