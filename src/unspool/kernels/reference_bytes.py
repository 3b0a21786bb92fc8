"""The reference implementation of `ByteEncoder` and `ByteDecoder` (csrc/byte_model.h, csrc/bit_coder.h), in plain Python.

Each bit y of a byte, from the highest, is predicted from what followed the same contexts before:

    contexts i        the last 1, 2, 3, 4, 5, 6, 8 bytes; the word so far, with the word before it, with the last byte; bytes 2 to 3, 3 to 4;
                      the last byte with the upper halves of the four before
    history (i, bits) counts (n0, n1, last bit) and the last seven bits that followed the context and the bits of this byte       (1)
    p(i, history)     adapts by (y - p) / (n + 3/2): one map for the counts, one for the last bits                              (2)
    s(k)              log2(p / (1 - p)) of all maps, of orders 0 and 1, of a match, of a network, of n-grams                              (3)
    d(j) = Σ w(j, k) s(k),    w(j, k) ← w(j, k) + η (y - squash(d(j))) s(k),    j: five sets of weights, chosen by context      (4)
    d = Σ v(j) d(j),          v(j) ← v(j) + η' (y - squash(d)) d(j)                                                            (5)
    P(1) = squash(d) / 2 + (a(c1, d) + a(c1 c2 c3, d)) / 4,   a: maps that interpolate between 33 values of d and adapt         (6)

P(1) narrows the interval of an arithmetic coder. Integers and float32, operation by operation as in C++: results are equal.
"""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Floats

WORD = (1 << 64) - 1
MOST = (41, 20, 11, 7, 5)
"""The counts of a history: with a smaller count i, the larger is at most MOST[i]."""
F = np.float32
ORDERS = (1, 2, 3, 4, 5, 6, 8)
CONTEXTS, INPUTS, SETS, KNOTS, LIMIT = 13, 32, 5, 33, 1023
MATCH_BITS, MATCH_LEAST = 18, 5
Counts = tuple[int, int, int]
Halves: TypeAlias = NDArray[np.uint16]
Words: TypeAlias = NDArray[np.uint32]
Sums: TypeAlias = NDArray[np.uint64]


def hashed(value: int, salt: int) -> int:
    """Return a 64-bit hash of two 64-bit numbers."""
    h = (value + salt * 0xD6E8FEB86659FD93) * 0x9E3779B97F4A7C15 & WORD
    return (h ^ h >> 29) * 0xD6E8FEB86659FD93 & WORD


def all_counts() -> list[Counts]:
    """Return all (n0, n1, last bit) of a history, by rising sum."""
    found = [(0, 0, 0)]
    for total in range(1, MOST[0] + 1):
        for n0, last in product(range(total + 1), (0, 1)):
            n1 = total - n0
            if min(n0, n1) < 5 and max(n0, n1) <= MOST[min(n0, n1)] and (n0, n1)[last]:
                found.append((n0, n1, last))
    return found


def after(counts: Counts, y: int) -> Counts:
    """Return the counts after another bit: one more of y; half of the others above two are forgotten."""
    a, b = counts[y] + 1, counts[1 - y]
    b = 2 + (b - 2) // 2 if b > 2 else b
    less, more = min(a, b, 4), max(a, b)
    more = min(more, MOST[less])
    a, b = (less, more) if a < b else (more, less)
    return (b, a, y) if y else (a, b, y)


def bounded(d: np.float32) -> np.float32:
    """Return d between -15.99 and 15.99."""
    return min(max(d, F(-15.99)), F(15.99))


class Adaptive:
    """A probability · 2^22 that adapts by 1 / (n + 3/2): (2)."""

    def __init__(self, ones: int, total: int) -> None:
        self.p, self.n = ((2 * ones + 1) << 22) // (2 * total + 2), 0

    def adapt(self, y: int) -> None:
        """Move towards y."""
        self.p += (((1 << 22) - 1 if y else 0) - self.p) * (131072 // (2 * self.n + 3)) >> 16
        self.n = min(self.n + 1, LIMIT)


class Bucket:
    """The histories of four bits after a context: 15 pairs (counts, last bits)."""

    def __init__(self, check: int = 0) -> None:
        self.check, self.nodes = check, [[0, 0] for _ in range(15)]


class ByteModel:
    """The model of csrc/byte_model.h."""

    def __init__(self, bits: int, stretch: Floats, squash: Halves, powers: Words, weights: Floats) -> None:
        self.bits, self.stretch, self.powers, self.start = bits, stretch, powers.tolist(), weights
        self._squash: list[int] = squash.tolist()
        self.buckets: dict[int, Bucket] = {}
        counts = all_counts()
        self.next = [[counts.index(after(each, y)) for y in (0, 1)] for each in counts]
        self.by_counts = [[Adaptive(n1, n0 + n1) for n0, n1, _ in counts] for _ in range(CONTEXTS)]
        by_last = [(bin(i)[3:].count("1"), max(i.bit_length() - 1, 0)) for i in range(256)]
        self.by_last = [[Adaptive(*each) for each in by_last] for _ in range(CONTEXTS)]
        self.by_length = [[Adaptive(0, 0), Adaptive(0, 0)] for _ in range(32)]
        self.direct: dict[tuple[int, ...], int] = {}
        self.weights: dict[tuple[int, int], Floats] = {}
        self.outer: dict[int, Floats] = {}
        self.refinements: dict[tuple[int, int, int], int] = {}
        self.positions: dict[int, int] = {}
        self.history, self.network, self.ngrams = bytearray(), list[int](), list[int]()
        self.recent = self.word = self.word_before = self.bit = self.steps = 0
        self.partial, self.match_at, self.match_length, self.predicted = 1, 0, 0, 0
        self._start_byte()

    def squash(self, d: np.float32) -> int:
        """Return 65536 / (1 + 2^-d)."""
        return self._squash[int((bounded(d) + F(16)) * F(256))]

    def set_network(self, o: Floats | None) -> None:
        """Take the logits of the next byte: the frequencies of `unspool.compress.integer_frequencies`, summed up."""
        self.network, self.ngrams = [], []
        if o is not None:
            d = np.minimum((float(o.max()) - o.astype(np.float64)) * 2954.639443740597, 63488.0).astype(int)
            self.network = np.cumsum(
                [0] + [1 + (self.powers[i & 2047] >> (i >> 11)) for i in d.tolist()]
            ).tolist()

    def set_sums(self, sums: Sums) -> None:
        """Take cumulative frequencies of the next byte (2, 257): of a network, and of n-grams, or zeros without them."""
        self.network, self.ngrams = sums[0].tolist(), sums[1].tolist() if sums[1].any() else []

    def _stretch_of(self, sums: list[int]) -> np.float32:
        """Return s of the next bit by a distribution of the byte."""
        begin = self.partial << 8 - self.bit & 255
        low, middle, high = (sums[begin + k] for k in (0, 128 >> self.bit, 256 >> self.bit))
        return np.float32(self.stretch[(high - middle << 16) // (high - low) >> 4])

    def _bucket(self, code: int) -> Bucket:
        index, check = code >> 64 - self.bits, code >> 8 & 0xFFFF
        four = [self.buckets.setdefault(index ^ i, Bucket()) for i in range(4)]
        for each in four:
            if each.check == check and each.nodes[0][1]:
                return each
        lowest = min(four, key=lambda each: each.nodes[0][0])  # the first of equal ones
        lowest.check, lowest.nodes = check, [[0, 0] for _ in range(15)]
        return lowest

    def _find_buckets(self) -> None:
        codes = [hashed(code + self.partial & WORD, 77) if self.bit else code for code in self.codes]
        self.at = [self._bucket(code) for code in codes]

    def _find_match(self) -> None:
        n = len(self.history)
        if self.match_length and self.history[self.match_at] == self.history[-1]:
            self.match_at, self.match_length = self.match_at + 1, min(self.match_length + 1, 65535)
        else:
            self.match_length = 0
        if n < MATCH_LEAST:
            return
        slot = hashed(self.recent << 24 & WORD, 99) >> 64 - MATCH_BITS
        if not self.match_length and (at := self.positions.get(slot, 0)):
            self.match_at, most = at, min(at, 40)
            while self.match_length < most and self.history[at - 1 - self.match_length] == self.history[n - 1 - self.match_length]:  # fmt: skip
                self.match_length += 1
        self.positions[slot] = n

    def _start_byte(self) -> None:
        recent, in_word = self.recent, self.word or self.recent & 255
        self.codes = [hashed(recent & (1 << 8 * n) - 1, n) for n in ORDERS]
        self.codes += [hashed(in_word, 20), hashed(in_word, self.word_before + 21)]
        self.codes += [hashed(self.word + (recent & 255) & WORD, 22)]
        self.codes += [hashed(recent & 0xFFFF00, 23), hashed(recent & 0xFFFF0000, 24)]
        self.codes += [hashed(recent & 0xF0F0F0F0FF, 25)]
        if self.match_length:
            self.predicted = self.history[self.match_at] | 256
        self._find_buckets()

    def predict(self) -> int:
        """Return P(the next bit is 1) · 65536."""
        bit, partial, c1, x = self.bit, self.partial, self.recent & 255, np.zeros(INPUTS, F)
        level, order = 1 << (bit & 3), 0
        self.nodes = [bucket.nodes[level - 1 + (partial & level - 1)] for bucket in self.at]  # (1)
        self.maps = list[tuple[Adaptive, Adaptive]]()
        for i, (counts, last) in enumerate(self.nodes):
            self.maps.append((self.by_counts[i][counts], self.by_last[i][last]))
            if last:
                order = i + 1 if i < len(ORDERS) else order
                x[2 * i : 2 * i + 2] = [self.stretch[each.p >> 10] for each in self.maps[-1]]  # (3)
        x[26] = self.stretch[self.direct.get((partial,), 32768) >> 4]
        x[27] = self.stretch[self.direct.get((c1, partial), 32768) >> 4]
        match = self.match_length > 0 and self.predicted >> 8 - bit == partial
        length = 0 if not match else min(self.match_length, 15 + self.match_length // 16, 31)
        self.match_map = self.by_length[length][self.predicted >> 7 - bit & 1] if match else None
        if self.match_map:
            x[28] = self.stretch[self.match_map.p >> 10]
        sure = 0
        if self.network:
            x[29] = self._stretch_of(self.network)
            sure = 1 + int(min(max(x[29] * F(1.5) + F(15), F(0)), F(30)))
        x[30] = F(0.5)
        if self.ngrams:
            x[31] = self._stretch_of(self.ngrams)
        groups = (partial, c1, length * 8 + bit, sure * 8 + bit, (order * 8 + bit) * 2 + (self.word != 0))
        self.x = x
        self.chosen = [self.weights.setdefault(key, self.start.copy()) for key in enumerate(groups)]
        return self._mix()

    def _mix(self) -> int:
        self.d, self.p = list[np.float32](), list[int]()
        for w in self.chosen:
            sums = np.zeros(8, F)
            for i in range(0, INPUTS, 8):
                sums += w[i : i + 8] * self.x[i : i + 8]
            four = sums[:4] + sums[4:]
            dot = (four[0] + four[1]) + (four[2] + four[3])  # (4)
            self.d.append(bounded(dot))
            self.p.append(self.squash(dot))
        self.v = self.outer.setdefault(self.partial, np.full(SETS, 0.2, F))
        d = F(0)
        for v, each in zip(self.v, self.d, strict=True):
            d += v * each  # (5)
        self.mixed, place = self.squash(d), bounded(d) + F(16)
        low, total = int(place), 2 * self.mixed
        share = int((place - F(low)) * F(4096))
        contexts = ((self.recent & 255) << 8 | self.partial, hashed((self.recent & 0xFFFFFF) << 8 | self.partial, 5) >> 48)  # fmt: skip
        self.refined = list[tuple[int, int, int]]()
        for k, context in enumerate(contexts):
            keys = [(k, context, low), (k, context, low + 1)]
            a, b = (self.refinements.setdefault(key, self.squash(F(key[2] - 16))) for key in keys)
            total += a * (4096 - share) + b * share >> 12  # (6)
            self.refined.append(keys[share >= 2048])
        return min(max(total // 4, 1), 65535)

    def update(self, y: int) -> None:
        """Learn the bit that was predicted."""
        self.steps += 1
        rate = max(F(0.002), F(0.02) * F(4000) / (F(4000) + F(self.steps)))
        outer = F(0.0015) * (F(y) - F(self.mixed) * F(1 / 65536))
        for j, w in enumerate(self.chosen):
            w += rate * (F(y) - F(self.p[j]) * F(1 / 65536)) * self.x
            self.v[j] += outer * self.d[j]
        for refined in self.refined:
            self.refinements[refined] += (65535 * y) - self.refinements[refined] >> 4
        for i, node in enumerate(self.nodes):
            for each in self.maps[i]:
                each.adapt(y)
            last = max(node[1], 1) << 1 | y
            node[:] = self.next[node[0]][y], last if last < 256 else last & 127 | 128
        for key in ((self.partial,), (self.recent & 255, self.partial)):
            p = self.direct.get(key, 32768)
            self.direct[key] = p + (65535 * y - p >> 4)
        if self.match_map:
            self.match_map.adapt(y)
        self.partial, self.bit = self.partial << 1 | y, self.bit + 1
        if self.bit == 8:
            self._end_byte(self.partial & 255)
        elif self.bit == 4:
            self._find_buckets()

    def _end_byte(self, byte: int) -> None:
        self.history.append(byte)
        self.recent = (self.recent << 8 | byte) & WORD
        lower = byte + 32 if 65 <= byte <= 90 else byte
        if 97 <= lower <= 122 or byte >= 128:
            self.word = hashed(self.word + lower & WORD, 30)
        elif self.word:
            self.word_before, self.word = self.word, 0
        self.partial, self.bit = 1, 0
        self._find_match()
        self._start_byte()


class ByteEncoder:
    """Codes bytes; see `unspool.kernels.native.ByteEncoder`."""

    def __init__(self, bits: int, stretch: Floats, squash: Halves, powers: Words, weights: Floats) -> None:
        self._model, self._out = ByteModel(bits, stretch, squash, powers, weights), bytearray()
        self._low, self._high = 0, 0xFFFFFFFF

    def encode(self, data: bytes, logits: Floats | None = None, sums: Sums | None = None) -> None:
        """Code bytes, with the network's logits of each, (n, 256), with cumulative frequencies, (n, 2, 257), or without."""
        for i, byte in enumerate(data):
            if sums is None:
                self._model.set_network(None if logits is None else logits[i])
            else:
                self._model.set_sums(sums[i])
            for k in range(7, -1, -1):
                y = byte >> k & 1
                middle = self._low + ((self._high - self._low) * self._model.predict() >> 16)
                self._low, self._high = (self._low, middle) if y else (middle + 1, self._high)
                while self._low >> 24 == self._high >> 24:
                    self._out.append(self._low >> 24)
                    self._low, self._high = self._low << 8 & 0xFFFFFFFF, self._high << 8 & 0xFFFFFFFF | 255
                self._model.update(y)

    @property
    def size(self) -> int:
        """The number of bytes that are ready."""
        return len(self._out)

    def finish(self) -> bytes:
        """Return all bytes, the last ones as short as possible."""
        for length in range(5):
            step = 1 << 32 - 8 * length
            number = -(-self._low // step) * step
            if number <= self._high:
                self._out += number.to_bytes(4, "big")[:length]
                break
        return bytes(self._out).rstrip(b"\0")


class ByteDecoder:
    """Decodes bytes; see `unspool.kernels.native.ByteDecoder`."""

    def __init__(
        self, bits: int, stretch: Floats, squash: Halves, powers: Words, weights: Floats, payload: bytes
    ) -> None:
        self._model, self._rest = ByteModel(bits, stretch, squash, powers, weights), iter(payload)
        self._low, self._high, self._number = 0, 0xFFFFFFFF, 0
        for _ in range(4):
            self._number = self._number << 8 | next(self._rest, 0)

    def decode(self, n: int, logits: Floats | None = None, sums: Sums | None = None) -> bytes:
        """Return the next n bytes; with logits (1, 256) or sums (1, 2, 257), the next one."""
        found = bytearray()
        for _ in range(n):
            if sums is None:
                self._model.set_network(None if logits is None else logits[0])
            else:
                self._model.set_sums(sums[0])
            byte = 0
            for _ in range(8):
                middle = self._low + ((self._high - self._low) * self._model.predict() >> 16)
                y = int(self._number <= middle)
                self._low, self._high = (self._low, middle) if y else (middle + 1, self._high)
                while self._low >> 24 == self._high >> 24:
                    self._low, self._high = self._low << 8 & 0xFFFFFFFF, self._high << 8 & 0xFFFFFFFF | 255
                    self._number = (self._number << 8 | next(self._rest, 0)) & 0xFFFFFFFF
                self._model.update(y)
                byte = byte << 1 | y
            found.append(byte)
        return bytes(found)
