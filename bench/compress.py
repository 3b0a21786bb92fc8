"""Benchmark lossless compression with a run: bits written, cross-entropy, other programs, and speed in both directions.

Each file is compressed, decompressed and compared. "Promised" is the cross-entropy of the network over all tokens except the
first, as in `unspool evaluate`; "over" is the excess of the coder beyond that and the log2 K bits of the first token, without
literals. Times are processor time of this process with one thread, the best of the rounds.

    python bench/compress.py RUN FILE … [--rounds 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import save, show
from unspool.compress import CompressionResult, compress, decompress
from unspool.compress.other_programs import OTHERS
from unspool.kernels.native import set_threads
from unspool.tasks.language.text_model import TextModel


def timed(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    best, made = float("inf"), None
    for _ in range(rounds):
        begin = time.process_time()
        made = work()
        best = min(best, time.process_time() - begin)
    return best, made


def measure(model: TextModel, path: Path, rounds: int) -> dict[str, Any]:
    data = path.read_bytes()
    writing, packed = timed(lambda: compress(model, data, name=path.name), rounds)
    assert isinstance(packed, CompressionResult)
    kept, coded = packed.container, packed.coded
    reading, back = timed(lambda: decompress(kept, model), rounds)
    if back != data:
        raise SystemExit(f"{path}: did not come back as it was")
    return {
        "file": path.name,
        "bytes": len(data),
        "tokens": coded.tokens,
        "unknown": coded.unknown,
        "way": kept.mode,
        "promised": coded.expected_bits / 8,
        "written": len(kept.to_bytes()),
        "over": coded.token_bits / coded.expected_bits - 1 if coded.expected_bits else 0.0,
        "others": {name: len(press(data)) for name, press in OTHERS.items()},
        "tokens_a_second_writing": coded.tokens / writing,
        "tokens_a_second_reading": coded.tokens / reading,
    }


COLUMNS = ["file", "bytes", *OTHERS, "promised", "written", "over", "unknown", "way"]
COLUMNS += ["tokens/s writing", "reading"]


def row(each: dict[str, Any]) -> list[Any]:
    ours = [round(each["promised"]), each["written"], f"{each['over']:+.4%}", each["unknown"], each["way"]]
    speeds = [round(each[f"tokens_a_second_{mode}"]) for mode in ("writing", "reading")]
    return [each["file"], each["bytes"], *each["others"].values(), *ours, *speeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    set_threads(1)
    model = TextModel.load(options.run)
    found = [measure(model, path, options.rounds) for path in options.files]
    show(COLUMNS, [row(each) for each in found])
    config = model.model.config
    save("compress", {"cell": config.cell, "hidden": config.hidden, "K": config.outputs, "files": found})


if __name__ == "__main__":
    main()
