"""The hyper-parameters of an optimiser that every task has."""

from unspool.optimisers import OPTIMISERS
from unspool.optimisers.schedules import SCHEDULES
from unspool.optimisers.settings import CLIP, DECAY, LEARNING_RATE
from unspool.options import Option

__all__ = ["CLIP", "DECAY", "LEARNING_RATE", "OPTIMISER", "SCHEDULE"]

OPTIMISER: Option[str] = Option(
    "optimiser",
    "Optimiser; rmsprop is adam without a mean of the gradient; sgd has momentum 0.9.",
    choices=OPTIMISERS,
)
SCHEDULE: Option[str] = Option(
    "schedule",
    "Learning rate after the warm-up: cosine decays to zero, constant stays at the peak.",
    choices=SCHEDULES,
)
