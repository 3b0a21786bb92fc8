"""One sequence, one token at a time: fast generation, in constant time and memory per token.

If tokens are fed back (figure 10.4), the previous output of a text is its last token: a(t) = b + (U + R) x(t), and
b + U x(1) for the first token. The only state is whether a token has been read.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Mask
from unspool.model.feedback import AT
from unspool.model.linear import require_linear
from unspool.model.network import Model
from unspool.model.outputs.adaptive import AdaptiveLayer
from unspool.model.packed import Weights
from unspool.model.values import rows_of


class Stream:
    """A model that reads tokens and draws the next one; its state can be saved and restored.

    >>> from unspool.model.config import ModelConfig
    >>> stream = Stream(Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1))
    >>> stream.read(3)
    >>> stream.logits().shape
    (5,)
    """

    def __init__(self, model: Model, weights: Weights | None = None) -> None:
        config = model.config
        if config.dense or config.bidirectional:
            raise InputError("a stream needs tokens and one direction: it cannot read from the end")
        if config.pattern == "last" or (config.feeds_tokens and config.inputs != config.outputs):
            raise InputError(
                "a stream needs an output at every step (pattern='hidden' or 'output'): the next token"
            )
        weights = weights or model.weights()
        table = model.table(weights)
        self.outputs = config.outputs
        """K, the number of tokens that can be drawn."""
        self._fed = config.feeds_tokens
        self._fresh, self._first = True, _native(model, weights, table)
        if self._fed:
            self._after = _native(model, weights, table + model.parameters.stored(AT + "R"))
            self.restore([(np.zeros(config.hidden, np.float32), None)])
        else:
            self.restore(rows_of(model.initial_state(1), 0))

    @property
    def _reader(self) -> native.Stream:
        """The native stream that reads the next token."""
        return self._after if self._fed and not self._fresh else self._first

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "a Stream cannot be copied or pickled: its weights are packed for this machine; copy the model and "
            "stream.state(), then call Stream(model) and restore(state)"
        )

    def read(self, token: int) -> None:
        """Read one token and compute the logits of the next one."""
        try:
            self._reader.read(token)
            self._native, self._fresh = self._reader, False
        except TypeError:
            raise InputError(f"token is {token!r}; expected a whole number of int32") from None

    def draw(
        self,
        u: float,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seen: Mask | None = None,
    ) -> int:
        """Draw the next token with a number u from [0, 1); temperature 0 is greedy.

        `repetition_penalty` applies to the tokens that are true in `seen` (K,).
        """
        how = (temperature, top_k, top_p, min_p, repetition_penalty, seen)
        try:
            return self._native.choose(u, *how)
        except TypeError:
            raise _wrong_arguments(u, *how) from None

    def advance(
        self,
        token: int,
        *,
        seed: int,
        index: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seen: Mask | None = None,
    ) -> int:
        """Read a token and draw the next, as `draw`, with the `index`-th number of the seed's sequence."""
        how = (temperature, top_k, top_p, min_p, repetition_penalty, seen)
        try:
            drawn = self._reader.advance(token, seed % 2**64, index, *how)
        except TypeError:
            raise _wrong_arguments(token, seed, index, *how) from None
        self._native, self._fresh = self._reader, False
        return drawn

    def logits(self) -> Floats:
        """Return o(t), the unnormalised log-probabilities of the next token."""
        return self._native.logits()

    def set_logits(self, o: Floats) -> None:
        """Draw the next token from these logits, float32 (K,), instead of the model's."""
        try:
            self._native.set_logits(o)
        except TypeError:
            raise InputError(f"logits: expected an array of float32, not {type(o).__name__}") from None

    def state(self) -> list[tuple[Floats, Floats]]:
        """Return a copy of (h, s) of every layer; s is zero if the cell has none.

        If tokens are fed back, s is one after the first token.
        """
        state = self._native.state()
        return [(h, np.full_like(s, not self._fresh)) for h, s in state] if self._fed else state

    def restore(self, state: list[tuple[Floats, Floats | None]]) -> None:
        """Continue from a state."""
        for part in state:
            if not (isinstance(part, tuple) and len(part) == 2 and _are_arrays(*part)):
                raise InputError("a state is made of (h, s), arrays of float32; s may be None")
        parts = [(h, np.zeros_like(h) if s is None else s) for h, s in state]
        self._reader.set_state(parts)
        self._native, self._fresh = self._reader, not any(s.any() for _, s in parts)


def _wrong_arguments(*values: object) -> InputError:
    return InputError(
        f"the arguments of a draw are {', '.join(map(repr, values))}; expected whole numbers for token, seed, index "
        "and top_k, numbers for temperature, top_p, min_p and repetition_penalty, and an array of bool for seen"
    )


def _are_arrays(h: object, s: object) -> bool:
    return isinstance(h, np.ndarray) and (s is None or isinstance(s, np.ndarray))


def _native(model: Model, weights: Weights, table: Floats) -> native.Stream:
    """Return the kernel's stream of a model whose first layer reads rows of this table."""
    layers: list[tuple[Any, ...]] = []
    for i, (layer,) in enumerate(weights.layers):
        first, W = i == 0, layer.W_forward
        if model.config.feeds_tokens:  # no h(t-1) is read: W is zero, and R is in the table
            W = model.backend.pack(native.zeros((model.config.hidden,) * 2), transposed=True)
        layers.append(
            (
                layer.cell.name,
                native.ACTIVATIONS[layer.activation],
                model.config.hidden,
                W,
                table if first else None,
                None if first or layer.U is None else layer.U_forward,
                None if first or layer.b is None else layer.b.copy(),
                [each.copy() if isinstance(each, np.ndarray) else each for each in layer.extra_forward],
            )
        )
    output = weights.output
    head, tails = (
        (output.head, output.tails) if isinstance(output, AdaptiveLayer) else (require_linear(output), ())
    )
    parts = [(tail.P.V[0], tail.V.V[0], _copied(tail.V.c)) for tail in tails]
    return native.Stream(layers, head.V[0], _copied(head.c), [weights], parts)


def _copied(c: Floats | None) -> Floats:
    assert c is not None
    return c.copy()
