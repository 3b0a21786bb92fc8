"""Code a text with a network and a range coder, in about Σ -log2 P bits, and decode it.

    tokens ─▶ ids ─▶ windows of the network ─▶ o(t) ─▶ f(t) ─▶ range coder ─▶ bytes           writing
    bytes ─▶ range coder ◀─ f(t) ◀─ o(t) ◀─ one step of the network ◀─ the token before       reading

The encoder has the whole text and runs the network over whole windows, as `unspool.evaluation.language` does. The decoder
runs it token by token. Both get bit-identical o(t), because the results of the kernels do not depend on the window, and so
the same frequencies. A model that learns while it reads (`unspool.training.dynamic`) does so at both ends, to the same bits:
the encoder segment by segment, the decoder token by token with an update after each segment. The first token has no context and costs log2 K bits:

    bits = log2 K + Σ -log2 P(x(t) | x(1) … x(t-1)) + the literals of unknown tokens           (1)

A network trained without unknown tokens gives <unk> almost no probability, which is expensive for a text with many of them.
The mode "counted" codes a flag before each token instead: unknown with frequency 2a + 1, known with 2b + 1, where a of the
a + b tokens so far (after a known or an unknown one) were unknown. The network then chooses among the known tokens. The
encoder computes both modes and takes the shorter; the container stores which.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from unspool.baselines.mixture import Mixture
from unspool.compress.integer_frequencies import frequencies, frequencies_of
from unspool.compress.literals import Interval, LiteralCoder, tokenize
from unspool.compress.range_coder import Decoder, Encoder
from unspool.errors import FileError
from unspool.evaluation.language import WINDOW, no_progress
from unspool.evaluation.metrics import measure
from unspool.evaluation.read import read_windows, require_text_model
from unspool.kernels.arrays import Floats, Ids, Mask, Real, Whole
from unspool.kernels.elementwise import softmax
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning, LearningReader

Mode: TypeAlias = Literal["network", "counted"]
"""The source of the probability of <unk>: the network, or counts."""
OnProgress: TypeAlias = Callable[[int, int], None]
VALUES = 1 << 20
"""Most outputs in memory: with a large vocabulary, windows are shorter."""
RECENT = 64
"""Tokens kept while decoding for the contexts of n-grams, which are shorter."""
PROGRESS_EVERY = 256
"""Number of tokens between calls of `on_progress` while decoding."""


class Choices(NamedTuple):
    """A sequence of intervals, as arrays."""

    start: Whole
    size: Whole
    total: Whole

    @property
    def bits(self) -> Real:
        """Cost of each interval in bits."""
        bits: Real = np.log2(self.total) - np.log2(self.size)
        return bits


@dataclass(frozen=True)
class Coded:
    """A coded text and its cost."""

    payload: bytes
    mode: Mode
    tokens: int
    nats: float
    """Mean of -log P over all tokens except the first, unknown ones as <unk>: the loss of `unspool evaluate`."""
    unknown: int
    """Number of tokens coded as literals."""
    spelled_bits: float
    """Bits of the literals."""
    first_bits: float
    """Bits of the first token, which has no context."""
    bits: Real
    """Bits of each token, including its literal, in the order of reading."""

    @property
    def expected_bits(self) -> float:
        """The cross-entropy of the network: the sum of -log2 P over all tokens except the first."""
        return self.nats * max(self.tokens - 1, 0) / math.log(2)

    @property
    def token_bits(self) -> float:
        """Bits written for the same tokens."""
        return 8 * len(self.payload) - self.first_bits - self.spelled_bits


def encode(
    model: TextModel,
    data: bytes,
    *,
    learning: Learning | None = None,
    mixture: bool = False,
    on_progress: OnProgress = no_progress,
) -> Coded:
    """Code bytes with a model, which learns while it reads if `learning` is given, or with its mixture with n-grams.

    `on_progress` is called with the number of tokens done and the total.
    """
    check_model(model.model)
    tokens, ids = tokens_and_ids(model, data)
    mixed = model.require_mixture() if mixture else None
    choices, of_unknown, log_probs = read_choices(model.model, ids, on_progress, learning, mixed)
    unknown = ids == model.vocab.unk
    flags, known = flags_of(unknown), without_unknown(choices, of_unknown, unknown)
    bits = {"counted": flags.bits + known.bits, "network": choices.bits}
    mode: Mode = "counted" if bits["counted"].sum() < bits["network"].sum() else "network"
    payload, spelled = _write(model, tokens, unknown, [flags, known] if mode == "counted" else [choices])
    nats = measure(log_probs).nats if len(log_probs) else 0.0
    first_bits = math.log2(len(model.vocab)) if tokens else 0.0
    each, spelled_bits = bits[mode] + spelled, float(spelled.sum())
    return Coded(payload, mode, len(ids), nats, int(unknown.sum()), spelled_bits, first_bits, each)


def tokens_and_ids(model: TextModel, data: bytes) -> tuple[list[str], Ids]:
    """Return the tokens of bytes and their ids, in the order of reading; a token outside the vocabulary has id 0, <unk>."""
    tokens = tokenize(model.tokenizer, data)[:: -1 if model.backward else 1]
    ids = np.fromiter((model.vocab.token_to_idx.get(token, 0) for token in tokens), np.int32, len(tokens))
    return tokens, ids


def _write(model: TextModel, tokens: list[str], unknown: Mask, modes: list[Choices]) -> tuple[bytes, Real]:
    """Return the bytes of all choices and of the literals of unknown tokens, and the bits of each literal."""
    spelling, encoder, spelled = LiteralCoder(model.tokenizer), Encoder(), np.zeros(len(tokens))
    rows = [zip(*(field.tolist() for field in choices), strict=True) for choices in modes]
    for at, (token, *intervals) in enumerate(zip(tokens, *rows, strict=True)):
        for interval in intervals:
            encoder.put(*interval)
        if unknown[at]:
            spelled[at] = _put_all(encoder, spelling.intervals(token))
    return encoder.finish(), spelled


def decode(
    model: TextModel,
    payload: bytes,
    tokens: int,
    mode: Mode,
    *,
    length: int,
    learning: Learning | None = None,
    mixture: bool = False,
    on_progress: OnProgress = no_progress,
) -> bytes:
    """Return the bytes of `tokens` tokens, coded with the same arguments; raise FileError if they exceed `length` bytes."""
    check_model(model.model)
    mixed, read = model.require_mixture() if mixture else None, list[int]()
    stream = Stream(model.model) if learning is None else LearningReader(model.model, learning)
    decoder, spelling = Decoder(payload), LiteralCoder(model.tokenizer)
    names, unk, found = model.vocab.idx_to_token, model.vocab.unk, list[str]()
    seen, token = [[0, 0], [0, 0]], -1  # after a known and after an unknown token: counts of known, unknown
    f: Whole = np.ones(len(names), np.int64)
    for at in range(tokens):
        if at:
            stream.read(token)
            read = [*read[-RECENT:], token]
            f = _frequencies(stream.logits(), mixed, read)
        if mode == "network" or not _read_flag(decoder, seen[token == unk]):
            f[unk] *= mode == "network"
            token = _read_token(decoder, f)
        else:
            token = unk
        found.append(spelling.read(decoder, most=length) if token == unk else names[token])
        length -= len(found[-1])  # each character is a byte or more
        if length < 0:
            raise FileError("damaged: more bytes come out than its header says; restore it from a copy")
        if (at + 1) % PROGRESS_EVERY == 0 or at + 1 == tokens:
            on_progress(at + 1, tokens)
    return model.tokenizer.decode_bytes(found[:: -1 if model.backward else 1])


def check_model(model: Model) -> None:
    """Raise InputError for a network that cannot run token by token."""
    require_text_model(model.config, "compress")


def _frequencies(o: Floats, mixture: Mixture | None, read: list[int]) -> Whole:
    """Return the frequencies (K,) of the next token after those read."""
    if mixture is None:
        return frequencies(o)
    return frequencies_of(mixture.next_probs(softmax(o).astype(np.float64), read))


def read_choices(
    model: Model,
    ids: Ids,
    on_progress: OnProgress = no_progress,
    learning: Learning | None = None,
    mixture: Mixture | None = None,
) -> tuple[Choices, Whole, Real]:
    """Return the interval of each token, the frequency of <unk> at each, and log P of all tokens except the first."""
    done, log_probs = len(ids[:1]), [np.zeros(0)]
    found = [_choices(np.ones((done, model.config.outputs), np.int64), ids[:1])]
    windows = _static_windows(model, ids) if learning is None else _learning_windows(model, ids, learning)
    for y, o, log_prob in windows:
        if mixture is None:
            found.append(_choices(frequencies(o), y))
            log_probs.append(log_prob)
        else:
            p = mixture.next_probs_rows(softmax(o).astype(np.float64), ids[: done + len(y) - 1], done)
            found.append(_choices(frequencies_of(p), y))
            log_probs.append(np.log(p[np.arange(len(y)), y]))
        done += len(y)
        on_progress(done, len(ids))
    start, size, total, of_unknown = map(np.concatenate, zip(*found, strict=True))
    return Choices(start, size, total), of_unknown, np.concatenate(log_probs)


def _static_windows(model: Model, ids: Ids) -> Iterator[tuple[Ids, Floats, Real]]:
    """Yield the targets of each window (n,), o (n, K) and log P (n,) of a model that does not change."""
    window = max(1, min(WINDOW, VALUES // model.config.outputs))
    for _, y, output, weights in read_windows(
        model, ids[:-1, None], ids[1:, None], window=window, what="compress"
    ):
        log_prob = -model.loss(output, y, weights=weights).per_target[:, 0]
        yield y[:, 0], model.logits(output, weights)[:, 0], log_prob


def _learning_windows(model: Model, ids: Ids, learning: Learning) -> Iterator[tuple[Ids, Floats, Real]]:
    """Yield the same of a model that learns from each segment after it was coded."""
    for window in LearningReader(model, learning).windows(ids):
        yield window.y, window.logits(), window.log_prob


def _choices(f: Whole, ids: Ids) -> tuple[Whole, Whole, Whole, Whole]:
    """Return start, size and total of the token of each row, and the frequency of <unk>, which has id 0."""
    ends, rows = f.cumsum(1), np.arange(len(ids))
    size = f[rows, ids]
    return ends[rows, ids] - size, size, ends[:, -1].copy(), f[:, 0].copy()  # copies, so that f can be freed


def without_unknown(choices: Choices, of_unknown: Whole, unknown: Mask) -> Choices:
    """Return the intervals among the known tokens; unknown tokens get an interval of probability 1."""
    known = Choices(choices.start - of_unknown, choices.size, choices.total - of_unknown)
    return Choices(*(np.where(unknown, same, each) for same, each in zip((0, 1, 1), known, strict=True)))


def flags_of(unknown: Mask) -> Choices:
    """Return the intervals of the flags "is unknown", with counts after known and after unknown tokens."""
    before = np.concatenate([[False], unknown[:-1]])[: len(unknown)]
    a, n = np.zeros(len(unknown), np.int64), np.zeros(len(unknown), np.int64)
    for each in (False, True):
        there = before == each
        a[there] = unknown[there].cumsum() - unknown[there]
        n[there] = np.arange(there.sum())
    ones = 2 * a + 1
    return Choices(np.where(unknown, 0, ones), np.where(unknown, ones, 2 * (n - a) + 1), 2 * n + 2)


def _read_flag(decoder: Decoder, seen: list[int]) -> bool:
    """Return whether the next token is unknown, and count it."""
    known, ones = 2 * seen[0] + 1, 2 * seen[1] + 1
    unknown = decoder.point(known + ones) < ones
    decoder.take(*((0, ones) if unknown else (ones, known)))
    seen[unknown] += 1
    return unknown


def _read_token(decoder: Decoder, f: Whole) -> int:
    ends = f.cumsum()
    token = int(ends.searchsorted(decoder.point(int(ends[-1])), "right"))
    size = int(f[token])
    decoder.take(int(ends[token]) - size, size)
    return token


def _put_all(encoder: Encoder, intervals: Iterator[Interval]) -> float:
    """Code choices; return their cost in bits."""
    bits = 0.0
    for start, size, total in intervals:
        encoder.put(start, size, total)
        bits += math.log2(total / size)
    return bits
