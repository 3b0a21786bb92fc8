"""Benchmark lossless compression: size, seconds in both directions and peak memory, beside other programs.

    python bench/compress.py FILE … [--run RUN] [--programs "gzip,unspool --learn"]

Rows: gzip, bzip2, xz; zstd, brotli and PPMd (order 6 with 16 MB as in 7-Zip, and order 16 with 512 MB) where the
packages zstandard, brotli and pyppmd are installed; `unspool compress FILE --learn`; and with --run the run as it is, with its mixture
and learning. Each row is a process of its own with one thread: its processor time, and its peak memory less that after imports.
Each file is restored and compared.
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

from table import save, show
from unspool.compress import Container, compress, compress_adaptive, decompress
from unspool.kernels.native import set_threads
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning

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


def adaptive() -> Program:
    return (
        lambda data: compress_adaptive(data).to_bytes(),
        lambda packed: decompress(Container.from_bytes(packed)),
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
        found["the run --learn"] = with_run(model, learning=Learning())
        if model.mixture is not None:
            found["the mixture"] = with_run(model, mixture=True)
            found["the mixture --learn"] = with_run(model, mixture=True, learning=Learning())
    return found


def megabytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << (20 if sys.platform == "darwin" else 10)
    )


def measure(name: str, path: Path, run: Path | None) -> dict[str, Any]:
    """Compress and restore one file with one program."""
    press, restore = programs(run)[name]
    data, before = path.read_bytes(), megabytes()
    begin = time.process_time()
    packed = press(data)
    middle = time.process_time()
    if restore(packed) != data:
        raise SystemExit(f"{path}: {name} did not restore it")
    seconds = middle - begin, time.process_time() - middle
    return {"bytes": len(data), "written": len(packed), "seconds": seconds, "megabytes": megabytes() - before}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--programs", help="only these, separated by commas")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    set_threads(1)
    if options.one:
        return print(json.dumps(measure(options.one, options.files[0], options.run)))
    names = [*programs(options.run)]
    chosen = options.programs.split(",") if options.programs else names
    if unknown := [name for name in chosen if name not in names]:
        raise SystemExit(f"--programs: {unknown[0]!r} is not one of {', '.join(names)}")
    run, found = ["--run", str(options.run)] if options.run else [], list[dict[str, Any]]()
    for path in options.files:
        for name in chosen:
            command = [sys.executable, __file__, str(path), "--one", name, *run]
            done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            found.append({"file": path.name, "program": name} | done)
    show(
        ["file", "program", "bytes", "bits/byte", "KB/s", "restored KB/s", "MB of memory"],
        [row(each) for each in found],
    )
    save("compress", {"run": options.run and str(options.run), "files": found})


def row(each: dict[str, Any]) -> list[Any]:
    speeds = [f"{each['bytes'] / 1000 / max(seconds, 1e-6):,.0f}" for seconds in each["seconds"]]
    bits = f"{8 * each['written'] / max(each['bytes'], 1):.4f}"
    return [each["file"], each["program"], each["written"], bits, *speeds, round(each["megabytes"])]


if __name__ == "__main__":
    main()
