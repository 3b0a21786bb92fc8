"""Compare the CPU's instruction for bf16 with fused multiply-adds in the same order: 10,000,000 products of 16 x 32 x 16.

    c = c + (E + O),   E, O = chains of fused multiply-adds over even and odd k, from +0

with denormal numbers flushed to zero: TDPBF16PS of AMX, or VDPBF16PS with pairs (k, k + 2). A product has 512 chains of 16. Ten kinds of numbers, repeatable by the seed; the kernels of unspool use none below 2^-56, so that
denormal numbers never occur there. The exit code is 1 if a number differs. The sign and payload of NaN are counted, not compared.

    python bench/tiles.py [--products 10000000] [--seed 0] [--no-file]

UNSPOOL_ISA=amx or avx512_bf16 chooses the instruction on a CPU that has both.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from table import save, show
from unspool import kernel_info
from unspool.errors import InputError
from unspool.kernels import _native

Bits = NDArray[np.uint32]
Floats = NDArray[np.float32]
DRAWN = 500
"""Tiles of A and of B that are drawn at a time."""
PAIRED = 10
"""Tiles of B that each tile of A is multiplied with."""


class Kind(NamedTuple):
    """Numbers of one kind: the biased exponents of A and B and of C, and special values among them."""

    exponents: tuple[int, int]
    start: tuple[int, int]
    special: tuple[int, ...] = ()
    """bf16 values, as bits."""
    share: float = 0.0
    cancelling: bool = False
    """Let C be close to -A B."""


ZEROS, INFINITIES, NANS = (0x0000, 0x8000), (0x7F80, 0xFF80), (0x7FC0, 0xFFC1, 0x7F81)
KINDS = {
    "ordinary": Kind((118, 130), (118, 134)),
    "wide": Kind((64, 190), (1, 254)),
    "all exponents": Kind((1, 254), (1, 254)),
    "near 2^-126": Kind((56, 72), (1, 20)),
    "denormal": Kind((60, 254), (0, 3), (0x0001, 0x807F, 0x0040), 0.5),
    "infinite, NaN": Kind((118, 130), (118, 134), INFINITIES + NANS, 0.01),
    "overflow": Kind((186, 194), (240, 254)),
    "signed zeros": Kind((118, 130), (0, 0), ZEROS, 0.8),
    "any bits": Kind((0, 255), (0, 255)),
    "near cancellation": Kind((118, 130), (118, 134), cancelling=True),
}


def drawn(rng: np.random.Generator, shape: tuple[int, ...], exponents: tuple[int, int], bits: int) -> Bits:
    """Return numbers of these exponents, signs and fractions uniform: float32 (32 bits) or bf16 (16 bits)."""
    exponent = rng.integers(exponents[0], exponents[1] + 1, shape, np.uint32)
    rest = rng.integers(0, 2 ** (bits - 8), shape, np.uint32)  # the sign, then the fraction
    fraction = bits - 9
    return (rest >> fraction) << (bits - 1) | exponent << fraction | rest & (2**fraction - 1)


def tiles(rng: np.random.Generator, kind: Kind, n: int) -> NDArray[np.uint16]:
    """Return n tiles of bf16."""
    found = drawn(rng, (n, 16, 32), kind.exponents, 16).astype(np.uint16)
    if kind.special:
        special = rng.choice(np.array(kind.special, np.uint16), found.shape)
        found = np.where(rng.random(found.shape, np.float32) < kind.share, special, found)
    return found


def starts(rng: np.random.Generator, kind: Kind, A: NDArray[np.uint16], B: NDArray[np.uint16]) -> Floats:
    """Return the tiles of C."""
    if kind.cancelling:
        product = _native.tile_products(A, B, np.zeros((len(A), 16, 16), np.float32), False)
        return -(product.view(np.int32) + rng.integers(-2, 3, product.shape, np.int32)).view(np.float32)
    return drawn(rng, (len(A), 16, 16), kind.start, 32).view(np.float32)


def check(name: str, products: int, seed: int) -> dict[str, Any]:
    """Compare so many products of one kind."""
    kind, rng = KINDS[name], np.random.default_rng([seed, list(KINDS).index(name)])
    figures: dict[str, Any] = {
        "kind": name,
        "products": 0,
        "results": 0,
        "NaN": 0,
        "NaN bits differ": 0,
        "numbers differ": 0,
    }
    while figures["products"] < products:
        n = min(DRAWN, -(-(products - figures["products"]) // PAIRED))
        A, B = tiles(rng, kind, n), tiles(rng, kind, n)
        for shift in range(min(PAIRED, products - figures["products"])):
            other = np.roll(B, shift, axis=0)
            C = starts(rng, kind, A, other)
            by_instruction, by_adds = (_native.tile_products(A, other, C, each) for each in (True, False))
            nan, differ = np.isnan(by_adds), by_instruction.view(np.uint32) != by_adds.view(np.uint32)
            neither = nan & np.isnan(by_instruction)
            figures["products"] += n
            figures["results"] += by_adds.size
            figures["NaN"] += int(nan.sum())
            figures["NaN bits differ"] += int((differ & neither).sum())
            figures["numbers differ"] += int((differ & ~neither).sum())
    return figures


def main() -> int:
    """Check every kind, print a table and write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--products", type=int, default=10_000_000, help="tile products of all kinds together"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-file", action="store_true", help="write no JSON")
    args = parser.parse_args()
    try:
        empty = np.zeros((0, 16, 32), np.uint16)
        _native.tile_products(empty, empty, np.zeros((0, 16, 16), np.float32), True)
    except InputError as error:
        print(f"tiles: nothing to compare with: {error}")
        return 0
    found, begin = [], time.perf_counter()
    for done, name in enumerate(KINDS, 1):
        found.append(check(name, -(-args.products // len(KINDS)), args.seed))
        left = (time.perf_counter() - begin) * (len(KINDS) - done) / done
        print(f"\rkind {done} of {len(KINDS)}, {left:.0f} s left ", end="", file=sys.stderr)
    print(file=sys.stderr)
    columns = list(found[0])
    show(columns, [[f"{row[c]:,}" if isinstance(row[c], int) else row[c] for c in columns] for row in found])
    if not args.no_file:
        save("tiles", {"seed": args.seed, "kernel": kernel_info(), "kinds": found})
    return 1 if any(row["numbers differ"] for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
