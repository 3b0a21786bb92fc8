"""`unspool.torch.RNN`, `GRU` and `LSTM` beside PyTorch's: values, gradients, call forms, fall-backs, the same bits."""

import itertools
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch
import unspool.torch as ut
from torch import nn
from torch_modules import NAMES, engine_ran, error, pair, run, state_of
from unspool.torch import operator

ULP = 2.0**-23
"""The error of numbers that are off by one place: few numbers can be exact by chance."""
LENGTHS = torch.tensor([2, 6, 3])


@pytest.fixture(autouse=True)
def _seeded():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["batch", "batch_first", "unbatched", "packed", "packed batch_first"])
def test_every_call_form_gives_pytorchs_values_and_gradients(name, form):
    options = itertools.product((False, True), (1, 2), (True, False), (False, True), (0.0, 0.3))
    for bidirectional, layers, bias, with_state, dropout in options:
        kwargs = {"bias": bias, "bidirectional": bidirectional, "dropout": dropout if layers > 1 else 0.0}
        theirs, ours = pair(name, 5, 7, layers, batch_first="batch_first" in form, **kwargs)
        x = torch.randn(6, 5) if form == "unbatched" else torch.randn(6, 3, 5)
        x = x.transpose(0, 1).contiguous() if "batch_first" in form else x
        state = state_of(ours, None if form == "unbatched" else 3) if with_state else None
        lengths = LENGTHS if "packed" in form else None
        expected = run(theirs, x, state, lengths)
        with engine_ran(layers * (1 + bidirectional), layers * (1 + bidirectional)):
            found = run(ours, x, state, lengths)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)


def test_relu_and_the_order_of_arguments_are_pytorchs():
    theirs, ours = pair("RNN", 5, 7, 2, "relu", False)
    with engine_ran(2, 2):
        found = run(ours, torch.randn(4, 3, 5))
    torch.manual_seed(0)
    assert ours.mode == "RNN_RELU" and not ours.bias and repr(ours) == repr(theirs)
    assert all(a.shape == b.shape for a, b in zip(found, run(theirs, torch.randn(4, 3, 5)), strict=True))


SHAPES = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "X": st.integers(8, 40),
        "H": st.integers(16, 70),
        "B": st.integers(2, 8),
        "tau": st.integers(2, 24),
        "layers": st.integers(1, 2),
        "bidirectional": st.booleans(),
        "bias": st.booleans(),
        "lengths": st.none() | st.integers(0, 2**31),
        "state": st.booleans(),
        "seed": st.integers(0, 2**31),
    }
)


def errors_of(case):
    """The normwise errors of PyTorch and of ours in float32, against PyTorch in float64."""
    torch.manual_seed(case["seed"])
    kwargs = {"bias": case["bias"], "bidirectional": case["bidirectional"]}
    theirs, ours = pair(case["name"], case["X"], case["H"], case["layers"], **kwargs)
    exact = getattr(nn, case["name"])(case["X"], case["H"], case["layers"], dtype=torch.float64, **kwargs)
    exact.load_state_dict(theirs.state_dict())
    x = torch.randn(case["tau"], case["B"], case["X"])
    state = state_of(ours, case["B"]) if case["state"] else None
    lengths = None
    if case["lengths"] is not None:
        chosen = torch.Generator().manual_seed(case["lengths"])
        lengths = torch.randint(1, case["tau"] + 1, (case["B"],), generator=chosen)
    doubled = run(exact, x.double(), None if state is None else state.double(), lengths)
    layers = case["layers"] * (1 + case["bidirectional"])
    with engine_ran(layers, layers):
        found = run(ours, x, state, lengths)
    return error(run(theirs, x, state, lengths), doubled), error(found, doubled)


@settings(max_examples=150, derandomize=True)
@given(SHAPES)
def test_the_error_against_float64_is_near_pytorchs(case):
    theirs, ours = errors_of(case)
    for a, b in zip(ours, theirs, strict=True):
        assert a <= 4 * max(b, ULP)  # mostly below 3: a sum here is one chain, in PyTorch several


@pytest.mark.parametrize("name", NAMES)
def test_the_bits_do_not_depend_on_batch_window_or_threads(name):
    module = getattr(ut, name)(9, 33, 2)
    x = torch.randn(12, 5, 9)
    y, end = module(x)
    with engine_ran(2):
        assert torch.equal(module(x[:, 2:3])[0], y[:, 2:3])
    first, state = module(x[:7])
    second, last = module(x[7:], state)
    assert torch.equal(torch.cat([first, second]), y)
    assert all(map(torch.equal, last, end) if name == "LSTM" else [torch.equal(last, end)])
    packed, _ = module(pack_padded_sequence(x, [12, 9, 9, 4, 1]))
    padded, lengths = pad_packed_sequence(packed)
    assert all(torch.equal(padded[:n, b], y[:n, b]) for b, n in enumerate(lengths.tolist()))
    both = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        both.append(run(module, torch.randn(40, 64, 9, generator=torch.Generator().manual_seed(0))))
        assert operator.machine.threads() == threads
    assert all(map(torch.equal, *both))


@pytest.mark.parametrize("name", NAMES)
def test_contiguous_tensors_are_not_copied(name, monkeypatch):
    module, seen = getattr(ut, name)(4, 6), []
    real = operator.layer_forward
    monkeypatch.setattr(
        ut.operator, "layer_forward", lambda *args: seen.append((args, real(*args))) or seen[-1][1]
    )
    x = torch.randn(5, 3, 4)
    y, _ = module(x)
    (weights, values, *_), tape = seen[0]
    assert values.ctypes.data == x.data_ptr() and weights.W.ctypes.data == module.weight_hh_l0.data_ptr()
    assert y.data_ptr() == tape.h.ctypes.data and not y._is_view()
    y.sum().backward()  # reads the states where they are
    inside = operator._all_states(y, torch.zeros(3, 6), False)
    assert inside.ctypes.data == tape.hs.ctypes.data
    copied = operator._all_states(y.clone(), torch.zeros(3, 6), False)
    assert copied.ctypes.data != tape.hs.ctypes.data and (copied == inside).all()


def test_what_the_engine_does_not_cover_is_pytorchs():
    x = torch.randn(5, 3, 4)
    cases = [
        (pair("LSTM", 4, 6, proj_size=2), x),
        (pair("GRU", 4, 6, dtype=torch.float64), x.double()),
        (pair("RNN", 4, 6, dtype=torch.bfloat16), x.bfloat16()),
        (pair("GRU", 4, 6), x[:, :0]),
    ]
    for (theirs, ours), given_ in cases:
        with engine_ran(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, of projections
            assert torch.equal(ours(given_)[0], theirs(given_)[0])
    meta = ut.GRU(4, 6, device="meta")
    with engine_ran(0):
        assert meta(x.to("meta"))[0].shape == (5, 3, 6)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_second_order_are_pytorchs(name):
    for lengths in (None, [5, 3, 1]):
        theirs, ours = pair(name, 4, 6, 2, bidirectional=True)
        found = []
        for module in (theirs, ours):
            torch.manual_seed(1)
            x = torch.randn(5, 3, 4, requires_grad=True)
            given_ = x if lengths is None else pack_padded_sequence(x, lengths)
            y = module(given_)[0]
            (first,) = torch.autograd.grad(
                (y if lengths is None else y.data).square().sum(), x, create_graph=True
            )
            found.append(torch.autograd.grad(first.square().sum(), [x, *module.parameters()]))
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck_in_float64(name):
    module = getattr(ut, name)(2, 3, bidirectional=True, dtype=torch.float64)
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    with engine_ran(0):
        assert torch.autograd.gradcheck(lambda x: module(x)[0], x)
        assert torch.autograd.gradgradcheck(lambda x: module(x)[0], x)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given_dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("state_dtype", [None, torch.float32, torch.bfloat16])
def test_autocast_runs_the_kernels_in_bf16_with_pytorchs_types(name, given_dtype, state_dtype):
    theirs, ours = pair(name, 24, 36, 2)
    x, state = torch.randn(5, 3, 24).to(given_dtype), None
    if state_dtype is not None:
        state = state_of(ours, 3, state_dtype)
        state = tuple(state) if name == "LSTM" else state[0]
    plain, _ = ours(x.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = theirs(x, state)
        with engine_ran(2):
            y, end = ours(x, state)
    ends = (end, expected[1]) if name == "LSTM" else ((end,), expected[1:])
    parts = zip((y, *ends[0]), (expected[0], *ends[1]), strict=True)
    for a, b in parts:
        assert a.dtype == b.dtype
        torch.testing.assert_close(a.float(), b.float(), rtol=0.02, atol=0.02)
    assert state is not None or not torch.equal(y.float(), plain)
    y.float().sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in ours.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_return_states_has_every_state_of_every_layer(name):
    for lengths in (None, [5, 3, 1]):
        module = getattr(ut, name)(4, 6, 2, bidirectional=True)
        x = torch.randn(5, 3, 4)
        given_ = x if lengths is None else pack_padded_sequence(x, lengths)
        y, end, states = module(given_, return_states=True)
        rows = (lambda each: each) if lengths is None else (lambda each: pad_packed_sequence(each)[0])
        assert len(states) == 4
        assert torch.equal(rows(y), torch.cat([rows(states[2][0]), rows(states[3][0])], -1))
        for at, (h, s) in enumerate(states):
            last = 0 if at % 2 else -1
            assert (s is None) == (name != "LSTM")
            if lengths is None:
                assert torch.equal(h[last], (end[0] if name == "LSTM" else end)[at])
            if s is not None:
                assert rows(s).shape == rows(h).shape
                assert lengths is not None or torch.equal(s[last], end[1][at])
        rows(states[0][0]).sum().backward()
        assert module.weight_ih_l0.grad.any()
    with pytest.raises(ValueError, match="return_states"):
        ut.GRU(4, 6, dtype=torch.float64)(x.double(), return_states=True)
