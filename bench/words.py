"""Compare word models for a time limit: our network, its 5-grams, their mixture, and a PyTorch GRU with adaptive softmax.

    python bench/words.py FOLDER [--seconds 600] [--seed 0] [--peers unspool torch] [--part test]

FOLDER holds train.txt, valid.txt and test.txt, with spaces between the tokens (WikiText-2). Both networks train for the same
time, one after the other, each in its own process on all cores: ours by `unspool train --minutes`, with no other option than the
tokens, the validation text and the order of the n-grams. The time of both includes the measurement of throughput, training and validation.
Then the part is scored with carried state. The PyTorch model has an embedding, sequential batches with carried state, Adam,
clipping, dropout, and a cosine schedule that ends at the deadline.
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
from unspool.tasks.language.text_model import TextModel

ORDER = 5
CUTOFFS = [2000, 10000]
"""The clusters of PyTorch's adaptive softmax, as its users choose them."""


def score_unspool(folder: Path, part: str, seconds: float, seed: int, run: Path) -> list[dict[str, Any]]:
    """Train and evaluate with the command line; return the figures of network, n-grams and mixture."""
    command = [sys.executable, "-m", "unspool"]
    train = [
        *command,
        "train",
        str(folder / "train.txt"),
        "--valid",
        str(folder / "valid.txt"),
        "--tokens",
        "space",
    ]
    train += [
        "--order",
        str(ORDER),
        "--minutes",
        repr(seconds / 60),
        "--seed",
        str(seed),
        "--out",
        str(run),
        "--json",
    ]
    begin = time.perf_counter()
    done = json.loads(subprocess.run(train, stdout=subprocess.PIPE, text=True, check=True).stdout)
    spent = time.perf_counter() - begin
    recipe = done["config"]["recipe"]
    text = folder / f"{part}.txt"
    judge = [*command, "evaluate", str(run), str(text), "--order", str(ORDER), "--json"]
    judged = json.loads(subprocess.run(judge, stdout=subprocess.PIPE, text=True, check=True).stdout)
    ngrams = next(each for each in judged["baselines"] if each["name"] == f"{ORDER}-grams")
    model = f"{recipe['cell']} H {recipe['hidden']}, {recipe['softmax']}"
    tokens = recipe["steps"] * recipe["B"] * recipe["tau"]
    rows = [{"model": f"unspool, {model}", "seconds": spent, "updates": recipe["steps"], "tokens": tokens, "recipe": recipe}
            | _figures(judged["network"]),
            {"model": f"{ORDER}-grams, Kneser-Ney", "seconds": ngrams["seconds"]} | _figures(ngrams)]  # fmt: skip
    if judged.get("mixture"):
        rows.append({"model": "network + n-grams"} | _figures(judged["mixture"]))
    return rows


def _figures(found: dict[str, Any]) -> dict[str, float]:
    return {"nats": found["nats"], "perplexity": math.exp(found["nats"])}


def score_torch(folder: Path, part: str, seconds: float, seed: int, run: Path) -> list[dict[str, Any]]:
    """Train and score in a separate process that gets the ids of our vocabulary."""
    model = TextModel.load(run)
    texts = {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in ("train", "valid", part)}
    ids = {name: model.encode(text) for name, text in texts.items()}
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "ids.npz"
        np.savez(path, train=ids["train"], valid=ids["valid"], test=ids[part], K=len(model.vocab))
        command = [
            sys.executable,
            __file__,
            "--torch",
            str(path),
            "--seconds",
            str(seconds),
            "--seed",
            str(seed),
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return [found]


def be_torch(
    path: str, seconds: float, seed: int, H: int, B: int, tau: int, rate: float, dropout: float
) -> None:
    """Train a PyTorch GRU with adaptive softmax for a number of seconds, score it, and print the figures as JSON."""
    import torch
    from torch import nn

    begin = time.perf_counter()
    torch.manual_seed(seed)
    data = np.load(path)
    train, K = data["train"].astype(np.int64), int(data["K"])
    cutoffs = [each for each in CUTOFFS if each < K]
    table, gru, drop = nn.Embedding(K, H), nn.GRU(H, H), nn.Dropout(dropout)
    output = nn.AdaptiveLogSoftmaxWithLoss(H, K, cutoffs)
    network = nn.ModuleList([table, gru, drop, output])
    reset = {name: value.clone() for name, value in network.state_dict().items()}
    per_epoch = max(1, (len(train) - 1) // (B * tau))
    rows, follow = (
        torch.from_numpy(train[at : B * per_epoch * tau + at].reshape(B, -1).T.copy()) for at in (0, 1)
    )

    def update(optimiser: Any, step: int, state: Any, share: float) -> Any:
        at = step % per_epoch * tau
        state = None if at == 0 else state
        for group in optimiser.param_groups:
            group["lr"] = rate * share
        h, state = gru(drop(table(rows[at : at + tau])), state)
        loss = output(drop(h).view(-1, H), follow[at : at + tau].reshape(-1)).loss
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        return state.detach()

    def score(ids: Any, window: int = 512) -> float:
        network.eval()
        total, state = 0.0, None
        with torch.no_grad():
            for at in range(0, len(ids) - 1, window):
                here = torch.from_numpy(ids[at : at + window + 1].astype(np.int64))
                h, state = gru(table(here[:-1, None]), state)
                total -= float(output(h[:, 0], here[1:]).output.sum())
        network.train()
        return total / (len(ids) - 1)

    optimiser, state, spans = torch.optim.Adam(network.parameters(), lr=rate), None, []
    until = time.perf_counter() + min(2.0, seconds / 40)
    while len(spans) < 4 or time.perf_counter() < until:
        start = time.perf_counter()
        state = update(optimiser, len(spans), state, 0.0)
        spans.append(time.perf_counter() - start)
    left = seconds - (time.perf_counter() - begin)
    steps = max(1, int(left / sorted(spans[1:])[len(spans) // 2 - 1]))
    network.load_state_dict(reset)
    optimiser, state, step = torch.optim.Adam(network.parameters(), lr=rate), None, 0
    while step < steps and time.perf_counter() - begin < seconds:
        fall = (1 + math.cos(math.pi * step / steps)) / 2
        state = update(optimiser, step, state, min(1.0, (step + 1) / min(100, steps)) * fall)
        step += 1
    spent, nats = time.perf_counter() - begin, score(data["test"])
    print(json.dumps({"model": f"PyTorch, gru H {H}, adaptive {cutoffs}", "nats": nats, "perplexity": math.exp(nats),
                      "seconds": spent, "updates": step, "planned": steps, "tokens": step * B * tau}))  # fmt: skip


PEERS = {"unspool": score_unspool, "torch": score_torch}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="test", choices=["valid", "test"])
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    parser.add_argument("--torch-hidden", type=int, default=256)
    parser.add_argument("--torch-batch", type=int, default=16)
    parser.add_argument("--torch-tau", type=int, default=64)
    parser.add_argument("--torch-rate", type=float, default=3e-3)
    parser.add_argument("--torch-dropout", type=float, default=0.3)
    args = parser.parse_args()
    if args.torch:
        be_torch(args.torch, args.seconds, args.seed, args.torch_hidden, args.torch_batch, args.torch_tau, args.torch_rate, args.torch_dropout)  # fmt: skip
        return
    if args.folder is None:
        parser.error("FOLDER is missing: a folder with train.txt, valid.txt and test.txt")
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as made:
        for peer in [
            "unspool",
            *(each for each in args.peers if each != "unspool"),
        ]:  # the run gives the vocabulary
            found += PEERS[peer](args.folder, args.part, args.seconds, args.seed, Path(made) / "run")
    rows = [
        [each["model"], f"{each['perplexity']:.1f}", f"{each['nats']:.4f}", each.get("seconds", ""), each.get("updates", ""),
         f"{each['tokens']:,}" if "tokens" in each else ""]
        for each in found
    ]  # fmt: skip
    show(
        [f"{args.folder.name}, {args.part}", "perplexity", "nats", "seconds", "updates", "tokens read"], rows
    )
    save("words", found)


if __name__ == "__main__":
    main()
