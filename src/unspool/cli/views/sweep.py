"""The table of a sweep: one row per setting, sorted by the score, with mean and standard deviation over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool.cli.output import plain_table
from unspool.cli.sweep_file import Sweep
from unspool.cli.sweep_jobs import HIGHER

ROWS = 30
"""Rows that are printed; --json has all of them."""


def rows_of(sweep: Sweep, jobs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean and the standard deviation of each setting, the best one first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        if job["score"] is not None and job["state"] == "finished":
            groups.setdefault(repr(_setting(sweep, job)), []).append(job)
    rows = [_row(sweep, group) for group in groups.values()]
    return sorted(rows, key=lambda row: row["score"]["mean"] * (-1 if row["score"]["name"] in HIGHER else 1))


def _setting(sweep: Sweep, job: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job["values"].items() if key not in sweep.mean_over}


def _row(sweep: Sweep, group: list[dict[str, Any]]) -> dict[str, Any]:
    sign = -1 if group[0]["score"]["name"] in HIGHER else 1
    best = min(group, key=lambda job: sign * job["score"]["value"])
    return {
        "values": _setting(sweep, group[0]),
        "jobs": len(group),
        "score": _mean(group, "score"),
        "test": _mean(group, "test"),
        "best": best["run"],
    }


def _mean(group: list[dict[str, Any]], field: str) -> dict[str, Any] | None:
    values = [
        job[field]["value"] for job in group if job[field] is not None and job[field]["value"] is not None
    ]
    if not values:
        return None
    name = next(job[field]["name"] for job in group if job[field] is not None)
    spread = statistics.stdev(values) if len(values) > 1 else None
    return {"name": name, "mean": statistics.fmean(values), "std": spread}


def print_rows(console: Console, sweep: Sweep, rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    if not rows:
        return
    keys, first = list(rows[0]["values"]), rows[0]
    figures = [first["score"]["name"], *([first["test"]["name"]] if first["test"] else [])]
    figures = [figure for i, figure in enumerate(figures) if figure not in figures[:i]]
    table = plain_table(*keys, right=("jobs", *figures), wide=True)
    table.add_column("best run")
    for row in rows[:ROWS]:
        cells = [_shown(row["score"]), _shown(row["test"])][: len(figures)]
        table.add_row(
            *(str(row["values"][key]) for key in keys), f"{row['jobs']:,}", *cells, Path(row["best"]).name
        )
    console.print()
    console.print(table)
    if len(rows) > ROWS:
        console.print(f"  … and {len(rows) - ROWS:,} more; --json has all of them")
    if sweep.mean_over and first["jobs"] > 1:
        console.print(f"  mean ± standard deviation over {', '.join(sweep.mean_over)}", style="dim")


def _shown(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "–"
    return f"{figure['mean']:.4f}" + (f" ± {figure['std']:.4f}" if figure["std"] is not None else "")
