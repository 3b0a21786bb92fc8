"""The base class of the estimators: scikit-learn's conventions, without requiring scikit-learn.

Constructor arguments are stored unchanged; `fit` learns attributes that end with an underscore and returns
the estimator; `fit_iter` is the same as a generator with one event per update.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np

from unspool.data import options as data
from unspool.data.batches.examples import Examples
from unspool.data.encoders import Encoder, ValueEncoder, as_sequences, fit_encoder
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.lazy import load_name
from unspool.model import options as network
from unspool.model.sequence_config import Head, RecurrentFields, SequenceConfig, Shape
from unspool.model.sequence_network import Network
from unspool.optimisers import options as optimisers
from unspool.options import Arguments, build, check_values, declared
from unspool.storage import run_folder
from unspool.storage.files import as_path
from unspool.storage.html_page import HtmlPage
from unspool.tasks.estimator_files import ARRAYS, CHOICE, LEARNED, read_estimator, write_estimator
from unspool.tasks.estimator_fit import create_run, fit_in_run, load_plan
from unspool.tasks.frames import NAMES, check_names, column_names, row_weights
from unspool.training import options as training
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import StepDone
from unspool.training.members import fit_members
from unspool.training.provenance import provenance
from unspool.training.recipe import FitConfig, FitFields
from unspool.training.sequence_fit import note_cost, plan
from unspool.training.shards import refuse_processes

SCORED = 256
"""The number of rows that are predicted at once."""


@declared(network, optimisers, training, data)
@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(Arguments, FitFields, RecurrentFields):
    """The arguments of every estimator."""

    shape: ClassVar[Shape]
    kind: ClassVar[str]
    """The kind in scikit-learn: classifier, regressor or another."""
    run_kind: ClassVar[str]
    """The kind of its runs."""
    absent: ClassVar[Mapping[str, Any]] = {}
    """Values of the arguments that a run of an earlier version lacks, where these are not the defaults."""

    inputs: str = "auto"
    tokens: str = "char"
    standardise: bool = True

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, run: str | Path | None = None) -> Self:
        """Learn from sequences X and targets y; with a run, the same call continues an interrupted fit.

        `sample_weight` says how much each sequence counts in the loss; with different ones the network answers, not a baseline.
        """
        for _ in self.fit_iter(X, y, sample_weight=sample_weight, run=run):
            pass
        return self

    def fit_iter(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        run: str | Path | None = None,
        save_every: int | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Generator[StepDone]:
        """Learn, and yield an event after every update; the fit is done when the generator ends.

        With a run, a folder, everything is saved there: the state every half minute or after every `save_every` updates,
        and when the generator is closed. The same call continues it to the same bits. `more` goes into its config.
        A fit that raises before its first update leaves the estimator unchanged.
        """
        before, policy = dict(vars(self)), CheckpointPolicy(steps=save_every)
        refuse_processes(self.shards)
        run = None if run is None else as_path(run)
        try:
            rows = as_sequences(X)
            examples = self._learn(rows, y, sample_weight)
            if (names := column_names(X)) is not None:
                setattr(self, NAMES, names)
            self.provenance_ = provenance(examples.sha256())
            if run is None:
                self.fit_config_ = plan(self.network_, examples, self.fit_config(len(examples)))
                self._note_cost(examples)
                return self._counted(self._fit(rows, examples), before)
            if os.path.exists(run / run_folder.CONFIG):
                self.fit_config_ = load_plan(self, examples, run)
            else:
                self.fit_config_ = plan(self.network_, examples, self.fit_config(len(examples)))
                create_run(self, run, examples, more or {})
            self._note_cost(examples)
            return self._counted(fit_in_run(self, rows, examples, run, policy), before)
        except BaseException:
            self._put_back(before)
            raise

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted estimator as a new run; `more` goes into its config.

        >>> import tempfile
        >>> from unspool.tasks.classify import SequenceClassifier
        >>> model = SequenceClassifier(hidden=4, epochs=1).fit(["aa", "ab"], ["x", "y"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "run")
        ...     again = SequenceClassifier.load(Path(folder) / "run")
        >>> again, bool((again.predict_proba(["ba"]) == model.predict_proba(["ba"])).all())
        (SequenceClassifier(hidden=4, epochs=1), True)
        """
        if not hasattr(self, "network_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: there is nothing to save")
        write_estimator(self, path, more)

    def inspect(self, X: Any, y: Any = None) -> HtmlPage:
        """Return a page on how the prediction changes with every step that is read; a notebook displays it, `save` writes it.

        X are a few sequences, y their classes or numbers, if they are known. For classifiers, taggers and regressors.
        """
        if not hasattr(self, "network_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: there is nothing to inspect")
        page: HtmlPage = load_name("studio.steps_page", "inspect_sequences")(self, as_sequences(X), y)
        return page

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fitted estimator from a run."""
        return cast(Self, read_estimator(cls, path))

    def _fit(self, rows: Any, examples: Examples) -> Generator[StepDone]:
        members = list[Floats]()
        if self.trains_network:
            yield from fit_members(self.network_, examples, self.fit_config_, members)
        self.choose(rows, examples, members)

    def _note_cost(self, examples: Examples) -> None:
        if self.trains_network:
            note_cost(self.network_, examples, self.fit_config_)

    @property
    def trains_network(self) -> bool:
        """Whether the network is trained."""
        return True

    def choose(self, rows: Any, examples: Examples, members: list[Floats]) -> None:
        """Choose the model that answers, after the fit of the networks; here it is always the network."""

    def _learn(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        """Learn all but the parameters: how inputs and targets are coded, and the network's sizes."""
        for name in (*LEARNED, *ARRAYS, "target_coder_", CHOICE):
            vars(self).pop(name, None)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: one for each sequence"
            )
        check_values(self, self.get_params())
        rows = self._many(X)
        coder = self._encoder(rows)
        x = coder.encode(rows)
        targets, head, outputs = self._learn_targets(y, x)
        self.network_ = Network.initialise(self.network_config(coder, head, outputs), self.seed)
        self.coder_, self.n_features_in_ = coder, coder.size
        return Examples(x, targets, row_weights(self._weights(sample_weight, targets), len(targets)))

    def _weights(self, sample_weight: Any, targets: Any) -> Any:
        """Return how much each row counts."""
        return sample_weight

    def _counted(self, reports: Generator[StepDone], before: dict[str, Any]) -> Generator[StepDone]:
        """Set `n_iter_` after every update; leave the estimator unchanged where the first update fails."""
        with closing(reports):
            try:
                first = [report] if (report := next(reports, None)) else []
            except BaseException:
                self._put_back(before)
                raise
            for report in chain(first, reports):
                self.n_iter_ = report.step
                yield report
            vars(self).setdefault("n_iter_", 0)  # no update, where only a baseline is fitted

    def _put_back(self, before: dict[str, Any]) -> None:
        vars(self).clear()
        vars(self).update(before)

    def _many(self, X: Any) -> Any:
        """Return X as sequences; a shape that reads one step makes them of length one."""
        return X

    def _encoder(self, rows: Any) -> Encoder:
        """Return the encoder of the inputs, fitted to rows."""
        return fit_encoder(rows, kind=self.inputs, tokens=self.tokens, standardise=self.standardise)

    def _learn_targets(self, y: Any, x: Any) -> tuple[Any, Head, int]:
        raise NotImplementedError

    def network_config(self, coder: Encoder, head: Head, outputs: int) -> SequenceConfig:
        """Return the config of the network."""
        sizes = {"inputs": coder.size, "outputs": outputs, "dense": isinstance(coder, ValueEncoder)}
        return build(SequenceConfig, self, head=head, **sizes)

    def fit_config(self, n: int) -> FitConfig:
        """Return the config of a fit on n rows."""
        return build(FitConfig, self)

    def _examples(self, X: Any) -> Examples:
        if not hasattr(self, "network_"):
            raise not_fitted(
                f"this {type(self).__name__} is not fitted yet: call fit with sequences and targets"
            )
        check_names(self, X)
        return Examples(self.coder_.encode(self._many(as_sequences(X))))

    def fit_transform(self, X: Any, y: Any = None, **given: Any) -> Any:
        """Learn from sequences and targets, and return the features of the sequences."""
        return self.fit(X, y, **given).transform(X)

    def transform(self, X: Any) -> Any:
        """Return what the head of the network reads, as features: n width, or with an answer at every step one array tau width per row."""
        examples, network = self._examples(X), self.network_
        if network.config.has_decoder:
            raise InputError(
                f"transform: a {type(self).__name__} has a decoder; it has no features of its input"
            )
        weights, found = network.weights(), list[Any]([None] * len(examples))
        for batch in examples.batches(examples.rows_at_once(SCORED), per_step=False):
            h = network.forward(batch, weights).h
            for b, row in enumerate(batch.rows.tolist()):
                found[row] = h[: batch.lengths[b], b] if network.config.per_step else h[b]
        return found if network.config.per_step else np.stack(found)

    def _outputs(self, X: Any) -> list[Floats]:
        """Return o of every row, in the order of X: K, or tau K."""
        return self._outputs_of(self._examples(X), self.network_)

    def _outputs_of(self, examples: Examples, network: Network) -> list[Floats]:
        weights, found = network.weights(), list[Any]([None] * len(examples))
        for batch in examples.batches(examples.rows_at_once(SCORED), per_step=False):
            o = network.outputs(batch, weights)
            for b, row in enumerate(batch.rows.tolist()):
                found[row] = o[: batch.lengths[b], b] if network.config.per_step else o[b]
        return found

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        from sklearn.utils import (
            ClassifierTags,
            InputTags,
            RegressorTags,
            Tags,
            TargetTags,
            TransformerTags,
        )

        return Tags(
            estimator_type=self.kind if self.kind in ("classifier", "regressor") else None,
            target_tags=TargetTags(required=True, multi_output=self.kind == "regressor"),
            classifier_tags=ClassifierTags() if self.kind == "classifier" else None,
            regressor_tags=RegressorTags() if self.kind == "regressor" else None,
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(three_d_array=True, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` was called, for scikit-learn."""
        return hasattr(self, "network_")


class NotFitted(InputError, AttributeError):
    """The estimator has not been fitted yet."""


def not_fitted(line: str) -> NotFitted:
    """Return the error; where scikit-learn is loaded, it is a NotFittedError as well."""
    if "sklearn" not in sys.modules:
        return NotFitted(line)
    from sklearn.exceptions import NotFittedError

    return type("NotFitted", (NotFitted, NotFittedError), {})(line)  # type: ignore[no-any-return]


def labels_of(y: Any, n: int) -> Any:
    """Return labels as one array, one for each of n sequences."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
        _warn_of_column()
    if labels.ndim != 1:
        raise InputError(f"y has shape {labels.shape}; expected one label for each sequence")
    if len(labels) != n:
        raise InputError(f"there are {n} sequences and {len(labels)} labels; expected as many")
    refuse_none(labels, "y")
    return labels


def _warn_of_column() -> None:
    """Warn as scikit-learn does, where it is loaded, that labels stand in a column."""
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning

        line = "A column-vector y was passed when a 1d array was expected; pass y[:, 0]"
        warnings.warn(line, DataConversionWarning, stacklevel=3)


def refuse_none(labels: Any, name: str) -> None:
    """Raise where a label is None, or where some are strings and some are not."""
    if labels.dtype == object and any(label is None for label in labels):
        at = next(i for i, label in enumerate(labels) if label is None)
        raise InputError(
            f"{name} has None at position {at + 1}; expected a label for each: leave out what has none"
        )
    if labels.dtype == object and len({isinstance(label, str) for label in labels}) > 1:
        odd = next(label for label in labels if not isinstance(label, str))
        raise InputError(f"{name} has {odd!r} among strings; expected labels of one kind")
