"""Number words by first appearance with a vectorised hash table: one block of text at a time.

The hash of a token with code points c(0) … c(n-1) is a polynomial in an odd M, modulo 2^64:

    h = Σ v(c(i)) · M^i                                                         (1)

with v a fixed scrambling of the code point. The sums of a block's prefixes give h for all of its tokens:

    H(j) = Σ_{i<j} v(c(i)) · M^i,      h = (H(end) - H(start)) · M^-start       (2)

M is odd, so M^-1 exists. Tokens longer than ``LONG`` get a cryptographic digest instead: only very long
strings can be built to collide under (1). Two different short tokens share an h with probability 2^-64;
with ten million types, one text in several hundred thousand would have such a pair.

The table uses open addressing with linear probing; each probe is one vectorised look-up of all unresolved tokens.
"""

from functools import cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Codes, Whole

Hashes = NDArray[np.uint64]

M = 0x9E3779B97F4A7C15
LONG = 64


class TokenIndex:
    """Tokens numbered by first appearance.

    >>> table = TokenIndex()
    >>> text = "to be or not to be"
    >>> codes = np.frombuffer(text.encode("utf-16-le"), "<u2")
    >>> starts, ends = np.array([0, 3, 6, 9, 13, 16]), np.array([2, 5, 8, 12, 15, 18])
    >>> table.number(text, codes, starts, ends)
    array([0, 1, 2, 3, 0, 1], dtype=uint32)
    >>> table.tokens
    ['to', 'be', 'or', 'not']
    """

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self._resize(16)

    def number(self, text: str, codes: Codes, starts: Whole, ends: Whole) -> NDArray[np.uint32]:
        """Return the number of every token text[start:end]; new tokens get the next numbers."""
        hashes = token_hashes(text, codes, starts, ends)
        numbers, missing = self._find(hashes)
        if len(missing):
            fresh, first = np.unique(hashes[missing], return_index=True)
            order = np.argsort(first, kind="stable")
            where = missing[first[order]]
            self._insert(fresh[order])
            self.tokens.extend(
                [text[i:j] for i, j in zip(starts[where].tolist(), ends[where].tolist(), strict=True)]
            )
            numbers[missing] = self._find(hashes[missing])[0]
        return numbers

    def _resize(self, bits: int) -> None:
        self._bits = bits
        self._keys: Hashes = np.zeros(1 << bits, np.uint64)
        self._values = np.zeros(1 << bits, np.uint32)

    def _home(self, hashes: Hashes) -> Whole:
        return (hashes >> np.uint64(64 - self._bits)).astype(np.int64)

    def _find(self, hashes: Hashes) -> tuple[NDArray[np.uint32], Whole]:
        """Return the numbers of all hashes, and the positions of those that are not in the table."""
        numbers = np.zeros(len(hashes), np.uint32)
        missing = []
        seeking, slots, wanted = np.arange(len(hashes)), self._home(hashes), hashes
        while len(seeking):
            met = self._keys[slots]
            numbers[seeking] = self._values[slots]
            missing.append(seeking[met == 0])
            on = np.flatnonzero((met != wanted) & (met != 0))
            seeking, slots, wanted = seeking[on], (slots[on] + 1) & (len(self._keys) - 1), wanted[on]
        return numbers, np.sort(np.concatenate(missing)) if missing else seeking

    def _insert(self, fresh: Hashes) -> None:
        """Number distinct hashes that are not in the table."""
        old = len(self.tokens)
        if 2 * (old + len(fresh)) > len(self._keys):
            self._grow(old + len(fresh))
        self._place(fresh, np.arange(old, old + len(fresh), dtype=np.uint32))

    def _grow(self, needed: int) -> None:
        full = np.flatnonzero(self._keys)
        keys, values = self._keys[full], self._values[full]
        self._resize(max(self._bits + 1, int(4 * needed).bit_length()))
        self._place(keys, values)

    def _place(self, keys: Hashes, values: NDArray[np.uint32]) -> None:
        slots = self._home(keys)
        while len(keys):
            free = self._keys[slots] == 0
            self._keys[slots[free]] = keys[free]  # if several share a slot, the last one written stays
            won = self._keys[slots] == keys
            self._values[slots[won]] = values[won]
            keys, values = keys[~won], values[~won]
            slots = (slots[~won] + 1) & (len(self._keys) - 1)


def token_hashes(text: str, codes: Codes, starts: Whole, ends: Whole) -> Hashes:
    """Return the hash of every token text[start:end] by (1) and (2); never 0, which marks a free slot."""
    powers, inverses = _powers(1 << max(16, len(codes).bit_length()))
    scrambled = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
    scrambled ^= scrambled >> np.uint64(32)
    scrambled *= powers[: len(codes)]
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(scrambled, out=sums[1:])
    hashes: Hashes = (sums[ends] - sums[starts]) * inverses[starts]  # (2)
    for i in np.flatnonzero(ends - starts > LONG).tolist():
        token = text[starts[i] : ends[i]].encode("utf-8", "surrogatepass")
        hashes[i] = int.from_bytes(blake2b(token, digest_size=8).digest(), "little")
    # The low bits of (1) are weak, and the table uses the high ones.
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(M)
    hashes[hashes == 0] = 1
    return hashes


@cache
def _powers(count: int) -> tuple[Hashes, Hashes]:
    return _geometric(M, count), _geometric(pow(M, -1, 1 << 64), count)


def _geometric(base: int, count: int) -> Hashes:
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    return powers
