"""The layers of a network over one window: forward through all of them, and backward.

x ─▶ layer 0, each direction ─▶ dropout ─▶ layer 1 ─▶ … ─▶ h(t) of the last layer
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.tape import Backward
from unspool.model.feedback import feedback_backward
from unspool.model.layer import layer_backward, layer_forward
from unspool.model.packed import Weights
from unspool.model.values import FinalGradients, LayerTape, Masks, Output, State


class LayerGradient(NamedTuple):
    """The gradients of one layer in one window."""

    layer: int
    dh: list[Floats | None]  # per direction, tau B H: of h(t) from the layer above or the output alone
    backs: list[Backward]  # per direction
    dx: Floats | None  # tau B X, the sum over directions


def forward_layers(
    weights: Weights,
    x: Floats | Ids,
    state: State,
    lengths: Ids | None,
    masks: Masks | None,
    ids: Ids | None,
) -> Output:
    """Run all layers over the window x; `ids` are the tokens behind x."""
    config = weights.config
    ends: State = []
    tapes: list[LayerTape] = []
    for layer, directions in enumerate(weights.layers):
        made = []
        for i, weights_of in enumerate(directions):
            at = layer * config.directions + i
            mask = masks.of_state(at, config.feeds_logits) if masks else None
            made.append(layer_forward(weights_of, x, *state[at], lengths, mask))
            ends.append((made[-1].h_end, made[-1].s_end))
        mask = masks.outputs[layer] if masks and masks.outputs else None
        tapes.append(LayerTape(x, made, mask))
        h = made[0].h if len(made) == 1 else np.concatenate([tape.h for tape in made], axis=2)
        x = h if mask is None else weights.backend.scale_rows(h, mask)
    return Output(x, ends, tapes, ids)


def backward_layers(
    weights: Weights,
    output: Output,
    dh: Floats | None,
    d_ends: FinalGradients,
    *,
    xi: Floats | None,
    want_dx: bool,
    consume: bool,
) -> Iterator[LayerGradient]:
    """Backpropagate dh (tau, B, width) and the gradients of the final states; yield the last layer's gradients first."""
    config = weights.config
    for layer in reversed(range(config.layers)):
        made = output.tape[layer]
        if made.mask is not None and dh is not None:
            dh = weights.backend.scale_rows(np.ascontiguousarray(dh), made.mask)
        want = want_dx or layer > 0 or config.gathers
        parts: list[Floats | None] = [dh] * config.directions
        if dh is not None and config.directions > 1:
            parts = list(np.split(dh, config.directions, axis=2))
        backs, dx = [], None
        for i, (of, tape) in enumerate(zip(weights.layers[layer], made.directions, strict=True)):
            if config.feeds_tokens:
                dx_i, back = feedback_backward(of, made.x, tape, parts[i], want)
            else:
                dh_end, ds_end = d_ends[layer * config.directions + i]
                dx_i, back = layer_backward(
                    of, made.x, tape, dh=parts[i], dh_end=dh_end, ds_end=ds_end, xi=xi, want_dx=want,
                    consume=consume,
                )  # fmt: skip
            backs.append(back)
            dx = dx_i if dx is None else dx + dx_i
        yield LayerGradient(layer, parts, backs, dx)
        dh = dx
