"""Benchmark learning while reading: characters per second and the time of each part of an update, with one row.

A segment of S targets is read, scored and learned from: pack the parameters, forward pass, loss, backward pass, sums over time
(the gradients of W, U and b), norm and update. Each part is timed by itself, the best of many segments; "whole" is the best of
the reader as it is used. The baseline is the simplest reader, which scores a segment by a forward pass and then learns
from it by `train`, with a second one. With --run, the text is scored by the run's network, static and learning: nats per token.

    python bench/learning.py [--hidden 512] [--segment 32] [--threads 1 2] [--segments 400] [--run RUN --text FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from table import save, show
from unspool import LearningReader, LearningScorer, Model, ModelConfig, NetworkScorer, TextModel, set_threads
from unspool.data.batches.text_windows import Batch
from unspool.evaluation.language import log_prob
from unspool.kernels import native
from unspool.model.layer import add_layer_gradient
from unspool.optimisers import make_optimiser
from unspool.training.dynamic import Learning
from unspool.training.loop import train

K = 66


class Best:
    """The shortest time of each part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, part: str, work: Callable[..., Any], *values: Any, **named: Any) -> Any:
        """Run the work and return its result."""
        begin = time.perf_counter()
        made = work(*values, **named)
        self.seconds[part] = min(self.seconds.get(part, float("inf")), time.perf_counter() - begin)
        return made


def parts(model: Model, learning: Learning, ids: np.ndarray, segments: int) -> dict[str, float]:
    """Time each part of a segment, the best of `segments`."""
    best, gradient, state, S = Best(), model.gradient(), model.initial_state(1), learning.learn_segment
    optimiser = make_optimiser(learning.optimiser, learning_rate=learning.learn_rate)
    for begin in range(0, segments * S, S):
        x, y = (np.ascontiguousarray(ids[begin + i : begin + i + S, None]) for i in (0, 1))
        weights = model.weights()
        (layer,) = weights.layers[0]
        best("pack for the forward pass", _pack, layer, weights)
        best("pack for the backward pass", getattr, layer, "W_backward")
        output = best("forward pass", model.forward, x, state, weights=weights)
        gradient.clear()
        loss = best("loss", model.loss, output, y, scale=1 / S, weights=weights, gradient=gradient)
        found = best("backward pass", _backward, model, output, loss.dh, weights)
        tape, da = output.tape[0], found[0][2][0].da
        best("sums over time", add_layer_gradient, layer, tape.x, tape.directions[0], da, gradient)
        model.fold_input_tables(gradient, weights)
        best("norm", native.global_norm, gradient.flat)
        best("norm and update", optimiser.update, model.parameters, gradient.flat)
        state = [(h.copy(), s) for h, s in output.state]
    best.seconds["update"] = best.seconds.pop("norm and update") - best.seconds["norm"]
    return best.seconds


def _pack(layer: Any, weights: Any) -> Any:
    return layer.W_forward, layer.table, weights.output


def _backward(model: Model, output: Any, dh: Any, weights: Any) -> list[Any]:
    return [*model.layer_gradients(output, dh, weights=weights, consume=True)]


def whole(model: Model, learning: Learning, ids: np.ndarray, segments: int) -> float:
    """Time the reader, the best of `segments`."""
    reader, best, S = LearningReader(model, learning), Best(), learning.learn_segment
    reader.log_prob(ids[:1])
    for begin in range(1, segments * S, S):
        best("whole", reader.log_prob, ids[begin : begin + S])
    return best.seconds["whole"]


def two_passes(model: Model, learning: Learning, ids: np.ndarray, segments: int) -> float:
    """Time the baseline: score a segment, then train on it."""
    best, S, own = Best(), learning.learn_segment, Model(model.config, model.parameters.astype(np.float32))
    optimiser, state = make_optimiser("adam", learning_rate=learning.learn_rate), own.initial_state(1)

    def once(begin: int) -> Any:
        log_prob(own, ids[begin : begin + S + 1])
        batch = Batch(ids[begin : begin + S, None], ids[begin + 1 : begin + S + 1, None], False)
        for _ in train(own, [batch], optimiser, state=state):
            pass

    for begin in range(0, segments * S, S):
        best("two passes", once, begin)
    return best.seconds["two passes"]


def measure(args: argparse.Namespace, threads: int) -> dict[str, Any]:
    set_threads(threads)
    learning = Learning(learn_rate=1e-5, learn_segment=args.segment)
    ids = np.random.default_rng(0).integers(K, size=args.segments * args.segment + 1).astype(np.int32)
    config = ModelConfig(cell="gru", inputs=K, outputs=K, hidden=args.hidden)
    made = [Model.initialise(config, seed=0) for _ in range(3)]
    found = parts(made[0], learning, ids, args.segments)
    total, baseline = (
        work(model, learning, ids, args.segments) for work, model in ((whole, made[1]), (two_passes, made[2]))
    )
    row: dict[str, Any] = {"threads": threads, "hidden": args.hidden, "segment": args.segment}
    row |= {f"{part}, µs": 1e6 * seconds for part, seconds in found.items()}
    row |= {"other, µs": 1e6 * (total - sum(found.values())), "whole, µs": 1e6 * total}
    row["characters/s"] = args.segment / total
    row["two passes, characters/s"] = args.segment / baseline
    return row | {"ratio": baseline / total}


def nats(run: Path, text: Path) -> dict[str, Any]:
    model = TextModel.load(run)
    ids = model.encode(text.read_text(encoding="utf-8"))
    scorers = {"static": NetworkScorer(model.model), "learning": LearningScorer(model.model)}
    return {"text": text.name, "tokens": len(ids)} | {
        name: -float(each.log_prob(ids).mean()) for name, each in scorers.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--segment", type=int, default=32)
    parser.add_argument("--segments", type=int, default=400)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--text", type=Path)
    args = parser.parse_args()
    rows = [measure(args, threads) for threads in args.threads]
    columns = ["", *(f"{row['threads']} threads" for row in rows)]
    show(
        columns,
        [
            [name, *(row[name] if name == "ratio" else f"{row[name]:,.0f}" for row in rows)]
            for name in rows[0]
        ],
    )
    content: dict[str, Any] = {"speed": rows}
    if args.run and args.text:
        content["nats"] = nats(args.run, args.text)
        show([*content["nats"]], [[*content["nats"].values()]])
    save("learning", content)


if __name__ == "__main__":
    main()
