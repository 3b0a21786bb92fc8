"""Hand the rows of a batch to the processes that compute its shards: messages of rank 0, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.cluster.group import UPDATE
from unspool.cluster.message import Message
from unspool.data.batches.examples import SequenceBatch
from unspool.gradients.truncation import Segment
from unspool.kernels.arrays import Mask
from unspool.model.values import State
from unspool.training.shards import Shards

Arrays = Mapping[str, NDArray[Any]]
Content = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def hand_out(shards: Shards, step: int, B: int, targets: int, of_rows: Callable[[slice], Content]) -> None:
    """Send each other process its rows of a batch; `of_rows` returns the values and arrays of some rows."""
    if shards.group.size == 1 or shards.group.rank:
        return
    messages = []
    for rank in range(1, shards.group.size):
        values, arrays = of_rows(shards.rows_of_rank(B, rank))
        about = {"step": step, "rate": shards.schedule(step), "B": B, "targets": targets}
        messages.append(Message(UPDATE, about | values, arrays))
    shards.group.lead(messages)


def segment_message(segment: Segment, sampled: Mask | None, rows: slice) -> Content:
    """Return values and arrays of some rows of a segment."""
    own = segment.share(rows)
    arrays = {"x": own.x, "y": own.y, "lengths": own.lengths, "fresh": own.fresh}
    arrays["sampled"] = None if sampled is None else sampled[:, rows]
    values = {"carry_after": own.carry_after, "first": own.first, "reset": own.state is None}
    return values, {name: array for name, array in arrays.items() if array is not None}


def segment_of(message: Message, state: State | None) -> Segment:
    """Return the segment of a message; it continues from this state unless the message says that the state is reset."""
    values, arrays = message.values, message.arrays
    return Segment(
        arrays["x"],
        arrays["y"],
        arrays.get("lengths"),
        None if values["reset"] else state,
        values["carry_after"],
        arrays.get("fresh"),
        values["first"],
    )


def batch_message(batch: SequenceBatch, rows: slice) -> Content:
    """Return the arrays of some rows of a batch of sequences."""
    own = batch.part(rows)
    arrays = {name: getattr(own, name) for name in ("x", "lengths", "y", "target_lengths", "rows", "weights")}
    return {}, {name: np.asarray(array) for name, array in arrays.items() if array is not None}


def batch_of(message: Message) -> SequenceBatch:
    """Return the batch of a message."""
    arrays = message.arrays
    return SequenceBatch(
        arrays["x"],
        arrays["lengths"],
        arrays.get("y"),
        arrays.get("target_lengths"),
        arrays["rows"],
        arrays.get("weights"),
    )


def state_arrays(state: State) -> dict[str, NDArray[Any]]:
    """Return a state as named arrays."""
    found = {f"{i}.h": h for i, (h, _) in enumerate(state)}
    return found | {f"{i}.s": s for i, (_, s) in enumerate(state) if s is not None}


def state_of(arrays: Arrays) -> State | None:
    """Return the state that `state_arrays` took apart; None where there is none."""
    parts = [name.removesuffix(".h") for name in arrays if name.endswith(".h")]
    return [(arrays[f"{part}.h"], arrays.get(f"{part}.s")) for part in parts] or None
