"""Find the start and end of every word of a text, vectorised over its characters.

Every character has a class; the classes of neighbours decide where tokens begin.

    SPACE     in no token                        NEWLINE   a token alone (or in no token)
    SIGN      a token alone: punctuation, signs  SINGLE    a token alone: Han, kana, Thai … (no blanks there)
    WORD      joins its neighbours that are WORD or DIGIT
    DIGIT     as WORD; and a '.' or ',' between two digits is part of the number
    EXTEND    a combining mark: belongs to the character before it

An apostrophe between two word characters is part of the word.

>>> from unspool.data.tokens.characters import code_points
>>> text = "It's 3.5 m.\\n红楼"
>>> starts, ends = token_spans(code_points(text))
>>> [text[i:j] for i, j in zip(starts, ends)]
["It's", '3.5', 'm', '.', '\\n', '红', '楼']
"""

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.arrays import Codes, Whole

SPACE, NEWLINE, SIGN, SINGLE, SINGLE_END, EXTEND, WORD, DIGIT = range(8)
"""WORD and DIGIT must be the largest: ``>= WORD`` selects both."""

UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3041, 0x309F),  # Hiragana
    (0x3400, 0x4DBF),  # Han …
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Scripts without blanks between words: each character is a token."""

Classes = NDArray[np.uint8]


def token_spans(codes: Codes, *, newlines: bool = True, blanks_only: bool = False) -> tuple[Whole, Whole]:
    """Return the positions at which each token starts and ends.

    ``newlines``: a line end is a token. ``blanks_only``: tokens are separated only by blanks, for text that is already
    tokenized.
    """
    classes = class_of_each(codes)
    if blanks_only:
        classes[classes > NEWLINE] = WORD
    else:
        _attach_marks(classes)
        _join_inside(codes, classes)
    if not newlines:
        classes[classes == NEWLINE] = SPACE
    return _edges(classes)


def _edges(classes: Classes) -> tuple[Whole, Whole]:
    inside = classes != SPACE
    begins = inside & (classes != SINGLE_END)
    begins[1:] &= (classes[1:] < WORD) | (classes[:-1] < WORD)
    last = inside.copy()
    last[:-1] &= begins[1:] | ~inside[1:]
    return np.flatnonzero(begins), np.flatnonzero(last) + 1


def _attach_marks(classes: Classes) -> None:
    """Attach combining marks: to the end of a SINGLE, to a WORD, or as the start of a word after any other class."""
    marks = np.flatnonzero(classes == EXTEND)
    base = np.maximum(marks - 1, 0)
    while (on := (classes[base] == EXTEND) & (base > 0)).any():
        base -= on
    classes[marks] = np.where(classes[base] == SINGLE, SINGLE_END, WORD)


def _join_inside(codes: Codes, classes: Classes) -> None:
    """Join it's and 3,000.5 to one word: the sign between takes the class of its neighbours."""
    for characters, least in ((("'", "’"), WORD), ((".", ","), DIGIT)):
        for character in characters:
            at = np.flatnonzero(codes == ord(character))
            at = at[(at > 0) & (at < len(codes) - 1)]
            joined = at[(classes[at - 1] >= least) & (classes[at + 1] >= least)]
            classes[joined] = WORD


def class_of_each(codes: Codes) -> Classes:
    """Return the class of every character."""
    table = _first_plane()
    if codes.dtype.itemsize <= 2:
        return table.take(codes)
    classes = table.take(np.minimum(codes, 0xFFFF))
    beyond = np.flatnonzero(codes > 0xFFFF)
    kinds, which = np.unique(codes[beyond], return_inverse=True)
    classes[beyond] = np.array([_class_of(chr(code)) for code in kinds.tolist()], np.uint8)[which]
    return classes


@cache
def _first_plane() -> Classes:
    return np.array([_class_of(chr(code)) for code in range(0x10000)], np.uint8)


def _class_of(character: str) -> int:
    if character == "\n":
        return NEWLINE
    if character.isspace():
        return SPACE
    if character.isalnum() or character == "_":
        return DIGIT if character.isdecimal() else SINGLE if _is_unspaced(ord(character)) else WORD
    return EXTEND if unicodedata.category(character)[0] == "M" else SIGN


def _is_unspaced(code: int) -> bool:
    return code >= 0x0E00 and any(low <= code <= high for low, high in UNSPACED)
