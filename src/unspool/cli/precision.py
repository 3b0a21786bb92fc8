"""`--precision` of a command that trains: by name, or auto, which is settled before the first update and stored by name."""

import sys
from dataclasses import replace
from typing import Any, TypeVar

from unspool.kernels.machine import BF16_INSTRUCTIONS, kernel_info
from unspool.model import options as network
from unspool.model.config import ModelConfig
from unspool.training.precision import faster_precision

AUTO = "auto"
PRECISION = replace(
    network.PRECISION,
    help=f"{network.PRECISION.help} auto: bf16 if this machine has an instruction for it and a network of the given sizes (256 units if not given) is measured to be faster in bf16, else float32; the run stores which.",
    choices=(*network.PRECISION.choices, AUTO),
    check=None,
)
H, B, TAU, K = 256, 32, 64, 64
"""The units, the window and the tokens that precisions are compared on, where the options give none."""
T = TypeVar("T")


def with_precision(options: T, *, note: bool = True) -> T:
    """Return the options with a named precision in place of auto; with `note`, print which in a line on standard error."""
    given: Any = options
    if given.precision != AUTO:
        return options
    sizes = {name: getattr(given, name, None) for name in ("cell", "hidden", "layers")}
    sizes = {"hidden": H} | {name: value for name, value in sizes.items() if value}
    config = ModelConfig(inputs=K, outputs=K, **sizes)
    chosen = faster_precision(
        config, getattr(given, "batch_size", None) or B, getattr(given, "window", None) or TAU
    )
    if note and not getattr(given, "quiet", False):
        why = "measured" if kernel_info()["bf16"] in BF16_INSTRUCTIONS else "no instruction for bf16"
        print(f"unspool: precision {chosen} (auto: {why})", file=sys.stderr)
    return replace(given, precision=chosen)  # type: ignore[no-any-return]
