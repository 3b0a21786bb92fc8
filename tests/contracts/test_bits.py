"""The same bits, always: for any number of threads, batch, window, instruction set and process, in both precisions.

Every comparison is of raw bits. In bf16, a window of 32 rows can be cut anywhere without changing its gradients. The sizes are such that both ways to share a window's work among threads are
taken: by rows, and, where W is large or the rows are few, by units.
"""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cases
from cases import (
    CELLS,
    INPUTS,
    TRAINED,
    Windowed,
    batches,
    config_of,
    cuts_to_windows,
    digest,
    named,
    same_bits,
    trained,
    walk,
)
from unspool.cells import cell_named
from unspool.kernels import _native, native
from unspool.kernels.backend import PRECISIONS
from unspool.kernels.machine import BF16_INSTRUCTIONS
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.optimisers.adam import Adam
from windows import layer_arguments

THREADS = (2, 3, 5)
SETS = native.kernel_info()["available"]


def hidden_for(cell, size):
    """Return the least multiple of 16 units for which W, or U of a layer above the first, takes more bytes than this."""
    return next(H for H in range(16, 2000, 16) if 4 * len(cell_named(cell).gates) * H * H > size)


LARGE = {cell: hidden_for(cell, 1.5 * 2**20) for cell in CELLS}
"""W takes more than 1.5 MB: units belong to threads."""
MIDDLE = {cell: hidden_for(cell, 0.5 * 2**20) for cell in CELLS}
"""W takes more than 0.5 MB: units belong to threads where the rows are fewer than they."""


@pytest.fixture(autouse=True)
def an_L2_of_one_mebibyte():
    """The sizes above are for this cache; the machine's own may be another."""
    found = _native.L2_bytes()
    _native.set_L2_bytes(2**20)
    yield
    _native.set_L2_bytes(found)


@pytest.fixture(autouse=True, params=["float32", "bf16"])
def kernels(request, monkeypatch):
    """The kernels of each precision, in turn; `config_of` makes configs of it."""
    monkeypatch.setattr(cases, "PRECISION", request.param)
    return PRECISIONS[request.param]


def here(config):
    """Return a config in the precision of the test."""
    return replace(config, precision=cases.PRECISION)


def cut_rows(B):
    """Return a number of rows, near B, for which a window can be cut anywhere."""
    return B if cases.PRECISION == "float32" else -(-B // 32) * 32


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


# ── threads ────────────────────────────────────────────────────────────────────────────────────────────────


def for_any_threads(compute):
    native.set_threads(1)
    alone = compute()
    for count in THREADS:
        native.set_threads(count)
        same_bits(compute(), alone)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_a_window_does_not_depend_on_the_threads(cell, bidirectional, ragged):
    config = config_of(
        cell, "dense", 33, layers=2, bidirectional=bidirectional, dropout=0.2, recurrent_dropout=0.2
    )
    case = Windowed(config, tau=35, B=13, ragged=ragged)
    for_any_threads(lambda: walk(case))


@pytest.mark.parametrize("kind", INPUTS)
def test_no_kind_of_input_depends_on_the_threads(kind):
    case = Windowed(config_of("gru", kind, 40), tau=40, B=11, ragged=True)
    for_any_threads(lambda: walk(case))


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
def test_no_activation_depends_on_the_threads(activation):
    case = Windowed(config_of("elman", "one-hot", 48, activation=activation), tau=30, B=9)
    for_any_threads(lambda: walk(case))


@pytest.mark.parametrize(("H", "tau", "B"), [(1, 64, 4000), (7, 128, 65), (33, 5, 130), (16, 300, 3)])
@pytest.mark.parametrize("cell", CELLS)
def test_odd_sizes_do_not_depend_on_the_threads(cell, H, tau, B):
    case = Windowed(config_of(cell, "one-hot", H), tau=tau, B=B, ragged=True)
    for_any_threads(lambda: walk(case))


@pytest.mark.parametrize("keep", [0.0, 0.25])
@pytest.mark.parametrize("cell", CELLS)
def test_a_w_beyond_the_cache_does_not_depend_on_the_threads(cell, keep):
    config = config_of(cell, "dense", LARGE[cell], recurrent_dropout=keep, learn_h0=True)
    case = Windowed(config, tau=4, B=70 if keep else 7, ragged=True)
    for_any_threads(lambda: walk(case))


@pytest.mark.parametrize("B", [1, 33])
@pytest.mark.parametrize("cell", CELLS)
def test_a_window_does_not_depend_on_the_size_of_the_cache(cell, B):
    found = []
    for threads, L2 in ((1, 2**20), (1, 2**26), (2, 2**10), (2, 2**17), (3, 2**17), (3, 2**26)):
        native.set_threads(threads)
        _native.set_L2_bytes(L2)  # prefetched or not, split by rows or by units
        found.append(walk(Windowed(config_of(cell, "one-hot", 96), tau=5, B=B)))
    for other in found[1:]:
        same_bits(other, found[0])


@pytest.mark.parametrize("B", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_fewer_rows_than_threads_do_not_depend_on_the_threads(cell, B):
    config = config_of(cell, "one-hot", MIDDLE[cell] + 1, bidirectional=True, recurrent_dropout=0.1)
    case = Windowed(config, tau=7, B=B)
    for_any_threads(lambda: walk(case))


def test_kernels_do_not_depend_on_the_threads(kernels):
    rng = np.random.default_rng(0)
    a, b, rows = floats(rng, 211, 97), floats(rng, 97, 133), floats(rng, 211, 133)
    table, ids = floats(rng, 50, 133), rng.integers(0, 50, 5000).astype(np.int32)
    many = floats(rng, 5000, 133)

    def compute():
        onto, sums, scattered = b.copy(), many[0].copy(), table.copy()
        kernels.matmul(a, rows, transpose_a=True, out=onto)
        native.column_sum(many, out=sums)
        native.scatter_add(scattered, ids, many)
        return {
            "a b": kernels.matmul(a, b),
            "start + a b": kernels.matmul(a, b, start=rows),
            "bias + a b": kernels.matmul(a, b, start=b[0].copy()),
            "a bT": kernels.matmul(a, b.T.copy(), transpose_b=True),
            "aT rows": kernels.matmul(a, rows, transpose_a=True),
            "onto": onto,
            "column sum": native.column_sum(many),
            "onto column sum": sums,
            "gather": native.gather(table, ids),
            "scatter": scattered,
            "norm": np.float64(native.global_norm(many.reshape(-1))),
            "mask": native.dropout_mask((77, 1001), seed=3, stream=2**40 + 1, rate=0.3),
            "scaled": native.scale_rows(many.reshape(50, 100, 133), many[:100]),
        }

    for_any_threads(compute)


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_an_update_does_not_depend_on_the_threads(kind):
    rng = np.random.default_rng(1)
    p, g = floats(rng, 70_001), floats(rng, 70_001)

    def compute():
        now, m, v = p.copy(), np.zeros_like(p), np.zeros_like(p)
        for step in (1, 2, 3):
            if kind == "adam":
                native.adam(now, g, m, v, step=step, learning_rate=0.1, decay=0.1, scale=0.7)
            else:
                native.sgd(now, g, m, learning_rate=0.1, momentum=0.9, decay=0.1, scale=0.7)
        return {"p": now, "m": m, "v": v}

    for_any_threads(compute)


@pytest.mark.parametrize("with_gradient", [False, True])
@pytest.mark.parametrize(("R", "H", "K"), [(1500, 64, 300), (2500, 7, 33), (200, 16, 50_000)])
def test_a_loss_over_several_blocks_of_rows_does_not_depend_on_the_threads(kernels, R, H, K, with_gradient):
    rng = np.random.default_rng(2)
    h, V, c = floats(rng, R, H), floats(rng, K, H), floats(rng, K)
    y = rng.integers(-1, K, R).astype(np.int32)

    def compute():
        dV, dc = (np.zeros_like(V), np.zeros_like(c)) if with_gradient else (None, None)
        loss = kernels.softmax_cross_entropy(h, V, c, y, scale=0.1, dV=dV, dc=dc)
        found = {"each": loss.per_target, "sum": np.float64(loss.sum), "count": np.int64(loss.count)}
        return found | ({"dh": loss.dh, "dV": dV, "dc": dc} if with_gradient else {})

    for _ in range(1 if with_gradient else 5):  # a race between blocks would not show every time
        for_any_threads(compute)


# ── batches ────────────────────────────────────────────────────────────────────────────────────────────────

OF_A_ROW = ("h", "each", "dh", "dx")


def rows_alone(found, rows):
    """What belongs to rows of the batch: at axis 1 of what runs over time, at axis 0 of states."""
    over_time = {name: found[name][:, rows] for name in OF_A_ROW if name in found}
    states = {name: v[rows] for name, v in found.items() if name.startswith(("end", "d_start"))}
    return over_time | states


@pytest.mark.parametrize("kind", ["one-hot", "gathered", "dense"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_row_is_the_same_alone_and_in_any_batch(cell, kind):
    config = config_of(cell, kind, 33, layers=2, dropout=0.2, recurrent_dropout=0.2)
    case = Windowed(config, tau=11, B=19, ragged=True)
    whole = walk(case)
    for rows in (
        [0],
        [7],
        [18],
        [3, 7],
        [18, 0, 9],
        [9, 8, 7, 6, 5, 4],
        list(range(17)),
        list(range(18, -1, -1)),
    ):
        same_bits(rows_alone(walk(case, rows=rows), slice(None)), rows_alone(whole, rows))


@pytest.mark.parametrize("H", [1, 7])
@pytest.mark.parametrize("cell", CELLS)
def test_a_row_of_odd_size_is_the_same_alone_in_both_directions(cell, H):
    case = Windowed(config_of(cell, "dense", H, bidirectional=True), tau=8, B=7, ragged=True)
    whole = walk(case)
    for rows in ([0], [6], [2, 4], [5, 1, 3]):
        same_bits(rows_alone(walk(case, rows=rows), slice(None)), rows_alone(whole, rows))


@pytest.mark.parametrize("cell", CELLS)
def test_a_row_of_a_large_layer_is_the_same_alone_though_the_work_is_shared_otherwise(cell):
    case = Windowed(config_of(cell, "one-hot", MIDDLE[cell]), tau=6, B=9)
    native.set_threads(3)
    whole = walk(case)  # by rows
    for rows in ([4], [8, 2]):  # by units
        same_bits(rows_alone(walk(case, rows=rows), slice(None)), rows_alone(whole, rows))


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 8, 9, 63, 64, 65, 129])
def test_a_row_of_a_product_is_the_same_in_any_number_of_rows(kernels, rows):
    rng = np.random.default_rng(3)
    a, b = floats(rng, 129, 700), floats(rng, 700, 37)
    same_bits({"a b": kernels.matmul(a[-rows:], b)}, {"a b": kernels.matmul(a, b)[-rows:]})


# ── windows ────────────────────────────────────────────────────────────────────────────────────────────────

SPLITS = ([1], [6], [12], [3, 4, 9], list(range(1, 13)))


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_window_in_pieces_and_step_by_step_gives_what_it_gives_at_once(cell, kind):
    config = config_of(cell, kind, 33, learn_h0=kind == "dense")
    case = Windowed(config, tau=13, B=cut_rows(6))
    whole = walk(case)
    for cuts in SPLITS:
        same_bits(walk(case, cuts=cuts), whole)


@pytest.mark.parametrize("kind", ["one-hot", "embedded", "gathered", "dense"])
@pytest.mark.parametrize("cell", CELLS)
def test_ragged_rows_layers_and_dropout_in_pieces_give_what_they_give_at_once(cell, kind):
    config = config_of(cell, kind, 7, layers=3, dropout=0.3, recurrent_dropout=0.3)
    case = Windowed(config, tau=13, B=cut_rows(8), ragged=True)
    whole = walk(case)
    for cuts in SPLITS:
        same_bits(walk(case, cuts=cuts), whole)


@pytest.mark.parametrize("cell", CELLS)
def test_a_large_layer_in_pieces_gives_what_it_gives_at_once(cell):
    case = Windowed(config_of(cell, "one-hot", LARGE[cell]), tau=6, B=cut_rows(5), ragged=True)
    native.set_threads(3)
    whole = walk(case)
    for cuts in ([3], [1, 2, 3, 4, 5]):
        same_bits(walk(case, cuts=cuts), whole)


@pytest.mark.parametrize("cell", CELLS)
def test_a_batch_of_many_blocks_in_pieces_gives_what_it_gives_at_once(cell):
    """The loss passes in blocks of 1,024 rows and the sums over time in blocks of 192: no edge may show."""
    case = Windowed(config_of(cell, "embedded", 9), tau=13, B=cut_rows(200))
    whole = walk(case)
    for cuts in ([5], [1, 12]):
        same_bits(walk(case, cuts=cuts), whole)


@pytest.mark.parametrize("cell", CELLS)
def test_reading_backwards_in_pieces_gives_what_it_gives_at_once(kernels, cell):
    rng = np.random.default_rng(6)
    tau, B, H = 9, 5, 19
    cell = cell_named(cell)
    args = layer_arguments(cell, partial(floats, rng), tau=tau, B=B, H=H)
    p, h0, s0 = args["p"], args["h0"], args.get("s0")
    W = args["W"] * np.float32(0.2) if cell.has_W else None
    lengths = np.array([9, 0, 4, 7, 1], np.int32)
    dh, dh_end = floats(rng, tau, B, H), floats(rng, B, H)
    ds_end = floats(rng, B, H) if cell.has_cell_state else None

    def read(windows):
        h, s, tapes = h0, s0, {}
        for begin, end in reversed(windows):
            live = np.clip(lengths - begin, 0, end - begin).astype(np.int32)
            tapes[begin] = kernels.window_forward(
                cell, p[begin:end], W, h, s0=s, extra=args["extra"], lengths=live, reverse=True
            )
            h, s = tapes[begin].h_end, tapes[begin].s_end
        back, dh_t, ds_t = [], dh_end, ds_end
        for begin, end in windows:
            step = kernels.window_backward(
                tapes[begin], W, extra=args["extra"], dh=dh[begin:end], dh_end=dh_t, ds_end=ds_t
            )
            back.append(step.da)
            dh_t, ds_t = step.dh0, step.ds0
        found = {"h": np.concatenate([tapes[b].h for b, _ in windows]), "da": np.concatenate(back)}
        found |= {"dh0": dh_t, "end": h}
        return found if ds_t is None else found | {"ds0": ds_t, "s end": s}

    whole = read([(0, tau)])
    for cuts in ([4], [1, 2, 8], list(range(1, tau))):
        same_bits(read(cuts_to_windows(tau, cuts)), whole)


# ── instruction sets ───────────────────────────────────────────────────────────────────────────────────────


def test_this_machine_has_the_plain_instruction_set():
    assert SETS[-1] == "plain"


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_window_is_the_same_on_every_instruction_set(cell, kind):
    config = config_of(cell, kind, 33, layers=2, dropout=0.2, recurrent_dropout=0.2)
    case = Windowed(config, tau=7, B=5, ragged=True)
    whole = walk(case)
    for name in SETS:
        native.choose_isa(name)
        assert native.kernel_info()["isa"] == ("avx512" if name in BF16_INSTRUCTIONS else name)
        same_bits(walk(case), whole)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
@pytest.mark.parametrize("H", [1, 7, 16, 40])
def test_every_activation_and_size_is_the_same_on_every_instruction_set(H, activation):
    case = Windowed(config_of("elman", "dense", H, activation=activation), tau=5, B=17)
    whole = walk(case)
    for name in SETS:
        native.choose_isa(name)
        same_bits(walk(case), whole)


@pytest.mark.parametrize("cell", CELLS)
def test_a_large_layer_is_the_same_on_every_instruction_set(cell):
    case = Windowed(config_of(cell, "one-hot", LARGE[cell] + 1), tau=2, B=5)
    native.set_threads(3)
    whole = walk(case)
    for name in SETS:
        native.choose_isa(name)
        same_bits(walk(case), whole)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_activations_are_the_same_bits_on_every_instruction_set_over_their_whole_range(activation):
    bits = np.arange(0, 2**32, 40_009, dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    values = values[~np.isnan(values)]
    p = np.ascontiguousarray(values[: len(values) // 16 * 16]).reshape(1, -1, 16)
    found = []
    for name in SETS:
        native.choose_isa(name)
        W, h0 = np.zeros((16, 16), np.float32), np.zeros((p.shape[1], 16), np.float32)
        found.append(native.window_forward(cell_named("elman"), p, W, h0, activation=activation).h)
        same_bits({"h": found[-1]}, {"h": found[0]})


def test_updates_masks_and_norms_are_the_same_on_every_instruction_set():
    rng = np.random.default_rng(8)
    p, g = floats(rng, 4099), floats(rng, 4099) * np.float32(1e-3)
    found = []
    for name in SETS:
        native.choose_isa(name)
        now, m, v, other = p.copy(), np.zeros_like(p), np.zeros_like(p), p.copy()
        momentum = np.zeros_like(p)
        for step in (1, 2):
            native.adam(now, g, m, v, step=step, learning_rate=0.1, decay=0.1, scale=0.7)
            native.sgd(other, g, momentum, learning_rate=0.1, momentum=0.9, decay=0.1)
        mask = native.dropout_mask((33, 7), seed=2**63, stream=9, rate=0.5)
        norm = np.float64(native.global_norm(g))
        found.append({"p": now, "m": m, "v": v, "sgd": other, "mask": mask, "norm": norm})
        same_bits(found[-1], found[0])


# ── processes ──────────────────────────────────────────────────────────────────────────────────────────────


def digest_elsewhere(**environment):
    program = Path(__file__).parents[1] / "cases.py"
    done = subprocess.run(
        [sys.executable, str(program), cases.PRECISION],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_two_processes_find_the_same_bits():
    assert digest_elsewhere() == digest_elsewhere() == digest()


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_a_process_with_any_threads_finds_the_same_bits(threads):
    assert digest_elsewhere(UNSPOOL_THREADS=str(threads)) == digest()


@pytest.mark.parametrize("name", SETS)
def test_a_process_on_any_instruction_set_finds_the_same_bits(name):
    assert digest_elsewhere(UNSPOOL_ISA=name, UNSPOOL_THREADS="2") == digest()


# ── training ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("config", TRAINED, ids=lambda config: config.cell)
def test_ten_training_steps_end_in_the_same_parameters_for_any_threads_and_instruction_set(config):
    config = here(config)
    native.set_threads(1)
    alone = trained(config)
    for name in SETS:
        for count in (1, *THREADS):
            native.choose_isa(name)
            native.set_threads(count)
            same_bits(trained(config), alone)


def trained_in_pieces(config, cuts, B):
    """Train as `trained` does, every window in pieces."""
    model, optimiser = Model.initialise(config, seed=4), Adam(decay=0.01, clip=0.5)
    gradient, state = model.gradient(), None
    for batch in batches(config, B=B):
        weights, reset = model.weights(), batch.reset
        gradient.clear()
        masks = model.masks(batch.x.shape[1], seed=7, step=optimiser.step)
        state, outputs = None if reset else state, []
        windows = cuts_to_windows(len(batch.x), cuts)
        for begin, end in windows:
            outputs.append(model.forward(batch.x[begin:end], state, masks=masks, weights=weights))
            state = outputs[-1].state
        arriving = None
        for (begin, end), output in reversed(list(zip(windows, outputs, strict=True))):
            loss = model.loss(
                output, batch.y[begin:end], scale=1.0 / batch.y.size, weights=weights, gradient=gradient
            )
            _, arriving = model.backward(output, loss.dh, gradient, d_final_state=arriving, weights=weights)
        if reset:
            model.add_initial_state_gradient(arriving, gradient)
        model.fold_input_tables(gradient, weights)
        optimiser.update(model.parameters, gradient.flat)
    return {"parameters": model.parameters.flat}


@pytest.mark.parametrize("config", [c for c in TRAINED if not c.bidirectional], ids=lambda c: c.cell)
def test_ten_training_steps_end_in_the_same_parameters_with_windows_in_pieces(config):
    config, B = here(config), cut_rows(9)
    whole = {"parameters": trained(config, B)["parameters"]}
    for cuts in ([5], [1, 2, 11], list(range(1, 12))):
        same_bits(trained_in_pieces(config, cuts, B), whole)


# ── streams ────────────────────────────────────────────────────────────────────────────────────────────────

STREAMED = [
    *(
        config_of(cell, kind, 33, learn_h0=kind == "tied")
        for cell in CELLS
        for kind in INPUTS
        if kind != "dense"
    ),
    *(config_of(cell, "embedded", 7, layers=3) for cell in CELLS),
    *(config_of("elman", "one-hot", 16, activation=name) for name in ("relu", "sigmoid", "identity")),
    *(config_of(cell, "one-hot", MIDDLE[cell], layers=2) for cell in CELLS),
    *(config_of(cell, "one-hot", 1) for cell in CELLS),
]


@pytest.mark.parametrize("config", STREAMED, ids=lambda c: f"{c.cell}-{c.inputs}-{c.hidden}-{c.layers}")
def test_a_stream_token_by_token_gives_a_windows_logits_and_states(kernels, config):
    config = here(config)
    case = Windowed(config, tau=9, B=3)
    model = case.model
    out = model.forward(case.x, None)
    logits = model.logits(out)
    if not config.cutoffs:
        V, c = model.parameters["E" if config.tied else "V"], model.parameters["c"]
        product = kernels.matmul(out.h.reshape(-1, config.width), V, transpose_b=True, start=c)
        same_bits({"o": logits}, {"o": product.reshape(9, 3, -1)})
    for count in (1, 3):
        native.set_threads(count)
        for row in range(3):
            stream = Stream(model)
            for t, token in enumerate(case.x[:, row]):
                stream.read(int(token))
                same_bits({"o": stream.logits()}, {"o": logits[t, row]})
            state = [(h, s if cell_named(config.cell).has_cell_state else None) for h, s in stream.state()]
            same_bits(
                named(state, "end"),
                named([(h[row], s if s is None else s[row]) for h, s in out.state], "end"),
            )
