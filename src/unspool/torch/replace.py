"""Change the recurrent modules of a model to this engine and back, in place.

A module changes its class and keeps everything else: parameters, buffers, hooks, optimisers that refer to it. So the order of
`accelerate`, `to`, `load_state_dict` and the rest does not matter.
"""

from __future__ import annotations

from typing import TypeVar

from torch.nn.utils import parametrize

from torch import nn
from unspool.torch.modules import MODULES, why_not_ever

AnyModule = TypeVar("AnyModule", bound=nn.Module)
OURS: dict[type[nn.Module], type[nn.Module]] = {ours.own: ours for ours in MODULES}
THEIRS = {ours: theirs for theirs, ours in OURS.items()}


def accelerate(model: AnyModule) -> AnyModule:
    """Let this engine compute every `nn.RNN`, `nn.GRU` and `nn.LSTM` of a model; return the same model.

    Subclasses are left alone, since their code is their own. A call that the engine does not cover is computed by PyTorch.

    >>> model = accelerate(nn.Sequential(nn.Embedding(9, 4), nn.GRU(4, 6)))
    >>> print(explain(model))
    1: GRU(4, 6): unspool
    """
    return _changed(model, OURS)


def restore(model: AnyModule) -> AnyModule:
    """Undo `accelerate`: let PyTorch compute every recurrent module of a model; return the same model."""
    for module in model.modules():
        if isinstance(module, MODULES):
            module.freeze(False)
    return _changed(model, THEIRS)


def explain(model: nn.Module) -> str:
    """Return one line for each recurrent module of a model: who computes it, and why."""
    lines = []
    for name, module in model.named_modules():
        if isinstance(module, nn.RNNBase):
            lines.append(f"{name or 'the model'}: {module}: {_who(module)}")
    return "\n".join(lines) or "the model has no recurrent modules"


def _who(module: nn.RNNBase) -> str:
    reason = why_not_ever(module)
    if isinstance(module, MODULES):
        return f"PyTorch, because {reason}" if reason else "unspool"
    if _class_of(module) not in OURS:
        return f"PyTorch, because {type(module).__name__} is a class with its own code"
    return (
        f"PyTorch, also after accelerate(), because {reason}"
        if reason
        else "PyTorch; accelerate() changes it"
    )


def _class_of(module: nn.Module) -> type[nn.Module]:
    """Return the class of a module, without parametrizations."""
    kind = type(module)
    return kind.__bases__[0] if parametrize.is_parametrized(module) else kind


def _changed(model: AnyModule, classes: dict[type[nn.Module], type[nn.Module]]) -> AnyModule:
    for module in model.modules():
        kind = classes.get(_class_of(module))
        if kind is None:
            continue
        if parametrize.is_parametrized(
            module
        ):  # its own subclass, with one property for each parametrized tensor
            parts = {
                name: value for name, value in vars(type(module)).items() if name not in _ADDED_BY_PYTHON
            }
            kind = type(type(module).__name__, (kind,), parts)
        module.__class__ = kind
    return model


_ADDED_BY_PYTHON = ("__dict__", "__weakref__")
