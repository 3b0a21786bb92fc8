"""Choose the model that answers: the network, the best baseline, or the mean of both, by rows that none of them learned from.

    classes   o = log ((softmax(o_network) + softmax(o_baseline)) / 2)          numbers   o = (o_network + o_baseline) / 2      (1)

Models are ordered by error (the share of wrong classes, or the mean squared error), equal ones by the loss of the head. Of few
rows, several networks each leave out one fold, and all rows are judged (`unspool.training.members`); their mean (1) is the network's answer. Of many
rows, one part is set aside; the network keeps the parameters that were best on it, so its figure is slightly optimistic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unspool.baselines.sequences import BASELINES, baselines_for
from unspool.baselines.sequences.base import Rows, SequenceBaseline
from unspool.baselines.sequences.sparse_linear import loss_of
from unspool.errors import FileError
from unspool.kernels.arrays import Floats, Whole
from unspool.kernels.elementwise import log, softmax
from unspool.model.heads.base import Head
from unspool.model.sequence_network import Network
from unspool.storage.schema import read_as
from unspool.storage.tensors import check_array

MEMBER = "member."
"""The prefix of the arrays of the networks in a file."""
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
    members: Sequence[Floats] = ()
    """The parameters of the networks whose mean is the network's answer; empty if there is one network."""

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
        return own if kept == BASELINE else mixed(head, [network(), own])

    def metadata(self) -> dict[str, Any]:
        """Return everything but the arrays of the baseline, as plain values."""
        fields = None if self.baseline is None else {"name": self.baseline.name} | self.baseline.fields()
        return {
            "kept": self.kept,
            "baseline": fields,
            "judged": [asdict(each) for each in self.judged],
            "rows": self.rows,
            "members": len(self.members),
        }

    def arrays(self) -> dict[str, Floats]:
        """Return the arrays of the baseline and of the members."""
        own = {} if self.baseline is None else self.baseline.arrays()
        return own | {f"{MEMBER}{k}": flat for k, flat in enumerate(self.members)}

    @staticmethod
    def restore(
        metadata: dict[str, Any], arrays: Mapping[str, Floats], network: Network, path: object
    ) -> Choice:
        """Return the choice that a file holds; raise FileError where it is damaged or of another network."""
        saved, K, shape = (
            read_as(_Saved, metadata, str(path), "choice"),
            network.config.K,
            network.parameters.flat.shape,
        )
        members = [check_array(arrays, f"{MEMBER}{k}", shape, path) for k in range(saved.members)]
        choice = Choice(saved.kept, None, saved.judged, saved.rows, members)
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
    members: int = 0


def choose(
    model: str, rows: Rows, y: Any, head: Head, parts: Sequence[tuple[Whole, Whole]], network: Any, seed: int
) -> Choice:
    """Fit the baselines, judge all models on the rows aside, and return the choice that `model` asks for.

    `parts` are pairs of rows to learn from and rows aside, one pair per fold; `network` holds o of all rows aside, in their order. Without rows aside, the
    last baseline in the registry is taken, and `best` is the network.
    """
    kinds, per_step = baselines_for(rows, head, isinstance(y, list)), isinstance(y, list)
    aside = np.concatenate([valid for _, valid in parts])
    if model == NETWORK or not kinds or (model == BEST and not len(aside)):
        return Choice(NETWORK)
    if not len(aside):
        return Choice(BASELINE if model == BASELINE else MEAN, kinds[-1].fit(rows, y, head, seed))
    truth, found = _targets(y, aside), {each.name: _aside(each, rows, y, head, parts, seed) for each in kinds}
    judged = {name: judge(name, o, truth, head, per_step) for name, o in found.items()}
    best = min(judged, key=lambda name: _order(judged[name]))
    if model != BASELINE:
        judged[NETWORK] = judge(NETWORK, network, truth, head, per_step)
        name = _mean_name(best)
        if model == MEAN or not BASELINES[best].is_constant:
            judged[name] = judge(name, mixed(head, [network, found[best]]), truth, head, per_step)
    chosen = {NETWORK: NETWORK, best: BASELINE, _mean_name(best): MEAN}
    winner = min((name for name in chosen if name in judged), key=lambda name: _order(judged[name]))
    fitted = BASELINES[best].fit(rows, y, head, seed)
    return Choice(chosen[winner] if model == BEST else model, fitted, list(judged.values()), len(aside))


def _aside(
    kind: type[SequenceBaseline],
    rows: Rows,
    y: Any,
    head: Head,
    parts: Sequence[tuple[Whole, Whole]],
    seed: int,
) -> Any:
    """Return o of all rows aside, each by a baseline that was fitted without it."""
    found = [
        kind.fit(rows.part(train), _targets(y, train), head, seed).outputs(rows.part(valid))
        for train, valid in parts
    ]
    return [o for part in found for o in part] if isinstance(y, list) else np.concatenate(found)


def mixed(head: Head, outputs: Sequence[Any]) -> Any:
    """Return the mean (1) of the outputs of some models: arrays n K, or lists of tau K."""
    if isinstance(outputs[0], list):
        return [mixed(head, each) for each in zip(*outputs, strict=True)]
    if len(outputs) == 1:
        return outputs[0]
    if not head.is_discrete:
        total = sum((each.astype(np.float64) for each in outputs[1:]), outputs[0].astype(np.float64))
        return (total / len(outputs)).astype(np.float32)
    p = sum(
        (softmax(each).astype(np.float64) for each in outputs[1:]), softmax(outputs[0]).astype(np.float64)
    )
    return log(np.maximum(p / len(outputs), 1e-30)).astype(np.float32)


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
