"""Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside."""

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
"""As typing has it, which would take a hundredth of a second to import."""
if TYPE_CHECKING:
    from unspool.config import ModelConfig
    from unspool.errors import UnspoolError
    from unspool.estimator import LanguageModel
    from unspool.kernel.ops import kernel_info, set_threads
    from unspool.language import TextModel
    from unspool.model import Model
    from unspool.optimise import Optimiser, OptimiserConfig
    from unspool.per_sample import per_sample_gradients, per_sample_norms
    from unspool.stream import Stream
    from unspool.train import train

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
    "per_sample_gradients",
    "per_sample_norms",
    "set_threads",
    "train",
]
_PLACES = {
    "LanguageModel": "estimator",
    "Model": "model",
    "ModelConfig": "config",
    "Optimiser": "optimise",
    "OptimiserConfig": "optimise",
    "Stream": "stream",
    "TextModel": "language",
    "UnspoolError": "errors",
    "kernel_info": "kernel.ops",
    "per_sample_gradients": "per_sample",
    "per_sample_norms": "per_sample",
    "set_threads": "kernel.ops",
    "train": "train",
}
"""Where each name is imported from when it is first asked for: importing the package itself is quick."""


def __getattr__(name: str) -> object:
    """Give what stands in _PLACES, or one of the package's modules."""
    if name in _PLACES:
        return getattr(import_module(f"unspool.{_PLACES[name]}"), name)
    try:
        return import_module(f"unspool.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"unspool.{name}":
            raise
        raise AttributeError(f"module 'unspool' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(
        {*(name for name in globals() if name.startswith("__")), *__all__} - {"__getattr__", "__dir__"}
    )


class _Package(ModuleType):
    """`unspool.train` is the function: the import system would put the module of that name in its place."""

    @property
    def train(self) -> object:
        return __getattr__("train")

    @train.setter
    def train(self, module: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
