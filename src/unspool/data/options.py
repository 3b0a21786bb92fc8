"""The hyper-parameters of data: tokens, cleaning, parts, how inputs are read."""

from functools import partial
from typing import Any, TypeAlias

from unspool.options import TRUTH, Option, whole

Split: TypeAlias = tuple[float, float, float]
_text: Any = partial(Option, group="Text")
_data: Any = partial(Option, group="Data")

TOKENS: Option[str] = _data(
    "tokens",
    "char, word, byte, space (text already split into tokens), jieba, subword:N or subword:FILE.",
)
SPLIT: Option[Split] = _text(
    "split",
    "Fractions of the tokens for train, valid and test, in this order "
    "[default: 0.9 0.05 0.05; for fewer than 100,000 tokens 0.9 0.1 0].",
    single=True,
)
CLEAN: Option[bool] = _text(
    "clean", "Keep only the letters A-Z, in lower case; all other letters are lost.", TRUTH, single=True
)
MIN_FREQ: Option[int] = _text(
    "min_freq", "Tokens rarer than this in the training split become <unk>.", whole(0)
)
ERRORS: Option[str] = _text(
    "errors", "Bytes that are not UTF-8: strict ends with an error, replace substitutes U+FFFD."
)
NEWLINES: Option[str] = _text("newlines", "Line ends: keep, or lf to turn CRLF and CR into LF.")
LINES: Option[bool] = _text(
    "lines",
    "Every line is a separate sequence: the state is reset, and the end is predicted too. Blank lines are left out; the lines are shuffled before they are split.",
    TRUTH,
    single=True,
)
RESERVED: Option[tuple[str, ...]] = _text("reserved", "Tokens that have ids though no text contains them.")
INPUTS: Option[str] = _data(
    "inputs", "What sequences hold: tokens, ids or values; auto: strings are tokens, numbers are values."
)
STANDARDISE: Option[bool] = _data(
    "standardise", "Scale values to mean 0 and standard deviation 1, channel by channel.", TRUTH
)
