"""Score n-gram baselines on the parts of a corpus that a network is scored on, by the same protocol.

Kneser-Ney of every order up to 6 (characters, bytes) or 4 (other tokens) is counted on the training part; of higher
orders the perplexity hardly falls (`docs/log.md` has the measurements). Each order costs time and memory: a run
with a time limit stops before an order that would exceed its share of the limit.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unspool.baselines.kneser_ney import kneser_ney
from unspool.baselines.ngram_counts import NgramCounts, count_levels
from unspool.baselines.ngram_model import NgramModel
from unspool.data.text.corpus import Corpus
from unspool.data.text.parts import Part
from unspool.data.tokens.registry import tokenizer_class
from unspool.errors import InputError
from unspool.evaluation.language import Uniform, evaluate, in_reading_order, spread
from unspool.evaluation.metrics import Metrics, ScoresText, measure
from unspool.kernels.arrays import Ids, Real
from unspool.kernels.memory import available
from unspool.training.events import Baseline, RunConfig

CHARACTER_ORDER, ORDER = 6, 4
"""Default highest order for characters and bytes, and for all other tokens."""
SHARE = 0.1
"""The share of a time limit that n-grams may take."""
GROWTH = 2.0
"""An order is expected to take this many times as long as the one before it."""
MANY = 1 << 20
"""From this many targets on, their log P wait on disk."""
BYTES = 64
"""Bytes of memory per token that counting one more order may take."""


@dataclass(frozen=True)
class Counted:
    """An n-gram model and its cost."""

    n: int
    model: NgramModel
    counts: int
    """How many counts it stores: the distinct n-grams of all its orders."""
    seconds: float
    """The time to count all its orders and to smooth them."""

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.n}-grams"


def ngram_models(ids: Ids, K: int, order: int) -> Iterator[Counted]:
    """Count n-grams and smooth them: one model per order, from 1 on.

    >>> import numpy as np
    >>> [(each.name, each.counts) for each in ngram_models(np.array([0, 1, 0, 1, 2]), 3, 2)]
    [('1-grams', 3), ('2-grams', 6)]
    """
    levels, counting, start = [], 0.0, time.perf_counter()
    for level in count_levels(ids, K, order):
        counted = time.perf_counter()
        levels.append(level)
        model = kneser_ney(NgramCounts(list(levels), K, len(ids)))
        counting += counted - start
        smoothing = time.perf_counter() - counted
        yield Counted(len(levels), model, sum(len(each.keys) for each in levels), counting + smoothing)
        start = time.perf_counter()


@dataclass(frozen=True)
class Scored:
    """The baselines of a corpus, with log P of every target of the validation part for each of them."""

    found: list[Baseline]
    log_probs: list[Real]
    """On disk where there are many: which of them are needed is known when the run has been planned."""
    left_out: str | None
    """Which orders were left out and why, in one line; None: no order was."""

    def live(self, tokens: int) -> list[Baseline]:
        """Return the baselines with their figures on the tokens that validation during training scores."""
        targets = spread(len(self.log_probs[0]), tokens).targets
        return [
            replace(each, live=measure(np.asarray(log_probs[targets])))
            for each, log_probs in zip(self.found, self.log_probs, strict=True)
        ]


def default_order(tokens: str, length: int) -> int:
    """Return the highest order where none is given, by the kind of tokens; no longer than the training part.

    >>> default_order("char", 10_000), default_order("word", 10_000), default_order("char", 3)
    (6, 4, 3)
    """
    return min(CHARACTER_ORDER if tokenizer_class(tokens).one_symbol else ORDER, length)


def baselines(corpus: Corpus, config: RunConfig, seconds: float | None = None) -> Scored:
    """Score the uniform distribution and Kneser-Ney of every order; an order that is not given must fit into `seconds`."""
    K = len(corpus.vocab)
    refuse_too_short(corpus.valid)
    if K == 1:
        raise InputError(
            f"min_freq is {corpus.settings.min_freq}: no token is that frequent, all would be <unk>; choose a lower one"
        )
    baseline, log_probs = _scored("uniform", Uniform(K), corpus, config.backward)
    scored = Scored([baseline], [log_probs], None)
    ids = in_reading_order(corpus.train.ids, config.backward)
    order = config.order or default_order(corpus.settings.tokens, len(ids))
    begin = before = time.perf_counter()
    for each in ngram_models(ids, K, order):
        start = time.perf_counter()
        baseline, log_probs = _scored(each.name, each.model, corpus, config.backward)
        now = time.perf_counter()
        scored.found.append(replace(baseline, seconds=each.seconds + now - start, counts=each.counts))
        scored.log_probs.append(log_probs)
        expected, before = now - begin + GROWTH * (now - before), now
        if each.n < order and (
            why := _too_much(expected, None if config.order else seconds, BYTES * len(ids))
        ):
            orders = f"{each.n + 1}- to {order}-grams" if each.n + 1 < order else f"{order}-grams"
            return replace(scored, left_out=f"{orders} left out: {why}")
    return scored


def _too_much(expected: float, seconds: float | None, needed: int) -> str | None:
    """Return why one more order is too much, or None."""
    if seconds is not None and expected > seconds:
        return f"n-grams may take {seconds:.1f} s, a tenth of the time limit"
    return f"they may need {needed / 2**30:,.1f} GiB of memory" if needed > available() else None


def _scored(name: str, model: ScoresText, corpus: Corpus, backward: bool) -> tuple[Baseline, Real]:
    log_probs = model.log_prob(in_reading_order(corpus.valid.ids, backward))
    valid = measure(log_probs, *corpus.valid.widths_after_first(backward))
    test = evaluate(model, corpus.test, backward=backward) if has_test(corpus) else None
    return Baseline(name, valid, test), _set_aside(log_probs)


def _set_aside(log_probs: Real) -> Real:
    """Move many numbers into a temporary file without a name, mapped into memory; where that fails, they stay."""
    if len(log_probs) < MANY:
        return log_probs
    try:
        with tempfile.TemporaryFile() as file:
            log_probs.tofile(file)
            return np.memmap(file, np.float64, "r")
    except OSError:
        return log_probs


def has_test(corpus: Corpus) -> bool:
    """Return whether there is something to predict in the test part."""
    return len(corpus.test.ids) > 1


def refuse_too_short(part: Part) -> None:
    """Raise unless there is something to predict in the validation part."""
    if len(part.ids) < 2:
        raise InputError(
            f"text too short: its {part.name} part has {len(part.ids)} tokens; expected at least 2: give more "
            "text, or a text of its own as valid="
        )


def best_of(found: Sequence[Baseline], part: str) -> Baseline:
    """Return the baseline with the lowest loss on a part: "valid", "test", or "during" (training)."""

    def nats(baseline: Baseline) -> float:
        figures: Metrics = getattr(baseline, part)
        return figures.nats

    return min(found, key=nats)


def baselines_to_plot(found: Sequence[Baseline]) -> list[Baseline]:
    """Choose the baselines that a learning curve is drawn against: up to 3-grams, and the best."""
    best = best_of(found, "during") if found else None
    return [each for n, each in enumerate(found) if n < 4 or each is best]


def baseline_from_json(fields: dict[str, Any], tested: bool) -> Baseline:
    """Make a baseline from plain values.

    Runs of older versions have no `live`, and their `test` repeats `valid` where there is no test part: with
    `tested` False it is dropped.
    """
    figures = {
        part: None if fields.get(part) is None else Metrics(**fields[part]) for part in ("test", "live")
    }
    valid, test = Metrics(**fields["valid"]), figures["test"] if tested else None
    return Baseline(fields["name"], valid, test, fields.get("seconds"), fields.get("counts"), figures["live"])
