"""All that is looked at in one model and one text, gathered once: for the page, for pictures, for JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.data.tokens import Tokenizer
from unspool.data.vocab import Vocab
from unspool.errors import InputError
from unspool.graph.structure import At
from unspool.graph.trace import Trace, trace
from unspool.inspect.components import Components, components
from unspool.inspect.properties import properties_of
from unspool.inspect.reading import Reading, pieces_of, read
from unspool.inspect.units import Unit, choose, named
from unspool.model import Model

STEPS = 4
"""As many steps of the text are unfolded for the picture of the graph."""
UNITS = 8


@dataclass(frozen=True)
class Report:
    """A model reading a text."""

    run: str
    text: str
    """How the text is called."""
    tokens: str
    """The kind of tokens."""
    model: Model
    vocab: Vocab
    reading: Reading
    known: list[bool]
    units: list[Unit]
    chosen: bool
    """Whether the units were chosen by the measure, not by the user."""
    path: Components
    made: Trace

    @property
    def labels(self) -> dict[At, str]:
        """What the first inputs and targets are, for the picture of the graph."""
        shown = [repr(piece)[1:-1][:6] or "·" for piece in self.reading.pieces[: STEPS + 1]]
        return {At("x", t + 1): shown[t] for t in range(self.made.graph.tau)} | {
            At("y", t + 1): shown[t + 1] for t in range(self.made.graph.tau)
        }


def inspect(
    model: Model,
    vocab: Vocab,
    tokenizer: Tokenizer,
    text: str,
    *,
    run: str = "a model",
    name: str = "a text",
    units: list[str] | None = None,
) -> Report:
    """Read a text with a model and look at everything."""
    tokens = tokenizer.encode_text(text)
    if len(tokens) < 2:
        raise InputError(f"{name}: {len(tokens)} tokens; inspect needs two or more")
    ids = np.array(vocab[tokens], np.int32)
    reading = read(model, ids, pieces_of(tokenizer, tokens))
    found = properties_of(reading.pieces)
    steps = min(STEPS, len(ids) - 1)
    return Report(
        run,
        name,
        tokenizer.kind,
        model,
        vocab,
        reading,
        [token in vocab for token in tokens],
        named(reading.states, found, units) if units else choose(reading.states, found, UNITS),
        not units,
        components(reading.last_h),
        trace(model, ids[:steps, None], ids[1 : steps + 1, None], gradients=True),
    )


def numbers(report: Report) -> dict[str, Any]:
    """Give the numbers of a report as plain values."""
    reading = report.reading
    return {
        "run": report.run,
        "text": report.text,
        "tokens": len(reading.ids),
        "unknown": report.known.count(False),
        "kind": report.tokens,
        "model": report.model.config.to_json(),
        "parameters": report.model.parameters.count,
        "nats": reading.nats,
        "perplexity": math.exp(reading.nats),
        "units": [_unit(unit) for unit in report.units],
        "components": list(report.path.shares),
        "surprise": [None if math.isnan(s) else round(s, 6) for s in reading.surprise.tolist()],
    }


def _unit(unit: Unit) -> dict[str, Any]:
    return {
        "name": unit.name,
        "property": unit.property.name if unit.property else None,
        "share": unit.share,
        "chance": unit.chance,
        "means": unit.means,
    }
