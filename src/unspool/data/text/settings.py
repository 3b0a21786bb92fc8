"""How a text is to be prepared: everything besides the text that its ids depend on."""

from dataclasses import dataclass

from unspool.data.text.source import check_reading
from unspool.errors import InputError
from unspool.options import at_least


@dataclass(frozen=True)
class TextConfig:
    """Tokens, cleaning, parts, vocabulary and reading."""

    tokens: str = "char"
    """The kind of tokens, see ``tokens``."""
    clean: bool = False
    """Keep only the letters A-Z, in lower case, as common lecture notes do."""
    split: tuple[float, float, float] | None = (0.9, 0.05, 0.05)
    """What share of the tokens goes to train, valid and test, in this order; None: chosen by `split_for`."""
    min_freq: int = 0
    """Tokens rarer than this in the training part are unknown."""
    reserved: tuple[str, ...] = ()
    """Tokens that have ids though no text contains them."""
    errors: str = "strict"
    """What to do with bytes that are not UTF-8: ``strict`` or ``replace``."""
    newlines: str = "keep"
    """Line ends: ``keep`` them, or make them ``lf``."""

    def __post_init__(self) -> None:
        check_reading(self.errors, self.newlines)
        if self.split is not None and (
            len(self.split) != 3
            or not min(self.split) >= 0
            or not self.split[0] > 0
            or not abs(sum(self.split) - 1) <= 1e-9
        ):
            raise InputError(
                f"split: expected three shares that add up to 1, the first above 0, got {self.split}"
            )
        at_least("min_freq", self.min_freq, 0)
        if isinstance(self.reserved, str):
            raise InputError(
                f"reserved is one string, {self.reserved!r}; expected a tuple of tokens: ({self.reserved!r},)"
            )
