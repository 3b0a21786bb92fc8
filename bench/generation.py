"""Benchmark generation from a run: time to the first token, and tokens per second against an eager PyTorch loop.

The first token is timed from the start to the end of the process `unspool generate RUN --length 1`, including interpreter,
model and vocabulary; the best of several runs counts. The rate is that of `TextModel.tokens` for a run
without an embedding; the PyTorch loop is that of `bench/step.py`, whose network has one. `bench/step.py` compares equal networks.

    python bench/generation.py [--hidden 256] [--rounds 7]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from step import measure_torch, seconds_a_token
from table import Peer, alternate, save, serve, show
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.text_model import TextModel


def measure_unspool(case: dict[str, Any]) -> float:
    model = TextModel.load(case["run"])

    def run(n: int) -> None:
        for _ in islice(model.tokens("the ", seed=1), n):
            pass

    return seconds_a_token(run)


def cold_start(run: str, rounds: int) -> float:
    line = [
        sys.executable,
        "-m",
        "unspool",
        "generate",
        run,
        "--prompt",
        "the ",
        "--length",
        "1",
        "--seed",
        "1",
    ]
    spans = []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        spans.append(time.perf_counter() - begin)
    return min(spans)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer")
    options = parser.parse_args()
    if options.peer:
        serve("ready", {"unspool": measure_unspool, "torch": measure_torch}[options.peer])
        return
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        text = "the quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 300
        LanguageModel(cell="lstm", hidden=options.hidden, embedding=0, steps=2, out=out).fit(text)
        first = cold_start(out, options.rounds)
        peers = [Peer(__file__, name) for name in ("unspool", "torch")]
        case = {"cell": "lstm", "H": options.hidden, "run": out}
        (best,) = alternate(peers, [case], 3)
    for peer in peers:
        peer.close()
    ratio = best["torch"] / best["unspool"]
    show(
        ["first token, s", "unspool, µs per token", "PyTorch, µs per token", "ratio"],
        [[first, 1e6 * best["unspool"], 1e6 * best["torch"], ratio]],
    )
    save("generation", {"first_token_seconds": first, "seconds_a_token": best, "ratio": ratio})


if __name__ == "__main__":
    main()
