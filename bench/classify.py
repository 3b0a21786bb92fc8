"""Benchmark classification on real data: speech, digits read pixel by pixel, surnames.

python bench/classify.py vowels FOLDER [--seeds 3]     JapaneseVowels_TRAIN.ts and _TEST.ts
python bench/classify.py digits        [--seeds 3]     scikit-learn's 8×8 digits, 64 steps, 5 folds
python bench/classify.py names  FOLDER [--seeds 3]     one file per language, 80/20 within each language
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from table import save, show
from unspool.data.formats.labelled import read_labelled
from unspool.data.split import split_stratified
from unspool.evaluation.scores import score
from unspool.tasks import SequenceClassifier


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=("vowels", "digits", "names"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    run: Callable[[Path, int], dict] = {"vowels": vowels, "digits": digits, "names": names}[options.data]
    rows = []
    for seed in range(options.seeds):
        wall, cpu = time.perf_counter(), time.process_time()
        figures = run(options.folder, seed)
        rows.append(
            {"seed": seed} | figures | {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        )
        print(rows[-1], flush=True)
    columns = list(rows[0])
    show(
        columns, [[f"{row[c]:.4f}" if isinstance(row[c], float) else row[c] for c in columns] for row in rows]
    )
    means = {c: float(np.mean([row[c] for row in rows])) for c in columns[1:]}
    print("mean: " + ", ".join(f"{name} {value:.4f}" for name, value in means.items()))
    save(f"classify_{options.data}", {"runs": rows, "mean": means})


def vowels(folder: Path, seed: int) -> dict:
    train, test = (read_labelled(folder / f"JapaneseVowels_{part}.ts") for part in ("TRAIN", "TEST"))
    model = SequenceClassifier(bidirectional=True, dropout=0.3, epochs=60, seed=seed)
    model.fit(train.sequences, train.labels)
    return {"accuracy": model.score(test.sequences, test.labels)}


def digits(folder: Path | None, seed: int) -> dict:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    x, y = load_digits(return_X_y=True)  # n 64: a pixel a step, row after row
    model = SequenceClassifier(
        hidden=96, bidirectional=True, dropout=0.3, recurrent_dropout=0.3, chrono_steps=64, epochs=50, batch_size=25,
        learning_rate=4e-3, seed=seed,
    )  # fmt: skip
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return {"accuracy": float(cross_val_score(model, x, y, cv=folds).mean())}


def names(folder: Path, seed: int) -> dict:
    data = read_labelled(folder)
    learned, judged = split_stratified(data.labels, 0.2, seed)
    x, y = ([data.sequences[i] for i in learned], [data.labels[i] for i in learned])
    test, truth = ([data.sequences[i] for i in judged], [data.labels[i] for i in judged])
    model = SequenceClassifier(
        hidden=128, bidirectional=True, embedding=32, dropout=0.4, recurrent_dropout=0.25, epochs=20, batch_size=64,
        prior_correction=0.4, learning_rate=4e-3, seed=seed,
    ).fit(x, y)  # fmt: skip
    ours = score(truth, model.predict(test).tolist(), data.classes)
    theirs = score(truth, naive_bayes(x, y, test), data.classes)
    return {
        "macro_f1": ours.macro_f1,
        "accuracy": ours.accuracy,
        "bayes_macro_f1": theirs.macro_f1,
        "bayes_accuracy": theirs.accuracy,
    }


def naive_bayes(x: list[str], y: list[str], test: list[str]) -> list[str]:
    """Return the accuracy of naive Bayes on character trigrams; the smoothing is chosen on a fifth of the training split."""
    fit, judge = split_stratified(y, 0.2, seed=0)
    found = []
    for alpha in (0.01, 0.03, 0.1, 0.3, 1.0):
        answers = bayes(([x[i] for i in fit], [y[i] for i in fit]), [x[i] for i in judge], alpha)
        found.append((score([y[i] for i in judge], answers, sorted(set(y))).macro_f1, alpha))
    return bayes((x, y), test, max(found)[1])


def bayes(train: tuple[list[str], list[str]], test: list[str], alpha: float) -> list[str]:
    counts = {name: Counter[str]() for name in sorted(set(train[1]))}
    for text, label in zip(*train, strict=True):
        counts[label].update(trigrams(text))
    kinds = len(set().union(*counts.values()))
    prior = Counter(train[1])
    total = {name: sum(counts[name].values()) + alpha * kinds for name in counts}
    start = {name: math.log(prior[name] / len(train[1])) for name in counts}

    def log_p(name: str, text: str) -> float:
        return start[name] + sum(math.log((counts[name][g] + alpha) / total[name]) for g in trigrams(text))

    return [max(counts, key=lambda name: log_p(name, text)) for text in test]


def trigrams(text: str) -> list[str]:
    whole = f"^^{text}$"
    return [whole[i : i + 3] for i in range(len(whole) - 2)]


if __name__ == "__main__":
    main()
