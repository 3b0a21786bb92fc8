"""Write the modules that docs/architecture.md and docs/architecture.zh-CN.md list: of every package, and of three commands.

    python docs/make_architecture.py            exit code 1 if a page lists modules that differ from the source tree
    python docs/make_architecture.py --write    write both pages; traces the commands again

The traces are small runs under `sys.setprofile`. Calls to functions of a later package are printed: the page describes them.
"""

import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType

from unspool.cli.main import main as run_command

SOURCE = Path(__file__).parents[1] / "src" / "unspool"
PAGES = [Path(__file__).with_name(name) for name in ("architecture.md", "architecture.zh-CN.md")]
ROW = re.compile(r"^\| `([\w/]+)/` \|(.*)\| ([\w, ]+) \|$", re.MULTILINE)
TRACE = re.compile(r"^(\*\*`unspool ([\w ]+)`\*\*\D+)\d+(\D+?)`.*?`(\.|。)$", re.MULTILINE | re.DOTALL)
TEXT = "it is raining outside. it is raining in winter. the banana tree stands in the garden. " * 100
TABLE = "text,label\n" + "abba,a\nbaab,a\nyzyz,z\nzzyy,z\n" * 15
RUNS = {
    "train": "train text.txt --steps 40 --hidden 16 --out run",
    "classify fit": "classify fit table.csv --steps 20 --out classes",
    "inspect": "inspect run text.txt --characters 500 --out report",
}
FUNCTION = 1
"""CO_OPTIMIZED: the code of a function, not of a module or a class."""
WIDTH = 150


def modules(package: str) -> list[str]:
    """Return the names of a package's modules."""
    return sorted(path.stem for path in (SOURCE / package).glob("*.py") if path.stem != "__init__")


def with_modules(page: str) -> str:
    """Return a page whose table lists every package with its modules."""
    packages = {str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("__init__.py")} - {"."}
    if packages != (listed := {row[1] for row in ROW.finditer(page)}):
        sys.exit(f"packages without a row, or rows without a package: {sorted(packages ^ listed)}")
    return ROW.sub(lambda row: f"| `{row[1]}/` |{row[2]}| {', '.join(modules(row[1]))} |", page)


def absent(page: str) -> list[str]:
    """Return the modules in the traces of a page that do not exist."""
    groups = [
        group for trace in TRACE.finditer(page) for group in re.findall(r"`([\w/]+(?:\{.*?\})?)`", trace[0])
    ]
    parts = [re.fullmatch(r"(.*?)\{(.*)\}", group) for group in groups]
    names = [
        f"{part[1]}{name}" if part else group
        for group, part in zip(groups, parts, strict=True)
        for name in (part[2].split(", ") if part else [""])
    ]
    return [name for name in names if not (SOURCE / f"{name}.py").exists()]


def with_traces(page: str, traces: dict[str, list[str]]) -> str:
    """Return a page with new traces."""
    return TRACE.sub(
        lambda old: wrapped(f"{old[1]}{len(traces[old[2]])}{old[3]}{arrows(traces[old[2]])}{old[4]}"), page
    )


def arrows(names: list[str]) -> str:
    """Write module names with arrows between them.

    >>> arrows(["cli/main", "cli/fit", "options"])
    '`cli/{main, fit}` → `options`'
    """
    groups = []
    for folder, group in groupby(names, key=lambda name: name.rpartition("/")[0]):
        stems = [name.rpartition("/")[2] for name in group]
        inside = stems[0] if len(stems) == 1 else f"{{{', '.join(stems)}}}"
        groups.append(f"`{folder}/{inside}`" if folder else f"`{inside}`")
    return " → ".join(groups)


def wrapped(text: str) -> str:
    """Break a trace into lines after its arrows."""
    lines = [""]
    for part in re.split(r"(?<=→) ", text):
        if len(lines[-1]) + len(part) > WIDTH and lines[-1]:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] else part
    return "\n".join(lines)


def trace_commands() -> dict[str, list[str]]:
    """Run the commands; return their modules in the order of the first call."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "text.txt").write_text(TEXT)
        (Path(folder) / "table.csv").write_text(TABLE)
        for name, arguments in RUNS.items():
            command = [sys.executable, __file__, "--trace", *arguments.split()]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            content = json.loads((Path(folder) / "trace.json").read_text())
            found[name] = content["modules"]
            print(name, *map(" → ".join, content["later"]), sep="\n  ")
    return found


def trace(arguments: list[str]) -> None:
    """Run a command in this process and write its modules, and the calls to later packages, to trace.json."""
    order = [
        row[1] for row in re.finditer(r"^\| `(\w+)(?:/|\.py)` \|", PAGES[0].read_text("utf-8"), re.MULTILINE)
    ]
    seen: list[str] = []
    later: set[tuple[str, str]] = set()

    def rank(name: str) -> int:
        return order.index(name.split("/")[0])

    def called(frame: FrameType, event: str, _: object) -> None:
        name = module_of(frame.f_code) if frame.f_code.co_flags & FUNCTION else None
        if event != "call" or name is None or importing(frame):
            return
        if name not in seen:
            seen.append(name)
        above = frame.f_back
        while above and module_of(above.f_code) is None:
            above = above.f_back
        caller = module_of(above.f_code) if above else None
        if caller and rank(name) > rank(caller):
            later.add((caller, f"{name}: {frame.f_code.co_qualname}"))

    sys.setprofile(called)
    run_command(arguments)
    sys.setprofile(None)
    Path("trace.json").write_text(json.dumps({"modules": seen, "later": sorted(later)}))


@cache
def module_of(code: CodeType) -> str | None:
    """Return the path of the code's module in the package; None: it is not in the package."""
    path = Path(code.co_filename)
    return str(path.relative_to(SOURCE).with_suffix("")) if path.is_relative_to(SOURCE) else None


def importing(frame: FrameType | None) -> bool:
    """Return whether a frame runs during an import."""
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def main() -> None:
    """Check or write both pages."""
    if sys.argv[1:2] == ["--trace"]:
        return trace(sys.argv[2:])
    traces = trace_commands() if sys.argv[1:] == ["--write"] else None
    for path in PAGES:
        page = path.read_text("utf-8")
        if traces:
            path.write_text(with_traces(with_modules(page), traces), "utf-8")
        elif page != with_modules(page) or absent(page):
            sys.exit(
                f"{path.name} is out of date {absent(page)}: run python docs/make_architecture.py --write"
            )
    return None


if __name__ == "__main__":
    main()
