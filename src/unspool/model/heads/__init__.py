"""Heads by name: one file and one entry of HEADS each."""

from unspool.model.heads.base import Head
from unspool.model.heads.classes import Classes
from unspool.model.heads.distribution import Distribution
from unspool.model.heads.numbers import Numbers

HEADS: dict[str, type[Head]] = {each.name: each for each in (Classes, Numbers, Distribution)}
"""All heads by name."""
