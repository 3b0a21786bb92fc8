"""Compare the mixture of a network and n-grams with both of its parts, on the test splits of many texts.

    python bench/mixture.py --folder FOLDER [--steps 300 --hidden 128 | --seconds 12]
    python bench/mixture.py TEXT@SIZE[,TOKENS] [TEXT@SIZE[,TOKENS] …]

TEXT is a file, or builtin:python-docs or builtin:python-source; its middle SIZE bytes are taken (cut at line ends where there are
some), TOKENS is char, byte or word. With --folder, the 20 texts of TEXTS are used. For each text, `unspool train` trains in a new
process; with --steps, the losses do not depend on the machine. The table shows nats per token of the network, of the best
n-grams up to order 6 (4 for words; the best on the test split itself) and of the mixture, the difference of the mixture to the
better one, and the cost of the mixture's counts. Texts that are in the results already are not measured again, except with --again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from table import RESULTS, save, show
from unspool.data.text.decoding import iter_bytes
from unspool.data.text.source import resolve

TEXTS = [
    "tinyshakespeare.txt@20000", "tinyshakespeare.txt@100000", "tinyshakespeare.txt@400000",
    "tinyshakespeare.txt@1200000", "timemachine.txt@50000", "timemachine.txt@180000", "hongloumeng.txt@60000",
    "hongloumeng.txt@500000", "hongloumeng.txt@2700000", "enwik8_10m@20000,byte", "enwik8_10m@200000,byte",
    "enwik8_10m@1000000,byte", "enwik8_10m@3000000,byte", "enwik8_10m@10000000,byte",
    "wikitext2/train.txt@100000,word", "wikitext2/train.txt@1000000,word", "wikitext2/train.txt@4000000,word",
    "builtin:python-docs@60000", "builtin:python-docs@600000", "builtin:python-source@1500000",
]  # fmt: skip
"""Prose, plays, markup, help texts and programs, in two languages: 20 KB to 10 MB of characters, bytes and words."""
SPLITS = {0: (0.8, 0.1, 0.1), 300_000: (0.9, 0.05, 0.05)}
"""The shares of the splits from a size on: each text has a test split."""
GOALS = {"mean": 0.002, "worst": 0.01}
"""The mixture may be worse than the better of the two by this, in nats per token."""


def middle(name: str, size: int) -> bytes:
    """Return about `size` bytes from the middle of a text: whole characters, whole lines where they are short."""
    data = b"".join(iter_bytes(resolve([name])))
    start = max(0, (len(data) - size) // 2)
    part = data[start : start + size]
    if start:
        line = part.find(b"\n") + 1
        part = part[line:] if 0 < line < size // 10 else part
    return part.decode("utf-8", "ignore").encode()


def measure(text: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train on a text in a new process; return the losses on its test split and the cost of the counts."""
    name, _, kind = text.partition("@")
    size, _, tokens = kind.partition(",")
    if options.folder and not name.startswith("builtin:"):
        name = str(Path(options.folder) / name)
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "text", Path(folder) / "run"
        file.write_bytes(middle(name, int(size)))
        split = next(each for least, each in reversed(SPLITS.items()) if file.stat().st_size >= least)
        command = ["train", str(file), "--tokens", tokens or "char", "--split", *map(str, split)]
        command += ["--out", str(out), "--json", "--quiet", *limits(options, tokens)]
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "unspool", *command], stdout=subprocess.PIPE, text=True, check=True
        )
        found, spent = json.loads(done.stdout), time.perf_counter() - begin
    mixture = found["mixture"]
    return {
        "text": text, "limits": limits(options, tokens), "tokens": tokens or "char", "bytes": int(size),
        "targets": found["measure"]["targets"], "part": found["part"], "network": found["measure"]["nats"],
        "n-grams": found["best_baseline"]["nats"], "mixture": mixture["nats"],
        "worse": mixture["nats"] - min(found["measure"]["nats"], found["best_baseline"]["nats"]),
        "order": mixture["order"], "counts": mixture["counts"], "count_seconds": mixture["seconds"],
        "memory_bytes": mixture["memory_bytes"], "file_bytes": mixture["file_bytes"], "seconds": spent,
    }  # fmt: skip


def limits(options: argparse.Namespace, tokens: str) -> list[str]:
    """Return the options of a short training; a large vocabulary gets fewer updates."""
    if options.seconds:
        return ["--minutes", repr(options.seconds / 60)]
    steps = options.steps // 4 if tokens == "word" else options.steps
    return ["--steps", str(steps), "--hidden", str(options.hidden), "--batch", "16", "--window", "64"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="*")
    parser.add_argument("--folder")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "mixture.json"
    before = [] if options.again or not path.exists() else json.loads(path.read_text())["figures"]
    figures = list[dict[str, Any]]()
    texts = options.texts or (TEXTS if options.folder else [])
    for number, text in enumerate(texts, 1):
        wanted = limits(options, text.partition(",")[2])
        known = [each for each in before if (each["text"], each["limits"]) == (text, wanted)]
        figures.append(known[0] if known else measure(text, options))
        print(f"{number} of {len(texts)}: {text} {figures[-1]['worse']:+.4f}", file=sys.stderr)
        save("mixture", figures)
    if not figures:
        raise SystemExit("give texts, or --folder with the files of TEXTS")
    show(
        ["text", "network", "n-grams", "mixture", "worse by", "order", "counts", "s", "MB", "MB on disk"],
        [
            [each["text"], *(f"{each[name]:.4f}" for name in ("network", "n-grams", "mixture")), f"{each['worse']:+.4f}",
             each["order"], f"{each['counts']:,}", f"{each['count_seconds']:.1f}", f"{each['memory_bytes'] / 1e6:.1f}",
             f"{each['file_bytes'] / 1e6:.1f}"]
            for each in figures
        ],
    )  # fmt: skip
    # A text where the mixture is better counts as 0, so that it does not hide another one.
    worse = [max(0.0, each["worse"]) for each in figures]
    reached = {"mean": sum(worse) / len(worse), "worst": max(worse)}
    for name, value in reached.items():
        print(f"{name} of what the mixture is worse by: {value:.4f} nats, goal at most {GOALS[name]}")


if __name__ == "__main__":
    main()
