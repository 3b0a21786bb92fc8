"""Score n-gram baselines on the splits of a corpus, by the protocol of a network.

Kneser-Ney of every order up to 6 (characters, bytes) or 4 (other tokens) is counted on the training split; higher orders
hardly reduce the perplexity (measurements: `docs/log.md`). Each order costs time and memory: a run with a time limit
stops before an order that would exceed a tenth of the limit.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.ngram_counts import NgramCounts, count_levels
from unspool.data.text.corpus import Corpus
from unspool.data.text.parts import Part
from unspool.data.tokens.registry import tokenizer_class
from unspool.errors import InputError
from unspool.evaluation.language import Uniform, evaluate, in_reading_order, validated_targets
from unspool.evaluation.metrics import Metrics, ScoresText, measure
from unspool.kernels.arrays import Ids, Real
from unspool.kernels.memory import available
from unspool.training.events import Baseline, RunConfig

CHARACTER_ORDER, ORDER = 6, 4
"""Default highest order for characters and bytes, and for all other tokens."""
TIME_FRACTION = 0.1
"""Fraction of a time limit for n-grams."""
GROWTH = 2.0
"""Expected time of an order, relative to the order before it."""
MANY = 1 << 20
"""Number of targets from which their log P are stored on disk."""
NGRAMS = "-grams"
"""The end of the name of n-grams, after their order."""
BYTES = 64
"""Memory per token to count one more order, in bytes, at most."""


class LanguageBaseline(NamedTuple):
    """A baseline model and its cost."""

    name: str
    """The name in tables."""
    n: int
    """The order of an n-gram model; 0 for the uniform distribution."""
    model: ScoresText
    seconds: float | None = None
    """Time to count and smooth all its orders."""
    counts: int | None = None
    """Number of stored counts: the distinct n-grams of all its orders."""


def language_baselines(ids: Ids, K: int, order: int, end: int | None = None) -> Iterator[LanguageBaseline]:
    """Yield the baselines of a training text: the uniform distribution, then Kneser-Ney of order 1, 2, ….

    Where `end` ends independent lines, no n-gram reaches from one into the next.

    >>> import numpy as np
    >>> [(each.name, each.counts) for each in language_baselines(np.array([0, 1, 0, 1, 2]), 3, 2)]
    [('uniform', None), ('1-grams', 3), ('2-grams', 6)]
    """
    yield LanguageBaseline("uniform", 0, Uniform(K))
    levels, counting, start = [], 0.0, time.perf_counter()
    for level in count_levels(ids, K, order, end) if order else ():
        counted = time.perf_counter()
        levels.append(level)
        model, counts = (
            kneser_ney(NgramCounts(list(levels), K, len(ids), end)),
            sum(len(each.keys) for each in levels),
        )
        counting += counted - start
        seconds = counting + time.perf_counter() - counted
        yield LanguageBaseline(f"{len(levels)}{NGRAMS}", len(levels), model, seconds, counts)
        start = time.perf_counter()


@dataclass(frozen=True)
class Scored:
    """The baselines of a corpus, and log P of each target of the validation split for each baseline."""

    found: list[Baseline]
    log_probs: list[Real]
    """On disk if there are many; which of them are needed is known once the run is planned."""
    left_out: str | None
    """The orders that were left out and why, in one line; None if there are none."""
    valid: Ids
    """The validation split, in reading order."""
    end: int | None = None
    """The token that ends a line, where lines are independent."""

    def live(self, tokens: int) -> list[Baseline]:
        """Return the baselines with their metrics on the tokens that validation during training scores."""
        targets = validated_targets(self.valid, tokens, self.end)
        return [
            replace(each, live=measure(np.asarray(log_probs[targets])))
            for each, log_probs in zip(self.found, self.log_probs, strict=True)
        ]


def default_order(tokens: str, length: int) -> int:
    """Return the default highest order for a kind of tokens, at most the length of the training split.

    >>> default_order("char", 10_000), default_order("word", 10_000), default_order("char", 3)
    (6, 4, 3)
    """
    return min(CHARACTER_ORDER if tokenizer_class(tokens).one_symbol else ORDER, length)


def baselines(corpus: Corpus, config: RunConfig, seconds: float | None = None) -> Scored:
    """Score the uniform distribution and Kneser-Ney of each order; without `config.order`, stop after `seconds`."""
    K = len(corpus.vocab)
    require_targets(corpus.valid)
    if K == 1:
        raise InputError(
            f"min_freq is {corpus.settings.min_freq}: no token is that frequent, all would be <unk>; choose a lower one"
        )
    valid = in_reading_order(corpus.valid.ids, config.backward)
    scored = Scored([], [], None, valid, corpus.end)
    ids = in_reading_order(corpus.train.ids, config.backward)
    order = config.order or default_order(corpus.settings.tokens, len(ids))
    begin = before = time.perf_counter()
    for each in language_baselines(ids, K, order, corpus.end):
        start = time.perf_counter()
        baseline, log_probs = _scored(each.name, each.model, corpus, config.backward)
        now = time.perf_counter()
        seconds_taken = None if each.seconds is None else each.seconds + now - start
        scored.found.append(replace(baseline, seconds=seconds_taken, counts=each.counts))
        scored.log_probs.append(log_probs)
        expected, before = now - begin + GROWTH * (now - before), now
        reason = _too_much(expected, None if config.order else seconds, BYTES * len(ids))
        if 0 < each.n < order and reason:
            orders = f"{each.n + 1}- to {order}-grams" if each.n + 1 < order else f"{order}-grams"
            return replace(scored, left_out=f"{orders} left out: {reason}")
    return scored


def _too_much(expected: float, seconds: float | None, needed: int) -> str | None:
    """Return why one more order would exceed time or memory, or None."""
    if seconds is not None and expected > seconds:
        return f"n-grams may take {seconds:.1f} s, a tenth of the time limit"
    return f"they may need {needed / 2**30:,.1f} GiB of memory" if needed > available() else None


def _scored(name: str, model: ScoresText, corpus: Corpus, backward: bool) -> tuple[Baseline, Real]:
    log_probs = model.log_prob(in_reading_order(corpus.valid.ids, backward))
    valid = measure(log_probs, *corpus.valid.widths_after_first(backward))
    test = evaluate(model, corpus.test, backward=backward) if has_test(corpus) else None
    return Baseline(name, valid, test), _move_to_disk(log_probs)


def _move_to_disk(log_probs: Real) -> Real:
    """Return a memory map of an unnamed temporary file if there are many values; otherwise, or if that fails, the values."""
    if len(log_probs) < MANY:
        return log_probs
    try:
        with tempfile.TemporaryFile() as file:
            log_probs.tofile(file)
            return np.memmap(file, np.float64, "r")
    except OSError:
        return log_probs


def has_test(corpus: Corpus) -> bool:
    """Return whether the test split has a target."""
    return len(corpus.test.ids) > 1


def require_targets(part: Part) -> None:
    """Raise InputError if the validation split has no target."""
    if len(part.ids) < 2:
        raise InputError(
            f"text too short: its {part.name} split has {len(part.ids)} tokens; expected at least 2: give more "
            "text, or a separate validation text as valid="
        )


def best_of(found: Sequence[Baseline]) -> Baseline:
    """Return the baseline with the lowest loss beside a learning curve."""
    return min(found, key=lambda baseline: baseline.during.nats)


def ngram_order(name: str) -> int:
    """Return the order in the name of a baseline; 0 for one that is not an n-gram model.

    >>> ngram_order("6-grams"), ngram_order("uniform")
    (6, 0)
    """
    return int(name.removesuffix(NGRAMS)) if name.endswith(NGRAMS) else 0


def baselines_to_plot(found: Sequence[Baseline]) -> list[Baseline]:
    """Return the baselines to plot with a learning curve: up to 3-grams, and the best."""
    best = best_of(found) if found else None
    return [each for n, each in enumerate(found) if n < 4 or each is best]


def baseline_from_json(fields: dict[str, Any], tested: bool) -> Baseline:
    """Return a baseline from plain values.

    Runs of older versions have no `live`, and their `test` repeats `valid` if there is no test split: with `tested` False it
    is dropped.
    """
    figures = {
        part: None if fields.get(part) is None else Metrics(**fields[part]) for part in ("test", "live")
    }
    valid, test = Metrics(**fields["valid"]), figures["test"] if tested else None
    return Baseline(fields["name"], valid, test, fields.get("seconds"), fields.get("counts"), figures["live"])
