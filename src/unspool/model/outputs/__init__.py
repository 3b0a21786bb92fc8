"""Kinds of output layers by name: one file and one entry of OUTPUTS each."""

from unspool.model.config import ModelConfig
from unspool.model.cutoffs import ADAPTIVE, FULL
from unspool.model.outputs.adaptive import AdaptiveSoftmax
from unspool.model.outputs.base import OutputKind
from unspool.model.outputs.full import FullSoftmax

OUTPUTS: dict[str, OutputKind] = {FULL: FullSoftmax(), ADAPTIVE: AdaptiveSoftmax()}
"""All kinds of output layers by name."""


def output_of(config: ModelConfig) -> OutputKind:
    """Return the kind of output layer of a network."""
    return OUTPUTS[ADAPTIVE if config.cutoffs else FULL]
