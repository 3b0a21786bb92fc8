"""Chinese words by jieba's dictionary, through the package rjieba (extra ``chinese``).

Blanks and line ends are tokens here, so that every text comes back as it was.
"""

from collections.abc import Iterable, Iterator, Sequence

from unspool.data.tokens.base import FirstAppearance, Indexer
from unspool.errors import MissingExtra

LONGEST = 1 << 20


class JiebaTokenizer:
    """Chinese words; other scripts as jieba cuts them."""

    kind = "jieba"
    lossless = True

    def __init__(self) -> None:
        try:
            import rjieba
        except ImportError as error:
            raise MissingExtra("tokens jieba needs rjieba: pip install unspool[chinese]") from error
        self._cut = rjieba.cut

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Copy and pickle nothing but the kind: the dictionary belongs to the library."""
        return JiebaTokenizer, ()

    def encode_text(self, text: str) -> list[str]:
        """Cut a text into words."""
        return list(self._cut(text))

    def decode(self, tokens: Iterable[str]) -> str:
        """Put words together."""
        return "".join(tokens)

    def decode_stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Give each word as it comes."""
        yield from tokens
        yield ""

    def safe_cut(self, text: str) -> int:
        """Cut after the last line end: no word goes beyond it."""
        cut = text.rfind("\n") + 1
        return cut if cut or len(text) < LONGEST else len(text)

    def width(self, token: str) -> tuple[int, int]:
        """Count the word's characters and bytes."""
        return len(token), len(token.encode())

    def alphabet(self) -> Sequence[str]:
        """Know nothing beforehand."""
        return ()

    def indexer(self) -> Indexer:
        """Number a word by its first appearance."""
        return FirstAppearance(self.encode_text)
