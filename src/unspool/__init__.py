"""Recurrent networks, unspooled: train small sequence models on a CPU, measure them, look inside."""

from importlib import import_module

TYPE_CHECKING = False
"""As typing has it, which would take a hundredth of a second to import."""
if TYPE_CHECKING:
    from unspool.errors import UnspoolError
    from unspool.gradients.per_sample import per_sample_gradients, per_sample_norms
    from unspool.kernels.native import kernel_info, set_threads
    from unspool.model.config import ModelConfig
    from unspool.model.network import Model
    from unspool.model.stream import Stream
    from unspool.optimisers.adam import Adam
    from unspool.optimisers.sgd import SGD
    from unspool.tasks.language.estimator import LanguageModel
    from unspool.tasks.language.text_model import TextModel
    from unspool.tasks.registry import load
    from unspool.training.loop import train

__version__ = "0.1.0"
__all__ = [
    "SGD",
    "Adam",
    "LanguageModel",
    "Model",
    "ModelConfig",
    "Stream",
    "TextModel",
    "UnspoolError",
    "kernel_info",
    "load",
    "per_sample_gradients",
    "per_sample_norms",
    "set_threads",
    "train",
]
_MODULES = {
    "Adam": "optimisers.adam",
    "LanguageModel": "tasks.language.estimator",
    "Model": "model.network",
    "ModelConfig": "model.config",
    "SGD": "optimisers.sgd",
    "Stream": "model.stream",
    "TextModel": "tasks.language.text_model",
    "UnspoolError": "errors",
    "kernel_info": "kernels.native",
    "load": "tasks.registry",
    "per_sample_gradients": "gradients.per_sample",
    "per_sample_norms": "gradients.per_sample",
    "set_threads": "kernels.native",
    "train": "training.loop",
}
"""The module that each public name is imported from at first use: importing the package itself is quick."""


def __getattr__(name: str) -> object:
    """Import a public name or a sub-package at first use."""
    if name in _MODULES:
        return getattr(import_module(f"unspool.{_MODULES[name]}"), name)
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
