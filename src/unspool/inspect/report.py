"""Compute all results of an inspection once, for the page, the charts and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unspool.data.text.corpus import as_read
from unspool.data.text.decoding import read_text
from unspool.data.text.settings import TextConfig
from unspool.data.text.sources import Text, as_sources
from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order
from unspool.evaluation.read import Edit
from unspool.inspect.components import Components, components
from unspool.inspect.graph.structure import At
from unspool.inspect.graph.trace import Trace, trace
from unspool.inspect.memory import MemoryReport, look_back
from unspool.inspect.properties import properties_of
from unspool.inspect.reading import Reading, pieces_of, read, visible
from unspool.inspect.units import Unit, choose_units, find_units
from unspool.kernels.arrays import Ids
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.tasks.language.text_model import TextModel

STEPS = 3
"""Number of steps in the picture of the unfolded graph."""
UNITS = 8


@dataclass(frozen=True)
class InspectReport:
    """The results of a model on a text."""

    run: str
    """Name of the run."""
    text: str
    """Name of the text."""
    source: TextModel
    reading: Reading
    """In the order of the text, also if the model reads backward."""
    known: list[bool]
    units: list[Unit]
    chosen: bool
    """Whether the units were chosen automatically."""
    path: Components
    back: MemoryReport | None
    made: Trace
    first: list[str]
    """The tokens of the trace, and the token after them."""

    @property
    def model(self) -> Model:
        """The network."""
        return self.source.model

    @property
    def labels(self) -> dict[At, str]:
        """Labels of the first inputs and targets, for the picture of the graph."""
        shown = [visible(piece)[:6] for piece in self.first]
        return {At("x", t + 1): shown[t] for t in range(self.made.graph.tau)} | {
            At("y", t + 1): shown[t + 1] for t in range(self.made.graph.tau)
        }


Note = Callable[[str], None]


def inspect(
    source: TextModel,
    text: Text,
    *,
    run: str = "a model",
    name: str = "a text",
    units: list[str] | None = None,
    note: Note = lambda _: None,
) -> InspectReport:
    """Run a model on a text (a str is the text itself, a Path a file) and return the results; `note` is called at each stage."""
    note("reading")
    known, reading = read_with(source, read_whole(text, source.settings), name)
    pieces, ids = reading.pieces, in_reading_order(reading.ids, source.backward)
    note("comparing units with the text")
    found = properties_of(pieces)
    chosen = find_units(reading.states, found, units) if units else choose_units(reading.states, found, UNITS)
    note("measuring the memory")
    back = look_back(source.model, ids)
    note("unfolding")
    steps = min(STEPS, len(ids) - 1)
    return InspectReport(
        run,
        name,
        source,
        reading,
        known,
        chosen,
        not units,
        components(reading.last_h),
        back,
        trace(source.model, ids[:steps, None].copy(), ids[1 : steps + 1, None].copy(), gradients=True),
        (pieces[::-1] if source.backward else pieces)[: steps + 1],
    )


def read_with(
    source: TextModel,
    text: str,
    name: str = "the text",
    *,
    gates: bool = False,
    edits: Mapping[int, Edit] | None = None,
    most: int | None = None,
    after: Reading | None = None,
    same: int = 0,
    weights: Weights | None = None,
) -> tuple[list[bool], Reading]:
    """Read a text with a model; return which tokens it knows, and the reading in the order of the text.

    `edits` change what a step of the text leaves. A text of more than `most` tokens is refused. `after` is an earlier reading by
    the same model with the same edits in its first `same` steps: rows before the first difference are copied from it.
    """
    tokenizer = source.tokenizer
    tokens = tokenizer.encode_text(as_read(text, tokenizer, source.settings))
    if len(tokens) < 2 or (most is not None and len(tokens) > most):
        limit = "two or more" if len(tokens) < 2 else f"at most {most:,}"
        raise InputError(f"{name}: {len(tokens):,} tokens; expected {limit}")
    ids = in_reading_order(np.array(source.vocab[tokens], np.int32), source.backward)
    edits, last = edits or {}, len(ids) - 1
    begin = 0
    if after is not None and not source.backward and not source.model.config.feeds_tokens:
        begin = max(0, min(same, _alike(ids, after.ids) - 1))
    reading = read(
        source.model,
        ids,
        pieces_of(tokenizer, tokens),
        gates=gates,
        after=after,
        begin=begin,
        weights=weights,
        edits={last - t if source.backward else t: edit for t, edit in edits.items()},
    )
    known = [token in source.vocab for token in tokens]
    return known, _in_text_order(reading) if source.backward else reading


def _alike(ids: Ids, others: Ids) -> int:
    """Return how many tokens two texts have in common at their beginning."""
    count = min(len(ids), len(others))
    differ = np.flatnonzero(ids[:count] != others[:count])
    return int(differ[0]) if len(differ) else count


def read_whole(text: Text, settings: TextConfig) -> str:
    """Return the content of a text."""
    sources = as_sources(text, "text")
    return text if isinstance(text, str) else read_text(sources, settings.errors, settings.newlines)


def _in_text_order(reading: Reading) -> Reading:
    """Return the results of a backward model in the order of the text."""
    return replace(
        reading,
        ids=reading.ids[::-1],
        states={name: values[::-1] for name, values in reading.states.items()},
        gates={name: values[::-1] for name, values in reading.gates.items()},
        surprise=reading.surprise[::-1],
        expected=reading.expected[::-1],
        shares=reading.shares[::-1],
    )


def numbers(report: InspectReport) -> dict[str, Any]:
    """Return the numbers of a report as plain values."""
    reading = report.reading
    return {
        "run": report.run,
        "text": report.text,
        "tokens": len(reading.ids),
        "unknown": report.known.count(False),
        "kind": report.source.tokenizer.kind,
        "model": report.model.config.to_json(),
        "parameters": report.model.parameters.count,
        "nats": reading.nats,
        "perplexity": math.exp(reading.nats),
        "units": [_unit(unit) for unit in report.units],
        "components": list(report.path.shares),
        "looking_back": None if report.back is None else _back(report.back),
        "surprise": [None if math.isnan(s) else round(s, 6) for s in reading.surprise.tolist()],
    }


def _unit(unit: Unit) -> dict[str, Any]:
    return {
        "name": unit.name,
        "property": unit.encodes.name if unit.encodes else None,
        "share": unit.share,
        "chance": unit.chance,
        "means": unit.means,
    }


def _back(back: MemoryReport) -> dict[str, Any]:
    return {
        "lags": back.fresh.lags,
        "influence": [each.norm for each in back.trained],
        "influence_of_a_fresh_model": back.fresh.norm,
        "exact": back.fresh.exact,
        "horizon": back.horizons,
        "horizon_of_a_fresh_model": back.fresh_horizon,
        "spectral_radius": back.radii,
        "gradient_norm_by_lag": back.by_lag.norms,
        "bias": back.by_lag.bias,
        "advice": {f"{bias:g}": steps for bias, steps in back.advice.items()},
    }
