"""What maps sequences to answers, as a value: the shape, the head and the recurrence.

one-to-one        x    ─▶ y            a sequence of one step, one answer
many-to-one       x(1) … x(τ) ─▶ y     one answer after the whole sequence (figure 10.5)
many-to-many      x(t) ─▶ y(t)         an answer at every step (figure 10.3)
one-to-many       x    ─▶ y(1) … y(τ') a class or a vector becomes a sequence (figure 10.9)
encoder-decoder   x(1) … x(τ) ─▶ y(1) … y(τ')     of another length (figure 10.12)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from unspool.cells import TASK_DEFAULT, CellName, cell_named, names_with
from unspool.errors import InputError
from unspool.kernels.arrays import Precision
from unspool.model import options as o
from unspool.model.config import ModelConfig
from unspool.model.heads import HEADS
from unspool.model.heads.base import Head as OutputHead
from unspool.options import build, check_choice, check_fields, declared, from_json, to_json

Shape = Literal["one-to-one", "one-to-many", "many-to-one", "many-to-many", "encoder-decoder"]
if TYPE_CHECKING:
    Head = str
else:
    Head = Literal[tuple(HEADS)]
"""A name in the registry of heads: a `str` for the type checker."""
SHAPES = ("one-to-one", "one-to-many", "many-to-one", "many-to-many", "encoder-decoder")
NAMES = 2
"""The features of a step that are the word itself: as it is written, and in lower case."""
UNK, BOS, EOS = 0, 1, 2
"""Where a decoder gives tokens: the ids of <unk>, of <bos>, which it reads first, and of <eos>, which ends a row."""


@dataclass(eq=False, repr=False, kw_only=True)
class RecurrentFields:
    """The hyper-parameters of the recurrent layers, for a network and the estimators that make it."""

    cell: CellName = TASK_DEFAULT
    hidden: int = 64
    layers: int = 1
    bidirectional: bool = False
    embedding: int = 0
    dropout: float = 0.0
    recurrent_dropout: float = 0.0
    chrono_steps: int = 0
    precision: Precision = "float32"


@declared(o)
@dataclass(unsafe_hash=True)
class SequenceConfig(RecurrentFields):
    """A network from sequences to answers.

    >>> SequenceConfig(shape="many-to-one", head="classes", inputs=12, dense=True, outputs=9).has_decoder
    False
    """

    shape: Shape
    """What goes in and what comes out: see above."""
    head: Head
    """classes (cross-entropy), numbers (squared error) or a distribution (mean and standard deviation)."""
    inputs: int
    outputs: int
    dense: bool = False
    pool: o.Pool = "last"
    attention: o.Attention = "none"
    floor: float = 1e-3
    features: int = 1
    crf: bool = False
    """Whether the labels of a sequence are predicted together, with a score for each pair of neighbours."""
    word_dropout: float = 0.0
    """The probability that a step is read in training without its first `NAMES` features, the word itself."""

    def __post_init__(self) -> None:
        check_choice("shape", self.shape, SHAPES)
        check_choice("head", self.head, HEADS)
        check_fields(self)
        if self.attention != "none" and not self.has_decoder:
            raise InputError(f"attention requires a decoder, and {self.shape} has none")
        if self.crf and (self.head != "classes" or self.shape != "many-to-many"):
            raise InputError("crf requires classes at every step")
        if self.pool != "last" and self.shape != "many-to-one":
            raise InputError(
                f"pool={self.pool!r} requires many-to-one: the other shapes have nothing to pool"
            )
        if self.chrono_steps and not cell_named(self.cell).forget_gate:
            raise InputError(
                f"chrono_steps requires the gates of {names_with('forget_gate')}; {self.cell} has none"
            )
        if self.tokens_out and self.outputs <= EOS:
            raise InputError("a decoder of tokens needs <unk>, <bos>, <eos> and at least one token more")
        self.encoder, self.decoder  # noqa: B018 - making them checks the rest

    @property
    def has_decoder(self) -> bool:
        """Whether the answer is a sequence whose length can differ from that of the input."""
        return self.shape in ("one-to-many", "encoder-decoder")

    @property
    def per_step(self) -> bool:
        """Whether there is an answer at every step."""
        return self.shape == "many-to-many"

    @property
    def tokens_out(self) -> bool:
        """Whether the decoder gives tokens."""
        return self.has_decoder and self.output_head.is_discrete

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
        return self._layers(self.outputs, dense=not self.tokens_out, features=1) if self.has_decoder else None

    def _layers(
        self, inputs: int, *, dense: bool, bidirectional: bool = False, features: int | None = None
    ) -> ModelConfig:
        sizes = {"inputs": inputs, "embedding": 0 if dense else self.embedding}
        sizes |= {"features": features or self.features}
        return build(ModelConfig, self, dense=dense, bidirectional=bidirectional, **sizes)

    @property
    def width(self) -> int:
        """How many values the head reads."""
        return self.hidden if self.has_decoder else self.encoder.width

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return to_json(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> SequenceConfig:
        """Make a config from plain values; an unknown field is an error."""
        return from_json(SequenceConfig, content)
