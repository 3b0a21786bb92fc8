"""The lines that a network has to cross: models that only count, on the same parts, by the same protocol."""

from typing import Any

from unspool.counting.kneser_ney import kneser_ney
from unspool.counting.ngram import NgramCounts, count_ngrams
from unspool.data.corpus import Corpus
from unspool.data.parts import Part
from unspool.errors import InputError
from unspool.evaluate import evaluate, in_time, uniform
from unspool.events import Baseline, RunConfig
from unspool.measure import Measure


def baselines(corpus: Corpus, config: RunConfig) -> list[Baseline]:
    """Judge the uniform distribution and Kneser-Ney of every order up to that of the config."""
    K = len(corpus.vocab)
    held_out = (corpus.valid, corpus.test if len(corpus.test.ids) > 1 else corpus.valid)
    refuse_too_short(corpus.valid)
    if K == 1:
        raise InputError(
            f"min_freq is {corpus.settings.min_freq}: no token is that frequent, all would be <unk>; choose a lower one"
        )
    found = [Baseline("uniform", *(uniform(K, part, backward=config.backward) for part in held_out))]
    counts = count_ngrams(in_time(corpus.train.ids, config.backward), K, config.order)
    for n in range(1, config.order + 1):
        model = kneser_ney(NgramCounts(counts.levels[:n], K, counts.tokens))
        judged = (evaluate(model, part, backward=config.backward) for part in held_out)
        found.append(Baseline(f"{n}-grams", *judged))
    return found


def refuse_too_short(part: Part) -> None:
    """Raise unless there is something to predict in the validation part."""
    if len(part.ids) < 2:
        raise InputError(
            f"text too short: its {part.name} part has {len(part.ids)} tokens; expected at least 2: give more "
            "text, or a file of its own with --valid"
        )


def lines_to_cross(found: list[Baseline]) -> list[Baseline]:
    """Choose the baselines that a picture has room for: the lowest four and the highest order."""
    return [each for n, each in enumerate(found) if n < 4 or n == len(found) - 1]


def baseline_from_json(fields: dict[str, Any]) -> Baseline:
    """Make a baseline from plain values."""
    return Baseline(fields["name"], Measure(**fields["valid"]), Measure(**fields["test"]))
