"""The hyper-parameters of training: time, batches, truncation, validation, seed."""

from typing import Any, Literal

from unspool.gradients.bptt import Recompute
from unspool.options import (
    FRACTION,
    INSIDE_UNIT,
    MOST_ORDER,
    MOST_STEPS,
    TRUTH,
    Option,
    number,
    whole,
)

Batches = Literal["sequential", "random"]

MINUTES: Option[float] = Option(
    "minutes", "Time limit of training, in minutes.",
    number("a number above 0 and at most 100,000", lambda value: 0 < value <= 1e5), group="Time",
)  # fmt: skip
STEPS: Option[int] = Option(
    "steps",
    "Number of updates, instead of a time limit: the number that a fit prints repeats it bit for bit.",
    whole(1, MOST_STEPS),
    group="Time",
)
EPOCHS: Option[int] = Option(
    "epochs", "Largest number of passes over the training split.", whole(1, MOST_STEPS), group="Time"
)
ORDER: Option[int] = Option(
    "order",
    "Longest n-grams of the baselines [default: 6 for characters and bytes, 4 for other tokens; fewer if they would "
    "take more than a tenth of the minutes].",
    whole(1, MOST_ORDER),
    group="Time",
)
BATCH_SIZE: Option[int] = Option("batch_size", "B, sequences per batch.", whole(1), option="batch")
WINDOW: Option[int] = Option("window", "tau, the steps of a window.", whole(1))
BATCHES: Option[Batches] = Option(
    "batches",
    "sequential carries the state from window to window; random starts every window with a new state.",
    choices=("sequential", "random"),
)
BPTT: Option[str] = Option(
    "bptt",
    "How far back gradients reach: full (the window), truncated:K (an update every K steps), truncated:K1,K2 (an update "
    "every K1 steps, backpropagated through K2), random:P (cut at each step with probability 1-P, unbiased) or auto (truncated:K "
    "with the shortest window whose measured bias is at most 10 %).",
)
BPTT_TOLERANCE: Option[float] = Option(
    "bptt_tolerance", "Bias that bptt auto accepts, as a fraction of the norm of the gradient.", INSIDE_UNIT
)
RECOMPUTE: Option[Recompute] = Option(
    "recompute",
    "sqrt stores every √tau-th state and recomputes the others in the backward pass: less memory, the same bits.",
    choices=("none", "sqrt"),
    former={"memory": {"full": "none"}},
)
WARMUP: Option[int] = Option("warmup", "Updates over which the learning rate rises.", whole(1, MOST_STEPS))
WARMUP_FRACTION: Option[float] = Option(
    "warmup_fraction", "Fraction of the updates over which the learning rate rises.", FRACTION
)
PLANS: Option[Any] = Option(
    "plans",
    "To repeat a run that changed its number of updates: 0:STEPS,AFTER:STEPS,… as the run printed them.",
)
SEED: Option[int] = Option("seed", "Seed of all random numbers.", whole(0))
BACKWARD: Option[bool] = Option(
    "backward", "Learn the text in reverse time.", TRUTH, group="Text", single=True
)
VALIDATION: Option[float] = Option(
    "validation",
    "Fraction of the training sequences that chooses the best parameters; 0 keeps the last parameters.",
    FRACTION,
)
PATIENCE: Option[int] = Option(
    "patience", "Stop after this many validations without improvement; 0 never stops early.", whole(0)
)
VALIDATIONS: Option[int] = Option(
    "validations", "Number of validations during training.", whole(1, 1_000_000)
)
VALIDATION_TOKENS: Option[int] = Option(
    "validation_tokens",
    "Tokens of the validation split to score during training, in segments spread over it; 0: as many as cost little.",
    whole(0),
)
