"""Public names of a package, each imported at its first use: importing the package itself stays quick."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
"""As typing has it, which would take a hundredth of a second to import."""
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def load_name(module: str, name: str) -> Any:
    """Return a name of a module below `unspool`, for a method that a later entry of the package implements.

    >>> load_name("errors", "InputError").__name__
    'InputError'
    """
    return getattr(import_module(f"unspool.{module}"), name)


def lazy_names(package: str, table: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package from its table.

    A line of the table is a module below `unspool` and its public names. Any other name is a sub-module:
    `unspool.errors` works after `import unspool`.
    """
    rows = [line.split() for line in table.splitlines()]
    modules = {name: row[0] for row in rows for name in row[1:]}

    def get(name: str) -> object:
        if name in modules:
            return getattr(import_module(f"unspool.{modules[name]}"), name)
        try:
            return import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    def names() -> list[str]:
        special = {name for name in vars(sys.modules[package]) if name.startswith("__")}
        return sorted((special | modules.keys()) - {"__getattr__", "__dir__"})

    return get, names
