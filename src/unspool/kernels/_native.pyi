from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Floats = NDArray[Any]
Ids = NDArray[np.int32]

class Panels:
    def __init__(
        self, source: Floats, transposed: bool, groups: int = 1, bf16: bool = False, cut: int = 0
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...

class Stream:
    def __init__(
        self,
        layers: list[tuple[Any, ...]],
        output: Panels,
        bias: Floats | None,
        alive: list[Any],
        tails: list[tuple[Panels, Panels, Floats]] = ...,
    ) -> None: ...
    def read(self, id: int) -> None: ...
    def choose(
        self, u: float, temperature: float, top_k: int, top_p: float, min_p: float, repetition_penalty: float,
        seen: NDArray[np.bool_] | None,
    ) -> int: ...  # fmt: skip
    def advance(
        self, id: int, seed: int, index: int, temperature: float, top_k: int, top_p: float, min_p: float,
        repetition_penalty: float, seen: NDArray[np.bool_] | None,
    ) -> int: ...  # fmt: skip
    def logits(self) -> Array: ...
    def set_logits(self, logits: Floats) -> None: ...
    def state(self) -> list[tuple[Array, Array]]: ...
    def set_state(self, parts: list[tuple[Floats, Floats]]) -> None: ...

class ByteEncoder:
    def __init__(
        self,
        bits: int,
        stretch: Array,
        squash: NDArray[np.uint16],
        powers: NDArray[np.uint32],
        weights: Array,
    ) -> None: ...
    def encode(
        self, data: bytes, logits: Floats | None = None, sums: NDArray[np.uint64] | None = None
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def finish(self) -> bytes: ...

class ByteDecoder:
    def __init__(
        self,
        bits: int,
        stretch: Array,
        squash: NDArray[np.uint16],
        powers: NDArray[np.uint32],
        weights: Array,
        payload: bytes,
    ) -> None: ...
    def decode(
        self, n: int, logits: Floats | None = None, sums: NDArray[np.uint64] | None = None
    ) -> bytes: ...

def rows_product(A: Floats, B: Panels, start: Floats | None) -> Array: ...
def outer_product(
    A: Floats, B: Floats, onto: Floats | None, accumulate: bool, table: Floats | None, ids: Ids | None,
    accumulate_table: bool, gap_at: int, gap: int, sum: Floats | None, accumulate_sum: bool,
    bf16: bool = False,
) -> Array: ...  # fmt: skip
def column_sum(A: Floats, onto: Floats | None, accumulate: bool) -> Array: ...
def gather(table: Floats, ids: Ids) -> Array: ...
def shift_rows(x: Floats, b: Floats) -> Array: ...
def scatter_add(table: Floats, ids: Ids, rows: Floats, accumulate: bool) -> None: ...
def cells() -> list[dict[str, Any]]: ...
def window_forward(
    cell: str,
    activation: int,
    p: Floats | None,
    table: Floats | None,
    ids: Ids | None,
    W: Panels | None,
    h0: Floats,
    s0: Floats | None,
    parameters: Sequence[Floats | Panels | None],
    lengths: Ids | None,
    reverse: bool,
    recurrent_mask: Floats | None,
) -> tuple[Array, Array | None, Array | None, Array | None]: ...
def window_backward(
    cell: str,
    activation: int,
    W: Panels | None,
    hs: Floats,
    ss: Floats | None,
    tape: Floats | None,
    parameters: Sequence[Floats | Panels | None],
    inputs: int,
    lengths: Ids | None,
    reverse: bool,
    recurrent_mask: Floats | None,
    dh: Floats | None,
    dh_end: Floats | None,
    ds_end: Floats | None,
    xi: Floats | None,
    da: Floats | None,
) -> tuple[Array | None, Array, Array | None]: ...
def softmax_cross_entropy(
    h: Floats,
    Vt: Panels,
    V: Panels | None,
    c: Floats | None,
    y: Ids,
    B: int,
    scale: float,
    dV: Floats | None,
    dc: Floats | None,
    accumulate: bool,
) -> tuple[float, int, NDArray[np.float64], Array | None]: ...
def log_softmax_rows(o: Floats, start: Floats) -> Array: ...
def global_norm(g: Floats) -> float: ...
def optimisers() -> list[dict[str, Any]]: ...
def update(
    optimiser: str,
    p: Floats,
    g: Floats,
    states: Sequence[Floats | None],
    scale: float,
    settings: Sequence[float],
) -> None: ...
def dropout_mask(n: int, seed: int, stream: int, rate: float) -> Array: ...
def scale_rows(x: Floats, mask: Floats) -> Array: ...
def activate(x: Floats, activation: int, slope: bool) -> Array: ...
def zeros(n: int) -> Array: ...
def uniform(seed: int, index: int) -> float: ...
def threads() -> int: ...
def set_alone(arg: bool, /) -> None: ...
def set_threads(count: int) -> None: ...
def isa() -> str: ...
def isa_bf16() -> str: ...
def available() -> str: ...
def choose_isa(name: str) -> None: ...
def L2_bytes() -> int: ...
def set_L2_bytes(bytes: int) -> None: ...
def fma_peak(seconds: float) -> float: ...
def tile_products(
    A: NDArray[np.uint16], B: NDArray[np.uint16], C: Floats, by_instruction: bool
) -> Floats: ...
