"""Sub-word features of a word: what a model can know about a word that it has not seen.

    Unread   word Unread, lower unread, prefixes U Un Unr, suffixes d ad ead read, shape Xx, first and last sign

>>> features_of("Unread-9")[-1]
'shape=Xx-9'
>>> len(features_of("")) == COUNT
True
"""

from __future__ import annotations

import re

PREFIXES, SUFFIXES = (1, 2, 3), (1, 2, 3, 4)
COUNT = 2 + len(PREFIXES) + len(SUFFIXES) + 1
"""The number of features of every word."""
RUNS = re.compile(r"(.)\1+")


def features_of(word: str) -> tuple[str, ...]:
    """Return the features of a word, as many for each: the word itself first, then what it shares with others."""
    low = word.lower()
    return (
        f"word={word}",
        f"lower={low}",
        *(f"prefix{n}={low[:n]}" for n in PREFIXES),
        *(f"suffix{n}={low[-n:]}" for n in SUFFIXES),
        f"shape={shape_of(word)}",
    )


def shape_of(word: str) -> str:
    """Return the kinds of the signs of a word: X upper case, x lower case or another letter, 9 digit; repeated ones once.

    >>> shape_of("McDonald-2"), shape_of("1,250"), shape_of("世界")
    ('XxXx-9', '9,9', 'x')
    """
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isnumeric() else c for c in word)
    return RUNS.sub(r"\1", "".join(kinds))[:12]
