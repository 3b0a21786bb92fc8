"""A recurrent network: layers on each other, in one or both directions, and an output.

    tokens or values ─▶ layer 0 ─▶ … ─▶ layer L-1 ─▶ h(t) ─▶ o(t) = c + V h(t)

The output comes at every step (figures 10.3 and 10.4) or once, after the whole sequence (10.5). State is an argument
and a result; the model stores none. The forward pass returns the output, the final state and a tape; the backward pass
takes the tape and the gradient of the output. The backend computes: `native` in float32 or `native_bf16`, by the config's
precision, or another that is given, as `reference` in float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids, Mask
from unspool.kernels.backend import PRECISIONS, Backend, OnBackend
from unspool.kernels.tape import Loss
from unspool.model.config import ModelConfig
from unspool.model.embedding import add_embedded, embed
from unspool.model.feedback import (
    AT,
    NOTHING,
    add_feedback_gradient,
    fold_feedback,
    free_running,
    shift_right,
    unroll_feedback,
)
from unspool.model.gradient import Gradient, Gradients, by_rows
from unspool.model.heads.classes import Classes
from unspool.model.inputs import as_int32, check_input, check_state, without_padding
from unspool.model.layer import add_layer_gradient, fold_input_tables
from unspool.model.layer_names import layer_directions
from unspool.model.linear import OutputGradient, TailGradient
from unspool.model.outputs import output_of
from unspool.model.packed import Weights
from unspool.model.parameters import Parameters, initialise, prefix
from unspool.model.pooling import EVERY_STEP, POOLS, Pooling
from unspool.model.stack import LayerGradient, backward_layers, forward_layers
from unspool.model.values import FinalGradients, LayerTape, Masks, Output, State, rows_of
from unspool.options import at_least


class Model(OnBackend):
    """A config and parameters, and the forward and backward pass through them.

    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=8), seed=1)
    >>> out = model.forward(np.array([[0], [3], [1]], np.int32))
    >>> out.h.shape, out.h.dtype, len(out.state)
    ((3, 1, 8), dtype('float32'), 1)
    >>> from unspool.kernels import reference
    >>> model.on(reference).forward(np.array([[0], [3], [1]], np.int32)).h.dtype
    dtype('float64')
    """

    def __init__(
        self,
        config: ModelConfig,
        parameters: Parameters,
        backend: Backend | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        self.config = config
        self.parameters = parameters
        self.backend = backend or PRECISIONS[config.precision]
        self.pooling = pooling or POOLS.get(config.pattern, EVERY_STEP)
        self.head = Classes(config.outputs)

    @staticmethod
    def initialise(config: ModelConfig, seed: int) -> Model:
        """Return a model with new parameters: the same for the same seed."""
        return Model(config, initialise(config, np.random.default_rng(at_least("seed", seed, 0))))

    def on(self, backend: Backend) -> Model:
        """Return a model with a copy of the parameters on another backend, in its precision."""
        return Model(self.config, self.parameters.astype(backend.DTYPE), backend, self.pooling)

    def weights(self) -> Weights:
        """Return the current parameters in the layout of the kernels."""
        return Weights(self.config, self.parameters, self.backend)

    def table(self, weights: Weights | None = None) -> Floats:
        """Return b + U x for every token, K G*H: what the first layer adds to W h(t-1)."""
        first = (weights or self.weights()).layers[0][0]
        if self.config.uses_input_table:
            return first.table
        return first.table_of(self.parameters["E"] if self.config.embedding else first.E)

    def gradient(self, values: Parameters | None = None) -> Gradient:
        """Return a gradient of zero; its values are written to `values` where given."""
        made = self.parameters.like() if values is None else values
        gradient = Gradient(self.config, made, block=self.backend.BLOCK)
        if self.config.gathers:
            apart = self.config.output_matrix == "E"
            gradient.embedded = self.backend.zeros(made["E"].shape) if apart else made["E"]
            gradient.embedded[:] = 0
        if self.config.tied and self.config.cutoffs:
            gradient.head = self.backend.zeros((made["c"].size, self.config.width))
        return gradient

    def initial_state(self, B: int) -> State:
        """Return the state before the first step, learned or zero; where tokens are fed back, the token before."""
        B = at_least("B", B, 0)
        if self.config.feeds_tokens:
            return [(np.full(B, NOTHING, np.int32), None)]
        cell_state, state = cell_named(self.config.cell).has_cell_state, State()
        for layer, reverse in layer_directions(self.config):
            at = prefix(layer, reverse)
            s0 = self._initial(at + "s0", B) if cell_state else None
            state.append((self._initial(at + "h0", B), s0))
        return state

    def _initial(self, name: str, B: int) -> Floats:
        if self.config.learn_h0:
            return np.tile(self.parameters[name], (B, 1))
        return np.zeros((B, self.config.hidden), self.backend.DTYPE)

    def masks(self, B: int, *, seed: int, step: int) -> Masks:
        """Draw the dropout masks of a window: a function of seed and step only."""
        config, mask = self.config, self.backend.dropout_mask
        outputs = states = None
        if config.dropout:
            outputs = [
                mask((B, config.width), seed=seed, stream=_stream(step, layer, 0), rate=config.dropout)
                for layer in range(config.layers)
            ]
        if config.recurrent_dropout:
            states = [
                mask((B, config.hidden), seed=seed, stream=_stream(step, i, 1), rate=config.recurrent_dropout)
                for i in range(config.layers * config.directions)
            ]
        return Masks(outputs, states)

    def forward(
        self,
        x: Floats | Ids,
        state: State | None = None,
        *,
        lengths: Ids | None = None,
        masks: Masks | None = None,
        weights: Weights | None = None,
        y: Ids | None = None,
        sampled_mask: NDArray[np.bool_] | None = None,
    ) -> Output:
        """Read a window: tokens (tau, B) or values (tau, B, X); row b has lengths[b] steps.

        Where tokens are fed back (figure 10.4), targets `y` (tau, B) are the outputs before (teacher forcing) and all
        steps are computed at once. Without `y`, and where `sampled_mask` (tau, B) is True, the model's own outputs
        are fed back, step by step. Other models ignore `y`.
        """
        config = self.config
        check_input(config, x, lengths)
        weights = weights or self.weights()
        state = self.initial_state(x.shape[1]) if state is None else state
        check_state(config, state, "state")
        ids = None if config.dense else without_padding(x, lengths)
        if ids is not None:
            x = ids if config.uses_input_table else self._embed(ids)
        if config.feeds_tokens:
            return self._forward_feedback(x, state, lengths, masks, weights, ids, y, sampled_mask)
        return forward_layers(weights, x, state, lengths, masks, ids)

    def _forward_feedback(
        self,
        x: Floats | Ids,
        state: State,
        lengths: Ids | None,
        masks: Masks | None,
        weights: Weights,
        ids: Ids | None,
        y: Ids | None,
        sampled_mask: NDArray[np.bool_] | None,
    ) -> Output:
        (layer,), first = weights.layers[0], np.asarray(state[0][0], np.int32)
        R, mask = self.parameters.stored(AT + "R"), masks.outputs[0] if masks and masks.outputs else None
        if y is not None and y.shape != x.shape[:2]:
            raise InputError(
                f"y has shape {y.shape}; expected {x.shape[:2]}, one target for each step and row"
            )
        if y is not None and sampled_mask is None:
            before = shift_right(y, first)
            tape = unroll_feedback(layer, R, x, before, lengths)
            last = y[-1].astype(np.int32) if len(y) else first
        else:
            tape, before, last = free_running(
                layer, R, x, first, lengths, mask, weights.linear_output, y, sampled_mask
            )
        h = tape.h if mask is None else self.backend.scale_rows(np.ascontiguousarray(tape.h), mask)
        return Output(h, [(last, None)], [LayerTape(x, [tape], mask, before)], ids)

    def _embed(self, ids: Ids) -> Floats:
        return embed(self.parameters["E"], ids, self.config.features, self.backend)

    def loss(
        self,
        output: Output,
        y: Ids,
        *,
        scale: float = 1.0,
        weights: Weights | None = None,
        gradient: Gradient | None = None,
    ) -> Loss:
        """Return the loss of targets y (tau, B), negative ones masked: the sum of nats and the count.

        With one output after the whole sequence (pattern="last") there is one target per row, y (B,). With `gradient`,
        add the gradients of V and c of `scale` times the sum to it, and return the gradient of h in the loss.
        """
        h = self.head_input(output)
        self.head.check_targets(h, y)
        layer, y = (weights or self.weights()).output, as_int32(y, "y")
        if gradient is None:
            return self.head.loss(layer, h, y)
        return self.head.loss(layer, h, y, self.output_gradient(gradient, scale))

    def output_gradient(self, gradient: Gradient, scale: float = 1.0) -> OutputGradient:
        """Return where the gradients of V (of E, if tied), c and the tails go, each of `scale` times the sum of the losses."""
        (dV, dc, *more), held = gradient.accumulators(*output_of(self.config).names(self.config))
        tails = tuple(TailGradient(*more[i : i + 3]) for i in range(0, len(more), 3))
        return OutputGradient(dV if gradient.head is None else gradient.head, dc, scale, held, tails)

    def head_input(self, output: Output) -> Floats:
        """Return the input of the head: h (tau, B, width), or one vector per row (B, width), with pattern="last" the final state."""
        return self.pooling.forward(output, self.backend)

    def logits(self, output: Output, weights: Weights | None = None) -> Floats:
        """Return o = c + V h, or that of an adaptive softmax: softmax(o) are the probabilities. (tau, B, K) or (B, K)."""
        return (weights or self.weights()).output(self.head_input(output))

    def backward_from_logits(
        self, output: Output, do: Floats, gradient: Gradient, weights: Weights | None = None
    ) -> Floats:
        """Add the gradients of V and c from a gradient of o; return the gradient of h for `backward`."""
        h = self.head_input(output)
        if np.shape(do) != (*h.shape[:-1], self.config.outputs):
            raise InputError(f"do has shape {np.shape(do)}; expected {(*h.shape[:-1], self.config.outputs)}")
        layer = (weights or self.weights()).linear_output
        dV, dc = gradient.accumulator(self.config.output_matrix), gradient.accumulator("c")
        return layer.backward(h, do, dV, dc)

    def backward(
        self,
        output: Output,
        dh: Floats | None,
        gradient: Gradients,
        *,
        d_final_state: State | None = None,
        weights: Weights | None = None,
        xi: Floats | None = None,
        want_dx: bool = False,
        consume: bool = False,
    ) -> tuple[Floats | None, State]:
        """Add the gradients of all parameters but V and c; return those of x and of the initial state.

        `dh` is the gradient of the head's input: (tau, B, width), or (B, width) with pattern="last". `d_final_state` is
        the gradient of the final state. The gradient that step t passes to step t-1 is multiplied by `xi` (tau, B);
        see `truncation`. With `consume`, `dh` and the gates of the tape are overwritten, which is faster. With a list
        of gradients, each row has its own. A window can be passed in parts, the last first; in bf16, a cut that changes the last
        bits is reported by a CutWarning.
        """
        config = self.config
        for rows, each in by_rows(gradient):
            each.continue_window(*output.h[:, rows].shape[:2])
        weights = weights or self.weights()
        d_initial: State = [(np.empty(0), None)] * (config.layers * config.directions)
        dx: Floats | None = None
        for layer, _, backs, dx in self.layer_gradients(  # noqa: B007 - dx of layer 0 is used below
            output, dh, d_final_state=d_final_state, weights=weights, xi=xi, want_dx=want_dx, consume=consume
        ):
            tape = output.tape[layer]
            for i, back in enumerate(backs):
                of = weights.layers[layer][i]
                if tape.before is not None:
                    add_feedback_gradient(of, tape.x, tape.before, tape.directions[i], back.da, gradient)
                else:
                    add_layer_gradient(of, tape.x, tape.directions[i], back.da, gradient)
                d_initial[layer * config.directions + i] = (back.dh0, back.ds0)
        self._add_embedded(output, dx, gradient)
        return dx, self.initial_state(output.h.shape[1]) if config.feeds_tokens else d_initial

    def layer_gradients(
        self,
        output: Output,
        dh: Floats | None,
        *,
        d_final_state: State | None = None,
        weights: Weights | None = None,
        xi: Floats | None = None,
        want_dx: bool = False,
        consume: bool = False,
    ) -> Iterator[LayerGradient]:
        """Backpropagate through the layers, the last first; yield each one's gradients. For arguments see `backward`."""
        weights = weights or self.weights()
        d_ends: FinalGradients = [(None, None)] * (self.config.layers * self.config.directions)
        if d_final_state is not None:
            check_state(self.config, d_final_state, "d_final_state")
            d_ends = list(d_final_state)
        if dh is not None:
            expected = output.h.shape if self.pooling.every_step else output.h.shape[1:]
            if np.shape(dh) != expected:
                raise InputError(f"dh has shape {np.shape(dh)}; expected {expected}")
            dh, d_ends = self.pooling.backward(output, dh, d_ends)
        return backward_layers(weights, output, dh, d_ends, xi=xi, want_dx=want_dx, consume=consume)

    def _add_embedded(self, output: Output, dx: Floats | None, gradient: Gradients) -> None:
        if self.config.gathers:
            assert dx is not None and output.ids is not None
            for rows, each in by_rows(gradient):
                assert each.embedded is not None
                ids, F = output.ids[:, rows], self.config.features
                add_embedded(each.embedded, ids, dx[:, rows], F, self.backend)

    def add_initial_state_gradient(
        self, d_initial: State, gradient: Gradient, rows: Mask | None = None
    ) -> None:
        """Add the gradient of the initial state to that of the learned h(0); with `rows` (B,), of these rows only."""
        if not self.config.learn_h0:
            return
        d_initial = d_initial if rows is None else rows_of(d_initial, rows)
        for (layer, reverse), (dh0, ds0) in zip(layer_directions(self.config), d_initial, strict=True):
            at = prefix(layer, reverse)
            self.backend.column_sum(dh0, out=gradient.accumulator(at + "h0"))
            if ds0 is not None:
                self.backend.column_sum(ds0, out=gradient.accumulator(at + "s0"))

    def fold_input_tables(self, gradient: Gradient, weights: Weights | None = None) -> None:
        """Add the gradients of input tables to those of U, b and E: once per update, after the last window."""
        weights = weights or self.weights()
        E = self.parameters["E"] if self.config.embedding else None
        fold_input_tables(gradient, E, weights.layers[0])
        gradient.fold_head()
        if self.config.feeds_logits:
            fold_feedback(self.parameters, gradient, self.backend)
        gradient.folded = True


def _stream(step: int, place: int, kind: int) -> int:
    """Return the random stream of a dropout mask: one per step, layer and kind."""
    return (step << 16) | (place << 1) | kind
