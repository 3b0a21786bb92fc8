"""A text as the bits that the network's surprise amounts to, and back.

    tokens ─▶ ids ─▶ windows of the network ─▶ o(t) ─▶ f(t) ─▶ range coder ─▶ bytes           writing
    bytes ─▶ range coder ◀─ f(t) ◀─ o(t) ◀─ one step of the network ◀─ the token before       reading

The writer knows the whole text, so it reads whole windows, as `unspool.evaluation.language` does. The reader knows only what it
has read, so it goes token by token. Both see the same bits of o(t), since the engine's results do not depend on the
window; so both make the same frequencies and the coder comes back to every choice. The first token has nothing before
it: 1/K for each. All others cost what `evaluate` says:

    bits = log2 K + Σ -log2 P(x(t) | x(1) … x(t-1)) + the spelling of what is unknown          (1)

A network that never met an unknown token gives <unk> almost no probability, and a text full of unknown tokens pays for
that each time. Such a text is better off with a count: before each token the coder says whether it is unknown, with
the frequencies (after a known or an unknown one) 2a + 1 to 2b + 1, where a of a + b such tokens so far were unknown; the
network then chooses among the known ones. The writer works out both and takes the shorter; the container says which.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unspool.compress.frequencies import Whole, frequencies
from unspool.compress.literals import Interval, Spelling, cut, join
from unspool.compress.range_coder import Decoder, Encoder
from unspool.errors import FileError
from unspool.evaluation.language import WINDOW, no_progress
from unspool.evaluation.metrics import measure
from unspool.evaluation.read import read_windows, require_text_model
from unspool.kernels.arrays import Ids, Real
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.tasks.language.text_model import TextModel

Way: TypeAlias = Literal["network", "counted"]
"""Who says how probable an unknown token is."""
Told: TypeAlias = Callable[[int, int], None]
VALUES = 1 << 20
"""Outputs that are held at once: where there are many tokens, a window is shorter."""
OFTEN = 256
"""The reader tells how far it is every so many tokens."""


class Choices(NamedTuple):
    """Intervals, one after the other, as arrays."""

    start: Whole
    size: Whole
    total: Whole

    @property
    def bits(self) -> Real:
        """What each of them costs."""
        bits: Real = np.log2(self.total) - np.log2(self.size)
        return bits


@dataclass(frozen=True)
class Coded:
    """A text in bits, and what it should have cost."""

    payload: bytes
    way: Way
    tokens: int
    nats: float
    """The mean of -log P over all tokens but the first, unknown ones as <unk>: what `unspool evaluate` reports."""
    unknown: int
    """How many tokens were spelled out."""
    spelled_bits: float
    """What the spelling took of the payload."""
    first_bits: float
    """What the first token took, which nothing comes before."""
    bits: Real
    """What each token took, its spelling included, in the order of reading."""

    @property
    def promised_bits(self) -> float:
        """What the network promises: the sum of -log2 P over all tokens but the first."""
        return self.nats * max(self.tokens - 1, 0) / math.log(2)

    @property
    def token_bits(self) -> float:
        """What was written for the same tokens."""
        return 8 * len(self.payload) - self.first_bits - self.spelled_bits


def encode(model: TextModel, data: bytes, *, told: Told = no_progress) -> Coded:
    """Code bytes with a model; `told` hears how many tokens of how many have been read."""
    check(model.model)
    tokens = cut(model.tokenizer, data)[:: -1 if model.backward else 1]
    ids = np.fromiter((model.vocab.token_to_idx.get(token, 0) for token in tokens), np.int32, len(tokens))
    choices, of_unknown, log_probs = read_choices(model.model, ids, told)
    unknown = ids == model.vocab.unk
    flags, known = flags_of(unknown), without_unknown(choices, of_unknown, unknown)
    bits = {"counted": flags.bits + known.bits, "network": choices.bits}
    way: Way = "counted" if bits["counted"].sum() < bits["network"].sum() else "network"
    payload, spelled = _write(model, tokens, unknown, [flags, known] if way == "counted" else [choices])
    nats = measure(log_probs).nats if len(log_probs) else 0.0
    first_bits = math.log2(len(model.vocab)) if tokens else 0.0
    each, spelled_bits = bits[way] + spelled, float(spelled.sum())
    return Coded(payload, way, len(ids), nats, int(unknown.sum()), spelled_bits, first_bits, each)


def _write(
    model: TextModel, tokens: list[str], unknown: NDArray[np.bool_], ways: list[Choices]
) -> tuple[bytes, Real]:
    """Code each token's choices and spell the unknown ones; give the bytes, and what the spelling of each took."""
    spelling, encoder, spelled = Spelling(model.tokenizer), Encoder(), np.zeros(len(tokens))
    rows = [zip(*(field.tolist() for field in choices), strict=True) for choices in ways]
    for at, (token, *intervals) in enumerate(zip(tokens, *rows, strict=True)):
        for interval in intervals:
            encoder.put(*interval)
        if unknown[at]:
            spelled[at] = _put_all(encoder, spelling.intervals(token))
    return encoder.finish(), spelled


def decode(
    model: TextModel, payload: bytes, tokens: int, way: Way, *, length: int, told: Told = no_progress
) -> bytes:
    """Return the bytes of so many tokens; refuse a payload that gives more than `length` bytes."""
    check(model.model)
    stream, decoder, spelling = Stream(model.model), Decoder(payload), Spelling(model.tokenizer)
    names, unk, found = model.vocab.idx_to_token, model.vocab.unk, list[str]()
    seen, token = [[0, 0], [0, 0]], -1  # by what came before: how many known, how many unknown
    f: Whole = np.ones(len(names), np.int64)
    for at in range(tokens):
        if at:
            stream.read(token)
            f = frequencies(stream.logits())
        if way == "network" or not _read_flag(decoder, seen[token == unk]):
            f[unk] *= way == "network"
            token = _read_token(decoder, f)
        else:
            token = unk
        found.append(spelling.read(decoder, most=length) if token == unk else names[token])
        length -= len(found[-1])  # each character is a byte or more
        if length < 0:
            raise FileError("damaged: more comes out than went in; take it from a copy")
        if (at + 1) % OFTEN == 0 or at + 1 == tokens:
            told(at + 1, tokens)
    return join(model.tokenizer, found[:: -1 if model.backward else 1])


def check(model: Model) -> None:
    """Refuse a network that cannot go token by token."""
    require_text_model(model.config, "compress")


def read_choices(model: Model, ids: Ids, told: Told = no_progress) -> tuple[Choices, Whole, Real]:
    """Read a text in windows; give the choice of each token, the frequency of <unk> there, and log P of all but one."""
    K = model.config.outputs
    window, log_probs = max(1, min(WINDOW, VALUES // K)), [np.zeros(0)]
    found = [_choices(np.ones((len(ids[:1]), K), np.int64), ids[:1])]
    for at, y, output, weights in read_windows(
        model, ids[:-1, None], ids[1:, None], window=window, what="compress"
    ):
        found.append(_choices(frequencies(model.logits(output, weights)[:, 0]), y[:, 0]))
        log_probs.append(-model.loss(output, y, weights=weights).per_target[:, 0])
        told(min(at + window + 1, len(ids)), len(ids))
    start, size, total, of_unknown = map(np.concatenate, zip(*found, strict=True))
    return Choices(start, size, total), of_unknown, np.concatenate(log_probs)


def _choices(f: Whole, ids: Ids) -> tuple[Whole, Whole, Whole, Whole]:
    """Give start, size and total of each row's token, and the frequency of <unk>, which is the first."""
    ends, rows = f.cumsum(1), np.arange(len(ids))
    size = f[rows, ids]
    return ends[rows, ids] - size, size, ends[:, -1].copy(), f[:, 0].copy()  # views would keep all of f


def without_unknown(choices: Choices, of_unknown: Whole, unknown: NDArray[np.bool_]) -> Choices:
    """Give the choices among the known tokens alone; an unknown one is no choice any more."""
    known = Choices(choices.start - of_unknown, choices.size, choices.total - of_unknown)
    return Choices(*(np.where(unknown, same, each) for same, each in zip((0, 1, 1), known, strict=True)))


def flags_of(unknown: NDArray[np.bool_]) -> Choices:
    """Give the choices that say of each token whether it is unknown, counted by what came before it."""
    before = np.concatenate([[False], unknown[:-1]])[: len(unknown)]
    a, n = np.zeros(len(unknown), np.int64), np.zeros(len(unknown), np.int64)
    for each in (False, True):
        there = before == each
        a[there] = unknown[there].cumsum() - unknown[there]
        n[there] = np.arange(there.sum())
    ones = 2 * a + 1
    return Choices(np.where(unknown, 0, ones), np.where(unknown, ones, 2 * (n - a) + 1), 2 * n + 2)


def _read_flag(decoder: Decoder, seen: list[int]) -> bool:
    """Read whether the next token is unknown, and count it."""
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
    """Code some choices and say what they cost in bits."""
    bits = 0.0
    for start, size, total in intervals:
        encoder.put(start, size, total)
        bits += math.log2(total / size)
    return bits
