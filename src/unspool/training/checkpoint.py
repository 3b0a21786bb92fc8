"""When something that is trained is written down, and when it stops."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from unspool.options import at_least


@dataclass(frozen=True)
class CheckpointPolicy:
    """When a run is written down, and when it stops."""

    seconds: float = 30.0
    """The training state is saved this often."""
    steps: int | None = None
    """Or after every so many updates."""
    stop: Callable[[], bool] = lambda: False
    """Asked after every update."""
    told: Callable[[int, int], None] = lambda done, total: None
    """Hears, while the trained model is judged, how many targets of how many have been scored."""

    def __post_init__(self) -> None:
        if self.steps is not None:
            at_least("save_every", self.steps, 1)

    def due(self, step: int, saved: float) -> bool:
        """Say whether it is time to save after an update, by when that was done last."""
        if self.steps is not None:
            return step % self.steps == 0
        return time.monotonic() - saved >= self.seconds
