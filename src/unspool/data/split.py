"""Split rows into a part to train on and a part to evaluate on."""

from collections import defaultdict

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Whole
from unspool.options import FRACTION, at_least


def split_stratified(labels: list[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Split rows at random, class by class; return the rows to train on and those to evaluate on.

    >>> split_stratified(["a"] * 5 + ["b"] * 5, 0.2, seed=0)
    ([0, 1, 3, 4, 5, 6, 7, 8], [2, 9])
    """
    rng = _generator(share, seed)
    judged = set[int]()
    rows_of = defaultdict[str, list[int]](list)
    for i, label in enumerate(labels):
        rows_of[label].append(i)
    for _, rows in sorted(rows_of.items()):
        kept = min(round(share * len(rows)), len(rows) - 1)
        judged |= {rows[i] for i in rng.permutation(len(rows))[:kept].tolist()}
    everything = range(len(labels))
    return [i for i in everything if i not in judged], sorted(judged)


def split_random(n: int, share: float, seed: int) -> tuple[list[int], list[int]]:
    """Split n rows at random; return the rows to train on and those to evaluate on.

    >>> split_random(5, 0.4, seed=0)
    ([0, 1, 3], [2, 4])
    """
    order = _generator(share, seed).permutation(n).tolist()
    kept = min(round(share * n), n - 1)
    return sorted(order[kept:]), sorted(order[:kept])


def _generator(share: float, seed: int) -> np.random.Generator:
    FRACTION("hold-out", share)
    return np.random.default_rng(at_least("seed", seed, 0))


def split_validation(n: int, share: float, seed: int) -> tuple[Whole, Whole]:
    """Split n rows at random; return the rows to train on and those to choose the best parameters on.

    >>> train, valid = split_validation(10, 0.2, seed=0)
    >>> len(train), len(valid), sorted([*train, *valid]) == list(range(10))
    (8, 2, True)
    """
    order = np.random.default_rng([seed, 1]).permutation(n)
    kept = round(n * share)
    if share and not 0 < kept < n:
        raise InputError(
            f"validation: {share} of {n} sequences leaves one part empty; give more sequences, or validation=0"
        )
    return np.sort(order[kept:]), np.sort(order[:kept])
