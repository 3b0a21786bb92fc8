"""End a generated text where a stop text appears in it; the stop text is left out.

A stop text may begin in one token and end in another. So text that could be its beginning is held back until the next
piece shows whether it is. If several stop texts end with the same piece, the one that begins first counts.

>>> "|".join(StopFilter(["END", "\\n\\n"]).pieces(["a E", "NE", "ND b", "c"]))
'a |EN|'
"""

from collections.abc import Iterable, Iterator, Sequence

from unspool.errors import InputError


class StopFilter:
    """Passes pieces of a text on until one of the stop texts appears."""

    def __init__(self, stops: str | Sequence[str]) -> None:
        self.stops = (stops,) if isinstance(stops, str) else tuple(stops)
        if any(not isinstance(stop, str) or not stop for stop in self.stops):
            raise InputError("stop: expected texts of at least one character, for example 'THE END'")
        self.found: str | None = None
        """The stop text that ended the text; None: none did."""

    def pieces(self, pieces: Iterable[str]) -> Iterator[str]:
        """Yield the text before the first stop text, as early as it is certain; take no piece after that."""
        if not self.stops:
            yield from pieces
            return
        held = ""
        for piece in pieces:
            held += piece
            begin, stop = min(
                ((held.find(stop), stop) for stop in self.stops if stop in held), default=(-1, "")
            )
            if stop:
                self.found = stop
                yield held[:begin]
                return
            certain = len(held) - max(_overlap(held, stop) for stop in self.stops)
            yield held[:certain]
            held = held[certain:]
        yield held

    def after(self, text: str) -> str | None:
        """Return the part of a text after its last stop text; None: there is none. For a text that is generated backward."""
        begin, stop = max(((text.rfind(stop), stop) for stop in self.stops if stop in text), default=(-1, ""))
        if not stop:
            return None
        self.found = stop
        return text[begin + len(stop) :]


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that is a beginning of the stop text, but not all of it."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
