"""Runs in a terminal: a list, a comparison, and everything about one."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unspool.cli.output import counted, plain_table
from unspool.cli.run_summary import DAMAGED, FINISHED, RESUMABLE, RunSummary
from unspool.cli.views.chart import chart

MARGIN = 12
ROW = 200
"""Characters of a row in a file, besides the name of the run."""
LEAST = ("data", "size", "date", "kind", "updates", "model")
"""Columns of the list that a narrow terminal leaves out, the first of them first."""
SHORT = {"perplexity": "ppl", "accuracy": "acc"}
"""Names of figures in the list."""
COLOURS = {FINISHED: "green", RESUMABLE: "cyan", DAMAGED: "yellow"}


def print_runs(console: Console, found: Sequence[RunSummary]) -> None:
    """Print a row per run; a narrow terminal leaves out columns, so that a row stays a line."""
    if not console.is_terminal:  # a row is a line, for grep
        console.width = max((len(each.run) for each in found), default=0) + ROW
    rows, unlimited = [_cells(each) for each in found], console.options.update(max_width=10**6)
    for left_out in range(len(LEAST) + 1):
        table = _list(rows, set(LEAST[:left_out]))
        if not console.is_terminal or console.measure(table, options=unlimited).maximum <= console.width:
            break
    console.print(table)


def _cells(run: RunSummary) -> dict[str, str | Text]:
    updates = run.state if run.state == DAMAGED else _updates(run)
    return {
        "run": Text(run.run, overflow="fold"),
        "kind": run.kind,
        "data": ", ".join(name.rstrip("/").rpartition("/")[2] for name in run.data),
        "model": "" if run.cell is None else f"{run.cell} {run.hidden}",
        "updates": Text(updates, COLOURS[run.state]),
        "valid": _number(run.valid),
        "test": _test(run),
        "size": _bytes(run.bytes),
        "date": (run.started or "")[:10],
    }


def _list(rows: Sequence[dict[str, str | Text]], hidden: set[str]) -> Table:
    table = plain_table(gap=1)
    shown = [name for name in rows[0] if name not in hidden]
    for name in shown:
        table.add_column(
            name, justify="right" if name in ("valid", "test", "size") else "left", no_wrap=name != "run"
        )
    for row in rows:
        table.add_row(*(row[name] for name in shown))
    return table


def differing(found: Sequence[RunSummary]) -> dict[str, list[Any]]:
    """Return the hyper-parameters that are not the same in all runs: the value of each run, None where it has none."""
    names = dict.fromkeys(name for each in found for name in each.options)
    values = {name: [each.options.get(name) for each in found] for name in names}
    return {name: row for name, row in values.items() if any(value != row[0] for value in row)}


def print_comparison(console: Console, found: Sequence[RunSummary]) -> None:
    """Print a column per run: hyper-parameters that differ, progress, figures; runs that do not fit stand below."""
    names = [Path(each.run).resolve().name for each in found]
    names = names if len(set(names)) == len(names) else [each.run for each in found]
    rows = [("", names), ("kind", [each.kind for each in found])]
    rows += [(name, [_value(value) for value in row]) for name, row in differing(found).items()]
    rows += [("", [""] * len(found)), *_progress(found)]
    left = max(len(name) for name, _ in rows)
    widths = [2 + max(len(row[i]) for _, row in rows) for i in range(len(found))]
    room = console.width if console.is_terminal else sum(widths) + left
    for start, end in _fitting(widths, room - left):
        for name, row in rows:
            cells = "".join(f"{row[i]:>{widths[i]}}" for i in range(start, end))
            style = "bold" if row is names else "bold green" if name == "test" else ""
            console.print(Text(f"{name:{left}}{cells}".rstrip(), style))
        if end < len(found):
            console.print()


def _fitting(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Return the first and the last column, exclusive, of tables that are no wider than the room.

    >>> _fitting([4, 4, 4, 9], 8)
    [(0, 2), (2, 3), (3, 4)]
    """
    starts = [0]
    for i in range(1, len(widths)):
        if sum(widths[starts[-1] : i + 1]) > room:
            starts.append(i)
    return list(zip(starts, [*starts[1:], len(widths)], strict=True))


def _progress(found: Sequence[RunSummary]) -> list[tuple[str, list[str]]]:
    return [
        ("state", [each.state for each in found]),
        ("parameters", [_count(each.parameters) for each in found]),
        ("updates", [_updates(each) for each in found]),
        ("seconds", ["–" if each.seconds is None else f"{each.seconds:,.1f}" for each in found]),
        ("best valid", [_number(each.valid) for each in found]),
        ("test", [_test(each) for each in found]),
        ("size", [_bytes(each.bytes) for each in found]),
    ]


def show_run(console: Console, found: RunSummary, given: set[str], commands: Sequence[str]) -> None:
    """Print everything about a run: data, hyper-parameters, learning curve, figures, provenance, next commands."""
    state = Text.assemble((found.state, COLOURS[found.state]), f", {_bytes(found.bytes)}")
    _row(console, "run", Text.assemble((found.run, "bold"), f": {found.kind or 'unknown kind'}, ", state))
    if found.error is not None:
        _row(console, "damaged", Text(found.error, "yellow"))
    sha256 = str(found.provenance.get("data_sha256") or "")
    if found.data or sha256:
        _row(console, "data", Text(", ".join(found.data) + f" (SHA-256 {sha256[:16]}…)" * bool(sha256)))
    if found.cell is not None:
        parameters = f", {found.parameters:,} parameters" if found.parameters is not None else ""
        bf16 = ", products in bf16" * (found.options.get("precision") == "bf16")
        _row(console, "model", Text(f"{found.cell.upper()}, H = {found.hidden}{bf16}{parameters}"))
    if found.planned is not None:
        spent = "" if found.seconds is None else f" in {found.seconds:,.1f} s"
        final = "" if found.final is None else ": of the measured model + of the final one on the whole text"
        _row(console, "training", Text(f"{_updates(found)} updates{spent}{final}"))
    _show_options(console, found, given)
    _show_curve(console, found)
    _show_figures(console, found)
    if found.provenance:
        _row(console, "made with", Text(_provenance(found.provenance, found.options.get("precision"))))
    for number, command in enumerate(commands):
        _row(console, "" if number else "next", Text(command, "green"))


def _show_options(console: Console, found: RunSummary, given: set[str]) -> None:
    options = {key: _value(value) for key, value in found.options.items() if value is not None}
    for name, wanted in (("given", True), ("chosen", False)):
        pairs = [f"{key} {value}" for key, value in options.items() if (key in given) is wanted]
        if pairs:
            _row(console, name, Text(" · ".join(pairs)))


def _show_curve(console: Console, found: RunSummary) -> None:
    if len(found.curve) < 2:
        return
    end = float(found.planned or found.curve[-1]["step"])
    points = [(math.sqrt(each["step"]), each["valid"]) for each in found.curve]
    lines = []
    if found.kind == "language":
        nats = {
            each.model: math.log(each.value)
            for each in found.figures
            if each.value and each.model != "network"
        }
        best = min(nats, key=lambda name: nats[name], default=None)
        lines = [] if best is None else [(best, nats[best])]
    width = max(20, min(60, console.width - MARGIN - 24))
    _row(console, "validation", Text(f"loss over {end:,.0f} updates (square-root scale)"))
    for row in chart(points, lines, end=math.sqrt(end), width=width, height=8):
        console.print(Text(" " * MARGIN + row.rstrip(), "dim"))


def _show_figures(console: Console, found: RunSummary) -> None:
    if not found.figures:
        return
    measured = ", by the measured model; the run's model was trained on the whole text" * bool(
        found.options.get("final") and found.test and found.state == FINISHED
    )
    _row(console, "scores", Text(f"on {found.part or 'valid'}{measured}"))
    width = max(len(each.model) for each in found.figures)
    for each in found.figures:
        line = f"{each.model:{width}}  {each.name} {_number(each.value)}"
        console.print(Text(" " * MARGIN + line, "bold green" if each.model.endswith("network") else ""))


def _provenance(made: dict[str, Any], precision: str | None) -> str:
    names = ("unspool", "python", "numpy", "isa", *["bf16"] * (precision == "bf16"))
    versions = [f"{name} {made[name]}" for name in names if made.get(name)]
    threads = [counted(made["threads"], "thread")] if made.get("threads") else []
    parent = made.get("from")
    start = [f"from the model of {parent.get('run')}"] if isinstance(parent, dict) else []
    return ", ".join(
        [*start, *versions, *threads, *(str(made[name]) for name in ("cpu", "started") if made.get(name))]
    )


def _row(console: Console, name: str, content: Text) -> None:
    """Print a line with a name in the margin; long content is wrapped beside it in a terminal."""
    head = Text(f"{name:{MARGIN}}", "bold cyan")
    if not console.is_terminal:
        console.print(head + content)
        return
    grid = Table.grid(padding=0)
    grid.add_row(head, content)
    console.print(grid)


def _updates(found: RunSummary) -> str:
    if found.steps is None:
        return "–"
    final = "" if found.final is None else f" + {_of(found.final.steps, found.final.planned)}"
    return _of(found.steps, found.planned) + final


def _of(done: int, planned: int | None) -> str:
    return f"{done:,}/{planned:,}" if planned is not None and done < planned else f"{done:,}"


def _test(run: RunSummary) -> str:
    """Return the main figure; a run without a test part has the figure of its validation part, marked as such."""
    if (figure := run.test) is None:
        return "–"
    marked = " (valid)" if run.part == "valid" else ""
    return f"{SHORT.get(figure.name, figure.name)} {_number(figure.value)}{marked}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _value(value: Any) -> str:
    return (
        value if isinstance(value, str) else "–" if value is None else json.dumps(value, ensure_ascii=False)
    )


def _bytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"
