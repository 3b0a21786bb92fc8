"""One flat vector for a network of several parts: encoder, decoder, attention, head.

The optimiser sees one vector, matrices first; a part sees its own parameters under their own letters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.layer_names import layer_directions
from unspool.model.parameters import Parameters, Shapes, initialise, prefix, shapes_of
from unspool.model.sequence_config import SequenceConfig

OUTPUT = ("V", "c")
"""The parameters of a language model's output: a part here has none, the head has its own."""


class ParameterPart(Parameters):
    """The parameters of a whole whose names begin with a prefix, without that prefix.

    >>> whole = Parameters({"encoder.W": (2, 2), "V": (3, 2), "encoder.b": (2,)})
    >>> part = ParameterPart(whole, "encoder.")
    >>> part["W"][:] = 1
    >>> list(part), whole["encoder.W"].tolist()
    (['W', 'b'], [[1.0, 1.0], [1.0, 1.0]])
    """

    def __init__(self, whole: Parameters, at: str) -> None:
        self.shapes = {name[len(at) :]: shape for name, shape in whole.shapes.items() if name.startswith(at)}
        self._stored = {name: whole.stored(at + name) for name in self.shapes}
        self.count = sum(stored.size for stored in self._stored.values())
        self.flat, self.matrices = whole.flat, whole.matrices
        self._of = whole, at

    def astype(self, dtype: type[Any]) -> Parameters:
        """Return this part of a copy of the whole in another precision."""
        whole, at = self._of
        return ParameterPart(whole.astype(dtype), at)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the whole; this stays a view into it."""
        return ParameterPart, self._of


def shapes_of_network(config: SequenceConfig) -> Shapes:
    """Return every parameter's name and shape, matrices first.

    >>> list(shapes_of_network(SequenceConfig("many-to-one", "classes", inputs=3, outputs=2, cell="elman")))
    ['encoder.layer0.U', 'encoder.layer0.W', 'V', 'encoder.layer0.b', 'c']
    """
    shapes = _part_shapes("encoder.", config.encoder)
    if config.decoder:
        shapes |= _part_shapes("decoder.", config.decoder)
    if config.attention != "none":
        H, read = config.hidden, config.encoder.width
        shapes |= {"attention.A": (H, read), "attention.C": (H, read + H), "attention.a": (H,)}
        if config.attention == "additive":
            shapes |= {"attention.P": (H, H), "attention.v": (H,)}
    shapes |= {"V": (config.K, config.width), "c": (config.K,)}
    if config.crf:
        shapes |= {"A": (config.K, config.K)}
    return dict(sorted(shapes.items(), key=lambda item: len(item[1]) == 1))


def _part_shapes(at: str, config: ModelConfig) -> Shapes:
    return {at + name: shape for name, shape in shapes_of(config).items() if name not in OUTPUT}


def initialise_network(config: SequenceConfig, rng: np.random.Generator) -> Parameters:
    """Return fresh parameters: a function of the config and the generator's state only."""
    whole = Parameters(shapes_of_network(config))
    for at, layers in (("encoder.", config.encoder), ("decoder.", config.decoder)):
        if layers is None:
            continue
        fresh = initialise(layers, rng)
        for name, stored in ParameterPart(whole, at)._stored.items():
            stored[:] = fresh.stored(name)
        if config.chrono_steps:
            _remember(ParameterPart(whole, at), layers, config.chrono_steps, rng)
    for name, shape in whole.shapes.items():
        if (name.startswith("attention.") and not name.endswith(".a")) or name == "V":
            whole[name][:] = rng.standard_normal(shape) * shape[-1] ** -0.5
    return whole


def _remember(part: Parameters, config: ModelConfig, steps: int, rng: np.random.Generator) -> None:
    """Begin with gates that forget in 1 … `steps` steps, evenly: b = log u, u from [1, steps - 1].

    A gate f that stays the same forgets in 1 / (1 - f) steps, and 1 / (1 - sigmoid(log u)) = 1 + u
    (Tallec and Ollivier, 2018). A separate input gate is initialised as 1 - f.
    """
    cell, H = cell_named(config.cell), config.hidden
    for layer, reverse in layer_directions(config):
        b: Floats = part[prefix(layer, reverse) + "b"]
        drawn = np.log(rng.uniform(1.0, max(steps - 1.0, 1.0), H))
        b[cell.block(cell.forget_gate, H)] = drawn
        if cell.input_gate:
            b[cell.block(cell.input_gate, H)] = -drawn
