"""The layers of a recurrent network as a value: frozen, checked when made, written beside the weights as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.cells import DEFAULT, CellName, cell_named, names_with
from unspool.errors import InputError
from unspool.kernels.arrays import Activation, Precision
from unspool.model import options
from unspool.model.cutoffs import FULL, parse_cutoffs
from unspool.model.values import Feedback, Pattern
from unspool.options import check_fields, declared, from_json, to_json

INPUT_TABLE_LIMIT = 1024
"""Up to this many tokens the whole table E Uᵀ + b is computed once an update; beyond, rows in use only."""
PATTERNS: dict[str, Pattern] = {"10.3": "hidden", "10.4": "output", "10.5": "last"}
"""The figures of the textbook, and what they are called here."""


@declared(options)
@dataclass(frozen=True)
class ModelConfig:
    """A recurrent network.

    >>> ModelConfig(cell="gru", inputs=65, outputs=65, hidden=256, layers=2).directions
    1
    >>> ModelConfig(cell="elman", inputs=5, outputs=2, pattern="10.5").pattern
    'last'
    """

    inputs: int
    outputs: int
    cell: CellName = DEFAULT
    hidden: int = 128
    layers: int = 1
    bidirectional: bool = False
    activation: Activation = "tanh"
    dense: bool = False
    embedding: int = 0
    tied: bool = False
    dropout: float = 0.0
    recurrent_dropout: float = 0.0
    learn_h0: bool = False
    pattern: Pattern = "hidden"
    """hidden (figure 10.3): h(t) reads h(t-1), an output at every step; output (10.4): h(t) reads only the previous
    output; last (10.5): h(t) reads h(t-1), one output after the whole sequence. The figures' numbers are accepted."""
    feedback: Feedback = "token"
    precision: Precision = "float32"
    softmax: str = FULL
    features: int = 1
    """The tokens read at every step; the embeddings of several are added."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", PATTERNS.get(self.pattern, self.pattern))
        if self.pattern not in PATTERNS.values():
            known = ", ".join(f"{name} ({number})" for number, name in PATTERNS.items())
            raise InputError(f"pattern is {self.pattern!r}; expected one of {known}")
        check_fields(self)
        if self.activation != "tanh" and not cell_named(self.cell).has_activation:
            raise InputError(
                f"activation={self.activation!r} requires cell={names_with('has_activation')!r}; the {self.cell} cell has a fixed one"
            )
        if self.recurrent_dropout and not cell_named(self.cell).has_W:
            raise InputError(
                f"recurrent_dropout={self.recurrent_dropout} needs a cell with W: {names_with('has_W')}; the {self.cell} has none, use dropout"
            )
        if self.dense and (self.embedding or self.tied):
            raise InputError("embedding and tied need tokens; leave them out where dense=True")
        if self.features > 1 and (not self.embedding or self.tied or self.pattern == "output"):
            raise InputError(
                f"features={self.features} needs an embedding that is not tied, and no output that is fed back"
            )
        if self.tied and self.embedding != self.width:
            raise InputError(
                f"tied=True needs embedding={self.width} (the width of the last layer); got {self.embedding}"
            )
        if self.tied and self.inputs != self.outputs:
            raise InputError(
                f"tied=True needs as many inputs as outputs; got {self.inputs} and {self.outputs}"
            )
        self._check_softmax()
        if self.pattern == "output":
            self._check_feedback()
        elif self.feedback != "token":
            raise InputError(f"feedback={self.feedback!r} requires pattern='output' (10.4)")

    def _check_softmax(self) -> None:
        """An adaptive softmax has clusters inside the vocabulary and gives an output at every step."""
        if self.softmax == FULL:
            return
        if not self.cutoffs:
            raise InputError(
                f"softmax={self.softmax!r}: a network needs its clusters, for example adaptive:2000,10000; or full"
            )
        if self.cutoffs[-1] >= self.outputs:
            raise InputError(
                f"softmax={self.softmax!r}: the last cluster is empty; expected numbers below the {self.outputs} outputs"
            )
        for name, plain in (
            ("pattern", "hidden"),
            ("bidirectional", False),
            ("dense", False),
        ):
            if getattr(self, name) != plain:
                raise InputError(f"softmax={self.softmax!r} needs {name}={plain!r}; or softmax='full'")

    def _check_feedback(self) -> None:
        """Where the output is the only way back, there is no state to gate, drop, learn or read backwards."""
        if not cell_named(self.cell).reads_output:
            raise InputError(
                f"pattern='output' (10.4) requires cell={names_with('reads_output')!r}; the {self.cell} cell reads its state"
            )
        for name, plain in (("layers", 1), ("bidirectional", False), ("recurrent_dropout", 0.0)):
            if getattr(self, name) != plain:
                raise InputError(
                    f"pattern='output' (10.4) needs {name}={plain}: only the output before is seen, and no state"
                )
        if self.learn_h0 and self.feeds_tokens:
            raise InputError(
                "pattern='output' (10.4) with feedback='token' has no h(0) to learn (h0='learned'): nothing comes "
                "before the first token; use feedback='logits'"
            )

    @property
    def directions(self) -> int:
        """1, or 2 where bidirectional."""
        return 2 if self.bidirectional else 1

    @property
    def width(self) -> int:
        """The width of a layer's output."""
        return self.hidden * self.directions

    @property
    def output_matrix(self) -> str:
        """The name of the matrix of the output: V, or E where tied. A tied adaptive softmax has rows of both, and is V."""
        return "E" if self.tied and not self.cutoffs else "V"

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The first token of every cluster of an adaptive softmax; () for a full one."""
        return parse_cutoffs(self.softmax)

    @property
    def feeds_tokens(self) -> bool:
        """Whether h(t) sees a token, the output before, and no state (figure 10.4)."""
        return self.pattern == "output" and self.feedback == "token"

    @property
    def feeds_logits(self) -> bool:
        """Whether h(t) sees o(t-1) = c + V h(t-1) (figure 10.4 with a real-valued output)."""
        return self.pattern == "output" and self.feedback == "logits"

    @property
    def masks_state(self) -> bool:
        """Whether the recurrence reads h(t-1) under a dropout mask: its own, or that of the output fed back."""
        return self.recurrent_dropout > 0 or (self.feeds_logits and self.dropout > 0)

    @property
    def uses_input_table(self) -> bool:
        """Whether the first layer reads rows of a table: decided by the config alone, never by a batch."""
        small = self.features == 1 and self.inputs <= INPUT_TABLE_LIMIT
        return not self.dense and (self.embedding == 0 or small)

    @property
    def gathers(self) -> bool:
        """Whether the first layer reads rows of E: more tokens than a table is made for."""
        return self.embedding > 0 and not self.uses_input_table

    def input_width(self, layer: int) -> int:
        """Return how many values this layer reads a step: X."""
        return (self.embedding or self.inputs) if layer == 0 else self.width

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return to_json(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> ModelConfig:
        """Make a config from plain values; an unknown field is an error."""
        return from_json(ModelConfig, content)
