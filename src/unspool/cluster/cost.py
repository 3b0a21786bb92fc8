"""What several processes gain: a model of the time of an update, from a short measurement.

    t(1) = S c + u                                                                       (1)
    t(P) = ⌈S/P⌉ c + u + 3 α + 4 N v / β                                                 (2)

c is the time to compute one shard, u that of everything every process does (weights, optimiser), both measured on a few
updates; α the latency of a call of the transport and β its bandwidth, both measured; 4 N the bytes of the gradient, and v
how often they pass a process: of an all-to-all of n nodes per process and an all-gather, v = (n + 1) (P - 1) / P.
With b = B/S rows per shard, the batch at which t(1) / t(P) reaches the share E of P is

    B' = B · (u + 3 α + 4 N v / β - u / (E P)) / (S c (1/(E P) - 1/P))                   (3)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from unspool.cluster.group import Group
from unspool.cluster.tree import nodes_inside, shards_of

ENOUGH = 0.8
"""The share of P that is worth the machines: below it, another batch is advised."""
UPDATES = 5
CALLS, BLOCK = 20, 1 << 20
"""Calls of the transport to measure its latency, and bytes to measure its bandwidth."""


@dataclass(frozen=True)
class Cost:
    """What an update costs, and what the processes gain."""

    P: int
    S: int
    B: int
    shard: float
    """c, seconds."""
    rest: float
    """u, seconds."""
    latency: float
    """α, seconds."""
    bandwidth: float
    """β, bytes per second."""
    moved: float
    """The bytes that a process sends in an update."""

    @property
    def alone(self) -> float:
        """The seconds of an update in one process: (1)."""
        return self.S * self.shard + self.rest

    @property
    def together(self) -> float:
        """The seconds of an update in all processes: (2)."""
        return -(-self.S // self.P) * self.shard + self.rest + self.moving

    @property
    def moving(self) -> float:
        """The seconds in which an update moves bytes."""
        return 3 * self.latency + self.moved / self.bandwidth

    @property
    def speedup(self) -> float:
        """How many times faster all processes are than one."""
        return self.alone / self.together

    def batch_for(self, share: float = ENOUGH) -> int:
        """Return the batch at which the speed-up is this share of P: (3), a multiple of S."""
        per_row, worth = self.S * self.shard / self.B, share * self.P
        needed = (self.rest + self.moving - self.rest / worth) / (per_row * (1 / worth - 1 / self.P))
        return max(self.B, math.ceil(needed / self.S) * self.S)

    def line(self) -> str:
        """Return the line to print.

        >>> print(Cost(4, 8, 64, shard=0.01, rest=0.001, latency=5e-5, bandwidth=1e9, moved=9e6).line())
        4 processes: an update computes 81.0 ms in one, 21.0 ms in each, and moves 9.0 MB (50 µs, 1.0 GB/s): about 2.7 times as fast as one; a batch of 128 rows would reach 3.2 times
        """
        said = (
            f"{self.P} processes: an update computes {1e3 * self.alone:.1f} ms in one, {1e3 * (self.together - self.moving):.1f} ms "
            f"in each, and moves {self.moved / 1e6:.1f} MB ({1e6 * self.latency:.0f} µs, {self.bandwidth / 1e9:.1f} GB/s): about "
            f"{self.speedup:.1f} times as fast as one"
        )
        if self.speedup >= ENOUGH * self.P:
            return said
        return f"{said}; a batch of {self.batch_for()} rows would reach {ENOUGH * self.P:.1f} times"


def bytes_moved(N: int, S: int, P: int) -> float:
    """Return the bytes that a process sends in an update of N parameters, the largest of all processes.

    >>> bytes_moved(1000, S=8, P=4), bytes_moved(1000, S=6, P=2)
    (6000.0, 6000.0)
    """
    nodes = max(len(nodes_inside(shards_of(p, P, S), S)) for p in range(P))
    return 4 * N * (nodes + 1) * (P - 1) / P


def measure_cost(updates: Iterator[Any], group: Group, *, S: int, B: int, N: int) -> Cost:
    """Return the cost of an update; `updates` are those of a copy that is discarded, computed by all processes."""
    next(updates)  # the first one allocates
    shards, rests = list[float](), list[float]()
    for _ in range(UPDATES):
        group.computing = group.talking = 0.0
        start = time.perf_counter()
        next(updates)
        shards.append(group.computing / len(shards_of(0, group.size, S)))
        rests.append(max(0.0, time.perf_counter() - start - group.computing - group.talking))
    latency, bandwidth = group.measure(CALLS, BLOCK)
    return Cost(
        group.size, S, B, median(shards), median(rests), latency, bandwidth, bytes_moved(N, S, group.size)
    )
