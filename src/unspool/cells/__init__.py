"""The registry of cells: one file per recurrence, with its equations, parameters, gradients and graph.

Add a cell: write its file, add it to the line below, and add its kernels to the table of the native module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from unspool.cells import elman, gru, lnlstm, lstm
from unspool.cells.cell import Cell
from unspool.errors import InputError

CELLS: dict[str, Cell] = {cell.name: cell for cell in (elman.CELL, gru.CELL, lnlstm.CELL, lstm.CELL)}
DEFAULT = lstm.CELL.name
"""The cell of a model, and of a language model with a small vocabulary."""
TASK_DEFAULT = gru.CELL.name
"""The cell of the other tasks (classify, forecast and so on) and of a language model with a large vocabulary."""
PLAIN = elman.CELL.name
"""The cell of the textbook's figures, whose activation can be chosen."""

if TYPE_CHECKING:
    CellName = str
else:
    CellName = Literal[tuple(CELLS)]
"""A name in the registry: a `str` for the type checker, the choices for those who read annotations."""


def cell_named(name: str) -> Cell:
    """Return the cell of this name.

    >>> cell_named("lstm").gates
    ('i', 'f', 'g', 'o')
    """
    if not isinstance(name, str) or name not in CELLS:
        raise InputError(f"cell is {name!r}; expected one of {', '.join(CELLS)}")
    return CELLS[name]


def names_with(attribute: str) -> str:
    """Return the names of the cells of which an attribute is true, for a message.

    >>> names_with("has_activation")
    'elman'
    """
    return " or ".join(name for name, cell in CELLS.items() if getattr(cell, attribute))
