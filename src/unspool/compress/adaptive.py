"""Compress bytes with a model that starts from nothing and learns from them as it reads.

    bytes so far ─┬▶ counts after 13 contexts, a match ─┐
                  └▶ a GRU, one update every 16 bytes ──┴▶ P(next bit) ─▶ arithmetic coder                compress

The decoder computes the same probabilities from the bytes that it has decoded, and learns the same: to the bit, on every
machine. The counts and their mixing are those of `unspool.kernels.reference_bytes`. The network is a GRU over bytes with parameters

    U ~ ±1/2, V ~ ±1/20, W ~ ±√(3 / H), evenly from the bits of PCG64, biases 0                              (1)

updated after every segment of S = 16 bytes by RMSprop, at the rate

    η(n) = 0.005 / √(1 + n / 1000)     after n updates                                                      (2)

Larger networks are better and slower, so H depends on the length of the file. On bytes that are not like text the network may
not help: the encoder codes the first bytes with and without it, and continues with what was smaller in their second half.

>>> data = b"she sells sea shells by the sea shore; " * 30
>>> coded = encode_adaptive(data)
>>> len(data), len(coded.payload), coded.hidden
(1170, 29, 0)
>>> decode_adaptive(coded.payload, len(data), coded.hidden) == data
True
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.cells.gru import GRU
from unspool.compress.coding import OnProgress
from unspool.compress.next_byte import RunReader
from unspool.errors import Diverged
from unspool.evaluation.language import no_progress
from unspool.kernels import byte_tables, native
from unspool.kernels.arrays import Floats
from unspool.kernels.machine import set_alone
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import Parameters, shapes_of
from unspool.optimisers.rmsprop import RMSprop
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning, LearningReader

RATE, DECAY, SEGMENT = 5e-3, 1e-3, 16
HEAD = 1 << 17
"""Bytes that are coded with and without the network."""
HEADER = 32
"""About how many bytes more the header of a file has that needs a run."""
BLOCK = 1 << 12
"""Bytes between calls of `on_progress`; a multiple of SEGMENT."""
SIZES = ((1 << 11, 0), (1 << 19, 128), (1 << 21, 192), (1 << 24, 128))
"""Hidden units of the network for files of up to so many bytes; 64 for larger files."""
LARGEST = 1024
"""The most hidden units that a file may ask for."""
FEWEST_BITS, MOST_BITS, BUCKET = 12, 23, 32
"""log2 of the number of buckets of counts; bytes of each."""
LONGEST = (1 << 32) - 1
"""The longest file, in bytes."""
SMALL = 256
"""The most hidden units of a network that learns on one thread."""
MAPS = 12 << 20
"""Bytes of the maps and weights beside the counts."""


NETWORK, NGRAMS = 29, 31
"""The inputs of the mixer that a network and n-grams have."""


def first_weights(run: bool = False, ngrams: bool = False) -> Floats:
    """Return the weights that the mixer starts with: a run has been trained, counts have not."""
    weights = np.full(32, 0.05 if run else 0.15, np.float32)
    if run:
        weights[[NETWORK, NGRAMS]] = (0.4, 0.5) if ngrams else (0.9, 0.0)
    return weights


class DecayingRMSprop(RMSprop):
    """RMSprop whose learning rate falls by (2)."""

    def update(self, parameters: Parameters, g: Floats, *, rate: float = 1.0) -> float:
        """Update the parameters in place; return the gradient's norm before clipping."""
        return super().update(parameters, g, rate=rate / math.sqrt(1.0 + DECAY * self.step))


class ByteReader(LearningReader):
    """A network over bytes that starts with (1) and learns while it reads."""

    def __init__(self, hidden: int) -> None:
        config = ModelConfig(cell=GRU.name, inputs=256, outputs=256, hidden=hidden)
        parameters = Parameters(shapes_of(config))
        bounds = {"layer0.U": 0.5, "V": 0.05, "layer0.W": math.sqrt(3.0 / hidden)}
        for name, bound in bounds.items():
            value = parameters[name]
            bits = np.random.PCG64(hidden).random_raw(value.size) >> np.uint64(40)  # 24 bits
            value[:] = (bound * (bits.astype(np.float64) / 2**23 - 1.0)).reshape(value.shape)
        super().__init__(Model(config, parameters), Learning(RATE, SEGMENT))
        self._optimiser = DecayingRMSprop(learning_rate=RATE, clip=5.0, beta2=0.9999)
        self.log_prob(np.zeros(1, np.int32))  # so that the first byte has a predecessor

    def logits_of(self, block: bytes) -> Iterator[tuple[bytes, Floats]]:
        """Read more bytes; yield them by segments, with the logits (n, 256) of each, computed before the update on them."""
        begin = 0
        for window in self.windows(np.frombuffer(block, np.uint8).astype(np.int32)):
            yield block[begin : begin + len(window.y)], window.logits()
            begin += len(window.y)


@contextmanager
def few_threads(hidden: int = 0) -> Iterator[None]:
    """Compute in this thread alone within: one row and a small network give a second one too little to do."""
    set_alone(hidden <= SMALL)
    try:
        yield
    finally:
        set_alone(False)


def hidden_units(length: int) -> int:
    """Return the hidden units of the network for a file of this many bytes; 0: no network."""
    return next((hidden for most, hidden in SIZES if length <= most), 64)


def table_bits(length: int) -> int:
    """Return log2 of the number of buckets of counts for a file of this many bytes.

    >>> [(length, BUCKET << table_bits(length)) for length in (0, 10**6, 10**9)]
    [(0, 131072), (1000000, 134217728), (1000000000, 268435456)]
    """
    return min(max(max(length - 1, 0).bit_length() + 2, FEWEST_BITS), MOST_BITS)


def memory_of(length: int, hidden: int) -> int:
    """Return about how many bytes of memory the model takes, besides the file: counts, maps of the mixer, parameters and gradients."""
    parameters = hidden * (3 * hidden + 4 * 256)
    return (BUCKET << table_bits(length)) + MAPS + 16 * parameters


def tables(weights: Floats | None = None) -> tuple[Floats, NDArray[np.uint16], NDArray[np.uint32], Floats]:
    """Return the tables that the native coders take, the last of them the first weights of the mixer."""
    weights = first_weights() if weights is None else weights
    return byte_tables.stretch(), byte_tables.squash(), byte_tables.powers(), weights


@dataclass(frozen=True)
class Run:
    """The network of a run, how it learns, and whether the n-grams of its training text are used."""

    model: TextModel
    learning: Learning
    ngrams: bool

    @property
    def hidden(self) -> int:
        """The hidden units of a layer."""
        return self.model.model.config.hidden

    def reader(self) -> RunReader:
        """Return a reader that predicts bytes."""
        return RunReader(self.model, self.learning, self.model.require_mixture() if self.ngrams else None)


class Coded(NamedTuple):
    """Coded bytes and what predicted them: a run, or else a network of `hidden` units that started from nothing; 0: counts alone."""

    payload: bytes
    hidden: int
    run: Run | None


class _Candidate:
    """A way to code a file: counts alone, with a network of `hidden` units, or with a run."""

    def __init__(self, length: int, hidden: int = 0, run: Run | None = None) -> None:
        self.hidden, self.run, self.half = hidden, run, 0
        weights = None if run is None else first_weights(True, run.ngrams)
        self.encoder = native.ByteEncoder(table_bits(length), *tables(weights))
        self._reader = run.reader() if run else ByteReader(hidden) if hidden else None

    def encode(self, block: bytes) -> None:
        if isinstance(self._reader, RunReader):
            for part, sums in self._reader.sums_of(block):
                self.encoder.encode(part, None, sums)
        elif self._reader is not None:
            for part, logits in self._reader.logits_of(block):
                self.encoder.encode(part, logits)
        else:
            self.encoder.encode(block)

    def finish(self) -> Coded:
        if isinstance(self._reader, RunReader):
            for part, sums in self._reader.rest():
                self.encoder.encode(part, None, sums)
        return Coded(self.encoder.finish(), self.hidden, self.run)


def encode_adaptive(data: bytes, run: Run | None = None, *, on_progress: OnProgress = no_progress) -> Coded:
    """Code bytes; a run is used where it makes them smaller."""
    try:
        with few_threads(0 if run is None else run.hidden):
            return _encode(data, run, on_progress)
    except Diverged:
        if run is None:
            raise
        return encode_adaptive(data, on_progress=on_progress)


def _encode(data: bytes, run: Run | None, on_progress: OnProgress) -> Coded:
    n = len(data)
    ways = [_Candidate(n, hidden) for hidden in sorted({0, hidden_units(n)})]
    ways += [] if run is None else [_Candidate(n, run=run)]
    for begin in range(0, n, BLOCK):
        for each in ways:
            each.encode(data[begin : begin + BLOCK])
            if begin + BLOCK == HEAD // 2:
                each.half = each.encoder.size
        if begin + BLOCK == HEAD:
            ways = [min(ways, key=lambda each: each.encoder.size - each.half)]
        on_progress(min(begin + BLOCK, n), n)
    return min(
        (each.finish() for each in ways), key=lambda each: len(each.payload) + HEADER * (each.run is not None)
    )


def decode_adaptive(
    payload: bytes,
    length: int,
    hidden: int = 0,
    run: Run | None = None,
    *,
    on_progress: OnProgress = no_progress,
) -> bytes:
    """Return the `length` bytes that were coded with a run, a network of `hidden` units, or neither."""
    weights = None if run is None else first_weights(True, run.ngrams)
    decoder, found = native.ByteDecoder(table_bits(length), *tables(weights), payload), bytearray()
    with few_threads(0 if run is None else run.hidden):
        reader = run.reader() if run else ByteReader(hidden) if hidden else None
        while len(found) < length:
            block = min(BLOCK, length - len(found))
            found += decoder.decode(block) if reader is None else _decode(decoder, reader, block)
            on_progress(len(found), length)
    return bytes(found)


def _decode(decoder: native.ByteDecoder, reader: RunReader | ByteReader, n: int) -> bytes:
    """Return the next n bytes, predicted by a reader that reads them."""
    found = bytearray()
    for _ in range(n):
        if isinstance(reader, RunReader):
            byte = decoder.decode(1, None, reader.next_sums())
        else:
            byte = decoder.decode(1, reader.logits()[None])
        found += byte
        reader.read(byte[0])
    return bytes(found)
