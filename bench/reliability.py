"""The reliability campaign: bad calls, hostile environments, failing I/O calls, crafted files.

    python bench/reliability.py [--only PART …] [--workers 2] [--every 1] [--fill]

No call may print a traceback, crash, hang, or change or lose a file that was there before. Prints a table and writes it as
JSON; `--fill` writes the table into docs/reliability.md and its Chinese page. `--every N` runs every N-th
crafted file only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import RESULTS, fill_page, markdown, save, show

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


def run_environments() -> list[dict[str, Any]]:
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
    """Run a shell line, return the problem with its end, and remove its outputs."""
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


def run_faults() -> list[dict[str, Any]]:
    run_script("faults.py")
    rows = json.loads((RESULTS / "faults.json").read_text())["figures"]
    failures = [
        {"call": f"{row['command']} {each}", "fault": each["what"]}
        for row in rows
        for each in row["failures"]
    ]
    passed = sum(row["faults"] for row in rows) - len(failures)
    return failures + [{"call": "faults", "fault": ""}] * passed


def run_crafted(every: int) -> list[dict[str, Any]]:
    RESULTS.mkdir(exist_ok=True)
    result = RESULTS / "crafted.json"
    run_script("crafted.py", "--every", str(every), "--out", str(result))
    found = json.loads(result.read_text())
    failures = [
        {"call": f"{each['file']} {each['field']}", "fault": each["ended"]} for each in found["wrong"]
    ]
    return failures + [{"call": "crafted", "fault": ""}] * (found["cases"] - len(failures))


def run_script(name: str, *arguments: str) -> None:
    """Run another benchmark of this folder and return its JSON."""
    subprocess.run([sys.executable, str(Path(__file__).with_name(name)), *arguments], check=False)


PARTS: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
    "bad calls": lambda args: run_bad_calls(args.workers),
    "environments": lambda args: run_environments(),
    "faults": lambda args: run_faults(),
    "crafted files": lambda args: run_crafted(args.every),
}
TITLES = {
    "bad calls": ("every option of every command with bad values", "每个命令的每个选项取错误的值"),
    "environments": (
        "closed streams, locales, limits, missing folders",
        "关闭的流、区域设置、资源限制、缺失的目录",
    ),
    "faults": ("the N-th input or output call fails", "第 N 个输入输出调用失败"),
    "crafted files": ("a field of a file changed, checksum recomputed", "改动文件的一个字段并重算校验和"),
}


def fill(figures: dict[str, dict[str, Any]]) -> None:
    """Write the table into the page of both languages."""
    for page, language, columns in (
        ("reliability.md", 0, ["part", "cases", "failed"]),
        ("reliability.zh-CN.md", 1, ["部分", "次数", "失败"]),
    ):
        rows = [
            [TITLES[name][language], f"{each['cases']:,}", len(each["faults"])]
            for name, each in figures.items()
        ]
        command = "`python bench/reliability.py --fill`"
        fill_page(
            Path(__file__).parents[1] / "docs" / page, "campaign", f"{command}\n\n{markdown(columns, rows)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--fill", action="store_true")
    args = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    for name in args.only:
        cases = PARTS[name](args)
        faults = [case for case in cases if case["fault"]]
        for case in faults:
            print(f"{case['call']}\n    {case['fault']}")
        figures[name] = {"cases": len(cases), "faults": faults}
    show(
        ["part", "cases", "faults"],
        [[name, each["cases"], len(each["faults"])] for name, each in figures.items()],
    )
    save("reliability", figures)
    if args.fill:
        fill(figures)
    if any(each["faults"] for each in figures.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
