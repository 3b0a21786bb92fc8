"""Explain an error in the command line in one line: what is wrong, what was probably meant, where the help is."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, get_args

from cyclopts import App, ArgumentCollection, CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from unspool.errors import InputError

UNKNOWN_OPTION = "unknown option "
SYNONYMS = {"bfloat16": "bf16", "bfloat": "bf16", "fp32": "float32", "f32": "float32", "float": "float32", "single": "float32",
            "float16": None, "fp16": None, "half": None}  # fmt: skip
"""Values as other programs call them, and ours; None: there is nothing like it, though the spelling is similar."""


def explain(error: CycloptsError) -> str:
    """Return one line for an error in the command line.

    A misspelt command or option gets the nearest name that exists; a misspelt command also gets the full list.
    """
    command = " ".join(["unspool", *(error.command_chain or ())])
    return f"{_what_is_wrong(error)}; see {command} --help"


def refuse_absurd_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Raise for a number that no option can take: not finite, or a whole number of more than 63 bits."""
    for argument in arguments:
        kinds = parts_of(argument.hint)
        for word in (token.value for token in argument.tokens if kinds & {int, float}):
            if float in kinds and word.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
                raise InputError(f"{argument.name} is {word}; expected a finite number")
            long = int in kinds and re.fullmatch(r"[+-]?\d{19,}", word) is not None
            if long and (len(word) > 20 or abs(int(word)) >= 2**63):
                shown = word if len(word) <= 24 else f"{word[:20]}…"
                raise InputError(f"{argument.name} is {shown}; expected a whole number below 2^63")


def parts_of(hint: Any) -> set[Any]:
    """Return a type and all types that it is made of: of tuple[float, int] | None also float and int."""
    return {hint}.union(*(parts_of(each) for each in get_args(hint)))


def nearest(word: str, names: Iterable[str]) -> str:
    """Return a question with the name that is most similar to the word, or nothing.

    >>> nearest("trian", ["train", "stats"]), nearest("xyz", ["train"])
    ('; did you mean train?', '')
    """
    found = difflib.get_close_matches(word, list(names), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""


def _what_is_wrong(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        names = [] if error.app is None else [name for name in error.app if not name.startswith("-")]
        there = f"; there are {', '.join(names)}" if names else ""
        word = error.unused_tokens[0]
        return f"unknown command {word!r}{nearest(word, names)}{there}"
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error, error.token.keyword or error.token.value)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected argument {error.unused_tokens[0]!r}"
    # The message of a validator says what is wrong; cyclopts adds the whole list of values that was given.
    own = error.exception_message if isinstance(error, ValidationError) else ""
    if own.startswith(UNKNOWN_OPTION):
        return _unknown_option(error, own.removeprefix(UNKNOWN_OPTION))
    line = " ".join((own or str(error)).split()).rstrip(".")
    if isinstance(error, CoercionError) and error.msg and error.token and error.token.keyword is None:
        return f"{error.argument.name if error.argument else 'a value'}: {line}"
    if isinstance(error, CoercionError) and error.token:
        line = _with_synonym(line, error.token.value)
    return line[:1].lower() + line[1:]


def _with_synonym(line: str, value: str) -> str:
    """Replace the question of cyclopts, which compares spellings, if the value is another name of a choice.

    >>> _with_synonym('Choose from: "float32", "bf16". Did you mean "float32"?', "bfloat16")
    'Choose from: "float32", "bf16". Did you mean "bf16"?'
    >>> _with_synonym('Choose from: "float32", "bf16"', "BF16"), _with_synonym('Choose from: "char"', "fp32")
    ('Choose from: "float32", "bf16". Did you mean "bf16"?', 'Choose from: "char"')
    """
    meant = SYNONYMS.get(value.lower(), value.lower())
    if (value.lower() not in SYNONYMS and value == meant) or not (meant is None or f'"{meant}"' in line):
        return line
    line = re.sub(r' Did you mean "[^"]*"\?$', "", line).rstrip(".")
    return line if meant is None else f'{line}. Did you mean "{meant}"?'


def _unknown_option(error: CycloptsError, word: str) -> str:
    word = word.partition("=")[0]
    return f"{UNKNOWN_OPTION}{word}{nearest(word, _options(error.app))}"


def _options(app: App | None) -> list[str]:
    """Return the names of all options of a command."""
    if app is None:
        return []
    return [name for argument in app.assemble_argument_collection() for name in argument.names]
