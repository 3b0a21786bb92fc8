"""The hyper-parameters of an optimiser."""

from unspool.options import FRACTION, NOT_NEGATIVE, POSITIVE, Option

OPTIMISER: Option[str] = Option(
    "optimiser", "adam (AdamW where decay is above 0) or sgd (with momentum 0.9).", choices=("adam", "sgd")
)
LEARNING_RATE: Option[float] = Option(
    "learning_rate", "Peak learning rate; linear warm-up, then cosine decay to zero.", NOT_NEGATIVE
)
CLIP: Option[float] = Option("clip", "Largest global norm of a gradient; 0 disables clipping.", NOT_NEGATIVE)
DECAY: Option[float] = Option("decay", "Weight decay on matrices.", NOT_NEGATIVE)
BETA1: Option[float] = Option("beta1", "Decay rate of Adam's mean of the gradient.", FRACTION)
BETA2: Option[float] = Option("beta2", "Decay rate of Adam's mean of the squared gradient.", FRACTION)
EPSILON: Option[float] = Option("epsilon", "Added to Adam's denominator.", POSITIVE)
MOMENTUM: Option[float] = Option("momentum", "Momentum of SGD.", FRACTION)
