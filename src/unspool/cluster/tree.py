"""Add the vectors of S shards in one fixed binary tree: the same bits for any number of processes.

    total(a, b) = the vector of shard a                          if b = a + 1           (1)
    total(a, b) = total(a, m) + total(m, b)                      else, m = a + 2ᵏ, the largest 2ᵏ < b - a

    S = 5      g0   g1   g2   g3   g4
                 \\ /       \\ /      │
                 g01       g23      │
                    \\     /         │
                     g0123         │
                          \\        /
                            g01234

Every node is one float32 addition per value. A process that has neighbouring shards adds up the nodes that lie inside its
range (`nodes_inside`); a process that has these nodes of all processes adds up the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple


class Node(NamedTuple):
    """A node of the tree: the shards from `begin` to `end`, without `end`."""

    begin: int
    end: int

    @property
    def children(self) -> tuple[Node, Node]:
        """The two nodes whose sum this node is."""
        middle = self.begin + (1 << (self.end - self.begin - 1).bit_length() - 1)
        return Node(self.begin, middle), Node(middle, self.end)

    @property
    def is_leaf(self) -> bool:
        """Whether this is one shard."""
        return self.end == self.begin + 1


def shards_of(rank: int, size: int, S: int) -> range:
    """Return the shards of one of `size` processes: neighbours, as many for each as possible.

    >>> [list(shards_of(rank, 3, 8)) for rank in range(3)]
    [[0, 1], [2, 3, 4], [5, 6, 7]]
    """
    return range(rank * S // size, (rank + 1) * S // size)


def nodes_inside(own: range, S: int) -> list[Node]:
    """Return the largest nodes of the tree over S shards that lie inside a range, from left to right.

    >>> nodes_inside(range(0, 3), 6), nodes_inside(range(3, 6), 6)
    ([Node(begin=0, end=2), Node(begin=2, end=3)], [Node(begin=3, end=4), Node(begin=4, end=6)])
    """

    def inside(node: Node) -> list[Node]:
        if own.start <= node.begin and node.end <= own.stop:
            return [node]
        if node.end <= own.start or own.stop <= node.begin:
            return []
        left, right = node.children
        return inside(left) + inside(right)

    return inside(Node(0, S))


def postorder(node: Node, leaves: Collection[Node] = ()) -> Iterator[Node]:
    """Yield the nodes below a node and itself, children first: shards or `leaves`, and the sums of the last two results.

    >>> stack = []
    >>> for node in postorder(Node(0, 5)):
    ...     if node.is_leaf:
    ...         stack.append(f"g{node.begin}")
    ...     else:
    ...         right, left = stack.pop(), stack.pop()
    ...         stack.append(f"({left}+{right})")
    >>> stack
    ['(((g0+g1)+(g2+g3))+g4)']
    """
    if not node.is_leaf and node not in leaves:
        for child in node.children:
            yield from postorder(child, leaves)
    yield node
