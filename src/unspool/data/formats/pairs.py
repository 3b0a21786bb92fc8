"""Pairs of texts, one pair a line with a tab between: what a translator reads.

Quotes are characters as any other here, and a side that is empty is an error. Blank lines between pairs are
skipped; among texts to translate they are an error, for an answer a line is what is expected of them.

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

from unspool.data.text.source import read_file
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


def read_pairs(
    path: str | Path,
    columns: tuple[int, int] | None = None,
    need_targets: bool = True,
    usual: tuple[int, int] | None = None,
) -> Pairs:
    """Read pairs; ``columns`` says which two, counted from 0, where a line has more than two.

    If it does not, the ``usual`` two are read where there are so many columns. Without ``need_targets`` a file
    of one column is fine: something to translate.
    """
    if columns is not None and columns[0] == columns[1]:
        raise InputError(f"columns are {columns[0]} and {columns[1]}; expected two different ones")
    lines = read_file(path, newlines="lf").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise EmptyInput(f"{path}: no {'pair' if need_targets else 'text'} in it")
    if not need_targets and len(rows) < len(lines):
        blank = next(number for number, line in enumerate(lines, 1) if not line.strip())
        raise InputError(f"{path}: line {blank} is empty; expected a text on every line")
    width = len(rows[0][1])
    alone = not need_targets and width == 1
    if columns is None and usual is not None and max(usual) < width:
        columns = usual
    if width > 2 and columns is None:
        raise InputError(f"{path}: {width} columns; say which two are the pair, as columns=(0, 1)")
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
