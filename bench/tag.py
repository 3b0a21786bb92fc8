"""Accuracy of the default tagger on a tagged corpus, beside its baselines and scikit-learn's logistic regression.

    python bench/tag.py FILE --train 65000 --test 25000 --seeds 3 --json tag.json

FILE has one token and its label per line and a blank line between sentences (`unspool tag fit` reads the same). The sentences are
shuffled once; the first TRAIN tokens are learned, the next TEST tokens judged. Logistic regression sees the word, its affixes and
shape, and the words beside it, one-hot. "unseen" is the accuracy on words that the training part does not have.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool import SequenceTagger, set_threads
from unspool.data import read_tagged

DEFAULTS = {
    "embedding": 32, "hidden": 64, "bidirectional": True, "dropout": 0.3, "learning_rate": 5e-3,
    "batch_size": 16, "patience": 10, "epochs": 30,
}  # fmt: skip
"""The defaults of `unspool tag fit`, without its time limit."""


def split(path: Path, sizes: Sequence[int]) -> list[tuple[list[list[str]], list[list[str]]]]:
    """Return tokens and labels of a training part and a test part of so many tokens."""
    read = read_tagged(path)
    assert read.tags is not None
    order, parts = iter(np.random.default_rng(0).permutation(len(read)).tolist()), []
    for size in sizes:
        tokens, tags = list[list[str]](), list[list[str]]()
        while sum(map(len, tokens)) < size and (i := next(order, None)) is not None:
            tokens.append(read.tokens[i])
            tags.append(read.tags[i])
        parts.append((tokens, tags))
    return parts


def features(row: Sequence[str]) -> list[dict[str, int]]:
    """Return the features of every word of a sentence, for scikit-learn."""
    padded, found = ["", "", *row, "", ""], []
    for t, word in enumerate(row, 2):
        low = word.lower()
        names = [f"w {word}", f"l {low}", f"shape {word.isupper()} {word.istitle()} {word.isdigit()}"]
        names += [f"p {low[:n]}" for n in (1, 2, 3)] + [f"s {low[-n:]}" for n in (1, 2, 3, 4)]
        names += [f"{place} {padded[t + place]}" for place in (-2, -1, 1, 2)]
        found.append(dict.fromkeys(names, 1))
    return found


def logistic(X: list[list[str]], y: list[list[str]], test: list[list[str]]) -> Any:
    """Return the labels of scikit-learn's logistic regression."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = DictVectorizer()
    Z = vectorizer.fit_transform([each for row in X for each in features(row)])
    model = LogisticRegression(C=10.0, max_iter=100).fit(Z, np.concatenate(y))
    return model.predict(vectorizer.transform([each for row in test for each in features(row)]))


def main() -> None:
    """Print the table, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--train", type=int, default=65_000)
    parser.add_argument("--test", type=int, default=25_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-peer", action="store_true", help="leave scikit-learn out")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    set_threads(given.threads)
    (X, y), (test, labels) = split(given.file, (given.train, given.test))
    truth, seen = np.concatenate(labels), {word for row in X for word in row}
    unseen = np.array([word not in seen for row in test for word in row])
    rows = list[dict[str, Any]]()

    def add(model: str, seed: int, found: Any, seconds: float | None) -> None:
        right = found == truth
        rows.append({
            "model": model, "seed": seed, "accuracy": float(right.mean()),
            "unseen": float(right[unseen].mean()), "seconds": seconds,
        })  # fmt: skip
        took = "" if seconds is None else f"{seconds:8.0f} s"
        print(f"{model:42} {seed:4} {right.mean():9.4f} {right[unseen].mean():9.4f} {took}", flush=True)

    print(
        f"{given.file.name}: {len(np.concatenate(y)):,} tokens to learn, {len(truth):,} to judge, {unseen.mean():.1%} unseen"
    )
    print(f"{'model':42} {'seed':>4} {'accuracy':>9} {'unseen':>9}")
    for seed in range(given.seeds):
        start = time.perf_counter()
        model = SequenceTagger(seed=seed, **DEFAULTS).fit(X, y)
        seconds = time.perf_counter() - start
        by_model = model.predict_by_model(test)
        for name, answers in by_model.items():
            add(name, seed, np.concatenate(answers), None)
        add(f"default: {model.choice_.name}"[:42], seed, np.concatenate(model.predict(test)), seconds)
    if not given.no_peer:
        start = time.perf_counter()
        add("scikit-learn, logistic regression", 0, logistic(X, y, test), time.perf_counter() - start)
    if given.json is not None:
        given.json.write_text(json.dumps({"file": given.file.name, "rows": rows}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
