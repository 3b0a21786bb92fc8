"""Interpret texts passed from Python: a string is the text itself, a Path is a file or a folder.

A string that names a file is an error: otherwise a model would be trained or scored on the characters of the name.

>>> as_sources("timemachine.txt", "text")
Traceback (most recent call last):
unspool.errors.InputError: text is 'timemachine.txt', which looks like a file name; a str is the text itself: pass pathlib.Path('timemachine.txt') to read the file, or text_source('timemachine.txt') from unspool.data

Arguments that are documented as names (`resolve`, `read_text`, `prepare`, every `load`, every `read_…`) are not checked here.
"""

import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from unspool.data.text.source import Source, text_source
from unspool.errors import EmptyInput, InputError

FILE_NAME = re.compile(
    r".*[^\s.]\.(?:txt|text|md|rst|tex|py|html?|xml|[ct]sv|jsonl?|ya?ml|log|tokens|ts|np[yz]|pdf|docx?|epub)"
    r"(?:\.(?:gz|zip|bz2|xz|zst))?|.*[^\s.]\.(?:gz|zip|bz2|xz|zst|tar|tgz)|builtin:\S+",
    re.IGNORECASE,
)
LONGEST = 4096
"""Most characters of a path on common systems."""

Text = str | PathLike[str] | Source
Texts = Text | Iterable[Text]


def as_sources(text: Texts, name: str) -> list[Source | Path]:
    """Return texts as sources: strings are texts, paths are files or folders; raise InputError for a file name."""
    pieces = [text] if isinstance(text, str | bytes | PathLike | Source) else text
    if not isinstance(pieces, Iterable):
        raise InputError(f"{name} is {text!r}; expected a str, a pathlib.Path or a list of them")
    sources = [_as_source(piece, name) for piece in pieces]
    if not sources:
        raise EmptyInput(f"{name} is empty; expected a text or a file")
    return sources


def _as_source(text: Text, name: str) -> Source | Path:
    if isinstance(text, Source):
        return text
    if isinstance(text, str):
        if is_path(text) or (len(text) <= LONGEST and FILE_NAME.fullmatch(text)):
            raise InputError(
                f"{name} is {text!r}, which {_why(text)}; a str is the text itself: pass "
                f"pathlib.Path({text!r}) to read the file, or text_source({text!r}) from unspool.data"
            )
        return text_source(text)
    if isinstance(text, PathLike):
        return Path(text)
    raise InputError(
        f"{name} is a {type(text).__name__}; expected a str (the text) or a pathlib.Path (a file)"
    )


def check_prompt(prompt: str) -> None:
    """Raise InputError for a prompt that is a path, the name of an existing file, or one word like a file name."""
    if not isinstance(prompt, str):
        raise InputError(
            f"prompt is a {type(prompt).__name__}; expected a str: pass path.read_text() for a file"
        )
    word = len(prompt.split()) == 1 and len(prompt) <= LONGEST and FILE_NAME.fullmatch(prompt)
    if word or (is_path(prompt) and Path(prompt).is_file()):
        raise InputError(
            f"prompt is {prompt!r}, which {_why(prompt)}; a prompt is text: pass "
            f"pathlib.Path({prompt!r}).read_text() to continue the file"
        )


def refuse_file_names(strings: object, name: str) -> None:
    """Raise InputError if all strings are names of existing files."""
    if not isinstance(strings, list | tuple) or not strings:
        return
    if all(isinstance(each, str) and is_path(each) and Path(each).is_file() for each in strings):
        raise InputError(
            f"{name} holds names of files, as {strings[0]!r}; a str is the text itself: pass "
            f"[pathlib.Path(name).read_text() for name in {name}]"
        )


def is_path(text: str) -> bool:
    """Return whether a string is the name of a file or folder that exists."""
    if not text.strip() or text in (".", "..") or len(text) > LONGEST or "\n" in text:
        return False
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # name too long, NUL byte, no permission
        return False


def _why(text: str) -> str:
    return "is the name of an existing file" if is_path(text) else "looks like a file name"
