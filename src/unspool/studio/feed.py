"""Frames of the stream: the whole state, and the rows of the curve that a client does not have yet.

A frame is made when the client is ready for it, so a slow client gets fewer and newer ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.studio.payload import array
from unspool.studio.session import Session

MOST_ROWS = 4000
"""Rows of a curve in the first frame; of a longer one, every n-th."""


@dataclass
class Client:
    """What one reader of the stream has."""

    run: str | None = None
    rows: int = 0
    version: int = -1


def frame(session: Session, client: Client) -> dict[str, Any]:
    """Return what is new for a client."""
    client.version = session.version
    run = session.current
    name = None if run is None else run.id
    if name != client.run or run is None or len(run.curve) < client.rows:
        client.run, client.rows = name, 0
    curve: dict[str, Any] = {"run": name, "from": 0, "rows": array(np.empty((0, 5)), "f8")}
    if run is not None:
        curve = run.curve_from(client.rows, MOST_ROWS)
        client.rows = len(run.curve)
    return {
        "v": client.version, "session": session.id, "current": name,
        "runs": [each.summary() for each in list(session.runs.values())], "curve": curve,
        "points": [] if run is None else list(run.points), "samples": [] if run is None else list(run.samples),
        "replay": session.replay, "note": session.note, "texts": [each.to_json() for each in list(session.texts.values())],
    }  # fmt: skip
