"""The reference pages list every hyper-parameter as the code declares it."""

import subprocess
import sys
from pathlib import Path

import pytest

from unspool.data import options as data
from unspool.model import options as network
from unspool.optimisers import options as optimiser
from unspool.options import Option
from unspool.tasks.forecast import options as forecast
from unspool.training import options as training

DOCS = Path(__file__).parents[2] / "docs"
INTERNAL = {"reserved", "warmup_fraction"}
"""Fields of configs that no user sets."""


def test_the_pages_are_up_to_date():
    made = subprocess.run(
        [sys.executable, DOCS / "make_reference.py"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("page", ["reference.md", "reference.zh-CN.md"])
def test_a_page_has_every_declaration(page):
    text = (DOCS / page).read_text("utf-8")
    modules = (data, network, optimiser, training, forecast)
    names = {each.name for module in modules for each in vars(module).values() if isinstance(each, Option)}
    assert [name for name in sorted(names - INTERNAL) if f"| `{name}` |" not in text] == []
