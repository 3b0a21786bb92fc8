"""Adaptive softmax (Grave et al. 2017): frequent tokens in a head, rare ones in clusters with narrow tails.

Tokens are numbered by falling frequency. The head has one output per token of the shortlist and one per cluster; cluster
i has a projection P_i to d_i = width / 4^i values and its own V_i and c_i:

    log P(w) = log softmax(c + V h)[w]                                                w in the shortlist           (1)
    log P(w) = log softmax(c + V h)[cluster i] + log softmax(c_i + V_i P_i h)[w]      w in cluster i               (2)

A tail is computed only for the rows whose target is in its cluster, so an update costs little more than the head. The
probabilities of all K tokens add up to 1, and `__call__` returns them exactly, as o with softmax(o) = P.

Where tied, the shortlist of the head are the first rows of the embedding, V = (E[:n], the rows of the clusters); the
parameter V holds only the rows of the clusters. The tails are never tied.

    ∇V_i = Σ ∇o_i z_iᵀ,   z_i = P_i h,   ∇P_i = Σ (V_iᵀ ∇o_i) hᵀ,   ∇h = Vᵀ ∇o + P_iᵀ V_iᵀ ∇o_i                    (3)

The sums run over the rows of the cluster from the last step to the first, as all sums over rows do. In bf16 the head is
computed in bf16 and the tails in float32: bf16 sums 32 rows at a time, and a window that is cut would sum others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Ids, Real
from unspool.kernels.backend import UNROUNDED, Backend
from unspool.kernels.tape import Loss
from unspool.model.config import ModelConfig
from unspool.model.linear import Linear, OutputGradient, OutputLayer, TailGradient
from unspool.model.outputs.base import OutputKind, Shapes

NARROWER = 4
"""Each tail is narrower than the one before it by this factor."""


def tail_name(i: int) -> str:
    """Return the prefix of the parameters of cluster i, counted from 1."""
    return f"tail{i}."


def tail_width(width: int, i: int) -> int:
    """Return d_i, the width of the tail of cluster i, counted from 1."""
    return max(1, width // int(NARROWER**i))


class Cluster(NamedTuple):
    """A cluster of tokens: ids first … end-1, and the width of its tail."""

    first: int
    end: int
    width: int


def clusters_of(config: ModelConfig) -> list[Cluster]:
    """Return the clusters of a network.

    >>> clusters_of(ModelConfig(inputs=100, outputs=100, hidden=64, softmax="adaptive:20,50"))
    [Cluster(first=20, end=50, width=16), Cluster(first=50, end=100, width=4)]
    """
    edges = [*config.cutoffs, config.outputs]
    return [
        Cluster(edges[i - 1], edges[i], tail_width(config.width, i))
        for i in range(1, len(config.cutoffs) + 1)
    ]


def head_matrix(config: ModelConfig, p: Mapping[str, Floats]) -> Floats:
    """Return V of the head, (shortlist + clusters, width)."""
    return np.concatenate([p["E"][: config.cutoffs[0]], p["V"]]) if config.tied else p["V"]


class Tail(NamedTuple):
    """The layer of one cluster, whose first token has the id `first`."""

    first: int
    P: Linear
    V: Linear

    def loss(self, h: Floats, y: Ids, scale: float, accumulate: bool, into: TailGradient | None) -> Loss:
        """Return the loss of targets y (n,) of the cluster, numbered from 0, and the gradient of h (n, width)."""
        z = self.P(h)
        if into is None:
            return self.V.cross_entropy(z, y)
        loss = self.V.cross_entropy(z, y, OutputGradient(into.dV, into.dc, scale, accumulate))
        assert loss.dh is not None
        self.P.backend.matmul(loss.dh, h, transpose_a=True, out=into.dP, accumulate=accumulate)
        dh = self.P.backend.matmul(loss.dh, self.P.V[1])
        return Loss(loss.sum, loss.count, loss.per_target, dh)


class AdaptiveLayer(NamedTuple):
    """The head and the tails, packed for both passes."""

    head: Linear
    tails: tuple[Tail, ...]
    K: int
    backend: Backend

    def __call__(self, h: Floats) -> Floats:
        """Return o (…, K) of h (…, width): logits of the shortlist, logit of the cluster + log softmax of the tail."""
        rows = h.reshape(-1, h.shape[-1])
        head, first = self.head(rows), self.tails[0].first
        o = np.empty((len(rows), self.K), head.dtype)
        o[:, :first] = head[:, :first]
        for i, tail in enumerate(self.tails):
            own = tail.V(tail.P(rows))
            to = o[:, tail.first : tail.first + own.shape[1]]
            to[:] = self.backend.log_softmax_rows(own, np.ascontiguousarray(head[:, first + i]))
        return o.reshape(*h.shape[:-1], self.K)

    def cross_entropy(self, h: Floats, y: Ids, into: OutputGradient | None = None) -> Loss:
        """Return the loss of targets y (…), negative ones masked; with `into`, also the gradients of the parameters and h."""
        if y.size and y.max() >= self.K:
            raise InputError(
                f"y holds {y.max()}; expected at most {self.K - 1}, or a negative number for a masked target"
            )
        firsts = np.array([tail.first for tail in self.tails])
        cluster = np.searchsorted(firsts, y, side="right")  # 0: the shortlist, or masked
        y_head = np.where(cluster > 0, firsts[0] - 1 + cluster, y).astype(np.int32)
        loss = self.head.cross_entropy(h, y_head, None if into is None else into._replace(tails=()))
        rows, targets = h.reshape(y.size, h.shape[-1]), y.reshape(-1)
        nats = loss.per_target.reshape(-1)
        dh = None if loss.dh is None else loss.dh.reshape(rows.shape)
        for i, tail in enumerate(self.tails):
            at = np.flatnonzero(cluster.reshape(-1) == i + 1).astype(np.int32)
            scale, accumulate = (1.0, True) if into is None else (into.scale, into.accumulate)
            own = tail.loss(
                self.backend.gather(rows, at),
                (targets[at] - tail.first).astype(np.int32),
                scale,
                accumulate,
                None if into is None else into.tails[i],
            )
            nats[at] += own.per_target
            if dh is not None and own.dh is not None:
                self.backend.scatter_add(dh, at, own.dh)
        total = float(np.add.accumulate(nats)[-1]) if nats.size else 0.0  # t rising, as the kernel adds
        return Loss(total, loss.count, nats.reshape(y.shape), None if dh is None else dh.reshape(h.shape))


class AdaptiveSoftmax(OutputKind):
    """V and c of the head (shortlist + clusters), and P, V, c of each tail."""

    def names(self, config: ModelConfig) -> list[str]:
        """Return V and c of the head, then P, V and c of each tail."""
        tails = range(1, len(config.cutoffs) + 1)
        return ["V", "c", *(tail_name(i) + letter for i in tails for letter in "PVc")]

    def shapes(self, config: ModelConfig) -> Shapes:
        """Return the shapes of all of them."""
        C = len(config.cutoffs)
        rows = C + config.cutoffs[0]
        shapes: Shapes = {"V": (C if config.tied else rows, config.width), "c": (rows,)}
        for i, (first, end, width) in enumerate(clusters_of(config), 1):
            at = tail_name(i)
            shapes |= {
                at + "P": (width, config.width),
                at + "V": (end - first, width),
                at + "c": (end - first,),
            }
        return shapes

    def initialise(self, config: ModelConfig, p: Mapping[str, Floats], rng: np.random.Generator) -> None:
        """Draw every matrix from a normal distribution of variance 1/columns."""
        for name in self.names(config):
            if p[name].ndim == 2:
                p[name][:] = rng.standard_normal(p[name].shape) * p[name].shape[1] ** -0.5

    def set_bias(self, config: ModelConfig, p: Mapping[str, Floats], log_p: Real) -> None:
        """Set c to the log-probabilities of shortlist and clusters, c_i to those of the tokens given their cluster."""
        n = config.cutoffs[0]
        p["c"][:n] = log_p[:n]
        for i, (first, end, _) in enumerate(clusters_of(config), 1):
            own = log_p[first:end]
            share = math.log(math.fsum(math.exp(each) for each in own))
            p["c"][n + i - 1] = share
            p[tail_name(i) + "c"][:] = own - share

    def layer(self, config: ModelConfig, p: Mapping[str, Floats], backend: Backend) -> OutputLayer:
        """Pack all matrices for both passes."""
        tails, exact = [], UNROUNDED.get(backend, backend)
        for i, (first, _, _) in enumerate(clusters_of(config), 1):
            P, V, c = (p[tail_name(i) + letter] for letter in "PVc")
            tails.append(Tail(first, Linear.of(P, None, exact), Linear.of(V, c, exact)))
        head = Linear.of(head_matrix(config, p), p["c"], backend)
        return AdaptiveLayer(head, tuple(tails), config.outputs, backend)
