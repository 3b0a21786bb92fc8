"""Operations of the nodes of a network, forward and backward, with the arithmetic of the kernels.

    tanh …     act(a)                 the kernels' polynomials
    lookup     E[x]                   a row of the embedding
    softmax    ŷ = softmax(o)         (10.11)
    argmax     k = the largest of o   the token that is fed back when a network of figure 10.4 runs freely
    join       o of an adaptive softmax: shortlist, cluster + log softmax of its tail
    loss       L = -log ŷ[y]          (10.14), and ∇o = ŷ - 1[y] (10.18)

Those of a cell's own nodes are in the file of the cell.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from unspool.cells import CELLS
from unspool.cells.operations import Gradients, Operation, Reads, affine, affine_back, scattered
from unspool.kernels import native, reference
from unspool.kernels.arrays import Activation, Floats, Ids
from unspool.kernels.backend import UNROUNDED
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


def _in_float32(reads: Reads) -> Reads:
    """Return the arguments of a tail of an adaptive softmax, which is not computed in bf16."""
    return replace(reads, backend=UNROUNDED.get(reads.backend, reads.backend))


def _join(reads: Reads) -> Floats:
    head, *tails = (np.ascontiguousarray(each) for each in reads.values)
    n = head.shape[1] - len(tails)
    starts = [np.ascontiguousarray(head[:, n + i]) for i in range(len(tails))]
    joined = [native.log_softmax_rows(*pair) for pair in zip(tails, starts, strict=True)]
    return np.concatenate([head[:, :n], *joined], axis=1)


def _join_back(reads: Reads, _: Floats, d: Floats) -> Gradients:
    """The gradient of a cluster is the sum over its tokens; that of a tail goes through its log softmax."""
    head, *tails = reads.values
    edges = np.cumsum([head.shape[1] - len(tails), *(each.shape[1] for each in tails)])
    parts = [d[:, a:b] for a, b in pairwise(edges)]
    sums = [part.sum(1, keepdims=True) for part in parts]
    back = []
    for o, part, total in zip(tails, parts, sums, strict=True):
        back.append(part - total * np.exp(reference.log_softmax_rows(o, np.zeros(len(o), o.dtype))))
    return Gradients(
        [np.concatenate([d[:, : edges[0]], *sums], axis=1), *back], [None] * len(reads.values), []
    )


OPERATIONS: dict[str, Operation] = {
    "affine": Operation(affine, affine_back),
    "affine in float32": Operation(
        lambda r: affine(_in_float32(r)), lambda r, o, d: affine_back(_in_float32(r), o, d)
    ),
    "join": Operation(_join, _join_back),
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
