"""How well a network predicts a text: log P of every target, the state carried from the first token to the last.

    x(1) ─▶ h(1) ─▶ x(2) ─▶ h(2) ─▶ …        log P(x(t+1) | x(1) … x(t)) = log softmax(c + V h(t))[x(t+1)]

Where tokens are fed back (figure 10.4), the output before is the token x(t) itself, as in training: it is known by then.
The text is read in windows only to bound the memory: the state goes from one to the next, and a window of any
size gives the same bits. What comes out is what `unspool.measure` adds up, as for the models that count.

>>> from unspool.config import ModelConfig
>>> model = Model.fresh(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1)
>>> ids = np.arange(100, dtype=np.int32) % 5
>>> at_once, in_sevens = log_prob(model, ids, window=100), log_prob(model, ids, window=7)
>>> len(at_once), bool((at_once == in_sevens).all())
(99, True)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unspool.config import ModelConfig
from unspool.data.arrays import Ids, Real
from unspool.data.parts import Part
from unspool.errors import InputError
from unspool.measure import LanguageModel, Measure, measure
from unspool.model import Model
from unspool.values import State

WINDOW = 1024
"""Steps read at once: enough for one product over all of them, little enough for the memory."""


def in_silence(done: int, total: int) -> None:
    """Tell nobody how many targets have been scored."""


def log_prob(
    model: Model, ids: Ids, *, window: int = WINDOW, told: Callable[[int, int], None] = in_silence
) -> Real:
    """Give log P(x(t) | all before) for every token but the first, which has nothing before it.

    After each window `told` hears how many targets of how many have been scored.
    """
    _check(model, ids, window)
    state: State | None = None
    weights = model.weights()
    found = [np.zeros(0)]
    for at in range(0, len(ids) - 1, window):
        here = np.asarray(ids[at : at + window + 1], np.int32)[:, None]  # tau+1 1
        output = model.forward(here[:-1], state, weights=weights, y=here[1:])
        found.append(-model.loss(output, here[1:], weights=weights).each[:, 0])
        state = output.state
        told(min(at + window, len(ids) - 1), len(ids) - 1)
    return np.concatenate(found)


def refuse_no_text(config: ModelConfig, what: str) -> None:
    """Raise unless a model reads tokens in one direction and predicts the next one at every step."""
    if config.dense or config.bidirectional or config.pattern == "last":
        raise InputError(
            f"{what}: needs a model of tokens that reads in one direction, with an output at every step "
            "(pattern='hidden' or 'output')"
        )


def _check(model: Model, ids: Ids, window: int) -> None:
    refuse_no_text(model.config, "evaluate")
    if window < 1:
        raise InputError(f"evaluate: window is {window}; expected at least 1")
    if len(ids) < 2:
        raise InputError(f"evaluate: {len(ids)} tokens leave nothing to predict; give a text of two or more")


@dataclass(frozen=True)
class Network:
    """A network as a language model like any other: see `unspool.measure.LanguageModel`."""

    model: Model
    window: int = WINDOW
    told: Callable[[int, int], None] = in_silence

    def log_prob(self, ids: Ids, given: int = 1) -> Real:
        """Give log P(x(t) | all before) for all tokens but the first ``given``, which are only context."""
        if given < 1:
            raise InputError("a network needs a token to start from: given must be at least 1")
        return log_prob(self.model, ids, window=self.window, told=self.told)[given - 1 :]


def in_time(ids: Ids, backward: bool) -> Ids:
    """Give ids in the direction of a model: as they are, or the last one first."""
    return ids[::-1] if backward else ids


def evaluate(model: LanguageModel, part: Part, *, backward: bool = False) -> Measure:
    """Judge any language model by a part of a corpus: every target once, sums divided once."""
    return measure(model.log_prob(in_time(part.ids, backward)), *part.widths_after_first(backward))


def uniform(K: int, part: Part, *, backward: bool = False) -> Measure:
    """Judge the guess without knowledge, 1/K for every token: its perplexity is K."""
    return measure(np.full(len(part.ids) - 1, -math.log(K)), *part.widths_after_first(backward))


def glance(model: Model, ids: Ids, *, rows: int = 32, context: int = 64, window: int = 128) -> float:
    """Give the mean nats of every target once, for less: in pieces read side by side.

    Each piece but the first begins with `context` tokens before it, so the figure is a little above that of
    one reading from end to end, which is what counts in the end.
    """
    _check(model, ids, window)
    targets = len(ids) - 1
    rows = max(1, min(rows, targets // (4 * context)))
    length = -(-targets // rows)
    first = length * np.arange(rows)  # the first position that is scored
    start = np.maximum(first - context, 0)
    steps = np.arange(context + length)[:, None] + start  # T rows
    scored = (steps >= first) & (steps < np.minimum(first + length, targets))
    steps = np.minimum(steps, targets - 1)
    found, state, weights = [], None, model.weights()
    for at in range(0, len(steps), window):
        here = steps[at : at + window]
        after = np.asarray(ids[here + 1], np.int32)
        output = model.forward(np.asarray(ids[here], np.int32), state, weights=weights, y=after)
        y = np.where(scored[at : at + window], after, -1).astype(np.int32)
        found.append(-model.loss(output, y, weights=weights).each)
        state = output.state
    return measure(np.concatenate(found)[scored]).nats
