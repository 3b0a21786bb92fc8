"""Read a sweep from a TOML file, and expand its lists and ranges into jobs.

    command = "classify fit names.csv"        the command of every job
    out = "runs/names"                        the folder of all jobs [default: runs/FILE-sweep]
    mean_over = ["seed"]                      keys of the grid that a row of the table averages over [default: seed and fold]

    [options]                                 options of every job
    steps = 300

    [grid]                                    every combination of these values is one job
    hidden = [32, 64]                         a list
    seed = {from = 0, to = 4}                 a range: 0, 1, 2, 3, 4; also with step
    learning-rate = {from = 1e-3, to = 1e-1, count = 3, scale = "log"}

A key of the grid is an option of the command, or a word in braces in the command: "classify fit part-{fold}.csv".

>>> [job.name for job in expand(Path("a.toml"), Sweep(["train", "a.txt"], {}, {"hidden": [8, 16], "seed": [0, 1]}))]
['hidden=8,seed=0', 'hidden=8,seed=1', 'hidden=16,seed=0', 'hidden=16,seed=1']
"""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unspool.cli.default_out import RUNS, input_name
from unspool.errors import FileError, InputError
from unspool.storage.files import why

COMMANDS = (
    "train",
    "classify fit",
    "regress fit",
    "tag fit",
    "translate fit",
    "generate-from fit",
    "forecast fit",
)
OWN = ("out", "threads", "workers", "backend", "json", "quiet", "plot", "force", "config", "tensorboard")
"""Options of a job that the sweep sets, or that jobs do not have."""
KEYS = ("command", "out", "mean_over", "options", "grid")
RANGE = ("from", "to", "step", "count", "scale")
MOST = 100_000
LONGEST = 80
"""Characters of a job's name."""
NAMELESS = re.compile(r"[^\w.,=+-]+")


@dataclass(frozen=True)
class Sweep:
    """A command, the options of all jobs, and the values of those that differ."""

    command: list[str]
    options: dict[str, Any]
    grid: dict[str, list[Any]]
    out: Path = RUNS
    mean_over: list[str] = field(default_factory=list)


class Job(NamedTuple):
    """One run of a sweep."""

    name: str
    """The name of its folder."""
    values: dict[str, Any]
    """Its values of the grid."""
    arguments: list[str]
    """The command line, without --out."""


def read_sweep(path: Path) -> Sweep:
    """Read a sweep; raise where a field is unknown, missing or of another type."""
    content = _load(path)
    for key in content:
        if key not in KEYS:
            raise InputError(
                f"{path}: unknown field {key!r}; expected {', '.join(KEYS)}: put options into [options] or [grid]"
            )
    command, options, grid = content.get("command"), content.get("options", {}), content.get("grid", {})
    words = shlex.split(command) if isinstance(command, str) else command
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(
            f'{path}: command is {command!r}; expected a command, for example "classify fit names.csv"'
        )
    if " ".join(words[:2]) not in COMMANDS and " ".join(words[:1]) not in COMMANDS:
        raise InputError(
            f"{path}: command is {' '.join(words)!r}; expected one that begins with {', '.join(COMMANDS)}"
        )
    for name, table in (("options", options), ("grid", grid)):
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name} is {table!r}; expected a table, [{name}]")
    values = {_key(key): _values(path, key, value) for key, value in grid.items()}
    if not values:
        raise InputError(
            f"{path}: [grid] is missing or empty; expected lists or ranges, for example seed = [0, 1, 2]"
        )
    fixed = {_key(key): value for key, value in options.items()}
    for key in (*fixed, *values):
        if key in OWN:
            raise InputError(
                f"{path}: {key!r} cannot be an option of a job: the sweep sets it, or has it itself"
            )
    if both := sorted(set(fixed) & set(values)):
        raise InputError(f"{path}: {both[0]!r} is in [options] and in [grid]; expected it in one of them")
    over = content.get("mean_over", [key for key in ("seed", "fold") if key in values])
    if not isinstance(over, list) or not set(over) <= set(values):
        raise InputError(f"{path}: mean_over is {over!r}; expected keys of [grid]: {', '.join(values)}")
    out = content.get("out", str(RUNS / f"{input_name(path.stem)}-sweep"))
    if not isinstance(out, str) or not out:
        raise InputError(f"{path}: out is {out!r}; expected the path of a folder")
    return Sweep(words, fixed, values, Path(out), over)


def expand(path: Path, sweep: Sweep) -> list[Job]:
    """Return one job for every combination of the grid's values; those of its last key change fastest."""
    count = int(np.prod([len(values) for values in sweep.grid.values()], dtype=object))
    if count > MOST:
        raise InputError(f"{path}: [grid] has {count:,} combinations; expected at most {MOST:,}")
    jobs = []
    for chosen in itertools.product(*sweep.grid.values()):
        values = dict(zip(sweep.grid, chosen, strict=True))
        in_braces = {
            key: value for key, value in values.items() if any(f"{{{key}}}" in word for word in sweep.command)
        }
        command = [_filled(word, in_braces) for word in sweep.command]
        options = sweep.options | {key: value for key, value in values.items() if key not in in_braces}
        arguments = [word for key, value in options.items() for word in _words(key, value)]
        jobs.append(Job(_name(values), values, [*command, *arguments]))
    return jobs


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not TOML: {error}") from error


def _key(key: str) -> str:
    return key.replace("_", "-").removeprefix("--")


def _values(path: Path, key: str, value: Any) -> list[Any]:
    """Return the values of a list or a range."""
    found = _range(path, key, value) if isinstance(value, dict) else value
    if not isinstance(found, list) or not found:
        raise InputError(
            f"{path}: {key} is {value!r}; expected a list with a value or more, or a range as {{from = 0, to = 4}}"
        )
    texts = [repr(each) for each in found]
    if len(set(texts)) < len(texts):
        raise InputError(f"{path}: {key} has a value twice: {next(t for t in texts if texts.count(t) > 1)}")
    if any(isinstance(each, dict) for each in found):
        raise InputError(
            f"{path}: {key} is {value!r}; expected numbers, texts, true or false, or lists of them"
        )
    return found


def _range(path: Path, key: str, given: Mapping[str, Any]) -> list[Any]:
    if not {"from", "to"} <= set(given) <= set(RANGE) or {"step", "count"} <= set(given):
        raise InputError(
            f"{path}: {key} is {dict(given)!r}; expected from and to, and step or count (with scale)"
        )
    first, last, step = given["from"], given["to"], given.get("step", 1)
    count, scale = given.get("count"), given.get("scale", "linear")
    numbers = (first, last, step, 1 if count is None else count)
    if not all(
        isinstance(each, int | float) and not isinstance(each, bool) and np.isfinite(each) for each in numbers
    ):
        raise InputError(f"{path}: {key} is {dict(given)!r}; expected finite numbers")
    if scale not in ("linear", "log") or (scale == "log" and (count is None or min(first, last) <= 0)):
        raise InputError(
            f"{path}: {key}: scale is {scale!r}; expected linear, or log with a count and ends above 0"
        )
    if count is None:
        steps = (last - first) / step if step else -1
        if not 0 <= steps < MOST:
            raise InputError(
                f"{path}: {key} is {dict(given)!r}; expected a step that leads from {first} to {last}"
            )
        return [first + i * step for i in range(int(steps + 1e-9) + 1)]
    if not isinstance(count, int) or not 2 <= count <= MOST:
        raise InputError(f"{path}: {key}: count is {count!r}; expected a whole number of 2 or more")
    made = np.geomspace(first, last, count) if scale == "log" else np.linspace(first, last, count)
    whole = isinstance(first, int) and isinstance(last, int)
    return [round(each) if whole else float(f"{each:.6g}") for each in made.tolist()]


def _filled(word: str, values: Mapping[str, Any]) -> str:
    for key, value in values.items():
        word = word.replace(f"{{{key}}}", str(value))
    return word


def _words(key: str, value: Any) -> list[str]:
    """Return an option as words of a command line.

    >>> _words("hidden", 8), _words("split", [0.8, 0.2]), _words("bidirectional", False), _words("noise", -1.0)
    (['--hidden=8'], ['--split', '0.8', '0.2'], ['--no-bidirectional'], ['--noise=-1.0'])
    """
    if isinstance(value, bool):
        return [f"--{'' if value else 'no-'}{key}"]
    return [f"--{key}", *map(str, value)] if isinstance(value, list) else [f"--{key}={value}"]


def _name(values: Mapping[str, Any]) -> str:
    """Return the name of a job's folder: its values, shortened with a hash where they are long or no part of a path."""
    whole = ",".join(
        f"{key}={'+'.join(map(str, v)) if isinstance(v, list) else v}" for key, v in values.items()
    )
    safe = NAMELESS.sub("-", whole)[:LONGEST]
    return safe if safe == whole else f"{safe}-{sha256(whole.encode()).hexdigest()[:8]}"
