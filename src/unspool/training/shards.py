"""The shards of a batch: each is a chain of its own, and their gradients are added in one fixed tree.

Of a batch of B rows, shard i of S has the rows from i B/S to (i + 1) B/S. Its gradient is that of the whole batch's mean
loss, over its rows only: a sum over rows and time as `docs/engine.md` defines it. The gradients of the shards are added in
the tree of `unspool.cluster.tree`, and their losses in the same tree in double precision. Dropout, truncation and restarts
are drawn for the whole batch by row; norm, clipping and the optimiser come after the sum. With S = 1 nothing is added.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import numpy as np

from unspool.cluster.group import ALONE, Group, current
from unspool.cluster.tree import Node, nodes_inside, postorder, shards_of
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.kernels.tape import Loss


def refuse_uneven(S: int, B: int) -> None:
    """Raise where a batch of B rows cannot be cut into S shards of as many rows."""
    if S > B or B % S:
        near = sorted({max(1, B // S) * S, -(-B // S) * S})
        raise InputError(
            f"shards is {S} and the batch has {B} rows; expected shards of as many rows: choose a batch of "
            f"{' or '.join(map(str, near))}"
        )


def whole_shards(B: int, S: int) -> int:
    """Return the smallest batch of at least B rows that S shards divide.

    >>> whole_shards(67, 4)
    68
    """
    return -(-B // S) * S


def refuse_processes(S: int) -> None:
    """Raise where there are more processes than shards."""
    if (P := current().size) > S:
        raise InputError(
            f"there are {P} processes, and shards is {S}; expected at least one shard for each: choose shards {P} and a batch that is "
            "a multiple of it, or start fewer processes"
        )


class Shards:
    """S shards of every batch, and those of them that this process computes."""

    def __init__(self, count: int = 1, group: Group | None = None) -> None:
        self.count = count
        self.group = group or (current() if count > 1 else ALONE)
        """The processes that compute the shards; one shard is computed here."""
        self.schedule: Callable[[int], float] = lambda _: 1.0
        """The factor on the learning rate, by update."""
        self.own = shards_of(self.group.rank, self.group.size, count)

    def rows(self, shard: int, B: int) -> slice:
        """Return the rows of a shard in a batch of B rows; none where B < S."""
        return slice(shard * B // self.count, (shard + 1) * B // self.count)

    def rows_of_rank(self, B: int, rank: int | None = None) -> slice:
        """Return the rows of all shards of a process, of this one without `rank`."""
        own = self.own if rank is None else shards_of(rank, self.group.size, self.count)
        return slice(own.start * B // self.count, own.stop * B // self.count)

    def own_rows(self, shard: int, B: int) -> slice:
        """Return the rows of a shard, counted from the first row of this process."""
        rows, first = self.rows(shard, B), self.rows_of_rank(B).start
        return slice(rows.start - first, rows.stop - first)

    def sum(self, gradient: Callable[[int], tuple[Loss, Floats]]) -> tuple[Loss, Floats]:
        """Return loss and gradient of a batch; `gradient` computes those of a shard, into the same array each time.

        The gradient is only complete where the loss is finite.
        """
        losses, stack, fresh = list[Loss](), list[Floats](), False
        start = time.perf_counter()
        for top in nodes_inside(self.own, self.count):
            for node in postorder(top):
                if node.is_leaf:
                    if fresh:  # the next shard would overwrite it
                        stack[-1] = stack[-1].copy()
                    loss, values = gradient(node.begin)
                    losses.append(loss)
                    stack.append(values)
                else:
                    right = stack.pop()
                    with np.errstate(all="ignore"):  # a loss that is not finite ends the training
                        stack[-1] += right
                fresh = node.is_leaf
        if self.group.size == 1:
            return total_loss(losses), stack[0]
        self.group.computing += time.perf_counter() - start
        stopped = float(self.group.interrupted)
        note = np.array([(loss.sum, loss.count, stopped) for loss in losses])
        total, notes = self.group.add_up(self.count, stack, note.reshape(-1).view(np.uint8))
        found = np.concatenate([each.view(np.float64) for each in notes]).reshape(-1, 3)
        if self.group.rank == 0 and found[:, 2].any():  # a signal to another process stops the training too
            signal.raise_signal(signal.SIGTERM)
        nothing = np.zeros(0)
        return total_loss([Loss(float(s), int(n), nothing, None) for s, n, _ in found]), total


def total_loss(losses: list[Loss]) -> Loss:
    """Return the loss of a batch from those of its shards, summed in the tree; that of one shard unchanged."""
    if len(losses) == 1:
        return losses[0]
    stack = list[float]()
    for node in postorder(Node(0, len(losses))):
        stack.append(losses[node.begin].sum if node.is_leaf else stack.pop(-2) + stack.pop())
    return Loss(stack[0], sum(each.count for each in losses), np.zeros(0), None)
