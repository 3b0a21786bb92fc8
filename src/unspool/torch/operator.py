"""The operator `unspool::recurrent_layer`: one layer and direction of a recurrent module, by this engine.

    recurrent_layer(x, h0, s0, U, W, b_ih, b_hh, batch_sizes, mode, reverse, bf16) -> (y, h_end, s_end, hs, ss, tape)

x is (tau, B, X), or packed rows (N, X) with `batch_sizes` (tau,) as in `PackedSequence`; everything else is float32 on the CPU.
hs, ss and tape are what the backward pass reads: the states of packed rows, the cell states, the gates; empty where the
cell or the layout has none. They are outputs, so that hooks on saved tensors, `retain_graph` and compilers see them.
The values of rows of equal length are not copied: y is a part of the array that begins (or, in reverse, ends) with h0.

The operator has kernels for the CPU and for fake tensors, gradients of first order by this engine, gradients of higher
order by PyTorch (`differentiable`), a rule for `vmap` (a loop), and one for autocast (bf16, all tensors float32).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch.library import Library, register_autograd, register_fake

import torch
from torch import Tensor
from unspool.kernels import machine, native
from unspool.kernels.arrays import Floats
from unspool.kernels.tape import Tape
from unspool.torch.differentiable import second_order
from unspool.torch.layer import MODES, Rows, Wanted, Weights, layer_backward, layer_forward

calls = {"forward": 0, "backward": 0}
"""How often the engine ran a layer in this process, so that tests can tell it from PyTorch."""

LAYER = "Tensor x, Tensor h0, Tensor? s0, Tensor U, Tensor W, Tensor? b_ih, Tensor? b_hh, Tensor? batch_sizes"
HOW = "str mode, bool reverse, bool bf16"
library: Any = Library("unspool", "DEF")  # type: ignore[no-untyped-call]
tags = (torch.Tag.pt2_compliant_tag,)
library.define(
    f"recurrent_layer({LAYER}, {HOW}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", tags=tags
)
library.define(
    f"recurrent_layer_backward(Tensor? dy, Tensor? dh_end, Tensor? ds_end, {LAYER}, Tensor y, Tensor hs, Tensor ss, "
    f"Tensor tape, {HOW}, bool want_x, bool want_weights) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    tags=tags,
)
recurrent_layer = torch.ops.unspool.recurrent_layer.default
recurrent_layer_backward = torch.ops.unspool.recurrent_layer_backward.default


def array(tensor: Tensor) -> Floats:
    """Return the values of a tensor; they are copied only where they are not contiguous."""
    return tensor.contiguous().numpy(force=True)


def maybe(tensor: Tensor | None) -> Floats | None:
    """Return the values of a tensor, or None."""
    return None if tensor is None else array(tensor)


def tensor(values: Floats | None) -> Tensor:
    """Return a tensor of these values, without a copy; an empty one for None."""
    return torch.empty(0) if values is None else torch.from_numpy(values)


def follow_threads() -> None:
    """Use as many threads as PyTorch."""
    count = min(torch.get_num_threads(), machine.MOST_THREADS)
    if count != machine.threads():
        machine.set_threads(count)


def _weights(
    U: Tensor, W: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, mode: str, reverse: bool, bf16: bool
) -> Weights:
    return Weights(mode, reverse, bf16, array(U), array(W), maybe(b_ih), maybe(b_hh))


def _rows(batch_sizes: Tensor | None) -> Rows | None:
    return None if batch_sizes is None else Rows.of(array(batch_sizes))


def _forward(
    x: Tensor,
    h0: Tensor,
    s0: Tensor | None,
    U: Tensor,
    W: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    batch_sizes: Tensor | None,
    mode: str,
    reverse: bool,
    bf16: bool,
) -> tuple[Tensor, ...]:
    follow_threads()
    calls["forward"] += 1
    weights, rows = _weights(U, W, b_ih, b_hh, mode, reverse, bf16), _rows(batch_sizes)
    tape = layer_forward(weights, array(x), array(h0), maybe(s0), rows)
    hs = torch.from_numpy(tape.hs)
    ends = (tensor(tape.h_end.copy()), tensor(None if tape.s_end is None else tape.s_end.copy()))
    stored = (tensor(tape.ss), tensor(tape.gates))
    if rows is None:
        return (_states(hs, reverse), *ends, torch.empty(0), *stored)
    y = native.gather(tape.h.reshape(-1, tape.h.shape[2]), rows.at)
    return (tensor(y), *ends, hs, *stored)


def _states(hs: Tensor, reverse: bool) -> Tensor:
    """Return h(t) of every step, tau B H, in the memory of hs, and not as a view of it."""
    steps, B, H = hs.shape
    return torch.empty(0).set_(
        hs.untyped_storage(), 0 if reverse else B * H, (steps - 1, B, H), (B * H, H, 1)
    )


def _all_states(y: Tensor, h0: Tensor, reverse: bool) -> Floats:
    """Return the states including h0, tau+1 B H: where y lies, if `_states` made it, or a copy."""
    tau, B, H = y.shape
    place = 0 if reverse else B * H
    if y.storage_offset() == place and y.untyped_storage().nbytes() == 4 * (tau + 1) * B * H:
        hs = y.detach().as_strided((tau + 1, B, H), (B * H, H, 1), 0).numpy()
        if np.array_equal(hs[-1 if reverse else 0], array(h0)):
            return hs
    states, start = array(y), array(h0)[None]
    return np.concatenate([states, start] if reverse else [start, states])


def _backward(
    dy: Tensor | None,
    dh_end: Tensor | None,
    ds_end: Tensor | None,
    x: Tensor,
    h0: Tensor,
    s0: Tensor | None,
    U: Tensor,
    W: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    batch_sizes: Tensor | None,
    y: Tensor,
    hs: Tensor,
    ss: Tensor,
    tape: Tensor,
    mode: str,
    reverse: bool,
    bf16: bool,
    want_x: bool,
    want_weights: bool,
) -> tuple[Tensor, ...]:
    follow_threads()
    calls["backward"] += 1
    weights, rows = _weights(U, W, b_ih, b_hh, mode, reverse, bf16), _rows(batch_sizes)
    taped = Tape(
        weights.cell,
        MODES[mode][1],
        reverse,
        None if rows is None else rows.lengths,
        None,
        _all_states(y, h0, reverse) if rows is None else array(hs),
        array(ss) if ss.numel() else None,
        array(tape) if tape.numel() else None,
        None,
        len(U),
    )
    given = (maybe(dy), maybe(dh_end), maybe(ds_end))
    found = layer_backward(weights, array(x), taped, rows, given, Wanted(want_x, want_weights))
    return tuple(map(tensor, found))


def _fake_forward(
    x: Tensor, h0: Tensor, s0: Tensor | None, U: Tensor, W: Tensor, b_ih: Tensor | None, b_hh: Tensor | None,
    batch_sizes: Tensor | None, mode: str, reverse: bool, bf16: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    (B, H), tau = h0.shape, (x if batch_sizes is None else batch_sizes).shape[0]
    cell = Weights(mode, reverse, bf16, U, W, None, None).cell  # type: ignore[arg-type]
    states, empty = h0.new_empty((tau + 1, B, H)), h0.new_empty(0)
    y = h0.new_empty((x.shape[0], H))
    if batch_sizes is None:
        y = states[:-1] if reverse else states[1:]
    columns = cell.tape.of(H, U.shape[0])
    return (
        y,
        h0.new_empty((B, H)),
        h0.new_empty((B, H)) if cell.has_cell_state else empty,
        h0.new_empty(0) if batch_sizes is None else states,
        h0.new_empty((tau + 1, B, H)) if cell.has_cell_state else h0.new_empty(0),
        h0.new_empty((tau, B, columns)) if columns else h0.new_empty(0),
    )


def _fake_backward(dy: Any, dh_end: Any, ds_end: Any, x: Tensor, h0: Tensor, s0: Tensor | None, U: Tensor, W: Tensor,
                   b_ih: Tensor | None, b_hh: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:  # fmt: skip
    want_x, want_weights = rest[-2:]
    found = (
        x if want_x else None,
        h0,
        s0,
        *((U, W, b_ih, b_hh) if want_weights else (None, None, None, None)),
    )
    return tuple(h0.new_empty(0 if each is None else each.shape) for each in found)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    y, _, _, *tape = output
    ctx.how = inputs[8:]
    ctx.mark_non_differentiable(*tape)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:8], y, *tape)


def _gradients(ctx: Any, dy: Tensor | None, dh_end: Tensor | None, ds_end: Tensor | None, *_: None) -> Any:
    if dy is None and dh_end is None and ds_end is None:
        return (None,) * 11
    needs, saved = ctx.needs_input_grad, ctx.saved_tensors
    backward: Any = _backward if plain(saved[0]) and not torch.is_grad_enabled() else recurrent_layer_backward
    found = backward(
        dy, dh_end, None if saved[2] is None else ds_end, *saved, *ctx.how, needs[0], any(needs[3:7])
    )
    return (*(each if needed else None for each, needed in zip(found, needs[:7], strict=True)), *(None,) * 4)


class _Layer(torch.autograd.Function):
    """The operator with its gradients for a plain call: without the dispatcher, which takes longer than a small layer."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        output = _forward(*inputs)
        _setup(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _gradients(ctx, *gradients)


def plain(x: Tensor) -> bool:
    """Return whether nothing but autograd looks at a call: no compiler, transform, mode or subclass of tensors."""
    return (
        not torch.compiler.is_compiling()
        and type(x) in (Tensor, torch.nn.Parameter)
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._are_functorch_transforms_active()
    )


def run_layer(x: Tensor, *rest: Any) -> Any:
    """Return what `recurrent_layer` returns, as quickly as the call allows."""
    if not plain(x):
        return recurrent_layer(x, *rest)
    return (_Layer.apply if torch.is_grad_enabled() else _forward)(x, *rest)


def _setup_second(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.how = inputs[15:17]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:11])


def _second_order(ctx: Any, *d_gradients: Tensor | None) -> Any:
    mode, reverse = ctx.how
    found = second_order(ctx.saved_tensors, d_gradients, ctx.needs_input_grad, mode, reverse)
    return (*found, *(None,) * 10)


def _by_row(operator: Any) -> Any:
    """Return the rule of `vmap`: a loop over the mapped dimension."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        def part(i: int) -> list[Any]:
            return [
                a if d is None or a is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)
            ]

        found = [operator(*part(i)) for i in range(info.batch_size)]
        return tuple(torch.stack(each) for each in zip(*found, strict=True)), (0,) * len(found[0])

    return rule


def _autocast(x: Tensor, h0: Tensor, s0: Tensor | None, *rest: Any) -> Any:
    """Run in bf16 where autocast asks for it; all tensors are float32."""
    bf16 = torch.get_autocast_dtype("cpu") == torch.bfloat16
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    with torch._C._ExcludeDispatchKeyGuard(key):
        state = [None if each is None else each.float() for each in (x, h0, s0, *rest[:4])]
        return recurrent_layer(*state, *rest[4:7], rest[7] or bf16)


library.impl("recurrent_layer", _forward, "CPU")
library.impl("recurrent_layer_backward", _backward, "CPU")
library.impl("recurrent_layer", _autocast, "AutocastCPU")
register_fake("unspool::recurrent_layer", _fake_forward, lib=library)
register_fake("unspool::recurrent_layer_backward", _fake_backward, lib=library)
register_autograd("unspool::recurrent_layer", _gradients, setup_context=_setup, lib=library)
register_autograd(
    "unspool::recurrent_layer_backward", _second_order, setup_context=_setup_second, lib=library
)
if register_vmap := getattr(torch.library, "register_vmap", None):  # not in the oldest versions
    register_vmap("unspool::recurrent_layer", _by_row(recurrent_layer), lib=library)
    register_vmap("unspool::recurrent_layer_backward", _by_row(recurrent_layer_backward), lib=library)
