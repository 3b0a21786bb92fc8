"""Operations of the nodes of a network, forward and backward, with the arithmetic of the kernels.

    tanh …     act(a)                 the kernels' polynomials
    lookup     E[x]                   a row of the embedding
    softmax    ŷ = softmax(o)         (10.11)
    argmax     k = the largest of o   the token that is fed back when a network of figure 10.4 runs freely
    loss       L = -log ŷ[y]          (10.14), and ∇o = ŷ - 1[y] (10.18)

Those of a cell's own nodes are in the file of the cell.
"""

from __future__ import annotations

import numpy as np

from unspool.cells import CELLS
from unspool.cells.operations import Gradients, Operation, Reads, affine, affine_back, scattered
from unspool.kernels import native
from unspool.kernels.arrays import Activation, Floats, Ids
from unspool.kernels.reference import slope


def _activation(name: Activation) -> Operation:
    return Operation(
        lambda reads: native.activate(np.ascontiguousarray(reads.values[0]), name),
        lambda reads, h, d: Gradients([d * slope(h, name)], [None], []),
    )


def _lookup_back(reads: Reads, _: Floats, d: Floats) -> Gradients:
    E = reads.weights[0]
    assert E is not None
    return Gradients([None], [scattered(reads.values[0], d, E.shape)], [])


def _scored(o: Floats, y: Ids) -> tuple[Floats, Floats]:
    """Return L and ∇o of every row, by the kernel: with o as V and a state of a single 1."""
    one, nats, do = np.ones((1, 1), np.float32), np.zeros(len(o)), np.zeros_like(o)
    for row, target in enumerate(y):
        dV = np.zeros((o.shape[1], 1), np.float32)
        scored = native.softmax_cross_entropy(
            one, np.ascontiguousarray(o[row][:, None]), None, np.array([target], np.int32), dV=dV
        )
        nats[row], do[row] = scored.sum, dV[:, 0]
    return nats[:, None], do


def softmax(reads: Reads) -> Floats:
    """Return ŷ: equal to ∇o except at the target, so it is put together from two targets."""
    o = reads.values[0]
    if o.shape[1] == 1:
        return np.ones_like(o)
    y_hat, other = (_scored(o, np.full(len(o), y, np.int32))[1] for y in (0, 1))
    y_hat[:, 0] = other[:, 0]
    return y_hat


def _softmax_back(reads: Reads, y_hat: Floats, d: Floats) -> Gradients:
    return Gradients([y_hat * (d - (d * y_hat).sum(1, keepdims=True))], [None], [])


OPERATIONS: dict[str, Operation] = {
    "affine": Operation(affine, affine_back),
    "lookup": Operation(
        lambda r: native.gather(np.ascontiguousarray(r.weights[0]), r.values[0]), _lookup_back
    ),
    "tanh": _activation("tanh"),
    "relu": _activation("relu"),
    "sigmoid": _activation("sigmoid"),
    "identity": _activation("identity"),
    "softmax": Operation(softmax, _softmax_back),
    "argmax": Operation(
        lambda r: r.values[0].argmax(axis=1).astype(np.int32), lambda r, _, d: Gradients([None], [None], [])
    ),
    "loss": Operation(
        lambda r: _scored(*r.values)[0],
        lambda r, _, d: Gradients([(d * _scored(*r.values)[1]).astype(np.float32), None], [None, None], []),
    ),
} | {name: operation for cell in CELLS.values() for name, operation in cell.operations().items()}
"""By the name that a node carries."""
