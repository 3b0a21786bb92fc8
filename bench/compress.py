"""Benchmark lossless compression: size, seconds in both directions and peak memory, beside other programs.

    python bench/compress.py FILE … [--cuts 100000,300000,1000000,all] [--run RUN] [--programs "gzip -9,unspool --learn"] [--table]

Rows: gzip, bzip2, xz; zstd, brotli and PPMd (order 6 with 16 MB as in 7-Zip, and order 16 with 512 MB) where the
packages zstandard, brotli and pyppmd are installed; `unspool compress FILE --learn`; and with --run the run as it is, its mixture, and
`unspool compress RUN FILE --learn`. --cuts takes the beginnings of the files of so many bytes, where they are as long; all: the whole file.
Each row is a process of its own with one thread: its processor time, and its peak memory less that after imports. Each file is restored and
compared. An interrupted run saves what it has measured. --table prints the sizes as Markdown, with one row per file.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import importlib
import json
import lzma
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import markdown, save, show
from unspool.compress import Container, compress, compress_adaptive, decompress
from unspool.kernels.native import set_threads
from unspool.tasks.language.text_model import TextModel

Press = Callable[[bytes], bytes]
Program = tuple[Press, Press]
XZ = 9 | lzma.PRESET_EXTREME
PPMD = {"PPMd -o6 -mem16": (6, 16 << 20), "PPMd -o16 -mem512": (16, 512 << 20)}


def optional(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def adaptive(model: TextModel | None = None) -> Program:
    return (
        lambda data: compress_adaptive(data, model=model).to_bytes(),
        lambda packed: decompress(Container.from_bytes(packed), model),
    )


def with_run(model: TextModel, **settings: Any) -> Program:
    return (
        lambda data: compress(model, data, **settings).container.to_bytes(),
        lambda packed: decompress(Container.from_bytes(packed), model),
    )


def programs(run: Path | None) -> dict[str, Program]:
    """Return all programs that can be run here, by name."""
    found: dict[str, Program] = {
        "gzip -9": (lambda data: gzip.compress(data, 9), gzip.decompress),
        "bzip2 -9": (lambda data: bz2.compress(data, 9), bz2.decompress),
        "xz -9e": (lambda data: lzma.compress(data, preset=XZ), lzma.decompress),
    }
    if zstd := optional("zstandard"):
        found["zstd -19"] = (zstd.ZstdCompressor(19).compress, zstd.ZstdDecompressor().decompress)
    if brotli := optional("brotli"):
        found["brotli -11"] = (lambda data: brotli.compress(data, quality=11), brotli.decompress)
    if pyppmd := optional("pyppmd"):
        for name, (order, memory) in PPMD.items():
            found[name] = (
                lambda data, o=order, m=memory: pyppmd.compress(data, max_order=o, mem_size=m),  # type: ignore[misc]
                lambda packed, o=order, m=memory: pyppmd.decompress(packed, max_order=o, mem_size=m),  # type: ignore[misc]
            )
    found["unspool --learn"] = adaptive()
    if run is not None:
        model = TextModel.load(run, mixture=True)
        found["the run"] = with_run(model)
        if model.mixture is not None:
            found["the mixture"] = with_run(model, mixture=True)
        found["the run --learn"] = adaptive(model)
    return found


def megabytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << (20 if sys.platform == "darwin" else 10)
    )


def measure(name: str, path: Path, cut: int | None, run: Path | None) -> dict[str, Any]:
    """Compress and restore one file, or its first `cut` bytes, with one program."""
    press, restore = programs(run)[name]
    data, before = path.read_bytes()[:cut], megabytes()
    begin = time.process_time()
    packed = press(data)
    middle = time.process_time()
    if restore(packed) != data:
        raise SystemExit(f"{path}: {name} did not restore it")
    seconds = middle - begin, time.process_time() - middle
    return {"bytes": len(data), "written": len(packed), "seconds": seconds, "megabytes": megabytes() - before}


def cases(files: list[Path], cuts: list[int | None]) -> list[tuple[Path, int | None]]:
    """Return each file with each of its cuts."""
    found = [(path, cut) for path in files for cut in cuts]
    return [(path, cut) for path, cut in found if cut is None or path.stat().st_size >= cut]


def main() -> None:
    options = arguments()
    set_threads(1)
    if options.one:
        cut = options.cuts[0] if options.cuts else None
        return print(json.dumps(measure(options.one, options.files[0], cut, options.run)))
    names = [*programs(options.run)]
    chosen = options.programs.split(",") if options.programs else names
    if unknown := [name for name in chosen if name not in names]:
        raise SystemExit(f"--programs: {unknown[0]!r} is not one of {', '.join(names)}")
    run, found = ["--run", str(options.run)] if options.run else [], list[dict[str, Any]]()
    try:
        for path, cut in cases(options.files, options.cuts or [None]):
            for name in chosen:
                command = [
                    sys.executable,
                    __file__,
                    str(path),
                    "--one",
                    name,
                    "--cuts",
                    str(cut or "all"),
                    *run,
                ]
                done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                found.append({"file": path.name, "program": name} | done)
                print(*row(found[-1]), file=sys.stderr, flush=True)
    finally:  # also what an interrupted run has measured
        save("compress", {"run": options.run and str(options.run), "files": found})
    if options.table:
        return print(sizes(found, chosen))
    show(
        ["file", "program", "bytes", "bits/byte", "KB/s", "restored KB/s", "MB of memory"],
        [row(each) for each in found],
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument(
        "--cuts", type=lambda text: [None if each == "all" else int(each) for each in text.split(",")]
    )
    parser.add_argument("--run", type=Path)
    parser.add_argument("--programs", help="only these, separated by commas")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def sizes(found: list[dict[str, Any]], names: list[str]) -> str:
    """Return the sizes as a table in Markdown, one row per file and cut."""
    rows: dict[tuple[str, int], list[Any]] = {}
    for each in found:
        rows.setdefault((each["file"], each["bytes"]), []).append(f"{each['written']:,}")
    return markdown(
        ["file, bytes", *names], [[f"{file}, {size:,}", *written] for (file, size), written in rows.items()]
    )


def row(each: dict[str, Any]) -> list[Any]:
    speeds = [f"{each['bytes'] / 1000 / max(seconds, 1e-6):,.0f}" for seconds in each["seconds"]]
    bits = f"{8 * each['written'] / max(each['bytes'], 1):.4f}"
    return [each["file"], each["program"], each["written"], bits, *speeds, round(each["megabytes"])]


if __name__ == "__main__":
    main()
