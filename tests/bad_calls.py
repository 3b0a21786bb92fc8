"""Call every command with bad values for every option, and check how each call ends.

    python tests/bad_calls.py [--workers 2] [--only SUBSTRING] [--json FILE]

The options are read from the command line itself, so a new option is covered when it is added. Each call starts from
a valid one and replaces one value. A call passes if it ends in time with exit code 0 or 2 (2 where the value is
certainly wrong), if exit code 2 comes with one line on standard error, and if no file that existed before has changed.

A server process imports the package once and forks for every call: a call takes some 30 ms instead of 400.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
import typing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

TIMEOUT = 30
MEMORY = 6 * 2**30
FAST = ["--steps", "2", "--hidden", "4"]
BASES: dict[str, list[str]] = {
    "demo": ["--seconds", "0.1"],
    "train": ["story.txt", "--out", "NEW", *FAST, "--batch", "2", "--window", "8"],
    "resume": ["stopped"],
    "evaluate": ["language", "story.txt"],
    "generate": ["language", "--length", "5"],
    "compress": ["language", "small.txt", "--out", "NEW"],
    "decompress": ["small.unspool", "--run", "language", "--out", "NEW"],
    "classify fit": ["names.csv", "--out", "NEW", *FAST],
    "classify predict": ["classify", "names.csv"],
    "tag fit": ["tags.conll", "--out", "NEW", *FAST],
    "tag predict": ["tag", "tags.conll"],
    "translate fit": ["pairs.tsv", "--out", "NEW", *FAST],
    "translate predict": ["translate", "pairs.tsv"],
    "regress fit": ["points.csv", "--out", "NEW", *FAST],
    "regress predict": ["regress", "points.csv"],
    "generate-from fit": ["names.csv", "--out", "NEW", *FAST],
    "generate-from predict": ["generate-from", "names.csv"],
    "forecast fit": ["sales.csv", "--out", "NEW", *FAST, "--members", "1"],
    "forecast predict": ["forecast"],
    "forecast backtest": ["sales.csv", *FAST, "--members", "1"],
    "sweep": ["sweep.toml", "--out", "NEW"],
    "stats": ["story.txt"],
    "inspect": ["language", "small.txt", "--out", "NEW"],
    "graph": ["--hidden", "3", "--tau", "2"],
    "check-gradients": ["--hidden", "3", "--steps", "3"],
    "turing": ["builtin:increment", "1011"],
    "runs": ["."],
    "show": ["language"],
    "completion": ["bash"],
}
"""A valid call of every command; NEW is a path that does not exist yet."""
SERVERS = ("studio",)
"""Commands that do not end by themselves: a valid call is no start for a campaign; see tests/studio/test_command.py."""
MAY_DISAGREE = ("check-gradients", "turing")
"""Commands with a result of their own for exit code 1."""
ENDLESS = {"--steps", "--epochs", "--length", "--patience", "--samples", "--count", "--seconds", "--minutes"}
"""Options that accept any large number: the call would be right and never end."""
WHOLE = [("2.7", True), ("abc", True), ("", True), ("nan", True), ("1e30", True), ("-1", False), ("0", False)]
HUGE = [("1000000", False), ("1000000000000000000", False), ("36893488147419103232", False)]
REAL = [("abc", True), ("", True), ("nan", True), ("inf", False), ("-1", False), ("1e400", False)]
TEXTS = [("", False), ("nope", False), ("\U0001f4a5" * 9, False), ("x" * 5000, False), ("[bold]", False)]
OUTPUTS = [("", True), ("story.txt", True), ("names.csv", True), ("language/model.safetensors", True),
           ("language", True), ("no/such/folder/x.png", False), ("n" * 300, True), ("story.txt/x", True)]  # fmt: skip
INPUTS = [("", True), ("no-such-file", True), ("empty.txt", False), ("noise.bin", False), ("folder", False),
          ("language", False), ("n" * 300, True), ("story.txt/x", True), ("/dev/null", False)]  # fmt: skip
MADE = {"--cache"}
"""Options that name a folder to be made."""
WRITTEN = {"--out", "--plot", "--picture", "--weights", "--save-state", "--per-line", "--per-token"}


@dataclass(frozen=True)
class Call:
    """One call: the arguments, whether it must be refused, and whether it must succeed."""

    arguments: tuple[str, ...]
    refused: bool
    valid: bool = False


@dataclass(frozen=True)
class Ended:
    """How a call ended, and what is wrong with that; "" where nothing is."""

    arguments: tuple[str, ...]
    code: int | None
    stderr: str
    fault: str


def commands() -> dict[str, Any]:
    """Return every command of the command line by its whole name, with its cyclopts application."""
    from unspool.cli.main import app

    found: dict[str, Any] = {}

    def walk(node: Any, chain: tuple[str, ...]) -> None:
        for name in node:
            if not name.startswith("-"):
                walk(node[name], (*chain, name))
        if node.default_command is not None and chain and chain[0] not in SERVERS:
            found[" ".join(chain)] = node

    walk(app, ())
    return found


def calls() -> Iterator[Call]:
    """Yield the bad calls of every command and option."""
    for name, node in commands().items():
        base = BASES[name]
        yield Call((*name.split(), *base), False, valid=True)
        yield Call((*name.split(), "--no-such-option"), True)
        yield Call((*name.split(), *base, "--no-such-option", "1"), True)
        yield Call((*name.split(), *base, *["too", "many", "words"] * 3), False)
        places = 0
        for argument in node.assemble_argument_collection():
            if argument.children:
                continue
            option = argument.names[0]
            for value, refused in values_for(option, argument.hint):
                if option.startswith("--"):
                    words = [value] * numbers_of(argument.hint)
                    yield Call((*name.split(), *without(base, option), option, *words), refused)
                elif places < len(base) and not base[places].startswith("--"):
                    yield Call((*name.split(), *base[:places], value, *base[places + 1 :]), refused)
            places += not option.startswith("--")


def values_for(option: str, hint: Any) -> list[tuple[str, bool]]:
    """Return bad values of an option by its type, each with whether it must be refused."""
    kinds = set(leaves(hint))
    if option in WRITTEN:
        return OUTPUTS
    if any(typing.get_origin(kind) is Literal for kind in kinds):
        return [("nope", True), ("", True)]
    if bool in kinds:
        return []
    if int in kinds:
        return WHOLE + ([] if option in ENDLESS else HUGE)
    if float in kinds:
        return [each for each in REAL if option not in ENDLESS or each[1] or each[0] == "-1"]
    if option == "TAPE":
        return TEXTS
    if Path in kinds or not option.startswith("--"):
        return [each for each in INPUTS if option not in MADE or each[0] != "no-such-file"]
    return TEXTS


def leaves(hint: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, tuple, list, typing.Annotated):
        for part in typing.get_args(hint):
            yield from leaves(part)
    else:
        yield hint


def numbers_of(hint: Any) -> int:
    """Return how many values an option takes."""
    shapes = [each for each in (hint, *typing.get_args(hint)) if typing.get_origin(each) is tuple]
    return len(typing.get_args(shapes[0])) if shapes else 1


def without(base: list[str], option: str) -> list[str]:
    """Return a call without one option and its value."""
    if option not in base:
        return base
    at = base.index(option)
    return base[:at] + base[at + 2 :]


def make_files(folder: Path) -> None:
    """Write the inputs of the calls, with a small run of every kind, into an empty folder."""
    write = lambda name, text: (folder / name).write_text(text, encoding="utf-8")  # noqa: E731
    write("story.txt", "she sells sea shells by the sea shore; the shells are hers.\n" * 40)
    write("small.txt", "the sea shells she sells.\n" * 4)
    write("names.csv", "text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 20)
    write("tags.conll", "dogs N\nbark V\n\ncats N\nsleep V\nnow R\n\n" * 10)
    write("pairs.tsv", "one\t1\ntwo\t2\nthree\t3\n" * 10)
    write(
        "points.csv", "a,b,target\n" + "".join(f"{i % 7},{i % 5},{i % 7 + 2 * (i % 5)}\n" for i in range(60))
    )
    months = [f"{2000 + t // 12}-{1 + t % 12:02},{20 + t % 12 + t % 5}" for t in range(96)]
    write("sales.csv", "\n".join(["month,sales", *months]) + "\n")
    write(
        "sweep.toml",
        'command = "classify fit names.csv"\n[options]\nsteps = 2\nhidden = 4\n[grid]\nseed = [0]\n',
    )
    write("empty.txt", "")
    (folder / "noise.bin").write_bytes(bytes((i * i * 31 + 7 * i) % 256 for i in range(3000)))
    (folder / "folder").mkdir()
    for kind, name in (("language", "train"), ("classify", "classify fit"), ("tag", "tag fit"),
                       ("translate", "translate fit"), ("regress", "regress fit"), ("forecast", "forecast fit"),
                       ("generate-from", "generate-from fit")):  # fmt: skip
        if name in commands():
            valid_call(folder, [*name.split(), *(kind if word == "NEW" else word for word in BASES[name])])
    shutil.copytree(folder / "language", folder / "stopped")
    valid_call(folder, ["compress", "language", "small.txt", "--out", "small.unspool"])


def valid_call(folder: Path, arguments: list[str]) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "unspool", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)


class Server:
    """A process that has imported the command line and forks for each call in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_files(folder)
        self._before = fingerprints(folder)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, call: Call) -> Ended:
        """Run one call, judge how it ended and remove what it made."""
        assert self._process.stdin is not None and self._process.stdout is not None
        arguments = ["made" if word == "NEW" else word for word in call.arguments]
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        code, stderr = json.loads(self._process.stdout.readline())
        fault = judge(call, code, stderr) or self._damage()
        return Ended(call.arguments, code, stderr, fault)

    def _damage(self) -> str:
        after = fingerprints(self.folder)
        lost = [name for name in self._before if after.get(name) != self._before[name]]
        for name in sorted(set(after) - set(self._before), reverse=True):
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return f"changed or lost: {', '.join(lost)}" if lost else ""

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def fingerprints(folder: Path) -> dict[str, str]:
    """Return the hash of every file, "folder" for every folder; the log of a resumed run may grow."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if not name.startswith("stopped"):
            found[name] = "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def judge(call: Call, code: int | None, stderr: str) -> str:
    """Say what is wrong with the end of a call, or return ""."""
    lines = stderr.splitlines()
    if code is None:
        return f"did not end within {TIMEOUT} s"
    if "Traceback" in stderr:
        return "traceback"
    if code == 1 and call.arguments[0] in MAY_DISAGREE:
        return ""
    if code not in (0, 2):
        return f"exit code {code}"
    if code == 0 and call.refused:
        return "was accepted"
    if code == 2 and call.valid:
        return "was refused"
    if code == 2 and (len(lines) != 1 or not lines[0].startswith("unspool: ")):
        return f"{len(lines)} lines on standard error; expected one that starts with 'unspool: '"
    return ""


def serve() -> None:
    """Fork for every line of arguments on standard input; answer with exit code and standard error."""
    for node in commands().values():  # imports every command
        node.assemble_argument_collection()
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


def forked(arguments: list[str]) -> tuple[int | None, str]:
    """Run one call in a child of this process."""
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            run_in_child(arguments, errors.fileno())
        timer = threading.Timer(TIMEOUT, os.kill, (child, signal.SIGKILL))
        timer.start()
        _, status = os.waitpid(child, 0)
        late = not timer.is_alive()
        timer.cancel()
        timer.join()
        errors.seek(0)
        stderr = errors.read().decode(errors="replace")
    return None if late else os.waitstatus_to_exitcode(status), stderr


def run_in_child(arguments: list[str], errors: int) -> typing.NoReturn:
    """Become the command: standard streams redirected, memory limited."""
    code = 99
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        os.dup2(errors, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["unspool", *arguments]
        from unspool.cli.main import main

        code = main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def run_all(chosen: list[Call], workers: int) -> list[Ended]:
    """Run calls on several servers, each in a folder of its own."""

    def work(share: list[Call]) -> list[Ended]:
        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder))
            try:
                return [server.run(call) for call in share]
            finally:
                server.close()

    with ThreadPoolExecutor(workers) as pool:
        return [
            each for ended in pool.map(work, [chosen[i::workers] for i in range(workers)]) for each in ended
        ]


def main() -> None:
    """Run the campaign and print a table by command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.serve:
        return serve()
    chosen = [call for call in calls() if args.only in " ".join(call.arguments)]
    ended = run_all(chosen, args.workers)
    for each in ended:
        if each.fault:
            print(f"{' '.join(each.arguments)[:150]!r}: {each.fault}\n    {each.stderr[-300:]!r}")
    print(
        f"{len(ended)} calls, {sum(each.code == 2 for each in ended)} refused, {sum(bool(e.fault) for e in ended)} faults"
    )
    if args.json:
        args.json.write_text(json.dumps([asdict(each) for each in ended], indent=1))


if __name__ == "__main__":
    main()
