"""Validate values read from files that may be damaged or manipulated: JSON syntax, depth and field types.

    bytes ─▶ parse_json ─▶ plain values ─▶ read_as(kind) ─▶ a dataclass, a TypedDict, a number, a string …

A crafted file can have a valid checksum. Every file of this package is read through these two functions, so invalid
contents raise `FileError` with the name of the field, never another exception. Integers must fit into 64 bits,
other numbers must be finite. A dataclass also checks its own ranges.

>>> import dataclasses
>>> @dataclasses.dataclass
... class Point:
...     x: int
...     label: str | None = None
>>> read_as(Point, {"x": 3}, "p.json")
Point(x=3, label=None)
>>> read_as(Point, {"x": True}, "p.json")
Traceback (most recent call last):
unspool.errors.FileError: p.json: damaged or manipulated: x is True; expected a whole number
"""

import dataclasses
import json
import types
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import (
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from unspool.errors import FileError, InputError

T = TypeVar("T")
MAX_DEPTH = 64
"""Most nested levels of lists and objects; our files have at most ten."""
LARGEST_FLOAT = 1.7e308
NAMES = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a string"}


class _Wrong(Exception):
    """A value that does not fit its type."""


def parse_json(content: bytes | str, path: str | Path) -> Any:
    """Return the values of a JSON text; raise FileError for invalid JSON, too many levels, NaN or infinity."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8", "surrogatepass")
        values = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise FileError(f"{path}: not a file of unspool: its JSON has too many levels") from None
    except ValueError as error:
        raise FileError(f"{path}: not a file of unspool: {error}") from error
    if _depth_exceeds(values, MAX_DEPTH):
        raise FileError(f"{path}: not a file of unspool: its JSON has more than {MAX_DEPTH} levels")
    return values


def read_as(kind: type[T], value: Any, path: str | Path, name: str = "") -> T:
    """Return a plain value converted to `kind`; raise FileError with the file and the field if it does not fit.

    Objects become dataclasses or TypedDicts, lists become tuples. `name` is the field that holds the value.
    """
    try:
        return cast(T, _convert(kind, value, name))
    except _Wrong as error:
        raise FileError(f"{path}: damaged or manipulated: {error}") from None
    except InputError as error:  # raised by a dataclass: out of range, or in conflict with another field
        raise FileError(f"{path}: damaged or manipulated: {error}") from error


def require_as(kind: type[T], value: Any) -> T:
    """Return a plain value converted to `kind`, as `read_as`; raise InputError with the field if it does not fit."""
    try:
        return cast(T, _convert(kind, value, ""))
    except _Wrong as error:
        raise InputError(str(error)) from None


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a finite number")


def _depth_exceeds(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        below = [each for each in level if isinstance(each, list | dict)]
        if not below:
            return False
        level = [inner for each in below for inner in (each.values() if isinstance(each, dict) else each)]
    return True


def _convert(kind: Any, value: Any, name: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if kind in NAMES:
        return _scalar(kind, value, name)
    if kind is Path:
        return Path(_scalar(str, value, name))
    if origin in (types.UnionType, Union):
        return _union(get_args(kind), value, name)
    if origin is Literal:
        return _check(isinstance(value, str) and value in get_args(kind), kind, value, name)
    if origin in (list, tuple):
        return _sequence(kind, value, name)
    if origin in (dict, Mapping):
        inner = get_args(kind)[1]
        _check(isinstance(value, dict), kind, value, name)
        return {key: _convert(inner, each, f"{name}.{key}".lstrip(".")) for key, each in value.items()}
    if dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return _record(kind, value, name)
    return _check(value is None and kind is types.NoneType, kind, value, name)


def _scalar(kind: type, value: Any, name: str) -> Any:
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = number and -LARGEST_FLOAT <= value <= LARGEST_FLOAT  # false for NaN
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    else:
        fits = isinstance(value, kind)
    _check(fits, kind, value, name)
    # NumPy has no integers of more than 64 bits.
    return float(value) if kind is float and abs(value) >= 2**63 else value


def _union(kinds: tuple[Any, ...], value: Any, name: str) -> Any:
    for kind in kinds:
        try:
            return _convert(kind, value, name)
        except _Wrong as error:
            reason = error
    if value is not None and len(kinds) == 2 and types.NoneType in kinds:
        (other,) = (kind for kind in kinds if kind is not types.NoneType)
        return _convert(other, value, name)  # for its more precise message
    raise reason


def _sequence(kind: Any, value: Any, name: str) -> Any:
    inner = get_args(kind)
    _check(isinstance(value, list), kind, value, name)
    if get_origin(kind) is tuple and inner[-1:] != (Ellipsis,):
        _check(len(value) == len(inner), kind, value, name)
        kinds = inner
    else:
        kinds = (inner[0],) * len(value)
    found = [
        _convert(each, entry, f"{name}[{i}]")
        for i, (each, entry) in enumerate(zip(kinds, value, strict=True))
    ]
    return tuple(found) if get_origin(kind) is tuple else found


def _record(kind: Any, value: Any, name: str) -> Any:
    """Return a dataclass, or a dict whose known fields are checked (a TypedDict may have others)."""
    _check(isinstance(value, dict), kind, value, name)
    hints, required = _fields(kind)
    for field in required:
        if field not in value:
            raise _Wrong(f"the field {f'{name}.{field}'.lstrip('.')} is missing")
    former = (
        {} if is_typeddict(kind) else {f.metadata.get("key", f.name): f for f in dataclasses.fields(kind)}
    )
    made = {}
    for field, each in value.items():
        if field in former:  # a file may have another name for a field, and for its values
            each = former[field].metadata.get("values", {}).get(each, each) if isinstance(each, str) else each
        made[field] = _convert(hints[field], each, f"{name}.{field}".lstrip(".")) if field in hints else each
    if is_typeddict(kind):
        return made
    if unknown := sorted(set(value) - set(hints)):
        raise _Wrong(f"unknown field {f'{name}.{unknown[0]}'.lstrip('.')!r}")
    return kind(**{former[field].name: each for field, each in made.items()})


@lru_cache(maxsize=64)
def _fields(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of all fields and the names of the required ones."""
    hints = get_type_hints(kind)
    if is_typeddict(kind):
        given = get_type_hints(kind, include_extras=True).items() if kind.__total__ else ()
        return hints, tuple(field for field, hint in given if get_origin(hint) is not NotRequired)
    fields = [field for field in dataclasses.fields(kind) if field.init]
    missing = dataclasses.MISSING
    keys = {field.name: field.metadata.get("key", field.name) for field in fields}
    required = tuple(keys[f.name] for f in fields if f.default is missing and f.default_factory is missing)
    return {keys[field.name]: hints[field.name] for field in fields}, required


def _check(fits: bool, kind: Any, value: Any, name: str) -> Any:
    if not fits:
        raise _Wrong(f"{name or 'the content'} is {_describe(value)}; expected {_expected(kind)}")
    return value


def _expected(kind: Any) -> str:
    if kind in NAMES:
        return NAMES[kind]
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) in (list, tuple):
        fixed = get_origin(kind) is tuple and get_args(kind)[-1:] != (Ellipsis,)
        return f"a list of {len(get_args(kind))}" if fixed else "a list"
    return "null" if kind is types.NoneType else "an object"


def _describe(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"a list of {len(value)}" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
