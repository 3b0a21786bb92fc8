"""Replace the names of Python arguments in errors of the library by options of the command line."""

import os
import re

from cyclopts import App, ArgumentCollection

ADVICE = {
    "choose another path": "give another --out",
    "choose a shorter path": "give a shorter --out",
    "the folder that a training wrote": "the folder that a training wrote (--out)",
    "with clean=False": "without --clean",
    "a saved state of a generator": "a saved state (a file that unspool generate --save-state wrote)",
    "choose port 0": "give --port 0",
}
"""Phrases of the library, and those of the command line."""
OF_TRAIN = {"errors": "--errors", "tokens": "--tokens"}
"""Options of `unspool train` that errors of other commands name as well: the run would have to be trained with them."""
ARGUMENT = re.compile(
    r"(?<![\w/\\.-])(?:(as) )?([a-z]\w*)=('[^']*'(?: or '[^']*')*|\([^)]*\)|\[…\]|…|-?[\w.]*\w(?:[:,]\w+)*|(?=[,;\s]|$))"
)
"""An argument as Python writes it: clip=0, tokens='char' or 'byte', columns=(0, 1), valid=."""
_options = dict(OF_TRAIN)
_negative: dict[str, str] = {}


def note_options(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Note how the options of the command are called, by their names in Python."""
    _options.clear()
    _negative.clear()
    _options.update(OF_TRAIN)
    for argument in arguments:
        for name in argument.names:
            if name.startswith("--"):
                _options[name[2:].replace("-", "_")] = argument.name
        for name in argument.negatives:
            _negative[argument.name] = name


def for_commands(line: str) -> str:
    """Return an error of the library with the options of the command line.

    >>> for_commands("latin.txt: byte 0xe9 is not UTF-8: read it with errors='replace'")
    'latin.txt: byte 0xe9 is not UTF-8: read it with --errors replace'
    """
    name, colon, rest = line.partition(": ")  # a path of the user comes first: it is not changed
    is_path = not ARGUMENT.match(name) or os.path.lexists(name)
    head, rest = (name + colon, rest) if colon and is_path else ("", line)
    for python, command in ADVICE.items():
        rest = rest.replace(python, command)
    return head + ARGUMENT.sub(_as_option, rest)


def _as_option(found: re.Match[str]) -> str:
    """Return an argument as an option, if the command has one of its name; a file or folder called so stays."""
    prefix, name, value = found.groups()
    if name not in _options or os.path.lexists(found[0]):
        return found[0]
    option = _options[name]
    if value in ("False", "None"):
        return _negative.get(option, f"no {option}")
    several = value.startswith("(")
    written = value[1:-1].replace(",", "") if several else value.replace("'", "")
    written = "" if value in ("True", "…", "[…]") else written
    return f"{'with ' if prefix else ''}{option} {written}".rstrip()
