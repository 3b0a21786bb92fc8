"""Read `--config FILE`: options of a command from TOML or JSON; options on the command line take precedence."""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cyclopts import App, Argument, ArgumentCollection, Token

from unspool.cli.usage_errors import nearest, parts_of
from unspool.errors import FileError, InputError

OPTION = "--config"
FORMER: dict[str, tuple[str, Mapping[str, str]]] = {}
"""Former names of the options of the command: the name of today, and values that were called otherwise."""
RUN_KEYS = {"format", "kind"}
"""The config.json of a run has these keys."""
KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


def read_config_file(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Add the options of the file that `--config` names to those of the command line."""
    asked = next(
        (each for each in arguments if OPTION in each.names and each.tokens and each.tokens[-1].value), None
    )
    if asked is None:
        return
    path = Path(asked.tokens[-1].value)
    names = {
        name: each for each in arguments for name in each.names if name.startswith("--") and name != OPTION
    }
    seen: dict[str, str] = {}
    for key, value in _load(path).items():
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, dict):
            raise InputError(
                f"{path}: [{key}] is a table; expected options at the top level, for example hidden = 128"
            )
        if option not in names:
            hint = nearest(option, names).replace("--", "").replace("-", "_")
            raise InputError(f"{path}: unknown option {key!r}{hint}")
        argument = names[option]
        if argument.name in seen:
            raise InputError(f"{path}: {seen[argument.name]} and {key} are one option; give one of them")
        seen[argument.name] = key
        if not argument.tokens and value is not None:
            for token in _tokens(argument, option, key, value, path):
                argument.append(token)


def note_former_names(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Print the new name of each former one in a line on standard error, and translate values that have changed."""
    for argument in arguments:
        for i, token in enumerate(argument.tokens):
            if token.keyword in FORMER:
                name, values = FORMER[token.keyword]
                argument.tokens[i] = token.evolve(value=values.get(token.value, token.value))
                print(f"unspool: {token.keyword} is now {name}; the old name ends with 0.2", file=sys.stderr)


def _load(path: Path) -> dict[str, Any]:
    if path.suffix.lower() not in (".toml", ".json"):
        raise InputError(f"{path}: expected a name that ends with .toml or .json")
    try:
        content = path.read_bytes().decode("utf-8-sig")
        found = tomllib.loads(content) if path.suffix.lower() == ".toml" else json.loads(content)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not {path.suffix[1:].upper()}: {error}") from error
    if not isinstance(found, dict):
        raise FileError(f'{path}: expected an object with options, for example {{"hidden": 128}}')
    if found.keys() >= RUN_KEYS:
        raise FileError(
            f"{path}: the config of a run, not of a command: resume the run with unspool resume {path.parent}, or write "
            "the options to repeat into a file of your own"
        )
    return found


def _tokens(argument: Argument, option: str, key: str, value: Any, path: Path) -> Iterator[Token]:
    """Yield the words that give an option this value; raise where it has another type."""
    kinds = parts_of(argument.hint)
    several = bool({tuple, list} & {getattr(kind, "__origin__", None) for kind in kinds})
    if isinstance(value, list) != several:
        raise InputError(f"{path}: {key} is {value!r}; expected {_expected(kinds, several)}")
    for i, each in enumerate(value if several else [value]):
        if not _fits(each, kinds):
            raise InputError(f"{path}: {key} is {value!r}; expected {_expected(kinds, several)}")
        if isinstance(each, bool):
            yield Token(keyword=option, source=str(path), implicit_value=each)
        else:
            yield Token(keyword=option, value=str(each), source=str(path), index=i)


def _fits(value: Any, kinds: set[Any]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, int | float) and str not in kinds:
        return float in kinds or (isinstance(value, int) and int in kinds)
    return isinstance(value, str | int | float) and bool(kinds & {str, Path} or _choices(kinds))


def _choices(kinds: set[Any]) -> list[str]:
    return sorted(kind for kind in kinds if isinstance(kind, str))


def _expected(kinds: set[Any], several: bool) -> str:
    if choices := _choices(kinds):
        return f"one of {', '.join(choices)}"
    name = next((name for kind, name in KINDS.items() if kind in kinds), "a string")
    return f"a list, each {name}" if several else name
