"""Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside."""

from unspool.config import ModelConfig
from unspool.errors import UnspoolError
from unspool.kernel.ops import kernel_info, set_threads
from unspool.model import Model
from unspool.optimise import Optimiser, OptimiserConfig
from unspool.stream import Stream
from unspool.train import train

__version__ = "0.1.0"
__all__ = [
    "Model",
    "ModelConfig",
    "Optimiser",
    "OptimiserConfig",
    "Stream",
    "UnspoolError",
    "kernel_info",
    "set_threads",
    "train",
]
