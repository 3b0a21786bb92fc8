"""The hyper-parameters of training: time, batches, truncation, validation, seed."""

from dataclasses import replace
from typing import Any, Literal

from unspool.gradients.bptt import Recompute
from unspool.options import (
    FRACTION,
    INSIDE_UNIT,
    MOST_ORDER,
    MOST_STEPS,
    POSITIVE,
    TRUTH,
    Option,
    number,
    whole,
)

Batches = Literal["sequential", "random"]
ModelChoice = Literal["network", "baseline", "best", "mean"]

MINUTES: Option[float] = Option(
    "minutes", "Time limit of training, in minutes.",
    number("a number above 0 and at most 100,000", lambda value: 0 < value <= 1e5), group="Time",
)  # fmt: skip
STEPS: Option[int] = Option(
    "steps",
    "Number of updates, instead of a time limit. To repeat a fit bit for bit, pass the number that it printed.",
    whole(1, MOST_STEPS),
    group="Time",
)
EPOCHS: Option[int] = Option(
    "epochs", "Largest number of passes over the training split.", whole(1, MOST_STEPS), group="Time"
)
ORDER: Option[int] = Option(
    "order",
    "Highest order of the n-gram baselines [default: 6 for characters and bytes, 4 for other tokens; lower if counting "
    "would take more than a tenth of the time limit].",
    whole(1, MOST_ORDER),
    group="Time",
)
PASSES = replace(
    EPOCHS,
    help="Passes over the training sequences [default: 30; of fewer than 500 sequences, as many as make at least 300 updates of each network].",
)
BATCH_SIZE: Option[int] = Option("batch_size", "B, sequences per batch.", whole(1), option="batch")
SHARDS: Option[int] = Option(
    "shards",
    "S, shards per batch: the gradients of S parts of B/S rows each are added in a fixed order, so up to S processes (torchrun, "
    "mpiexec) compute the same bits as one.",
    whole(1),
)
WINDOW: Option[int] = Option("window", "tau, the steps of a window.", whole(1))
LEARN_RATE: Option[float] = Option("learn_rate", "Learning rate while reading.", POSITIVE)
LEARN_SEGMENT: Option[int] = Option(
    "learn_segment", "Targets between two updates while reading.", whole(1, 1 << 20)
)
BATCHES: Option[Batches] = Option(
    "batches",
    "sequential carries the state from window to window; random starts every window with a new state.",
    choices=("sequential", "random"),
)
RESTART: Option[float] = Option(
    "restart",
    "With sequential batches, the probability that an update resets the state of a row to h(0) before it reads its window: "
    "the network learns to start from h(0).",
    FRACTION,
)
BPTT: Option[str] = Option(
    "bptt",
    "How far back gradients reach: full (the window), truncated:K (an update every K steps), truncated:K1,K2 (an update "
    "every K1 steps, backpropagated through K2), random:P (cut at each step with probability 1-P, unbiased) or auto (truncated:K "
    "with the smallest K for which the measured bias of the gradient is at most 10 %).",
)
BPTT_TOLERANCE: Option[float] = Option(
    "bptt_tolerance", "Bias that bptt auto accepts, as a fraction of the norm of the gradient.", INSIDE_UNIT
)
RECOMPUTE: Option[Recompute] = Option(
    "recompute",
    "sqrt stores every √tau-th state and recomputes the others in the backward pass: less memory, bit-identical gradients.",
    choices=("none", "sqrt"),
    former={"memory": {"full": "none"}},
)
WARMUP: Option[int] = Option("warmup", "Updates over which the learning rate rises.", whole(1, MOST_STEPS))
WARMUP_FRACTION: Option[float] = Option(
    "warmup_fraction", "Fraction of the updates over which the learning rate rises.", FRACTION
)
PLANS: Option[Any] = Option(
    "plans",
    "Changes of the number of updates, copied from the command that a run printed: 0:TOTAL,UPDATE:TOTAL,… (from UPDATE on, TOTAL updates are planned).",
)
SEED: Option[int] = Option("seed", "Seed of all random numbers.", whole(0))
BACKWARD: Option[bool] = Option(
    "backward",
    "Train on the reversed text: predict each token from the tokens after it.",
    TRUTH,
    group="Text",
    single=True,
)
VALIDATION: Option[float] = Option(
    "validation",
    "Fraction of the training sequences used to select the best parameters; 0 keeps the last parameters.",
    FRACTION,
)
MODEL: Option[ModelChoice] = Option(
    "model",
    "The model that answers: network, baseline (the best one), mean (of the network and the best baseline) or best (the one with the fewest errors on the sequences set aside).",
    choices=("network", "baseline", "best", "mean"),
)
SET_ASIDE = replace(
    VALIDATION,
    help="Fraction of the training sequences that is set aside to select the best parameters and the model that answers; 0 sets none aside [default: 0.1; of 10 to 499 sequences, four networks each leave out a quarter, and their mean answers].",
)
PATIENCE: Option[int] = Option(
    "patience", "Stop after this many validations without improvement; 0 never stops early.", whole(0)
)
VALIDATIONS: Option[int] = Option(
    "validations", "Number of validations during training.", whole(1, 1_000_000)
)
VALIDATION_TOKENS: Option[int] = Option(
    "validation_tokens",
    "Tokens of the validation split to score during training, in segments spread over it; 0: as many as take about 4 % of the training time, at least 2,000.",
    whole(0),
)
FINAL: Option[bool] = Option(
    "final",
    "After the evaluation, train the same recipe on the whole text (training, validation and test split) and keep that model. The figures are those of the measured model. The time limit covers both trainings.",
    TRUTH,
    single=True,
)
