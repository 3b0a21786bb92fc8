"""Bias, variance and cost of full, truncated and random BPTT, on a task whose dependency length is known.

The task: y(t) = x(t - D), so the only useful gradient comes from a lag of D steps. A network is trained briefly;
then, on one minibatch, the gradient of U, W and b of each estimator is compared with the full one:

    bias      ‖E[g] - full‖ / ‖full‖      (for random truncation: the mean of many draws, ± standard error)
    spread    √E‖g - E[g]‖² / ‖full‖      (standard deviation over the draws; 0 for fixed truncation)
    cost      microseconds per step of the text, including all updates, one thread
    learned   the loss after the same text, trained with each estimator from the same initial values

    python bench/truncation.py [--delay 8] [--draws 2000] [--picture truncation.png]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from table import save, show
from unspool import Adam, Model, ModelConfig, set_threads, train
from unspool.gradients.bptt import backpropagate
from unspool.gradients.truncation import FULL, CarriedState, Truncation

TAU, B, K, H = 48, 16, 4, 32
CUTS = [1, 2, 4, 6, 8, 12, 16, 24]
CHANCES = [0.5, 0.75, 0.875, 0.9375, 0.96875]


@dataclass
class Window:
    """Random tokens and the tokens D steps before; the text continues from window to window."""

    x: np.ndarray
    y: np.ndarray
    reset: bool


def windows(delay: int, count: int, seed: int) -> Iterator[Window]:
    text = np.random.default_rng(seed).integers(0, K, (count * TAU, B)).astype(np.int32)
    late = np.concatenate([np.full((delay, B), -1, np.int32), text[:-delay]])
    for at in range(0, len(text), TAU):
        yield Window(text[at : at + TAU], late[at : at + TAU], at == 0)


def reset() -> Model:
    return Model.initialise(ModelConfig(inputs=K, outputs=K, cell="elman", hidden=H), seed=0)


def optimiser() -> Adam:
    return Adam(learning_rate=4e-3)


def gradient_of(model: Model, window: Window, how: Truncation, step: int = 0) -> np.ndarray:
    """Return the gradient of one minibatch by an estimator, summed over its segments, without V and c."""
    gradient, total = model.gradient(), np.zeros(model.parameters.flat.shape)
    carried = CarriedState(how)
    for segment in carried.segments([window]):
        gradient.clear()
        tau = len(segment.x)
        passed = backpropagate(
            model, segment.x, segment.y, segment.state, gradient, scale=1 / window.y.size,
            xi=how.xi(tau, B, seed=1, step=step), carry_after=segment.carry_after,
        )  # fmt: skip
        model.fold_input_tables(gradient)
        carried.leave(segment, passed.at)
        total += gradient.flat
    parts = model.parameters.like()
    parts.flat[:] = total
    return np.concatenate([parts[name].reshape(-1) for name in parts if name.startswith("layer")]).astype(
        float
    )


def judge(model: Model, window: Window, how: Truncation, draws: int) -> tuple[float, float, float]:
    """Return bias, its standard error, and standard deviation."""
    full = gradient_of(model, window, FULL)
    found = np.stack(
        [gradient_of(model, window, how, step) for step in range(draws if how.kind == "random" else 1)]
    )
    mean = found.mean(axis=0)
    spread = float(((found - mean) ** 2).sum(axis=1).mean())
    chance = spread / len(found)  # the mean of many draws is itself off by so much
    bias = max(0.0, float(((mean - full) ** 2).sum()) - chance)
    norm = float(np.linalg.norm(full))
    return math.sqrt(bias) / norm, math.sqrt(chance) / norm, math.sqrt(spread) / norm


def learned(delay: int, how: Truncation, text: int) -> tuple[float, float]:
    """Return the final loss and the microseconds per step of the text."""
    model, begin = reset(), time.perf_counter()
    reports = list(train(model, windows(delay, text, seed=3), optimiser(), bptt=how))
    spent = time.perf_counter() - begin
    last = reports[-max(1, len(reports) // 20) :]
    return sum(r.loss * r.targets for r in last) / sum(r.targets for r in last), 1e6 * spent / (
        text * TAU * B
    )


def look(how: Truncation) -> float:
    """Return the number of steps of backpropagation, at most or on average."""
    if how.kind == "random":
        return (1 - how.P**TAU) / (1 - how.P)
    return how.K2 if how.kind == "truncated" else TAU


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=int, default=8)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--text", type=int, default=300, help="windows to learn from")
    parser.add_argument("--trained", type=int, default=60, help="updates before the gradients are judged")
    parser.add_argument("--picture", default="")
    args = parser.parse_args()
    set_threads(1)
    ways = [FULL, *(Truncation("truncated", k, k) for k in CUTS)]
    ways += [Truncation("truncated", min(4, k), k) for k in CUTS if k > 4]
    ways += [Truncation("random", P=p) for p in CHANCES]
    model = reset()
    list(train(model, windows(args.delay, args.trained, seed=2), optimiser()))
    (window,) = windows(args.delay, 1, seed=9)
    figures: list[dict[str, Any]] = []
    for how in ways:
        bias, error, spread = judge(model, window, how, args.draws)
        loss, cost = learned(args.delay, how, args.text)
        figures.append(
            {"bptt": str(how), "kind": how.kind, "K1": how.K1, "look": look(how), "bias": bias, "error": error, "spread": spread,
             "cost": cost, "learned": loss}
        )  # fmt: skip
    columns = ["bptt", "look", "bias", "error", "spread", "cost", "learned"]
    show([*columns[:-2], "µs a step", "nats learned"], [[f[c] for c in columns] for f in figures])
    print(f"dependency: {args.delay} steps; a guess costs ln {K} = {math.log(K):.2f} nats")
    save("truncation", figures)
    if args.picture:
        draw(figures, args.delay, args.picture)


def draw(figures: list[dict[str, Any]], delay: int, path: str) -> None:
    from unspool.plots.figure import BLUE, GREEN, GREY, ORANGE, new_axes
    from unspool.plots.figure import save as save_figure

    groups = {
        "truncated:K": (
            BLUE,
            "o-",
            [f for f in figures if f["kind"] == "truncated" and f["K1"] == f["look"]],
        ),
        "truncated:4,K": (
            GREEN,
            "s-",
            [f for f in figures if f["kind"] == "truncated" and f["K1"] < f["look"]],
        ),
        "random:P": (ORANGE, "^-", [f for f in figures if f["kind"] == "random"]),
        "full": ("black", "D", [f for f in figures if f["kind"] == "full"]),
    }
    figure, axes = new_axes(columns=4, width=3.2, height=3.3)
    panels = {
        "bias": "bias: what the mean misses",
        "spread": "spread over draws",
        "cost": "cost: µs a step, one thread",
        "learned": "nats after the same text",
    }
    for each, (key, title) in zip(axes, panels.items(), strict=True):
        for name, (colour, style, group) in groups.items():
            each.plot(
                [f["look"] for f in group],
                [f[key] for f in group],
                style,
                color=colour,
                label=name,
                markersize=4,
            )
        each.axvline(delay + 1, color=GREY, linewidth=0.8, linestyle=":")
        each.set(xscale="log", xlabel="steps looked back, K or mean", title=title)
        each.set_xticks([1, 2, 4, 8, 16, 48], labels=["1", "2", "4", "8", "16", "48"])
        each.minorticks_off()
        each.title.set_fontsize(10)
        each.set_ylim(0, None)
    random = groups["random:P"][2]
    axes[0].errorbar(
        [f["look"] for f in random],
        [f["bias"] for f in random],
        [f["error"] for f in random],
        fmt="none",
        color=ORANGE,
    )
    axes[0].set_ylim(0, 1.1)
    axes[1].set(yscale="symlog", yticks=[0, 1, 10], yticklabels=["0", "1", "10"], ylim=(0, 30))
    axes[2].set(yscale="log", ylim=(1, None))
    axes[0].legend(frameon=False, fontsize=8)
    axes[3].annotate("the task", (delay + 1, 0.7), (4, 0), textcoords="offset points", fontsize=8, color=GREY)
    axes[3].axhline(math.log(K), color=GREY, linewidth=0.8, linestyle=":")
    save_figure(figure, path)


if __name__ == "__main__":
    main()
