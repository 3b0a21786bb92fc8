"""Replace the names of Python arguments in errors of the library by options of the command line."""

ADVICE = {
    "choose another path": "give another --out",
    "choose a shorter path": "give a shorter --out",
    "the folder that a training wrote": "the folder that a training wrote (--out)",
    "errors='replace'": "--errors replace",
    "tokens='byte'": "--tokens byte",
    "tokens='char' or 'byte'": "--tokens char or byte",
    "with clean=False": "without --clean",
    "columns=(0, 1)": "--columns 0 1",
    "as columns=[…] and time=…": "with --columns and --time (none: no times)",
    "time='none'": "--time none",
    "missing='interpolate' or missing='mask'": "--missing interpolate or --missing mask",
    "another column as tag=": "another column with --tag",
    "choose columns as features=, or a text as text=": "choose columns with --features, or a text with --text",
    "or validation=0": "or --validation 0",
    "own as valid=": "own with --valid",
}
"""Phrases of the library, and those of the command line."""


def for_commands(line: str) -> str:
    """Return an error of the library with the options of the command line.

    >>> for_commands("latin.txt: byte 0xe9 is not UTF-8: read it with errors='replace'")
    'latin.txt: byte 0xe9 is not UTF-8: read it with --errors replace'
    """
    name, colon, rest = line.partition(": ")  # a path of the user comes first: it is not changed
    head, rest = (name + colon, rest) if colon else ("", line)
    for python, command in ADVICE.items():
        rest = rest.replace(python, command)
    return head + rest
