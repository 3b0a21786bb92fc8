"""Read sources as provisional ids, block by block.

bytes ─▶ text ─▶ (cleaned text) ─▶ pieces that end where a token ends ─▶ provisional ids
"""

from collections.abc import Iterator

import numpy as np

from unspool.data.text.clean import Cleaner
from unspool.data.text.decoding import iter_bytes, iter_text
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import Source
from unspool.data.tokens.registry import Indexer, Tokenizer
from unspool.kernels.arrays import Codes


class TextReader:
    """Reads sources with the given settings and tokenizer."""

    def __init__(self, settings: TextConfig, tokenizer: Tokenizer) -> None:
        self._settings = settings
        self._tokenizer = tokenizer
        self.erased = 0
        """Number of letters outside A-Z that cleaning has erased so far."""

    def numbered(self, sources: list[Source], indexer: Indexer) -> Iterator[Codes]:
        """Yield the provisional ids of the sources in blocks."""
        if self._tokenizer.reads_bytes and not self._settings.clean:
            # No decoding, so any bytes are valid.
            for block in iter_bytes(sources, self._settings.newlines):
                yield np.frombuffer(block, np.uint8)
            return
        for piece in self.pieces(sources):
            yield indexer.feed(piece)

    def pieces(self, sources: list[Source]) -> Iterator[str]:
        """Yield the text in pieces that end at the end of a token."""
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
        """Yield the text in blocks; with `clean`, cleaned."""
        if not self._settings.clean:
            yield from iter_text(sources, self._settings.errors, self._settings.newlines)
            return
        cleaner = Cleaner(self._tokenizer.line_joint)
        yield from cleaner.clean(iter_text(sources, self._settings.errors, "lf"))
        self.erased += cleaner.erased
