"""PyTorch's names of parameters: read and write a state_dict."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

_TABLE = """
torch.state_dict  from_torch gradient_to_torch load_torch save_torch to_torch
"""
if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _TABLE)
else:
    from unspool.torch.state_dict import from_torch, gradient_to_torch, load_torch, save_torch, to_torch

__all__ = [
    "from_torch",
    "gradient_to_torch",
    "load_torch",
    "save_torch",
    "to_torch",
]
