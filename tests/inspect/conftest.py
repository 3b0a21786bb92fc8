"""A trained model to look at."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from inspect_cases import made


@pytest.fixture(scope="session")
def trained():
    return made("lstm", steps=120)
