"""A text, read token by token: every state, what was expected of every token, and how surprising it was.

    x(t) ─▶ h(t) ─▶ ŷ(t) = softmax(c + V h(t)) ─▶ -log ŷ(t)[x(t+1)]        surprise, in nats

Nothing stands before the first token, so nothing was expected of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from unspool.data.tokens.registry import Tokenizer
from unspool.errors import InputError
from unspool.evaluation.read import Edit, read_windows
from unspool.kernels.arrays import Floats, Ids, Real, Whole
from unspool.kernels.tape import Tape
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.values import Output, State

WINDOW = 256
"""Steps read at once: the probabilities of all tokens are never kept for more."""
CANDIDATES = 6


@dataclass(frozen=True)
class Reading:
    """What happened at every token; all arrays have T rows."""

    ids: Ids
    pieces: list[str]
    """What each token adds to the text."""
    states: dict[str, Floats]
    """By layer and letter, T H: layer0.h, layer0.s …"""
    surprise: Real
    """Nats; NaN at the first token."""
    expected: Ids
    """The tokens most expected in this place, T k; -1 at the first."""
    shares: Real
    """Their probabilities, T k."""
    gates: dict[str, Floats] = field(default_factory=dict)
    """By layer and letter, T H, where they were asked for: layer0.i, layer0.f …"""
    begin: int = 0
    """The first step that was computed; the rows before it are those of the reading that this one continues."""

    @property
    def nats(self) -> float:
        """The mean surprise."""
        return float(np.nanmean(self.surprise))

    @property
    def last_h(self) -> Floats:
        """h(t) of the last layer, T H."""
        return [values for name, values in self.states.items() if name.endswith(".h")][-1]

    def state_after(self, t: int) -> State:
        """Return the state that step t leaves, (1, H) each; not of a model that feeds tokens back."""
        names = [name for name in self.states if name.endswith(".h")]
        cells = [self.states.get(name[:-1] + "s") for name in names]
        row = slice(t, t + 1)
        return [
            (self.states[name][row].copy(), None if s is None else s[row].copy())
            for name, s in zip(names, cells, strict=True)
        ]


def read(
    model: Model,
    ids: Ids,
    pieces: list[str],
    *,
    window: int = WINDOW,
    gates: bool = False,
    edits: Mapping[int, Edit] | None = None,
    after: Reading | None = None,
    begin: int = 0,
    weights: Weights | None = None,
) -> Reading:
    """Read a text from the beginning, the state carried; a window of any size gives the same bits.

    `edits` change what a step leaves, by its number, and so everything after it. With `after`, an earlier reading by the same
    model that has the same tokens and edits up to step `begin`, the steps before `begin` are copied from it (gates are not).

    >>> from unspool.model.config import ModelConfig
    >>> model = Model.initialise(ModelConfig(cell="lstm", inputs=5, outputs=5, hidden=8), seed=1)
    >>> found = read(model, np.array([1, 2, 3, 1], np.int32), list("abca"))
    >>> sorted(found.states), found.states["layer0.s"].shape, found.expected.shape
    (['layer0.h', 'layer0.s'], (4, 8), (4, 5))
    """
    if len(ids) < 2:
        raise InputError(f"inspect: the text has {len(ids)} tokens; it takes two, one to predict the other")
    k = min(CANDIDATES, model.config.outputs)
    surprise = np.full(len(ids), np.nan)
    expected = np.full((len(ids), k), -1, np.int32)
    shares = np.zeros((len(ids), k))
    parts: dict[str, list[Floats]] = {}
    of_gates: dict[str, list[Floats]] = {}
    state = None
    if after is not None and begin:
        state = after.state_after(begin - 1)
        parts = {name: [values[:begin]] for name, values in after.states.items()}
        for own, earlier in ((surprise, after.surprise), (expected, after.expected), (shares, after.shares)):
            own[: begin + 1] = earlier[: begin + 1]
    following = np.append(ids[1:], 0)  # read where tokens are fed back
    for at, _, output, packed in read_windows(
        model, ids[:, None], following[:, None], window=window, what="inspect", edits=edits, begin=begin, state=state, weights=weights
    ):  # fmt: skip
        for layer, made in enumerate(output.tape):
            tape = made.directions[0]
            parts.setdefault(f"layer{layer}.h", []).append(tape.h[:, 0].copy())
            if tape.ss is not None:
                parts.setdefault(f"layer{layer}.s", []).append(tape.ss[1:, 0].copy())
            for gate, values in gates_of(tape) if gates else ():
                of_gates.setdefault(f"layer{layer}.{gate}", []).append(values)
        count = min(len(output.h), len(ids) - 1 - at)
        if count:
            p = _softmax(packed.output(output.h[:count, 0]))
            places = slice(at + 1, at + 1 + count)
            surprise[places] = -np.log(np.maximum(p[np.arange(count), ids[places]], 1e-300))
            expected[places] = best = _largest(p, k)
            shares[places] = np.take_along_axis(p, best, axis=1)
    states, opened = (
        {name: np.concatenate(values) for name, values in each.items()} for each in (parts, of_gates)
    )
    return Reading(ids, pieces, states, surprise, expected, shares, opened, begin)


def gates_of(tape: Tape) -> Iterator[tuple[str, Floats]]:
    """Yield the gates of a cell that stores them, T H each: they are the first columns of its tape."""
    H = tape.hs.shape[2]
    for i, gate in enumerate(tape.cell.gates if tape.gates is not None else ()):
        assert tape.gates is not None
        yield gate, tape.gates[:, 0, i * H : (i + 1) * H].copy()


def set_unit(output: Output, layer: int, letter: str, unit: int, value: float) -> Output:
    """Return the output of a window with a unit of its last step set to a value.

    A changed h of the last layer changes the prediction of the next token; of a lower layer, what the next step reads.
    """
    state = [(h.copy(), None if s is None else s.copy()) for h, s in output.state]
    tape, last = output.tape[layer].directions[0], layer == len(output.tape) - 1
    h, s = state[layer]
    target, taped = (h, tape.hs) if letter == "h" else (s, tape.ss)
    if target is None or taped is None or not 0 <= unit < taped.shape[2]:
        raise InputError(f"units: no unit layer{layer}.{letter}{unit}; expected one of {tape.hs.shape[2]}")
    taped[-1, 0, unit] = np.float32(value)
    if target.ndim == 2:  # the state that is carried; where tokens are fed back, it is a token
        target[0, unit] = np.float32(value)
    if letter == "h" and last:
        seen = output.h.copy()
        seen[-1, 0, unit] = np.float32(value)
        output = output._replace(h=seen)
    return output._replace(state=state)


def _largest(p: Real, k: int) -> Whole:
    """Return the places of the k largest of each row, the largest first."""
    some = np.sort(np.argpartition(-p, k - 1, axis=1)[:, :k], axis=1)
    order = np.argsort(-np.take_along_axis(p, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _softmax(o: Floats) -> Real:
    e = np.exp(o.astype(np.float64) - o.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def pieces_of(tokenizer: Tokenizer, tokens: list[str]) -> list[str]:
    """Give what each token adds to the text: a word comes with the blank before it.

    >>> from unspool.data.tokens.registry import make_tokenizer
    >>> pieces_of(make_tokenizer("word"), ["Time", "travels", "."])
    ['Time', ' travels', '.']
    >>> pieces_of(make_tokenizer("byte"), make_tokenizer("byte").encode_text("añ"))
    ['a', 'ñ', '']
    """
    if tokenizer.reads_bytes:
        return _bytes(tokens)
    if tokenizer.lossless:
        pieces = {token: tokenizer.decode([token]) for token in set(tokens)}
        return [pieces[token] for token in tokens]
    text, found, at = tokenizer.decode(tokens), list[str](), 0
    for token in tokens:
        end = text.index(token, at) + len(token)
        found.append(text[at:end])
        at = end
    return found


def visible(piece: str) -> str:
    """Show what has no ink: a blank, a line end."""
    return {" ": "␣", "\n": "↵", "\t": "⇥", "": "·"}.get(piece, piece.strip() or "␣")


def _bytes(tokens: list[str]) -> list[str]:
    """A character belongs to its first byte; the bytes that continue it add nothing."""
    found: list[str] = []
    raw = "".join(tokens).encode("latin-1", "replace")
    at = 0
    while at < len(raw):
        lead = raw[at]
        length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        whole = raw[at : at + length]
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError:
            text, whole = "\ufffd", raw[at : at + 1]
        found += [text] + [""] * (len(whole) - 1)
        at += len(whole)
    return found
