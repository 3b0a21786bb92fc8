"""A recurrent network: layers on each other, in one or both directions, and an output.

    tokens or values ─▶ layer 0 ─▶ … ─▶ layer L-1 ─▶ h(t) ─▶ o(t) = c + V h(t)

The output comes at every step (figures 10.3 and 10.4) or once, after the whole sequence (10.5). State is an argument and a result; the model keeps none. Forward gives the output, the final state and a tape;
backward takes the tape and the gradient of the output.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Loss
from unspool.model.config import ModelConfig
from unspool.model.feedback import (
    AT,
    NOTHING,
    bptt_feedback,
    fold_feedback,
    free_running,
    shift_right,
    unroll_feedback,
)
from unspool.model.gradient import Gradient, Gradients, by_rows
from unspool.model.inputs import as_int32, check_input, check_state, describe, without_padding
from unspool.model.layer import fold_input_tables, layer_backward, layer_forward
from unspool.model.packed import Weights
from unspool.model.parameters import Parameters, initialise, prefix
from unspool.model.values import LayerTape, Masks, Output, State
from unspool.options import at_least


class Model:
    """Parameters and what to do with them.

    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, hidden=8), seed=1)
    >>> out = model.forward(np.array([[0], [3], [1]], np.int32))
    >>> out.h.shape, len(out.state)
    ((3, 1, 8), 1)
    """

    def __init__(self, config: ModelConfig, parameters: Parameters) -> None:
        self.config = config
        self.parameters = parameters

    @staticmethod
    def initialise(config: ModelConfig, seed: int) -> Model:
        """Return a model with new parameters: the same for the same seed."""
        return Model(config, initialise(config, np.random.default_rng(at_least("seed", seed, 0))))

    def weights(self) -> Weights:
        """Lay the parameters out for the kernels, as they are now."""
        return Weights(self.config, self.parameters)

    def table(self) -> Floats:
        """Return b + U x for every token, K G*H: what the first layer adds to W h(t-1)."""
        first = self.weights().layers[0][0]
        return first.table_of(self.parameters["E"] if self.config.embedding else first.E)

    def gradient(self, values: Parameters | None = None) -> Gradient:
        """Return a gradient of zero; its values are written to `values` where given."""
        gradient = Gradient(self.config, self.parameters.like() if values is None else values)
        if self.config.gathers:
            gradient.embedded = native.zeros(self.parameters["E"].shape)
        return gradient

    def start(self, B: int) -> State:
        """Return the state before the first step: learned, or zero; the output before, where that is the state."""
        B = at_least("B", B, 0)
        if self.config.feeds_tokens:
            return [(np.full(B, NOTHING, np.int32), None)]
        cell_state = cell_named(self.config.cell).has_cell_state
        state: State = []
        for layer in range(self.config.layers):
            for reverse in range(self.config.directions):
                at = prefix(layer, bool(reverse))
                state.append((self._start(at + "h0", B), self._start(at + "s0", B) if cell_state else None))
        return state

    def _start(self, name: str, B: int) -> Floats:
        if self.config.learn_h0:
            return np.tile(self.parameters[name], (B, 1))
        return np.zeros((B, self.config.hidden), np.float32)

    def masks(self, B: int, *, seed: int, step: int) -> Masks:
        """Draw the dropout masks of a window: a function of seed and step only."""
        config = self.config
        outputs = states = None
        if config.dropout:
            outputs = [
                native.dropout_mask(
                    (B, config.width), seed=seed, stream=_stream(step, layer, 0), rate=config.dropout
                )
                for layer in range(config.layers)
            ]
        if config.recurrent_dropout:
            states = [
                native.dropout_mask(
                    (B, config.hidden), seed=seed, stream=_stream(step, i, 1), rate=config.recurrent_dropout
                )
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
        """Read a window: tokens (tau, B) or values (tau, B, X); row b lives for lengths[b] steps.

        Where tokens are fed back (figure 10.4), targets `y` (tau, B) stand for the output before and all steps are
        read at once; without them, and where `sampled_mask` (tau, B) says so, the model's own outputs do, step by step. Other
        models do not read `y`.
        """
        config = self.config
        check_input(config, x, lengths)
        weights = weights or self.weights()
        state = self.start(x.shape[1]) if state is None else state
        check_state(config, state, "state")
        ids = None if config.dense else without_padding(x, lengths)
        if ids is not None:
            x = ids if config.uses_input_table else self._embed(ids)
        if config.feeds_tokens:
            return self._forward_feedback(x, state, lengths, masks, weights, ids, y, sampled_mask)
        ends: State = []
        tapes: list[LayerTape] = []
        for layer, directions in enumerate(weights.layers):
            made = []
            for i, weights_of in enumerate(directions):
                at = layer * config.directions + i
                recurrent_mask = masks.of_state(at, config.feeds_logits) if masks else None
                made.append(layer_forward(weights_of, x, *state[at], lengths, recurrent_mask))
                ends.append((made[-1].h_end, made[-1].s_end))
            mask = masks.outputs[layer] if masks and masks.outputs else None
            tapes.append(LayerTape(x, made, mask))
            h = made[0].h if len(made) == 1 else np.concatenate([tape.h for tape in made], axis=2)
            x = h if mask is None else native.scale_rows(h, mask)
        return Output(x, ends, tapes, ids)

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
        (layer,), (first, _) = weights.layers[0], state[0]
        R, mask = self.parameters.stored(AT + "R"), masks.outputs[0] if masks and masks.outputs else None
        if y is not None and y.shape != x.shape[:2]:
            raise InputError(
                f"y has shape {y.shape}; expected {x.shape[:2]}, one target for each step and row"
            )
        if y is not None and sampled_mask is None:
            before = shift_right(y, first)
            tape, last = (
                unroll_feedback(layer, R, x, before, lengths),
                y[-1].astype(np.int32) if len(y) else first,
            )
        else:
            tape, before, last = free_running(
                layer, R, x, first, lengths, mask, weights.V[0], self.parameters["c"], y, sampled_mask
            )
        h = tape.h if mask is None else native.scale_rows(np.ascontiguousarray(tape.h), mask)
        return Output(h, [(last, None)], [LayerTape(x, [tape], mask, before)], ids)

    def _embed(self, ids: Ids) -> Floats:
        return native.gather(self.parameters["E"], ids.reshape(-1)).reshape(*ids.shape, self.config.embedding)

    def loss(
        self,
        output: Output,
        y: Ids,
        *,
        scale: float = 1.0,
        weights: Weights | None = None,
        gradient: Gradient | None = None,
    ) -> Loss:
        """Score targets y (tau, B), negative ones masked: the sum of nats and their count, never mixed up.

        One target a row, y (B,), where there is one output after the whole sequence (pattern="last"). With `gradient`, those of V and c of `scale` times the sum are added to it, and that of h comes back.
        """
        h = self.head_input(output)
        if not isinstance(y, np.ndarray) or y.shape != h.shape[:-1] or y.dtype.kind not in "iu":
            what = "one target for each row" if h.ndim == 2 else "one target for each step and row"
            raise InputError(f"y is {describe(y)}; expected {h.shape[:-1]} of int32, {what}")
        weights = weights or self.weights()
        c, y = self.parameters["c"], as_int32(y, "y")
        if gradient is None:
            return native.softmax_cross_entropy(h, weights.V, c, y, scale=scale)
        (dV, dc), held = gradient.accumulators("E" if self.config.tied else "V", "c")
        return native.softmax_cross_entropy(h, weights.V, c, y, scale=scale, dV=dV, dc=dc, accumulate=held)

    def head_input(self, output: Output) -> Floats:
        """Return what the output layer reads: h (tau, B, width), or the end (B, width) where that is all."""
        return output.end if self.config.pattern == "last" else output.h

    def scores(self, output: Output, weights: Weights | None = None) -> Floats:
        """Return o = c + V h, (tau, B, K) or (B, K): for a function of the user's own behind it."""
        h = self.head_input(output)
        weights = weights or self.weights()
        o = native.matmul(h.reshape(-1, h.shape[-1]), weights.V[0], start=self.parameters["c"])
        return o.reshape(*h.shape[:-1], self.config.outputs)

    def backward_from_scores(
        self, output: Output, do: Floats, gradient: Gradient, weights: Weights | None = None
    ) -> Floats:
        """Add the gradients of V and c from that of o, which comes from outside; return that of h for `backward`."""
        h = self.head_input(output)
        if np.shape(do) != (*h.shape[:-1], self.config.outputs):
            raise InputError(f"do has shape {np.shape(do)}; expected {(*h.shape[:-1], self.config.outputs)}")
        weights = weights or self.weights()
        rows = do.reshape(-1, self.config.outputs)
        dV = gradient.accumulator("E" if self.config.tied else "V")
        native.matmul(rows, h.reshape(len(rows), -1), transpose_a=True, out=dV)
        native.column_sum(rows, out=gradient.accumulator("c"))
        return native.matmul(rows, weights.V[1]).reshape(h.shape)

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
        """Add the gradients of all parameters but V and c; return those of x and of the starting state.

        `dh` (tau, B, width) arrives at the last layer's outputs, `d_final_state` at the final state. Where there is one output
        after the whole sequence (pattern="last"), `dh` is (B, width) and arrives there.
        What each step hands back to the one before is multiplied by `xi` (tau, B); see `truncation`. With `consume`,
        `dh` and the tape's gates are written over: faster, where nobody looks at them again. With a list of gradients,
        each row has its own.
        """
        config = self.config
        weights = weights or self.weights()
        expected = self.head_input(output).shape if dh is not None else ()
        if dh is not None and np.shape(dh) != expected:
            raise InputError(f"dh has shape {np.shape(dh)}; expected {expected}")
        if d_final_state is not None:
            check_state(config, d_final_state, "d_end")
        if config.feeds_tokens:
            return self._backward_feedback(output, dh, gradient, weights, want_dx)
        if config.pattern == "last" and dh is not None:
            d_final_state, dh = self._at_the_end(output, dh, d_final_state), None
        starts: State = [(np.empty(0), None)] * (config.layers * config.directions)
        H = config.hidden
        for layer in reversed(range(config.layers)):
            made = output.tape[layer]
            if made.mask is not None and dh is not None:
                dh = native.scale_rows(np.ascontiguousarray(dh), made.mask)
            embedded = layer == 0 and config.gathers
            below: Floats | None = None
            for i, weights_of in enumerate(weights.layers[layer]):
                at = layer * config.directions + i
                part = dh if dh is None or config.directions == 1 else dh[:, :, i * H : (i + 1) * H]
                dh_end, ds_end = (None, None) if d_final_state is None else d_final_state[at]
                dx, back = layer_backward(
                    weights_of,
                    made.x,
                    made.directions[i],
                    gradient,
                    dh=part,
                    dh_end=dh_end,
                    ds_end=ds_end,
                    xi=xi,
                    want_dx=layer > 0 or embedded or want_dx,
                    consume=consume,
                )
                starts[at] = (back.dh0, back.ds0)
                below = dx if below is None else below + dx
            dh = below
        self._add_embedded(output, dh, gradient)
        return dh, starts

    def _add_embedded(self, output: Output, dx: Floats | None, gradient: Gradients) -> None:
        if self.config.gathers:
            assert dx is not None and output.ids is not None
            for rows, each in by_rows(gradient):
                assert each.embedded is not None
                part = dx[:, rows].reshape(-1, self.config.embedding)
                native.scatter_add(each.embedded, output.ids[:, rows].reshape(-1), part)

    def _at_the_end(self, output: Output, dh: Floats, d_final_state: State | None) -> State:
        """Return what arrives at the final states when `dh` (B, width) arrives at the last layer's."""
        config, H = self.config, self.config.hidden
        mask = output.tape[-1].mask
        dh = dh if mask is None else dh * mask
        nothing = np.zeros((len(dh), H), np.float32)
        joined: State = list(d_final_state or [(nothing, None)] * (config.layers * config.directions))
        for i in range(config.directions):
            at = (config.layers - 1) * config.directions + i
            before, ds = joined[at]
            joined[at] = (dh[:, i * H : (i + 1) * H] + before, ds)
        return joined

    def _backward_feedback(
        self, output: Output, dh: Floats | None, gradient: Gradients, weights: Weights, want_dx: bool
    ) -> tuple[Floats | None, State]:
        made = output.tape[0]
        assert dh is not None and made.before is not None
        dh = dh if made.mask is None else native.scale_rows(np.ascontiguousarray(dh), made.mask)
        (layer,) = weights.layers[0]
        want = want_dx or self.config.gathers
        dx = bptt_feedback(layer, made.x, made.directions[0], made.before, dh, gradient, want)
        self._add_embedded(output, dx, gradient)
        return dx, self.start(dh.shape[1])

    def add_initial_state_gradient(self, starts: State, gradient: Gradient) -> None:
        """Add the gradient of the starting state to that of the learned h(0)."""
        if not self.config.learn_h0:
            return
        for i, (dh0, ds0) in enumerate(starts):
            at = prefix(i // self.config.directions, bool(i % self.config.directions))
            native.column_sum(dh0, out=gradient.accumulator(at + "h0"))
            if ds0 is not None:
                native.column_sum(ds0, out=gradient.accumulator(at + "s0"))

    def finish(self, gradient: Gradient, weights: Weights | None = None) -> None:
        """Fold what was summed aside into the gradient: once an update, after the last window."""
        weights = weights or self.weights()
        E = self.parameters["E"] if self.config.embedding else None
        fold_input_tables(gradient, E, weights.layers[0])
        if self.config.feeds_logits:
            fold_feedback(self.parameters, gradient)


def _stream(step: int, place: int, kind: int) -> int:
    """Return a number of its own for each mask."""
    return (step << 16) | (place << 1) | kind
