"""The tree as data: every operation knows every node, and every node has a text that parses back."""

import contextlib
import copy
import importlib
import importlib.util
import itertools
import math
import pickle
import pkgutil
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import generic_adam
from generic_adam.schedules import (
    Add,
    BiasCorrection,
    Constant,
    Divide,
    Function,
    Join,
    Maximum,
    Multiply,
    Opaque,
    Periodic,
    Schedule,
    ScheduleError,
    Subtract,
    Time,
    WeightedTheta,
    join,
    parse,
    sqrt,
    substitute,
    t,
    tree,
)
from generic_adam.schedules.balls import nearest, value
from generic_adam.schedules.enclosure import enclose
from generic_adam.schedules.rounding import filtered
from generic_adam.schedules.tree import NODES, Bounded, Minimum, Negate, Power, WeightShare, rebuild, walk
from tests.schedules.expressions import positive_schedules

ONE_OF_EACH = {
    Constant: Constant(Fraction(-7, 3)),
    Time: t,
    Add: parse("t^2 + sqrt(t)"),
    Subtract: parse("t^2 - sqrt(t)"),
    Multiply: parse("t^2 * sqrt(t)"),
    Divide: parse("sqrt(t) / (t + 1)"),
    Power: parse("(t + 1)^-0.3"),
    Maximum: parse("max(t, 5)"),
    Minimum: parse("min(t, 5)"),
    Negate: parse("-sqrt(t)"),
    Function: parse("log1p(t)"),
    Join: parse("1 if t < 5 else 1/t"),
    Periodic: parse("periodic(1/t, 7)"),
    Bounded: parse("bounded(0.5 + 0.2*sin(t), 0.25, 0.75)"),
    WeightedTheta: parse("theta_from_weights(t^0.5, 3)"),
    WeightShare: parse("1 - theta_from_weights(t^0.5, 1/3)"),
    BiasCorrection: parse("bias_correction(1 - 1/(t + 1))"),
    Opaque: Opaque(abs, "abs"),
}


FACTS = ("pointwise", "continuous", "smooth", "shiftable", "total", "keeps_sign")
HAS_OPTAX = all(importlib.util.find_spec(name) for name in ("jax", "optax"))


def every_table():
    """Every table over nodes that a module of the package has: where it lives does not matter."""
    found = {}
    packages = ("generic_adam.schedules", *(("generic_adam.optax",) if HAS_OPTAX else ()))
    for info in pkgutil.walk_packages(generic_adam.__path__, "generic_adam."):
        if info.name.startswith(packages):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, tree.Table):
                    found[value.name] = value
    return list(found.values())


TABLES = every_table()


def test_the_examples_are_one_of_each():
    assert set(ONE_OF_EACH) == set(NODES)
    assert all(type(node) is kind for kind, node in ONE_OF_EACH.items())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_covers_every_node(table):
    assert not table.missing


@pytest.mark.parametrize("node", ONE_OF_EACH.values(), ids=lambda node: type(node).__name__)
def test_every_node_declares_every_fact(node):
    assert [fact for fact in FACTS if not isinstance(getattr(node, fact), bool)] == []


def test_a_fact_has_no_default():
    assert [fact for fact in FACTS if hasattr(Schedule, fact)] == []


def _over(node, parts):
    """The same type of node over other parts."""
    return type(node)(*(next(parts) if isinstance(one, Schedule) else one for one in node.field_values))


@pytest.mark.parametrize("node", [one for one in ONE_OF_EACH.values() if one.total], ids=str)
def test_a_total_node_is_a_number_wherever_its_parts_are(node):
    for parts in itertools.product(["t - 5", "0*t", "-2", "3.5/t"], repeat=len(node.children)):
        whole = _over(node, map(parse, parts))
        assert all(math.isfinite(nearest(value(whole, step))) for step in (1, 4, 5, 6, 99))


@pytest.mark.parametrize("node", [one for one in ONE_OF_EACH.values() if one.keeps_sign], ids=str)
def test_a_node_that_keeps_the_sign_is_positive_where_its_parts_are(node):
    for parts in itertools.product(["t", "1e-9", "3.5/t"], repeat=len(node.children)):
        whole = _over(node, map(parse, parts))
        assert all(value(whole, step) > 0 for step in (1, 4, 5, 6, 99))


@pytest.mark.parametrize("node", [one for one in ONE_OF_EACH.values() if one.smooth and one.continuous], ids=str)
def test_a_smooth_node_has_no_kink(node):
    # A kink of size k shows as a second difference of about k/h at some step; smooth ones stay bounded.
    h, times = 1e-3, np.arange(2.0, 40.0, 0.1)
    second = node.at(times + h) - 2 * node.at(times) + node.at(times - h)
    assert np.abs(second).max() < 20 * h**2 * np.abs(node.at(times)).max()


def test_no_table_is_overlooked():
    """The tables of the design, Optax' among them; a new node that misses one of these fails above."""
    assert {table.name for table in TABLES} >= {
        "the normal form",
        "the complement 1 - u",
        "single values",
        "blocks of values",
        "growth",
        "text",
        "single values in balls",
        "enclosures",
        "expansions at infinity",
        "values with error bounds",
        *(("JAX",) if HAS_OPTAX else ()),
    }


def test_a_table_without_a_rule_says_so():
    table = tree.Table("the square")
    assert table.missing == set(NODES)
    with pytest.raises(ScheduleError, match="the square: no rule for Time"):
        table[Time]


@pytest.mark.parametrize("node", [node for kind, node in ONE_OF_EACH.items() if kind is not Opaque], ids=str)
def test_every_node_has_a_text_that_parses_back(node):
    assert parse(str(node)) == node
    assert parse(str(1 - node)) == 1 - node
    assert pickle.loads(pickle.dumps(node)) == copy.deepcopy(node) == node


@pytest.mark.parametrize("node", [node for kind, node in ONE_OF_EACH.items() if kind is not Opaque], ids=str)
def test_every_table_says_the_same_of_a_node(node):
    steps = range(1, 9)
    truths = [value(node, step) for step in steps]
    numbers = np.array([nearest(one) for one in truths])
    np.testing.assert_allclose(node.values(1, 9), numbers, rtol=1e-12)
    np.testing.assert_allclose([node(step) for step in steps], numbers, rtol=1e-12)
    found, errors = filtered(node, np.array(steps, dtype=np.float64))
    assert (np.abs(found - numbers) <= errors + 1e-15 * np.abs(numbers)).all()
    range_of = enclose(node, 1, 8).range
    assert all(not one < range_of.low and not one > range_of.high for one in truths)
    growth, late = node.growth, math.log(10**5)
    if growth is not None and growth.sign and not growth.rho.sign_of_log:
        rest = math.log(abs(node(10**5))) - float(growth.power) * late - float(growth.log) * math.log(late)
        sizes = sorted(map(abs, (growth.low, growth.high)))
        assert math.log(sizes[0]) - 0.1 <= rest <= math.log(sizes[1]) + 0.1
    if HAS_OPTAX:
        traced = importlib.import_module("generic_adam.optax").as_optax_schedule(node)
        np.testing.assert_allclose([float(traced(step - 1)) for step in steps], numbers, rtol=1e-4)


@given(
    st.fractions(),
    st.sampled_from([1, 10**-15, Fraction(1, 10**310), Fraction(1, 3 * 10**320), Fraction(1, 10**600)]),
    st.sampled_from([0, 5]),
)
@settings(max_examples=300, deadline=None)
def test_every_number_has_a_text_that_parses_back(numerator, scale, offset):
    number = Constant(Fraction(numerator) * Fraction(scale) + offset)
    assert parse(str(number)) == number
    assert parse(str(t - number)) == t - number


@pytest.mark.parametrize("text", ["5+5e-324", "1e-300^2", "-1e-300^2/3", "1/3e-300/1e20", "t - 1e-300^2"])
def test_numbers_at_the_border_of_floats_keep_their_text(text):
    schedule = parse(text)
    assert parse(str(schedule)) == schedule


@given(positive_schedules())
@settings(max_examples=60, deadline=None)
def test_walk_meets_every_part_and_rebuilding_changes_nothing(schedule):
    parts = list(walk(schedule))
    assert parts[0] is schedule
    assert sum(len(part.children) for part in parts) == len(parts) - 1
    assert rebuild(schedule, lambda child: child) is schedule
    assert substitute(schedule, {t: t}) == schedule


def test_substitution_goes_through_the_normal_form():
    assert substitute(parse("1 - 1/t + t"), {t: parse("2")}) == parse("2.5")
    moved = substitute(parse("0.1 if t < 9 else 1/t^0.5"), {t: t + 3})
    assert moved == parse("0.1 if t < 9 else 1/(t + 3)^0.5")


def test_nodes_are_data():
    for node in ONE_OF_EACH.values():
        own = {name for name in vars(type(node)) if not name.startswith("__")}
        # Facts are of the data; operations live in their tables.
        assert own <= {*FACTS, *type(node).__annotations__}
    assert isinstance(ONE_OF_EACH[Time], Schedule)


class Node:
    """Two attributes that ask for those of another node."""

    def __init__(self):
        self.other, self.computed, self.meet = self, 0, None

    @tree.cached_attribute
    def order(self):
        """The order."""
        self.computed += 1
        if self.meet is not None:
            self.meet.wait(timeout=60)
            return self.other.base, object()
        return self.computed

    @tree.cached_attribute
    def base(self):
        """The base."""
        return object()


def test_the_first_value_is_kept_in_the_instance():
    node, fresh = Node(), Node()
    assert (node.order, node.order, node.computed) == (1, 1, 1)
    assert "order" not in vars(fresh)
    assert Node.order.__doc__ == "The order."


def test_two_threads_compute_at_once_and_see_one_value():
    one, two = Node(), Node()
    one.other, two.other = two, one
    one.meet = two.meet = threading.Barrier(2)  # each is inside `order` while the other one is
    seen = []
    threads = [threading.Thread(target=lambda n=node: seen.append(n.order)) for node in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert [thread.is_alive() for thread in threads] == [False, False]
    assert {id(value) for value in seen} == {id(one.order), id(two.order)}


@pytest.mark.parametrize(
    "around",
    [
        lambda inner, k: inner + 1 / (t + k),
        lambda inner, k: inner * (1 + 1 / (t + k)),
        lambda inner, k: join(inner, k + 1, 1 / (t + k)),
        lambda inner, k: 2 + Function("sin", inner - k),
    ],
)
def test_an_expression_too_deep_for_what_goes_down_it_is_refused_when_it_is_built(around) -> None:
    said = r"^an expression is nested more than 200 deep; expected a simpler one$"
    built = [1 / sqrt(t)]
    with contextlib.suppress(ScheduleError):
        while len(built) < 1000:
            built.append(around(built[-1], len(built)))
    with pytest.raises(ScheduleError, match=said):
        around(built[-1], len(built))
    deepest = built[-1]
    assert deepest.depth > 190
    # Deeper ones would be a RecursionError in here; what a question adds may be too deep in its turn.
    assert hash(deepest) == hash(pickle.loads(pickle.dumps(deepest)))
    assert deepest(7) == pytest.approx(deepest.values(7, 8)[0])
    with contextlib.suppress(ScheduleError):
        generic_adam.certify(generic_adam.Method(deepest, 0.9, "1 - 1/max(t, 2)"))
    half = next(one for one in built if one.depth > 100)
    assert generic_adam.certify(generic_adam.Method(half, 0.9, "1 - 1/max(t, 2)")).verdict
