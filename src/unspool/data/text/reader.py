"""From sources to provisional ids, block by block.

bytes ─▶ text ─▶ (cleaned text) ─▶ pieces that end where a token ends ─▶ provisional ids
"""

from collections.abc import Iterator

import numpy as np

from unspool.data.text.clean import Cleaner
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import Source, iter_bytes, iter_text
from unspool.data.tokens.registry import Indexer, Tokenizer
from unspool.kernels.arrays import Codes


class TextReader:
    """Reads sources as the settings say."""

    def __init__(self, settings: TextConfig, tokenizer: Tokenizer) -> None:
        self._settings = settings
        self._tokenizer = tokenizer
        self.erased = 0
        """How many letters that are not A-Z the cleaning has erased so far."""

    def numbered(self, sources: list[Source], indexer: Indexer) -> Iterator[Codes]:
        """Give the provisional ids of the sources in blocks."""
        if self._settings.tokens == "byte" and not self._settings.clean:
            # Bytes need no decoding, and so none of them can be wrong.
            for block in iter_bytes(sources, self._settings.newlines):
                yield np.frombuffer(block, np.uint8)
            return
        for piece in self.pieces(sources):
            yield indexer.feed(piece)

    def pieces(self, sources: list[Source]) -> Iterator[str]:
        """Give the text in pieces that end where a token ends."""
        held = ""
        for text in self.texts(sources):
            text = held + text if held else text
            cut = self._tokenizer.safe_cut(text)
            held = text[cut:]
            if cut:
                yield text[:cut]
        if held:
            yield held

    def texts(self, sources: list[Source]) -> Iterator[str]:
        """Give the text as it comes, cleaned if the settings ask for it."""
        if not self._settings.clean:
            yield from iter_text(sources, self._settings.errors, self._settings.newlines)
            return
        cleaner = Cleaner(joint_of(self._settings.tokens))
        yield from cleaner.clean(iter_text(sources, self._settings.errors, "lf"))
        self.erased += cleaner.erased


def joint_of(tokens: str) -> str:
    """Say what cleaning puts between two lines: nothing between characters, a blank between words."""
    return "" if tokens in ("char", "byte") else " "
