"""What counting says about a text: how large it is, how its frequencies fall, how well counts predict it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.baselines.kneser_ney import kneser_ney
from unspool.baselines.laplace import laplace
from unspool.baselines.ngram_counts import NgramCounts, count_ngrams
from unspool.baselines.zipf import ZipfFit, fit_zipf
from unspool.data.text.corpus import Corpus
from unspool.data.text.parts import Part
from unspool.evaluation.metrics import Metrics, measure
from unspool.kernels.arrays import Ids, Whole
from unspool.options import check_order


@dataclass(frozen=True)
class PartSize:
    """How large one part is."""

    name: str
    tokens: int
    types: int
    characters: int
    bytes: int
    unknown: int
    unknown_rate: float
    """Which share of its tokens the vocabulary does not know."""


@dataclass(frozen=True)
class Unseen:
    """How much of the test part's n-grams the training part never had."""

    n: int
    tokens: int
    unseen_tokens: int
    types: int
    unseen_types: int


@dataclass(frozen=True)
class Score:
    """How well a model predicts the test part."""

    model: str
    order: int
    measure: Metrics
    backward: bool = False
    """Whether the text was read from its end, by a model of the reversed training part."""


@dataclass(frozen=True)
class Statistics:
    """Everything that ``unspool stats`` prints."""

    vocabulary: int
    parts: list[PartSize]
    most_frequent: list[tuple[str, int]]
    zipf: list[ZipfFit]
    unseen: list[Unseen]
    scores: list[Score]
    frequencies: list[Whole]
    """The frequencies of the training part's n-grams, largest first, for n = 1, 2, …: for the picture."""


def describe_corpus(
    corpus: Corpus,
    order: int = 3,
    eps: Sequence[float] = (1.0,),
    ranks: tuple[int, int] | None = None,
    top: int = 10,
    backward: bool = False,
) -> Statistics:
    """Count the n-grams of the training part up to an order, and judge the test part by them.

    With ``backward`` it is judged in reverse time as well.

    A test part of fewer than two tokens is not judged; the lists are empty then.
    """
    check_order(order)
    K = len(corpus.vocab)
    counts = count_ngrams(corpus.train.ids, K, min(order, len(corpus.train.ids)))
    frequencies = [np.sort(level.counts)[::-1] for level in counts.levels]
    judged = len(corpus.test.ids) > 1
    return Statistics(
        vocabulary=K,
        parts=[_size(part, K) for part in corpus.parts],
        most_frequent=corpus.vocab.token_freqs[:top],
        zipf=[fit_zipf(each, ranks) for each in frequencies if len(each) > 2],
        unseen=_unseen(counts, corpus.test.ids) if judged else [],
        scores=_scores(counts, corpus, eps, backward) if judged else [],
        frequencies=frequencies,
    )


def _size(part: Part, K: int) -> PartSize:
    tokens = len(part.ids)
    types = len(count_ngrams(part.ids, K, 1).levels[0].keys) if tokens else 0
    rate = part.unknown / tokens if tokens else 0.0
    return PartSize(part.name, tokens, types, part.characters, part.bytes, part.unknown, rate)


def _unseen(counts: NgramCounts, test: Ids) -> list[Unseen]:
    """Look up each different n-gram of the test part in the counts of the training part, level by level."""
    found, own = list[Unseen](), count_ngrams(test, counts.K, min(counts.order, len(test)))
    entry = np.zeros(1, np.int64)  # of the training part, for every entry of the test part one level below
    for n, (level, trained) in enumerate(zip(own.levels, counts.levels, strict=False), 1):
        entry = trained.find(entry[level.prefixes], level.keys % counts.K)
        missing = entry < 0
        tokens, unseen = int(level.counts.sum()), int(level.counts[missing].sum())
        found.append(Unseen(n, tokens, unseen, len(level.keys), int(missing.sum())))
    return found + [Unseen(n, 0, 0, 0, 0) for n in range(own.order + 1, counts.order + 1)]


def _scores(counts: NgramCounts, corpus: Corpus, eps: Sequence[float], backward: bool) -> list[Score]:
    test, K = corpus.test.ids, counts.K
    uniform = measure(np.full(len(test) - 1, -np.log(K)), *corpus.test.widths_after_first())
    scores = [Score("uniform", 0, uniform), *_judged(counts, corpus, eps, backward=False)]
    if backward:
        reverse = count_ngrams(corpus.train.ids[::-1], K, counts.order)
        scores += _judged(reverse, corpus, eps, backward=True)
    return scores


def _judged(counts: NgramCounts, corpus: Corpus, eps: Sequence[float], backward: bool) -> list[Score]:
    """Judge the test part, read forward or backward, by all smoothings of all orders."""
    test = corpus.test.ids[::-1] if backward else corpus.test.ids
    sizes = corpus.test.widths_after_first(backward)
    scores = []
    for n in range(1, counts.order + 1):
        lower = NgramCounts(counts.levels[:n], counts.K, counts.tokens)
        for name, model in (("Laplace", laplace(lower, eps)), ("Kneser-Ney", kneser_ney(lower))):
            scores.append(Score(name, n, measure(model.log_prob(test), *sizes), backward))
    return scores
