"""Requests that compute, one after the other in one thread; the newest of a tab and a route replaces the one that waits.

While a run is trained, they leave the threads of the kernels to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

from unspool.errors import InputError
from unspool.kernels import native
from unspool.studio.history import Superseded

MOST = 64
"""Requests that may wait."""


class Busy(Exception):
    """Too many requests wait."""


class Job:
    """A request that waits or is computed."""

    def __init__(self, key: Hashable, work: Callable[[Job], Any]) -> None:
        self.key, self.work, self.result = key, work, Future[Any]()
        self.overtaken = False
        """Whether a newer one of the same key waits: a long computation should end."""

    def check(self) -> None:
        """Raise Superseded if a newer request waits."""
        if self.overtaken:
            raise Superseded

    def begin(self) -> bool:
        """Return whether somebody still waits for the result; then it cannot be cancelled any more."""
        return self.result.set_running_or_notify_cancel()

    def refuse(self, problem: Exception) -> None:
        """End the job without computing it."""
        if self.begin():
            self.result.set_exception(problem)


class Worker(threading.Thread):
    """Computes requests."""

    def __init__(self, trains: Callable[[], bool] = lambda: False) -> None:
        """`trains` says whether a run is trained now."""
        super().__init__(name="requests", daemon=True)
        self._trains = trains
        self._waiting: dict[Hashable, Job] = {}
        self._now: Job | None = None
        self._some = threading.Condition()
        self._closed = False

    def submit(self, key: Hashable, work: Callable[[Job], Any]) -> Future[Any]:
        """Compute `work`; a waiting request of the same key ends with Superseded."""
        job = Job(key, work)
        with self._some:
            older = self._waiting.pop(key, None)
            if older is not None:
                older.refuse(Superseded())
            elif len(self._waiting) >= MOST:
                raise Busy
            if self._now is not None and self._now.key == key:
                self._now.overtaken = True
            self._waiting[key] = job
            self._some.notify()
        return job.result

    def close(self) -> None:
        """End the thread after the request that is computed."""
        with self._some:
            self._closed = True
            if self._now is not None:
                self._now.overtaken = True
            for job in self._waiting.values():
                job.refuse(InputError("the studio is closing"))
            self._waiting.clear()
            self._some.notify()

    def run(self) -> None:
        """Compute requests until the thread is closed."""
        while True:
            with self._some:
                self._some.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                self._now = job = self._waiting.pop(next(iter(self._waiting)))
            if job.begin():
                native.set_alone(self._trains())
                try:
                    job.result.set_result(job.work(job))
                except BaseException as error:
                    job.result.set_exception(error)
            with self._some:
                self._now = None
