"""Sentences about the vocabulary of a run: the order of its ids, what changed where it starts from another run, other tokens."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from unspool.data.text.corpus import Corpus
from unspool.data.tokens.vocab import Vocab
from unspool.training.events import Started

SHOWN = 8
"""Tokens that are listed."""
LONG, LONGER = 500_000, 1_500_000
"""Characters of a training split from which sub-words are advised: 1,000 pieces, then 4,000 (measurements: `docs/log.md`)."""
BLANKS, WORD_LENGTH = 0.08, 3.0
"""A text is written in words if this share of its characters are blanks, or if its words are that long in the mean."""


def order_of_ids(vocab: Vocab) -> str:
    """Say in which order the ids are."""
    counts = [count for _, count in vocab.token_freqs]
    if all(one >= two for one, two in pairwise(counts)):
        return "in order of decreasing frequency, from the training split only"
    return "in the order of the run that it starts from, then new tokens of the training split"


def started_line(event: Started) -> str:
    """Say what the model of another run keeps and gets.

    >>> started_line(Started("wells", 71, ["é"], []))
    "from wells: its 71 tokens keep their ids and rows; 1 new: 'é'"
    """
    new = f"; {_some(event.new, 'new')}" if event.new else "; no new ones"
    absent = f"; {_some(event.absent, 'not in this text, kept')}" if event.absent else ""
    return f"from {event.run}: its {event.old:,} tokens keep their ids and rows{new}{absent}"


def subword_line(corpus: Corpus) -> str:
    """Return a line that advises sub-words for a text on whose like a network of them predicts better in the same time; else nothing."""
    kind, train = corpus.tokenizer.kind, corpus.train
    if kind not in ("char", "word") or corpus.settings.clean or train.characters < LONG:
        return ""
    blanks = dict(corpus.vocab.token_freqs).get(" ", 0) / len(train.ids)
    if blanks < BLANKS if kind == "char" else train.characters / len(train.ids) < WORD_LENGTH:
        return ""
    pieces = 4000 if train.characters >= LONGER else 1000
    if kind == "word":
        more = ", once the words outside the vocabulary are spelled out"
    else:
        more = " (its mixture with n-grams about as many)"
    extra = "" if find_spec("tokenizers") else " (pip install 'unspool[subword]')"
    return (
        f"on texts like this, a network of sub-words needs fewer bits per character after the same time{more}: "
        f"--tokens subword:{pieces}{extra}"
    )


def _some(tokens: Sequence[Any], what: str) -> str:
    more = " …" if len(tokens) > SHOWN else ""
    return f"{len(tokens):,} {what}: {' '.join(map(repr, tokens[:SHOWN]))}{more}"
