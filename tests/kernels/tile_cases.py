"""Products in bf16 of every kernel, by name: their arrays are to have the same bits on every instruction set, with any threads.

python tile_cases.py      print a line of JSON: the cases that differ from plain C++ on one thread, and where
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
from cases import TRAINED, trained
from unspool.cells import CELLS
from unspool.cells.cell import Cell
from unspool.kernels import _native

Array = NDArray[np.float32]
SPECIAL = np.array(
    [0.0, -0.0, 2.0**-56, -(2.0**-57), 3.4e38, np.inf, -np.inf, np.nan, 1.01171875], np.float32
)


def drawn(rng: np.random.Generator, *shape: int) -> Array:
    """Return numbers of many sizes: some are rounded to zero."""
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-70, 20, shape))).astype(np.float32)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def rows() -> Iterator[Array]:
    """Yield products of 1 to 70 rows; the last ones are large enough for several threads."""
    rng = np.random.default_rng(0)
    for M in range(1, 71):
        K, N = int(rng.integers(1, 80)), int(rng.integers(1, 80))
        panels = _native.Panels(drawn(rng, K, N), False, 1, True)
        yield _native.rows_product(drawn(rng, M, K), panels, drawn(rng, M, N))
    for M, K, N in ((5, 600, 99), (40, 300, 97), (70, 67, 131), (200, 64, 33)):
        yield _native.rows_product(drawn(rng, M, K), _native.Panels(drawn(rng, N, K), True, 1, True), None)
    A, B = (rng.choice(SPECIAL, shape) for shape in ((40, 70), (70, 35)))
    yield _native.rows_product(A, _native.Panels(B, False, 1, True), None)


def outer() -> Iterator[Array]:
    """Yield sums of outer products, in two segments; with a gap, a table and a sum."""
    rng = np.random.default_rng(1)
    for M, R, N in (
        (1, 5, 3),
        (4, 1, 1),
        (17, 33, 5),
        (33, 70, 16),
        (16, 64, 300),
        (150, 31, 47),
        (64, 1100, 32),
    ):
        sums = np.empty((M, N), np.float32)
        for accumulate, count in enumerate((64, R)):
            given = drawn(rng, count, M), drawn(rng, count, N)
            _native.outer_product(*given, sums, bool(accumulate), None, None, True, 0, 0, None, True, True)
        yield sums
    for H, R in ((21, 70), (40, 200)):
        A, B, ids = drawn(rng, R, 4 * H), drawn(rng, R, H), rng.integers(0, 9, R, np.int32)
        sums, table, beyond = (np.zeros(shape, np.float32) for shape in ((3 * H, H), (9, 3 * H), (H,)))
        _native.outer_product(A, B, sums, False, table, ids, False, 2 * H, H, beyond, False, True)
        yield from (sums, table, beyond)


def window(cell: Cell, B: int, H: int, tau: int, plain: bool, reverse: bool) -> Iterator[Array]:
    """Yield a window forward and backward; unless plain, with lengths, dropout and xi."""
    rng, G = np.random.default_rng([B, H]), len(cell.gates)
    W, p = normal(rng, G * H, H) / np.float32(H**0.5), normal(rng, tau, B, G * H)
    h0, s0, dh, end = normal(rng, B, H), normal(rng, B, H), normal(rng, tau, B, H), normal(rng, B, H)
    extra = [normal(rng, H) for _ in cell.extra]
    lengths = None if plain else rng.integers(0, tau + 1, B, np.int32)
    mask = None if plain else (rng.random((B, H)) < 0.8).astype(np.float32) / np.float32(0.8)
    xi = None if plain else (rng.random((tau, B)) < 0.7).astype(np.float32)
    state, has_s = (h0, s0 if cell.has_cell_state else None), cell.has_cell_state
    forward = _native.Panels(W, True, G, True)
    hs, ss, tape, masked = _native.window_forward(
        cell.name, 0, p, None, None, forward, *state, extra, lengths, reverse, mask
    )
    alive = np.ones((tau, B), bool) if lengths is None else np.arange(tau)[:, None] < lengths
    yield from (each for each in (hs, ss, masked) if each is not None)
    if tape is not None:
        yield tape[alive]
    given = [each if spec.read_by_backward else None for each, spec in zip(extra, cell.extra, strict=True)]
    backward = _native.Panels(W, False, 1, True, cell.W_gap[0] * H if cell.W_gap[1] else 0)
    found = _native.window_backward(
        cell.name, 0, backward, hs, ss, tape, given, G * H, lengths, reverse, mask, dh, end, end if has_s else None, xi, None
    )  # fmt: skip
    yield from (each for each in found if each is not None)


def windows(cell: Cell) -> Iterator[Array]:
    """Yield windows of few and many rows, both directions; with a W that counts as larger than the L2 cache, too."""
    for B, H, plain, reverse in (
        (1, 20, True, False),
        (5, 37, False, True),
        (17, 33, False, False),
        (33, 48, True, True),
    ):
        yield from window(cell, B, H, 3, plain, reverse)
    before = _native.L2_bytes()
    _native.set_L2_bytes(1)
    try:
        for B in (40, 70):
            yield from window(cell, B, 50, 2, False, False)
    finally:
        _native.set_L2_bytes(before)


def softmax() -> Iterator[Array]:
    """Yield losses and gradients of an output layer; of a V that counts as larger than the L2 cache, too."""
    rng, before = np.random.default_rng(2), _native.L2_bytes()
    for H, K, R, B, L2 in ((20, 7, 12, 4, before), (37, 70, 150, 5, before), (40, 99, 140, 20, 1)):
        _native.set_L2_bytes(L2)
        h, V, c = normal(rng, R, H), normal(rng, K, H) / np.float32(H), normal(rng, K)
        y = rng.integers(-1, K, R, np.int32)
        dV, dc = np.empty((K, H), np.float32), np.empty(K, np.float32)
        Vt = _native.Panels(V, True, 1, True)
        sides = Vt, _native.Panels(V, False, 1, True)
        _, _, nats, dh = _native.softmax_cross_entropy(h, *sides, c, y, B, 1 / R, dV, dc, False)
        _native.set_L2_bytes(before)
        yield from (nats.view(np.float32), dh, dV, dc)


def updates() -> Iterator[Array]:
    """Yield the parameters of two networks after ten updates, and the losses."""
    for config in TRAINED[1:3]:
        yield from (each.view(np.float32) for each in trained(replace(config, precision="bf16")).values())


CASES: dict[str, Callable[[], Iterator[Array]]] = {
    "rows": rows,
    "outer": outer,
    "softmax": softmax,
    "updates": updates,
    **{name: lambda cell=cell: windows(cell) for name, cell in CELLS.items() if cell.has_W},
}


def bits(case: str, isa: str, threads: int) -> list[bytes]:
    """Return the bits of a case's arrays; every NaN is the same."""
    _native.choose_isa(isa)
    _native.set_threads(threads)
    found = []
    for array in CASES[case]():
        each = np.ascontiguousarray(array)
        found.append(np.where(np.isnan(each), np.float32(np.nan), each).tobytes())
    return found


def differences(settings: list[str]) -> dict[str, list[str]]:
    """Return, by case, the settings "SET,THREADS" whose bits are not those of plain C++ on one thread."""
    found = {}
    for case in CASES:
        expected = bits(case, "plain", 1)
        each = [(setting, *setting.split(",")) for setting in settings]
        found[case] = [setting for setting, isa, threads in each if bits(case, isa, int(threads)) != expected]
    return found


if __name__ == "__main__":
    json.dump(differences(sys.argv[1:]), sys.stdout)
