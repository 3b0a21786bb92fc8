"""Score every token and every line of a text by a network: how surprising it is, and how surprising it was expected to be.

    nats(t)          = -log P(x(t) | all before)                                    (1)
    expected nats(t) = -Σ_k P(k | all before) log P(k | all before), the entropy    (2)
    rank(t)          = 1 + the number of tokens with a larger probability           (3)

The mean of (1) minus (2) over a text is near 0 if the model is calibrated; a token with (1) far above (2) is one that the
model was sure not to see. The surprise of a line is the sum of (1) over its tokens, the line end included, per character.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.evaluation.language import WINDOW, in_order, log_prob_of, no_progress, read_blocks
from unspool.evaluation.read import WindowRead
from unspool.kernels.arrays import Floats, Ids, Mask, Real, Whole
from unspool.model.network import Model

CELLS = 2**20
"""Probabilities computed at once: they bound the memory, whatever the window and the vocabulary are."""


@dataclass
class DetailedScorer:
    """A scorer like `NetworkScorer` that also stores the entropy and the rank of every target, in reading order."""

    model: Model
    window: int = WINDOW
    on_progress: Callable[[int, int], None] = no_progress
    entropy: Real = field(default_factory=lambda: np.zeros(0))
    rank: Whole = field(default_factory=lambda: np.zeros(0, np.int64))
    end: int | None = None
    """The token that ends a line, where every line is a separate sequence."""

    def log_prob(self, ids: Ids) -> Real:
        """Return log P(x(t) | all before) for all tokens but the first; the other figures are stored."""
        blocks, done = list[tuple[Real, Real, Whole]](), 0
        for targets, reads in read_blocks(self.model, ids, self.end, window=self.window):
            found = list[tuple[Real, Real, Whole]]()
            for there, read in reads:
                found += self._figures(there, read)
                done += int(there.sum())
                self.on_progress(done, len(ids) - 1)
            log_prob, entropy, rank = (list(each) for each in zip(*found, strict=True))
            blocks.append((in_order(targets, log_prob), in_order(targets, entropy), in_order(targets, rank)))
        log_probs, self.entropy, self.rank = (np.concatenate(each) for each in zip(*blocks, strict=True))
        return log_probs

    def _figures(self, there: Mask, read: WindowRead) -> Iterator[tuple[Real, Real, Whole]]:
        """Yield the figures of the targets of a window in pieces."""
        model = self.model
        log_prob = log_prob_of(model, read)[there]
        h, y = model.head_input(read.output)[there], read.y[there]
        rows = max(1, CELLS // model.config.outputs)
        for at in range(0, len(y), rows):
            here = slice(at, at + rows)
            yield (log_prob[here], *entropy_and_rank(read.weights.output(h[here]), y[here]))


def entropy_and_rank(o: Floats, y: Ids) -> tuple[Real, Whole]:
    """Return the entropy (2) in nats and the rank of the targets (3), both (n,), from logits o (n, K).

    >>> entropy, rank = entropy_and_rank(np.log([[0.5, 0.25, 0.25]]), np.array([1], np.int32))
    >>> round(float(entropy[0] / np.log(2)), 6), int(rank[0])  # in bits
    (1.5, 2)
    """
    o = o.astype(np.float64)
    o -= o.max(1, keepdims=True)
    e = np.exp(o)
    Z = e.sum(1)
    entropy = np.log(Z) - (e * o).sum(1) / Z  # (2)
    rank = 1 + (o > o[np.arange(len(y)), y][:, None]).sum(1)  # (3)
    return np.maximum(entropy, 0.0), rank.astype(np.int64)


class Line(NamedTuple):
    """The surprise of one line."""

    number: int
    """Counted from 1."""
    characters: int
    """Of all tokens that were predicted, the line end included."""
    nats: float
    start: int
    """Its first token."""
    stop: int
    """The end of its last token."""

    @property
    def nats_per_character(self) -> float:
        """The surprise that lines are ranked by."""
        return self.nats / self.characters if self.characters else 0.0


def line_surprises(nats: Real, characters: Whole, pieces: Iterable[str]) -> Iterator[Line]:
    """Yield the lines of a text in order: `nats` and `characters` (n,) and the decoded `pieces` of its tokens, in the order of the text.

    Both are 0 for a token that was not predicted. A line ends with the token that ends with, or contains, a line end.

    >>> found = line_surprises(np.array([0.0, 1, 2, 4]), np.array([0, 1, 2, 1]), iter(["a", "\\n", "bc", "d"]))
    >>> [(line.number, line.characters, line.nats, line.start, line.stop) for line in found]
    [(1, 1, 1.0, 0, 2), (2, 3, 6.0, 2, 4)]
    """
    number, start = 1, 0
    for t, piece in zip(range(len(nats)), pieces, strict=False):
        if "\n" in piece or t == len(nats) - 1:
            here = slice(start, t + 1)
            yield Line(number, int(characters[here].sum()), math.fsum(nats[here]), start, t + 1)
            number, start = number + piece.count("\n"), t + 1


def characters_of(widths: Whole, unknown: NDArray[np.bool_], total: int) -> Whole:
    """Return how many characters of a text each token stands for, (n,): they add up to `total`.

    `widths` holds the characters of the tokens that are known. The rest of the text belongs to the `unknown` tokens, an equal share
    to each. If nothing is left for them, because the tokens are not the whole text (words), every width is scaled.

    >>> characters_of(np.array([2, 0, 1, 0]), np.array([False, True, False, True]), 8).tolist()
    [2, 2, 1, 3]
    >>> characters_of(np.array([2, 2, 1]), np.zeros(3, bool), 6).tolist()  # blanks that no token contains
    [2, 2, 2]
    """
    left, share = total - int(widths[~unknown].sum()), np.where(unknown, 1, 0)
    found = np.where(unknown, 0, widths)
    if left < share.sum() or not unknown.any():
        share, left, found = np.where(unknown, 1, widths), total, np.zeros_like(widths)
    ends = np.cumsum(share, dtype=np.int64) * left // max(int(share.sum()), 1)
    return np.asarray(found + np.diff(ends, prepend=0), np.int64)
