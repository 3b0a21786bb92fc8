"""Score a text by a network that learns while it reads, alone and mixed with n-grams.

    validation split ─▶ rate and segment ─▶ λ of the mixture      never from the text that is scored
    text ─▶ log P of each segment, then an update on it           every target is scored before the network learns from it

The text that is scored starts from the trained network: what was learned from the validation split is not kept.
"""

from collections.abc import Callable
from dataclasses import dataclass

from unspool.baselines.mixture import Mixture, cross_fitted, fit_mixture
from unspool.evaluation.language import no_progress
from unspool.kernels.arrays import Ids, Real
from unspool.model.network import Model
from unspool.training.choose_learning import LearningChoice, choose_learning, targets_to_try
from unspool.training.dynamic import Learning, LearningScorer

FITTED = 50_000
"""Most tokens of the validation split that the share of the n-grams is fitted on."""


@dataclass(frozen=True)
class LearnedScores:
    """log P of all tokens of a text but the first, by a network that learned while it read them."""

    choice: LearningChoice
    log_probs: Real
    mixed: Real | None
    """The same of its mixture with n-grams; None if the model has no n-grams."""


def score_learning(
    model: Model,
    ids: Ids,
    *,
    default: Learning,
    choose: tuple[bool, bool] = (True, True),
    valid: Ids | None = None,
    mixture: Mixture | None = None,
    refit: bool = True,
    on_progress: Callable[[int, int], None] = no_progress,
) -> LearnedScores:
    """Choose rate and segment on the validation split `valid`, fit the mixture's share on it, then score the text `ids`.

    `choose` says whether the rate and the segment are chosen; else they are those of `default`. Without `valid`, `ids` is the
    validation split itself: nothing is chosen, and each half is mixed with the share that fits the other half. Without `refit`, the
    shares are those of `mixture`: its network was trained on the validation split too.
    """
    head = None if valid is None or mixture is None else valid[:FITTED]
    trials = 0 if valid is None else targets_to_try(valid, default, choose)
    fits = 0 if head is None else len(head) - 1
    total = trials + fits + len(ids) - 1

    def after(begin: int) -> Callable[[int, int], None]:
        return lambda done, _: on_progress(begin + done, total)

    choice = LearningChoice(default)
    if valid is not None:
        choice = choose_learning(model, valid, default, choose=choose, on_progress=after(0))
    if head is not None and mixture is not None:
        learned = LearningScorer(model, choice.learning, after(trials)).log_prob(head)
        mixture = fit_mixture(mixture.ngrams, head, learned)
    log_probs = LearningScorer(model, choice.learning, after(trials + fits)).log_prob(ids)
    mixed = None
    if mixture is not None:
        crossed = valid is None and refit
        mixed = cross_fitted(mixture, ids, log_probs) if crossed else mixture.log_prob(ids, log_probs)
    return LearnedScores(choice, log_probs, mixed)
