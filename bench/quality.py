"""Compare quality for a time limit: `unspool train TEXT --minutes M` with only `--split`, against a PyTorch LSTM with H = 256.

    python bench/quality.py TEXT [TEXT …] [--seconds 150] [--seeds 3] [--tokens char] [--peers unspool torch]

Both train on the first 90 % of the text for the same time, one after the other, each in its own process on all cores. The time
includes the throughput measurement, training and validation; both end their cosine schedule at the deadline. Of its 90 %, unspool
holds out the first 2 % of the text: they select the model, the share of the n-grams and the learning rate while reading. Then the
last 10 %, used for nothing else, are scored once with carried state: the mean of -log P in nats. Rows of unspool:

    n-grams              the best order of Kneser-Ney n-grams of the training split
    network              the trained network, which does not change while it reads
    mixture              the network and the n-grams together
    learning             the network, updated on every segment after the segment has been scored
    learning, mixture    the learning network and the n-grams together

The PyTorch model uses embedding, sequential batches with carried state, Adam, clipping, dropout, and its own throughput
measurement. It trains in the precision that it measures to be faster here: float32, or bf16 under autocast (`--torch-precision`).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from table import save, show
from unspool.data.text.corpus import prepare
from unspool.storage import run_folder
from unspool.storage.log import read_log

HELD_OUT, TRAINED = 0.02, 0.9
"""The text up to the first fraction is held out by unspool; up to the second, both train on it."""
NANOGPT = [
    ["nanoGPT, its README's recipe for a CPU, such a machine", 1.874, 152.0],
    ["nanoGPT, its README, on an A100", 1.4697, 180.0],
]
"""Figures for tinyshakespeare, to compare with."""
VALIDATIONS = 5


def unspool(*arguments: Any) -> Any:
    """Run a command in a separate process; return its JSON."""
    command = [sys.executable, "-m", "unspool", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def cut(text: str, tokens: str, folder: Path) -> dict[str, Path]:
    """Write the parts of a text as files: held out, trained on by unspool, scored."""
    whole: Any = Path(text).read_bytes() if tokens == "byte" else Path(text).read_text("utf-8")
    first, last = (int(len(whole) * share) for share in (HELD_OUT, TRAINED))
    found = {}
    for name, part in (("valid", whole[:first]), ("train", whole[first:last]), ("test", whole[last:])):
        found[name] = folder / f"{name}.txt"
        found[name].write_bytes(part if tokens == "byte" else part.encode())
    return found


def score_unspool(text: str, tokens: str, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Train with the command line, then score the saved run; return one row per model."""
    with tempfile.TemporaryDirectory() as folder:
        out, parts = Path(folder) / "run", cut(text, tokens, Path(folder))
        begin = time.perf_counter()
        made = unspool("train", parts["train"], "--valid", parts["valid"], "--tokens", tokens, "--minutes", seconds / 60, "--seed", seed, "--out", out)  # fmt: skip
        whole, recipe = time.perf_counter() - begin, made["config"]["recipe"]
        steps = [entry for entry in read_log(out / run_folder.LOG) if "step" in entry]
        scored = unspool("evaluate", out, parts["test"], "--learn")
    about = {
        "seconds": steps[-1]["seconds"], "process": whole, "updates": recipe["steps"],
        "tokens": recipe["steps"] * recipe["B"] * recipe["tau"], "model": f"{recipe['cell']} H {recipe['hidden']}",
        "recipe": recipe, "train": steps[-1]["train"],
    }  # fmt: skip
    ngrams = min(scored["baselines"], key=lambda each: each["nats"])
    counted = {"seconds": ngrams["seconds"], "model": ngrams["name"], "updates": 0, "tokens": 0}
    rows = {"n-grams": ngrams | counted} | {
        name: scored[field] | about
        for name, field in ROWS.items()
        if field in scored
    }  # fmt: skip
    return [{"row": name} | figures for name, figures in rows.items()]


ROWS = {
    "network": "network",
    "mixture": "mixture",
    "learning": "learning",
    "learning, mixture": "learning_mixture",
}
"""The fields of `unspool evaluate --learn --json`."""


def score_torch(
    text: str, tokens: str, seconds: float, seed: int, options: list[str]
) -> list[dict[str, Any]]:
    """Train and score in a separate process that gets the ids."""
    corpus = prepare(text, tokens=tokens, split=(TRAINED, 1 - TRAINED, 0.0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.npz"
        np.savez(path, train=corpus.train.ids, valid=corpus.valid.ids, K=len(corpus.vocab), seed=seed)
        command = [sys.executable, __file__, "--torch", str(path), "--seconds", str(seconds), *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    characters, _ = corpus.valid.widths_after_first(False)
    targets = len(corpus.valid.ids) - 1
    bits = found["nats"] * targets / math.log(2) / characters
    return [{"row": "PyTorch"} | found | {"bits_per_character": bits}]


def be_torch(
    path: str,
    seconds: float,
    H: int,
    B: int,
    tau: int,
    rate: float,
    dropout: float,
    steps: int,
    precision: str,
) -> None:
    """Train a PyTorch LSTM for a number of seconds, score the test split, and print the figures as JSON."""
    import torch
    from torch import nn

    begin = time.perf_counter()
    data = np.load(path)
    torch.manual_seed(int(data["seed"]))
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

    def update(step: int, state: Any, share: float, bf16: bool) -> Any:
        at = step % per_epoch * tau
        state = None if at == 0 else state
        for group in optimiser.param_groups:
            group["lr"] = rate * share
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            h, state = lstm(table(rows[at : at + tau]), state)
            o = output(drop(h)).view(-1, K)
        loss = nn.functional.cross_entropy(o.float(), follow[at : at + tau].reshape(-1))
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

    def seconds_per_update(bf16: bool) -> float:
        """Return the median over 1 s, without the first updates; infinity where this CPU cannot run it."""
        state, spans = None, []
        until = time.perf_counter() + min(1.0, seconds / 80)
        try:
            while len(spans) < 6 or time.perf_counter() < until:
                start = time.perf_counter()
                state = update(len(spans), state, 0.0, bf16)
                spans.append(time.perf_counter() - start)
        except RuntimeError:  # no such primitive in PyTorch's library for this CPU
            return math.inf
        return statistics.median(spans[2:])

    known = {"float32": (False,), "bf16": (True,), "auto": (False, True)}
    spans = {bf16: seconds_per_update(bf16) for bf16 in known[precision]}
    bf16 = min(spans, key=lambda each: spans[each])
    start = time.perf_counter()
    part = valid[: max(2, len(valid) // 10)]
    score(part)
    once = time.perf_counter() - start
    if not steps:
        left = seconds - (time.perf_counter() - begin) - VALIDATIONS * once
        steps = max(1, int(left / spans[bf16]))
    network.load_state_dict(reset)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    state, done, warmup = None, 0, min(100, steps)
    began = time.perf_counter()
    for step in range(steps):
        fall = (1 + math.cos(math.pi * step / steps)) / 2
        state = update(step, state, min(1.0, (step + 1) / warmup) * fall, bf16)
        done += 1
        if done % max(1, steps // VALIDATIONS) == 0:
            print(f"{done} of {steps}: {score(part):.4f}", file=sys.stderr)
    spent = time.perf_counter() - begin
    figures = {
        "nats": score(valid), "seconds": spent, "updates": done, "tokens": done * B * tau,
        "model": f"lstm H {H}{', bf16' if bf16 else ''}", "rate": (done * B * tau) / (time.perf_counter() - began),
    }  # fmt: skip
    print(json.dumps(figures))


def summary(figures: list[dict[str, Any]]) -> list[list[Any]]:
    """Return a row per text and model: mean nats over the seeds, their range, and the differences of means."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in figures:
        found.setdefault((each["text"], each["row"]), []).append(each)
    mean = {key: statistics.mean(each["nats"] for each in group) for key, group in found.items()}
    rows = []
    for (text, row), group in found.items():
        nats = [each["nats"] for each in group]
        differences = [
            f"{mean[text, row] - mean[text, peer]:+.4f}" if (text, peer) in mean else "–"
            for peer in ("PyTorch", "network")
        ]
        bits = statistics.mean(each["bits_per_character"] for each in group)
        seconds = statistics.mean(each["seconds"] for each in group)
        rows.append(
            [text, row, group[0]["model"], f"{mean[text, row]:.4f}", f"{min(nats):.4f}–{max(nats):.4f}", bits,
             *differences, seconds, f"{statistics.mean(each['tokens'] for each in group):,.0f}"]
        )  # fmt: skip
    return rows


COLUMNS = [
    "text",
    "row",
    "model",
    "nats",
    "range",
    "bits/char",
    "− PyTorch",
    "− network",
    "seconds",
    "tokens",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="*")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tokens", default="char")
    parser.add_argument("--peers", nargs="+", default=["unspool", "torch"], choices=["unspool", "torch"])
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    parser.add_argument("--torch-batch", type=int, default=16)
    parser.add_argument("--torch-tau", type=int, default=64)
    parser.add_argument("--torch-rate", type=float, default=4e-3)
    parser.add_argument("--torch-dropout", type=float, default=0.2)
    parser.add_argument("--torch-steps", type=int, default=0)
    parser.add_argument("--torch-precision", choices=["float32", "bf16", "auto"], default="auto")
    args = parser.parse_args()
    if args.torch:
        be_torch(args.torch, args.seconds, 256, args.torch_batch, args.torch_tau, args.torch_rate, args.torch_dropout, args.torch_steps, args.torch_precision)  # fmt: skip
        return
    options = ["--torch-precision", args.torch_precision]
    peers: dict[str, Callable[..., list[dict[str, Any]]]] = {"unspool": score_unspool, "torch": partial(score_torch, options=options)}  # fmt: skip
    figures: list[dict[str, Any]] = []
    for text in args.texts:
        for seed in range(args.seeds):
            for peer in args.peers:
                found = peers[peer](text, args.tokens, args.seconds, seed)
                figures += [{"text": Path(text).name, "peer": peer, "seed": seed} | each for each in found]
                save("quality", figures)
    show(COLUMNS, summary(figures))
    for name, nats, seconds in NANOGPT:
        print(f"tinyshakespeare, {name}: {nats} nats in {seconds:.0f} s")


if __name__ == "__main__":
    main()
