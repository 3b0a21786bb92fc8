"""Buffer of provisional ids: in memory if they are few, in a file if they are many.

    append, append, …  ─▶  counts of a region  ─▶  translate all  ─▶  one array of ids

A file is read and written in blocks and memory-mapped at the end, so texts may be larger than memory.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from unspool.errors import FileError
from unspool.kernels.arrays import Codes, Ids, Whole
from unspool.storage.files import why

IN_MEMORY = 1 << 24
"""Most ids that stay in memory."""
BLOCK = 1 << 18


class IdBuffer:
    """A long sequence of provisional ids.

    >>> buffer = IdBuffer()
    >>> buffer.append(np.array([7, 7, 9], np.uint8))
    >>> len(buffer), buffer.counts(0, 3)[7]
    (3, np.int64(2))
    >>> buffer.translate(np.arange(10, dtype=np.int32) * 10)
    array([70, 70, 90], dtype=int32)
    """

    def __init__(self, path: Path | None = None, in_memory: int = IN_MEMORY) -> None:
        self._path = path
        self._in_memory = in_memory
        self._blocks: list[Codes] = []
        self._file: IO[bytes] | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, block: Codes) -> None:
        """Append ids."""
        self._length += len(block)
        if self._file is None:
            self._blocks.append(block)
            if self._length > self._in_memory:
                with self._reported():
                    self._spill()
        else:
            with self._reported():
                self._file.write(block.astype("<u4").tobytes())

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Convert OSError to FileError."""
        try:
            yield
        except OSError as error:
            target = self._path or f"a temporary file in {tempfile.gettempdir()}"
            raise FileError(f"{target}: cannot be written: {why(error)}") from error

    def at(self, position: int) -> int:
        """Return the provisional id at a position."""
        return int(next(iter(self._read(position, position + 1)))[0])

    def first_positions(self, wanted: Whole, stop: int) -> Whole:
        """Return the first position of each wanted provisional id; all of them must occur before ``stop``."""
        first = np.zeros(int(wanted.max(initial=-1)) + 1, np.int64)
        missing = np.zeros(len(first) + 1, np.bool_)
        missing[wanted] = True
        at = 0
        for block in self._read(0, stop):
            hits = np.flatnonzero(missing.take(block, mode="clip"))[::-1]
            first[block[hits]] = at + hits  # in reverse order, so that the first position stays
            missing[block[hits]] = False
            at += len(block)
        return first[wanted]

    def counts(self, start: int, stop: int) -> Whole:
        """Return the count of each provisional id between two positions."""
        total = np.zeros(0, np.int64)
        for block in self._read(start, stop):
            counts = np.bincount(block, minlength=len(total))
            counts[: len(total)] += total
            total = counts
        return total

    def reach(self, values: Whole, amount: int) -> int:
        """Return how many leading ids it takes until the sum of their values reaches an amount.

        >>> buffer = IdBuffer()
        >>> buffer.append(np.array([0, 1, 0, 1], np.uint8))
        >>> buffer.reach(np.array([1, 5]), 7)
        3
        """
        at = 0
        for block in self._read(0, self._length):
            sums = np.cumsum(values[block])
            if len(sums) and sums[-1] >= amount:
                return at + int(np.searchsorted(sums, amount)) + (amount > 0)
            amount -= int(sums[-1]) if len(sums) else 0
            at += len(block)
        return at

    def translate(self, table: Ids) -> Ids:
        """Return all ids as one int32 array: each provisional id replaced by its entry in the table."""
        if self._file is not None:
            with self._reported():
                return self._translate_file(self._file, table)
        ids = np.empty(self._length, np.int32)
        at = 0
        for block in self._read(0, self._length):
            table.take(block, out=ids[at : at + len(block)], mode="clip")
            at += len(block)
        if self._path is not None:
            ids.astype("<i4", copy=False).tofile(self._path)
        return ids

    def _translate_file(self, file: IO[bytes], table: Ids) -> Ids:
        at = 0
        for block in self._read(0, self._length):
            file.seek(4 * at)
            file.write(table.take(block).astype("<i4", copy=False).tobytes())
            at += len(block)
        file.flush()
        ids = np.memmap(file, "<i4", "r", shape=(self._length,))
        file.close()  # the memory map stays valid
        return ids

    def _spill(self) -> None:
        # Without a path the file has no name; it is deleted with the last array that maps it.
        self._file = tempfile.TemporaryFile() if self._path is None else self._path.open("w+b")  # noqa: SIM115
        for block in self._blocks:
            self._file.write(block.astype("<u4").tobytes())
        self._blocks.clear()

    def _read(self, start: int, stop: int) -> Iterator[Codes]:
        if self._file is not None:
            for at in range(start, stop, BLOCK):
                self._file.seek(4 * at)
                yield np.frombuffer(self._file.read(4 * min(BLOCK, stop - at)), "<u4")
            return
        at = 0
        for block in self._blocks:
            if at < stop and at + len(block) > start:
                yield block[max(0, start - at) : stop - at]
            at += len(block)
