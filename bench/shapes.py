"""Benchmark one task of each shape against the same network in PyTorch: same initial values, batches and schedule.

    python bench/shapes.py [--seeds 3] [--threads 2] [--shapes one-to-one …] [--scale 1.0]

Both train for the same number of updates per seed, alternately. The score is on held-out examples: mean, minimum and maximum
over seeds. Seconds are wall time of training only, the best of the seeds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch.nn.functional import cross_entropy

import torch
from dates import pairs
from summary import copy_examples
from table import save, show
from unspool.data.batches.examples import Examples, SequenceBatch, cycle_batches
from unspool.data.encoders import TokenEncoder
from unspool.kernels.native import set_threads
from unspool.model.decode import beam
from unspool.model.network import Model
from unspool.model.sequence_config import BOS, EOS, SequenceConfig
from unspool.model.sequence_network import Network
from unspool.optimisers.adam import Adam
from unspool.optimisers.schedules.cosine import Cosine
from unspool.torch.state_dict import to_torch
from unspool.training.loop import updates
from unspool.training.objectives import SequenceObjective
from unspool.training.recipe import FitConfig

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
]
TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@dataclass(frozen=True)
class Task:
    """Training and test examples, and a network for them."""

    config: SequenceConfig
    train: Examples
    test: Examples
    steps: int
    B: int = 32
    learning_rate: float = 4e-3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = {
        "one-to-one": one_to_one, "many-to-one": many_to_one, "many-to-many": many_to_many,
        "one-to-many": one_to_many, "encoder-decoder": encoder_decoder,
    }  # fmt: skip
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", default=list(tasks), choices=list(tasks))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of updates")
    options = parser.parse_args()
    set_threads(options.threads)
    torch.set_num_threads(options.threads)
    rows = [compare(shape, tasks[shape](), options.scale, options.seeds) for shape in options.shapes]
    show(
        ["shape", "updates", "score", "", "PyTorch's", "", "seconds", "PyTorch's", "times faster"],
        [
            [
                row["shape"], row["updates"], *format_scores(row["scores"]), *format_scores(row["torch_scores"]),
                f"{row['seconds']:.2f}", f"{row['torch_seconds']:.2f}", f"{row['times_faster']:.2f}",
            ]
            for row in rows
        ],
    )  # fmt: skip
    save("shapes", {"threads": options.threads, "torch": torch.__version__, "rows": rows})


def format_scores(scores: list[float]) -> tuple[str, str]:
    return f"{np.mean(scores):.3f}", f"{min(scores):.3f} … {max(scores):.3f}"


def compare(shape: str, task: Task, scale: float, seeds: int) -> dict:
    steps = max(1, int(task.steps * scale))
    held = list(task.test.batches(256, per_step=task.config.per_step))
    scores, theirs, seconds = [], [], []
    for seed in range(seeds):
        network = Network.initialise(task.config, seed)
        twin = TorchNetwork(network)
        fit = FitConfig(steps=steps, batch_size=task.B, learning_rate=task.learning_rate, seed=seed)
        batches = cycle_batches(task.train, fit.batch_size, fit.seed, per_step=task.config.per_step)
        chosen = [next(batches) for _ in range(steps)]
        seconds.append((spent(learn(network, chosen, fit)), spent(twin._learn(chosen, fit))))
        scores.append(score(network, held))
        theirs.append(float(np.mean(np.concatenate([twin._right(batch) for batch in held]))))
        print(shape, seed, scores[-1], theirs[-1], seconds[-1], flush=True)
    ours, others = (min(each) for each in zip(*seconds, strict=True))
    return {
        "shape": shape,
        "updates": steps,
        "scores": scores,
        "torch_scores": theirs,
        "seconds": ours,
        "torch_seconds": others,
        "times_faster": others / ours,
    }


def spent(updates: Iterator[None]) -> float:
    next(updates)  # the first one allocates
    begin = time.perf_counter()
    for _ in updates:
        pass
    return time.perf_counter() - begin


def learn(network: Network, batches: list[SequenceBatch], fit: FitConfig) -> Iterator[None]:
    optimiser = Adam(learning_rate=fit.learning_rate, clip=1.0)
    rate = Cosine(len(batches), warmup=max(1, len(batches) // 20))
    for _ in updates(SequenceObjective(network), batches, optimiser, schedule=rate):
        yield


def score(network: Network, batches: list[SequenceBatch]) -> float:
    """Return the fraction of correct targets, or of correct rows if the output is generated."""
    right, weights = [], network.weights()
    for batch in batches:
        if network.config.has_decoder:
            written = beam(network, batch, weights, max_length=len(batch.y) + 4)
            truth = [batch.y[: n - 1, b].tolist() for b, n in enumerate(batch.target_lengths)]
            right.append([each.tokens.tolist() == row for each, row in zip(written, truth, strict=True)])
        else:
            found = network.outputs(batch, weights).argmax(-1)
            right.append((found == batch.y)[batch.y >= 0])
    return float(np.mean(np.concatenate(right)))


class TorchNetwork(torch.nn.Module):
    """The same network in idiomatic PyTorch: packed sequences, a mask over attention."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.config = config = network.config
        self.encoder, self.read_table = self._layers(network.encoder)
        self.decoder = self.write_table = None
        if network.decoder:
            self.decoder, self.write_table = self._layers(network.decoder)
        p = {name: torch.tensor(np.array(value)) for name, value in network.parameters.items()}
        self.head = torch.nn.Linear(config.width, config.K)
        self.head.weight.data, self.head.bias.data = p["V"], p["c"]
        self.A = self.C = None
        if config.attention == "general":
            self.A = torch.nn.Parameter(p["attention.A"])
            self.C = torch.nn.Linear(*p["attention.C"].shape[::-1])
            self.C.weight.data, self.C.bias.data = p["attention.C"], p["attention.a"]

    @staticmethod
    def _layers(model: Model) -> tuple[torch.nn.Module, torch.nn.Module | None]:
        config = model.config
        kind = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[config.cell]
        made = kind(
            config.embedding or config.inputs,
            config.hidden,
            config.layers,
            bidirectional=config.bidirectional,
        )
        made.load_state_dict(
            {name: torch.tensor(value) for name, value in to_torch(config, model.parameters).items()}
        )
        table = None
        if config.embedding:
            table = torch.nn.Embedding.from_pretrained(
                torch.tensor(model.parameters["E"].copy()), freeze=False
            )
        return made, table

    def _read(self, batch: SequenceBatch) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.from_numpy(batch.x)
        x = self.read_table(x.long()) if self.read_table is not None else x
        if (batch.lengths == len(batch.x)).all():
            return self.encoder(x)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x, torch.from_numpy(batch.lengths), enforce_sorted=False
        )
        out, end = self.encoder(packed)
        return torch.nn.utils.rnn.pad_packed_sequence(out)[0], end

    def _start(self, end: torch.Tensor) -> torch.Tensor:
        return end.reshape(self.config.layers, -1, end.shape[1], self.config.hidden).sum(1)

    def _write(self, h: torch.Tensor, e: torch.Tensor, lengths: np.ndarray) -> torch.Tensor:
        if self.A is not None:
            s = torch.einsum("tbh,lbh->btl", h, e @ self.A.T) / self.config.hidden**0.5
            beyond = torch.arange(len(e)) >= torch.from_numpy(lengths)[:, None]
            alpha = torch.softmax(s.masked_fill(beyond[:, None], -torch.inf), 2)
            h = torch.tanh(self.C(torch.cat([torch.einsum("btl,lbh->tbh", alpha, e), h], 2)))
        return self.head(h)

    def _loss(self, batch: SequenceBatch) -> torch.Tensor:
        e, end = self._read(batch)
        y = torch.from_numpy(batch.y).long()
        if self.config.per_step:
            o = self.head(e)
        elif not self.config.has_decoder:
            D = 2 if self.config.bidirectional else 1
            o = self.head(end[-D:].transpose(0, 1).reshape(end.shape[1], -1))
        else:
            first = torch.full((1, y.shape[1]), BOS)
            before = self.write_table(torch.cat([first, y[:-1].clamp(min=0)]))
            o = self._write(self.decoder(before, self._start(end))[0], e, batch.lengths)
        return cross_entropy(o.reshape(-1, o.shape[-1]), y.reshape(-1), ignore_index=-1)

    def _learn(self, batches: list[SequenceBatch], fit: FitConfig) -> Iterator[None]:
        adam = torch.optim.Adam(self.parameters(), fit.learning_rate)
        rate = Cosine(len(batches), warmup=max(1, len(batches) // 20))
        for step, batch in enumerate(batches):
            for group in adam.param_groups:
                group["lr"] = fit.learning_rate * rate(step)
            adam.zero_grad(set_to_none=True)
            self._loss(batch).backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            adam.step()
            yield

    @torch.no_grad()
    def _right(self, batch: SequenceBatch) -> np.ndarray:
        e, end = self._read(batch)
        if self.config.per_step:
            return (self.head(e).argmax(-1).numpy() == batch.y)[batch.y >= 0]
        if not self.config.has_decoder:
            D = 2 if self.config.bidirectional else 1
            o = self.head(end[-D:].transpose(0, 1).reshape(end.shape[1], -1))
            return o.argmax(-1).numpy() == batch.y
        state, last, written = self._start(end), torch.full((1, batch.B), BOS), []
        for _ in range(len(batch.y) + 4):
            h, state = self.decoder(self.write_table(last), state)
            last = self._write(h, e, batch.lengths).argmax(-1)
            written.append(last[0].numpy())
        found = np.stack(written, 1)
        return np.array(
            [
                row.tolist()[:n] == batch.y[:n, b].tolist()
                for b, (row, n) in enumerate(zip(found, batch.target_lengths, strict=True))
            ]
        )


def digits(arrangement: tuple[int, ...]) -> tuple[Examples, Examples]:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = ((x - x.mean()) / x.std()).astype(np.float32).reshape(len(x), *arrangement)
    y, order = y.astype(np.int32), np.random.default_rng(0).permutation(len(x))
    return Examples(x[order[:1400]], y[order[:1400]]), Examples(x[order[1400:]], y[order[1400:]])


def one_to_one() -> Task:
    train, test = digits((1, 64))
    return Task(SequenceConfig("one-to-one", "classes", 64, 10, dense=True, hidden=64), train, test, 400)


def many_to_one() -> Task:
    train, test = digits((64, 1))
    config = SequenceConfig("many-to-one", "classes", 1, 10, dense=True, hidden=96, chrono_steps=64)
    return Task(config, train, test, 600)


def many_to_many() -> Task:
    config = SequenceConfig("many-to-many", "classes", 10, 9, hidden=96, embedding=16, chrono_steps=30)
    rng = np.random.default_rng(0)
    return Task(config, copy_examples(8000, 10, rng), copy_examples(300, 10, rng), 500, B=50)


def spelled(n: int) -> str:
    if n < 16:
        return ONES[n]
    if n < 20:
        return {18: "eighteen"}.get(n, f"{ONES[n - 10]}teen")
    return f"{TENS[n // 10]}{'' if n % 10 == 0 else ' ' + ONES[n % 10]}"


def one_to_many() -> Task:
    words = [spelled(n) for n in range(100)]
    coder = TokenEncoder.fit(words, tokens="char")
    x = [np.array([n], np.int32) for n in range(100)]
    y = [np.append(ids, EOS).astype(np.int32) for ids in coder.encode(words)]
    config = SequenceConfig("one-to-many", "classes", 100, coder.size, hidden=96, embedding=32)
    return Task(config, Examples(x * 20, y * 20), Examples(x, y), 500, B=50)


def encoder_decoder() -> Task:
    (x, y), (test, truth) = pairs(6000, np.random.default_rng(0), 500)
    source, target = TokenEncoder.fit(x, tokens="char"), TokenEncoder.fit(y, tokens="char")
    train, held = (
        Examples(source.encode(a), [np.append(ids, EOS).astype(np.int32) for ids in target.encode(b)])
        for a, b in ((x, y), (test, truth))
    )
    config = SequenceConfig(
        "encoder-decoder", "classes", source.size, target.size, hidden=96, embedding=24, bidirectional=True,
        attention="general",
    )  # fmt: skip
    return Task(config, train, held, 500, B=64)


if __name__ == "__main__":
    main()
