"""Choose the folder of a run or a report when --out is not given; an existing folder is never chosen.

unspool train book.txt           runs/book-train, then runs/book-train-2, …
unspool train a.txt b.txt        runs/a-and-1-more-train
unspool train -                  runs/stdin-train
unspool classify fit names.csv   runs/names-classify
unspool inspect RUN other.txt    reports/RUN-other
"""

import os
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

RUNS, REPORTS = Path("runs"), Path("reports")
LONGEST = 60
"""Characters of an input's name that are used."""
FORMATS = (".gz", ".txt", ".csv", ".tsv", ".npz", ".npy", ".ts", ".conll", ".conllu", ".md", ".json")


def default_run(inputs: Sequence[str | Path], command: str) -> Path:
    """Return a free folder for a run, named after its data and its command."""
    more = f"-and-{len(inputs) - 1}-more" if len(inputs) > 1 else ""
    return _free(RUNS / f"{input_name(inputs[0])}{more}-{command}")


def default_report(run: Path, text: str) -> Path:
    """Return a free folder for a report, named after the run and the text."""
    return _free(REPORTS / f"{input_name(run)}-{input_name(text)}")


def input_name(source: str | Path) -> str:
    """Return the part of a folder's name that stands for an input.

    >>> [input_name(each) for each in ("books/war and peace.txt.gz", "-", "builtin:python-docs", "texts/", "v1.2")]
    ['war-and-peace', 'stdin', 'python-docs', 'texts', 'v1.2']
    """
    if str(source) in ("-", "/dev/stdin"):
        return "stdin"
    name = (
        os.path.basename(os.path.realpath(source))
        if not str(source).startswith("builtin:")
        else str(source)[8:]
    )
    while Path(name).suffix.lower() in FORMATS and Path(name).stem != name:
        name = Path(name).stem
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:LONGEST] or "data"


def _free(path: Path) -> Path:
    numbered = (path if n == 1 else path.with_name(f"{path.name}-{n}") for n in count(1))
    return next(each for each in numbered if not os.path.lexists(each))
