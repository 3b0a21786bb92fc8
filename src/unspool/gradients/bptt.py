"""A model through a window and back: the loss and all gradients, with all states kept or with few.

BPTT needs h(t) of every step on its way back: a tape of O(tau). With `recompute="sqrt"` a first pass keeps only the
state before every segment of ~√tau steps; the backward pass recomputes each segment from it, the last one first.
The tape is then O(√tau) for one more forward pass, and the gradients are the same bits: sums over time run from
tau to 1 and are added to what is there, whether in one piece or in many. Segments are counted from the window's end; in
bf16, where sums take 32 rows at a time, they have a multiple of 32 rows.

    forward    h(0) ──────▶ h(S) ──────▶ h(2S) ──────▶ h(tau)      kept: h(0), h(S), h(2S)
    backward                             h(2S) ══════▶ h(tau)      read again with a tape, then back
                            h(S) ══════▶ h(2S) ◀────── ∇h(2S)
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unspool.cells import cell_named
from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import PRECISIONS
from unspool.kernels.memory import require_memory
from unspool.kernels.tape import Loss, bytes_of_tape
from unspool.model.config import ModelConfig
from unspool.model.gradient import Gradient, steps_between_cuts
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.values import Masks, Output, State
from unspool.options import check_choice

Recompute = Literal["none", "sqrt"]


class WindowResult(NamedTuple):
    """What a window gives, there and back; the gradients of the parameters are in the `Gradient`."""

    loss: Loss
    state: State
    """After the last step."""
    at: State
    """After the first `carry_after` steps; where not asked for, after the last."""
    d_initial_state: State
    """The gradient of the state before the first step."""


def backpropagate(
    model: Model,
    x: Floats | Ids,
    y: Ids,
    state: State | None,
    gradient: Gradient,
    *,
    scale: float = 1.0,
    lengths: Ids | None = None,
    masks: Masks | None = None,
    weights: Weights | None = None,
    xi: Floats | None = None,
    recompute: Recompute = "none",
    carry_after: int | None = None,
    sampled_mask: NDArray[np.bool_] | None = None,
) -> WindowResult:
    """Add the gradients of `scale` times the loss; call `Model.add_initial_state_gradient` and `Model.fold_input_tables` afterwards.

    Shapes: x (τ, B), or (τ, B, X) for vectors; y (τ, B), or (B,) with one output at the end; lengths (B,).

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
    >>> ids = np.arange(101, dtype=np.int32)[:, None] % 5
    >>> kept, few = model.gradient(), model.gradient()
    >>> _ = backpropagate(model, ids[:-1], ids[1:], None, kept)
    >>> _ = backpropagate(model, ids[:-1], ids[1:], None, few, recompute="sqrt")
    >>> bool((kept.flat == few.flat).all())
    True
    """
    check_choice("recompute", recompute, ("none", "sqrt"))
    tau, B = x.shape[:2]
    edges = _edges(tau, steps_between_cuts(model.backend.BLOCK, B)) if recompute == "sqrt" else [(0, tau)]
    _refuse_what_does_not_fit(model.config, max(stop - begin for begin, stop in edges), B)
    there = _Window(model, x, y, lengths, masks, weights or model.weights(), xi, scale, sampled_mask)
    if len(edges) == 1:
        output = there.forward(0, tau, state)
        loss, d_initial_state = there.back(0, tau, output, None, gradient)
        return WindowResult(
            loss,
            output.state,
            _state_at(output, tau if carry_after is None else carry_after),
            d_initial_state,
        )
    return _recomputed(there, edges, state, gradient, tau if carry_after is None else carry_after)


class _Window(NamedTuple):
    """What is the same for every stretch of a window."""

    model: Model
    x: Floats | Ids
    y: Ids
    lengths: Ids | None
    masks: Masks | None
    weights: Weights
    xi: Floats | None
    scale: float
    sampled_mask: NDArray[np.bool_] | None

    def forward(self, begin: int, end: int, state: State | None) -> Output:
        lengths = None
        if self.lengths is not None:
            lengths = np.clip(self.lengths - begin, 0, end - begin).astype(np.int32)
        return self.model.forward(
            self.x[begin:end],
            state,
            lengths=lengths,
            masks=self.masks,
            weights=self.weights,
            y=self.y[begin:end] if self.model.config.feeds_tokens else None,
            sampled_mask=None if self.sampled_mask is None else self.sampled_mask[begin:end],
        )

    def back(
        self, begin: int, end: int, output: Output, arriving: State | None, gradient: Gradient
    ) -> tuple[Loss, State]:
        xi = None if self.xi is None else self.xi[begin:end]
        if self.model.config.pattern == "last":
            if end < len(self.x):  # the one output comes after the last step
                _, d_initial_state = self.model.backward(
                    output, None, gradient, d_final_state=arriving, weights=self.weights, xi=xi, consume=True
                )
                return Loss(0.0, 0, np.zeros(0), None), d_initial_state
            y = self.y
        else:
            y = self.y[begin:end]
        loss = self.model.loss(output, y, scale=self.scale, weights=self.weights, gradient=gradient)
        _, d_initial_state = self.model.backward(
            output, loss.dh, gradient, d_final_state=arriving, weights=self.weights, xi=xi, consume=True
        )
        return Loss(loss.sum, loss.count, loss.per_target, None), d_initial_state  # dh has been used up


def _recomputed(
    there: _Window, edges: list[tuple[int, int]], state: State | None, gradient: Gradient, carry_after: int
) -> WindowResult:
    if there.model.config.bidirectional:
        raise InputError("recompute='sqrt' needs a model that reads in one direction; use recompute='none'")
    befores, end, at = [], state or there.model.initial_state(there.x.shape[1]), None
    for begin, stop in edges:
        befores.append(end)
        end = _apart(there.forward(begin, stop, end).state)
    d_initial_state: State | None = None
    losses: list[Loss] = []
    for (begin, stop), before in zip(edges[::-1], befores[::-1], strict=True):
        output = there.forward(begin, stop, before)
        if begin <= carry_after < stop:
            at = _state_at(output, carry_after - begin)
        loss, d_initial_state = there.back(begin, stop, output, d_initial_state, gradient)
        losses.insert(0, loss)
    assert d_initial_state is not None
    each = np.concatenate([loss.per_target for loss in losses])
    total = float(np.add.accumulate(each.reshape(-1))[-1])  # t rising, as the kernel adds
    return WindowResult(
        Loss(total, sum(loss.count for loss in losses), each, None), end, at or end, d_initial_state
    )


def _edges(tau: int, grid: int) -> list[tuple[int, int]]:
    """Cut tau steps into stretches of about √tau, a multiple of `grid` steps, counted from the end.

    >>> _edges(100, grid=1)[:2], _edges(100, grid=32)
    ([(0, 10), (10, 20)], [(0, 4), (4, 36), (36, 68), (68, 100)])
    """
    S = -(-max(1, math.isqrt(max(tau - 1, 0)) + 1) // grid) * grid
    cuts = [0, *range(tau % S or S, tau, S), tau]
    return list(itertools.pairwise(cuts))


def _state_at(output: Output, steps: int) -> State:
    """Return the state after so many steps of a window, from its tape."""
    if steps == len(output.h):
        return output.state
    if output.tape[0].before is not None:
        return [(output.tape[0].before[steps], None)]
    tapes = [tape for layer in output.tape for tape in layer.directions]
    return _apart([(tape.hs[steps], None if tape.ss is None else tape.ss[steps]) for tape in tapes])


def _apart(state: State) -> State:
    """Copy a state out of the tape that it lies in, so that the tape can go."""
    return [(h.copy(), None if s is None else s.copy()) for h, s in state]


def bytes_of_model_tape(config: ModelConfig, tau: int, B: int, recompute: Recompute = "none") -> int:
    """Return the bytes of all layers' tapes: O(tau), or O(√tau) with states kept before every stretch.

    >>> config = ModelConfig(cell="elman", inputs=64, outputs=64, hidden=128)
    >>> bytes_of_model_tape(config, 65_536, 16) // bytes_of_model_tape(config, 65_536, 16, "sqrt")
    127
    """
    parts = config.layers * config.directions
    cell, H, masked = cell_named(config.cell), config.hidden, config.masks_state
    if recompute == "none":
        return parts * bytes_of_tape(cell, tau, B, H, X=config.width, masked=masked)
    edges = _edges(tau, steps_between_cuts(PRECISIONS[config.precision].BLOCK, B))
    longest = max(stop - begin for begin, stop in edges)
    states = len(edges) * cell.parts * 4 * B * H
    return parts * (states + bytes_of_tape(cell, longest, B, H, X=config.width, masked=masked))


@lru_cache(maxsize=256)
def _refuse_what_does_not_fit(config: ModelConfig, tau: int, B: int) -> None:
    """Raise where a tape does not fit in free memory; cached: what fitted once is reused by the next window."""
    require_memory(
        bytes_of_model_tape(config, tau, B),
        f"the tape of {tau:,} steps and {B:,} rows",
        "shorten the window, cut it with bptt=truncated:K, or use recompute='sqrt'",
    )
