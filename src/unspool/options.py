"""Declare a hyper-parameter once: name, type, help and check; configs, estimators and commands are made from it.

    HIDDEN = Option("hidden", "H, the hidden units.", whole(1), group="Network")     in model/options.py

    @declared(network)                      the declarations of model/options.py, by the names of the fields
    @dataclass(frozen=True)
    class ModelConfig:
        hidden: int = 128

        def __post_init__(self) -> None:
            check_fields(self)              every check, from the declarations

A declaration stands in the package that uses the number: `data.options`, `model.options`, `optimisers.options`,
`training.options`, `tasks.forecast.options`. Fields keep the declaration as metadata. The command line makes its
options from it, `to_json` and `storage.schema.read_as` the JSON of a run, `docs/make_reference.py` the reference page.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from numbers import Integral, Real
from types import MappingProxyType, ModuleType
from typing import Any, Generic, Self, TypeVar

from unspool.errors import InputError, UnknownArgument

T = TypeVar("T")
D = TypeVar("D")
C = TypeVar("C")
MOST_STEPS = 10**10
"""The most updates of a training, or tokens of a text to write: months at a thousandth of a second each."""
MOST_ORDER = 100
"""The highest order of n-grams. Time grows with the square of the order, and long before this almost every n-gram occurs once."""


@dataclass(frozen=True)
class Check:
    """A condition on values: how to describe it, and the function that applies it."""

    expected: str
    function: Callable[[str, Any], Any]

    def __call__(self, name: str, value: Any) -> Any:
        """Return the value to store; raise InputError where it cannot be used."""
        return self.function(name, value)


@dataclass(frozen=True, eq=False)
class Option(Generic[T]):
    """One hyper-parameter, for every config, estimator and command that has it."""

    name: str
    """The name in Python."""
    help: str
    """What it does, in one or two sentences."""
    check: Check | None = None
    """Which values can be used; None: what the choices say, or any."""
    group: str = "Training"
    """The heading of its options in the help of a command."""
    choices: Collection[str] = ()
    """All values that there are: a tuple, or a registry."""
    option: str = ""
    """The name on the command line, without dashes, if it is not that of Python."""
    former: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """Former names, each with the values that were called otherwise: {old value: new value}."""
    single: bool = False
    """A flag without a second option that negates it."""

    def __post_init__(self) -> None:
        if self.check is None and self.choices:
            object.__setattr__(self, "check", choice(self.choices))

    def field(self, default: D, help: str = "") -> T | D:
        """Return a field of a dataclass that has another name, or another help text."""
        metadata = self.metadata() | ({"help": help} if help else {})
        return dataclasses.field(default=default, metadata=metadata)

    def metadata(self, key: str = "") -> dict[str, Any]:
        """Return what a field keeps of its declaration; `key` is the name in JSON, if it is no former name."""
        key = key or next(iter(self.former), "")
        found = {"option": self, "help": self.help}
        return found | {"key": key, "values": self.former.get(key, {})} if key else found


def declared(
    *modules: ModuleType, keys: Mapping[str, str] = MappingProxyType({})
) -> Callable[[type[C]], type[C]]:
    """Give the fields of a dataclass the declarations of their names in the modules; `keys` are names in JSON."""

    def made(kind: type[C]) -> type[C]:
        declare(kind, declarations(*modules), keys)
        return kind

    return made


def declarations(*modules: ModuleType) -> dict[str, Option[Any]]:
    """Return the declarations in some modules, by name."""
    return {
        each.name: each for module in modules for each in vars(module).values() if isinstance(each, Option)
    }


def declare(kind: Any, known: Mapping[str, Option[Any]], keys: Mapping[str, str]) -> None:
    """Attach declarations to the fields of a dataclass that have none."""
    for field in fields(kind):
        if field.name in known and option_of(field) is None:
            own = copy(
                field
            )  # a field of a base class is shared with other classes, which may have other names in JSON
            own.metadata = MappingProxyType(known[field.name].metadata(keys.get(field.name, "")))
            kind.__dataclass_fields__[field.name] = own


def option_of(field: dataclasses.Field[Any]) -> Option[Any] | None:
    """Return the declaration behind a field of a dataclass, or None."""
    return field.metadata.get("option")


class _WithRandomState(type):
    """Accepts `random_state` as another name of the argument `seed` of a class."""

    def __call__(cls, *args: Any, **params: Any) -> Any:
        return super().__call__(*args, **_seeded(cls, params))

    @property
    def __signature__(cls) -> inspect.Signature:
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class Arguments(metaclass=_WithRandomState):
    """The conventions of scikit-learn for a dataclass of constructor arguments: get_params, set_params, a short repr.

    The constructor and `set_params` accept `random_state` for `seed`; `get_params` has `seed` alone.
    """

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Refuse an argument that the class does not have, with the name that was probably meant."""
        _refuse_arguments(cls, params)
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change the constructor's arguments."""
        params = _seeded(type(self), params)
        _refuse_arguments(type(self), params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        given = [f"{name}={value!r}" for name, value in self.get_params().items() if value != usual[name]]
        return f"{type(self).__name__}({', '.join(given)})"


def _seeded(kind: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with `seed` in the place of `random_state`, where a class has a seed; None is the default."""
    if "random_state" not in params or all(field.name != "seed" for field in fields(kind)):
        return params
    rest = {name: value for name, value in params.items() if name != "random_state"}
    if (state := params["random_state"]) is None:
        return rest
    if "seed" in rest:
        raise InputError(
            f"seed is {rest['seed']} and random_state {state}: they are one argument; give one of them"
        )
    return rest | {"seed": at_least("random_state", state, 0)}


def _refuse_arguments(kind: Any, params: Iterable[str]) -> None:
    """Raise for an argument that a class does not have: a former name, or one that is misspelt."""
    former = {
        old: field.name
        for field in fields(kind)
        if (option := option_of(field))
        for old in (option.option, *option.former)
    }
    for name in set(params) & set(former):
        raise UnknownArgument(f"{kind.__name__} has no argument {name!r}; it is now {former[name]!r}")
    refuse_unknown(kind.__name__, params, [field.name for field in fields(kind)])


def check_values(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for fields of a dataclass as their declarations check them; the default of a field always passes."""
    found = dict(given)
    for field in fields(kind):
        option, value = option_of(field), given.get(field.name, MISSING)
        usual = type(value) is type(field.default) and value == field.default
        if option is not None and option.check is not None and value is not MISSING and not usual:
            found[field.name] = option.check(field.name, value)
    return found


def check_fields(config: Any) -> None:
    """Check every declared field of a dataclass, and store the values that the checks return (Python's int)."""
    for name, value in check_values(config, vars(config)).items():
        object.__setattr__(config, name, value)


def to_json(config: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain values, under their names in files."""
    found = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            value = to_json(value)
        values = {new: old for old, new in field.metadata.get("values", {}).items()}
        found[key_of(field)] = values.get(value, value) if values else value
    return found


def key_of(field: dataclasses.Field[Any]) -> str:
    """Return the name of a field in files."""
    return str(field.metadata.get("key", field.name))


def from_json(kind: type[C], content: dict[str, Any]) -> C:
    """Make a dataclass from plain values under their names in files; an unknown or a missing field is an error."""
    names = {key_of(field): field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(content) - set(names)):
        raise InputError(f"unknown field {unknown[0]!r}; expected some of {', '.join(sorted(names))}")
    needed = {key for key, field in names.items() if field.default is dataclasses.MISSING}
    if missing := sorted(needed - set(content)):
        raise InputError(f"the field {missing[0]!r} is missing")
    return kind(**{names[key].name: value for key, value in content.items()})


def build(kind: type[C], source: object, **given: Any) -> C:
    """Make a dataclass from the attributes of `source` that have the names of its fields, and from what is given."""
    names = [field.name for field in fields(kind) if field.init and hasattr(source, field.name)]  # type: ignore[arg-type]
    return kind(**{name: getattr(source, name) for name in names} | given)


# ── checks ─────────────────────────────────────────────────────────────────────────────────────────────────


def whole(least: int, most: int | None = None) -> Check:
    """Accept whole numbers from `least` to `most`, Python's or NumPy's."""
    bound = (
        f"a whole number of {least:,} or more" if most is None else f"a whole number, {least:,} to {most:,}"
    )
    return Check(bound, lambda name, value: at_least(name, value, least, most))


def number(expected: str, accepts: Callable[[float], bool]) -> Check:
    """Accept real numbers that fulfil a condition; `expected` describes them."""

    def function(name: str, value: Any) -> Any:
        if not is_number(value) or not accepts(value):
            raise InputError(f"{name} is {value!r}; expected {expected}")
        return value

    return Check(expected, function)


def choice(names: Collection[str]) -> Check:
    """Accept one of some names; of a registry, any that is registered when the value is checked."""

    def function(name: str, value: Any) -> Any:
        check_choice(name, value, names)
        return value

    return Check(f"one of {', '.join(names)}", function)


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r}; expected True or False")
    return value


TRUTH = Check("True or False", _truth)
FRACTION = number("a number of at least 0 and below 1", lambda value: 0 <= value < 1)
INSIDE_UNIT = number("a number above 0 and below 1", lambda value: 0 < value < 1)
UNIT = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
POSITIVE = number("a number above 0", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = number("a number of 0 or more", lambda value: 0 <= value < math.inf)


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} is {value!r}; expected one of {', '.join(choices)}")


def is_number(value: object) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def at_least(name: str, value: int, least: int, most: int | None = None) -> int:
    """Return the value as Python's int; raise unless it is an integer, Python's or NumPy's, from `least` to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number of {least} or more")
    if most is not None and value > most:
        raise InputError(f"{name} is {value:,}; expected a whole number of at most {most:,}")
    return int(value)


def check_integers(config: object, **least: int) -> None:
    """Check integer fields of a config against their least values, and store them as Python's int."""
    for name, low in least.items():
        object.__setattr__(config, name, at_least(name, getattr(config, name), low))


def check_order(order: int, least: int = 1) -> int:
    """Return the order as Python's int; raise unless n-grams of this order can be counted."""
    return at_least("order", order, least, MOST_ORDER)


def refuse_unknown(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for a keyword argument that a class does not have, with the name that was probably meant.

    >>> refuse_unknown("LanguageModel", ["hiden"], ["hidden", "layers"])
    Traceback (most recent call last):
    unspool.errors.UnknownArgument: LanguageModel has no argument 'hiden': did you mean 'hidden'? It has hidden, layers
    """
    known = list(known)
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f": did you mean {near[0]!r}? It has " if near else "; it has "
            raise UnknownArgument(f"{kind} has no argument {name!r}{hint}{', '.join(known)}")
