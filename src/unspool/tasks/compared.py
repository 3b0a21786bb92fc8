"""Estimators whose answer is the network's, a baseline's or the mean of both: the argument `model`.

fit the networks ─▶ fit the baselines on the same rows ─▶ judge all on the rows aside ─▶ choice ─▶ answers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unspool.baselines.sequences.base import Rows
from unspool.baselines.sequences.choice import BASELINE, BEST, MEAN, NETWORK, Choice, choose, mixed
from unspool.data.batches.examples import Examples
from unspool.data.encoders import TokenEncoder, ValueEncoder, as_sequences
from unspool.data.split import split_validation
from unspool.data.tokens.registry import make_tokenizer
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.model.parameters import Parameters
from unspool.model.sequence_network import Network
from unspool.options import build, declared
from unspool.tasks.estimator import Estimator
from unspool.tasks.estimator_files import CHOICE
from unspool.training import options as training
from unspool.training.members import folds_of
from unspool.training.options import ModelChoice
from unspool.training.recipe import FitConfig

FEW, MANY = 10, 500
"""Of fewer rows than FEW, none are set aside by default; from MANY on one part is; between them, there is a network per fold."""
FOLDS = 4
SHARE = 0.1
"""The share of rows that is set aside of many."""
EPOCHS, LEAST = 30, 300
"""By default, the passes over the rows, and the fewest updates of each network of few rows."""
BATCHES = 8
"""Batches of few rows are so small that there are so many."""


@declared(training)
@dataclass(eq=False, repr=False, kw_only=True)
class ComparedEstimator(Estimator):
    """An estimator that keeps the best of the network, a baseline and their mean."""

    averages: ClassVar[bool] = True
    """Whether several networks learn from few rows, and their mean answers."""

    model: ModelChoice = "best"
    epochs: int | None = training.PASSES.field(None)  # type: ignore[assignment]
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
        """Return the config of a fit on n rows."""
        given = {"epochs": self.epochs or EPOCHS}
        if self.validation is not None:
            return build(FitConfig, self, **given)
        if n >= MANY or (not self.averages and n >= 2 * FEW):
            return build(FitConfig, self, **given, validation=SHARE)
        single = n < FEW or self.network_.head.has_std or not self.averages
        return build(
            FitConfig,
            self,
            **given,
            validation=0.0,
            patience=0,
            members=1 if single else FOLDS,
            least=0 if self.epochs or not self.averages else LEAST,
            batch_size=self.batch_size
            if self.shards > 1 or not self.averages
            else min(self.batch_size, max(4, n // BATCHES)),
        )

    def choose(self, rows: Any, examples: Examples, members: list[Floats]) -> None:
        """Set `choice_`: fit the baselines, and judge all models on the rows aside."""
        config, network = self.fit_config_, self.network_
        model = NETWORK if network.head.has_std or examples.weights is not None else self.model
        if config.members == 1:
            parts = [split_validation(len(examples), config.validation, config.seed)]
        else:
            folds = folds_of(examples, config)
            parts = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(config.members)]
        given, y = self._rows(rows, examples.x), list(examples.y) if network.config.per_step else examples.y
        own = [*self._networks(members), *[network] * (not members)] * (model in (BEST, MEAN))
        found = [
            self._outputs_of(examples.part(aside), each)
            if members
            else self._network_outputs(examples.part(aside))
            for each, (_, aside) in zip(own, parts, strict=False)
            if len(aside)
        ]
        joined: Any = [o for part in found for o in part]
        joined = np.stack(joined) if joined and not network.config.per_step else joined
        choice = choose(model, given, y, network.head, parts, joined, self.seed)
        self.choice_ = replace(choice, members=members)

    def _networks(self, members: Sequence[Floats]) -> list[Network]:
        shapes, config = self.network_.parameters.shapes, self.network_.config
        return [Network(config, Parameters(shapes, flat)) for flat in members]

    @property
    def networks_(self) -> list[Network]:
        """The networks whose mean is the network's answer."""
        members = self.choice_.members if hasattr(self, CHOICE) else ()
        return self._networks(members) or [self.network_]

    def _rows(self, raw: Any, x: Any) -> Rows:
        coder, raw = self.coder_, raw if isinstance(raw, np.ndarray) else list(raw)
        if isinstance(coder, TokenEncoder) and coder.joined:  # a list of tokens is the text that they make
            decode = make_tokenizer(coder.tokens).decode
            raw = [row if isinstance(row, str) else decode(list(row)) for row in raw]
        return Rows(raw, x, isinstance(coder, ValueEncoder))

    def _network_outputs(self, examples: Examples) -> Any:
        """Return the mean of o over the networks, n K, or a list of tau K."""
        found = [self._outputs_of(examples, network) for network in self.networks_]
        per_step = self.network_.config.per_step
        return mixed(self.network_.head, found if per_step else [np.stack(each) for each in found])

    def _outputs(self, X: Any, kept: str | None = None) -> list[Floats]:
        """Return o of every row by the model that answers, or by another one of `choice_.answers`."""
        examples = self._examples(X)
        rows, choice = self._rows(as_sequences(X), examples.x), getattr(self, CHOICE, Choice(NETWORK))
        return list(choice.outputs(lambda: self._network_outputs(examples), rows, self.network_.head, kept))
