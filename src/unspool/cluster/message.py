"""Messages between processes: plain values and arrays as bytes.

    length of the header   8 bytes, little-endian
    header                 JSON: the values, and name, type and shape of every array
    arrays                 their bytes, one after the other

>>> message = Message("update", {"step": 3}, {"x": np.arange(2, dtype=np.int32)})
>>> again = Message.from_bytes(message.to_bytes())
>>> again.kind, again.values, again.arrays["x"].tolist()
('update', {'step': 3}, [0, 1])
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.cluster.transport import Bytes


@dataclass(frozen=True)
class Message:
    """What a process says to another one: its kind, plain values and arrays."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def to_bytes(self) -> Bytes:
        """Return the bytes of the message."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        shapes = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
        header = json.dumps([self.kind, dict(self.values), shapes]).encode()
        parts = [len(header).to_bytes(8, "little"), header, *(each.tobytes() for each in arrays.values())]
        return np.frombuffer(b"".join(parts), np.uint8)

    @staticmethod
    def from_bytes(content: Bytes) -> Message:
        """Return the message that some bytes hold."""
        length = int.from_bytes(content[:8].tobytes(), "little")
        kind, values, shapes = json.loads(content[8 : 8 + length].tobytes())
        arrays, at = dict[str, NDArray[Any]](), 8 + length
        for name, dtype, shape in shapes:
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            arrays[name] = np.frombuffer(content[at : at + size].tobytes(), dtype).reshape(shape)
            at += size
        return Message(kind, values, arrays)
