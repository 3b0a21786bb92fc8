"""Build the vocabulary of the training split and the table from provisional ids to ids."""

import numpy as np

from unspool.data.text.id_buffer import IdBuffer
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import Indexer, Tokenizer
from unspool.data.tokens.vocab import UNK, Vocab
from unspool.kernels.arrays import Ids, Whole


def number_types(
    tokenizer: Tokenizer,
    indexer: Indexer,
    buffer: IdBuffer,
    counts: list[Whole],
    stop: int,
    settings: TextConfig,
) -> tuple[Vocab, Ids, list[int]]:
    """Return the vocabulary, the table from provisional ids to ids, and the number of unknown tokens per split.

    ``counts`` are the token counts of the splits; the training split is the first and ends at ``stop``.
    """
    order = _by_frequency(counts[0], indexer, buffer, stop)
    tokens = [indexer.token(index) for index in order.tolist()]
    vocab = _vocab(tokens, counts[0][order].tolist(), tokenizer, settings)
    table = np.zeros(max(map(len, counts)), np.int32)
    table[order] = [vocab.token_to_idx.get(token, 0) for token in tokens]
    trained = np.zeros(len(table), np.bool_)
    trained[order] = True
    others = np.unique(np.concatenate([np.flatnonzero(count) for count in counts[1:]])).astype(np.int64)
    for index in others[~trained[others]].tolist():
        table[index] = vocab.token_to_idx.get(indexer.token(index), 0)
    return vocab, table, [_unknown(count, table, indexer) for count in counts]


def translation(vocab: Vocab, indexer: Indexer, counts: Whole) -> tuple[Ids, int]:
    """Return the table from provisional ids to the ids of an existing vocabulary, and the number of unknown tokens."""
    table = np.zeros(len(counts), np.int32)
    for index in np.flatnonzero(counts).tolist():
        table[index] = vocab.token_to_idx.get(indexer.token(index), 0)
    return table, _unknown(counts, table, indexer)


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


def _vocab(tokens: list[str], frequencies: list[int], tokenizer: Tokenizer, settings: TextConfig) -> Vocab:
    """Return the vocabulary; it includes the alphabet of the tokenizer, even if the text does not."""
    met = set(tokens)
    unmet = [token for token in tokenizer.alphabet() if token not in met]
    freqs = [*zip(tokens, frequencies, strict=True), *((token, 0) for token in unmet)]
    return Vocab.from_freqs(freqs, settings.min_freq, settings.reserved)


def _unknown(counts: Whole, table: Ids, indexer: Indexer) -> int:
    """Count the tokens that became <unk>, except those written <unk> in the text."""
    lost = np.flatnonzero((counts > 0) & (table[: len(counts)] == 0))
    return int(sum(counts[index] for index in lost.tolist() if indexer.token(index) != UNK))
