"""Sentences about the vocabulary of a run: the order of its ids, and what changed where it starts from another run."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from unspool.data.tokens.vocab import Vocab
from unspool.training.events import Started

SHOWN = 8
"""Tokens that are listed."""


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


def _some(tokens: Sequence[Any], what: str) -> str:
    more = " …" if len(tokens) > SHOWN else ""
    return f"{len(tokens):,} {what}: {' '.join(map(repr, tokens[:SHOWN]))}{more}"
