"""Chinese words by jieba's dictionary, through the package rjieba (extra ``chinese``).

Blanks and line ends are tokens, so the tokenizer is lossless.
"""

from unspool.data.tokens.base import Tokenizer
from unspool.errors import MissingExtra

LONGEST = 1 << 20


class JiebaTokenizer(Tokenizer):
    """Chinese words; other scripts as jieba splits them."""

    kind = "jieba"
    summary = "one for each Chinese word"

    def __init__(self) -> None:
        try:
            import rjieba
        except ImportError as error:
            raise MissingExtra("tokens jieba needs rjieba: pip install unspool[chinese]") from error
        self._cut = rjieba.cut

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Copy and pickle only the kind: the dictionary belongs to the library."""
        return JiebaTokenizer, ()

    def encode_text(self, text: str) -> list[str]:
        """Split a text into words."""
        return list(self._cut(text))

    def safe_cut(self, text: str) -> int:
        """Return the position after the last line end: no word crosses it."""
        cut = text.rfind("\n") + 1
        return cut if cut or len(text) < LONGEST else len(text)
