"""Settings of a prepared text: everything besides the text that determines its ids."""

from dataclasses import dataclass

from unspool.data.text.decoding import check_reading
from unspool.errors import InputError
from unspool.options import at_least


@dataclass(frozen=True)
class TextConfig:
    """Tokens, cleaning, splits, vocabulary and decoding."""

    tokens: str = "char"
    """The kind of tokens, see `unspool.data.tokens.registry`."""
    clean: bool = False
    """Keep only the letters A-Z, in lower case."""
    split: tuple[float, float, float] | None = (0.9, 0.05, 0.05)
    """Fractions of the tokens in train, valid and test; None: chosen by `split_for`."""
    min_freq: int = 0
    """Tokens rarer than this in the training split become <unk>."""
    reserved: tuple[str, ...] = ()
    """Tokens that get ids even if the text does not contain them."""
    errors: str = "strict"
    """Invalid UTF-8: ``strict`` (an error) or ``replace`` (U+FFFD)."""
    newlines: str = "keep"
    """Line ends: ``keep``, or ``lf`` to convert CRLF and CR."""

    def __post_init__(self) -> None:
        check_reading(self.errors, self.newlines)
        if self.split is not None and (
            len(self.split) != 3
            or not min(self.split) >= 0
            or not self.split[0] > 0
            or not abs(sum(self.split) - 1) <= 1e-9
        ):
            raise InputError(
                f"split is {self.split}; expected three fractions that add up to 1, the first above 0"
            )
        at_least("min_freq", self.min_freq, 0)
        if isinstance(self.reserved, str):
            raise InputError(
                f"reserved is one string, {self.reserved!r}; expected a tuple of tokens: ({self.reserved!r},)"
            )
