"""Evaluate the window that `--bptt auto` chooses: its bias table, and the test loss of training with each window.

    python bench/choose_bptt.py TEXT [TEXT …] [--tokens-read 300000] [--hidden 128] [--cells gru lstm] [--lengths 8 32 64]

Each window K reads the same number of tokens, twice: with 16 rows (shorter windows make more updates), and with 1,024 / K
rows (equally many updates of equally many tokens, so that only the gradients differ). The metric is the test loss in nats
per token. No figure depends on the clock.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from table import save, show
from unspool.data.text.corpus import prepare
from unspool.tasks.language.run import chosen_bptt, run
from unspool.training.choose_bptt import LENGTHS, shortest
from unspool.training.events import Evaluated, RunConfig

PER_UPDATE = 1024


def learned(text: str, given: dict[str, Any], K: int, seed: int) -> float:
    """Train with truncated:K; return the test loss in nats per token."""
    config = RunConfig(sources=(text,), given=given, bptt=f"truncated:{K}", order=1, validations=4, seed=seed)
    end = list(run(config))[-1]
    assert isinstance(end, Evaluated)
    return end.measure.nats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--tokens-read", type=int, default=300_000)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--cells", nargs="+", default=["gru"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    args = parser.parse_args()
    figures = []
    for text in args.texts:
        for cell in args.cells:
            given = {"cell": cell, "hidden": args.hidden}
            corpus = prepare(text, split=None)
            config = RunConfig(sources=(text,), given=given, minutes=3.0, bptt="auto", seed=args.seed)
            chosen, bias = chosen_bptt(corpus, config)
            assert bias is not None
            print(
                f"{Path(text).name} {cell}: {chosen.bptt}; at 10 % it would be {shortest(bias, 0.1)}",
                flush=True,
            )
            rows = []
            for K in args.lengths:
                found = {"text": Path(text).name, "cell": cell, "K": K, "bias": bias[K]}
                for name, B in (("16 rows", 16), ("1,024 tokens", PER_UPDATE // K)):
                    steps = args.tokens_read // (B * K)
                    found[name] = learned(text, given | {"B": B, "steps": steps}, K, args.seed)
                figures.append(found)
                rows.append([K, f"{bias[K]:.1%}", f"{found['16 rows']:.4f}", f"{found['1,024 tokens']:.4f}"])
                print(rows[-1], flush=True)
            show(["K", "bias", "nats, 16 rows", "nats, 1,024 tokens an update"], rows)
    save("choose_bptt", figures)


if __name__ == "__main__":
    main()
