"""The cleaning of common lecture notes: letters A-Z only, in lower case, line by line.

It erases every letter that is not one of these fifty-two, é and 中 alike. So it is an option, never the
default, and the number of letters it erased is kept. The notes then string the lines together without
anything between them when they count characters, and with a gap when they count words; so does ``joint``
here.

>>> clean_lines("The Time Machine, by H. G. Wells [1898]\\n\\nI\\n")
['the time machine by h g wells', 'i']
"""

import re
from collections.abc import Iterable, Iterator

_OTHER = re.compile("[^A-Za-z]+")
_FOREIGN = re.compile(r"[^\W\d_A-Za-z]")


def clean_lines(text: str) -> list[str]:
    """Keep the letters of every line in lower case, one blank for what stood between; drop empty lines."""
    lines = (_OTHER.sub(" ", line).strip().lower() for line in text.split("\n"))
    return [line for line in lines if line]


class Cleaner:
    """Clean a stream of text, and count the letters that were erased because they are not A-Z.

    >>> cleaner = Cleaner(joint=" ")
    >>> "".join(cleaner.clean(["Déjà vu,\\nth", "ree\\n"]))
    'd j vu three '
    >>> cleaner.erased
    2
    """

    def __init__(self, joint: str) -> None:
        self.joint = joint
        self.erased = 0

    def clean(self, texts: Iterable[str]) -> Iterator[str]:
        """Give the cleaned text in pieces that end where a line ends."""
        held = ""
        for text in texts:
            whole, newline, rest = (held + text).rpartition("\n")
            held = rest
            if newline:
                yield self._clean(whole)
        yield self._clean(held)

    def _clean(self, text: str) -> str:
        self.erased += len(_FOREIGN.findall(text))
        return "".join(line + self.joint for line in clean_lines(text))
