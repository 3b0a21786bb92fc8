"""Tables of `bench/precision.py`."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

from table import show

Figure = dict[str, Any]


def differences(figures: list[Figure], key: str) -> list[float]:
    """Return the losses under `key` minus those of float32, seed by seed."""
    return [figure[key] - figure["float32"] for figure in figures]


def by_model(figures: list[Figure]) -> list[list[Figure]]:
    """Return the figures of each text and cell."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        found.setdefault((figure["text"], figure["cell"]), []).append(figure)
    return list(found.values())


def spread(values: list[float]) -> str:
    """Return mean, standard deviation over the seeds and range."""
    std = f"{statistics.stdev(values):.4f}" if len(values) > 1 else "-"
    return f"{statistics.mean(values):+.4f} ± {std} ({min(values):+.4f} to {max(values):+.4f})"


def print_tables(figures: list[Figure]) -> None:
    """Print the losses by text and cell, and the errors of the gradients."""
    groups = by_model(figures)
    print("\nEqual updates: validation nats per token, mean over the seeds; difference bf16 - float32")
    rows = [
        [*_sizes(group), group[0]["updates"], _mean(group, "float32"), _mean(group, "bf16"), spread(differences(group, "bf16"))]
        for group in groups
    ]  # fmt: skip
    columns = ["text", "tokens", "K", "cell", "H", "seeds"]
    show([*columns, "updates", "float32", "bf16", "mean ± std (range)"], rows)
    print("\nEqual seconds: bf16 has the updates that fit into the seconds of float32")
    key = "bf16_at_equal_seconds"
    rows = [
        [*_sizes(group), "/".join(f"{1e3 * each:.2f}" for each in group[0]["seconds"]), group[0]["updates"],
         group[0]["updates_at_equal_seconds"], _mean(group, "float32"), _mean(group, key), spread(differences(group, key))]
        for group in groups
    ]  # fmt: skip
    times = ["ms float32/bf16", "updates float32", "updates bf16", "float32", "bf16", "mean ± std (range)"]
    show([*columns, *times], rows)
    worst = max(abs(statistics.mean(differences(group, "bf16"))) for group in groups)
    print(f"largest mean difference at equal updates: {worst:.4f} nats (goal: at most 0.005)")
    _print_errors(groups)


def _print_errors(groups: list[list[Figure]]) -> None:
    rows = []
    for figure in itertools.chain.from_iterable(groups):
        for when, errors in figure.get("errors", {}).items():
            for parameter, error in errors["float32"].items():
                rows.append(
                    [figure["text"], figure["cell"], when, parameter, f"{error:.1e}", f"{errors['bf16'][parameter]:.1e}"]
                )  # fmt: skip
    if rows:
        print("\nGradients of one window: norm of the error relative to float64, before and after training")
        show(["text", "cell", "training", "parameter", "float32", "bf16"], rows)


def _sizes(group: list[Figure]) -> list[Any]:
    first = group[0]
    return [first["text"], first["tokens"], first["K"], first["cell"], first["hidden"], len(group)]


def _mean(group: list[Figure], key: str) -> str:
    return f"{statistics.mean(figure[key] for figure in group):.4f}"
