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
>>> payload, hidden = encode_adaptive(data)
>>> len(data), len(payload), hidden
(1170, 29, 0)
>>> decode_adaptive(payload, len(data), hidden) == data
True
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from unspool.cells.gru import GRU
from unspool.compress.coding import OnProgress
from unspool.evaluation.language import no_progress
from unspool.kernels import byte_tables, native
from unspool.kernels.arrays import Floats
from unspool.kernels.machine import kernel_info, set_threads
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.parameters import Parameters, shapes_of
from unspool.optimisers.rmsprop import RMSprop
from unspool.training.dynamic import Learning, LearningReader

RATE, DECAY, SEGMENT = 5e-3, 1e-3, 16
HEAD = 1 << 17
"""Bytes that are coded with and without the network."""
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
MAPS = 12 << 20
"""Bytes of the maps and weights beside the counts."""


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
def one_thread() -> Iterator[None]:
    """Use one thread within: one row and a small network give a second one too little to do."""
    threads = int(kernel_info()["threads"])
    set_threads(1)
    try:
        yield
    finally:
        set_threads(threads)


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


def tables() -> tuple[Floats, NDArray[np.uint16], NDArray[np.uint32]]:
    """Return the tables that the native coders take."""
    return byte_tables.stretch(), byte_tables.squash(), byte_tables.powers()


class _Candidate:
    """One of the two ways to code a file, with a network of `hidden` units or without one."""

    def __init__(self, hidden: int, length: int) -> None:
        self.hidden, self.reader = hidden, ByteReader(hidden) if hidden else None
        self.encoder, self.half = native.ByteEncoder(table_bits(length), *tables()), 0

    def encode(self, block: bytes) -> None:
        if self.reader is None:
            return self.encoder.encode(block)
        for part, logits in self.reader.logits_of(block):
            self.encoder.encode(part, logits)


@one_thread()
def encode_adaptive(data: bytes, *, on_progress: OnProgress = no_progress) -> tuple[bytes, int]:
    """Return the coded bytes, and the hidden units of the network that coded them: 0 without a network."""
    n = len(data)
    ways = [_Candidate(hidden, n) for hidden in sorted({0, hidden_units(n)})]
    for begin in range(0, n, BLOCK):
        for each in ways:
            each.encode(data[begin : begin + BLOCK])
            if begin + BLOCK == HEAD // 2:
                each.half = each.encoder.size
        if begin + BLOCK == HEAD:
            ways = [min(ways, key=lambda each: each.encoder.size - each.half)]
        on_progress(min(begin + BLOCK, n), n)
    found = [(each.encoder.finish(), each.hidden) for each in ways]
    return min(found, key=lambda each: len(each[0]))


@one_thread()
def decode_adaptive(
    payload: bytes, length: int, hidden: int, *, on_progress: OnProgress = no_progress
) -> bytes:
    """Return the `length` bytes that were coded with a network of `hidden` units, or without one."""
    decoder, found = native.ByteDecoder(table_bits(length), *tables(), payload), bytearray()
    reader = ByteReader(hidden) if hidden else None
    while len(found) < length:
        block = min(BLOCK, length - len(found))
        if reader is None:
            found += decoder.decode(block)
        else:
            for _ in range(block):
                byte = decoder.decode(1, reader.logits()[None])
                found += byte
                reader.read(byte[0])
        on_progress(len(found), length)
    return bytes(found)
