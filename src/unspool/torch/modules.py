"""`RNN`, `GRU` and `LSTM`: PyTorch's recurrent modules, computed by this engine on the CPU.

Constructors, parameters, calls and results are those of `torch.nn`. A call that the engine does not cover (`why_not`) is
passed to PyTorch's own code, which also raises its own errors.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from torch.autograd import forward_ad
from torch.nn.utils.rnn import PackedSequence

import torch
from torch import Tensor, nn
from unspool.torch.operator import array, follow_threads, run_layer, tensor
from unspool.torch.stream import Steps, packed_steps, zero_state

Given = Tensor | PackedSequence
States = list[tuple[Tensor, Tensor | None]]
"""h(t) of every step, and the cell states, of each layer and direction."""


class Recurrent(nn.RNNBase):
    """What the three modules share: the choice between the engine and PyTorch, and the layers of one call."""

    _steps: Steps | None = None
    """The weights that `freeze` has packed."""
    own: ClassVar[type[nn.RNNBase]]
    """PyTorch's module, whose code computes what the engine does not cover."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(vars(self.own(*args, **kwargs)))  # its parameters, checks and errors

    def forward(self, input: Given, hx: Any = None, *, return_states: bool = False) -> Any:
        """Return the output and the final state, as PyTorch's module; with `return_states`, also those of every step.

        These are one pair for each layer and direction: h(t), with gradients, and the cell states, without; both are
        laid out as the output.
        """
        bf16 = in_bf16()
        if self.why_not(input, hx, bf16) is None:
            return self._run(input, hx, bf16, return_states)
        if return_states:
            raise ValueError(f"return_states: not available here, {self.why_not(input, hx, bf16)}")
        return self.own.forward(self, input, hx)

    def freeze(self, frozen: bool = True) -> Self:
        """Pack the weights once for `step`, until they are frozen again or released with `freeze(False)`.

        Copies, pickles and `state_dict` have the parameters only.
        """
        if frozen and (reason := why_not_ever(self)):
            raise ValueError(f"freeze: not available, because {reason}")
        self._steps = packed_steps(self) if frozen else None
        return self

    def step(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Return the output and the state after one step: x is (X,) or (B, X), the state that of `forward`.

        The weights are those of the last `freeze`; a module that is not frozen is frozen first. No gradients.
        """
        steps = self._steps or self.freeze()._steps
        assert steps is not None
        follow_threads()
        alone, long = x.dim() == 1, self.mode == "LSTM"
        rows = array(x[None] if alone else x)
        if state is None:
            h = zero_state(self, len(rows))
            s = h if long else None
        else:
            h, s = (array(state[0]), array(state[1])) if long else (array(state), None)
            h, s = (h[:, None], None if s is None else s[:, None]) if alone else (h, s)
        after, after_s = map(tensor, steps.step(rows, h, s))
        y = after[-1]
        if alone:
            y, after, after_s = y[0], after[:, 0], after_s[:, 0] if long else after_s
        return y, (after, after_s) if long else after

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy or a pickle, without packed weights."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        state.pop("_steps", None)
        return state

    def why_not(self, input: Given, hx: Any = None, bf16: bool = False) -> str | None:
        """Return why the engine does not compute this call, or None: it does."""
        x = input.data if isinstance(input, PackedSequence) else input
        if reason := why_not_ever(self) or _why_not_now():
            return reason
        floats = (torch.float32, torch.bfloat16) if bf16 else (torch.float32,)
        if not isinstance(x, Tensor) or not _plain(x, floats):
            return "the input is not a dense float32 tensor on the CPU"
        batched = x.dim() == 3
        if x.dim() != 2 + (batched and x is input) or x.shape[-1] != self.input_size or x.numel() == 0:
            return "the input has no values, or a shape that does not fit"
        return None if hx is None or self._fits(hx, input, batched, floats) else "the state does not fit"

    def _fits(self, hx: Any, input: Given, batched: bool, floats: tuple[torch.dtype, ...]) -> bool:
        parts = hx if self.mode == "LSTM" else (hx,)
        if not isinstance(parts, tuple | list) or len(parts) != (2 if self.mode == "LSTM" else 1):
            return False
        shape = [self.num_layers * (2 if self.bidirectional else 1), self.hidden_size]
        if isinstance(input, PackedSequence):
            shape.insert(1, int(input.batch_sizes[0]))
        elif batched:
            shape.insert(1, input.shape[0 if self.batch_first else 1])
        return all(
            isinstance(part, Tensor) and _plain(part, floats) and list(part.shape) == shape for part in parts
        )

    def _run(self, input: Given, hx: Any, bf16: bool, return_states: bool) -> Any:
        long, unbatched = self.mode == "LSTM", not isinstance(input, PackedSequence) and input.dim() == 2
        state = None if hx is None else tuple(hx) if long else (hx,)
        if isinstance(input, PackedSequence):
            x, batch_sizes, indices, _ = input
            if indices is not None and state is not None:
                state = tuple(part.index_select(1, indices) for part in state)
        else:
            batch_sizes = None
            x = input.unsqueeze(1) if unbatched else input.transpose(0, 1) if self.batch_first else input
            if unbatched and state is not None:
                state = tuple(part.unsqueeze(1) for part in state)
        dtype = (x if state is None else state[0]).dtype
        y, ends, states = self._layers(x, state, batch_sizes, bf16)
        if bf16:  # as PyTorch
            dtype = dtype if self.mode == "GRU" else torch.bfloat16
            y, ends = y.to(dtype), tuple(end.to(dtype) for end in ends)
        if isinstance(input, PackedSequence) and input.unsorted_indices is not None:
            ends = tuple(end.index_select(1, input.unsorted_indices) for end in ends)
        if unbatched:
            ends = tuple(end.squeeze(1) for end in ends)
        result = self._laid_out(y, input), ends if long else ends[0]
        if not return_states:
            return result
        if batch_sizes is not None:
            states = [(h, s if s is None else _packed(s, batch_sizes)) for h, s in states]
        all_states = [
            (self._laid_out(h, input), None if s is None else self._laid_out(s, input)) for h, s in states
        ]
        return *result, all_states

    def _laid_out(self, y: Tensor, input: Given) -> Given:
        """Return y (tau, B, ·) or packed, laid out as the input."""
        if isinstance(input, PackedSequence):
            return PackedSequence(y, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
        return y.squeeze(1) if input.dim() == 2 else y.transpose(0, 1) if self.batch_first else y

    def _layers(
        self, x: Tensor, state: tuple[Tensor, ...] | None, batch_sizes: Tensor | None, bf16: bool
    ) -> tuple[Tensor, tuple[Tensor, ...], States]:
        """Run all layers and directions; return the output, the final states and the states of every step."""
        directions, long = (2 if self.bidirectional else 1), self.mode == "LSTM"
        starts = self._starts(x, state, batch_sizes)
        x = x.float()
        ends: list[Tensor] = []
        ends_s: list[Tensor] = []
        states: States = []
        for layer in range(self.num_layers):
            outputs = []
            for way in range(directions):
                at = layer * directions + way
                y, h, s, _, ss, _ = run_layer(
                    x, *starts[at], *self._weights_of(at), batch_sizes, self.mode, way == 1, bf16
                )
                outputs.append(y)
                ends.append(h)
                ends_s.append(s)
                states.append((y, None if not long else ss[:-1] if way else ss[1:]))
            x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = nn.functional.dropout(x, self.dropout, True)
        return x, tuple(_stacked(each) for each in ((ends, ends_s) if long else (ends,))), states

    def _starts(
        self, x: Tensor, state: tuple[Tensor, ...] | None, batch_sizes: Tensor | None
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Return h(0) and s(0) of every layer and direction, float32."""
        long, count = self.mode == "LSTM", self.num_layers * (2 if self.bidirectional else 1)
        if state is None:
            B = x.shape[1] if batch_sizes is None else int(batch_sizes[0])
            zero = torch.zeros(B, self.hidden_size)
            return [(zero, zero if long else None)] * count
        h0, s0 = ([*part.float().unbind(0)] for part in (state[0], state[-1]))
        return [(h, s if long else None) for h, s in zip(h0, s0, strict=True)]

    def _weights_of(self, at: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        own = self._parameters
        found: Any = [
            getattr(self, name) if (weight := own.get(name)) is None else weight
            for name in self._all_weights[at]
        ]
        U, W, b_ih, b_hh = found if self.bias else (*found, None, None)
        return U, W, b_ih, b_hh


class RNN(Recurrent):
    """Compute `torch.nn.RNN` on this engine: the same constructor, parameters and results.

    >>> import torch
    >>> output, h = RNN(3, 5, batch_first=True)(torch.zeros(2, 4, 3))
    >>> output.shape, h.shape
    (torch.Size([2, 4, 5]), torch.Size([1, 2, 5]))
    """

    own = nn.RNN


class GRU(Recurrent):
    """Compute `torch.nn.GRU` on this engine: the same constructor, parameters and results."""

    own = nn.GRU


class LSTM(Recurrent):
    """Compute `torch.nn.LSTM` on this engine: the same constructor, parameters and results.

    >>> import torch
    >>> output, (h, c) = LSTM(3, 5, num_layers=2, bidirectional=True)(torch.zeros(4, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([4, 2, 10]), torch.Size([4, 2, 5]))
    """

    own = nn.LSTM

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise the errors of `torch.nn.LSTM` for sizes that do not fit."""
        nn.LSTM.check_forward_args(self, input, hidden, batch_sizes)  # type: ignore[arg-type]

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the size of c, as `torch.nn.LSTM`."""
        return nn.LSTM.get_expected_cell_size(self, input, batch_sizes)  # type: ignore[arg-type]

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return h and c with their rows in this order, as `torch.nn.LSTM`."""
        return nn.LSTM.permute_hidden(self, hx, permutation)  # type: ignore[arg-type]


MODULES: tuple[type[Recurrent], ...] = (RNN, GRU, LSTM)


def in_bf16() -> bool:
    """Return whether autocast asks for bf16 on the CPU."""
    return torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16


def why_not_ever(module: nn.RNNBase) -> str | None:
    """Return why the engine computes no call of a module as it is now, or None."""
    if module.proj_size:
        return "proj_size is not zero"
    for name in module._flat_weights_names:
        weight = module._parameters.get(name)
        weight = getattr(module, name, None) if weight is None else weight
        if not isinstance(weight, Tensor) or not _plain(weight, (torch.float32,)):
            return f"{name} is not a dense float32 tensor on the CPU"
    return None


def _why_not_now() -> str | None:
    """Return why PyTorch is needed whatever the module is: a mode of the process, or None."""
    if torch.jit.is_tracing():  # type: ignore[attr-defined,no-untyped-call]
        return "a TorchScript trace has operators of PyTorch only"
    if not torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        return "forward-mode differentiation is PyTorch's"
    if not torch.compiler.is_compiling() and _in_gradient_transform():
        return "torch.func differentiates PyTorch's code"
    if torch.is_autocast_enabled("cpu") and not in_bf16():
        return "autocast asks for another type than bfloat16"
    return None


def _in_gradient_transform() -> bool:
    """Return whether `torch.func.grad`, `vjp` or a transform made of them is under way; `vmap` alone is none."""
    stack = torch._C._functorch.get_interpreter_stack() or ()
    return any(each.key() == torch._C._functorch.TransformType.Grad for each in stack)


def _plain(tensor: Tensor, floats: tuple[torch.dtype, ...]) -> bool:
    return tensor.dtype in floats and tensor.is_cpu and tensor.layout is torch.strided


def _packed(s: Tensor, batch_sizes: Tensor) -> Tensor:
    """Return the rows of s (tau, B, H) that exist, packed."""
    return s[torch.arange(s.shape[1]) < batch_sizes[:, None]]


def _stacked(ends: list[Tensor]) -> Tensor:
    return ends[0].unsqueeze(0) if len(ends) == 1 else torch.stack(ends)
