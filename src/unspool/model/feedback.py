"""Figure 10.4: the only way from one step to the next leads from the output back to the hidden units.

    a(t) = b + U x(t) + R y(t-1)        y(t-1) one-hot: the output before; nothing before the first step
    h(t) = act(a(t))
    o(t) = c + V h(t)

In training y(t-1) is the target (teacher forcing). Then no step waits for another: a(t) of all steps is one product
over tau·B rows, and so are the gradients,

    da(t) = act'(a(t)) ∇h(t),   ∇h(t) = Vᵀ ∇o(t),   ∇R = Σ da(t) y(t-1)ᵀ,   ∇U = Σ da(t) x(t)ᵀ,   ∇b = Σ da(t)

to the same bits as step by step. Where the model runs freely, y(t-1) is its own most probable output, and
where both are mixed (scheduled sampling) a mask says which: then the steps come one after the other, and the
gradient still ends at y(t-1), which is a choice and not a number that could be moved a little.

With feedback="logits" the real-valued output itself is fed back, and gradients pass through it:

    a(t) = b + U x(t) + R o(t-1) = (b + R c) + U x(t) + (R V) h(t-1),     o(0) = c + V h(0)                 (1)

This is the recurrence of figure 10.3 with W = R V, of rank K at most, so the same kernels compute it. With dW and db
the gradients of W = R V and of b + R c that they find, the chain rule through the products gives

    ∇R = dW Vᵀ + db cᵀ,     ∇V = Σ ∇o(t) h(t)ᵀ + Rᵀ dW,     ∇c = Σ ∇o(t) + Rᵀ db,     ∇b = db               (2)

where ∇o(t) comes from the loss at step t alone. Dropout masks h(t) on its way to o(t), and so the output fed back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Ids
from unspool.kernels.backend import Backend
from unspool.kernels.tape import Backward, Tape
from unspool.model.gradient import Gradient, Gradients, by_rows
from unspool.model.layer import LayerWeights, add_input_gradient, table_gradient, values_without_padding
from unspool.model.linear import Linear
from unspool.model.parameters import Parameters, prefix

AT = prefix(0, False)
NOTHING = -1
"""What stands for the output before the first."""
SMALLER = 0.1
"""R of a fresh network that feeds logits back, as a share of what other matrices begin with."""


def shift_right(y: Floats | Ids, first: Floats | Ids) -> Floats | Ids:
    """Return y(t-1) for every step, tau B: the targets one step later, in the type of the first value.

    >>> shift_right(np.array([[3], [1], [2]]), np.array([-1])).tolist()
    [[-1], [3], [1]]
    """
    return np.concatenate([first[None], y[:-1]])[: len(y)].astype(first.dtype)


def unroll_feedback(
    weights: LayerWeights, R: Floats, x: Floats | Ids, before: Ids, lengths: Ids | None
) -> Tape:
    """Read a window whose outputs before are known: all steps at once. R is K H, as it is stored."""
    tau, B = x.shape[:2]
    if x.ndim == 2:
        a = weights.backend.gather(weights.table, x)
    else:
        a = weights.backend.matmul(x.reshape(tau * B, x.shape[2]), weights.U_forward, start=weights.b)
    known = before.reshape(-1)
    if (known >= len(R)).any():
        raise InputError(f"y holds {int(known.max())}; expected at most {len(R) - 1}")
    seen = known >= 0
    if seen.all():
        a = a + weights.backend.gather(R, known)
    else:
        a[seen] += weights.backend.gather(R, known[seen])
    hs = np.empty((tau + 1, B, R.shape[1]), R.dtype)
    hs[0] = 0
    hs[1:] = weights.backend.activate(a, weights.activation).reshape(tau, B, R.shape[1])
    return Tape(weights.cell, weights.activation, False, lengths, None, hs, None, None, None)


def free_running(
    weights: LayerWeights,
    R: Floats,
    x: Floats | Ids,
    first: Ids,
    lengths: Ids | None,
    mask: Floats | None,
    output: Linear,
    y: Ids | None = None,
    sampled_mask: NDArray[np.bool_] | None = None,
) -> tuple[Tape, Ids, Ids]:
    """Read a window step by step: each sees the model's own output before it, or the target where `sampled_mask` is False.

    Returns the tape, the outputs before each step, and the one after the last.
    """
    tau, B = x.shape[:2]
    before, tapes, chosen = np.empty((tau, B), np.int32), [], first
    for t in range(tau):
        before[t] = chosen
        if t and sampled_mask is not None and y is not None:
            before[t] = np.where(sampled_mask[t], chosen, y[t - 1])
        tapes.append(unroll_feedback(weights, R, x[t : t + 1], before[t : t + 1], lengths))
        h = tapes[-1].h[0] if mask is None else tapes[-1].h[0] * mask
        chosen = output(h).argmax(axis=1).astype(np.int32)
    hs = np.concatenate([np.zeros((1, B, R.shape[1]), R.dtype), *(tape.h for tape in tapes)])
    if y is not None and sampled_mask is not None and tau:
        chosen = y[-1].astype(np.int32)
    return Tape(weights.cell, weights.activation, False, lengths, None, hs, None, None, None), before, chosen


def centre_feedback(p: Parameters) -> None:
    """Make a fresh network with any c begin nearly as one with c = 0, and stay so: R c would saturate its units.

    c moves to mean 0, which changes no probability; R becomes a tenth; b = -R c. Without the first two, Adam, which
    moves every weight of R alike, moves R c by the sum of all of c in a few updates (`docs/log.md`).
    """
    p["c"][:] -= p["c"].mean()
    p.stored(AT + "R")[:] *= SMALLER
    p[AT + "b"][:] = -native.matmul(p["c"][None], p.stored(AT + "R"))[0]


def fold_feedback(p: Parameters, gradient: Gradient, backend: Backend) -> None:
    """Turn the gradients of W = R V and b + R c, summed over all windows, into those of R, V and c: (2)."""
    values, output = gradient.values, gradient.config.output_matrix
    R, V, c, db = p.stored(AT + "R"), p[output], p["c"], values[AT + "b"]
    dR = values.stored(AT + "R")
    dR[:] = c[:, None] * db
    values["c"][:] += backend.matmul(db[None], R, transpose_b=True)[0]
    if AT + "W" in gradient.written:
        dW = gradient.recurrent(AT + "W")
        dR += backend.matmul(V, dW, transpose_b=True)
        values[output][:] += backend.matmul(R, dW)
    gradient.written.add(AT + "R")


def feedback_backward(
    weights: LayerWeights, x: Floats | Ids, tape: Tape, dh: Floats | None, want_dx: bool
) -> tuple[Floats | None, Backward]:
    """Return the gradient of x, where there is one, and that of the pre-activations, all steps at once."""
    assert dh is not None
    da = np.ascontiguousarray(dh) * weights.backend.slope(np.ascontiguousarray(tape.h), tape.activation)
    if tape.lengths is not None:
        da[np.arange(tape.tau)[:, None] >= tape.lengths] = 0
    back = Backward(da, weights.backend.zeros(da.shape[1:]), None)
    if x.ndim == 2 or not want_dx:
        return None, back
    return weights.backend.matmul(da.reshape(-1, da.shape[2]), weights.U_backward).reshape(x.shape), back


def add_feedback_gradient(
    weights: LayerWeights, x: Floats | Ids, before: Ids, tape: Tape, da: Floats, gradient: Gradients
) -> None:
    """Add the gradients of U, R and b."""
    if x.ndim == 3:
        x = values_without_padding(x, tape.lengths)
    for rows, each in by_rows(gradient):
        _add_sums(weights, x[:, rows], before[:, rows], da[:, rows], each)


def _add_sums(weights: LayerWeights, x: Floats | Ids, before: Ids, da: Floats, gradient: Gradient) -> None:
    """Add the sums over all steps and rows: ∇R, ∇U and ∇b."""
    da, known = da.reshape(-1, da.shape[2]), before.reshape(-1)
    dR, seen = gradient.accumulator(AT + "R"), known >= 0
    weights.backend.scatter_add(dR, *((known, da) if seen.all() else (known[seen], da[seen])))
    if x.ndim == 2:
        table, held = table_gradient(weights, gradient)
        weights.backend.scatter_add(table, x.reshape(-1), da, accumulate=held)
        return
    add_input_gradient(weights, x, da, gradient)
