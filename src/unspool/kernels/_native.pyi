from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Floats = NDArray[Any]
Ids = NDArray[np.int32]

class Panels:
    def __init__(self, source: Floats, transposed: bool, groups: int = 1) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...

class Stream:
    def __init__(
        self, layers: list[tuple[Any, ...]], output: Panels, bias: Floats | None, alive: list[Any]
    ) -> None: ...
    def read(self, id: int) -> None: ...
    def choose(self, temperature: float, top_k: int, top_p: float, u: float) -> int: ...
    def advance(
        self, id: int, temperature: float, top_k: int, top_p: float, seed: int, index: int
    ) -> int: ...
    def logits(self) -> Array: ...
    def state(self) -> list[tuple[Array, Array]]: ...
    def set_state(self, parts: list[tuple[Floats, Floats]]) -> None: ...

def rows_product(A: Floats, B: Panels, start: Floats | None) -> Array: ...
def outer_product(
    A: Floats, B: Floats, onto: Floats | None, accumulate: bool, table: Floats | None, ids: Ids | None,
    accumulate_table: bool, d: Floats | None, accumulate_d: bool,
) -> Array: ...  # fmt: skip
def column_sum(A: Floats, onto: Floats | None, accumulate: bool) -> Array: ...
def gather(table: Floats, ids: Ids) -> Array: ...
def shift_rows(x: Floats, b: Floats) -> Array: ...
def scatter_add(table: Floats, ids: Ids, rows: Floats, accumulate: bool) -> None: ...
def window_forward(
    cell: int,
    activation: int,
    p: Floats | None,
    table: Floats | None,
    ids: Ids | None,
    W: Panels,
    h0: Floats,
    s0: Floats | None,
    d: Floats | None,
    lengths: Ids | None,
    reverse: bool,
    keep: Floats | None,
) -> tuple[Array, Array | None, Array | None, Array | None]: ...
def window_backward(
    cell: int,
    activation: int,
    W: Panels,
    hs: Floats,
    ss: Floats | None,
    gates: Floats | None,
    lengths: Ids | None,
    reverse: bool,
    keep: Floats | None,
    dh: Floats | None,
    dh_end: Floats | None,
    ds_end: Floats | None,
    xi: Floats | None,
    consume: bool,
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
def global_norm(g: Floats) -> float: ...
def adam(
    p: Floats,
    g: Floats,
    m: Floats,
    v: Floats,
    scale: float,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: float,
    correction1: float,
    correction2: float,
) -> None: ...
def sgd(
    p: Floats,
    g: Floats,
    m: Floats | None,
    scale: float,
    learning_rate: float,
    momentum: float,
    decay: float,
) -> None: ...
def dropout_mask(n: int, seed: int, stream: int, rate: float) -> Array: ...
def scale_rows(x: Floats, mask: Floats) -> Array: ...
def activate(x: Floats, activation: int, slope: bool) -> Array: ...
def zeros(n: int) -> Array: ...
def uniform(seed: int, index: int) -> float: ...
def threads() -> int: ...
def set_threads(count: int) -> None: ...
def isa() -> str: ...
def available() -> str: ...
def choose_isa(name: str) -> None: ...
def fma_peak(seconds: float) -> float: ...
