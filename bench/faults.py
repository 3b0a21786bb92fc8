"""Let each I/O call of a command fail, one at a time, and check that nothing is lost and no traceback is printed.

A command runs once to count its I/O calls (open, read, write, fsync, rename, link, mkdir, unlink, close …) on files of
the user's folder. Then it runs once per call and error (EIO, ENOSPC, EACCES), and that call fails. After each run: the exit
code is 2 with one line on standard error, or 0 with the complete result; files that were there are unchanged; the run or
the output is complete or absent; and the command without a fault does its work and leaves no temporary file.

The calls are interposed in libc (faults.c, compiled here); commands run in forks of one process. Needs Linux and cc.

    python bench/faults.py [--only train classify] [--errors EIO ENOSPC EACCES] [--every 1] [--no-file]
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from table import save, show
from unspool.cli import main as cli
from unspool.cli.commands import classify, compress, forecast, generate, regress, train  # noqa: F401 - imported before the forks
from unspool.errors import UnspoolError
from unspool.storage.run_folder import CONFIG, TRAINING
from unspool.storage.tensors import read_arrays
from unspool.tasks.forecast import Forecaster
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.language.text_model import TextModel
from unspool.tasks.registry import load as load_fitted

SHIM = "UNSPOOL_FAULTS"
"""The variable with the path of the compiled shim: set in the process that has it loaded."""
STORY = "she sells sea shells by the sea shore.\n" * 12
NAMES = "text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 8
FLATS = "rooms,target\n" + "2,700\n3,900\n" * 8
SALES = "sales\n" + "".join(f"{20 + t % 12 + t % 5}\n" for t in range(72))
SMALL = ["--steps", "2", "--hidden", "4"]


class Case(NamedTuple):
    """A command, and the function that loads its result."""

    command: list[str]
    result: str
    load: Callable[[Path], object]
    replaces: bool = False
    """Whether the result is there before, and replaced."""


def loaded_run(path: Path) -> None:
    """Load a language model and its training state."""
    TextModel.load(path)
    read_arrays(path / TRAINING)


def loaded_fit(path: Path) -> None:
    """Load a classifier, and its training state if the fit has not ended."""
    load_fitted(path)
    if (path / TRAINING).exists():
        read_arrays(path / TRAINING)


def unpacked(path: Path) -> None:
    """Decompress a file, and compare it with the original."""
    place = path.parent
    code, said, _ = run(
        ["decompress", str(path), "--run", str(place / "given"), "--out", str(path) + ".txt"], place
    )
    if code or Path(f"{path}.txt").read_text() != STORY:
        raise ValueError(f"{path}: not the original: {said}")
    Path(f"{path}.txt").unlink()


def read_state(path: Path) -> None:
    """Load a saved state."""
    TextGenerator(TextModel.load(path.parent / "given")).load(path)


CASES = {
    "train": Case(
        ["train", "{place}/story.txt", "--out", "{place}/run", "--batch", "2", "--window", "8", "--save-every", "1", *SMALL],
        "run", loaded_run,
    ),
    "classify": Case(
        ["classify", "fit", "{place}/names.csv", "--out", "{place}/run", "--batch", "8", "--save-every", "1", *SMALL],
        "run", loaded_fit,
    ),
    "regress": Case(
        ["regress", "fit", "{place}/flats.csv", "--out", "{place}/run", "--batch", "8", "--save-every", "1", *SMALL],
        "run", loaded_fit,
    ),
    "forecast": Case(
        ["forecast", "fit", "{place}/sales.csv", "--out", "{place}/run", "--members", "1", "--horizon", "2", *SMALL],
        "run", Forecaster.load,
    ),
    "compress": Case(["compress", "{place}/given", "{place}/story.txt", "--out", "{place}/packed"], "packed", unpacked),
    "generate": Case(
        ["generate", "{place}/given", "--length", "2", "--seed", "1", "--save-state", "{place}/state"], "state", read_state,
    ),
    "generate --force": Case(
        ["generate", "{place}/given", "--length", "2", "--seed", "2", "--save-state", "{place}/state", "--force"],
        "state", read_state, replaces=True,
    ),
}  # fmt: skip


def run(command: list[str], place: Path, at: int = 0, error: int = 0) -> tuple[int, str, tuple[int, str]]:
    """Run a command in a fork; return exit code, standard error, the number of calls and the failed call."""
    said, counted = (place.with_name(f"{place.name}.{name}") for name in ("said", "counted"))
    child = os.fork()
    if child == 0:
        code = 1
        shim = ctypes.CDLL(os.environ[SHIM])
        shim.faults_name.restype = ctypes.c_char_p
        sys.argv = ["unspool", *command]
        with said.open("w") as err, open(os.devnull, "w") as out:
            sys.stdout, sys.stderr = out, err
            shim.faults_arm(os.fsencode(place), ctypes.c_long(at), error)
            try:
                code = cli.main()
            except BaseException:
                traceback.print_exc(file=err)
            calls = shim.faults_count()
            out.flush()
        counted.write_text(f"{calls} {shim.faults_name().decode()}")
        os._exit(code)
    _, status = os.waitpid(child, 0)
    calls, _, name = counted.read_text().partition(" ")
    return os.waitstatus_to_exitcode(status), said.read_text(), (int(calls), name)


def files_of(place: Path) -> dict[str, bytes]:
    """Return the files of a folder and their content."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def wrong(case: Case, place: Path, command: list[str], code: int, said: str, before: dict[str, bytes]) -> str:
    """Return the problem after a run with a fault, or an empty string."""
    result = place / case.result
    if code not in (0, 2):
        return f"exit code {code}: {said[-300:]}"
    if code == 2 and (said.count("\n") != 1 or not said.startswith("unspool: ")):
        return f"not one line: {said[-300:]}"
    after = files_of(place)
    changed = [name for name, content in before.items() if after.get(name) != content and name != case.result]
    if changed:
        return f"changed or lost: {changed}"
    there = (result / CONFIG).exists() or result.is_file() if not case.replaces else result.exists()
    if (code == 0 or case.replaces) and not there:
        return "no result"
    if result.exists():
        try:
            case.load(result)
        except (UnspoolError, ValueError, OSError) as error:
            return f"damaged: {error}"
        return ""
    code, said, _ = run(command, place)
    if code or [name for name in files_of(place) if ".unfinished-" in name]:
        return f"afterwards: exit code {code}: {said[-300:]} {sorted(files_of(place))}"
    return ""


def faulted(name: str, template: Path, errors: list[str], every: int) -> dict[str, Any]:
    """Let each call of one command fail; return the counts and the problems."""
    case, place = CASES[name], template.with_name("place")
    command = [each.format(place=place) for each in case.command]

    def reset() -> dict[str, bytes]:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(template, place)
        if not case.replaces:
            (place / case.result).unlink(missing_ok=True)
        return files_of(place)

    reset()
    code, said, (calls, _) = run(command, place)
    if code:
        raise SystemExit(f"{name} fails without a fault: {said}")
    failures, names, harmless, codes = list[dict[str, Any]](), Counter[str](), Counter[str](), {0: 0, 2: 0}
    for at in range(1, calls + 1, every):
        for error in errors[at % len(errors) :][:1] if every > 1 else errors:
            before = reset()
            code, said, (_, call) = run(command, place, at, getattr(errno, error))
            names[call] += 1
            harmless[call] += code == 0
            codes[code] = codes.get(code, 0) + 1
            if what := wrong(case, place, command, code, said, before):
                failures.append({"call": at, "name": call, "error": error, "what": what})
        print(f"\r{name}: {at} of {calls} ", end="", file=sys.stderr)
    print(file=sys.stderr)
    counts = {"calls": calls, "faults": names.total(), "codes": codes, "names": names, "harmless": harmless}
    return {"command": name, **counts, "failures": failures}


def prepare(place: Path) -> Path:
    """Create the folder that each run starts with: data, a trained model, a saved state, a file of the user."""
    template = place / "template"
    template.mkdir()
    for name, content in (
        ("story.txt", STORY),
        ("names.csv", NAMES),
        ("flats.csv", FLATS),
        ("sales.csv", SALES),
        ("mine.txt", "mine"),
    ):
        (template / name).write_text(content)
    for command in (
        ["train", "{place}/story.txt", "--out", "{place}/given", "--batch", "2", "--window", "8", *SMALL],
        ["generate", "{place}/given", "--length", "2", "--seed", "1", "--save-state", "{place}/state"],
    ):
        code, said, _ = run([each.format(place=template) for each in command], template)
        if code:
            raise SystemExit(said)
    return template


def load_shim(place: str) -> None:
    """Compile the shim and restart this program with it; print one line if that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        print("skipped: faults are injected on Linux, and need a C compiler (cc)")
        sys.exit(0)
    shim = Path(place) / "faults.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    more = {"LD_PRELOAD": str(shim), SHIM: str(shim)}
    sys.exit(subprocess.run([sys.executable, *sys.argv], env=os.environ | more, check=False).returncode)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--errors", nargs="+", default=["EIO", "ENOSPC", "EACCES"])
    parser.add_argument("--every", type=int, default=1, help="only every so many calls, with one error each")
    parser.add_argument("--no-file", action="store_true", help="write no JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if SHIM not in os.environ:
            load_shim(place)
        template = prepare(Path(place).resolve())
        rows = [faulted(name, template, options.errors, options.every) for name in options.only]
    show(
        ["command", "calls", "faults", "exit 0", "exit 2", "failures"],
        [
            [r["command"], r["calls"], r["faults"], r["codes"][0], r["codes"][2], len(r["failures"])]
            for r in rows
        ],
    )
    for what in ("names", "harmless"):
        total = sum((row[what] for row in rows), Counter[str]())
        print(f"{what}: {', '.join(f'{call} {n}' for call, n in sorted(total.items()) if n)}")
    for row in rows:
        for failure in row["failures"]:
            print(row["command"], failure)
    if not options.no_file:
        save("faults", rows)
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    if any(row["failures"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
