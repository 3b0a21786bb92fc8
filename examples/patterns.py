"""Compare patterns: a task that pattern 10.3 learns and pattern 10.4 with tokens fed back cannot learn.

Two tasks over random bits x(t):

    parity   y(t) = y(t-1) xor x(t): the previous output contains all relevant information about the past
    delay    y(t) = x(t-2): the previous output is x(t-3), which is independent of x(t-2)

Pattern 10.4 has only x(t) and the token y(t-1) as inputs. That is enough for parity, but not for the delay: its loss cannot
fall below ln 2 nats. Pattern 10.3 stores past bits in h(t). Pattern 10.4 with logits fed back has the two real values o(t-1)
as input, which can encode past bits besides the answer: it learns the delay, but not as well.

    python examples/patterns.py [--updates 400] [--picture patterns.png]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from axes import BLUE, GREEN, GREY, ORANGE, new_axes

from unspool import Adam, Model, ModelConfig, train

TASKS = {"parity": "parity: y(t) = y(t-1) xor x(t)", "delay": "delay: y(t) = x(t-2)"}
PATTERNS = {"10.3": BLUE, "10.4": ORANGE, "10.4, logits": GREEN}


@dataclass
class Window:
    """Random bits and their targets; the state is reset for each window."""

    x: np.ndarray
    y: np.ndarray
    reset: bool = True


def windows(task: str, count: int, tau: int = 24, B: int = 32, seed: int = 0) -> Iterator[Window]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.integers(0, 2, (tau, B)).astype(np.int32)
        if task == "parity":
            yield Window(x, np.cumsum(x, axis=0).astype(np.int32) % 2)
        else:
            y = np.full((tau, B), -1, np.int32)  # nothing to say at the first two steps
            y[2:] = x[:-2]
            yield Window(x, y)


def learn(task: str, pattern: str, updates: int, seed: int = 0) -> list[float]:
    """Return the loss of each update, in nats per target."""
    figure, _, fed = pattern.partition(", ")
    config = ModelConfig(
        cell="elman", inputs=2, outputs=2, hidden=32, pattern=figure, feedback="logits" if fed else "token"
    )
    optimiser = Adam(learning_rate=5e-3)
    return [
        r.loss
        for r in train(Model.initialise(config, seed), windows(task, updates, seed=seed + 1), optimiser)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--picture", default="")
    args = parser.parse_args()
    curves = {(task, pattern): learn(task, pattern, args.updates) for task in TASKS for pattern in PATTERNS}
    for (task, pattern), losses in curves.items():
        print(
            f"{task:7} pattern {pattern:12}   {np.mean(losses[:10]):.3f} ▶ {np.mean(losses[-20:]):.3f} nats a target"
        )
    print(f"a guess costs ln 2 = {math.log(2):.3f}")
    if args.picture:
        draw(curves, args.picture)


def draw(curves: dict[tuple[str, str], list[float]], path: str) -> None:
    figure, axes = new_axes(columns=2, width=4.6, height=3.4)
    for each, (task, title) in zip(axes, TASKS.items(), strict=True):
        each.axhline(math.log(2), color=GREY, linewidth=0.8, linestyle=":")
        each.annotate("a guess", (0, math.log(2)), (4, 4), textcoords="offset points", fontsize=8, color=GREY)
        for pattern, colour in PATTERNS.items():
            losses = np.convolve(curves[task, pattern], np.ones(10) / 10, "valid")
            each.plot(losses, color=colour, linewidth=1.6, label=f"pattern {pattern}")
        each.set(title=title, xlabel="updates", ylim=(-0.03, 0.95))
        each.title.set_fontsize(10)
    axes[0].set_ylabel("nats a target")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
