"""The data of the page's script, as JSON without the character <."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from unspool.inspect.page.charts import chart_positions, describe_unit, pretty
from unspool.inspect.reading import visible
from unspool.inspect.report import InspectReport
from unspool.inspect.units import Unit
from unspool.plots.svg import DARK


def page_data(report: InspectReport) -> str:
    """Return the data of the script as JSON; `<` is escaped, so that no tag can begin."""
    reading = report.reading
    surprise = [None if math.isnan(s) else round(s, 3) for s in reading.surprise.tolist()]
    content = {
        "surprise": surprise,
        "most": round(max(float(np.nanquantile(reading.surprise, 0.98)), 0.1), 2),
        "shown": [visible(piece) for piece in reading.pieces],
        "expected": [_expected(report, i) for i in range(len(reading.ids))],
        "units": [_unit_data(unit) for unit in report.units],
        "places": chart_positions(report.path).round(1).tolist(),
        "dark": DARK["paper"],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _expected(report: InspectReport, i: int) -> list[list[Any]]:
    reading = report.reading
    found = []
    for token, share in zip(reading.expected[i].tolist(), reading.shares[i].tolist(), strict=True):
        if token >= 0:
            piece = visible(report.source.vocab.to_tokens(token))
            found.append([piece, round(share, 4), int(token == reading.ids[i])])
    return found


def _unit_data(unit: Unit) -> dict[str, Any]:
    low, high = np.quantile(unit.activation, [0.02, 0.98]).tolist()
    return {
        "label": f"{pretty(unit.name)} {describe_unit(unit)}",
        "values": np.rint(100 * unit.activation.astype(float)).astype(int).tolist(),
        "middle": round((low + high) / 2, 4),
        "half": round(max((high - low) / 2, 1e-3), 4),
    }
