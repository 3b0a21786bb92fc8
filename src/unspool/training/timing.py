"""Measure the number of updates per second."""

import time
from collections.abc import Callable, Iterator
from typing import Any


def measure_update_rate(
    updates: Iterator[Any], seconds: float = 1.0, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the number of updates per second, measured on updates that are discarded.

    >>> ticks = iter(range(1000))
    >>> measure_update_rate(iter(range(100)), seconds=10, clock=lambda: float(next(ticks)))
    1.0
    """
    next(updates)  # the first one allocates
    spans, start = list[float](), clock()
    until = start + seconds
    while len(spans) < 3 or start < until:
        next(updates)
        start, before = clock(), start
        spans.append(start - before)
    # The median: another program that takes the cores for a moment should not halve the run.
    return 1 / max(sorted(spans)[len(spans) // 2], 1e-9)
