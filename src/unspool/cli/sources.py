"""The texts that a command is given: files, folders, - for standard input, builtin:…"""

from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter


def _no_options(type_: Any, names: Any) -> None:
    """Refuse what was meant as an option: ``-`` had to be allowed, and the rest came with it."""
    for name in names or ():
        if name.startswith("-") and name != "-":
            raise ValueError(f"unknown option {name}")


Sources: TypeAlias = Annotated[list[str], Parameter(allow_leading_hyphen=True, validator=_no_options)]
