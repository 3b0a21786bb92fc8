"""How a text is to be prepared: everything besides the text that its ids depend on."""

from dataclasses import dataclass

from unspool.data import options as o
from unspool.data.text.source import check_reading
from unspool.errors import InputError
from unspool.options import check_fields


@dataclass(frozen=True)
class TextConfig:
    """Tokens, cleaning, parts, vocabulary and reading."""

    tokens: str = o.TOKENS.field("char")
    clean: bool = o.CLEAN.field(False)
    split: o.Split | None = o.SPLIT.field(
        (0.9, 0.05, 0.05), help="Fractions of the tokens for train, valid and test."
    )
    min_freq: int = o.MIN_FREQ.field(0)
    reserved: tuple[str, ...] = o.RESERVED.field(())
    errors: str = o.ERRORS.field("strict")
    newlines: str = o.NEWLINES.field("keep")

    def __post_init__(self) -> None:
        check_reading(self.errors, self.newlines)
        check_fields(self)
        if self.split is not None and (
            len(self.split) != 3
            or not min(self.split) >= 0
            or not self.split[0] > 0
            or not abs(sum(self.split) - 1) <= 1e-9
        ):
            raise InputError(
                f"split: expected three shares that add up to 1, the first above 0, got {self.split}"
            )
        if isinstance(self.reserved, str):
            raise InputError(
                f"reserved is one string, {self.reserved!r}; expected a tuple of tokens: ({self.reserved!r},)"
            )
