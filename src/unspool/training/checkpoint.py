"""When training saves its state."""

import time
from dataclasses import dataclass

from unspool.options import at_least


@dataclass(frozen=True)
class CheckpointPolicy:
    """When a run saves its state; where the generator of its events is closed, it saves it as well."""

    seconds: float = 30.0
    """Seconds between two saved states."""
    steps: int | None = None
    """Updates between two saved states, instead of seconds."""
    at_end: bool = True
    """Whether to save after the last update too."""

    def __post_init__(self) -> None:
        if self.steps is not None:
            at_least("save_every", self.steps, 1)

    def due(self, step: int, saved: float) -> bool:
        """Return whether to save after an update; `saved` is the time of the last saved state."""
        if self.steps is not None:
            return step % self.steps == 0
        return time.monotonic() - saved >= self.seconds
