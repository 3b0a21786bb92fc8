"""The mixture of a run: its network with the n-grams of its training split; made, saved, loaded.

RUN/mixture.safetensors   the n-grams (keys and counts of every order), the parameters v of their share, and the
                          hash of the network that v was fitted for
"""

from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.mixture import Mixture, cross_fitted, fit_mixture
from unspool.baselines.ngram_counts import NgramCounts, count_ngrams, levels_from_keys
from unspool.data.text.corpus import Corpus
from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order, log_prob
from unspool.evaluation.metrics import Metrics, measure
from unspool.kernels.arrays import Real, Whole
from unspool.model.network import Model
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array, read_arrays, write_arrays

FITTED = 200_000
"""Most tokens of the validation split that v is fitted on."""


class MixtureFields(TypedDict):
    """The plain values of a mixture's file."""

    order: int
    K: int
    tokens: int
    network: str


class MixtureResult(NamedTuple):
    """A mixture and its score on the part of the text that a run reports."""

    mixture: Mixture
    measure: Metrics


def mix(
    model: Model, corpus: Corpus, order: int, part: str, network: Real, *, backward: bool
) -> MixtureResult:
    """Count n-grams of this order, fit their share on the validation split, and score a part by name.

    `network` holds log P of the part's tokens but the first, by the network. On the validation split itself, each half is scored
    by a fit on the other half.
    """
    counted, valid = (in_reading_order(each.ids, backward) for each in (corpus.train, corpus.valid))
    ngrams = kneser_ney(count_ngrams(counted, len(corpus.vocab), order))
    scored = {each.name: each for each in corpus.parts}[part]
    ids = in_reading_order(scored.ids, backward)
    if part == "valid":
        mixture = fit_mixture(ngrams, ids, network)
        log_probs = cross_fitted(mixture, ids, network)
    else:
        valid = valid[:FITTED]
        mixture = fit_mixture(ngrams, valid, log_prob(model, valid))
        log_probs = mixture.log_prob(ids, network)
    return MixtureResult(mixture, measure(log_probs, *scored.widths_after_first(backward)))


def save_mixture(path: Path, mixture: Mixture, model: Model) -> None:
    """Write a mixture for a network into one file."""
    counts = mixture.ngrams.counts
    arrays: dict[str, NDArray[Any]] = {"v": mixture.v}
    for n, level in enumerate(counts.levels, 1):
        arrays |= {f"keys.{n}": level.keys, f"counts.{n}": level.counts.astype(np.int32)}
    metadata = {"order": counts.order, "K": counts.K, "tokens": counts.tokens}
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
    if not 1 <= order <= len(arrays) or model.config.outputs != K or fields["tokens"] < order:
        raise FileError(f"{path}: damaged or manipulated: order, K or tokens is wrong")
    v = check_array(arrays, "v", (order + 2,), path, np.float64)
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
    return Mixture(kneser_ney(NgramCounts(levels_from_keys(pairs, K), K, fields["tokens"])), v)
