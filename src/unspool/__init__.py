"""Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unspool.config import ModelConfig
from unspool.errors import UnspoolError
from unspool.kernel.ops import kernel_info, set_threads
from unspool.model import Model
from unspool.optimise import Optimiser, OptimiserConfig
from unspool.stream import Stream
from unspool.train import train

if TYPE_CHECKING:
    from unspool.estimator import LanguageModel
    from unspool.language import TextModel

__version__ = "0.1.0"
__all__ = [
    "LanguageModel",
    "Model",
    "ModelConfig",
    "Optimiser",
    "OptimiserConfig",
    "Stream",
    "TextModel",
    "UnspoolError",
    "kernel_info",
    "set_threads",
    "train",
]
_LATER = {"LanguageModel": "unspool.estimator", "TextModel": "unspool.language"}
"""What is imported when it is first asked for, so that importing the package stays quick."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'unspool' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
