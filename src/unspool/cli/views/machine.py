"""What `unspool turing` shows: a machine and its network step by step, and what was found."""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from unspool.cli.output import counted
from unspool.kernels.memory import require_memory
from unspool.turing.automaton import Automaton
from unspool.turing.builtin import AUTOMATA, MACHINES
from unspool.turing.floating import PRECISIONS, FirstErrors, FloatRun
from unspool.turing.machine import Configuration
from unspool.turing.network import MachineNetwork
from unspool.turing.run import StepPair

SHOWN, FIRST, LAST = 32, 16, 8
"""Up to so many steps are printed; of more, the first and the last."""
NEAR, NEAREST = 18, 6
"""So many cells on either side of the head are printed, and so many digits; on a narrow terminal fewer, but not below."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MARGIN = 10


class Followed:
    """What is kept of a run while it goes by: the first steps (all where `most` is None) and the last."""

    def __init__(self, network: MachineNetwork, tape: str, most: int | None) -> None:
        self.network, self.most, self.steps = network, most, -1
        self.first: list[StepPair] = []
        self.last: deque[StepPair] = deque(maxlen=LAST)
        self.floats = {precision: FloatRun(network, tape, precision) for precision in PRECISIONS}
        self.disagree: int | None = None
        self.bits = self._held = 0

    def add(self, pair: StepPair) -> None:
        """Keep a step; the one before the first is number 0."""
        self.steps += 1
        if self.most is None or len(self.first) <= self.most:
            self.first.append(pair)
        self.last.append(pair)
        if self.most is None:
            self._require_memory(pair)
        if not pair.agree and self.disagree is None:
            self.disagree = self.steps
        for watch in self.floats.values():
            watch.see(pair.truth)
        self.bits = max(self.bits, *(z.denominator.bit_length() - 1 for z in (pair.truth.l, pair.truth.r)))

    def _require_memory(self, pair: StepPair) -> None:
        """Refuse JSON of more steps than fit into memory: every step holds the whole tape."""
        self._held += 600 + 8 * (len(pair.machine.left) + len(pair.machine.right))
        if self.steps % 256 == 0:
            require_memory(
                4 * self._held, f"JSON of {self.steps:,} steps", "choose fewer --steps or a shorter tape"
            )

    @property
    def halted(self) -> bool:
        """Whether the machine is in a halting state."""
        return self.last[-1].machine.state in self.network.machine.halting

    def rows(self) -> list[tuple[int, StepPair] | None]:
        """The steps to print, with their numbers; None is where some are left out."""
        if self.steps <= SHOWN:
            return list(enumerate(self.first))
        last = enumerate(self.last, self.steps + 1 - len(self.last))
        return [*enumerate(self.first[:FIRST]), None, *last]


def print_known(console: Console, known: Sequence[tuple[str, str, str]]) -> None:
    """Print what is built in."""
    rows = [(name, repr(tape) if tape else "", what) for name, what, tape in known]
    _columns(console, ("machine", "a tape", "what it does"), rows)


def introduce(console: Console, network: MachineNetwork, tape: str) -> None:
    """Say what the machine and its network are."""
    machine, H = network.machine, len(network.units)
    states = counted(len(machine.states), "state")
    _line(console, "machine", f"{machine.name}: {states}, symbols {' '.join(machine.symbols)}{_does(machine.name)}")  # fmt: skip
    _line(console, "network", f"h(t) = σ(W h(t-1) + U x(t) + b), {H} units, base {network.base}; {np.count_nonzero(network.W):,} of the {H * H:,} weights in W are not 0")  # fmt: skip
    _line(console, "reading", f"{counted(len(tape) + 1, 'update')}: the tape from its end to its beginning, then start; from then on one update per step")  # fmt: skip
    console.print()


def print_steps(console: Console, followed: Followed) -> None:
    """Print the steps of both side by side, with the numbers of the stacks."""
    base, blank, near = followed.network.base, followed.network.machine.blank, _room(console)
    rows: list[tuple[str, ...]] = []
    for row in followed.rows():
        if row is None:
            rows.append(("…",))
            continue
        t, pair = row
        cells = [f"{t:,}"]
        for each in (pair.machine, pair.network):
            cells += [each.state, _near(each, blank, near)]
        cells += [_digits(z, base, near) for z in (pair.truth.l, pair.truth.r)]
        rows.append((*cells, "" if pair.agree else "DISAGREE"))
    written = f", base {base}" if base <= len(DIGITS) else ""
    names = ("step", "machine", "", "network", "", f"l{written}", f"r{written}", "")
    _columns(console, names, rows)
    console.print()


def conclude(console: Console, followed: Followed) -> None:
    """Say how it ended, whether both agree, and how long floats would have lasted."""
    network, end, steps = followed.network, followed.last[-1].machine, counted(followed.steps, "step")
    tape = _near(end, network.machine.blank, NEAR)
    if followed.halted:
        _line(console, "result", f"halted in {end.state} after {steps}: {tape}")
    else:
        _line(console, "result", f"not halted within {steps}, which is all that --steps allows: {tape}")
    if followed.disagree is None:
        _line(console, "agree", f"state, head and the whole tape are the same at the start and after each of {steps}")  # fmt: skip
    else:
        _line(console, "DISAGREE", f"from step {followed.disagree:,} on")
    each = (network.base - 1).bit_length()
    digits = counted(-(-followed.bits // each), "digit")
    _line(console, "digits", f"the longest stack needed {digits} of base {network.base} ({followed.bits:,} bits after the binary point)")  # fmt: skip
    for precision, watch in followed.floats.items():
        _line(console, precision, _describe(watch.first_errors))


def print_automaton(
    console: Console,
    automaton: Automaton,
    word: str,
    units: int,
    true: Sequence[str],
    read: Sequence[str | None],
) -> None:
    """Print the states of an automaton and of its network side by side."""
    states = counted(len(automaton.states), "state")
    _line(console, "machine", f"{automaton.name}: an automaton, {states}, symbols {' '.join(automaton.symbols)}{_does(automaton.name)}")  # fmt: skip
    _line(console, "network", f"h(t) = relu(W h(t-1) + U x(t) + b), {units} units that are 0 or 1, run by the engine in float32")  # fmt: skip
    console.print()
    steps = range(len(true))
    shown = steps if len(steps) <= SHOWN + 1 else [*steps[:FIRST], None, *steps[-LAST:]]
    rows = [
        ("…",) if t is None else (f"{t:,}", word[t - 1] if t else "", true[t], str(read[t])) for t in shown
    ]
    _columns(console, ("step", "read", "machine", "network"), rows)
    console.print()
    verdict = "accepted" if true[-1] in automaton.accepting else "not accepted"
    symbols = counted(len(word), "symbol")
    _line(console, "result", f"{verdict}: in {true[-1]} after {symbols}")
    wrong = next((t for t in steps if true[t] != read[t]), None)
    if wrong is None:
        _line(console, "agree", f"the state is the same at the start and after each of {symbols}")
    else:
        _line(console, "DISAGREE", f"from step {wrong:,} on")


def _room(console: Console) -> int:
    """How many cells and digits fit beside each other; a file is wide enough."""
    return max(NEAREST, min(NEAR, (console.width - 34) // 7)) if console.is_terminal else NEAR


def _near(configuration: Configuration, blank: str, near: int) -> str:
    """Write the tape around the head."""
    left, right = configuration.left, configuration.right
    cut = configuration._replace(left=left[-near:], right=right[: near + 1]).shown(blank)
    return ("…" if len(left) > near else "") + cut + ("…" if len(right) > near + 1 else "")


def _digits(z: Fraction, base: int, near: int) -> str:
    """Write a number below 1 in a base, as far as there is room.

    >>> _digits(Fraction(5, 8), 4, 18), _digits(Fraction(0), 4, 18), _digits(Fraction(1, 3), 16, 4)
    ('0.22', '0', '0.5555…')
    """
    if base > len(DIGITS):
        return f"{float(z):.12g}"
    found = ""
    while z and len(found) < near:
        digit = int(z * base)
        found, z = found + DIGITS[digit], z * base - digit
    return ("0." if found else "0") + found + ("…" if z else "")


def _describe(found: FirstErrors) -> str:
    if found.tape is None:
        return "correct at every step"
    state = "but no state" if found.state is None else f"its state after step {found.state:,}"
    return f"wrong: a part of the tape after step {found.tape:,}, {state}"


def _does(name: str) -> str:
    what = (MACHINES | AUTOMATA).get(name, ("",))[0]
    return f"; {what}" if what else ""


def _line(console: Console, name: str, what: str) -> None:
    console.print(Text.assemble((f"{name:{MARGIN}}", "bold cyan"), what))


def _columns(console: Console, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, the first to the right if it counts; a row too long for a terminal goes on below."""
    widths = [max(cell_len(row[i]) for row in [names, *rows] if i < len(row)) for i in range(len(names))]
    for row in [names, *rows]:
        cells = [cell + " " * (wide - cell_len(cell)) for cell, wide in zip(row, widths, strict=False)]
        if names[0] == "step":
            cells[0] = row[0].rjust(widths[0])
        style = "bold" if row is names else "bold red" if row[-1] == "DISAGREE" else ""
        console.print(Text("  ".join(cells).rstrip(), style))
