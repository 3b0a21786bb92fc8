"""The whole walk on one page.

    text ─▶ tokens ─▶ batches ─▶ model ─▶ loss ─▶ gradients ─▶ update ─▶ report

`run` is a generator: after each stage it gives an event, and whoever runs it draws, prints or writes that down.
Nothing here prints.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from unspool.config import ModelConfig, at_least
from unspool.counting.kneser_ney import kneser_ney
from unspool.counting.ngram import NgramCounts, count_ngrams
from unspool.data.batches import Batch, SequentialBatches, sequential_batches
from unspool.data.corpus import Corpus, prepare
from unspool.errors import InputError
from unspool.evaluate import Network, evaluate
from unspool.measure import Measure, measure
from unspool.model import Model
from unspool.optimise import Optimiser, OptimiserConfig
from unspool.schedule import Cosine, updates_within
from unspool.train import Report, train
from unspool.values import CellName

SMOOTH = 50
"""Over about how many updates the training loss is averaged for the eye."""


@dataclass(frozen=True)
class RunConfig:
    """All that a run depends on, besides the text."""

    sources: tuple[str, ...] = ("builtin:python-docs",)
    """Files, folders, - or builtin:…"""
    tokens: str = "char"
    """The kind of tokens."""
    cell: CellName = "gru"
    """elman, gru or lstm."""
    hidden: int = 256
    """H."""
    dropout: float = 0.3
    """The share of a layer's outputs that is dropped in training."""
    B: int = 16
    """Rows side by side."""
    tau: int = 64
    """Steps in a window."""
    learning_rate: float = 6e-3
    """Adam's, at its highest."""
    clip: float = 1.0
    """The largest norm of a gradient."""
    steps: int | None = None
    """How many updates; None: as many as fit into the seconds."""
    seconds: float = 40.0
    """How long to train."""
    validations: int = 20
    """How often the validation part is scored on the way."""
    order: int = 6
    """The longest n-grams of the baselines."""
    seed: int = 0
    """Where all random numbers come from."""

    def __post_init__(self) -> None:
        for name, least in (("B", 1), ("tau", 1), ("validations", 1), ("order", 1), ("seed", 0)):
            at_least(name, getattr(self, name), least)
        if self.steps is not None:
            at_least("steps", self.steps, 1)
        if not 0 < self.seconds <= 1e6:
            raise InputError(f"seconds is {self.seconds}; expected a number above 0 and at most a million")


@dataclass(frozen=True)
class Prepared:
    """The text is numbered and cut into parts; this is what the first minibatch looks like."""

    corpus: Corpus
    first: Batch


@dataclass(frozen=True)
class Baseline:
    """A model that only counts, and how well it predicts: the lines that a network has to cross."""

    name: str
    valid: Measure
    test: Measure


@dataclass(frozen=True)
class Planned:
    """The model is there, untrained, and the number of updates is fixed in the config."""

    model: Model
    config: RunConfig


@dataclass(frozen=True)
class Step:
    """One update."""

    report: Report
    seconds: float
    """Spent on updates so far."""
    train: float
    """The mean nats of about the last `SMOOTH` updates."""
    valid: Measure | None
    """The validation part, on the updates where it is scored."""


@dataclass(frozen=True)
class Judged:
    """The trained model, and the test part by it."""

    model: Model
    test: Measure


Event: TypeAlias = Prepared | list[Baseline] | Planned | Step | Judged


def run(config: RunConfig) -> Iterator[Event]:
    """Take a text all the way to a trained and measured model."""
    corpus = prepare(config.sources, tokens=config.tokens)
    yield Prepared(corpus, next(batches_of(corpus, config)))
    yield baselines(corpus, config.order)
    model = Model.fresh(model_config(corpus, config), config.seed)
    config = plan(corpus, config)
    yield Planned(model, config)
    yield from steps(model, corpus, config)
    yield Judged(model, evaluate(Network(model), corpus, corpus.test))


def model_config(corpus: Corpus, config: RunConfig) -> ModelConfig:
    """Say what the network is made of: one-hot tokens, one layer, an output over the vocabulary."""
    K = len(corpus.vocab)
    return ModelConfig(inputs=K, outputs=K, cell=config.cell, hidden=config.hidden, dropout=config.dropout)


def batches_of(corpus: Corpus, config: RunConfig) -> SequentialBatches:
    """Make the minibatches of the training part, in sequence, so that the state can be carried."""
    return sequential_batches(corpus.train.ids, config.B, config.tau, np.random.default_rng(config.seed))


def baselines(corpus: Corpus, order: int) -> list[Baseline]:
    """Judge the uniform distribution and Kneser-Ney of every order up to this one."""
    K = len(corpus.vocab)
    held_out = (corpus.valid, corpus.test)
    uniform = (
        measure(np.full(len(part.ids) - 1, -math.log(K)), *corpus.widths_after_first(part))
        for part in held_out
    )
    found = [Baseline("uniform", *uniform)]
    counts = count_ngrams(corpus.train.ids, K, order)
    for n in range(1, order + 1):
        model = kneser_ney(NgramCounts(counts.levels[:n], K, counts.tokens))
        found.append(Baseline(f"{n}-grams", *(evaluate(model, corpus, part) for part in held_out)))
    return found


def lines_to_cross(found: list[Baseline]) -> list[Baseline]:
    """Choose the baselines that a picture has room for: the lowest four and the highest order."""
    return [each for n, each in enumerate(found) if n < 4 or n == len(found) - 1]


def plan(corpus: Corpus, config: RunConfig) -> RunConfig:
    """Fix the number of updates, unless it is given: a throw-away model is trained for a moment."""
    if config.steps is not None:
        return config
    model = Model.fresh(model_config(corpus, config), config.seed)
    updates = train(model, batches_of(corpus, config), Optimiser(OptimiserConfig()), seed=config.seed)
    return replace(config, steps=updates_within(config.seconds, updates))


def steps(model: Model, corpus: Corpus, config: RunConfig) -> Iterator[Step]:
    """Train, and score the validation part now and then."""
    assert config.steps is not None
    optimiser = Optimiser(OptimiserConfig(learning_rate=config.learning_rate, clip=config.clip))
    reports = train(
        model,
        batches_of(corpus, config),
        optimiser,
        seed=config.seed,
        schedule=Cosine(config.steps, warmup=min(50, config.steps)),
    )
    # Most often at first, when the loss falls fastest: evenly by the square root of time.
    due = set((1 + (config.steps - 1) * np.linspace(0, 1, config.validations) ** 2).round().tolist())
    due.add(config.steps)
    spent, mean = 0.0, 0.0
    for number in range(1, config.steps + 1):
        start = time.perf_counter()
        report = next(reports)
        spent += time.perf_counter() - start
        mean += (report.loss - mean) / min(number, SMOOTH)
        valid = evaluate(Network(model), corpus, corpus.valid) if number in due else None
        yield Step(report, spent, mean, valid)
