"""All parameters of a model in one flat vector, under the textbook's letters.

Matrices come first and vectors last, so that weight decay is one slice. U is stored transposed, (X, G*H): a
one-hot input then gathers a row of it. `parameters["layer0.U"]` still shows (G*H, X). R (H, K), which feeds the output
back (figure 10.4), is stored transposed too. Each parameter begins on a cache line; the values between two stay zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.cells.elman import initialise_feedback
from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats
from unspool.kernels.memory import require_memory
from unspool.model.config import ModelConfig
from unspool.model.layer_names import layer_directions
from unspool.model.outputs import output_of

Shapes = dict[str, tuple[int, ...]]
TRANSPOSED = (".U", ".R")
LINE = 16
"""The floats of a cache line."""


def prefix(layer: int, reverse: bool) -> str:
    """Return the prefix of the names of a layer's parameters: layer0. or layer0.reverse."""
    return f"layer{layer}.reverse." if reverse else f"layer{layer}."


def shapes_of(config: ModelConfig) -> Shapes:
    """Return every parameter's name and shape, in the order of the flat vector.

    >>> shapes_of(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=3))
    {'layer0.U': (3, 4), 'layer0.W': (3, 3), 'V': (4, 3), 'layer0.b': (3,), 'c': (4,)}
    """
    cell, H = cell_named(config.cell), config.hidden
    shapes: Shapes = {}
    if config.embedding:
        shapes["E"] = (config.inputs, config.embedding)
    for layer, reverse in layer_directions(config):
        own = cell.shapes(config.input_width(layer), H)
        if config.pattern == "output":
            own = {"U": own["U"], "R": (H, config.outputs), "b": own["b"]}
        if config.learn_h0:
            own |= {name: (H,) for name in ("h0", "s0")[: cell.parts]}
        shapes |= {prefix(layer, reverse) + name: shape for name, shape in own.items()}
    shapes |= output_of(config).shapes(config)
    return dict(sorted(shapes.items(), key=lambda item: len(item[1]) == 1))


class Parameters(Mapping[str, Floats]):
    """A flat vector and named views into it.

    >>> p = Parameters(shapes_of(ModelConfig(cell="elman", inputs=4, outputs=4, hidden=3)))
    >>> p["layer0.U"].shape, p.stored("layer0.U").shape, p.count, len(p.flat)
    ((3, 4), (4, 3), 40, 80)
    """

    def __init__(self, shapes: Shapes, flat: Floats | None = None) -> None:
        sizes = {name: int(np.prod(shape, dtype=object)) for name, shape in shapes.items()}
        padded = {name: -(-size // LINE) * LINE for name, size in sizes.items()}
        total = sum(padded.values())
        self.shapes = shapes
        self.count = sum(sizes.values())
        """The number of parameters."""
        self.flat: Floats = _zeros(total) if flat is None else flat
        if self.flat.shape != (total,):
            raise InputError(f"the flat vector has {self.flat.size} values; these shapes need {total}")
        self.matrices = sum(padded[name] for name, shape in shapes.items() if len(shape) == 2)
        """The number of values at the beginning that belong to matrices."""
        self._stored: dict[str, Floats] = {}
        self.slices: dict[str, slice] = {}
        """The slice of the flat vector of each parameter."""
        first = 0
        for name, shape in shapes.items():
            stored = shape[::-1] if name.endswith(TRANSPOSED) else shape
            self.slices[name] = slice(first, first + sizes[name])
            self._stored[name] = self.flat[self.slices[name]].reshape(stored)
            first += padded[name]

    def __getitem__(self, name: str) -> Floats:
        stored = self.stored(name)
        return stored.T if name.endswith(TRANSPOSED) else stored

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def stored(self, name: str) -> Floats:
        """Return a parameter as it is stored: contiguous, U transposed."""
        if name not in self._stored:
            raise InputError(f"there is no parameter {name!r}; there are {', '.join(self.shapes)}")
        return self._stored[name]

    def layer(self, layer: int, reverse: bool) -> dict[str, Floats]:
        """Return one layer's parameters under their letters."""
        begin = prefix(layer, reverse)
        return {
            name[len(begin) :]: self[name]
            for name in self.shapes
            if name.startswith(begin) and name.count(".") == begin.count(".")
        }

    @property
    def sha256(self) -> str:
        """The hash of all values, which links a saved state to its model."""
        return hashlib.sha256(np.ascontiguousarray(self.flat).tobytes()).hexdigest()

    def like(self) -> Parameters:
        """Return zeros of the same shapes and precision: a gradient, or an optimiser's memory."""
        zeros = Parameters(self.shapes)
        return zeros if self.flat.dtype == zeros.flat.dtype else zeros.astype(self.flat.dtype.type)

    def zeros(self, shape: tuple[int, ...]) -> Floats:
        """Return zeros of the precision of these parameters."""
        return native.zeros(shape) if self.flat.dtype == np.float32 else np.zeros(shape, self.flat.dtype)

    def astype(self, dtype: type[Any]) -> Parameters:
        """Return a copy in another precision."""
        return Parameters(self.shapes, self.flat.astype(dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle only the flat vector: the views are made again for the copy."""
        return _restored, (self.shapes, self.flat)


def _restored(shapes: Shapes, flat: Floats) -> Parameters:
    """Return a copied or unpickled object; move its float32 vector to a cache line if it is not on one."""
    if flat.dtype == np.float32 and not (flat.flags.writeable and flat.ctypes.data % (4 * LINE) == 0):
        flat, copied = _zeros(flat.size), flat
        flat[:] = copied
    return Parameters(shapes, flat)


def _zeros(total: int) -> Floats:
    require_memory(4 * total, f"a vector of {total:,} parameters", "choose smaller sizes")
    return native.zeros((total,))


def initialise(config: ModelConfig, rng: np.random.Generator) -> Parameters:
    """Return initial parameters: a function of the config and the generator's state only."""
    parameters = Parameters(shapes_of(config))
    cell = cell_named(config.cell)
    if config.embedding:
        parameters["E"][:] = rng.standard_normal(parameters["E"].shape) * (
            config.embedding**-0.5 if config.tied else 1.0
        )
    for layer, reverse in layer_directions(config):
        begin = initialise_feedback if config.pattern == "output" else cell.initialise
        begin(parameters.layer(layer, reverse), rng)
    output_of(config).initialise(config, parameters, rng)
    return parameters
