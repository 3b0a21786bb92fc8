"""The table of the network, its baselines and their mean: on the rows set aside, and on held-out data."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from rich.console import Console

from unspool.baselines.sequences.choice import Choice, Judged
from unspool.cli.output import plain_table, title

Columns = Mapping[str, Callable[[Judged], str]]
"""Headings of columns, and what they show of a model on the rows set aside."""
OF_CLASSES: Columns = {
    "accuracy": lambda judged: f"{1 - judged.error:.4f}",
    "nats": lambda judged: f"{judged.loss:.4f}",
}
"""The figures of models of classes."""


def show_models(
    console: Console,
    choice: Choice,
    aside: Columns,
    held_out: str = "",
    figures: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print one line per model; `figures` are those on held-out data, by the names of the models that can answer."""
    if not choice.judged:
        return
    console.print()
    console.print(title("models", f", compared on {choice.rows:,} training sequences set aside\n"))
    table = plain_table("", right=(*aside, *[held_out] * bool(held_out)), wide=True)
    for each in choice.judged:
        cells = [show(each) for show in aside.values()] + [figures.get(each.name, "")] * bool(held_out)
        style = "bold green" if each.name == choice.name else None
        table.add_row(each.name, *cells, style=style)
    console.print(table)
    console.print(f"\nthe model that answers: {choice.name}", style="bold green", highlight=False)


def models_json(choice: Choice, held_out: Mapping[str, float]) -> dict[str, Any]:
    """Return the models as plain values: errors and losses on the rows set aside, the figure on held-out data."""
    rows = [
        {"name": each.name, "error": each.error, "loss": each.loss, "held_out": held_out.get(each.name)}
        for each in choice.judged
    ]
    return {"answers": choice.name, "set_aside": choice.rows, "models": rows}
