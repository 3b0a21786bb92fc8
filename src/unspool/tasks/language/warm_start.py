"""Start a training from a trained model on another text (fine-tuning): `unspool train TEXT --from RUN`.

- The tokenizer, the cleaning, the direction and the shape of the network are those of the trained model.
- Its vocabulary is extended: every token keeps its id and parameters, also one that the new text does not have. Tokens
  of the new training split that it lacks get the next ids, the most frequent first.
- New tokens begin with random rows, as in a new network. Every c is corrected for the new text: with the shares f of the
  tokens in the old and the new training split (half a count for those that do not occur),

      c_k <- c_k + log f_new(k) - log f_old(k)    of an old token,    c_k = log f_new(k)    of a new one      (1)

  A classifier whose classes become more or less frequent is corrected in this way, and nothing else of it changes.
- The optimiser starts anew, with the learning rate of a new network: lower ones were worse (docs/log.md).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from unspool.data.text.corpus import Corpus
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.vocab import Vocab
from unspool.errors import InputError
from unspool.kernels.arrays import Floats
from unspool.model.config import PATTERNS
from unspool.model.cutoffs import AUTO as AUTO_SOFTMAX
from unspool.model.network import Model
from unspool.model.outputs import output_of
from unspool.tasks.language.text_model import TextModel
from unspool.training.events import RunConfig, Started

SHAPE = (
    "cell", "hidden", "layers", "embedding", "tied", "activation", "h0", "pattern", "feedback", "precision", "softmax",
)  # fmt: skip
"""Fields of the recipe that the trained model decides."""
READING = ("tokens", "clean", "newlines", "lines")
"""Fields of the text settings that the trained model decides."""


@dataclass(frozen=True)
class WarmStart:
    """A trained model, and the name of its run."""

    name: str
    model: TextModel
    given: frozenset[str] = frozenset()
    """Text settings that the user chose, also where they are the defaults."""

    @staticmethod
    def of(start: "str | Path | TextModel", given: Iterable[str] = ()) -> "WarmStart":
        """Return the start from a run or from a model."""
        if isinstance(start, TextModel):
            return WarmStart("a model", start, frozenset(given))
        if not isinstance(start, str | Path):
            raise InputError(f"start is {start!r}; expected the folder of a run, or a trained model")
        return WarmStart(str(start), TextModel.load(start), frozenset(given))

    def provenance(self) -> dict[str, Any]:
        """Return the fields of a run's provenance that name the trained model."""
        return {"from": {"run": self.name, "model_sha256": self.model.model.parameters.sha256}}

    def config(self, config: RunConfig) -> RunConfig:
        """Return the config with the model's shape, direction and reading; raise where it contradicts them."""
        shape = self.shape()
        for name in SHAPE:
            if config.given.get(name, shape[name]) not in (shape[name], AUTO_SOFTMAX):
                self._refuse(name, config.given[name], shape[name])
        if config.backward and not self.model.backward:
            self._refuse("backward", True, False)
        return replace(
            config,
            start=self.name,
            settings=self._settings(config.settings),
            given=config.given | shape,
            backward=self.model.backward,
        )

    def shape(self) -> dict[str, Any]:
        """Return the fields of a recipe that the network has."""
        made = self.model.model.config
        figures = {pattern: figure for figure, pattern in PATTERNS.items()}
        own = {"h0": "learned" if made.learn_h0 else "zero", "pattern": figures[made.pattern]}
        return {name: own.get(name, getattr(made, name, None)) for name in SHAPE}

    def _settings(self, asked: TextConfig) -> TextConfig:
        """Return how the new text is read: as the old one, with the split that is asked for."""
        usual, own, found = TextConfig(), self.model.settings, dict[str, Any]()
        for field in fields(TextConfig):
            value, default = getattr(asked, field.name), getattr(usual, field.name)
            if field.name != "split" and value == default and field.name not in self.given:
                found[field.name] = getattr(own, field.name)
            elif field.name in READING and value != getattr(own, field.name):
                self._refuse(field.name, value, getattr(own, field.name))
        return replace(asked, **found)

    def _refuse(self, name: str, asked: object, own: object) -> None:
        raise InputError(
            f"{name} is {asked}, but the model of {self.name} was trained with {own}; leave it out, or train a new model"
        )

    def event(self, corpus: Corpus) -> Started:
        """Return what changed in the vocabulary."""
        own, counts = self.model.vocab, dict(corpus.vocab.token_freqs)
        special = 1 + len(own.reserved_tokens)
        absent = [token for token in own.idx_to_token[special:] if not counts.get(token)]
        return Started(self.name, len(own), corpus.vocab.idx_to_token[len(own) :], absent)

    def fill(self, model: Model, log_frequencies: Callable[[Vocab], Floats]) -> None:
        """Set the parameters of a new model to those of the trained one; the rows of new tokens stay as they are.

        The biases c of the new model are those of the frequencies of the new text. The last cluster of an adaptive softmax
        gets the new tokens.
        """
        trained = self.model.model
        kind, config = output_of(trained.config), trained.config
        before = trained.parameters.like()
        kind.set_bias(config, before, log_frequencies(self.model.vocab))
        biases = {name for name in kind.names(config) if name.rpartition(".")[2] == "c"}
        for name, values in trained.parameters.items():
            inside = model.parameters[name][tuple(map(slice, values.shape))]
            inside[:] = values + (inside - before[name]) if name in biases else values  # (1)
