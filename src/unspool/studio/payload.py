"""Encode answers: arrays as base64, charts as CSV, texts without characters that JSON or a page cannot hold.

array      {"dtype": "f4", "shape": [3, 2], "data": base64}, little-endian, C order
packed     the same with bytes, and a scale: value = (byte - 128) / 127 · scale
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "u1"}
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""The header and the rows of a CSV file."""


def array(values: Any, dtype: str = "f4") -> dict[str, Any]:
    """Return an array as plain values.

    >>> array([1.0, 2.0])
    {'dtype': 'f4', 'shape': [2], 'data': 'AACAPwAAAEA='}
    """
    found = np.ascontiguousarray(values, DTYPES[dtype])
    return {
        "dtype": dtype,
        "shape": list(found.shape),
        "data": base64.b64encode(found.tobytes()).decode("ascii"),
    }


def array_from(content: Mapping[str, Any]) -> NDArray[Any]:
    """Return the values of `array` or `packed`.

    >>> array_from(array([[1.5], [2.5]])).tolist(), array_from(packed(np.array([-2.0, 0.0, 2.0]))).tolist()
    ([[1.5], [2.5]], [-2.0, 0.0, 2.0])
    """
    raw = np.frombuffer(base64.b64decode(content["data"]), DTYPES[content["dtype"]]).reshape(content["shape"])
    if "scale" not in content:
        return raw
    return np.asarray((raw.astype(np.float64) - 128) / 127 * content["scale"])


def packed(values: Any) -> dict[str, Any]:
    """Return values in one byte each, with the largest modulus as the scale."""
    found = np.asarray(values, np.float32)
    scale = float(np.abs(found).max(initial=0.0))
    levels = np.rint(found * np.float32(127 / scale if scale else 0.0)) + 128
    return array(np.clip(levels, 1, 255), "u1") | {"scale": scale}


def number(value: float | None) -> float | None:
    """Return a number for JSON: None for one that is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def clean(text: str) -> str:
    r"""Return a text with lone surrogates replaced: UTF-8 cannot hold them.

    >>> clean("a\udc80")
    'a\ufffd'
    """
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def to_json(content: Any) -> bytes:
    """Return JSON in UTF-8; numbers that are not finite are refused."""
    words = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return words.encode("utf-8", "replace")


def to_csv(table: Table) -> bytes:
    r"""Return a table as CSV in UTF-8; texts that a spreadsheet would take for a formula begin with a blank.

    >>> to_csv((["t", "piece"], [(0, "=1"), (1, None)]))
    b't,piece\r\n0, =1\r\n1,\r\n'
    """
    header, rows = table
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(header)
    for row in rows:
        writer.writerow([_cell(each) for each in row])
    return stream.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f" {value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    if isinstance(value, float | np.floating):
        return repr(float(value)) if math.isfinite(value) else ""
    return value
