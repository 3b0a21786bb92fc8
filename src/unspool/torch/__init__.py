"""PyTorch: its recurrent modules on this engine, and its names of parameters."""

from typing import TYPE_CHECKING

from unspool.errors import MissingExtra
from unspool.lazy import lazy_names

_TABLE = """
torch.modules     GRU LSTM RNN
torch.replace     accelerate explain restore
torch.state_dict  from_torch gradient_to_torch load_torch save_torch to_torch
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    _get, __dir__ = lazy_names(__name__, _TABLE)

    def __getattr__(name):
        """Return a name of the table; raise where it needs PyTorch and there is none."""
        try:
            return _get(name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtra(f"unspool.torch.{name} needs PyTorch: pip install unspool[torch]") from error
else:
    from unspool.torch.modules import GRU, LSTM, RNN
    from unspool.torch.replace import accelerate, explain, restore
    from unspool.torch.state_dict import from_torch, gradient_to_torch, load_torch, save_torch, to_torch

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "accelerate",
    "explain",
    "from_torch",
    "gradient_to_torch",
    "load_torch",
    "restore",
    "save_torch",
    "to_torch",
]
