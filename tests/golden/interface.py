"""What scripts rely on: the help of every command, and the fields of every --json.

`help/` holds what `unspool COMMAND --help` prints at 100 columns, `json_fields.json` the paths of all keys with the
kinds of their values; items of a list share one path. Where either is meant to change, write them again and read the
difference:

    PYTHONPATH=tests python -m golden.interface --write && git diff tests/golden
"""

from __future__ import annotations

import contextlib
import difflib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from command_line import must
from golden.inputs import write_inputs

HELP, FIELDS = (Path(__file__).with_name(name) for name in ("help", "json_fields.json"))
FIT = "--steps 4 --hidden 5"
CALLS = {
    "stats": "stats story.txt",
    "stats, backward": "stats story.txt --tokens word --backward",
    "train": f"train story.txt --out run {FIT} --batch 4 --window 8 --order 2",
    "train, with a test part": f"train story.txt --out tested {FIT} --batch 4 --window 8 --order 2 --split 0.8 0.1 0.1 --dropout 0.1",
    "train, bptt auto": f"train story.txt --out auto {FIT} --batch 4 --order 1 --bptt auto",
    "resume": "resume run",
    "resume, a fit": "resume who",
    "evaluate": "evaluate run --order 2",
    "evaluate, another text": "evaluate run other.txt --order 0",
    "generate": "generate run --prompt Ka --length 5 --seed 1 --samples 2",
    "inspect": "inspect run other.txt --out look",
    "compress": "compress run other.txt",
    "decompress": "decompress other.txt.unspool --out again.txt",
    "classify fit": f"classify fit names.csv --out who {FIT}",
    "classify fit, nothing held out": f"classify fit names.csv --out all {FIT} --hold-out 0",
    "classify predict": "classify predict who names.csv",
    "classify predict, no labels": "classify predict who names.csv --label none",
    "regress fit": f"regress fit flats.csv --out rent {FIT}",
    "regress fit, two targets": f"regress fit waves.csv --out waves {FIT} --target low high --series --spread",
    "regress predict": "regress predict rent flats.csv",
    "regress predict, two targets": "regress predict waves waves.csv",
    "tag fit": f"tag fit tags.conll --out tags {FIT}",
    "tag predict": "tag predict tags tags.conll",
    "translate fit": f"translate fit pairs.tsv --out numbers {FIT}",
    "translate predict": "translate predict numbers pairs.tsv",
    "generate-from fit": f"generate-from fit names.csv --out writer {FIT}",
    "generate-from fit, vectors": f"generate-from fit vectors.csv --out larger {FIT} --features a b",
    "generate-from predict": "generate-from predict writer",
    "generate-from predict, vectors": "generate-from predict larger vectors.csv",
    "forecast fit": f"forecast fit two.csv --out sales {FIT} --members 1",
    "forecast predict": "forecast predict sales --steps 2",
    "forecast backtest": f"forecast backtest sales.csv --test 24 {FIT} --members 1",
    "sweep": "sweep seeds.toml --out seeds --workers 1",
    "check-gradients": "check-gradients --hidden 4 --values 3",
    "turing": "turing builtin:increment 1011",
    "runs": "runs run who sales",
    "runs, compared": "runs run tested --compare",
    "show": "show run",
    "show, a fit": "show who",
    "show, a forecast": "show sales",
    "demo": "demo --seconds 1",
}
"""A command that prints JSON, by its name and perhaps a remark after a comma."""


def helps() -> dict[str, str]:
    """Give what --help prints, by command; the program itself is `unspool`."""
    found, left = {}, [""]
    for command in left:
        printed = must(*command.split(), "--help")
        found[command or "unspool"] = "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"
        left += [f"{command} {name}".strip() for name in _commands_in(printed)]
    return found


def _commands_in(printed: str) -> Iterator[str]:
    """Find the commands that a help lists."""
    panel = re.search(r"─ Commands ─.*?\n(.*?)╰", printed, re.DOTALL)
    for line in panel[1].splitlines() if panel else ():
        if (name := re.match(r"│ ([a-z][\w-]*)  ", line)) is not None:
            yield name[1]


def json_fields() -> dict[str, list[str]]:
    """Give the paths of all fields that the commands print as JSON, sorted, by call."""
    order = sorted(CALLS, key=lambda name: name.startswith("resume"))  # there must be something to go on with
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs(Path())
        found = {name: _fields(must(*CALLS[name].split(), "--json")) for name in order}
    found["demo"] = _whatever_the_speed(found["demo"])
    return {name: found[name] for name in CALLS}


def _whatever_the_speed(fields: list[str]) -> list[str]:
    """Leave out what the demo, which is planned by the clock, prints on some machines and not on others."""
    return sorted({field.split(":")[0] for field in fields if "plans[]" not in field})


def _fields(printed: str) -> list[str]:
    kinds: dict[str, set[str]] = {}
    for path, kind in _leaves(json.loads(printed), ""):
        kinds.setdefault(path, set()).add(kind)
    return sorted(f"{path}: {' or '.join(sorted(found))}" for path, found in kinds.items())


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        yield path, "list"
        for inner in value:
            yield from _leaves(inner, f"{path}[]")
    elif isinstance(value, bool) or value is None:
        yield path, json.dumps(value) if value is None else "boolean"
    else:
        yield path, "string" if isinstance(value, str) else "number"


def difference(frozen: str, found: str) -> str:
    """Say in lines what is no longer there (-) and what is new (+); nothing where both are the same."""
    lines = difflib.unified_diff(frozen.splitlines(), found.splitlines(), "frozen", "found", "", "", 1, "")
    return "\n".join(lines)


def main() -> None:
    """Freeze the help and the fields as they are now."""
    if sys.argv[1:] != ["--write"]:
        sys.exit("expected --write")
    HELP.mkdir(exist_ok=True)
    for path in HELP.iterdir():
        path.unlink()
    for command, printed in helps().items():
        (HELP / f"{command.replace(' ', '_')}.txt").write_text(printed, "utf-8")
    FIELDS.write_text(json.dumps(json_fields(), indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
