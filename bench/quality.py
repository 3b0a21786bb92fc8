"""Compare quality for a time limit: `unspool train TEXT --minutes M` with only `--split`, against a PyTorch LSTM with H = 256.

    python bench/quality.py TEXT [TEXT …] [--seconds 150] [--tokens char] [--peers unspool torch]

Both train on the first 90 % of the text for the same time, one after the other, each in its own process on all cores. The time
includes the throughput measurement, training and validation; both end their cosine schedule at the deadline. Then the last
10 % is scored with carried state: the mean of -log P in nats. The PyTorch model uses embedding, sequential batches with
carried state, Adam, clipping, dropout, and its own throughput measurement.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from table import save, show
from unspool.data.text.corpus import prepare
from unspool.evaluation.language import NetworkScorer, evaluate
from unspool.storage import run_folder
from unspool.storage.log import read_log
from unspool.tasks.language.text_model import TextModel

SPLIT = (0.9, 0.1, 0.0)
NANOGPT = [
    ["nanoGPT, its README's recipe for a CPU, such a machine", 1.874, 152.0],
    ["nanoGPT, its README, on an A100", 1.4697, 180.0],
]
"""Figures for tinyshakespeare, to compare with."""
VALIDATIONS = 5


def score_unspool(text: str, tokens: str, seconds: float) -> dict[str, Any]:
    """Train with the command line in a separate process, then score the saved model."""
    kind = [] if tokens == "char" else ["--tokens", tokens]
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        command = [
            sys.executable,
            "-m",
            "unspool",
            "train",
            text,
            "--minutes",
            repr(seconds / 60),
            "--split",
            *map(str, SPLIT),
            "--out",
            out,
        ]
        begin = time.perf_counter()
        done = subprocess.run([*command, *kind, "--json"], stdout=subprocess.PIPE, text=True, check=True)
        whole = time.perf_counter() - begin
        recipe = json.loads(done.stdout)["config"]["recipe"]
        steps = [entry for entry in read_log(Path(out) / run_folder.LOG) if "step" in entry]
        valid = prepare(text, tokens=tokens, split=SPLIT).valid
        judged = evaluate(NetworkScorer(TextModel.load(out).model), valid)
    return {
        "nats": judged.nats, "bits_per_character": judged.bits_per_character, "seconds": steps[-1]["seconds"],
        "process": whole, "updates": recipe["steps"], "tokens": recipe["steps"] * recipe["B"] * recipe["tau"],
        "model": f"{recipe['cell']} H {recipe['hidden']}", "recipe": recipe, "train": steps[-1]["train"],
    }  # fmt: skip


def score_torch(text: str, tokens: str, seconds: float) -> dict[str, Any]:
    """Train and score in a separate process that gets the ids."""
    corpus = prepare(text, tokens=tokens, split=SPLIT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.npz"
        np.savez(path, train=corpus.train.ids, valid=corpus.valid.ids, K=len(corpus.vocab))
        command = [sys.executable, __file__, "--torch", str(path), "--seconds", str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    characters, _ = corpus.valid.widths_after_first(False)
    targets = len(corpus.valid.ids) - 1
    return found | {"bits_per_character": found["nats"] * targets / math.log(2) / characters}


def be_torch(
    path: str, seconds: float, H: int, B: int, tau: int, rate: float, dropout: float, steps: int
) -> None:
    """Train a PyTorch LSTM for a number of seconds, score the test split, and print the figures as JSON."""
    import torch
    from torch import nn

    begin = time.perf_counter()
    torch.manual_seed(0)
    data = np.load(path)
    train, valid, K = (data["train"].astype(np.int64), data["valid"].astype(np.int64), int(data["K"]))
    table, lstm, drop, output = nn.Embedding(K, H), nn.LSTM(H, H), nn.Dropout(dropout), nn.Linear(H, K)
    with torch.no_grad():
        for name in ("bias_ih_l0", "bias_hh_l0"):
            getattr(lstm, name).zero_()
        lstm.bias_ih_l0[H : 2 * H] = 1
    network = nn.ModuleList([table, lstm, drop, output])
    reset = {name: value.clone() for name, value in network.state_dict().items()}
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    per_epoch = max(1, (len(train) - 1) // (B * tau))
    rows = torch.from_numpy(train[: B * per_epoch * tau].reshape(B, -1).T.copy())  # time-major
    follow = torch.from_numpy(train[1 : B * per_epoch * tau + 1].reshape(B, -1).T.copy())

    def update(step: int, state: Any, share: float) -> Any:
        at = step % per_epoch * tau
        state = None if at == 0 else state
        for group in optimiser.param_groups:
            group["lr"] = rate * share
        h, state = lstm(table(rows[at : at + tau]), state)
        loss = nn.functional.cross_entropy(output(drop(h)).view(-1, K), follow[at : at + tau].reshape(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        return tuple(part.detach() for part in state)

    def score(ids: Any, window: int = 1024) -> float:
        network.eval()
        total, state = 0.0, None
        with torch.no_grad():
            for at in range(0, len(ids) - 1, window):
                here = torch.from_numpy(ids[at : at + window + 1])
                h, state = lstm(table(here[:-1, None]), state)
                total += float(nn.functional.cross_entropy(output(h)[:, 0], here[1:], reduction="sum"))
        network.train()
        return total / (len(ids) - 1)

    state, spans = None, []
    until = time.perf_counter() + min(2.0, seconds / 40)
    while not steps and (len(spans) < 4 or time.perf_counter() < until):
        start = time.perf_counter()
        state = update(len(spans), state, 0.0)
        spans.append(time.perf_counter() - start)
    start = time.perf_counter()
    part = valid[: max(2, len(valid) // 10)]
    score(part)
    once = time.perf_counter() - start
    if not steps:
        left = seconds - (time.perf_counter() - begin) - VALIDATIONS * once
        steps = max(1, int(left / sorted(spans[1:])[len(spans) // 2 - 1]))
    network.load_state_dict(reset)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    state, done, warmup = None, 0, min(100, steps)
    began = time.perf_counter()
    for step in range(steps):
        fall = (1 + math.cos(math.pi * step / steps)) / 2
        state = update(step, state, min(1.0, (step + 1) / warmup) * fall)
        done += 1
        if done % max(1, steps // VALIDATIONS) == 0:
            print(f"{done} of {steps}: {score(part):.4f}", file=sys.stderr)
    spent = time.perf_counter() - begin
    figures = {
        "nats": score(valid), "seconds": spent, "updates": done, "tokens": done * B * tau,
        "model": f"lstm H {H}", "rate": (done * B * tau) / (time.perf_counter() - began),
    }  # fmt: skip
    print(json.dumps(figures))


PEERS = {"unspool": score_unspool, "torch": score_torch}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="*")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--tokens", default="char")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    parser.add_argument("--torch-batch", type=int, default=16)
    parser.add_argument("--torch-tau", type=int, default=64)
    parser.add_argument("--torch-rate", type=float, default=4e-3)
    parser.add_argument("--torch-dropout", type=float, default=0.2)
    parser.add_argument("--torch-steps", type=int, default=0)
    args = parser.parse_args()
    if args.torch:
        be_torch(args.torch, args.seconds, 256, args.torch_batch, args.torch_tau, args.torch_rate, args.torch_dropout, args.torch_steps)  # fmt: skip
        return
    figures, rows = [], []
    for text in args.texts:
        for peer in args.peers:
            found = PEERS[peer](text, args.tokens, args.seconds)
            figures.append({"text": Path(text).name, "peer": peer} | found)
            rows.append(
                [Path(text).name, peer, found["model"], f"{found['nats']:.4f}", found["bits_per_character"],
                 found["seconds"], found["updates"], f"{found['tokens']:,}"]
            )  # fmt: skip
    show(["text", "peer", "model", "nats", "bits/char", "seconds", "updates", "tokens seen"], rows)
    for name, nats, seconds in NANOGPT:
        print(f"tinyshakespeare, {name}: {nats} nats in {seconds:.0f} s")
    save("quality", figures)


if __name__ == "__main__":
    main()
