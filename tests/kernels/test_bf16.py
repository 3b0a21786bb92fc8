"""Products in bf16 have the order of the AMX instruction on every instruction set: NumPy in float32 is the authority."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from unspool import kernel_info
from unspool.cells import CELLS
from unspool.cells.cell import Cell
from unspool.errors import InputError
from unspool.kernels import _native, native
from unspool.kernels.bf16 import product, sum_of_outer

Array = NDArray[np.float32]
SIZES = [
    (1, 1, 1),
    (1, 33, 17),
    (2, 64, 40),
    (3, 31, 16),
    (5, 70, 100),
    (13, 96, 48),
    (65, 515, 33),
    (7, 1, 300),
    (200, 40, 20),
]


@pytest.fixture(params=[(isa, threads) for isa in kernel_info()["available"] for threads in (1, 3)], ids=str)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    before = kernel_info()
    isa, threads = request.param
    native.choose_isa(isa)
    native.set_threads(threads)
    yield
    native.choose_isa(before["bf16"])
    native.set_threads(before["threads"])


def drawn(rng: np.random.Generator, *shape: int) -> Array:
    """Return numbers of many sizes: some are rounded to zero."""
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-70, 20, shape))).astype(np.float32)


def same(a: Array, b: Array) -> bool:
    """Return whether two arrays have the same bits, NaN aside."""
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize(("M", "K", "N"), SIZES)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_rows(machine: None, M: int, K: int, N: int, transposed: bool) -> None:
    rng = np.random.default_rng(M * K * N)
    A, B, start = drawn(rng, M, K), drawn(rng, K, N), drawn(rng, M, N)
    packed = _native.Panels(np.ascontiguousarray(B.T) if transposed else B, transposed, 1, True)
    assert same(_native.rows_product(A, packed, start), start + product(A, B))
    assert same(_native.rows_product(A, packed, None), product(A, B))


@pytest.mark.parametrize(("M", "R", "N"), SIZES)
def test_sums_of_outer_products_go_on_where_a_segment_of_whole_blocks_ended(
    machine: None, M: int, R: int, N: int
) -> None:
    rng = np.random.default_rng(M * R * N)
    later, earlier = ((drawn(rng, rows, M), drawn(rng, rows, N)) for rows in (64, R))
    sums = np.empty((M, N), np.float32)
    for accumulate, (A, B) in enumerate((later, earlier)):
        _native.outer_product(A, B, sums, bool(accumulate), None, None, True, 0, 0, None, True, True)
    A, B = (np.concatenate([b, a]) for a, b in zip(later, earlier, strict=True))
    assert same(sums, sum_of_outer(A, B))


def test_special_values(machine: None) -> None:
    values = [
        0.0,
        -0.0,
        1.0,
        2.0**-56,
        2.0**-57,
        -(2.0**-56),
        3.4e38,
        -3.4e38,
        np.inf,
        -np.inf,
        np.nan,
        1.00390625,
        1.01171875,
    ]
    rng = np.random.default_rng(0)
    A, B = (rng.choice(np.array(values, np.float32), shape) for shape in ((40, 70), (70, 35)))
    assert same(_native.rows_product(A, _native.Panels(B, False, 1, True), None), product(A, B))


def test_a_sum_of_negative_zeros_is_zero(machine: None) -> None:
    A, B = np.full((9, 40), -1, np.float32), np.zeros((40, 40), np.float32)
    for result in (_native.rows_product(A, _native.Panels(B, False, 1, True), None), outer(A.T.copy(), B)):
        assert not result.view(np.uint32).any()


def outer(A: Array, B: Array) -> Array:
    return _native.outer_product(A, B, None, False, None, None, True, 0, 0, None, True, True)


@pytest.mark.parametrize("cell", [cell for cell in CELLS.values() if cell.has_W], ids=lambda cell: cell.name)
def test_a_stream_has_the_bits_of_a_window(machine: None, cell: Cell) -> None:
    rng, G, H, K = np.random.default_rng(0), len(cell.gates), 37, 5
    W, table, V = (
        (rng.standard_normal(shape) / 6).astype(np.float32) for shape in ((G * H, H), (K, G * H), (K, H))
    )
    extra = [rng.standard_normal(H).astype(np.float32) for _ in cell.extra]
    ids, nothing = rng.integers(0, K, (9, 1)).astype(np.int32), np.zeros((1, H), np.float32)
    packed, output = _native.Panels(W, True, G, True), _native.Panels(V, True, 1, True)
    hs = _native.window_forward(
        cell.name, 0, None, table, ids, packed, nothing, nothing if cell.has_cell_state else None, extra, None, False, None
    )[0]  # fmt: skip
    stream = _native.Stream([(cell.name, 0, H, packed, table, None, None, extra)], output, None, [])
    for id in ids[:, 0].tolist():
        stream.read(id)
    assert same(stream.state()[0][0], hs[-1, 0])
    assert same(stream.logits(), product(hs[-1], V.T.copy())[0])


Window = tuple[Array, Array, Array]


def window(cell: Cell, B: int, tau: int, H: int = 37) -> Window:
    """Run B rows of a window forward and backward; return h, da and the gradient of h(0)."""
    rng, G = np.random.default_rng(0), len(cell.gates)
    W = (rng.standard_normal((G * H, H)) / 6).astype(np.float32)
    p = rng.standard_normal((9, 5, G * H)).astype(np.float32)[:tau, :B].copy()
    h0, s0, dh = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, H), (5, H), (9, 5, H)))
    extra = [rng.standard_normal(H).astype(np.float32) for _ in cell.extra]
    forward = _native.Panels(W, True, G, True)
    backward = _native.Panels(W, False, 1, True, cell.W_gap[0] * H if cell.W_gap[1] else 0)
    state = (h0[:B].copy(), s0[:B].copy() if cell.has_cell_state else None)
    hs, ss, tape, _ = _native.window_forward(
        cell.name, 0, p, None, None, forward, *state, extra, None, False, None
    )
    given = [each if spec.read_by_backward else None for each, spec in zip(extra, cell.extra, strict=True)]
    da, dh_start, _ = _native.window_backward(
        cell.name, 0, backward, hs, ss, tape, given, G * H, None, False, None, dh[:tau, :B].copy(), None, None, None, None
    )  # fmt: skip
    return hs, da, dh_start


@pytest.mark.parametrize("cell", [cell for cell in CELLS.values() if cell.has_W], ids=lambda cell: cell.name)
def test_windows_have_the_same_bits_on_every_machine_and_in_any_batch(
    machine: None, cell: Cell, plain_windows: dict[str, Window]
) -> None:
    hs, da, dh_start = window(cell, 5, 9)
    assert all(same(a, b) for a, b in zip((hs, da, dh_start), plain_windows[cell.name], strict=True))
    alone = window(cell, 2, 9)
    assert same(alone[0], hs[:, :2]) and same(alone[1], da[:, :2]) and same(alone[2], dh_start[:2])
    assert same(window(cell, 5, 4)[0], hs[:5])


@pytest.fixture(scope="module")
def plain_windows() -> dict[str, Window]:
    """The windows on one thread, with plain C++."""
    before = kernel_info()
    native.choose_isa("plain")
    native.set_threads(1)
    found = {cell.name: window(cell, 5, 9) for cell in CELLS.values() if cell.has_W}
    native.choose_isa(before["bf16"])
    native.set_threads(before["threads"])
    return found


def test_a_cut_beyond_the_rows_is_refused() -> None:
    with pytest.raises(InputError, match="cut must be from 0 to 5"):
        _native.Panels(np.zeros((5, 3), np.float32), False, 1, True, 6)
