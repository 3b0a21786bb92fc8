"""Small texts and tables, the same on every machine: whole-number arithmetic only, and never a `builtin:` text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "sha", "ti", "vo", "wen", "zu"]
GREEK, IRISH = ("ou", "is", "akis"), ("O'", "Mc", "Fitz")
TAGS = {"dogs": "N", "cats": "N", "run": "V", "sleep": "V", "now": "R", "fast": "R", "the": "D"}
SWEEP = 'command = "classify fit names.csv"\n[options]\nsteps = 4\nhidden = 5\n[grid]\nseed = [0, 1]\n'
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def draws(seed: int) -> Iterator[int]:
    """Yield numbers from 0 to 32,767 without end."""
    while True:
        seed = (1103515245 * seed + 12345) % 2**31
        yield seed >> 16


def write_inputs(folder: Path) -> None:
    """Write every file that the cases read."""
    for name, content in contents().items():
        (folder / name).write_bytes(content.encode("utf-8"))


def contents() -> dict[str, str]:
    """Give each file's text."""
    return {
        "story.txt": story(1, 420),
        "other.txt": story(7, 60) + "été 時 €\n",
        "names.csv": names(60),
        "lengths.csv": lengths(60),
        "flats.csv": flats(60),
        "waves.csv": waves(48),
        "tags.conll": tagged(40),
        "pairs.tsv": pairs(60),
        "vectors.csv": vectors(60),
        "sales.csv": sales(84, columns=1),
        "two.csv": sales(84, columns=2),
        "seeds.toml": SWEEP,
    }


def story(seed: int, words: int) -> str:
    drawn, line, lines = draws(seed), [], []
    for _ in range(words):
        line.append("".join(SYLLABLES[next(drawn) % 10] for _ in range(1 + next(drawn) % 3)))
        if len(line) > 4 + next(drawn) % 5:
            lines.append(" ".join(line).capitalize() + ".\n")
            line = []
    return "".join(lines)


def stem(drawn: Iterator[int]) -> str:
    return "".join(SYLLABLES[next(drawn) % 10] for _ in range(1 + next(drawn) % 2))


def names(rows: int) -> str:
    drawn, lines = draws(2), ["text,label"]
    for i in range(rows):
        part = next(drawn) % 3
        name = (stem(drawn) + GREEK[part]) if i % 2 else (IRISH[part] + stem(drawn))
        lines.append(f"{name},{'Greek' if i % 2 else 'Irish'}")
    return "\n".join(lines) + "\n"


def lengths(rows: int) -> str:
    lines = (line.split(",")[0] for line in names(rows).splitlines()[1:])
    return "text,length\n" + "".join(f"{name},{len(name)}\n" for name in lines)


def flats(rows: int) -> str:
    drawn, lines = draws(3), ["rooms,area,target"]
    for _ in range(rows):
        rooms, area = 1 + next(drawn) % 4, 20 + next(drawn) % 60
        lines.append(f"{rooms},{area},{9 * area + 40 * rooms + next(drawn) % 30}")
    return "\n".join(lines) + "\n"


def waves(rows: int) -> str:
    """Write rows of eight steps of a series, and two numbers to predict."""
    drawn, lines = draws(4), [",".join([*(f"x{i}" for i in range(8)), "low", "high"])]
    for _ in range(rows):
        steps = [next(drawn) % 100 for _ in range(8)]
        lines.append(",".join(map(str, [*steps, min(steps), max(steps)])))
    return "\n".join(lines) + "\n"


def tagged(sentences: int) -> str:
    drawn, words, blocks = draws(5), list(TAGS), []
    for _ in range(sentences):
        chosen = [words[next(drawn) % len(words)] for _ in range(2 + next(drawn) % 4)]
        blocks.append("".join(f"{word} {TAGS[word]}\n" for word in chosen))
    return "\n".join(blocks)


def pairs(rows: int) -> str:
    drawn, lines = draws(6), []
    for _ in range(rows):
        digits = [next(drawn) % 10 for _ in range(1 + next(drawn) % 2)]
        lines.append(" ".join(NUMBERS[d] for d in digits) + "\t" + "".join(map(str, digits)))
    return "\n".join(lines) + "\n"


def vectors(rows: int) -> str:
    drawn, lines = draws(8), ["a,b,text"]
    for _ in range(rows):
        a, b = next(drawn) % 10, next(drawn) % 10
        lines.append(f"{a},{b},{NUMBERS[a] if a > b else NUMBERS[b]}")
    return "\n".join(lines) + "\n"


def sales(months: int, columns: int) -> str:
    drawn, lines = draws(9), ["month," + ",".join(["sales", "costs"][:columns])]
    for t in range(months):
        numbers = [
            40 + t // 6 + abs(6 - t % 12) * 3 + next(drawn) % 5,
            90 - t // 8 + (t % 12) + next(drawn) % 7,
        ]
        lines.append(f"{2000 + t // 12}-{1 + t % 12:02}," + ",".join(map(str, numbers[:columns])))
    return "\n".join(lines) + "\n"
