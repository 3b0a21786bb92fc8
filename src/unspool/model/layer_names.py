"""Names of a model's layers and directions: ours, and PyTorch's."""

from __future__ import annotations

from unspool.model.config import ModelConfig


def torch_suffix(layer: int, reverse: bool) -> str:
    """Return how PyTorch names a layer and direction.

    >>> torch_suffix(1, True)
    'l1_reverse'
    """
    return f"l{layer}_reverse" if reverse else f"l{layer}"


def layer_directions(config: ModelConfig) -> list[tuple[int, bool]]:
    """Return every (layer, reverse) of a model."""
    return [(layer, bool(r)) for layer in range(config.layers) for r in range(config.directions)]
