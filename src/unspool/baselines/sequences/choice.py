"""Choose the model that answers: the network, the best baseline, or the mean of both, by rows that none of them learned from.

    classes   o = log ((softmax(o_network) + softmax(o_baseline)) / 2)          numbers   o = (o_network + o_baseline) / 2      (1)

Models are ordered by error (the share of wrong classes, or the mean squared error), equal ones by the loss of the head. The network
is judged with the parameters that were best on these rows, so its figure is slightly optimistic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from unspool.baselines.sequences import BASELINES, baselines_for
from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.baselines.sequences.sparse_linear import loss_of
from unspool.errors import FileError
from unspool.kernels.arrays import Floats, Whole
from unspool.kernels.elementwise import log, softmax
from unspool.model.heads.base import Head
from unspool.storage.schema import read_as

NETWORK, BASELINE, BEST, MEAN = "network", "baseline", "best", "mean"


@dataclass(frozen=True)
class Judged:
    """A model on the rows that were set aside."""

    name: str
    error: float
    loss: float


@dataclass(frozen=True)
class Choice:
    """Which model answers, and the figures behind it."""

    kept: str
    """network, baseline or mean."""
    baseline: SequenceBaseline | None = None
    """The best baseline, fitted on all rows."""
    judged: Sequence[Judged] = ()
    """Every model on the rows that were set aside; empty if none were."""
    rows: int = 0
    """The number of these rows."""

    @property
    def name(self) -> str:
        """The name of the model that answers, as in the table."""
        return self.named(self.kept)

    def named(self, kept: str) -> str:
        """Return the name of network, baseline or mean in the table."""
        baseline = "" if self.baseline is None else self.baseline.name
        return {NETWORK: NETWORK, BASELINE: baseline, MEAN: _mean_name(baseline)}[kept]

    @property
    def answers(self) -> list[str]:
        """The models that can answer: network, and with a baseline also baseline and mean."""
        if self.baseline is None:
            return [NETWORK]
        return [NETWORK, BASELINE, *[MEAN] * (not self.baseline.is_constant or self.kept == MEAN)]

    def outputs(self, network: Callable[[], Any], rows: Rows, head: Head, kept: str | None = None) -> Any:
        """Return o of every row by the model that answers; `network` computes that of the network."""
        kept = kept or self.kept
        if kept == NETWORK:
            return network()
        assert self.baseline is not None
        own = self.baseline.outputs(rows)
        return own if kept == BASELINE else mixed(head, network(), own)

    def metadata(self) -> dict[str, Any]:
        """Return everything but the arrays of the baseline, as plain values."""
        fields = None if self.baseline is None else {"name": self.baseline.name} | self.baseline.fields()
        return {
            "kept": self.kept,
            "baseline": fields,
            "judged": [asdict(each) for each in self.judged],
            "rows": self.rows,
        }

    @staticmethod
    def restore(metadata: dict[str, Any], arrays: Mapping[str, Floats], K: int, path: object) -> Choice:
        """Return the choice that a file holds; raise FileError where it is damaged."""
        saved = read_as(_Saved, metadata, str(path), "choice")
        choice = Choice(saved.kept, None, saved.judged, saved.rows)
        if saved.baseline is not None:
            name = saved.baseline.get("name")
            if not isinstance(name, str) or name not in BASELINES:
                raise FileError(f"{path}: damaged or manipulated: there is no baseline {name!r}")
            choice = replace(choice, baseline=BASELINES[name].restore(saved.baseline, arrays, K, path))
        if choice.kept not in choice.answers:
            raise FileError(f"{path}: damaged or manipulated: kept is {saved.kept!r} without a baseline")
        return choice


@dataclass(frozen=True)
class _Saved:
    kept: str
    baseline: dict[str, Any] | None
    judged: list[Judged]
    rows: int


class Aside(NamedTuple):
    """The rows that models are judged on."""

    train: Whole
    valid: Whole


def choose(
    model: str, rows: Rows, y: Any, head: Head, aside: Aside, network: Callable[[Rows], Any], seed: int
) -> Choice:
    """Fit the baselines, judge all models on the rows aside, and return the choice that `model` asks for.

    `network` computes o of some rows. Without rows aside, the last baseline in the registry is taken, and `best` is the network.
    """
    kinds, per_step = baselines_for(rows, head, isinstance(y, list)), isinstance(y, list)
    if model == NETWORK or not kinds or (model == BEST and not len(aside.valid)):
        return Choice(NETWORK)
    if not len(aside.valid):
        return Choice(BASELINE if model == BASELINE else MEAN, kinds[-1].fit(rows, y, head, seed))
    learned, kept = rows.part(aside.train), rows.part(aside.valid)
    own, truth = (_targets(y, part) for part in aside)
    found = {each.name: each.fit(learned, own, head, seed).outputs(kept) for each in kinds}
    judged = {name: judge(name, o, truth, head, per_step) for name, o in found.items()}
    best = min(judged, key=lambda name: _order(judged[name]))
    if model != BASELINE:
        o = network(kept)
        judged[NETWORK] = judge(NETWORK, o, truth, head, per_step)
        name = _mean_name(best)
        if model == MEAN or not BASELINES[best].is_constant:
            judged[name] = judge(name, mixed(head, o, found[best]), truth, head, per_step)
    chosen = {NETWORK: NETWORK, best: BASELINE, _mean_name(best): MEAN}
    winner = min((name for name in chosen if name in judged), key=lambda name: _order(judged[name]))
    fitted = BASELINES[best].fit(rows, y, head, seed)
    return Choice(chosen[winner] if model == BEST else model, fitted, list(judged.values()), len(aside.valid))


def mixed(head: Head, first: Any, second: Any) -> Any:
    """Return the mean (1) of the outputs of two models: arrays n K, or lists of tau K."""
    if isinstance(first, list):
        return [mixed(head, *pair) for pair in zip(first, second, strict=True)]
    if not head.is_discrete:
        return ((first.astype(np.float64) + second) / 2).astype(np.float32)
    p = (softmax(first).astype(np.float64) + softmax(second)) / 2
    return log(np.maximum(p, 1e-30)).astype(np.float32)


def judge(name: str, o: Any, y: Any, head: Head, per_step: bool = False) -> Judged:
    """Return the error and the loss of outputs for their targets."""
    if per_step:
        o, y = np.concatenate(o), np.concatenate(y)
    loss = loss_of(head, o, y)
    if head.is_discrete:
        return Judged(name, float((o.argmax(axis=1) != y).mean()), loss.mean)
    return Judged(name, float(((head.mean(o).astype(np.float64) - y) ** 2).mean()), loss.mean)


def _targets(y: Any, rows: Whole) -> Any:
    return [y[i] for i in rows.tolist()] if isinstance(y, list) else y[rows]


def _order(judged: Judged) -> tuple[float, float]:
    return judged.error, judged.loss


def _mean_name(baseline: str) -> str:
    return f"mean of network and {baseline}"
