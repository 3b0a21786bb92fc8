"""PyTorch's names of parameters: read and write a state_dict."""

from typing import TYPE_CHECKING

from unspool.lazy import lazy_names

if TYPE_CHECKING:
    from unspool.torch.state_dict import from_torch, gradient_to_torch, load_torch, save_torch, to_torch

__all__ = [
    "from_torch",
    "gradient_to_torch",
    "load_torch",
    "save_torch",
    "to_torch",
]
_MODULES = {
    "from_torch": "torch.state_dict",
    "gradient_to_torch": "torch.state_dict",
    "load_torch": "torch.state_dict",
    "save_torch": "torch.state_dict",
    "to_torch": "torch.state_dict",
}
"""The module that each public name is imported from at first use."""

if not TYPE_CHECKING:  # a type checker would take any name for one that exists
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
