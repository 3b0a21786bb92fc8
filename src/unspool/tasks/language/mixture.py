"""The mixture of a run: its network with the n-grams of its training split; made, saved, loaded.

RUN/mixture.safetensors   the n-grams (keys and counts of every order), the parameters v of their share, and the
                          hash of the network that v was fitted for
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.language import BYTES, ngram_order
from unspool.baselines.mixture import Mixture, cross_fitted, fit_mixture
from unspool.baselines.ngram_counts import Level, NgramCounts, count_levels, levels_from_keys
from unspool.baselines.ngram_model import NgramModel
from unspool.data.text.corpus import Corpus
from unspool.data.tokens.registry import tokenizer_class
from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order, log_prob
from unspool.evaluation.metrics import Metrics, measure
from unspool.kernels.arrays import Ids, Real, Whole
from unspool.kernels.memory import available
from unspool.model.network import Model
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays
from unspool.training.events import Baseline

MOST_ORDER, WORD_ORDER = 12, 5
"""Highest order of the n-grams in a mixture: for characters and bytes, and for all other tokens."""
REPEATED = 0.5
"""Beyond the order of the baselines, one more is counted while the distinct n-grams of the last one are a smaller share of the text."""
MOST_COUNTS = 8_000_000
"""Most counts of a mixture: an order with which it would have more is left out. About 50 bytes of memory each, 12 in the file."""
FITTED = 200_000
"""Most tokens of the validation split that v is fitted on."""


class MixtureFields(TypedDict):
    """The plain values of a mixture's file."""

    order: int
    K: int
    tokens: int
    network: str
    end: NotRequired[int | None]


class MixtureResult(NamedTuple):
    """A mixture, its score on the part of the text that a run reports, and the time to count its n-grams."""

    mixture: Mixture
    measure: Metrics
    seconds: float


class Orders(NamedTuple):
    """The orders of a mixture's n-grams: all up to `least`, and up to `most` as long as the n-grams repeat."""

    least: int
    most: int


def orders_of(found: Sequence[Baseline], tokens: str, *, fixed: bool) -> Orders:
    """Return the orders of a mixture, given the baselines of its run; those of the baselines if they are `fixed`.

    They are fixed if the user set them, or if time or memory limited them.

    >>> orders_of([], "char", fixed=False)
    Orders(least=0, most=0)
    """
    counted = min(max((ngram_order(each.name) for each in found), default=0), MOST_ORDER)
    if fixed or not counted:
        return Orders(counted, counted)
    one_symbol = tokenizer_class(tokens).one_symbol
    return Orders(counted, MOST_ORDER) if one_symbol else Orders(WORD_ORDER, WORD_ORDER)


class Counted(NamedTuple):
    """The n-grams of a mixture, and the seconds to count them; None if there is no memory for the counts."""

    ngrams: NgramModel | None
    seconds: float


def count_for_mixture(corpus: Corpus, orders: Orders, *, backward: bool) -> Counted:
    """Count the n-grams of the training split, of these orders."""
    start = time.perf_counter()
    ids, K = in_reading_order(corpus.train.ids, backward), len(corpus.vocab)
    levels = _count(ids, K, orders, corpus.end)
    ngrams = kneser_ney(NgramCounts(levels, K, len(ids), corpus.end)) if levels else None
    return Counted(ngrams, time.perf_counter() - start)


def mix(
    model: Model, corpus: Corpus, counted: Counted, part: str, network: Real, *, backward: bool
) -> MixtureResult | None:
    """Fit the share of n-grams on the validation split, and score a part by name.

    `network` holds log P of the part's tokens but the first, by the network. On the validation split itself, each half is scored
    by a fit on the other half. None without n-grams.
    """
    ngrams, seconds = counted
    if ngrams is None:
        return None
    scored = {each.name: each for each in corpus.parts}[part]
    ids = in_reading_order(scored.ids, backward)
    if part == "valid":
        mixture = fit_mixture(ngrams, ids, network)
        log_probs = cross_fitted(mixture, ids, network)
    else:
        valid = _fitted_on(in_reading_order(corpus.valid.ids, backward), corpus.end)
        mixture = fit_mixture(ngrams, valid, log_prob(model, valid, end=corpus.end))
        log_probs = mixture.log_prob(ids, network)
    return MixtureResult(mixture, measure(log_probs, *scored.widths_after_first(backward)), seconds)


def _fitted_on(ids: Ids, end: int | None) -> Ids:
    """Return the first tokens of the validation split, whole lines where lines are independent."""
    first = ids[:FITTED]
    return first if end is None else first[: int(np.flatnonzero(first == end)[-1]) + 1]


def _count(ids: Ids, K: int, orders: Orders, end: int | None = None) -> list[Level]:
    """Count the n-grams of a text: the result depends on the text alone, if memory suffices."""
    levels = list[Level]()
    counting = count_levels(ids, K, min(orders.most, len(ids)), end) if orders.most else iter(())
    while BYTES * len(ids) <= available() and (level := next(counting, None)) is not None:
        levels.append(level)
        total = sum(len(each.keys) for each in levels)
        enough = len(levels) >= orders.least and len(level.keys) >= REPEATED * len(ids)
        if enough or total + len(level.keys) > MOST_COUNTS:  # the next order has hardly ever fewer n-grams
            break
    return levels


def cost_as_json(mixture: Mixture, seconds: float | None, file: Path | None) -> dict[str, Any]:
    """Return the cost of a mixture's n-grams as plain values: counts, seconds to count them, memory and size of the file."""
    size = file.stat().st_size if file is not None and file.exists() else None
    cost = {"order": mixture.order, "counts": mixture.counts, "seconds": seconds}
    return cost | {"memory_bytes": mixture.memory, "file_bytes": size}


def save_mixture(path: Path, mixture: Mixture, model: Model) -> None:
    """Write a mixture for a network into one file."""
    counts = mixture.ngrams.counts
    arrays: dict[str, NDArray[Any]] = {"v": mixture.v}
    for n, level in enumerate(counts.levels, 1):
        arrays |= {f"keys.{n}": level.keys, f"counts.{n}": level.counts.astype(np.int32)}
    metadata = {"order": counts.order, "K": counts.K, "tokens": counts.tokens, "end": counts.end}
    write_arrays(path, arrays, metadata | {"network": model.parameters.sha256})


def load_mixture(path: Path, model: Model) -> Mixture | None:
    """Read the mixture of a network; None if the file does not exist or belongs to another state of the network."""
    if not path.exists():
        return None
    arrays, metadata = read_arrays(path)
    fields = read_as(MixtureFields, metadata, path)
    if fields["network"] != model.parameters.sha256:
        return None
    order, K = fields["order"], fields["K"]
    end = fields.get("end")
    if not 1 <= order <= len(arrays) or model.config.outputs != K or fields["tokens"] < order:
        raise FileError(f"{path}: damaged or manipulated: order, K or tokens is wrong")
    if end is not None and not 0 <= end < K:
        raise FileError(f"{path}: damaged or manipulated: end is {end}; expected a token of the vocabulary")
    v = check_array(arrays, "v", (order + 4,), path, np.float64)
    pairs = list[tuple[Whole, Whole]]()
    for n in range(1, order + 1):
        keys = check_array(arrays, f"keys.{n}", (None,), path, np.int64)
        counts = check_array(arrays, f"counts.{n}", (len(keys),), path, np.int32)
        above = K * (len(pairs[-1][0]) if pairs else 1)
        if (
            not len(keys)
            or keys[0] < 0
            or keys[-1] >= above
            or (np.diff(keys) <= 0).any()
            or counts.min() < 1
        ):
            raise FileError(f"{path}: damaged or manipulated: keys.{n} or counts.{n} is wrong")
        pairs.append((keys, counts.astype(np.int64)))
    return Mixture(kneser_ney(NgramCounts(levels_from_keys(pairs, K), K, fields["tokens"], end)), v)
