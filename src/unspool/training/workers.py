"""Run independent jobs one after the other in this process, or in worker processes through joblib.

    jobs ─▶ worker 1 … worker N, each with one thread ─▶ results, in the order in which they are ready

A result depends on its job alone, not on the number of workers or the backend. joblib starts the worker processes on this
machine (loky), or passes the jobs to a cluster of Dask or Ray.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

from unspool.errors import InputError, MissingExtra
from unspool.kernels.native import set_threads
from unspool.options import at_least, check_choice

BACKENDS = ("loky", "dask", "ray")
MORE = "joblib is not installed: one process only; for more: pip install 'unspool[sweep]'"
MOST = 1024

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """How many processes work at the same time, and what starts them."""

    count: int = 1
    backend: str = "loky"

    def __post_init__(self) -> None:
        if at_least("workers", self.count, 1) > MOST:
            raise InputError(f"workers is {self.count:,}; expected 1 … {MOST:,}")
        check_choice("backend", self.backend, BACKENDS)

    @property
    def alone(self) -> bool:
        """Whether the jobs run in this process."""
        return self.count == 1 and self.backend == "loky"

    def run(self, work: Callable[[Job], Result], jobs: Sequence[Job]) -> Generator[tuple[int, Result]]:
        """Yield the number of each job and its result when it is ready; closing the generator ends the workers."""
        if self.alone:
            for i, job in enumerate(jobs):
                yield i, work(job)
            return
        if not joblib_is_installed():
            raise MissingExtra("workers: several need the extra: pip install 'unspool[sweep]'")
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        with _backend_of(self):
            parallel = Parallel(self.count, return_as="generator_unordered", batch_size=1, max_nbytes=None)
            owner = os.getpid() if self.backend == "loky" else None
            results = parallel(delayed(_in_a_worker)(work, i, job, owner) for i, job in enumerate(jobs))
            try:
                with warnings.catch_warnings(), closing(results):
                    warnings.filterwarnings(
                        "ignore", "[0-9]+ tasks", UserWarning
                    )  # those of a closed generator
                    yield from results
            except TerminatedWorkerError:
                raise InputError(
                    "workers: a worker process was killed, perhaps for lack of memory; what has ended is saved: resume "
                    "with fewer workers"
                ) from None


def joblib_is_installed() -> bool:
    """Return whether there can be several processes."""
    return find_spec("joblib") is not None


def _in_a_worker(work: Callable[[Job], Result], i: int, job: Job, owner: int | None) -> tuple[int, Result]:
    """Run a job with one thread; Ctrl-C is for the process that started the workers, the `owner`."""
    set_threads(1)
    if owner is not None:
        _end_with(owner)
    return i, work(job)


@cache
def _end_with(owner: int) -> None:
    """Take no signals from the owner's terminal, and end this process when its owner has ended.

    A killed process cannot end its workers.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _backend_of(workers: Workers) -> Iterator[None]:
    """Start or find the cluster of a backend, and make joblib use it."""
    from joblib import parallel_config

    if workers.backend == "loky":
        with parallel_config("loky", inner_max_num_threads=1):
            yield
    elif workers.backend == "dask":
        with _dask(workers.count), parallel_config("dask"):
            yield
    else:
        with _ray(workers.count), parallel_config("ray"):
            yield


@contextmanager
def _dask(count: int) -> Iterator[Any]:
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise MissingExtra("backend dask needs the package distributed: pip install distributed") from None
    found = dask.config.get("scheduler-address", None)  # DASK_SCHEDULER_ADDRESS
    local = {} if found else {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    with Client(**local) as client:
        yield client


@contextmanager
def _ray(count: int) -> Iterator[None]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise MissingExtra("backend ray needs the package ray: pip install ray") from None
    local = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": count, "include_dashboard": False}
    ray.init(log_to_driver=False, logging_level="ERROR", **local)
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()
