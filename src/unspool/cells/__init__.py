"""One recurrence a file: its equations, its parameters, how they begin."""

from unspool.cells import elman, gru, lstm
from unspool.cells.cell import Cell
from unspool.errors import InputError

CELLS: dict[str, Cell] = {cell.name: cell for cell in (elman.CELL, gru.CELL, lstm.CELL)}


def cell_named(name: str) -> Cell:
    """Return the cell of this name.

    >>> cell_named("lstm").gates
    ('i', 'f', 'g', 'o')
    """
    if name not in CELLS:
        raise InputError(f"cell is {name!r}; expected one of {', '.join(CELLS)}")
    return CELLS[name]
