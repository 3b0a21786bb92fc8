"""The settings of optimisers, which every optimiser declares its fields by."""

from unspool.options import FRACTION, NOT_NEGATIVE, POSITIVE, Option

LEARNING_RATE: Option[float] = Option(
    "learning_rate", "Peak learning rate; linear warm-up, then the schedule.", NOT_NEGATIVE
)
CLIP: Option[float] = Option("clip", "Largest global norm of a gradient; 0 disables clipping.", NOT_NEGATIVE)
DECAY: Option[float] = Option("decay", "Weight decay on matrices; above 0, adam is AdamW.", NOT_NEGATIVE)
BETA1: Option[float] = Option("beta1", "Decay rate of Adam's mean of the gradient.", FRACTION)
BETA2: Option[float] = Option(
    "beta2", "Decay rate of the mean of the squared gradient (adam, rmsprop).", FRACTION
)
EPSILON: Option[float] = Option("epsilon", "Added to the denominator (adam, rmsprop).", POSITIVE)
MOMENTUM: Option[float] = Option("momentum", "Momentum of SGD.", FRACTION)
