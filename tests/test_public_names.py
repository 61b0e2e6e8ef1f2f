"""The public surface: every name promised is there, and nothing else claims to be."""

import ast
from pathlib import Path

import pytest

import generic_adam as ga

# Fixed by the design: users write these.
PROMISED = {"parse", "Method", "methods", "certify", "Problem", "bound", "advise"}


def test_promised_names_are_public():
    assert set(ga.__all__) >= PROMISED


@pytest.mark.parametrize("name", ga.__all__)
def test_every_public_name_can_be_used(name):
    assert getattr(ga, name) is getattr(ga, name)


def test_public_names_are_sorted_and_listed():
    assert ga.__all__ == sorted(ga.__all__)
    assert set(ga.__all__) <= set(dir(ga))


def test_star_import_gives_the_public_names():
    scope = {}
    exec("from generic_adam import *", scope)
    assert {name for name in scope if not name.startswith("__")} == set(ga.__all__)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(ga.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in guarded.body for alias in node.names}
    assert seen == set(ga.__all__)


def test_the_citation_and_the_changelog_have_this_version():
    citation, changes = (
        (Path(__file__).parents[1] / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")
    )
    assert f"\nversion: {ga.__version__}\n" in citation
    assert changes[changes.index("\n## ") :].startswith(f"\n## {ga.__version__} ")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'generic_adam' has no attribute 'certfy'"):
        _ = ga.certfy


@pytest.mark.parametrize("name", ["torch", "optax", "adapters"])
def test_sub_packages_are_reached_as_attributes(name):
    assert getattr(ga, name).__name__ == f"generic_adam.{name}"


def test_names_are_where_their_sub_packages_say():
    assert ga.Method is ga.methods.Method
    assert ga.parse is ga.schedules.parse
    assert ga.certify(ga.methods.certified_adam()).verdict == "certified"


@pytest.mark.parametrize("package", ["schedules", "methods"])
def test_sub_packages_define_what_they_export(package):
    module = getattr(ga, package)
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
