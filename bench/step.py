"""Benchmark one token at a time: read a token and sample the next, batch size 1, including softmax.

`Stream.advance` of unspool against an eager PyTorch loop (embedding, one step of the module, linear layer, softmax,
multinomial). Each library has its own process; they alternate, and the best of several runs counts.

    python bench/step.py [--hidden 128 256 512] [--rounds 3]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from table import Peer, alternate, save, serve, show

K = 64
TOKENS = 400


def seconds_a_token(run: Any) -> float:
    run(50)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        run(TOKENS)
        best = min(best, (time.perf_counter() - begin) / TOKENS)
    return best


def measure_unspool(case: dict[str, Any]) -> float:
    from unspool import Model, ModelConfig, Stream

    config = ModelConfig(inputs=K, outputs=K, cell=case["cell"], hidden=case["H"], embedding=case["H"])
    stream = Stream(Model.initialise(config, seed=0))

    def run(n: int) -> None:
        token = 0
        for i in range(n):
            token = stream.advance(token, seed=1, index=i)

    return seconds_a_token(run)


def measure_torch(case: dict[str, Any]) -> float:
    import torch

    H = case["H"]
    module = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[case["cell"]]
    table, recurrence, output = torch.nn.Embedding(K, H), module(H, H), torch.nn.Linear(H, K)

    def run(n: int) -> None:
        token, state = torch.zeros(1, 1, dtype=torch.long), None
        with torch.inference_mode():
            for _ in range(n):
                h, state = recurrence(table(token), state)
                token = torch.multinomial(torch.softmax(output(h[-1]), dim=-1), 1)
                int(token)

    return seconds_a_token(run)


def be_peer(name: str) -> None:
    measure = {"unspool": measure_unspool, "torch": measure_torch}[name]
    serve({"name": name}, measure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer")
    parser.add_argument("--hidden", nargs="+", type=int, default=[128, 256, 512])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.peer:
        return be_peer(args.peer)
    peers = [Peer(__file__, name) for name in ("unspool", "torch")]
    cases = [{"cell": cell, "H": H} for cell in ("elman", "gru", "lstm") for H in args.hidden]
    best = alternate(peers, cases, args.rounds)
    for peer in peers:
        peer.close()
    rows = [
        [case["cell"], case["H"], s["unspool"] * 1e6, s["torch"] * 1e6, s["torch"] / s["unspool"]]
        for case, s in zip(cases, best, strict=True)
    ]
    show(["cell", "H", "unspool µs", "torch µs", "x torch"], rows)
    save(
        "step",
        [dict(zip(("cell", "H", "unspool_us", "torch_us", "ratio"), row, strict=True)) for row in rows],
    )


if __name__ == "__main__":
    main()
