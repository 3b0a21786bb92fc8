"""Clean text as common lecture notes do: letters A-Z only, in lower case, line by line.

All other letters, such as é and 中, are erased and counted. Lines are joined by ``joint``: nothing for characters, a blank
for words.

>>> clean_lines("The Time Machine, by H. G. Wells [1898]\\n\\nI\\n")
['the time machine by h g wells', 'i']
"""

import re
from collections.abc import Iterable, Iterator

_OTHER = re.compile("[^A-Za-z]+")
_FOREIGN = re.compile(r"[^\W\d_A-Za-z]")


def clean_lines(text: str) -> list[str]:
    """Return each line in lower case with one blank in place of other characters; drop empty lines."""
    lines = (_OTHER.sub(" ", line).strip().lower() for line in text.split("\n"))
    return [line for line in lines if line]


class Cleaner:
    """Cleans a stream of text and counts the letters outside A-Z that were erased.

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
        """Yield the cleaned text in pieces that end at the end of a line."""
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
