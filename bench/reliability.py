"""The reliability campaign: bad calls, hostile environments, failing I/O calls, crafted files. Prints the table of
docs/reliability.md and writes it as JSON.

    python bench/reliability.py [--only bad-calls environments faults crafted] [--workers 2]

No call may print a traceback, crash, hang, or change or lose a file that was there before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from table import save, show

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))
import bad_calls  # noqa: E402

UNSPOOL = f"{sys.executable} -m unspool"
COMMANDS = [
    "--help",
    "train --help",
    "stats story.txt",
    "stats no-such-file",
    "evaluate language story.txt",
    "generate language --length 20",
    "train story.txt --steps 2 --hidden 4 --out NEW",
    "classify predict classify names.csv",
    "forecast predict forecast --plot NEW.png",
    "turing increment 1011",
    "trian",
]
ENVIRONMENTS = {
    "stdout closed": "{} >&-",
    "stderr closed": "{} 2>&-",
    "stdout and stderr closed": "{} >&- 2>&-",
    "stdin closed": "{} <&-",
    "stdout read-only": "{} 1</dev/null",
    "stdout full": "{} >/dev/full",
    "stdout a closed pipe": "{} | true",
    "COLUMNS=1": "COLUMNS=1 {}",
    "COLUMNS=0": "COLUMNS=0 {}",
    "COLUMNS=x": "COLUMNS=x {}",
    "TERM=dumb": "TERM=dumb {}",
    "no locale": "LC_ALL=C LANG=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {}",
    "unknown locale": "LC_ALL=xx_YY.nope {}",
    "ASCII streams": "PYTHONIOENCODING=ascii {}",
    "no HOME": "env -u HOME {}",
    "no temporary folder": "TMPDIR=/no/such/folder {}",
    "unknown MPLBACKEND": "MPLBACKEND=nope {}",
    "OMP_NUM_THREADS=1": "OMP_NUM_THREADS=1 {}",
    "OMP_NUM_THREADS=x": "OMP_NUM_THREADS=x {}",
    "UNSPOOL_THREADS=x": "UNSPOOL_THREADS=x {}",
    "UNSPOOL_ISA=x": "UNSPOOL_ISA=x {}",
    "python -OO": "PYTHONOPTIMIZE=2 {}",
    "one CPU": "taskset -c 0 {}",
    "nohup": "(trap '' HUP; {})",
    "memory 400 MB": "(ulimit -v 400000; {})",
    "memory 200 MB": "(ulimit -v 200000; {})",
    "files up to 8 KB": "(ulimit -f 8; trap '' XFSZ; {})",
    "12 open files": "(ulimit -n 12; {})",
    "working folder deleted": "mkdir gone && cd gone && rmdir ../gone && {}",
}


def run_bad_calls(workers: int) -> list[dict[str, Any]]:
    ended = bad_calls.run_all(list(bad_calls.calls()), workers)
    return [{"call": " ".join(each.arguments)[:200], "fault": each.fault} for each in ended]


def run_environments(workers: int) -> list[dict[str, Any]]:
    del workers
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bad_calls.make_files(folder)
        before = bad_calls.fingerprints(folder)
        found = []
        for shape in ENVIRONMENTS.values():
            for command in COMMANDS:
                line = shape.format(f"{UNSPOOL} {command.replace('NEW', 'made')}")
                found.append(
                    {"call": shape.format(f"unspool {command}"), "fault": end_of(line, folder, before)}
                )
        return found


def end_of(line: str, folder: Path, before: dict[str, str]) -> str:
    """Run a line of shell, say what is wrong with its end, and remove what it made."""
    try:
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, capture_output=True, timeout=60, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return "did not end within 60 s"
    after = bad_calls.fingerprints(folder)
    lost = [each for each in before if after.get(each) != before[each]]
    for each in sorted(set(after) - set(before), reverse=True):
        path = folder / each
        path.rmdir() if path.is_dir() else path.unlink()
    if lost:
        return f"changed or lost: {', '.join(lost)}"
    if "Traceback" in done.stderr + done.stdout:
        return "traceback: " + done.stderr[-300:]
    lines = done.stderr.splitlines()
    if done.returncode not in (0, 2, 141):
        return f"exit code {done.returncode}: {done.stderr[-300:]}"
    if done.returncode == 2 and len(lines) > 1:
        return f"{len(lines)} lines on standard error: {done.stderr[-300:]}"
    return ""


def run_script(name: str) -> list[dict[str, Any]]:
    """Run a campaign that is a script and prints one line of JSON per case: {"call", "fault"}."""
    raise NotImplementedError(name)


PARTS = {"bad calls": run_bad_calls, "environments": run_environments}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    figures, rows = {}, []
    for name in args.only:
        cases = PARTS[name](args.workers)
        faults = [case for case in cases if case["fault"]]
        for case in faults:
            print(f"{case['call']}\n    {case['fault']}")
        figures[name] = {"cases": len(cases), "faults": faults}
        rows.append([name, len(cases), len(faults)])
    show(["part", "cases", "faults"], rows)
    save("reliability", figures)


if __name__ == "__main__":
    main()
