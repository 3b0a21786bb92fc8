"""Build the vocabulary of the training split and the table from provisional ids to ids."""

import numpy as np

from unspool.data.text.id_buffer import IdBuffer
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import Indexer, Tokenizer
from unspool.data.tokens.vocab import UNK, Vocab
from unspool.kernels.arrays import Ids, Whole


def build_vocab(
    tokenizer: Tokenizer,
    indexer: Indexer,
    buffer: IdBuffer,
    counts: Whole,
    stop: int,
    settings: TextConfig,
    extends: Vocab | None = None,
) -> Vocab:
    """Return the vocabulary of the training split, which has these token counts and ends at ``stop``.

    It includes the alphabet of the tokenizer, even if the text does not. The tokens of the vocabulary that it `extends`
    keep their ids.
    """
    order = _by_frequency(counts, indexer, buffer, stop)
    freqs = dict(zip(map(indexer.token, order.tolist()), counts[order].tolist(), strict=True))
    freqs |= {token: 0 for token in tokenizer.alphabet() if token not in freqs}
    if extends is not None:
        return extend_vocab(extends, freqs, settings.min_freq)
    return Vocab.from_freqs(list(freqs.items()), settings.min_freq, settings.reserved)


def extend_vocab(old: Vocab, freqs: dict[str, int], min_freq: int) -> Vocab:
    """Return a vocabulary in which all tokens of an old one keep their ids, followed by those of the new counts.

    New tokens below `min_freq` are counted as unknown.

    >>> extend_vocab(Vocab(list("aab")), {"c": 3, "a": 2, "d": 1}, min_freq=2).token_freqs
    [('a', 2), ('b', 0), ('c', 3), ('<unk>', 1)]
    """
    kept = old.idx_to_token[1 + len(old.reserved_tokens) :]
    new = {token: count for token, count in freqs.items() if token not in old}
    counted = [(token, freqs.get(token, 0)) for token in kept]
    counted += [(token, count) for token, count in new.items() if count >= min_freq]
    rare = freqs.get(UNK, 0) + sum(count for count in new.values() if count < min_freq)
    return Vocab.from_freqs([*counted, *([(UNK, rare)] if rare else [])], 0, old.reserved_tokens)


def translation(vocab: Vocab, indexer: Indexer, counts: list[Whole]) -> tuple[Ids, list[int]]:
    """Return the table from provisional ids to the ids of a vocabulary, and the number of unknown tokens per split.

    ``counts`` are the token counts of the splits.
    """
    table = np.zeros(max(map(len, counts)), np.int32)
    present = np.unique(np.concatenate([np.flatnonzero(count) for count in counts])).astype(np.int64)
    table[present] = [vocab.token_to_idx.get(indexer.token(index), 0) for index in present.tolist()]
    return table, [_unknown(count, table, indexer) for count in counts]


def _by_frequency(counts: Whole, indexer: Indexer, buffer: IdBuffer, stop: int) -> Whole:
    """Return the provisional ids that occur, by decreasing frequency, ties by first appearance."""
    present = np.flatnonzero(counts)
    frequencies = counts[present]
    appearance = present
    if not indexer.by_appearance:
        _, which, how_many = np.unique(frequencies, return_inverse=True, return_counts=True)
        tied = how_many[which] > 1
        appearance = np.zeros(len(present), np.int64)
        appearance[tied] = buffer.first_positions(present[tied], stop)
    return present[np.lexsort((appearance, -frequencies))]


def _unknown(counts: Whole, table: Ids, indexer: Indexer) -> int:
    """Count the tokens that became <unk>, except those written <unk> in the text."""
    lost = np.flatnonzero((counts > 0) & (table[: len(counts)] == 0))
    return int(sum(counts[index] for index in lost.tolist() if indexer.token(index) != UNK))
