"""Models, windows and what comes out of them, for the tests that compare bits."""

from __future__ import annotations

import hashlib
import itertools
import sys
from dataclasses import dataclass, field, replace

import numpy as np

from unspool import cells
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.values import Masks
from unspool.optimisers.adam import Adam
from unspool.training.loop import train

PRECISION = "float32"
"""The precision of the configs below; a test may set another."""
CELLS = tuple(cells.CELLS)
TORCH_CELLS = tuple(name for name, cell in cells.CELLS.items() if cell.torch is not None)
"""The cells that PyTorch has a layer for."""
INPUTS = {
    "one-hot": {"inputs": 11, "outputs": 11},
    "embedded": {"inputs": 13, "outputs": 13, "embedding": 6},
    "tied": {"inputs": 17, "outputs": 17, "tied": True},
    "gathered": {"inputs": 1500, "outputs": 19, "embedding": 5},
    "tied and gathered": {"inputs": 1100, "outputs": 1100, "tied": True},
    "adaptive": {"inputs": 43, "outputs": 43, "softmax": "adaptive:6,19"},
    "dense": {"inputs": 5, "outputs": 9, "dense": True},
}
"""The ways into the first layer; `gathered` has more tokens than a table is made for."""


def config_of(cell, kind, hidden, **more):
    """Return a config whose input is of this kind; without recurrent dropout for a cell without W."""
    fields = {"cell": cell, "hidden": hidden, "precision": PRECISION} | INPUTS[kind] | more
    if not cells.cell_named(cell).has_W:
        fields.pop("recurrent_dropout", None)
    if fields.get("bidirectional") or fields.get("pattern", "hidden") != "hidden":
        fields.pop("softmax", None)
    if fields.get("tied"):
        fields["embedding"] = hidden * (2 if fields.get("bidirectional") else 1)
    return ModelConfig(**fields)


@dataclass
class Windowed:
    """A model and one batch of windows for it, all from one seed."""

    config: ModelConfig
    tau: int
    B: int
    ragged: bool = False
    seed: int = 0
    lengths: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self):
        config, tau, B = self.config, self.tau, self.B
        rng = np.random.default_rng(self.seed)
        self.model = Model.initialise(config, seed=self.seed)
        flat = self.model.parameters.flat
        flat += rng.uniform(-0.1, 0.1, flat.shape).astype(np.float32)  # no bias stays zero
        if self.ragged:
            self.lengths = rng.integers(0, tau + 1, B).astype(np.int32)
            self.lengths[rng.integers(B)] = tau
        if config.dense:
            self.x = rng.standard_normal((tau, B, config.inputs)).astype(np.float32)
        else:
            self.x = rng.integers(0, config.inputs, (tau, B)).astype(np.int32)
        self.y = rng.integers(0, config.outputs, (tau, B)).astype(np.int32)
        self.y[rng.random((tau, B)) < 0.1] = -1
        if self.lengths is not None:
            self.y[np.arange(tau)[:, None] >= self.lengths] = -1
        parts = config.layers * config.directions
        self.start = self._states(rng, parts, 0.5)
        self.d_final_state = self._states(rng, parts, 0.1)
        if config.learn_h0:
            self.start = self.model.initial_state(B)
        self.masks = self.model.masks(B, seed=self.seed, step=3)

    def _states(self, rng, parts, size):
        def values():
            return (rng.standard_normal((self.B, self.config.hidden)) * size).astype(np.float32)

        return [
            (values(), values() if cells.cell_named(self.config.cell).has_cell_state else None)
            for _ in range(parts)
        ]


def rows_of(state, rows):
    """Return some rows of a state."""
    return [(h[rows], None if s is None else s[rows]) for h, s in state]


def masks_of(masks, rows):
    """Return some rows of dropout masks."""
    return Masks(*(None if part is None else [mask[rows] for mask in part] for part in masks))


def named(state, name):
    """Return a state's arrays under names of their own."""
    parts = [
        (f"{name} {i} {letter}", v)
        for i, pair in enumerate(state)
        for letter, v in zip("hs", pair, strict=True)
    ]
    return {label: value for label, value in parts if value is not None}


def cuts_to_windows(tau, cuts):
    """Return the windows (begin, end) between the cuts.

    >>> cuts_to_windows(7, [2, 5])
    [(0, 2), (2, 5), (5, 7)]
    """
    edges = [0, *cuts, tau]
    return list(itertools.pairwise(edges))


def walk(case, cuts=(), rows=slice(None), model=None):
    """Take a window forwards and back, in pieces; return everything that comes out.

    Forwards the state is carried from piece to piece. Backwards the last piece is first, and the gradient of
    its starting state arrives at the end of the piece before it.
    """
    model = model or case.model
    weights, gradient = model.weights(), model.gradient()
    lengths = None if case.lengths is None else case.lengths[rows]
    masks = masks_of(case.masks, rows)
    state = rows_of(case.start, rows)
    outputs = []
    windows = cuts_to_windows(case.tau, cuts)
    for begin, end in windows:
        live = None if lengths is None else np.clip(lengths - begin, 0, end - begin).astype(np.int32)
        outputs.append(
            model.forward(case.x[begin:end, rows], state, lengths=live, masks=masks, weights=weights)
        )
        state = outputs[-1].state
    found = named(state, "end")
    arriving = rows_of(case.d_final_state, rows)
    each, dh, dx = [], [], []
    for (begin, end), output in reversed(list(zip(windows, outputs, strict=True))):
        loss = model.loss(output, case.y[begin:end, rows], scale=0.01, weights=weights, gradient=gradient)
        back, arriving = model.backward(
            output, loss.dh, gradient, d_final_state=arriving, weights=weights, want_dx=case.config.dense
        )
        each.insert(0, loss.per_target)
        dh.insert(0, loss.dh)
        dx.insert(0, back)
    model.add_initial_state_gradient(arriving, gradient)
    model.fold_input_tables(gradient, weights)
    found |= named(arriving, "d_start")
    found |= {"h": np.concatenate([output.h for output in outputs])}
    found |= {"each": np.concatenate(each), "dh": np.concatenate(dh)}
    if dx[0] is not None:
        found["dx"] = np.concatenate(dx)
    return found | {"gradient " + name: gradient.values.stored(name).copy() for name in gradient.values}


def same_bits(ours, theirs):
    """Assert that two results are the same to the last bit."""
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        a, b = np.asarray(value), np.asarray(theirs[name])
        assert a.shape == b.shape and a.dtype == b.dtype, name
        if a.tobytes() != b.tobytes():
            different = np.frombuffer(a.tobytes(), np.uint8) != np.frombuffer(b.tobytes(), np.uint8)
            elements = different.reshape(-1, a.itemsize).any(axis=1)
            assert not elements.any(), f"{name}: {elements.sum()} of {elements.size} elements differ"


@dataclass
class Batch:
    """What `train` reads."""

    x: np.ndarray
    y: np.ndarray
    reset: bool


TRAINED = [
    config_of("elman", "one-hot", 33, layers=2, dropout=0.2, recurrent_dropout=0.1, learn_h0=True),
    config_of("gru", "embedded", 24, layers=3, dropout=0.1, recurrent_dropout=0.3),
    config_of("lstm", "tied", 20, layers=2, dropout=0.3, recurrent_dropout=0.2, learn_h0=True),
    config_of("lstm", "gathered", 7, bidirectional=True, layers=2, dropout=0.1),
]
"""What is trained for ten steps: every cell, several layers, all dropout there is."""


def batches(config, tau=12, B=9, steps=10, seed=5):
    """Return windows of random tokens; the state starts anew at the first and in the middle."""
    tokens = np.random.default_rng(seed).integers(0, config.outputs, (steps * tau + 1, B)).astype(np.int32)
    at = [slice(i * tau, (i + 1) * tau) for i in range(steps)]
    after = [slice(part.start + 1, part.stop + 1) for part in at]
    return [Batch(tokens[a], tokens[b], i in (0, 5)) for i, (a, b) in enumerate(zip(at, after, strict=True))]


def trained(config, B=9):
    """Return the parameters and the losses of ten updates with Adam."""
    model, optimiser = Model.initialise(config, seed=4), Adam(decay=0.01, clip=0.5)
    state, losses = None, []
    for batch in batches(config, B=B):
        state = None if batch.reset or config.bidirectional else state
        report = next(train(model, [batch], optimiser, state=state, seed=7))
        state = report.state
        losses += [report.loss, report.norm]
    return {"parameters": model.parameters.flat, "losses": np.array(losses)}


def digest():
    """Return a fingerprint of windows of every kind and of training: the same in every process."""
    total = hashlib.sha256()
    for cell in CELLS:
        for kind in INPUTS:
            case = Windowed(config_of(cell, kind, 17, layers=2, dropout=0.2), tau=9, B=5, ragged=True)
            for value in walk(case).values():
                total.update(value.tobytes())
    for config in TRAINED:
        config = replace(config, precision=PRECISION)
        for value in trained(config).values():
            total.update(value.tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    PRECISION = sys.argv[1]
    print(digest())
