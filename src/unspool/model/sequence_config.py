"""What maps sequences to answers, as a value: the shape, the head, the recurrence, and how it is fitted.

one-to-one        x    ─▶ y            a sequence of one step, one answer
many-to-one       x(1) … x(τ) ─▶ y     one answer after the whole sequence (figure 10.5)
many-to-many      x(t) ─▶ y(t)         an answer at every step (figure 10.3)
one-to-many       x    ─▶ y(1) … y(τ') a class or a vector becomes a sequence (figure 10.9)
encoder-decoder   x(1) … x(τ) ─▶ y(1) … y(τ')     of another length (figure 10.12)
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

from unspool.cells import TASK_DEFAULT, CellName, cell_named, names_with
from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.model.heads import HEADS
from unspool.model.heads.base import Head as OutputHead
from unspool.model.pooling import POOLS
from unspool.options import (
    MOST_STEPS,
    at_least,
    check_choice,
    check_fraction,
    check_integers,
    check_positive,
    is_number,
)

Shape = Literal["one-to-one", "one-to-many", "many-to-one", "many-to-many", "encoder-decoder"]
Head = Literal["classes", "numbers", "distribution"]
SHAPES = ("one-to-one", "one-to-many", "many-to-one", "many-to-many", "encoder-decoder")
UNK, BOS, EOS = 0, 1, 2
"""Where a decoder gives tokens: the ids of <unk>, of <bos>, which it reads first, and of <eos>, which ends a row."""


@dataclass(frozen=True)
class SequenceConfig:
    """A network from sequences to answers.

    >>> SequenceConfig(shape="many-to-one", head="classes", inputs=12, dense=True, outputs=9).decodes
    False
    """

    shape: Shape
    """What goes in and what comes out: see above."""
    head: Head
    """classes (cross-entropy), numbers (squared error) or a distribution (mean and spread)."""
    inputs: int
    """How many tokens the input has, or how many values a step where `dense`."""
    outputs: int
    """How many classes, or how many numbers."""
    dense: bool = False
    """Whether the input is values rather than tokens."""
    cell: CellName = TASK_DEFAULT
    """elman, gru or lstm."""
    hidden: int = 64
    """H, the units of a layer and direction."""
    layers: int = 1
    """How many layers stand on each other, in the encoder and in the decoder."""
    bidirectional: bool = False
    """Whether the input is also read from its end to its beginning."""
    embedding: int = 0
    """The width of the tables of tokens; 0: tokens are one-hot vectors."""
    dropout: float = 0.0
    """The share of each layer's outputs that is dropped in training."""
    recurrent_dropout: float = 0.0
    """The share of the state that is dropped inside the recurrence, one mask a sequence."""
    pool: Literal["last", "mean"] = "last"
    """One answer from many steps: from the last state, or from the mean of all."""
    attention: Literal["none", "general", "additive"] = "none"
    """Whether, and with which score, the decoder looks back at the states of the encoder."""
    remember: int = 0
    """About how many steps the gates remember before they have learned anything; 0: a few."""
    floor: float = 1e-3
    """The least spread of a distribution."""

    def __post_init__(self) -> None:
        check_choice("shape", self.shape, SHAPES)
        check_choice("head", self.head, tuple(HEADS))
        check_choice("pool", self.pool, tuple(POOLS))
        check_choice("attention", self.attention, ("none", "general", "additive"))
        check_integers(self, inputs=1, outputs=1, hidden=1, layers=1, embedding=0, remember=0)
        if not 0 < self.floor < math.inf:
            raise InputError(f"floor is {self.floor!r}; expected a number above 0")
        if self.attention != "none" and not self.decodes:
            raise InputError(f"attention goes with a decoder, and {self.shape} has none")
        if self.pool != "last" and self.shape != "many-to-one":
            raise InputError(
                f"pool={self.pool!r} goes with many-to-one: the other shapes have nothing to pool"
            )
        if self.remember and not cell_named(self.cell).forget_gate:
            raise InputError(
                f"remember goes with the gates of {names_with('forget_gate')}; {self.cell} has none"
            )
        if self.tokens_out and self.outputs <= EOS:
            raise InputError("a decoder of tokens needs <unk>, <bos>, <eos> and at least one token more")
        self.encoder, self.decoder  # noqa: B018 - making them checks the rest

    @property
    def decodes(self) -> bool:
        """Whether the answer is a sequence of its own length."""
        return self.shape in ("one-to-many", "encoder-decoder")

    @property
    def aligned(self) -> bool:
        """Whether there is an answer at every step."""
        return self.shape == "many-to-many"

    @property
    def tokens_out(self) -> bool:
        """Whether the decoder gives tokens."""
        return self.decodes and self.output_head.is_discrete

    @property
    def output_head(self) -> OutputHead:
        """The head: the meaning of the output, and its loss."""
        return HEADS[self.head](self.outputs, self.floor)

    @property
    def K(self) -> int:
        """The width of the output."""
        return self.output_head.K

    @property
    def encoder(self) -> ModelConfig:
        """The layers that read."""
        return self._layers(self.inputs, dense=self.dense, bidirectional=self.bidirectional)

    @property
    def decoder(self) -> ModelConfig | None:
        """The layers that write; they read what was written before."""
        return self._layers(self.outputs, dense=not self.tokens_out) if self.decodes else None

    def _layers(self, inputs: int, *, dense: bool, bidirectional: bool = False) -> ModelConfig:
        return ModelConfig(
            inputs=inputs,
            outputs=self.outputs,
            cell=self.cell,
            hidden=self.hidden,
            layers=self.layers,
            bidirectional=bidirectional,
            dense=dense,
            embedding=0 if dense else self.embedding,
            dropout=self.dropout,
            recurrent_dropout=self.recurrent_dropout,
        )

    @property
    def width(self) -> int:
        """How many values the head reads."""
        return self.hidden if self.decodes else self.encoder.width

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(fields: dict[str, Any]) -> SequenceConfig:
        """Make a config from plain values; an unknown field is an error."""
        known = {field.name for field in dataclasses.fields(SequenceConfig)}
        if unknown := sorted(set(fields) - known):
            raise InputError(f"unknown field {unknown[0]!r}; expected some of {', '.join(sorted(known))}")
        if missing := sorted({"shape", "head", "inputs", "outputs"} - set(fields)):
            raise InputError(f"the field {missing[0]!r} is missing")
        return SequenceConfig(**fields)


@dataclass(frozen=True)
class FitConfig:
    """How long and how fast a network is fitted."""

    epochs: int = 30
    """How often the training part is read."""
    steps: int | None = None
    """How many updates; None: what the epochs and the minutes allow."""
    minutes: float | None = None
    """The most time that training may take; the updates that fit are counted before the first one."""
    B: int = 32
    """Rows side by side."""
    learning_rate: float = 3e-3
    """Adam's, at its highest; it falls to zero along a cosine."""
    clip: float = 1.0
    """The largest norm of a gradient; 0: no limit."""
    decay: float = 0.0
    """Weight decay on matrices."""
    warmup: float = 0.05
    """The share of the updates over which the learning rate rises."""
    validation: float = 0.0
    """The share of the rows that is set aside, to choose the best parameters by; 0: the last ones are kept."""
    patience: int = 0
    """After how many validations without a better one training stops; 0: never."""
    validations: int = 40
    """How often the rows set aside are scored, at most once an epoch."""
    seed: int = 0
    """Where all random numbers come from."""

    def __post_init__(self) -> None:
        check_integers(self, epochs=1, B=1, patience=0, validations=1, seed=0)
        if self.steps is not None:
            check_integers(self, steps=1)
            at_least("steps", self.steps, 1, MOST_STEPS)
        at_least("epochs", self.epochs, 1, MOST_STEPS)
        if self.minutes is not None and not (is_number(self.minutes) and 0 < self.minutes <= 1e5):
            raise InputError(f"minutes is {self.minutes!r}; expected a number above 0")
        for name in ("validation", "warmup"):
            check_fraction(name, getattr(self, name))
        check_positive("learning_rate", self.learning_rate)
        if self.patience and not self.validation:
            raise InputError("patience needs rows set aside: give validation, for instance 0.1")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return dataclasses.asdict(self)
