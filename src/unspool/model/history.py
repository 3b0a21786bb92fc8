"""Store which tokens a text has had so far, for the repetition penalty.

>>> history = TokenHistory(6)
>>> for token in (1, 4, 4, 2):
...     history.add(token)
...
>>> history.seen().nonzero()[0].tolist(), history.seen(window=2).nonzero()[0].tolist()
([1, 2, 4], [2, 4])
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice

import numpy as np

from unspool.kernels.arrays import Ids, Mask

LONGEST_WINDOW = 4096
"""The longest window of the repetition penalty, in tokens: a saved state stores so many."""


class TokenHistory:
    """The tokens of a text: which of the K occurred at all, and the last ones in their order."""

    def __init__(self, K: int, tokens: Iterable[int] = ()) -> None:
        self._bytes, self._K = bytearray(K), K  # a byte is set faster than an element of an array
        self._all = np.frombuffer(self._bytes, np.bool_)  # the same memory
        self._recent: deque[int] = deque(maxlen=LONGEST_WINDOW)
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        """Append one token; one that cannot be drawn (an id outside 0 to K - 1) is left out."""
        if 0 <= token < self._K:
            self._bytes[token] = 1
            self._recent.append(token)

    def seen(self, window: int = 0) -> Mask:
        """Return which tokens (K,) are among the last `window`; 0: among all."""
        if not window:
            return self._all
        found = np.zeros_like(self._all)
        found[list(islice(reversed(self._recent), window))] = True
        return found

    def copy(self) -> "TokenHistory":
        """Return a copy that shares nothing."""
        made = TokenHistory(self._K)
        made._all[:], made._recent = self._all, self._recent.copy()
        return made

    def to_arrays(self) -> dict[str, Ids]:
        """Return the history as arrays of token ids, for a file."""
        return {
            "seen": self._all.nonzero()[0].astype(np.int32),
            "recent": np.fromiter(self._recent, np.int32, len(self._recent)),
        }

    @staticmethod
    def from_arrays(K: int, seen: Ids, recent: Ids) -> "TokenHistory":
        """Return the history of two arrays of token ids below K."""
        made = TokenHistory(K)
        made._all[seen] = True
        made._recent.extend(recent.tolist())
        return made
