"""Run every crafted file through the commands that read it: `python bench/crafted.py [--every N] [--out FILE]`.

Prints a table with the number of cases per file that worked, were refused and failed, and the first failures. Writes the same
as JSON. `tests/crafted.py` makes the files; the tests run a sample of them.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import crafted
from unspool.kernels.native import set_threads


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1, help="run only every N-th case")
    parser.add_argument("--file", default="", help="only files with this in their name")
    parser.add_argument("--out", type=Path, default=Path("crafted.json"))
    given = parser.parse_args()
    set_threads(1)
    start, counts, wrong = (
        time.perf_counter(),
        defaultdict[str, Counter[str]](Counter),
        list[dict[str, str]](),
    )
    with tempfile.TemporaryDirectory() as name:
        work, pristine = Path(name) / "work", Path(name) / "pristine"
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            crafted.make_files(work)
        shutil.copytree(work, pristine)
        chosen = [case for case in crafted.cases(work) if given.file in case.file][:: given.every]
        for case in chosen:
            ended = crafted.craft(work, pristine, case)
            counts[case.file][ended.partition(":")[0] if crafted.is_good(ended) else "wrong"] += 1
            if not crafted.is_good(ended):
                about = {"file": case.file, "field": case.field, "value": case.value}
                wrong.append(about | {"command": " ".join(case.arguments), "ended": ended})
    report(counts, wrong)
    seconds = round(time.perf_counter() - start, 1)
    result = {"cases": len(chosen), "seconds": seconds, "files": counts, "wrong": wrong}
    given.out.write_text(json.dumps(result, indent=1) + "\n")


def report(counts: dict[str, Counter[str]], wrong: list[dict[str, str]]) -> None:
    print(f"{'file':32} {'worked':>8} {'refused':>8} {'wrong':>8}")
    for file, found in counts.items():
        print(f"{file:32} {found['done']:8} {found['refused']:8} {found['wrong']:8}")
    for each in wrong[:20]:
        print(f"{each['file']} {each['field']} = {each['value']}: {each['command']}: {each['ended']}")


if __name__ == "__main__":
    main()
