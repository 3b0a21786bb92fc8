"""One-to-many: generate surnames from a language. The folder has one file per language with one surname per line.

python examples/names.py FOLDER [--minutes 2 | --steps 2000] [--languages Russian Japanese …]
"""

import argparse
from pathlib import Path

from unspool import SequenceGenerator
from unspool.data import read_classes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--steps", type=int, help="updates, instead of minutes: repeatable to the bit")
    parser.add_argument("--languages", nargs="+")
    parser.add_argument("--temperature", type=float, default=0.7)
    options = parser.parse_args()
    data = read_classes(options.folder)
    model = SequenceGenerator(
        hidden=128, dropout=0.2, attention="general", epochs=40, batch_size=64,
        learning_rate=4e-3, validation=0.05, patience=6, tokens="char",
        minutes=None if options.steps else options.minutes, steps=options.steps,
    )  # fmt: skip
    for report in model.fit_iter(data.labels, data.sequences):
        if report.step % max(1, report.steps // 10) == 0:
            print(f"update {report.step:,} of {report.steps:,}, loss {report.train:.3f}", flush=True)
    known = set(data.sequences)
    for language in options.languages or data.classes:
        names = model.sample([language] * 8, temperature=options.temperature, seed=1)
        new = sum(name not in known for name in names)
        print(f"{language:>12}: {', '.join(names)}   ({new} of 8 are new)")


if __name__ == "__main__":
    main()
