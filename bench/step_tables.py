"""Tables of `bench/train_step.py`: one per kind of inputs and part of the step, ratios, geometric means."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from step_unspool import PARTS
from table import geometric_mean, show

Figure = dict[str, Any]
OURS, BF16 = "unspool float32", "unspool bf16"
TORCH_BF16 = ("torch autocast", "torch bfloat16")
RATIOS: dict[str, tuple[tuple[str, ...], str]] = {
    "bf16 / float32": ((OURS,), BF16),
    "x torch": (("torch float32",), OURS),
    "bf16 x torch bf16": (TORCH_BF16, BF16),
    "bf16 x torch": (("torch float32",), BF16),
    "x jax": (("jax float32",), OURS),
}
"""Speed-ups by name: the time of the fastest of the first, divided by that of the second."""


def group_of(figure: Figure) -> tuple[str, str, int, str]:
    """Return what the cases of one table have in common."""
    return figure["inputs"], figure["part"], figure["K"], figure["width"]


def heading(figure: Figure) -> str:
    """Return what a table compares."""
    if figure["inputs"] == "tokens":
        what = "whole step" if figure["part"] == "step" else "recurrent part"
        if figure["part"] == "step" and not figure["update"]:
            what = "whole step without the update"
        sides = "both sides have an embedding of width H"
        if figure["K"] <= 1024 and not figure["embedding"]:
            sides = "unspool looks up b + U x in a table, PyTorch has Embedding(K, H) and a layer that reads H values"
        return f"Tokens, K = {figure['K']:,}, {what}: {sides}; not the layer alone"
    X = "H" if figure["width"] == "H" else figure["X"]
    if figure["inputs"] == "dense":
        return f"Dense inputs of width {X}, the layer alone: the same arithmetic on both sides"
    return f"Rows of different lengths, dense inputs of width {X}, the layer alone: PyTorch packs, unspool takes the lengths"


def ratio(figure: Figure, name: str, kind: str) -> float | None:
    """Return a speed-up of a case by the best or by the median times; None where a time is missing."""
    times, (others, ours) = figure["milliseconds"], RATIOS[name]
    found = [times[other][kind] for other in others if other in times]
    return min(found) / times[ours][kind] if found and ours in times else None


def means(figures: list[Figure], name: str) -> dict[str, float] | None:
    """Return the geometric means of a speed-up by best and by median, and the least by best."""
    by = {kind: [ratio(figure, name, kind) for figure in figures] for kind in ("best", "median")}
    if None in by["best"]:
        return None
    return {kind: geometric_mean(values) for kind, values in by.items()} | {"least": min(by["best"])}


def by_group(figures: list[Figure]) -> Iterator[list[Figure]]:
    """Yield the cases of each table."""
    for _, group in itertools.groupby(figures, group_of):
        yield list(group)


def summarise(figures: list[Figure], peak: float | None) -> list[dict[str, Any]]:
    """Return the geometric means of every table: by cell, and by cell and H; the share of the peak of our float32."""
    found = []
    for group in by_group(figures):
        for cell in dict.fromkeys(figure["cell"] for figure in group):
            of_cell = [figure for figure in group if figure["cell"] == cell]
            for H in ["all", *dict.fromkeys(figure["H"] for figure in of_cell)]:
                some = [figure for figure in of_cell if H in ("all", figure["H"])]
                ratios = {name: mean for name in RATIOS if (mean := means(some, name))}
                found.append(
                    {key: some[0][key] for key in ("inputs", "part", "K", "width", "cell")}
                    | {"H": H, "heading": heading(some[0]), "ratios": ratios, "of_peak": _of_peak(some, peak)}
                )
    return found


def _of_peak(figures: list[Figure], peak: float | None) -> float | None:
    if peak is None or any(OURS not in figure["milliseconds"] for figure in figures):
        return None
    return geometric_mean(
        [figure["gflop"] * 1e3 / figure["milliseconds"][OURS]["best"] / peak for figure in figures]
    )


def print_tables(figures: list[Figure], summary: list[dict[str, Any]]) -> None:
    """Print a table of times and one of geometric means for every group."""
    for group in by_group(figures):
        print(f"\n{heading(group[0])}\nmilliseconds, best (median); speed-ups, best (median)")
        names = list(dict.fromkeys(n for f in group for n in [*f["milliseconds"], *f["failed"]]))
        ratios = [name for name in RATIOS if any(ratio(f, name, "best") for f in group)]
        show(
            ["cell", "H", "B", "tau", *names, *ratios],
            [[f["cell"], f["H"], f["B"], f["tau"], *(_time(f, n) for n in names), *(_ratio(f, n) for n in ratios)]
             for f in group],
        )  # fmt: skip
        print("geometric means over B and tau, best (median), least:")
        rows = [
            [each["cell"], each["H"], *(_mean(each["ratios"].get(name)) for name in ratios), _share(each["of_peak"])]
            for each in summary
            if group_of(group[0]) == group_of(each)
        ]  # fmt: skip
        show(["cell", "H", *ratios, "float32 of peak"], rows)


def _time(figure: Figure, name: str) -> str:
    if name in figure["failed"]:
        return figure["failed"][name][:24]
    times = figure["milliseconds"][name]
    return f"{times['best']:.2f} ({times['median']:.2f})"


def _ratio(figure: Figure, name: str) -> str:
    best, median = ratio(figure, name, "best"), ratio(figure, name, "median")
    return "-" if best is None else f"{best:.2f} ({median:.2f})"


def _mean(mean: dict[str, float] | None) -> str:
    return "-" if mean is None else f"{mean['best']:.2f} ({mean['median']:.2f}), {mean['least']:.2f}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def print_profile(figures: list[Figure]) -> None:
    """Print the milliseconds of every part of our step, best (median), and its share of the best times' sum."""
    for group in by_group(figures):
        print(f"\n{heading(group[0])}\nparts of our step: milliseconds, best (median), share of the step")
        rows = []
        for figure, name in itertools.product(group, (OURS, BF16)):
            if name in figure["failed"] or name not in figure["milliseconds"]:
                continue
            parts = figure["milliseconds"][name]
            whole = sum(part["best"] for part in parts.values())
            sizes = [figure["cell"], figure["H"], figure["B"], figure["tau"], name.split()[1]]
            rows.append([*sizes, f"{whole:.2f}", *(_part(parts.get(part), whole) for part in PARTS)])
        show(["cell", "H", "B", "tau", "precision", "sum", *PARTS], rows)


def _part(part: dict[str, float] | None, whole: float) -> str:
    if part is None:
        return "-"
    return f"{part['best']:.2f} ({part['median']:.2f}) {100 * part['best'] / whole:.0f} %"
