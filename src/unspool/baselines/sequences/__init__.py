"""Baselines of sequences by name, from the simplest on: one file and one entry of BASELINES each."""

from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.baselines.sequences.constant import MajorityClass, MeanTarget
from unspool.baselines.sequences.ngrams import Ngrams
from unspool.baselines.sequences.random_kernels import RandomKernels
from unspool.baselines.sequences.tags import LinearTagger, MostFrequentTag
from unspool.model.heads.base import Head

BASELINES: dict[str, type[SequenceBaseline]] = {
    each.name: each
    for each in (MajorityClass, MeanTarget, Ngrams, RandomKernels, MostFrequentTag, LinearTagger)
}
"""All baselines by name."""


def baselines_for(rows: Rows, head: Head, per_step: bool) -> list[type[SequenceBaseline]]:
    """Return the baselines that can learn from some rows, the simplest first."""
    return [each for each in BASELINES.values() if each.accepts(rows, head, per_step)]
