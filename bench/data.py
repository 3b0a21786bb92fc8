"""Benchmark text preparation and n-gram counting against plain Python and nltk.

    python bench/data.py --text enwik8_10m --characters tinyshakespeare.txt [--gigabytes 2]

Both sides of a ratio run alternately in this process; the best time of each counts. With ``--gigabytes``, a text of that size
is made of copies of ``--text`` and prepared in a separate process, whose memory is measured. The table goes to standard output,
the numbers to bench/results/data.json.
"""

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.ngram_counts import count_ngrams
from unspool.data.text.corpus import prepare
from unspool.evaluation.metrics import measure

RESULTS = Path(__file__).parent / "results" / "data.json"
WORD = re.compile(r"\w+(?:['’]\w+|(?<=\d)[.,]\d\w*)*|[^\w\s]|\n")
SPLIT = (0.9, 0.1, 0.0)
NLTK_TARGETS = 300


def plain_characters(path: Path) -> list[int]:
    return plain_loop(path.read_text(encoding="utf-8"))


def plain_words(path: Path) -> list[int]:
    return plain_loop(WORD.findall(path.read_text(encoding="utf-8")))


def plain_loop(tokens: Sequence[str]) -> list[int]:
    counts = Counter(tokens[: int(len(tokens) * SPLIT[0])])
    index = {token: i for i, (token, _) in enumerate(counts.most_common(), 1)}
    ids = []
    for token in tokens:
        ids.append(index.get(token, 0))
    return ids


def ours(tokens: str) -> Callable[[Path], Any]:
    return lambda path: prepare(path, tokens=tokens, split=SPLIT)


def best(acts: list[Callable[[], Any]], times: int) -> list[float]:
    """Time functions alternately; return the best time of each."""
    found = [float("inf")] * len(acts)
    for _ in range(times):
        for i, act in enumerate(acts):
            start = time.perf_counter()
            act()
            found[i] = min(found[i], time.perf_counter() - start)
    return found


def our_trigrams(path: Path) -> float:
    corpus = prepare(path, split=SPLIT)
    model = kneser_ney(count_ngrams(corpus.train.ids, len(corpus.vocab), 3), discount=0.75)
    return measure(model.log_prob(corpus.valid.ids)).nats


def nltk_trigrams(path: Path) -> float:
    """Fit nltk on the whole training split and score only the first targets: each takes milliseconds."""
    from nltk.lm import (
        KneserNeyInterpolated,
    )  # here, so that the process whose memory is read stays without it

    text = path.read_text(encoding="utf-8")
    cut = int(len(text) * SPLIT[0])
    train, test = text[:cut], text[cut:]
    model = KneserNeyInterpolated(3, 0.75)
    ngrams = [tuple(train[i : i + n]) for n in (1, 2, 3) for i in range(len(train) - n + 1)]
    model.fit([ngrams], vocabulary_text=list(train))
    scores = [model.logscore(test[t], list(test[t - 2 : t])) for t in range(2, NLTK_TARGETS + 2)]
    return float(np.mean(scores))


def row(name: str, plain: float, mine: float, floor: float) -> dict[str, Any]:
    return {"what": name, "other_s": plain, "unspool_s": mine, "ratio": plain / mine, "at_least": floor}


def memory(path: Path, gigabytes: float) -> list[dict[str, Any]]:
    """Prepare a large text in a separate process; return its peak memory."""
    folder = Path(tempfile.mkdtemp())
    try:
        large = folder / "large"
        with large.open("wb") as file:
            while file.tell() < gigabytes * 1e9:
                file.write(path.read_bytes())
        return [
            {"what": f"{gigabytes:g} GB, {kind}"} | prepared_apart(large, kind) for kind in ("char", "word")
        ]
    finally:
        shutil.rmtree(folder)


def prepared_apart(path: Path, kind: str) -> dict[str, Any]:
    cache = path.parent / "cache"
    start = time.perf_counter()
    command = [sys.executable, __file__, "--prepare", str(path), kind, str(cache)]
    megabytes = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    shutil.rmtree(cache)
    return {"megabytes": megabytes, "seconds": time.perf_counter() - start, "at_most": 400}


def prepare_and_tell(path: str, kind: str, cache: str) -> None:
    prepare(path, tokens=kind, cache=cache)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def report(rows: list[dict[str, Any]], sizes: list[dict[str, Any]]) -> None:
    print(f"{'':44s}{'other':>10s}{'unspool':>10s}{'ratio':>8s}{'goal':>8s}")
    for each in rows:
        times = f"{each['other_s']:9.3f}s{each['unspool_s']:9.3f}s"
        print(f"{each['what']:44s}{times}{each['ratio']:8.1f}{'≥ ' + str(each['at_least']):>8s}")
    for each in sizes:
        size = f"{each['megabytes']:7.0f} MB{'≤ ' + str(each['at_most']) + ' MB':>17s}"
        print(f"{each['what']:44s}{each['seconds']:9.1f}s{size}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"ratios": rows, "memory": sizes}, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, help="a text of some ten megabytes, as enwik8_10m")
    parser.add_argument("--characters", type=Path, help="a text of about a megabyte, as tinyshakespeare.txt")
    parser.add_argument("--gigabytes", type=float, default=0)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--prepare", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.prepare:
        prepare_and_tell(*given.prepare)
        return
    rows = []
    if given.text:
        pairs = [("characters read, counted, encoded", plain_characters, "char", 10)]
        pairs += [("words read, counted, encoded", plain_words, "word", 2)]
        for name, plain, kind, floor in pairs:
            acts = [lambda plain=plain: plain(given.text), lambda kind=kind: ours(kind)(given.text)]
            rows.append(row(name, *best(acts, given.times), floor))
    if given.characters:
        acts = [lambda: nltk_trigrams(given.characters), lambda: our_trigrams(given.characters)]
        (nltk_time,), (our_time,) = best(acts[:1], 1), best(acts[1:], given.times)
        name = f"3-grams, Kneser-Ney (nltk: {NLTK_TARGETS} targets only)"
        rows.append(row(name, nltk_time, our_time, 30))
    report(rows, memory(given.text, given.gigabytes) if given.gigabytes else [])


if __name__ == "__main__":
    main()
