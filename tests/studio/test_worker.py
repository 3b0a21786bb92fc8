"""The thread of requests: the newest wins, and a request that nobody waits for any more harms nothing."""

import threading
from concurrent.futures import CancelledError

import pytest

from unspool.errors import InputError
from unspool.studio.history import Superseded
from unspool.studio.worker import Worker


@pytest.fixture
def held():
    """A worker that computes one job until the event is set."""
    worker, runs, ends = Worker(), threading.Event(), threading.Event()
    worker.start()
    worker.submit("first", lambda job: (runs.set(), ends.wait(30)))
    runs.wait(30)
    yield worker, ends
    ends.set()
    worker.close()
    worker.join(30)
    assert not worker.is_alive()


def test_the_newest_of_a_key_is_computed(held):
    worker, ends = held
    older, newer = (worker.submit("a", lambda job, n=n: n) for n in (1, 2))
    ends.set()
    assert newer.result(30) == 2
    with pytest.raises(Superseded):
        older.result(30)


def test_a_cancelled_request_is_skipped(held):
    worker, ends = held
    done = []
    cancelled = worker.submit("a", lambda job: done.append(job))
    assert cancelled.cancel()
    worker.submit("a", lambda job: None)  # overtakes one that was cancelled
    last = worker.submit("b", lambda job: 7)
    ends.set()
    assert last.result(30) == 7 and not done
    with pytest.raises(CancelledError):
        cancelled.result(30)


def test_closing_ends_those_who_wait_and_leaves_the_cancelled_ones(held):
    worker, ends = held
    waiting, cancelled = (worker.submit(key, lambda job: None) for key in "ab")
    cancelled.cancel()
    worker.close()
    with pytest.raises(InputError, match="closing"):
        waiting.result(30)
    ends.set()


def test_an_error_of_a_request_goes_to_who_asked(held):
    worker, ends = held
    failing = worker.submit("a", lambda job: 1 / 0)
    ends.set()
    with pytest.raises(ZeroDivisionError):
        failing.result(30)
