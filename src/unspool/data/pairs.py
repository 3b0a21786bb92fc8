"""Pairs of texts, one pair a line with a tab between: what a translator reads.

Quotes are characters as any other here, blank lines are skipped, and a side that is empty is an error.

>>> import pathlib, tempfile
>>> place = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(place.name) / "two.tsv"
>>> _ = path.write_text("the first of May\\t05-01\\nChristmas\\t12-25\\n")
>>> read_pairs(path).sources, read_pairs(path).targets
(['the first of May', 'Christmas'], ['05-01', '12-25'])
>>> place.cleanup()
"""

from dataclasses import dataclass
from pathlib import Path

from unspool.data.source import read_text
from unspool.errors import EmptyInput, InputError


@dataclass(frozen=True)
class Pairs:
    """Texts, and what each becomes."""

    name: str
    sources: list[str]
    targets: list[str] | None
    """None where the file has one column and no more were asked for."""
    lines: list[int]
    """The line of every pair, for messages."""

    def __len__(self) -> int:
        return len(self.sources)


def read_pairs(path: str | Path, columns: tuple[int, int] | None = None, need_targets: bool = True) -> Pairs:
    """Read pairs; ``columns`` says which two, counted from 0, where a line has more than two.

    Without ``need_targets`` a file of one column is fine: something to translate.
    """
    rows = [
        (number, line.split("\t"))
        for number, line in enumerate(read_text(path, newlines="lf").split("\n"), 1)
        if line.strip()
    ]
    if not rows:
        raise EmptyInput(f"{path}: no pair in it")
    width = len(rows[0][1])
    alone = not need_targets and width == 1
    if width > 2 and columns is None:
        raise InputError(f"{path}: {width} columns; say which two are the pair, as columns 0 and 1")
    source, target = columns or (0, 1)
    for number, fields in rows:
        if len(fields) != width:
            raise InputError(f"{path}: line {number} has {len(fields)} columns; the first pair has {width}")
        for at in (source,) if alone else (source, target):
            if not 0 <= at < width:
                raise InputError(
                    f"{path}: line {number} has no column {at + 1}; expected a tab between two texts"
                )
            if not fields[at].strip():
                raise InputError(f"{path}: line {number}, column {at + 1}: empty; expected a text")
    return Pairs(
        str(path),
        [fields[source].strip() for _, fields in rows],
        None if alone else [fields[target].strip() for _, fields in rows],
        [number for number, _ in rows],
    )
