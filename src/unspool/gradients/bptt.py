"""A model through a window and back: the loss and all gradients, with all states kept or with few.

BPTT needs h(t) of every step on its way back: a tape of O(tau). With `recompute="sqrt"` a first pass keeps only the
state before every segment of ~√tau steps; the backward pass recomputes each segment from it, the last one first.
The tape is then O(√tau) for one more forward pass, and the gradients are the same bits: sums over time run from
tau to 1 and are added to what is there, whether in one piece or in many. Segments are counted from the window's end; in
bf16, where sums take 32 rows at a time, they have a multiple of 32 rows.

    forward    h(0) ──────▶ h(S) ──────▶ h(2S) ──────▶ h(tau)      kept: h(0), h(S), h(2S)
    backward                             h(2S) ══════▶ h(tau)      read again with a tape, then back
                            h(S) ══════▶ h(2S) ◀────── ∇h(2S)

Rows may be reset to h(0) before any step, each row by itself: `fresh` (tau, B). The window is then cut before these steps
too, in both directions of time: a reset row goes on from h(0), and its gradient ends there, as ∇h(0) of a learned h(0).
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
from unspool.kernels.arrays import Floats, Ids, Mask
from unspool.kernels.backend import PRECISIONS
from unspool.kernels.memory import require_memory
from unspool.kernels.tape import Loss, bytes_of_tape
from unspool.model.config import ModelConfig
from unspool.model.gradient import Gradient, steps_between_cuts
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.values import Masks, Output, State, replace_rows
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
    """The gradient of the state before the first step; 0 for rows that are reset there."""


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
    fresh: Mask | None = None,
) -> WindowResult:
    """Add the gradients of `scale` times the loss; call `Model.add_initial_state_gradient` and `Model.fold_input_tables` afterwards.

    Shapes: x (τ, B), or (τ, B, X) for vectors; y (τ, B), or (B,) with one output at the end; lengths (B,). Row b is reset to
    h(0) before step t if fresh[t, b] (τ, B); the gradients of these h(0) are added here.

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
    if fresh is not None and np.shape(fresh) != (tau, B):
        raise InputError(
            f"fresh has shape {np.shape(fresh)}; expected {(tau, B)}, one value for each step and row"
        )
    fresh = None if fresh is None or not fresh.any() else fresh
    pieces = _pieces(tau, fresh, steps_between_cuts(model.backend.BLOCK, B) if recompute == "sqrt" else None)
    longest = tau if recompute == "none" else max(stop - begin for begin, stop in pieces)
    _refuse_what_does_not_fit(model.config, longest, B)
    if len(pieces) > 1 and model.config.bidirectional:
        cut = "recompute='sqrt'" if recompute == "sqrt" else "fresh: a row that is reset after the first step"
        raise InputError(
            f"{cut} needs a model that reads in one direction; use recompute='none' and no such reset"
        )
    there = _Window(model, x, y, lengths, masks, weights or model.weights(), xi, scale, sampled_mask, fresh)
    carry_after = tau if carry_after is None else carry_after
    return _through(there, pieces, state, gradient, carry_after, keep=recompute == "none")


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
    fresh: Mask | None

    def reset_before(self, t: int) -> Mask | None:
        """Return the rows that are reset before a step; None if there are none."""
        return None if self.fresh is None or not self.fresh[t].any() else self.fresh[t]

    def begin(self, t: int, state: State | None) -> State:
        """Return the state before a step from what the steps before left, with its reset rows."""
        rows = self.reset_before(t)
        if state is not None and rows is None:
            return state
        initial = self.model.initial_state(self.x.shape[1])
        return initial if state is None or rows is None else replace_rows(state, rows, initial)

    def end_at_reset(self, t: int, d_state: State, gradient: Gradient) -> State:
        """Add the gradients of reset rows to that of h(0); return those of the state that the steps before left."""
        rows = self.reset_before(t)
        if rows is None or self.model.config.feeds_tokens:
            return d_state
        self.model.add_initial_state_gradient(d_state, gradient, rows)
        zero = [(np.zeros_like(h), None if s is None else np.zeros_like(s)) for h, s in d_state]
        return replace_rows(d_state, rows, zero)

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


def _through(
    there: _Window,
    pieces: list[tuple[int, int]],
    state: State | None,
    gradient: Gradient,
    carry_after: int,
    *,
    keep: bool,
) -> WindowResult:
    """Run a window in pieces, forward and backward; without `keep`, the backward pass recomputes each piece."""
    befores, outputs, end, at = list[State](), list[Output](), state, None
    for begin, stop in pieces:
        befores.append(there.begin(begin, end))
        output = there.forward(begin, stop, befores[-1])
        outputs += [output] if keep else []
        end = output.state if len(pieces) == 1 else _apart(output.state)
    d_state: State | None = None
    losses: list[Loss] = []
    for i, (begin, stop) in reversed(list(enumerate(pieces))):
        output = outputs[i] if keep else there.forward(begin, stop, befores[i])
        if begin <= carry_after < stop:
            at = _state_at(output, carry_after - begin)
        loss, d_state = there.back(begin, stop, output, d_state, gradient)
        losses.insert(0, loss)
        d_state = there.end_at_reset(begin, d_state, gradient)
        if begin and there.reset_before(begin) is not None:
            gradient.begin_window()
    assert d_state is not None and end is not None
    return WindowResult(_together(losses), end, at or end, d_state)


def _together(losses: list[Loss]) -> Loss:
    """Return the loss of a window from those of its pieces: summed with t rising, as the kernel does."""
    if len(losses) == 1:
        return losses[0]
    each = np.concatenate([loss.per_target for loss in losses])
    total = float(np.add.accumulate(each.reshape(-1))[-1])
    return Loss(total, sum(loss.count for loss in losses), each, None)


def _pieces(tau: int, fresh: Mask | None, grid: int | None) -> list[tuple[int, int]]:
    """Cut a window before every step with a reset row; with a grid, also into stretches of about √tau steps.

    >>> _pieces(6, np.array([[1], [0], [0], [0], [1], [0]], bool), None)
    [(0, 4), (4, 6)]
    """
    resets = [] if fresh is None else [int(t) for t in np.flatnonzero(fresh.any(axis=1)) if t]
    whole = list(itertools.pairwise([0, *resets, tau]))
    if grid is None:
        return whole
    return [(at + begin, at + stop) for at, end in whole for begin, stop in _edges(end - at, grid)]


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
