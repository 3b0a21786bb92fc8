"""Encode answers: arrays as bytes, charts as CSV, texts without characters that JSON or a page cannot hold.

An answer is plain values with arrays among them. As JSON, an array is {"dtype": "f4", "shape": [3, 2], "data": base64}. The routes
send it in binary, where an array is {"dtype": "f4", "shape": [3, 2], "at": offset} and its bytes follow the JSON:

    length of the JSON, uint32 │ JSON, blanks up to a multiple of 8 │ arrays, each at a multiple of 8

All numbers are little-endian, arrays in C order.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "u1"}
ALIGNED = 8
SURROGATE = re.compile("[\ud800-\udfff]")
BINARY = "application/octet-stream"
"""The media type of answers in binary."""
Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""The header and the rows of a CSV file."""


def array(values: Any, dtype: str = "f4") -> NDArray[Any]:
    """Return values as an array that can be sent.

    >>> to_json(array([1.0, 2.0]))
    b'{"dtype":"f4","shape":[2],"data":"AACAPwAAAEA="}'
    """
    return np.ascontiguousarray(values, DTYPES[dtype])


def array_from(content: Mapping[str, Any]) -> NDArray[Any]:
    """Return an array of JSON.

    >>> array_from(json.loads(to_json(array([[1.5], [2.5]])))).tolist()
    [[1.5], [2.5]]
    """
    return np.frombuffer(base64.b64decode(content["data"]), DTYPES[content["dtype"]]).reshape(
        content["shape"]
    )


def number(value: float | None) -> float | None:
    """Return a number for JSON: None for one that is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def clean(text: str) -> str:
    r"""Return a text with lone surrogates replaced: UTF-8 cannot hold them.

    >>> clean("a\udc80")
    'a\ufffd'
    """
    return SURROGATE.sub("\ufffd", text)


def to_json(content: Any) -> bytes:
    """Return JSON in UTF-8; numbers that are not finite are refused, arrays are in base64."""
    return _json(content, lambda found: {"data": base64.b64encode(found.tobytes()).decode("ascii")})


def to_binary(content: Any) -> bytes:
    """Return an answer in binary.

    >>> raw = to_binary({"x": array([1.0])})
    >>> raw[:4], raw[4:48].rstrip(), raw[48:]
    (b',\\x00\\x00\\x00', b'{"x":{"dtype":"f4","shape":[1],"at":0}}', b'\\x00\\x00\\x80?\\x00\\x00\\x00\\x00')
    """
    bodies, end = list[bytes](), 0

    def place(found: NDArray[Any]) -> dict[str, int]:
        nonlocal end
        at, body = end, found.tobytes()
        bodies.extend((body, bytes(-len(body) % ALIGNED)))
        end += len(body) + len(bodies[-1])
        return {"at": at}

    head = _json(content, place)
    head += b" " * (-(4 + len(head)) % ALIGNED)
    return b"".join([len(head).to_bytes(4, "little"), head, *bodies])


def from_binary(raw: bytes) -> Any:
    """Return the answer of `to_binary`.

    >>> from_binary(to_binary({"x": array([[1, 2]], "i4"), "y": None}))
    {'x': array([[1, 2]], dtype=int32), 'y': None}
    """
    begin = 4 + int.from_bytes(raw[:4], "little")

    def opened(found: dict[str, Any]) -> Any:
        if found.keys() != {"dtype", "shape", "at"}:
            return found
        kind, count = DTYPES[found["dtype"]], math.prod(found["shape"])
        return np.frombuffer(raw, kind, count, begin + found["at"]).reshape(found["shape"])

    return json.loads(raw[4:begin], object_hook=opened)


def _json(content: Any, place: Callable[[NDArray[Any]], Mapping[str, Any]]) -> bytes:
    """Return JSON; `place` says where the bytes of an array are."""

    def encoded(found: Any) -> Any:
        if not isinstance(found, np.ndarray):
            raise TypeError(f"{type(found).__name__} cannot be sent")
        return {"dtype": found.dtype.str[1:], "shape": list(found.shape), **place(found)}

    words = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=encoded)
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
