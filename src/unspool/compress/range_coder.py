"""A range coder: code a sequence of choices as one number of about -log2 P bits, and decode it.

A choice is an interval [start, start + size) of 0 … total: it has the probability P = size / total. The coder holds
an interval of numbers, [low, low + width), and each choice narrows it:

    r     = ⌊width / total⌋                                                              (1)
    low   ← low + r · start                                                              (2)
    width ← r · size                                                                     (3)

so any number in the final interval identifies all choices. While the width is below 2^56, the first byte of low is written
and both are scaled by 2^8. A later (2) can still carry into that byte; then the written bytes are incremented. All numbers
are integers, so results do not depend on the machine. The loss is the remainder of (1): at most total / 2^56 of the width
per choice.

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
"""Lower bound of the width before each choice."""


class Encoder:
    """Codes choices as bytes."""

    def __init__(self) -> None:
        self._low, self._width = 0, WHOLE
        self._out = bytearray()

    def put(self, start: int, size: int, total: int) -> None:
        """Code one choice: 0 <= start, 1 <= size, start + size <= total."""
        unit = self._width // total  # (1)
        self._low += unit * start  # (2)
        self._width = unit * size  # (3)
        if self._low >= WHOLE:
            self._low -= WHOLE
            self._carry()
        while self._width < LEAST:
            self._out.append(self._low >> BITS - 8)
            self._low = (self._low << 8) % WHOLE
            self._width <<= 8

    def finish(self) -> bytes:
        """Return the shortest bytes in the interval, if zeros follow the last one."""
        for bits in range(0, BITS + 8, 8):  # bits of low that are written
            step = WHOLE >> bits
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
    """Decodes choices from bytes: `point` locates the choice in 0 … total, `take` advances to the next."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, BITS // 8
        self._number = int.from_bytes(content[: self._at].ljust(self._at, b"\0"), "big")  # minus low
        self._width, self._unit = WHOLE, 0

    def point(self, total: int) -> int:
        """Return a number in the interval of the next choice."""
        self._unit = self._width // total if total else 0  # (1)
        point = self._number // self._unit if self._unit else total
        if point >= total:
            raise FileError("damaged: its code matches no choice; restore it from a copy")
        return point

    def take(self, start: int, size: int) -> None:
        """Advance past the choice [start, start + size) that contains the point."""
        self._number -= self._unit * start  # (2)
        self._width = self._unit * size  # (3)
        while self._width < LEAST:
            byte = self._content[self._at] if self._at < len(self._content) else 0
            self._number = self._number << 8 | byte
            self._at += 1
            self._width <<= 8
