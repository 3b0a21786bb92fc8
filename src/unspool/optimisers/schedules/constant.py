"""Warm-up, then a constant learning rate."""

from dataclasses import dataclass

from unspool.optimisers.schedules.base import Schedule


@dataclass(frozen=True)
class Constant(Schedule):
    """The full learning rate after the warm-up."""

    def shape(self, progress: float) -> float:
        """Return 1."""
        return 1.0
