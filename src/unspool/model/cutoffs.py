"""The setting `softmax` of a network: full, or adaptive:N1,N2,… with the first token of every cluster.

adaptive:2000,10000      tokens 0 … 1,999 in the head, 2,000 … 9,999 in cluster 1, 10,000 … K-1 in cluster 2
"""

from __future__ import annotations

from itertools import pairwise

from unspool.errors import InputError
from unspool.options import Check

FULL, ADAPTIVE, AUTO = "full", "adaptive", "auto"
EXPECTED = (
    "full, adaptive, auto or adaptive:N1,N2,… with rising whole numbers, for example adaptive:2000,10000"
)
MOST_CLUSTERS = 8


def parse_cutoffs(softmax: str) -> tuple[int, ...]:
    """Return the first token of every cluster; () for full, and for adaptive and auto, whose clusters are open.

    >>> parse_cutoffs("adaptive:2000,10000"), parse_cutoffs("full")
    ((2000, 10000), ())
    """
    kind, _, listed = softmax.partition(":") if isinstance(softmax, str) else ("", "", "")
    if softmax in (FULL, ADAPTIVE, AUTO):
        return ()
    parts = listed.split(",")
    if kind != ADAPTIVE or not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"softmax is {softmax!r}; expected {EXPECTED}")
    cutoffs = tuple(int(part) for part in parts)
    if cutoffs[0] < 1 or any(a >= b for a, b in pairwise(cutoffs)) or len(cutoffs) > MOST_CLUSTERS:
        raise InputError(
            f"softmax is {softmax!r}; expected 1 to {MOST_CLUSTERS} whole numbers of 1 or more, each above the one before"
        )
    return cutoffs


def write_cutoffs(cutoffs: tuple[int, ...]) -> str:
    """Return the setting with these clusters; full for none.

    >>> write_cutoffs((2000, 10000)), write_cutoffs(())
    ('adaptive:2000,10000', 'full')
    """
    return f"{ADAPTIVE}:{','.join(map(str, cutoffs))}" if cutoffs else FULL


def _check(name: str, value: str) -> str:
    parse_cutoffs(value)
    return value


SOFTMAX_CHECK = Check(EXPECTED, _check)
