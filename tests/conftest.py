"""What every test may rely on: it begins with the threads and the instruction set that it found."""

import pytest

from unspool.kernel import ops


@pytest.fixture(autouse=True)
def _leave_the_kernels_as_they_were():
    before = ops.kernel_info()
    yield
    ops.set_threads(before["threads"])
    ops.choose_isa(before["isa"])
