"""Split bytes into tokens without loss, and code tokens outside the vocabulary as literals.

    bytes ─▶ text ─▶ tokens       UTF-8; each invalid byte becomes one of U+DC80 … U+DCFF

`tokenize` checks that joining the tokens restores the bytes.

A token without an id is coded as <unk>, then character by character. A character is a known one, in proportion to its
count in earlier literals, or a new one:

    P(seen n times) = n / (N + D + 1)      P(new) = (D + 1) / (N + D + 1) · 1 / 1,114,113

with N characters so far, D of them distinct. (1,114,112 code points, and an end mark for tokens of several characters.)

>>> from unspool.data.tokens.registry import make_tokenizer
>>> tokenize(make_tokenizer("char"), b"a\\xff\\xc3\\xa9")
['a', '\\udcff', 'é']
>>> make_tokenizer("char").decode_bytes(_)
b'a\\xff\\xc3\\xa9'
"""

from collections.abc import Iterator

from unspool.compress.range_coder import Decoder
from unspool.data.tokens.registry import Tokenizer
from unspool.errors import FileError, InputError

Interval = tuple[int, int, int]
"""(start, size, total): a choice of probability size / total."""
END = 0x110000


def tokenize(tokenizer: Tokenizer, data: bytes) -> list[str]:
    """Return the tokens of bytes; raise InputError if joining them would not restore the bytes."""
    if not tokenizer.lossless:
        raise InputError(
            f"tokens of the kind {tokenizer.kind!r} lose spaces, so the file could not be restored; "
            "use a run that was trained with tokens='char' or 'byte'"
        )
    tokens = tokenizer.encode_bytes(data)
    if tokenizer.decode_bytes(tokens) != data:
        raise InputError(
            f"tokens of the kind {tokenizer.kind!r} cannot restore this file; "
            "use a run that was trained with tokens='char' or 'byte'"
        )
    return tokens


def byte_widths(tokenizer: Tokenizer, tokens: list[str]) -> list[int]:
    """Return the number of bytes of each token."""
    known = {token: len(tokenizer.decode_bytes([token])) for token in set(tokens)}
    return [known[token] for token in tokens]


class Counts:
    """Counts of items with cumulative sums in a Fenwick tree: all operations in logarithmic time.

    >>> counts = Counts()
    >>> for index in (0, 1, 1, 2):
    ...     counts.add(index)
    ...
    >>> len(counts), counts.total, counts.before(2), [counts.at(point) for point in range(4)]
    (3, 4, 3, [0, 1, 1, 2])
    """

    def __init__(self) -> None:
        self._sums = [0]  # of items i - (i & -i) … i - 1
        self.total = 0

    def __len__(self) -> int:
        return len(self._sums) - 1

    def add(self, index: int) -> None:
        """Count an item; the next index adds a new one."""
        i = index + 1
        if i == len(self._sums):
            self._sums.append(self.before(index) - self.before(i - (i & -i)))
        self.total += 1
        while i < len(self._sums):
            self._sums[i] += 1
            i += i & -i

    def before(self, index: int) -> int:
        """Return the sum of the counts before an index."""
        found = 0
        while index:
            found += self._sums[index]
            index &= index - 1
        return found

    def at(self, point: int) -> int:
        """Return the index whose interval of 0 … total contains a point."""
        index, step = 0, 1 << len(self).bit_length()
        while step := step >> 1:
            if index + step <= len(self) and self._sums[index + step] <= point:
                index += step
                point -= self._sums[index]
        return index


class LiteralCoder:
    """Adaptive model of the characters of literals; encoder and decoder update it identically."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._one_symbol = tokenizer.one_symbol
        """Whether every token is one character, which needs no end mark."""
        self._index: dict[int, int] = {}
        self._codes_seen = list[int]()
        self._counts = Counts()

    def intervals(self, token: str) -> Iterator[Interval]:
        """Yield the choices that code a token."""
        for code in self._codes(token):
            index, N, D = self._index.get(code), self._counts.total, len(self._counts)
            if index is None:
                yield N, D + 1, N + D + 1
                yield code, 1, END + 1
            else:
                yield *self._interval(index), N + D + 1
            self._count(code)

    def read(self, decoder: Decoder, most: int) -> str:
        """Decode a token of at most `most` characters."""
        codes = [self._read(decoder)]
        while not self._one_symbol and codes[-1] != END:
            if len(codes) > most:
                raise FileError("damaged: a token does not end; restore it from a copy")
            codes.append(self._read(decoder))
        return "".join(chr(code) for code in codes if code != END)

    def _read(self, decoder: Decoder) -> int:
        N, D = self._counts.total, len(self._counts)
        point = decoder.point(N + D + 1)
        if point < N:
            index = self._counts.at(point)
            decoder.take(*self._interval(index))
            code = self._codes_seen[index]
        else:
            decoder.take(N, D + 1)
            code = decoder.point(END + 1)
            decoder.take(code, 1)
        self._count(code)
        return code

    def _interval(self, index: int) -> tuple[int, int]:
        """Return start and size of the interval of a character."""
        start = self._counts.before(index)
        return start, self._counts.before(index + 1) - start

    def _codes(self, token: str) -> list[int]:
        return [ord(character) for character in token] + ([] if self._one_symbol else [END])

    def _count(self, code: int) -> None:
        index = self._index.setdefault(code, len(self._counts))
        if index == len(self._counts):
            self._codes_seen.append(code)
        self._counts.add(index)
