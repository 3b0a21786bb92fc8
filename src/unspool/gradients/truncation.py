"""How far back through time a gradient reaches: fully, a number of steps, or a random number of them.

With f the step from h(t-1) to h(t), the full gradient follows

    dh(t)/dw = ∂f/∂w + ∂f/∂h(t-1) · dh(t-1)/dw                                          (1)

back to the first step that the window holds. Three values cut it (`Truncation.parse`):

    full               nothing is cut: (1) back to the window's beginning
    truncated:K        a window is K steps: an update every K steps, from the state that the last one left
    truncated:K1,K2    an update every K1 steps, for the losses of those K1 steps; their gradient reaches back to
                       the first of the last K2 steps, or to the last reset of a row, which are read again with the
                       parameters of now. Steps left over before a reset of all rows and at the end of the data,
                       fewer than K1, get one update;
                       with a `carried` that the caller keeps, those at the end wait for the next data
    random:P           z(t) = ∂f/∂w + ξ(t) ∂f/∂h(t-1) · z(t-1), ξ(t) = 1/P with probability P, else 0    (2)

Since E[ξ(t)] = 1 and each is drawn by itself, E[z(t)] = dh(t)/dw: random truncation is unbiased. Common lecture
notes print ∂f/∂w a second time in (2), where ∂f/∂h(t-1) belongs; the mean of that is another number.
The draws depend on seed, update, step and row only, so that a run can be repeated and resumed to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Ids, Mask
from unspool.model.values import State, rows_of
from unspool.options import check_integers

FORMS = "full, truncated:K, truncated:K1,K2 with K2 at least K1, or random:P with P above 0 and at most 1; a run also takes auto"
AUTO = "auto"
"""For runs only: truncated:K, with K chosen by its measured bias (`unspool.training.choose_bptt`)."""
TOLERANCE = 0.1
"""The bias that auto accepts, where no other tolerance is given."""
LEAST = 1e-3
"""The smallest P: below, a chain's weights of 1/P are beyond all use."""


@dataclass(frozen=True)
class Truncation:
    """Where the chain is cut.

    >>> Truncation.parse("truncated:8,32")
    Truncation(kind='truncated', K1=8, K2=32, P=1.0)
    >>> str(Truncation.parse("truncated:35")), str(Truncation.parse("random:0.9"))
    ('truncated:35', 'random:0.9')
    """

    kind: Literal["full", "truncated", "random"] = "full"
    K1: int = 0
    """Steps between two updates."""
    K2: int = 0
    """Steps that the gradient looks back, the K1 included."""
    P: float = 1.0
    """The probability that the chain goes on at a step."""

    def __post_init__(self) -> None:
        if self.kind == "truncated":
            check_integers(self, K1=1, K2=0)
        if self.kind == "truncated" and self.K2 < self.K1:
            raise InputError(
                f"bptt: K2 is {self.K2} and K1 {self.K1}; expected to look back K2 of at least K1 steps"
            )
        if self.kind == "random" and not LEAST <= self.P <= 1:
            raise InputError(
                f"bptt: P is {self.P:g}; expected a probability above 0 (at least {LEAST:g}) and at most 1"
            )

    @staticmethod
    def parse(text: str) -> Truncation:
        """Read full, truncated:K, truncated:K1,K2 or random:P."""
        if not isinstance(text, str):
            raise InputError(f"bptt is {text!r}; expected {FORMS}")
        kind, _, rest = text.strip().partition(":")
        try:
            if kind == "full" and not rest:
                return FULL
            if kind == "truncated":
                numbers = [int(part) for part in rest.split(",")]
                if len(numbers) <= 2:
                    return Truncation("truncated", numbers[0], numbers[-1])
            if kind == "random":
                return Truncation("random", P=float(rest))
        except InputError:
            raise
        except ValueError:
            pass
        raise InputError(f"bptt is {text!r}; expected {FORMS}")

    def __str__(self) -> str:
        if self.kind == "truncated":
            return f"truncated:{self.K1}" + (f",{self.K2}" if self.K2 > self.K1 else "")
        return f"random:{self.P:g}" if self.kind == "random" else "full"

    def xi(self, tau: int, B: int, *, seed: int, step: int) -> Floats | None:
        """Draw ξ(t) of every step and row for an update, tau B; None where nothing is random.

        >>> Truncation.parse("random:0.5").xi(2, 4, seed=0, step=0)
        array([[2., 2., 2., 0.],
               [2., 2., 2., 2.]], dtype=float32)
        """
        if self.kind != "random":
            return None
        # the last stream of this update: dropout takes them from the first on
        return native.dropout_mask((tau, B), seed=seed, stream=(step << 16) | 0xFFFF, rate=1 - self.P)

    def check_chain(self, feeds_tokens: bool) -> None:
        """Raise where this would cut a chain of gradients through time that a model does not have."""
        if feeds_tokens and (self.kind == "random" or self.K2 > self.K1):
            raise InputError(
                f"bptt={self}: in pattern 10.4 with feedback='token' no gradient passes from step to step; use full or "
                "truncated:K, or feedback='logits'"
            )


FULL = Truncation()


class Window(Protocol):
    """A minibatch: what is read, the targets, and whether the state starts anew.

    Rows of different lengths come with `lengths` (B,), too.
    """

    @property
    def x(self) -> Any:
        """The tokens read, tau B, or values, tau B X."""

    @property
    def y(self) -> Ids:
        """The targets, tau B; or B where there is one after the whole sequence."""

    @property
    def reset(self) -> bool | NDArray[np.bool_]:
        """Whether the state must start anew before this window: of all rows, or row by row."""


class Segment(NamedTuple):
    """What one update reads."""

    x: Floats | Ids
    y: Ids
    lengths: Ids | None
    state: State | None
    """The state before the first step; None: anew."""
    carry_after: int
    """After how many of these steps the next stretch begins, if it goes on."""
    fresh: Mask | None = None
    """The rows whose state is reset to h(0) before a step, tau B; None where none is."""
    first: int = 0
    """The first step that has not been scored before."""

    def share(self, rows: slice) -> Segment:
        """Return some rows of all but the state."""
        return self._replace(
            x=np.ascontiguousarray(self.x[:, rows]),
            y=np.ascontiguousarray(self.y[..., rows]),
            lengths=None if self.lengths is None else self.lengths[rows],
            fresh=None if self.fresh is None else np.ascontiguousarray(self.fresh[:, rows]),
        )

    def rows(self, rows: slice) -> Segment:
        """Return some rows of this segment."""
        return self.share(rows)._replace(state=None if self.state is None else rows_of(self.state, rows))

    def with_resets(self, rows: Mask) -> Segment:
        """Return this segment with some rows (B,) reset before its first new step as well."""
        if not rows.any() or (self.state is None and self.first == 0):
            return self
        return self._replace(fresh=_resets(len(self.x), self.first, rows, self.fresh))


class CarriedState:
    """What one update leaves for the next: the state, and the steps that are looked back on.

    `state()` is all of it as named arrays, for a checkpoint, and `restore` goes on from them to the same bits.
    """

    def __init__(self, truncation: Truncation = FULL, state: State | None = None) -> None:
        self.truncation = truncation
        self.begin = state
        """The state before the first step of `x`, or before the next window; None: anew."""
        self.x: Floats | Ids | None = None
        """The inputs since `begin` that have been scored already; at most K2 - K1."""
        self.fresh: Mask | None = None
        """The rows that were reset before the steps of `x`; None where none was."""
        self.pending: tuple[Floats | Ids, Ids, Mask] | None = None
        """Steps that have been read from the data and not yet been scored: x, y, and rows that are reset before them."""
        self.collect: Callable[[State], State] | None = None
        """Where this process has the state of some rows only: a function that returns that of all."""

    def segments(self, windows: Iterable[Window], *, last: bool = True) -> Iterator[Segment]:
        """Cut windows into one stretch per update; each target is in one stretch. Call `carry` after each stretch.

        Without `last` more windows follow in another call, and steps left over at the end wait for them.
        """
        if self.truncation.kind != "truncated":
            for window in windows:
                rows = self._rows_to_reset(window)
                lengths = getattr(window, "lengths", None)
                segment = Segment(window.x, window.y, lengths, self.begin, len(window.x))
                yield segment if rows is None else segment.with_resets(rows)
            return
        K1 = self.truncation.K1
        if self.pending is not None:
            yield from self._while_waiting(lambda n: n >= K1)
        for window in windows:
            if _all_reset(window):
                yield from self._while_waiting(lambda n: n > 0)
            self._wait(window, self._rows_to_reset(window))
            yield from self._while_waiting(lambda n: n >= K1)
        if last:
            yield from self._while_waiting(lambda n: n > 0)

    def carry(self, segment: Segment, at: State) -> None:
        """Remember the state after `segment.carry_after` steps, and what was read since."""
        self.begin = at if segment.carry_after else segment.state
        rest = segment.x[segment.carry_after :]
        self.x = np.array(rest) if len(rest) else None
        self.fresh = None if segment.fresh is None else segment.fresh[segment.carry_after :]
        if self.fresh is not None and not self.fresh.any():
            self.fresh = None

    def _rows_to_reset(self, window: Window) -> Mask | None:
        """Return the rows that are reset before this window, None where none is; forget the state where all are."""
        if _all_reset(window):
            self.begin, self.x, self.fresh = None, None, None
            return None
        rows, B = np.asarray(window.reset, bool), np.shape(window.x)[1]
        if not rows.any():
            return None
        if rows.shape != (B,):
            raise InputError(f"reset has shape {rows.shape}; expected one value, or one for each of {B} rows")
        return rows

    def _wait(self, window: Window, rows: Mask | None) -> None:
        if getattr(window, "lengths", None) is not None or window.y.shape[:1] != window.x.shape[:1]:
            raise InputError("bptt: rows of different lengths, or one target a row, go with full or random:P")
        if not len(window.x):
            return
        B = window.x.shape[1]
        fresh = _resets(len(window.x), 0, np.zeros(B, bool) if rows is None else rows)
        waiting = (window.x, window.y, fresh)
        if self.pending is not None:
            x, y, fresh = (np.concatenate(pair) for pair in zip(self.pending, waiting, strict=True))
            waiting = (x, y, fresh)
        self.pending = waiting

    def _while_waiting(self, enough: Callable[[int], bool]) -> Iterator[Segment]:
        K1, K2 = self.truncation.K1, self.truncation.K2
        while self.pending is not None and enough(len(self.pending[0])):
            x, y, fresh = self.pending
            self.pending = (x[K1:], y[K1:], fresh[K1:]) if len(x) > K1 else None
            x, y, fresh, first = x[:K1], y[:K1], fresh[:K1], 0
            if self.x is not None:
                first = len(self.x)
                y = np.concatenate([np.full((first, *y.shape[1:]), -1, y.dtype), y])
                x = np.concatenate([self.x, x])
                before = np.zeros((first, x.shape[1]), bool) if self.fresh is None else self.fresh
                fresh = np.concatenate([before, fresh])
            after = max(0, len(x) - (K2 - K1))
            yield Segment(x, y, None, self.begin, after, fresh if fresh.any() else None, first)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that has to be saved to go on to the same bits, as named arrays."""
        found: dict[str, NDArray[Any]] = {}
        begin = self.begin if self.collect is None or self.begin is None else self.collect(self.begin)
        for i, (h, s) in enumerate(begin or []):
            found[f"past.{i}.h"] = np.array(h)
            if s is not None:
                found[f"past.{i}.s"] = np.array(s)
        if self.x is not None:
            found["past.x"] = np.array(self.x)
        if self.fresh is not None:
            found["past.fresh"] = self.fresh.astype(np.int32)
        if self.pending is not None:
            found["past.waiting.x"], found["past.waiting.y"] = map(np.array, self.pending[:2])
            if self.pending[2].any():
                found["past.waiting.fresh"] = self.pending[2].astype(np.int32)
        return found

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Go on from what `state` returned; names that are not of it are left alone."""
        parts = 0
        while f"past.{parts}.h" in saved:
            parts += 1
        self.begin = [
            (
                np.array(saved[f"past.{i}.h"]),
                np.array(saved[f"past.{i}.s"]) if f"past.{i}.s" in saved else None,
            )
            for i in range(parts)
        ] or None
        self.x = np.array(saved["past.x"]) if "past.x" in saved else None
        self.fresh = saved["past.fresh"].astype(bool) if "past.fresh" in saved else None
        self.pending = None
        if "past.waiting.x" in saved:
            x, y = np.array(saved["past.waiting.x"]), np.array(saved["past.waiting.y"])
            fresh = saved.get("past.waiting.fresh", np.zeros(x.shape[:2]))
            self.pending = x, y, fresh.astype(bool)


def _all_reset(window: Window) -> bool:
    """Return whether the state of every row starts anew before this window."""
    return bool(np.all(window.reset))


def _resets(tau: int, t: int, rows: Mask, before: Mask | None = None) -> Mask:
    """Return the rows that are reset before each of tau steps: some (B,) before step t, and those of `before`."""
    fresh = np.zeros((tau, len(rows)), bool) if before is None else before.copy()
    fresh[t] |= rows
    return fresh
