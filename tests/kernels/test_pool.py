"""The pool of threads: workers are started when they are needed, and end when they are not."""

import os
import threading
import time

import numpy as np
import pytest

from unspool.kernels import native

TASKS = "/proc/self/task"
pytestmark = pytest.mark.skipif(not os.path.isdir(TASKS), reason="the system does not list threads")


def product():
    a = np.ones((400, 100), np.float32)
    return native.matmul(a, a, transpose_b=True)


def threads_at_rest():
    """Return how many threads this process has without workers."""
    native.set_threads(1)
    time.sleep(0.1)
    return len(os.listdir(TASKS))


def settles_at(count):
    """Say whether this process soon has so many threads: the system lists one for a moment after its end."""
    until = time.monotonic() + 5
    while (found := len(os.listdir(TASKS))) != count and time.monotonic() < until:
        time.sleep(0.001)
    return found == count


def test_surplus_workers_end_when_the_number_of_threads_falls():
    alone = threads_at_rest()
    for threads in (5, 2, 4, 3, 1, 6, 1):
        native.set_threads(threads)
        product()
        assert settles_at(alone + threads - 1)
    native.set_threads(4)
    product()
    native.set_threads(1)  # at once, not at the next product
    assert settles_at(alone)


def test_the_number_of_threads_may_change_while_others_compute():
    expected, failures, over = product(), [], threading.Event()
    alone = threads_at_rest()

    def compute():
        while not over.is_set():
            if not np.array_equal(product(), expected):
                failures.append("another product")

    busy = [threading.Thread(target=compute) for _ in range(2)]
    for thread in busy:
        thread.start()
    for i in range(200):
        native.set_threads(1 + i % 4)
    over.set()
    for thread in busy:
        thread.join()
    native.set_threads(1)
    assert not failures and settles_at(alone)


def test_a_forked_process_has_workers_of_its_own():
    native.set_threads(3)
    expected = product()
    child = os.fork()
    if child == 0:
        native.set_threads(2)
        os._exit(0 if np.array_equal(product(), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
