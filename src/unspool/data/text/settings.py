"""Settings of a prepared text: everything besides the text that determines its ids."""

from dataclasses import dataclass

from unspool.data import options
from unspool.data.text.decoding import check_reading
from unspool.errors import InputError
from unspool.options import check_fields, declared


@declared(options)
@dataclass(frozen=True)
class TextConfig:
    """Tokens, cleaning, splits, vocabulary and decoding."""

    tokens: str = "char"
    clean: bool = False
    split: options.Split | None = (0.9, 0.05, 0.05)
    min_freq: int = 0
    reserved: tuple[str, ...] = ()
    errors: str = "strict"
    newlines: str = "keep"
    lines: bool = False

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
                f"split is {self.split}; expected three fractions that add up to 1, the first above 0"
            )
        if self.lines and (self.clean or self.tokens.startswith(("subword", "jieba"))):
            other = "clean" if self.clean else f"tokens={self.tokens}"
            raise InputError(
                f"lines with {other}: line ends would not be tokens; choose char, byte, word or space, without clean"
            )
        if isinstance(self.reserved, str):
            raise InputError(
                f"reserved is one string, {self.reserved!r}; expected a tuple of tokens: ({self.reserved!r},)"
            )
