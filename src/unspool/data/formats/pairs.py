"""Read pairs of texts, one pair per line separated by a tab, for translation.

Quotes have no special meaning, and an empty side is an error. Blank lines between pairs are skipped. In a file of texts to
translate they are an error, because each line gets one translation.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "two.tsv"
>>> _ = path.write_text("the first of May\\t05-01\\nChristmas\\t12-25\\n")
>>> read_pairs(path).sources, read_pairs(path).targets
(['the first of May', 'Christmas'], ['05-01', '12-25'])
>>> temporary.cleanup()
"""

from dataclasses import dataclass
from pathlib import Path

from unspool.data.text.decoding import read_file
from unspool.errors import EmptyInput, InputError


@dataclass(frozen=True)
class Pairs:
    """Source texts and target texts."""

    name: str
    sources: list[str]
    targets: list[str] | None
    """None if the file has one column and `need_targets` was false."""
    lines: list[int]
    """The line number of each pair, for messages."""

    def __len__(self) -> int:
        return len(self.sources)


def read_pairs(
    path: str | Path,
    columns: tuple[int, int] | None = None,
    need_targets: bool = True,
    defaults: tuple[int, int] | None = None,
) -> Pairs:
    """Read pairs; ``columns``, counted from 0, chooses two columns if a line has more.

    Without ``columns``, the two of ``defaults`` are read if the file has them. Without ``need_targets`` the file may have one
    column, the texts to translate.
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
    if columns is None and defaults is not None and max(defaults) < width:
        columns = defaults
    if width > 2 and columns is None:
        raise InputError(f"{path}: {width} columns; choose the two of the pair, as columns=(0, 1)")
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
