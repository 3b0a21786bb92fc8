"""The worked examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import unspool

MODULES = ["unspool"] + [
    module.name
    for module in pkgutil.walk_packages(unspool.__path__, "unspool.")
    if not module.name.endswith(("__main__", "_native"))
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) > 50
