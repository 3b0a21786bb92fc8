"""A range coder: a sequence of choices becomes one number, -log2 P bits long, and comes back from it.

A choice is an interval [start, start + size) of 0 … total: it has the probability P = size / total. The coder holds
an interval of numbers, [low, low + width), and each choice takes its share of what is left:

    r     = ⌊width / total⌋                                                              (1)
    low   ← low + r · start                                                              (2)
    width ← r · size                                                                     (3)

so that after all choices any number in [low, low + width) tells them all. While the width is below 2^56 the first
byte of low is as good as certain: it goes out, and 2^8 as much room is there again. "As good as", because a later
(2) can still carry into it; then the bytes that went out are counted up by one. All numbers are whole ones: nothing
is rounded twice, and nothing depends on a machine. What is lost is the remainder of (1): at most total / 2^56 of
the width at each choice.

>>> writer = Encoder()
>>> choices = [(3, 5, 9), (0, 1, 2), (7, 1, 1000)]
>>> for start, size, total in choices:
...     writer.put(start, size, total)
...
>>> content = writer.finish()
>>> reader = Decoder(content)
>>> for start, size, total in choices:
...     assert start <= reader.point(total) < start + size
...     reader.take(start, size)
...
>>> len(content)  # log2 of 9/5 · 2 · 1000 is 11.8 bits
2
"""

from unspool.errors import FileError

BITS = 64
WHOLE = 1 << BITS
LEAST = WHOLE >> 8
"""The width is never below this when a choice is made."""


class Encoder:
    """Takes choices, gives bytes."""

    def __init__(self) -> None:
        self._low, self._width = 0, WHOLE
        self._out = bytearray()

    def put(self, start: int, size: int, total: int) -> None:
        """Code one choice: 0 <= start, 1 <= size, start + size <= total."""
        share = self._width // total  # (1)
        self._low += share * start  # (2)
        self._width = share * size  # (3)
        if self._low >= WHOLE:
            self._low -= WHOLE
            self._carry()
        while self._width < LEAST:
            self._out.append(self._low >> BITS - 8)
            self._low = (self._low << 8) % WHOLE
            self._width <<= 8

    def finish(self) -> bytes:
        """Give the bytes: the shortest that lie in the interval, where zeros follow beyond the last one."""
        for kept in range(0, BITS + 8, 8):  # bits of low that are written
            step = WHOLE >> kept
            number = -(-self._low // step) * step
            if number < self._low + self._width:
                break
        if number >= WHOLE:
            number -= WHOLE
            self._carry()
        self._out += number.to_bytes(BITS // 8, "big")
        return bytes(self._out).rstrip(b"\0")

    def _carry(self) -> None:
        at = len(self._out) - 1
        while self._out[at] == 255:
            self._out[at] = 0
            at -= 1
        self._out[at] += 1


class Decoder:
    """Takes bytes, gives choices: `point` says where in 0 … total the choice lies, `take` goes on to the next."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, BITS // 8
        self._number = int.from_bytes(content[: self._at].ljust(self._at, b"\0"), "big")  # less low
        self._width, self._share = WHOLE, 0

    def point(self, total: int) -> int:
        """Give a number that lies in the interval of the next choice."""
        self._share = self._width // total if total else 0  # (1)
        point = self._number // self._share if self._share else total
        if point >= total:
            raise FileError("damaged: what is coded cannot come from any choice")
        return point

    def take(self, start: int, size: int) -> None:
        """Take the choice that the point lies in."""
        self._number -= self._share * start  # (2)
        self._width = self._share * size  # (3)
        while self._width < LEAST:
            byte = self._content[self._at] if self._at < len(self._content) else 0
            self._number = self._number << 8 | byte
            self._at += 1
            self._width <<= 8
