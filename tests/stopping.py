"""Stop a run in the middle: its state is saved when the generator of its events is closed."""

from collections.abc import Generator
from contextlib import closing
from typing import Any

from unspool.training.events import StepDone


def stop_after(step: int, events: Generator[Any]) -> list[Any]:
    """Return the events up to an update, and close the generator."""
    found = []
    with closing(events):
        for event in events:
            found.append(event)
            if isinstance(event, StepDone) and event.step == step:
                break
    return found
