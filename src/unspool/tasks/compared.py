"""Estimators whose answer is the network's, a baseline's or the mean of both: the argument `model`.

fit the network ─▶ fit the baselines on the same rows ─▶ judge all on the rows set aside ─▶ choice ─▶ answers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.baselines.sequences.base import Rows
from unspool.baselines.sequences.choice import BASELINE, MEAN, NETWORK, Aside, Choice, choose
from unspool.data.batches.examples import Examples
from unspool.data.encoders import ValueEncoder, as_sequences
from unspool.data.split import split_validation
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.options import build, declared
from unspool.tasks.estimator import Estimator
from unspool.tasks.estimator_files import CHOICE
from unspool.training import options as training
from unspool.training.options import ModelChoice
from unspool.training.recipe import FitConfig

FEW = 20
"""Of fewer rows, none are set aside by default."""
SHARE = 0.1
"""The share of rows that is set aside by default."""


@declared(training)
@dataclass(eq=False, repr=False, kw_only=True)
class ComparedEstimator(Estimator):
    """An estimator that keeps the best of the network, a baseline and their mean."""

    model: ModelChoice = "best"
    validation: float | None = training.SET_ASIDE.field(None)  # type: ignore[assignment]

    @property
    def trains_network(self) -> bool:
        """Whether the network is trained: not where only a baseline is asked for."""
        return self.model != BASELINE

    def _learn(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        examples = super()._learn(X, y, sample_weight)
        if examples.weights is not None and self.model in (BASELINE, MEAN):
            raise InputError(
                f"model is {self.model!r} with weights of sequences: baselines take none; choose 'network' or 'best'"
            )
        return examples

    def fit_config(self, n: int) -> FitConfig:
        """Return the config of a fit on n rows; of few rows none are set aside unless the caller asks for it."""
        if self.validation is not None:
            return super().fit_config(n)
        few = n < FEW
        return build(FitConfig, self, validation=0.0 if few else SHARE, patience=0 if few else self.patience)

    def choose(self, rows: Any, examples: Examples) -> None:
        """Set `choice_`: fit the baselines, and judge all models on the rows set aside."""
        config, network = self.fit_config_, self.network_
        model = NETWORK if network.head.has_std or examples.weights is not None else self.model
        aside = Aside(*split_validation(len(examples), config.validation, config.seed))
        y = list(examples.y) if network.config.per_step else examples.y
        self.choice_ = choose(
            model, self._rows(rows, examples.x), y, network.head, aside, self._network_outputs, self.seed
        )

    def _rows(self, raw: Any, x: Any) -> Rows:
        return Rows(
            raw if isinstance(raw, np.ndarray) else list(raw), x, isinstance(self.coder_, ValueEncoder)
        )

    def _network_outputs(self, rows: Rows) -> Any:
        found = self._outputs_of(Examples(rows.x))
        return found if self.network_.config.per_step else np.stack(found)

    def _outputs(self, X: Any, kept: str | None = None) -> list[Floats]:
        """Return o of every row by the model that answers, or by another one of `choice_.answers`."""
        examples = self._examples(X)
        rows, choice = self._rows(as_sequences(X), examples.x), getattr(self, CHOICE, Choice(NETWORK))
        return list(choice.outputs(lambda: self._network_outputs(rows), rows, self.network_.head, kept))
