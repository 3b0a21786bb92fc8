"""Compare parallel-in-time fixed-point iteration with sequential steps.

A recurrence h(t) = f(h(t-1), x(t)) over T steps is a system of T equations. It can be solved for all t in parallel:

    sweep        h(t) ← f(h(t-1), x(t)) for every t in one product: T rows instead of T products of one row    (1)
    correction   e(t) = r(t) + D(t) e(t-1),  r(t) = f(h(t-1), x(t)) - h(t),  h(t) ← h(t) + e(t)               (2)

D(t) = 0 is Picard's iteration, D(t) the diagonal of the Jacobian dh(t)/dh(t-1) is quasi-Newton, the whole Jacobian is
Newton. A row of a product has the same bits in every batch, so an iterate that a sweep does not change is the sequential
result, bit for bit. The question is how many sweeps that takes and what a sweep costs: the table shows both.

    python bench/parallel_in_time.py [TEXT] [--hidden 64] [--tau 128] [--steps 400]

The solution of (2) is not timed: the speedup in the table counts the sweeps alone and is an upper limit.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from table import best_seconds, save, show
from unspool import LanguageModel
from unspool.gradients.jacobians import jacobian
from unspool.kernels.tape import Tape
from unspool.model.layer import LayerWeights, layer_forward
from unspool.model.network import Model

MOST = 400
"""Sweeps after which an iteration counts as not converged."""
NEWTON = 128
"""The whole Jacobian is used up to this many units: it is H times the work of the diagonal."""
Correction = Callable[[Tape, np.ndarray], np.ndarray]


class Window:
    """One layer of a trained model over T tokens: the sequential result and one sweep of (1)."""

    def __init__(self, model: Model, ids: np.ndarray) -> None:
        self.weights: LayerWeights = model.weights().layers[0][0]
        self.ids, self.tau, self.H = ids, len(ids), model.config.hidden
        self.has_s = self.weights.cell.has_cell_state

    def sequential(self) -> np.ndarray:
        """Return the states (T, H) of one step after the other; (T, 2H) for (h, s)."""
        zero = np.zeros((1, self.H), np.float32)
        tape = layer_forward(self.weights, self.ids[:, None], zero, zero if self.has_s else None, None, None)
        return self._states(tape)[1:, 0]

    def sweep(self, state: np.ndarray) -> Tape:
        """Apply (1) to all states in one product."""
        before = np.concatenate([np.zeros_like(state[:1]), state[:-1]])
        h, s = np.ascontiguousarray(before[:, : self.H]), np.ascontiguousarray(before[:, self.H :])
        return layer_forward(self.weights, self.ids[None, :], h, s if self.has_s else None, None, None)

    def after(self, tape: Tape) -> np.ndarray:
        """Return the states that a sweep computed."""
        return self._states(tape)[1]

    def _states(self, tape: Tape) -> np.ndarray:
        return np.concatenate([tape.hs, tape.ss], axis=2) if tape.ss is not None else tape.hs

    def sweeps_until(self, found: np.ndarray, correct: Correction | None) -> tuple[int | None, int | None]:
        """Return after how many sweeps all states are within 1e-5 of `found`, and when they have its bits."""
        state, near = np.zeros_like(found), None
        for count in range(1, MOST + 1):
            tape = self.sweep(state)
            swept = self.after(tape)
            if (swept == state).all():
                assert (swept == found).all()
                return near or count, count
            state = swept if correct is None else state + correct(tape, (swept - state).astype(np.float64))
            state = np.where(np.isfinite(state), state, 0).astype(np.float32)
            if near is None and np.abs(state - found).max() < 1e-5:
                near = count
        return near, None

    def jacobians(self, tape: Tape) -> np.ndarray:
        """Return dh(t)/dh(t-1) of every step."""
        return np.stack([jacobian(tape, self.weights.W.astype(np.float64), 0, t) for t in range(self.tau)])

    def newton(self, tape: Tape, r: np.ndarray) -> np.ndarray:
        """Solve (2) with the whole Jacobian."""
        return solve(self.jacobians(tape), r)

    def quasi_newton(self, tape: Tape, r: np.ndarray) -> np.ndarray:
        """Solve (2) unit by unit: each unit keeps its own entries of the Jacobian, a 2 x 2 block for (h, s)."""
        parts = 2 if self.has_s else 1
        J = self.jacobians(tape).reshape(self.tau, parts, self.H, parts, self.H)
        own = np.moveaxis(np.diagonal(J, axis1=2, axis2=4), -1, 1)  # T H parts parts
        e = np.zeros((self.tau, self.H, parts))
        for t, rest in enumerate(r.reshape(self.tau, parts, self.H).transpose(0, 2, 1)):
            e[t] = rest + (np.einsum("hij,hj->hi", own[t], e[t - 1]) if t else 0)
        return e.transpose(0, 2, 1).reshape(self.tau, -1)


def solve(J: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Solve (2) with the whole Jacobian."""
    e = r.copy()
    for t in range(1, len(r)):
        e[t] += J[t] @ e[t - 1]
    return e


def measure(model: Model, ids: np.ndarray, seconds: float) -> dict[str, object]:
    window = Window(model, ids)
    found = window.sequential()
    one_by_one = best_seconds(window.sequential, seconds) / len(ids)
    sweep = best_seconds(lambda: window.sweep(found), seconds) / len(ids)
    ways: dict[str, Correction | None] = {"picard": None, "quasi-newton": window.quasi_newton}
    if window.H <= NEWTON:
        ways["newton"] = window.newton
    figures: dict[str, object] = {"sequential": one_by_one, "sweep": sweep}
    for name, correct in ways.items():
        near, same = window.sweeps_until(found, correct)
        speedup = None if near is None else one_by_one / (near * sweep)
        figures[name] = {"sweeps to 1e-5": near, "sweeps to the same bits": same, "speedup to 1e-5": speedup}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64])
    parser.add_argument("--tau", type=int, nargs="+", default=[128])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=0.5)
    args = parser.parse_args()
    text = args.text.read_text() if args.text else (Path(__file__).parents[1] / "docs/log.md").read_text()
    figures, rows = [], []
    for cell in ("elman", "gru", "lstm"):
        for hidden in args.hidden:
            fitted = LanguageModel(
                cell=cell, hidden=hidden, layers=1, embedding=0, steps=args.steps, seed=0
            ).fit(text)
            for tau in args.tau:
                ids = fitted.text_model_.encode(text[-tau:])
                one = measure(fitted.text_model_.model, ids, args.seconds)
                figures.append({"cell": cell, "hidden": hidden, "tau": tau} | one)
                for name in ("picard", "quasi-newton", "newton"):
                    if isinstance(way := one.get(name), dict):
                        rows.append(
                            [
                                cell,
                                hidden,
                                tau,
                                1e6 * one["sequential"],
                                1e6 * one["sweep"],
                                name,
                                *way.values(),
                            ]
                        )  # type: ignore[operator]
    show(
        [
            "cell",
            "H",
            "tau",
            "step µs",
            "sweep µs",
            "way",
            "to 1e-5",
            "to the bits",
            "times faster to 1e-5, at most",
        ],
        rows,
    )
    save("parallel_in_time", figures)


if __name__ == "__main__":
    main()
