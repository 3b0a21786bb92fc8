"""Compile a Turing machine to the weights of a recurrent network: one update of the network is one step of the machine.

After Siegelmann and Sontag (1995): the control is in units that are 0 or 1, the tape in two rational numbers l and r (see
`network`). These sums over units need no additional units:

    r = Σ_v r[v]                      l = Σ_v l[v]                           the stacks                                  (1)
    d_r = 2 Σ_{q,v,a≥1} e[q,v,a]      d_l = 2 Σ_{v,a≥1} g[v,a]               the digits at their tops                    (2)
    1[p,a] = Σ_v e[p,v,a] - e[p,v,a+1]                                       state p, and a under the head: 0 or 1       (3)
    d_w = Σ_{p,a} 2 write(p,a) 1[p,a]                                        the digit that is written                   (4)
    n[q,v] = Σ_{p,a: δ(p,a) enters q by v} 1[p,a],   n[v] = Σ_q n[q,v]       the next state, the move: 0 or 1            (5)

The stacks after the step if its move is v; all are affine, and all are valid stack numbers below 1 for every move:

    r^R = β r - d_r          l^R = (l + d_w) / β                             pop right, push left                        (6)
    r^S = r + (d_w - d_r)/β  l^S = l                                         write                                       (7)
    r^L = (r^S + d_l) / β    l^L = β l - d_l                                 push right, pop left                        (8)

and the units after the step, where σ selects the values of the move that is made and computes the new tops:

    r[v] ← σ(r^v + n[v] - 1)                    l[v] ← σ(l^v + n[v] - 1)                                                 (9)
    e[q,v,0] ← σ(n[q,v])                        e[q,v,a] ← σ(β r^v - (2a - 1) + β (n[q,v] - 1))                         (10)
    g[v,a] ← σ(β l^v - (2a - 1) + β (n[v] - 1))                                                                         (11)

A word is read through U x(t) from its end to its beginning, then the start input; h(0) = 0. To push symbol a, r[L] gets 2a/β + 1.
Start adds 1 to r[S] and e[start,S,0], and β to e[start,S,a]. No state is active while reading, so d_r is 0 and r^R is β r, which is not
a stack: every input therefore subtracts β from r[R] and β² from e[q,R,a]. A halted machine writes the symbol it read and stays (S),
so it is a fixed point of the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

from unspool.errors import InputError
from unspool.turing.machine import MOVES, Machine, Move
from unspool.turing.network import MachineNetwork, MachineUnit

MOST_UNITS = 2000
"""Most units; W has the square of this many fractions."""


class Affine:
    """A weighted sum of units plus a constant: the pre-activation of a unit."""

    def __init__(
        self, weights: Mapping[MachineUnit, Fraction] | None = None, constant: Fraction | int = 0
    ) -> None:
        self.weights, self.constant = dict(weights or {}), Fraction(constant)

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.weights, self.constant + other)
        found = dict(self.weights)
        for unit, weight in other.weights.items():
            found[unit] = found.get(unit, Fraction(0)) + weight
        return Affine(found, self.constant + other.constant)

    def __mul__(self, factor: int | Fraction) -> Affine:
        return Affine({unit: factor * w for unit, w in self.weights.items()}, factor * self.constant)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + other * -1

    def __truediv__(self, divisor: int) -> Affine:
        return self * Fraction(1, divisor)


def compile_machine(machine: Machine) -> MachineNetwork:
    """Return the network of a machine.

    >>> from unspool.turing.builtin import find
    >>> network = compile_machine(find("builtin:bb2"))
    >>> network.base, len(network.units), network.W.shape, sorted(set(network.W.flat))[-1]
    (4, 21, (21, 21), Fraction(16, 1))
    """
    m = len(machine.symbols)
    base = 1 << (2 * m - 1).bit_length()
    entered = _entered(machine)
    moves = [v for v in MOVES if v in {"L", "S"} | {v for _, v in entered}]
    units = [MachineUnit("e", v, q, a) for q, v in entered for a in range(m)]
    units += [MachineUnit("g", v, at=a) for v in moves for a in range(1, m)]
    units += [MachineUnit("l", v) for v in moves] + [MachineUnit("r", v) for v in moves]
    if len(units) > MOST_UNITS:
        raise InputError(
            f"{machine.name} needs {len(units):,} units; expected at most {MOST_UNITS:,}: use fewer states or symbols"
        )
    seen = _updates(machine, base, units)
    index = {unit: i for i, unit in enumerate(units)}
    W = np.full((len(units), len(units)), Fraction(0), object)
    for unit, row in seen.items():
        for source, weight in row.weights.items():
            W[index[unit], index[source]] = weight
    b = np.array([seen[unit].constant for unit in units], object)
    U = np.array([[_input(machine, base, unit, x) for x in range(m + 1)] for unit in units], object)
    return MachineNetwork(machine, base, tuple(units), W, U, b)


def _entered(machine: Machine) -> list[tuple[str, Move]]:
    """Return the pairs of a state and a move that enters it, in a fixed order; halting states are re-entered by S."""
    pairs = {(rule.to, rule.move) for rule in machine.rules.values()}
    pairs |= {(machine.start, "S"), *((q, "S") for q in machine.halting)}
    return [(q, v) for q in machine.states for v in MOVES if (q, v) in pairs]


def _updates(machine: Machine, base: int, units: list[MachineUnit]) -> dict[MachineUnit, Affine]:
    """Return the pre-activation of each unit by the equations above."""
    number = {symbol: a for a, symbol in enumerate(machine.symbols)}
    of = {kind: [unit for unit in units if unit.kind == kind] for kind in ("e", "g", "l", "r")}
    control: dict[tuple[str, int], list[MachineUnit]] = {}
    for u in of["e"]:
        control.setdefault((u.state, u.at), []).append(u)
    r, l = _total(of["r"]), _total(of["l"])  # (1)  # noqa: E741
    d_r, d_l = _total(u for u in of["e"] if u.at) * 2, _total(of["g"]) * 2  # (2)
    d_w = Affine()
    n_state: dict[tuple[str, Move], Affine] = {}
    for p in machine.states:
        for symbol, a in number.items():
            here = _total(control.get((p, a), ())) - _total(control.get((p, a + 1), ()))  # (3)
            rule = machine.rule(p, symbol)
            d_w += here * (2 * number[rule.write])  # (4)
            n_state[rule.to, rule.move] = n_state.get((rule.to, rule.move), Affine()) + here  # (5)
    n = {v: sum((each for (_, w), each in n_state.items() if w == v), Affine()) for v in MOVES}
    r_after = {"R": r * base - d_r, "S": r + (d_w - d_r) / base}  # (6), (7)
    r_after["L"] = (r_after["S"] + d_l) / base  # (8)
    l_after = {"R": (l + d_w) / base, "S": l, "L": l * base - d_l}
    tops = {v: (r_after[v] * base, l_after[v] * base) for v in MOVES}
    seen: dict[MachineUnit, Affine] = {}
    for u in units:
        if u.kind in "lr":
            seen[u] = (l_after if u.kind == "l" else r_after)[u.move] + n[u.move] - 1  # (9)
        elif u.kind == "g":
            seen[u] = tops[u.move][1] - (2 * u.at - 1) + (n[u.move] - 1) * base  # (11)
        else:
            enters = n_state.get((u.state, u.move), Affine())
            above = tops[u.move][0] - (2 * u.at - 1) + (enters - 1) * base
            seen[u] = above if u.at else enters  # (10)
    return seen


def _total(units: Iterable[MachineUnit]) -> Affine:
    return Affine({unit: Fraction(1) for unit in units})


def _input(machine: Machine, base: int, unit: MachineUnit, x: int) -> Fraction:
    """Return the weight from input x to a unit: symbol number x, or start if x is the last."""
    if unit.move == "R":
        return Fraction({"r": -base, "e": -(base**2) if unit.at else 0}.get(unit.kind, 0))
    if x < len(machine.symbols):
        return Fraction(2 * x, base) + 1 if (unit.kind, unit.move) == ("r", "L") else Fraction(0)
    if (unit.kind, unit.move) == ("r", "S"):
        return Fraction(1)
    started = (unit.kind, unit.move, unit.state) == ("e", "S", machine.start)
    return Fraction((base if unit.at else 1) if started else 0)
