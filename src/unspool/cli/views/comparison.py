"""Text that compares a network with n-gram baselines: in training, in the result, and in `evaluate`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from unspool.baselines.language import NGRAMS, best_of
from unspool.cli.output import plain_table
from unspool.evaluation.metrics import Metrics
from unspool.training.events import Baseline, RunConfig

PARTS = {
    "valid": "validation split (it also selected the model: slightly optimistic)",
    "test": "test split",
    "train": "training split",
}
"""How a part is called where figures on it are shown."""
NO_MEMORY = "no mixture: counting n-grams may need more memory than is free"
NOT_MIXED = (
    "no mixture: the run has none for this network; it was not trained to the end, or by an older version"
)
"""Why a run has no mixture of its network with n-grams."""


class Row(NamedTuple):
    """A baseline, its figures on the part that is shown, and its cost."""

    name: str
    measure: Metrics
    seconds: float | None = None
    counts: int | None = None


def rows_of(baselines: Sequence[Baseline], part: str) -> list[Row]:
    """Return the figures of baselines on a part of their corpus: "valid" or "test"."""
    return [Row(each.name, getattr(each, part), each.seconds, each.counts) for each in baselines]


def measures_table(rows: Sequence[Row], network: Metrics, more: Sequence[Row] = ()) -> Table:
    """Return a table of baselines, the network, and models made from it."""
    table = plain_table("", right=("perplexity", "nats", "± error", "bits/char", "bits/byte"))
    for name, each, *_ in (*rows, Row("network", network), *more):
        row = [f"{each.perplexity:,.3f}", f"{each.nats:.4f}"]
        row += ["" if each.error is None else f"{each.error:.4f}"]
        row += [
            "" if bits is None else f"{bits:.4f}" for bits in (each.bits_per_character, each.bits_per_byte)
        ]
        table.add_row(name, *row, style="bold green" if each is network else None)
    return table


def crossed(baselines: Sequence[Baseline], nats: float) -> str:
    """Return which baseline a validation loss is below, and the best one where it is above that.

    Both sides are on the same targets. Runs of older versions have no such figures: nothing is compared.
    """
    if any(each.live is None for each in baselines):
        return ""
    best = best_of(baselines)
    below = [each for each in baselines if nats < each.during.nats]
    parts = [f" < {_named(best_of(below))}"] if below else []
    return ",".join([*parts, *([] if best in below else [f" > {_named(best)}"])])


def _named(baseline: Baseline) -> str:
    return f"{baseline.name} {baseline.during.perplexity:.2f}"


def chosen_line(config: RunConfig, bias: dict[int, float]) -> str:
    """Return which truncation was chosen, and by which bias."""
    table = ", ".join(f"{K}: {share:.1%}" for K, share in bias.items())
    limit = f"a bias of at most {config.bptt_tolerance:.0%}"
    if min(bias.values()) > config.bptt_tolerance:
        return f"{config.bptt}, the longest window that was tried; none has {limit} ({table})"
    return f"{config.bptt}, the shortest window with {limit} ({table})"


def best_row(rows: Sequence[Row]) -> Row:
    """Return the baseline with the lowest loss."""
    return min(rows, key=lambda row: row.measure.nats)


def ngrams_win(rows: Sequence[Row], network: Metrics) -> bool:
    """Return whether some n-grams predict better than the network."""
    best = best_row(rows)
    return best.name.endswith(NGRAMS) and best.measure.nats < network.nats


def verdict(rows: Sequence[Row], network: Metrics) -> Text:
    """Return one line: whether the network or the best baseline predicts better, and what the baseline costs."""
    best = best_row(rows)
    own, other = f"{network.perplexity:,.3f}", f"{best.measure.perplexity:,.3f}"
    if own == other:
        line = f"the network and {best.name} predict this text equally well: perplexity {own}"
    elif network.nats < best.measure.nats:
        line = f"the network is better than the best baseline, {best.name}: perplexity {own} against {other}"
    else:
        is_better = "is better" if best.name == "uniform" else "are better"
        line = f"{best.name} {is_better} on this text: perplexity {other} against {own} of the network"
    cost = "" if best.counts is None else f" ({best.name}: {best.counts:,} counts, {best.seconds:.1f} s)"
    wins = own != other and network.nats < best.measure.nats
    return Text(line + cost, "bold green" if wins else "bold yellow")


def mixture_line(cost: dict[str, Any], mixed: Metrics) -> Text:
    """Return one line about the mixture of the network with n-grams: its perplexity and what its n-grams cost."""
    name = f"{cost['order']}{NGRAMS}"
    costs = [f"{cost['counts']:,} counts"]
    costs += [] if cost["seconds"] is None else [f"{cost['seconds']:.1f} s"]
    costs += [f"{_megabytes(cost['memory_bytes'])} in memory"]
    costs += [] if cost["file_bytes"] is None else [f"{_megabytes(cost['file_bytes'])} in the run"]
    return Text(
        f"mixture: the network and {name} together, weighted by context as fits the validation split best: "
        f"perplexity {mixed.perplexity:,.3f} ({name}: {', '.join(costs)})",
        "dim",
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.0f} KB"


def best_as_json(rows: Sequence[Row], network: Metrics) -> dict[str, Any]:
    """Return the best baseline as plain values: its cost, whether it beats the network, its figures."""
    best = best_row(rows)
    content = {"name": best.name, "seconds": best.seconds, "counts": best.counts}
    return content | {"better_than_network": best.measure.nats <= network.nats} | best.measure.to_json()
