"""Make crafted files: every field of every file of a run changed by type and by value, with the right checksum.

A crafted file must be refused with an `UnspoolError`, or work. Nothing else: no other exception, no endless loop, no
memory beyond a bound. `outcome` runs a command on such files in a child process and says how it ended.

    cases(make_files(folder)) ─▶ craft(case) ─▶ outcome(arguments) ─▶ "done", "refused", or what went wrong
"""

import json
import os
import resource
import shutil
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import CycloptsError

from unspool.cli.main import run_command
from unspool.compress import Container
from unspool.data.tokens.vocab import _digest
from unspool.errors import UnspoolError
from unspool.storage.files import CHECKSUM_PLACEHOLDER, with_checksum

MEMORY, SECONDS, WORKING = 768 << 20, 20, 0.4
"""Bytes a command may use beyond what Python uses already; seconds until it hangs; until training is asked to stop."""
MISSING = object()
NESTED: Any = 0
for _ in range(70):
    NESTED = [NESTED]
VALUES: tuple[Any, ...] = (
    MISSING, None, True, -1, 0, 3, 2**31, 2**62, 2**64, 10**30, -1.5, 1e308, "", "x", "\ud800", "../x",
    [], [0], [[1]], ["a", "b"], {}, {"a": 1}, NESTED,
)  # fmt: skip
LETTERS = "abcd efgh. "
FITS = {
    "classify": "rows.csv", "tag": "tags.txt", "translate": "pairs.tsv", "regress": "numbers.csv",
    "generate-from": "numbers.csv",
}  # fmt: skip
"""The commands that fit, and the data that they are given here."""


@dataclass(frozen=True)
class Case:
    """One crafted file, and the command that reads it."""

    file: str
    field: str
    value: str
    arguments: tuple[str, ...]
    write: Callable[[], None]


def run(*arguments: str | Path) -> None:
    """Run a command in this process; it must end well."""
    run_command([str(each) for each in arguments])


def make_files(folder: Path) -> Path:
    """Make one small file of every kind with the real commands."""
    folder.mkdir(parents=True)
    rng, here = np.random.default_rng(0), str(folder)
    (folder / "text.txt").write_text("".join(rng.choice(list(LETTERS), 3000)))
    rows = [f"{'ab' * (1 + i % 3)},{'xy'[i % 2]}" for i in range(24)]
    (folder / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    (folder / "pairs.tsv").write_text(
        "".join(f"{'ab' * (1 + i % 3)}\t{'ba' * (1 + i % 3)}\n" for i in range(24))
    )
    numbers = "".join(f"{i},{i % 5},{2 * i},{'ab' * (1 + i % 3)}\n" for i in range(24))
    (folder / "numbers.csv").write_text("a,b,target,text\n" + numbers)
    tags = ("a X\n" if i % 2 else "b Y\n" + "\n" * (i % 4 == 2) for i in range(48))
    (folder / "tags.txt").write_text("".join(tags))
    series = "".join(f"2020-{1 + i % 12:02},{5 + np.sin(i):.3f}\n" for i in range(12))
    series += "".join(f"2021-{1 + i % 12:02},{5 + np.sin(i):.3f}\n" for i in range(12))
    (folder / "series.csv").write_text("month,y\n" + series)
    tiny = ("--steps", "6", "--save-every", "1", "--hidden", "4", "--json", "--threads", "1")
    run(
        "train",
        f"{here}/text.txt",
        "--out",
        f"{here}/language",
        *tiny,
        "--batch",
        "2",
        "--window",
        "8",
        "--layers",
        "2",
    )
    run("classify", "fit", f"{here}/rows.csv", "--out", f"{here}/classify", *tiny)
    run("tag", "fit", f"{here}/tags.txt", "--out", f"{here}/tag", *tiny)
    run("translate", "fit", f"{here}/pairs.tsv", "--out", f"{here}/translate", *tiny)
    run("regress", "fit", f"{here}/numbers.csv", "--out", f"{here}/regress", *tiny)
    run(
        "generate-from",
        "fit",
        f"{here}/numbers.csv",
        "--features",
        "a",
        "b",
        "--out",
        f"{here}/generate-from",
        *tiny,
    )
    run(
        "forecast",
        "fit",
        f"{here}/series.csv",
        "--out",
        f"{here}/forecast",
        "--steps",
        "3",
        "--horizon",
        "2",
        "--members",
        "1",
        "--json",
    )
    run(
        "generate",
        f"{here}/language",
        "--length",
        "5",
        "--seed",
        "1",
        "--save-state",
        f"{here}/state",
        "--json",
    )
    run("compress", f"{here}/language", f"{here}/text.txt", "--with-model", "--json")
    stop_a_fit(folder)
    return folder


def stop_a_fit(folder: Path) -> None:
    """Leave a classifier in the middle of its fit, so that there is a state to go on from."""
    pid = os.fork()
    if not pid:
        _quiet()
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, WORKING)
        try:
            run(
                "classify",
                "fit",
                folder / "rows.csv",
                "--out",
                folder / "stopped",
                "--steps",
                "100000000",
                "--hidden",
                "4",
            )
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert (folder / "stopped" / "training.safetensors").exists()


# ── changing one field ─────────────────────────────────────────────────────────────────────────────────────


def fields(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the place of every field of plain values; of long lists the first and the last two entries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from fields(inner, (*at, key))
    if isinstance(value, list):
        for i in range(len(value)) if len(value) < 5 else (0, len(value) - 2, len(value) - 1):
            yield (*at, i)
            yield from fields(value[i], (*at, i))


def changed(content: Any, at: tuple[Any, ...], value: Any) -> Any:
    """Copy plain values with one field changed, or without it."""
    copied = json.loads(json.dumps(content))
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return copied


def variants(
    content: Any, chosen: Callable[[str], bool] = lambda name: True
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Give every field's name, the value that it gets, and what makes the changed content."""
    for at in fields(content):
        if at[-1] in ("sha256", "format") or not chosen(at[0]):
            continue
        for value in VALUES:
            shown = "missing" if value is MISSING else "nested" if value is NESTED else json.dumps(value)
            yield ".".join(map(str, at)), shown[:30], partial(changed, content, at, value)


# ── files with their checksums ─────────────────────────────────────────────────────────────────────────────


def sealed_json(content: Any) -> bytes:
    """Write plain values as a file of ours, with the right checksum."""
    return with_checksum(json.dumps(content | {"sha256": CHECKSUM_PLACEHOLDER}).encode())


def vocabulary(content: dict[str, Any]) -> tuple[bytes, str]:
    """Write a vocabulary and give its hash."""
    own = {key: value for key, value in content.items() if key not in ("format", "sha256")}
    digest = _digest(own)
    return json.dumps({"format": content.get("format"), "sha256": digest} | own).encode(), digest


def split_arrays(path: Path) -> tuple[dict[str, Any], bytes]:
    """Give the header of a safetensors file, our own fields unpacked, and the numbers behind it."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = {key: json.loads(value) for key, value in header["__metadata__"].items()}
    return header, content[end:]


def joined_arrays(header: Any, numbers: bytes) -> bytes:
    """Put a header and numbers together again, with the right checksum."""
    about = header.get("__metadata__")
    if isinstance(about, dict) and isinstance(about.get("unspool"), dict):
        own = {"sha256": CHECKSUM_PLACEHOLDER} | {k: v for k, v in about["unspool"].items() if k != "sha256"}
        header = header | {"__metadata__": about | {"unspool": json.dumps(own)}}
    text = json.dumps(header).encode()
    if CHECKSUM_PLACEHOLDER.encode() not in text:
        text = text[:-1] + b', "x": {"sha256": "' + CHECKSUM_PLACEHOLDER.encode() + b'"}}'
    text += b" " * (-len(text) % 8)
    return with_checksum(len(text).to_bytes(8, "little") + text + numbers)


def cases(folder: Path) -> Iterator[Case]:
    """Give every crafted file with the commands that read it."""
    text, rows = str(folder / "text.txt"), str(folder / "rows.csv")
    language, stopped = str(folder / "language"), str(folder / "stopped")
    use = [("generate", language, "--length", "3"), ("resume", language), ("evaluate", language, text)]
    yield from _json_cases(folder, "language/config.json", use)
    yield from _json_cases(folder, "language/text/corpus.json", use[1:2])
    yield from _vocab_cases(folder, "language", use)
    yield from _array_cases(
        folder,
        "language/model.safetensors",
        [
            use[0],
            ("inspect", language, text, "--out", f"{folder}/page"),
        ],
    )
    yield from _array_cases(folder, "language/training.safetensors", use[1:2])
    yield from _array_cases(folder, "state", [(*use[0], "--state", str(folder / "state"))])
    for kind, data in FITS.items():
        predict = [(kind, "predict", str(folder / kind), str(folder / data), "--json")]
        yield from _json_cases(folder, f"{kind}/config.json", predict)
        if (folder / kind / "vocab.json").exists():  # there is none of numbers alone
            yield from _vocab_cases(folder, kind, predict)
        yield from _array_cases(folder, f"{kind}/model.safetensors", predict)
    yield from _json_cases(
        folder, "stopped/config.json", [("resume", stopped), ("classify", "predict", stopped, rows)]
    )
    yield from _array_cases(folder, "stopped/training.safetensors", [("resume", stopped)])
    forecast = [("forecast", "predict", str(folder / "forecast"), "--json")]
    yield from _json_cases(folder, "forecast/config.json", forecast)
    yield from _array_cases(folder, "forecast/model.safetensors", forecast)
    yield from _log_cases(folder)
    yield from _container_cases(folder)
    yield from _npz_cases(folder)


def _json_cases(folder: Path, name: str, commands: list[tuple[str, ...]]) -> Iterator[Case]:
    path = folder / name
    for field, value, make in variants(json.loads(path.read_bytes())):
        for command in commands:
            yield Case(name, field, value, command, lambda make=make: path.write_bytes(sealed_json(make())))


def _vocab_cases(folder: Path, run_name: str, commands: list[tuple[str, ...]]) -> Iterator[Case]:
    name, config = f"{run_name}/vocab.json", folder / run_name / "config.json"
    text = folder / run_name / "text"

    def write(make: Callable[[], Any]) -> None:
        file, digest = vocabulary(make())
        (folder / name).write_bytes(file)
        told = json.loads(config.read_bytes())
        config.write_bytes(sealed_json(told | ({"vocab": digest} if "vocab" in told else {})))
        if text.exists():
            (text / "vocab.json").write_bytes(file)
            corpus = json.loads((text / "corpus.json").read_bytes()) | {"vocab": digest}
            (text / "corpus.json").write_bytes(sealed_json(corpus))

    for field, value, make in variants(json.loads((folder / name).read_bytes())):
        for command in commands:
            yield Case(name, field, value, command, partial(write, make))


def _array_cases(folder: Path, name: str, commands: list[tuple[str, ...]]) -> Iterator[Case]:
    path = folder / name
    header, numbers = split_arrays(path)
    arrays = sorted(set(header) - {"__metadata__"})
    kept = {arrays[0], arrays[-1], "__metadata__"}  # the others are alike

    def write(make: Callable[[], Any], numbers: bytes) -> None:
        path.write_bytes(joined_arrays(make(), numbers))

    for field, value, make in variants(header, lambda name: name in kept):
        for command in commands:
            yield Case(name, field, value, command, partial(write, make, numbers))
    for fill in (np.nan, np.inf, 1e38):
        array = np.full(len(numbers) // 4, fill, np.float32).tobytes().ljust(len(numbers), b"\0")
        for command in commands:
            yield Case(name, "numbers", str(fill), command, partial(write, lambda: header, array))


def _log_cases(folder: Path) -> Iterator[Case]:
    path = folder / "classify" / "log.jsonl"
    for value in VALUES[1:]:
        line = json.dumps(value).encode() + b"\n"
        yield Case(
            "classify/log.jsonl",
            "line",
            str(value)[:30],
            ("resume", str(folder / "classify")),
            lambda c=line: path.write_bytes(c),
        )


def _container_cases(folder: Path) -> Iterator[Case]:
    path = folder / "text.txt.unspool"
    kept = Container.from_bytes(path.read_bytes())
    changes: list[tuple[str, Any]] = [
        (name, n) for name in ("length", "tokens") for n in (0, 1, 2999, 2**24, 2**40, 2**62, 2**70)
    ]
    changes += [("mode", mode) for mode in ("network", "counted", "stored")] + [
        ("payload", b) for b in (b"", b"\xff" * 500)
    ]
    changes += [("name", name) for name in ("", "../x", "a\0b", "x" * 300)] + [("identity", b"\0" * 8)]
    changes += [("model", _bomb(kept.model, size)) for size in (10, 1 << 25)] + [
        ("model", b"PK"),
        ("model", kept.model[:-9]),
    ]
    for field, value in changes:
        made = Container(**{**vars(kept), field: value}).to_bytes()
        yield Case(
            "x.unspool",
            field,
            repr(value)[:30],
            ("decompress", str(path), "--out", f"{folder}/back"),
            lambda c=made: path.write_bytes(c),
        )


def _bomb(model: bytes, size: int) -> bytes:
    """Replace the model's numbers in an archive by so many zeros, packed."""
    packed = BytesIO()
    with zipfile.ZipFile(BytesIO(model)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, bytes(size) if name.startswith("model") else old.read(name))
    return packed.getvalue()


def _npz_cases(folder: Path) -> Iterator[Case]:
    path = folder / "crafted.npz"
    for descr in ("<f4", "|O", "<U999999999", "|V8", "x", ">f2"):
        for shape in (
            "(2, 1)",
            f"({2**60}, 1)",
            "(-1, 1)",
            f"({2**40}, {2**40})",
            "(0, 0)",
            "()",
            "(1.5,)",
            "x",
        ):
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
            made = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(8)
            yield Case(
                "x.npz",
                descr,
                shape,
                ("classify", "predict", str(folder / "classify"), str(path)),
                lambda c=made: path.write_bytes(_archive(c)),
            )


def _archive(array: bytes) -> bytes:
    lengths = BytesIO()
    np.save(lengths, np.array([1, 1]))
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", array)
        archive.writestr("lengths.npy", lengths.getvalue())
    return packed.getvalue()


# ── running a command in a child ───────────────────────────────────────────────────────────────────────────


def outcome(arguments: tuple[str, ...]) -> str:
    """Run a command in a forked child: done, refused: …, or what went wrong."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(read)
            os.write(write, _ended(arguments).encode("utf-8", "backslashreplace")[:4000])
        finally:
            os._exit(0)
    os.close(write)
    until = time.monotonic() + SECONDS
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(read)
            return "HANGS"
        time.sleep(0.002)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode() or "CRASHED"


def _quiet() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    for name, number in (("stdout", 1), ("stderr", 2)):  # as the command line does
        setattr(sys, name, open(number, "w", closefd=False, errors="replace"))  # noqa: SIM115


def _ended(arguments: tuple[str, ...]) -> str:
    _quiet()
    used = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        if sys.platform == "linux"
        else 0
    )
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until a command listens to it
    signal.setitimer(signal.ITIMER_REAL, WORKING, WORKING)
    try:
        run_command(list(arguments))
        return "done"
    except SystemExit as end:
        return "done" if end.code in (0, None, 143) else f"EXIT {end.code}"
    except (UnspoolError, CycloptsError) as error:
        line = " ".join(str(error).split())
        return f"refused: {line}"
    except KeyboardInterrupt:
        return "done"
    except BaseException as error:
        return f"FAULT {type(error).__name__}: {error} {_where(error)}"


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    places = []
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-4:])


def craft(folder: Path, pristine: Path, case: Case) -> str:
    """Craft one of the files, run the command, restore the files; say how it ended."""
    case.write()
    ended = outcome(case.arguments)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine, folder)
    return ended


def is_good(ended: str) -> bool:
    """Say whether a command ended as it should."""
    return ended == "done" or ended.startswith("refused: ")
