"""Convert the words of a command line to values: integers need integer notation, names must not be empty."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclopts import CoercionError, Parameter, Token, convert

WHOLE = re.compile(r"[+-]?\d+(?:_\d+)*")


def _strictly(type_: Any, tokens: Sequence[Token]) -> Any:
    return convert(type_, tokens, converter=_leaf)


def _leaf(type_: type, value: str) -> Any:
    """Convert one word; cyclopts alone would round 2.7 to 3, and an empty path would be the current folder."""
    if type_ is int and not WHOLE.fullmatch(value):
        raise CoercionError(msg=f"{value!r} is not a whole number", target_type=int)
    if type_ is float and not _is_number(value):
        raise CoercionError(msg=f"{value!r} is not a number", target_type=float)
    if type_ is Path and not value:
        raise CoercionError(msg="the name is empty; expected a file or a folder", target_type=Path)
    return convert(type_, [value])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


STRICT = Parameter(converter=_strictly)
