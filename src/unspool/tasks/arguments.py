"""Constructor arguments by scikit-learn's conventions, for classes whose arguments are the fields of a dataclass."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self, TypeVar

from unspool.options import refuse_unknown

ConfigT = TypeVar("ConfigT")


class Arguments:
    """A dataclass whose arguments can be read and changed by name."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Refuse an argument that the class does not have, with the name that was probably meant."""
        refuse_unknown(cls.__name__, params, [field.name for field in fields(cls)])  # type: ignore[arg-type]
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change the constructor's arguments."""
        refuse_unknown(type(self).__name__, params, self.get_params())
        for name, value in params.items():
            setattr(self, name, value)
        return self


def config_from(made: type[ConfigT], source: object, **fixed: Any) -> ConfigT:
    """Return a config made from the attributes of `source` that have the names of its fields, and from `fixed`."""
    names = [field.name for field in fields(made)]  # type: ignore[arg-type]
    return made(**{name: getattr(source, name) for name in names if hasattr(source, name)} | fixed)
