"""The worked examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import unspool.counting
import unspool.data
import unspool.measure

USES = ["unspool.evaluate", "unspool.generate", "unspool.schedule", "unspool.draw.chart"]
MODULES = ["unspool.measure", *USES] + [
    module.name
    for package in (unspool.data, unspool.counting)
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) > 35
