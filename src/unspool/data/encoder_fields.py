"""Encoders as they are read from a file: all but the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TokenFields:
    """A `TokenEncoder` without its vocabulary, as read from a file."""

    kind: Literal["tokens"]
    tokens: str
    joined: bool
    subwords: bool = False


@dataclass(frozen=True)
class IdFields:
    """An `IdEncoder` as read from a file."""

    kind: Literal["ids"]
    size: int


@dataclass(frozen=True)
class ValueFields:
    """A `ValueEncoder` as read from a file."""

    kind: Literal["values"]
    mean: list[float]
    spread: list[float]


Fields = TokenFields | IdFields | ValueFields
