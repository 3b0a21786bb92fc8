"""What every test may rely on: it begins with the threads and the instruction set that it found."""

import pytest

from unspool.kernels import native


@pytest.fixture(autouse=True)
def _leave_the_kernels_as_they_were():
    before = native.kernel_info()
    yield
    native.set_threads(before["threads"])
    native.choose_isa(before["isa"])
