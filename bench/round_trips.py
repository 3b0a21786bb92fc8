"""Compress 200 files of all kinds and restore them, with the same bytes on every instruction set and number of threads.

    python bench/round_trips.py [--run RUN] [--files 200]

Each file is compressed as by `unspool compress FILE --learn`, or with --run as by `unspool compress RUN FILE --learn`: on every instruction set
of this CPU, with one or three threads in turns. All results must be equal. They are restored on the first instruction set, with two threads.
The files are made by this script, from a fixed seed, from the project's own files and from Python's executable.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import random
import sys
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from table import save, show
from unspool.compress import Container, compress_adaptive, decompress
from unspool.kernels.machine import choose_isa, kernel_info, set_threads
from unspool.tasks.language.text_model import TextModel

PROJECT = Path(__file__).resolve().parents[1]
SENTENCES = {
    "English": "The train left the valley before the rain began, and nobody on the platform waved. ",
    "German": "Der Zug verließ das Tal, bevor der Regen begann; über den Gleisen lag größere Stille. ",
    "French": "Le train quitta la vallée avant la pluie, et personne ne fit signe à la fenêtre. ",
    "Polish": "Pociąg opuścił dolinę, zanim zaczął padać deszcz, i nikt na peronie nie pomachał. ",
    "Russian": "Поезд покинул долину до дождя, и никто на платформе не помахал ему вслед. ",
    "Greek": "Το τρένο έφυγε από την κοιλάδα πριν από τη βροχή, και κανείς δεν χαιρέτησε. ",
    "Chinese": "火车在下雨之前离开了山谷，站台上没有人挥手。",
    "Japanese": "列車は雨が降り出す前に谷を離れ、ホームでは誰も手を振らなかった。",
    "Korean": "기차는 비가 내리기 전에 골짜기를 떠났고, 승강장에서는 아무도 손을 흔들지 않았다. ",
    "Arabic": "غادر القطار الوادي قبل أن يبدأ المطر، ولم يلوّح أحد على الرصيف. ",
    "Hindi": "बारिश शुरू होने से पहले रेलगाड़ी घाटी से निकल गई और किसी ने हाथ नहीं हिलाया। ",
    "symbols": "🚂🌧️ → ∑ √τ ≤ ½ „x“ 🏔️🏔️ ✓ ",
}
CODECS = {"English": "utf-32", "German": "cp1252", "French": "utf-16", "Polish": "iso8859-2", "Russian": "koi8-r", "Greek": "utf-8-sig",
          "Chinese": "gb18030", "Japanese": "shift_jis", "Korean": "euc-kr", "Arabic": "cp1256", "Hindi": "utf-16-be",
          "symbols": "utf-7"}  # fmt: skip
Files = Iterator[tuple[str, bytes]]


def texts(rng: random.Random) -> Files:
    for language, sentence in SENTENCES.items():
        words = sentence.split() if " " in sentence else list(sentence)
        text = " ".join(rng.choices(words, k=rng.choice((20, 90, 250, 600))))
        yield f"text, {language}, UTF-8", text.encode()
        yield f"text, {language}, {CODECS[language]}", text.encode(CODECS[language], "replace")
        yield f"text, {language}, UTF-8 with damage", _damaged(text.encode(), rng)


def _damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(9):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed) // 2, len(changed))])


def numbers(rng: random.Random) -> Files:
    for columns in (1, 4, 12):
        sheet = io.StringIO()
        csv.writer(sheet).writerows([[rng.randrange(10**6) for _ in range(columns)] for _ in range(60)])
        yield "table, CSV", sheet.getvalue().encode()
    yield "table, JSON", json.dumps([{"id": i, "value": rng.random()} for i in range(90)]).encode()
    yield "table, XML", "".join(f"<row id='{i}'><v>{rng.random()}</v></row>\n" for i in range(90)).encode()
    values = np.cumsum(np.array([rng.gauss(0, 100) for _ in range(600)]))
    for kind in ("u1", "<i2", ">i2", "<i4", ">i4", "<f4", "<f8", ">f8"):
        yield f"array, {kind}", (values.astype("<i4") if kind == "u1" else values).astype(kind).tobytes()


def bytes_of_no_kind(rng: random.Random) -> Files:
    yield "empty", b""
    yield from (("one byte", bytes([value])) for value in (0, 10, 65, 128, 255))
    yield from (("random bytes", rng.randbytes(n)) for n in (2, 15, 16, 17, 255, 256, 2049, 4097, 6000))
    yield from (
        ("one byte repeated", bytes([value]) * n) for value in (0, 32, 255) for n in (2, 65, 3000, 20_000)
    )
    yield from (("period", rng.randbytes(n) * (4000 // n)) for n in (2, 3, 31, 256, 1000))
    yield from (("few values", bytes(rng.choices(b"01", k=n))) for n in (9, 900, 4000))
    yield "all bytes", bytes(range(256)) * 9
    yield "continuation bytes", bytes(rng.choices(range(128, 192), k=3000))
    yield "first bytes of UTF-8", bytes(rng.choices(range(192, 256), k=3000))
    yield "line ends", b"\r\n" * 3000


def compressed(rng: random.Random) -> Files:
    text = " ".join(rng.choices(SENTENCES["English"].split(), k=1500)).encode()
    yield "compressed, gzip", gzip.compress(text, 9, mtime=0)
    yield "compressed, bzip2", bz2.compress(text)
    yield "compressed, xz", lzma.compress(text)
    yield "compressed, unspool", compress_adaptive(text).to_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr(zipfile.ZipInfo("stored.txt"), text[:3000])
        files.writestr(zipfile.ZipInfo("packed.txt"), text, zipfile.ZIP_DEFLATED)
    yield "archive, ZIP", archive.getvalue()
    rows = b"".join(b"\0" + bytes((x * y) & 255 for x in range(90)) for y in range(60))
    yield (
        "picture, PNG",
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\x5a\0\0\0\x3c\x08\0\0\0\0" + zlib.compress(rows),
    )
    yield "picture, bitmap", rows


def programs(rng: random.Random) -> Files:
    """Parts of the files of the project, and of Python, without end."""
    found = [("source, Python", "src/**/*.py"), ("source, C++", "csrc/**/*.cpp"), ("page", "docs/*.md")]
    sources = {kind: sorted(PROJECT.glob(pattern)) for kind, pattern in found}
    sources["program"] = [Path(sys.executable).resolve()]
    for kind, paths in cycle(sources.items()):
        data = rng.choice(paths).read_bytes()
        begin = rng.randrange(max(len(data) - 4000, 1))
        yield kind, data[begin : begin + rng.choice((100, 700, 2000, 4000))]


def files(count: int, seed: int = 7) -> Files:
    rng = random.Random(seed)
    fixed = [each for kinds in (texts, numbers, bytes_of_no_kind, compressed) for each in kinds(rng)]
    yield from islice([*fixed, *islice(programs(rng), max(count - len(fixed), 0))], count)


def round_trip(number: int, data: bytes, model: TextModel | None) -> bytes:
    """Return the compressed file; raise SystemExit if an instruction set writes other bytes or it does not come back."""
    available, first = kernel_info()["available"], b""
    for isa, threads in zip(available, islice(cycle((1, 3)), number % 2, None), strict=False):
        choose_isa(isa)
        set_threads(threads)
        content = compress_adaptive(data, model=model).to_bytes()
        first = first or content
        if content != first:
            raise SystemExit(f"{isa} with {threads} threads wrote other bytes")
    choose_isa(available[0])
    set_threads(2)
    if decompress(Container.from_bytes(first), model) != data:
        raise SystemExit("the file did not come back")
    return first


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path)
    parser.add_argument("--files", type=int, default=200)
    options = parser.parse_args()
    model = None if options.run is None else TextModel.load(options.run, mixture=True)
    rows, digest = defaultdict[str, list[tuple[int, int, str]]](list), hashlib.sha256()
    for number, (kind, data) in enumerate(files(options.files)):
        content = round_trip(number, data, model)
        digest.update(content)
        rows[kind.partition(",")[0]].append((len(data), len(content), _way(content)))
        print(f"\r{number + 1}", end="", file=sys.stderr, flush=True)
    table = [_row(kind, found) for kind, found in rows.items()]
    show(["kind", "files", "bytes", "compressed", "stored", "counts", "network", "run"], table)
    total = sum(len(found) for found in rows.values())
    sets = kernel_info()["available"]
    print(
        f"\n{total} files: equal on {', '.join(sets)}, and restored; SHA-256 of all {digest.hexdigest()[:16]}"
    )
    result: dict[str, Any] = {"files": total, "isa": sets, "sha256": digest.hexdigest()}
    save("round_trips", result | {"run": options.run and str(options.run), "kinds": rows})


def _way(content: bytes) -> str:
    container = Container.from_bytes(content)
    if container.mode == "stored" or container.needs_model:
        return "run" if container.needs_model else "stored"
    return "network" if container.hidden else "counts"


def _row(kind: str, found: list[tuple[int, int, str]]) -> list[Any]:
    sizes = [len(found), sum(each[0] for each in found), sum(each[1] for each in found)]
    return [
        kind,
        *sizes,
        *(sum(each[2] == way for each in found) for way in ("stored", "counts", "network", "run")),
    ]


if __name__ == "__main__":
    main()
