"""Any bytes as tokens, and back to the byte; and how a token that the vocabulary lacks is spelled out.

    bytes ─▶ text ─▶ tokens       UTF-8; a byte that is none becomes one of U+DC80 … U+DCFF, and comes back as it was

Byte tokens take the bytes as they are. Whatever the tokens, joining them must give the bytes back: it is checked.

A token without an id is coded as <unk>, and then character by character. Each is one that was spelled before, as often
as it was, or a new one, as often as new ones came:

    P(seen n times) = n / (N + D + 1)      P(new) = (D + 1) / (N + D + 1) · 1 / 1,114,113

with N characters so far, D of them different. (1,114,112 code points, and a sign for the end of a longer token.)

>>> from unspool.data.tokens.registry import make_tokenizer
>>> cut(make_tokenizer("char"), b"a\\xff\\xc3\\xa9")
['a', '\\udcff', 'é']
>>> make_tokenizer("char").decode_bytes(_)
b'a\\xff\\xc3\\xa9'
"""

from collections.abc import Iterator

from unspool.compress.range_coder import Decoder
from unspool.data.tokens.registry import Tokenizer
from unspool.errors import FileError, InputError

Interval = tuple[int, int, int]
"""(start, size, total): a choice with the probability size / total."""
END = 0x110000


def cut(tokenizer: Tokenizer, data: bytes) -> list[str]:
    """Cut bytes into tokens from which they can be put together again; refuse tokens that lose something."""
    if not tokenizer.lossless:
        raise InputError(
            f"tokens of the kind {tokenizer.kind!r} do not keep what stands between them, so no file would come "
            "back as it was; use a run that was trained with tokens='char' or 'byte'"
        )
    tokens = tokenizer.encode_bytes(data)
    if tokenizer.decode_bytes(tokens) != data:
        raise InputError(
            f"tokens of the kind {tokenizer.kind!r} do not give this file back as it was; "
            "use a run that was trained with tokens='char' or 'byte'"
        )
    return tokens


def widths(tokenizer: Tokenizer, tokens: list[str]) -> list[int]:
    """Say how many bytes each token stands for."""
    known = {token: len(tokenizer.decode_bytes([token])) for token in set(tokens)}
    return [known[token] for token in tokens]


class Counts:
    """How often each of some things came, their sums in a tree (Fenwick 1994): all in the logarithm of their number.

    >>> counts = Counts()
    >>> for place in (0, 1, 1, 2):
    ...     counts.add(place)
    ...
    >>> len(counts), counts.total, counts.before(2), [counts.at(point) for point in range(4)]
    (3, 4, 3, [0, 1, 1, 2])
    """

    def __init__(self) -> None:
        self._sums = [0]  # of places i - (i & -i) … i - 1
        self.total = 0

    def __len__(self) -> int:
        return len(self._sums) - 1

    def add(self, place: int) -> None:
        """Count one of the things, or a new one, which is the next."""
        i = place + 1
        if i == len(self._sums):
            self._sums.append(self.before(place) - self.before(i - (i & -i)))
        self.total += 1
        while i < len(self._sums):
            self._sums[i] += 1
            i += i & -i

    def before(self, place: int) -> int:
        """Give the sum of all before a place."""
        found = 0
        while place:
            found += self._sums[place]
            place &= place - 1
        return found

    def at(self, point: int) -> int:
        """Give the place in whose share of 0 … total a point lies."""
        place, step = 0, 1 << len(self).bit_length()
        while step := step >> 1:
            if place + step <= len(self) and self._sums[place + step] <= point:
                place += step
                point -= self._sums[place]
        return place


class Spelling:
    """Learns which characters are spelled; both sides have one, and both learn the same."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._of_one = tokenizer.one_symbol
        """Whether every token is one character, so that its end need not be said."""
        self._place: dict[int, int] = {}
        self._codes_seen = list[int]()
        self._counts = Counts()

    def intervals(self, token: str) -> Iterator[Interval]:
        """Give the choices that spell a token."""
        for code in self._codes(token):
            place, N, D = self._place.get(code), self._counts.total, len(self._counts)
            if place is None:
                yield N, D + 1, N + D + 1
                yield code, 1, END + 1
            else:
                yield *self._share(place), N + D + 1
            self._count(code)

    def read(self, decoder: Decoder, most: int) -> str:
        """Read a token that was spelled, of at most so many characters."""
        codes = [self._read(decoder)]
        while not self._of_one and codes[-1] != END:
            if len(codes) > most:
                raise FileError("damaged: a token does not end; take it from a copy")
            codes.append(self._read(decoder))
        return "".join(chr(code) for code in codes if code != END)

    def _read(self, decoder: Decoder) -> int:
        N, D = self._counts.total, len(self._counts)
        point = decoder.point(N + D + 1)
        if point < N:
            place = self._counts.at(point)
            decoder.take(*self._share(place))
            code = self._codes_seen[place]
        else:
            decoder.take(N, D + 1)
            code = decoder.point(END + 1)
            decoder.take(code, 1)
        self._count(code)
        return code

    def _share(self, place: int) -> tuple[int, int]:
        """Give where the share of a character begins, and how large it is."""
        start = self._counts.before(place)
        return start, self._counts.before(place + 1) - start

    def _codes(self, token: str) -> list[int]:
        return [ord(character) for character in token] + ([] if self._of_one else [END])

    def _count(self, code: int) -> None:
        place = self._place.setdefault(code, len(self._counts))
        if place == len(self._counts):
            self._codes_seen.append(code)
        self._counts.add(place)
