"""Statistics of a text: sizes, frequency distribution, unseen n-grams, scores of n-gram models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.laplace_smoothing import laplace
from unspool.baselines.ngram_counts import NgramCounts, count_ngrams
from unspool.baselines.zipf import ZipfFit, fit_zipf
from unspool.data.text.corpus import Corpus
from unspool.data.text.parts import Part
from unspool.evaluation.metrics import Metrics, measure
from unspool.kernels.arrays import Ids, Whole
from unspool.options import check_order


@dataclass(frozen=True)
class PartSize:
    """Size of one split."""

    name: str
    tokens: int
    types: int
    characters: int
    bytes: int
    unknown: int
    unknown_rate: float
    """Fraction of its tokens outside the vocabulary."""


@dataclass(frozen=True)
class Unseen:
    """Number of n-grams of the test split that the training split does not have."""

    n: int
    tokens: int
    unseen_tokens: int
    types: int
    unseen_types: int


@dataclass(frozen=True)
class Score:
    """Metrics of a model on the test split."""

    model: str
    order: int
    measure: Metrics
    backward: bool = False
    """Whether the text was read from the end, by a model of the reversed training split."""


@dataclass(frozen=True)
class Statistics:
    """The results that ``unspool stats`` prints."""

    vocabulary: int
    parts: list[PartSize]
    most_frequent: list[tuple[str, int]]
    zipf: list[ZipfFit]
    unseen: list[Unseen]
    scores: list[Score]
    frequencies: list[Whole]
    """Sorted n-gram frequencies of the training split, largest first, for n = 1, 2, …; used by the plot."""


def describe_corpus(
    corpus: Corpus,
    order: int = 3,
    eps: Sequence[float] = (1.0,),
    ranks: tuple[int, int] | None = None,
    top: int = 10,
    backward: bool = False,
) -> Statistics:
    """Count the n-grams of the training split up to an order, and score the test split with them.

    With ``backward`` the test split is also scored in reverse time. A test split of fewer than two tokens is not scored:
    ``unseen`` and ``scores`` are empty.
    """
    check_order(order)
    K = len(corpus.vocab)
    counts = count_ngrams(corpus.train.ids, K, min(order, len(corpus.train.ids)))
    frequencies = [np.sort(level.counts)[::-1] for level in counts.levels]
    scored = len(corpus.test.ids) > 1
    return Statistics(
        vocabulary=K,
        parts=[_size(part, K) for part in corpus.parts],
        most_frequent=corpus.vocab.token_freqs[:top],
        zipf=[fit_zipf(each, ranks) for each in frequencies if len(each) > 2],
        unseen=_unseen(counts, corpus.test.ids) if scored else [],
        scores=_scores(counts, corpus, eps, backward) if scored else [],
        frequencies=frequencies,
    )


def _size(part: Part, K: int) -> PartSize:
    tokens = len(part.ids)
    types = len(count_ngrams(part.ids, K, 1).levels[0].keys) if tokens else 0
    rate = part.unknown / tokens if tokens else 0.0
    return PartSize(part.name, tokens, types, part.characters, part.bytes, part.unknown, rate)


def _unseen(counts: NgramCounts, test: Ids) -> list[Unseen]:
    """Return the unseen n-grams: look up each distinct n-gram of the test split in the training counts, level by level."""
    found, tested = list[Unseen](), count_ngrams(test, counts.K, min(counts.order, len(test)))
    entry = np.zeros(1, np.int64)  # entries of the training split for the test split, one level below
    for n, (level, trained) in enumerate(zip(tested.levels, counts.levels, strict=False), 1):
        entry = trained.find(entry[level.prefixes], level.keys % counts.K)
        missing = entry < 0
        tokens, unseen = int(level.counts.sum()), int(level.counts[missing].sum())
        found.append(Unseen(n, tokens, unseen, len(level.keys), int(missing.sum())))
    return found + [Unseen(n, 0, 0, 0, 0) for n in range(tested.order + 1, counts.order + 1)]


def _scores(counts: NgramCounts, corpus: Corpus, eps: Sequence[float], backward: bool) -> list[Score]:
    test, K = corpus.test.ids, counts.K
    uniform = measure(np.full(len(test) - 1, -np.log(K)), *corpus.test.widths_after_first())
    scores = [Score("uniform", 0, uniform), *_model_scores(counts, corpus, eps, backward=False)]
    if backward:
        reverse = count_ngrams(corpus.train.ids[::-1], K, counts.order)
        scores += _model_scores(reverse, corpus, eps, backward=True)
    return scores


def _model_scores(counts: NgramCounts, corpus: Corpus, eps: Sequence[float], backward: bool) -> list[Score]:
    """Return the scores of all smoothing methods and orders on the test split, read forward or backward."""
    test = corpus.test.ids[::-1] if backward else corpus.test.ids
    sizes = corpus.test.widths_after_first(backward)
    scores = []
    for n in range(1, counts.order + 1):
        lower = NgramCounts(counts.levels[:n], counts.K, counts.tokens)
        for name, model in (("Laplace", laplace(lower, eps)), ("Kneser-Ney", kneser_ney(lower))):
            scores.append(Score(name, n, measure(model.log_prob(test), *sizes), backward))
    return scores
