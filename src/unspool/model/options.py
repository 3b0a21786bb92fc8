"""The hyper-parameters of a network: sizes, cell, dropout, pattern, pooling, attention."""

from functools import partial
from typing import Any, Literal, get_args

from unspool.cells import CELLS, CellName
from unspool.kernels.arrays import Activation, Precision
from unspool.model.cutoffs import SOFTMAX_CHECK
from unspool.model.pooling import POOLS
from unspool.model.values import Feedback
from unspool.options import FRACTION, NOT_NEGATIVE, POSITIVE, TRUTH, UNIT, Option, whole

MOST_LAYERS = 1000
"""Every layer is a few Python objects, however small it is."""
Pool = Literal["last", "mean"]
Attention = Literal["none", "general", "additive"]
InitialState = Literal["zero", "learned"]
_network: Any = partial(Option, group="Network")

CELL: Option[CellName] = _network("cell", "Recurrent cell.", choices=CELLS)
HIDDEN: Option[int] = _network("hidden", "H, the hidden units per layer and direction.", whole(1))
LAYERS: Option[int] = _network("layers", "Number of stacked recurrent layers.", whole(1, MOST_LAYERS))
BIDIRECTIONAL: Option[bool] = _network(
    "bidirectional", "Also read sequences from the end to the beginning.", TRUTH
)
EMBEDDING: Option[int] = _network(
    "embedding", "Width of the token embedding; 0 uses one-hot tokens.", whole(0)
)
TIED: Option[bool] = _network("tied", "Use the token embedding as the output matrix V.", TRUTH)
INPUT_SCALE: Option[float] = _network(
    "input_scale",
    "Standard deviation over the units of U x(t) before training; 0: 1 for an embedding, 1/√K for one-hot tokens and 1/√H for "
    "a tied embedding.",
    NOT_NEGATIVE,
)
DROPOUT: Option[float] = _network(
    "dropout", "Fraction of a layer's outputs that is dropped in training.", FRACTION
)
RECURRENT_DROPOUT: Option[float] = _network(
    "recurrent_dropout",
    "Fraction of the state that is dropped inside the recurrence in training, one mask per sequence.",
    FRACTION,
)
SOFTMAX: Option[str] = _network(
    "softmax",
    "Output layer: full, adaptive (frequent tokens in a head, rare ones in clusters: faster for large vocabularies; "
    "adaptive:N1,N2,… names the first token of each cluster), or auto, the better one for the vocabulary.",
    SOFTMAX_CHECK,
)
ACTIVATION: Option[Activation] = _network(
    "activation", "Activation of the Elman cell; the other cells accept only tanh.", choices=get_args(Activation)
)  # fmt: skip
H0: Option[InitialState] = _network(
    "h0", "State before the first step: zero, or learned with the other parameters.",
    choices=get_args(InitialState),
)  # fmt: skip
PATTERN: Option[str] = _network(
    "pattern",
    "Recurrence, numbered as the figures in Goodfellow et al., Deep Learning: 10.3, hidden to hidden; 10.4, output to "
    "hidden (needs the cell elman).",
)
FEEDBACK: Option[Feedback] = _network(
    "feedback",
    "Input that pattern 10.4 feeds back: token, the previous target (teacher forcing; in a language model this is the current "
    "input, so that h(t) depends on one token only), or logits, the real-valued o(t-1), which gradients pass through.",
    choices=get_args(Feedback),
)
POOL: Option[Pool] = _network(
    "pool", "Predict from the last state or from the mean of all states.", choices=POOLS
)
ATTENTION: Option[Attention] = _network(
    "attention", "Attention of the decoder over the states of the encoder: none, or its score function.",
    choices=get_args(Attention),
)  # fmt: skip
CHRONO_STEPS: Option[int] = _network(
    "chrono_steps",
    "Longest initial time constant of the gates, in steps (chrono initialisation); 0 disables it.",
    whole(0),
    former={"remember": {}},
)
PRIOR_CORRECTION: Option[float] = _network(
    "prior_correction",
    "Divide each class probability by (frequency of the class)^X and normalise again; X above 0 favours rare classes.",
    UNIT,
    former={"balance": {}},
)
CRF: Option[bool] = _network(
    "crf",
    "Predict the labels of a sequence together, with a score for each pair of neighbouring labels (a linear-chain CRF).",
    TRUTH,
)
SUBWORDS: Option[bool] = _network(
    "subwords",
    "Read words by their sub-word features (prefixes, suffixes, shape) as well, so that unseen words get labels by their form.",
    TRUTH,
)
STD: Option[bool] = _network(
    "std", "Also predict a standard deviation for each target.", TRUTH, single=True, former={"spread": {}}
)
FLOOR: Option[float] = _network(
    "floor", "Smallest standard deviation, as a fraction of that of the targets.", POSITIVE
)
EVERY_STEP: Option[bool] = _network("every_step", "Predict numbers at every step (many-to-many).", TRUTH)
BEAM: Option[int] = Option("beam", "Beam width; 1 is greedy decoding.", whole(1), group="Output")
MAX_LENGTH: Option[int] = Option(
    "max_length", "Most tokens, or the count of numbers, to write [default: by the training split].", whole(1),
    group="Output", former={"longest": {}},
)  # fmt: skip

PRECISION: Option[Precision] = _network(
    "precision",
    "Numbers in matrix products: float32, or bf16, which Intel CPUs with AMX and AMD CPUs from Zen 4 on multiply faster. Each "
    "gives the same bits on every machine.",
    choices=get_args(Precision),
)

INPUTS: Option[int] = _network("inputs", "Number of tokens, or of values per step if dense.", whole(1))
OUTPUTS: Option[int] = _network("outputs", "K, the number of classes, or of numbers to predict.", whole(1))
DENSE: Option[bool] = _network("dense", "Read values (tau, B, inputs) instead of tokens (tau, B).", TRUTH)
LEARN_H0: Option[bool] = _network(
    "learn_h0", "Learn the state before the first step; else it is zero.", TRUTH
)
