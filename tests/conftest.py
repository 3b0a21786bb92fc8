"""Shared by every test: the kernels' settings are restored, properties have no deadline, one trained model."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from inspect_cases import made
from unspool.kernels import native

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(autouse=True)
def _restore_the_kernels_settings():
    before = native.kernel_info()
    yield
    native.set_threads(before["threads"])
    native.choose_isa(before["bf16"])  # a set for bf16 includes the set of float32; else the two are the same


@pytest.fixture(scope="session", autouse=True)
def _without_optional_compressors() -> Iterator[None]:
    """The table of `compress` has one row more where pyppmd is installed: the tests do not depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyppmd", None)
        yield


@pytest.fixture(scope="session")
def trained():
    return made("lstm", steps=120)
