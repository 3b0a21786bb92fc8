"""Draw a run of a compiled machine: tape, hidden units and the numbers of the two stacks, step by step from left to right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from unspool.plots.svg import Canvas
from unspool.turing.machine import Configuration
from unspool.turing.network import MachineNetwork
from unspool.turing.run import StepPair

MOST = 120
"""Most steps that are drawn."""
LEFT, RIGHT, TOP, GAP, SMALL = 112.0, 92.0, 92.0, 54.0, 10.5
WIDEST = 40.0
"""Largest width of a step."""
KINDS = {"e": "green", "g": "gold", "l": "blue", "r": "orange"}
COLOURS = ("blue", "orange", "green", "purple", "gold", "red")
"""Colours of the symbols after the blank, which has none."""


def draw_machine(
    network: MachineNetwork, pairs: Sequence[StepPair], path: str | Path, title: str, left_out: int = 0
) -> None:
    """Write the first steps of a run to an SVG file; `left_out` is the number of further steps."""
    shown = pairs[: MOST + 1]
    left_out += len(pairs) - len(shown)
    unit_rows = _unit_rows(network, shown)
    wide = min(WIDEST, max(7.5, 760 / len(shown)))
    cells = _cells([pair.network for pair in shown])
    tall = min(wide, 22.0, max(4.0, 420 / len(cells)))
    row = 13.0 if len(unit_rows) < 40 else 10.0
    heights = (tall * len(cells), row * len(unit_rows), 230.0)
    width = LEFT + wide * len(shown) + RIGHT
    canvas = Canvas(max(width, 560), TOP + sum(heights) + 2 * GAP + 44, title)
    canvas.text(20, 26, title, font_size=15, font_weight=600)
    y = TOP
    _tape(canvas, network, [pair.network for pair in shown], cells, (y, wide, tall))
    y += heights[0] + GAP
    never = len(network.units) - len(unit_rows)
    more = f" ({never} that are never on are left out)" if never else ""
    _head(canvas, y, f"hidden units, from 0 to 1{more}")
    heat_rows(canvas, unit_rows, (LEFT, y, wide, row))
    y += heights[1] + GAP
    _stacks(canvas, network, shown, (y, wide, heights[2]))
    _steps(canvas, len(shown), y + heights[2], wide, left_out)
    canvas.save(path)


def draw_automaton(
    labels: Sequence[str],
    values: Sequence[Sequence[float]],
    word: str,
    states: Sequence[str],
    path: str | Path,
    title: str,
) -> None:
    """Write the units of an automaton over the first symbols of a word to an SVG file."""
    count = min(len(states), MOST + 1)
    wide = min(WIDEST, max(7.5, 760 / count))
    rows = [(label, [float(step[i]) for step in values[:count]]) for i, label in enumerate(labels)]
    canvas = Canvas(max(LEFT + wide * count + RIGHT, 560), TOP + 34 + 16 * len(rows) + 48, title)
    canvas.text(20, 26, title, font_size=15, font_weight=600)
    _bands(canvas, states[:count], TOP, wide)
    for t in range(1, count):
        canvas.text(
            LEFT + wide * (t + 0.5), TOP + 16, word[t - 1], text_anchor="middle", font_size=min(13.0, wide)
        )
    _note(canvas, LEFT - 8, TOP + 16, "read")
    heat_rows(canvas, rows, (LEFT, TOP + 30, wide, 16.0))
    _steps(canvas, count, TOP + 30 + 16 * len(rows), wide, len(states) - count)
    canvas.save(path)


def heat_rows(
    canvas: Canvas, rows: Sequence[tuple[str, Sequence[float]]], box: tuple[float, float, float, float]
) -> None:
    """Draw values from 0 to 1 as cells, one row per unit, larger values darker."""
    left, top, wide, tall = box
    for i, (label, values) in enumerate(rows):
        y = top + i * tall
        name = label if len(label) <= 18 else f"{label[:8]}…{label[-9:]}"
        canvas.text(left - 8, y + tall * 0.76, name, text_anchor="end", font_size=min(SMALL, tall * 0.9), class_="soft")  # fmt: skip
        canvas.line(left, y + tall, left + wide * len(values), y + tall, class_="grid")
        for t, value in enumerate(values):
            if value > 0:
                canvas.tag("rect", x=left + t * wide + 0.5, y=y + 1.0, width=wide - 1, height=tall - 2, rx=1.5,
                           style=f"fill:var(--{KINDS.get(label[0], 'soft')})",
                           fill_opacity=0.12 + 0.78 * value)  # fmt: skip


def _unit_rows(network: MachineNetwork, pairs: Sequence[StepPair]) -> list[tuple[str, list[float]]]:
    rows = [
        (unit.label, [float(pair.hidden.value(i)) for pair in pairs]) for i, unit in enumerate(network.units)
    ]
    return [row for row in rows if any(row[1])]


def _cells(configurations: Sequence[Configuration]) -> range:
    """Return the cells that are not blank or that the head has visited."""
    low = min(min(each.head, each.head - len(each.left)) for each in configurations)
    return range(low, 1 + max(each.head + max(len(each.right) - 1, 0) for each in configurations))


def _tape(
    canvas: Canvas,
    network: MachineNetwork,
    configurations: Sequence[Configuration],
    cells: range,
    box: tuple[float, float, float],
) -> None:
    top, wide, tall = box
    _head(canvas, top - 22, "tape and head, as decoded from the units")
    _bands(canvas, [each.state for each in configurations], top, wide)
    symbols = network.machine.symbols
    for t, each in enumerate(configurations):
        tape = each.left + each.right
        for i, symbol in enumerate(tape, each.head - len(each.left)):
            x, y = LEFT + t * wide, top + (i - cells.start) * tall
            number = symbols.index(symbol)
            if number:
                colour = COLOURS[(number - 1) % len(COLOURS)]
                canvas.tag("rect", x=x + 0.5, y=y + 0.5, width=wide - 1, height=tall - 1, rx=2.0, style=f"fill:var(--{colour})", fill_opacity=0.22)  # fmt: skip
            if number and min(wide, tall) >= 9:
                canvas.text(x + wide / 2, y + tall * 0.5 + 4, symbol, text_anchor="middle", font_size=min(12.0, 0.8 * tall))  # fmt: skip
        y = top + (each.head - cells.start) * tall
        canvas.tag("rect", x=LEFT + t * wide + 0.5, y=y + 0.5, width=wide - 1, height=tall - 1, rx=2.0, fill="none", style="stroke:var(--ink)", stroke_width=1.6)  # fmt: skip
    every = max(1, round(24 / tall))
    for i in cells:
        if i % every == 0:
            _note(canvas, LEFT - 8, top + (i - cells.start + 0.5) * tall + 4, f"cell {i}")


def _bands(canvas: Canvas, states: Sequence[str], top: float, wide: float) -> None:
    """Write each state above its steps, if there is space."""
    t = 0
    for state, steps in groupby(states):
        count = len(list(steps))
        x, room = LEFT + t * wide, count * wide
        canvas.line(x + 1.5, top - 5, x + room - 1.5, top - 5, style="stroke:var(--purple)", stroke_width=2)
        if 6.2 * len(state) <= room + 2:
            canvas.text(x + room / 2, top - 9, state, text_anchor="middle", font_size=SMALL, style="fill:var(--purple)")  # fmt: skip
        t += count
    _note(canvas, LEFT - 8, top - 6, "state")


def _stacks(
    canvas: Canvas, network: MachineNetwork, pairs: Sequence[StepPair], box: tuple[float, float, float]
) -> None:
    top, wide, tall = box
    _head(canvas, top, "the stacks' numbers: in the bands alone, each with its symbol at the top")
    right, symbols, base = LEFT + wide * len(pairs), network.machine.symbols, network.base
    most = (2 * len(symbols) - 2) / (base - 1)  # the largest number of a stack

    def y_of(z: float) -> float:
        return top + tall * (1 - z / most) if most else top + tall

    for s, symbol in enumerate(symbols):
        _band(canvas, y_of, (2 * s / base, (2 * s + most) / base), right)
        for under in range(len(symbols)):
            low = 2 * s / base + 2 * under / base**2
            _band(canvas, y_of, (low, low + most / base**2), right)
        canvas.text(right + 8, y_of((2 * s + most / 2) / base) + 4, f"{symbol} at the top", font_size=SMALL, class_="soft")  # fmt: skip
    for name, colour, side in (("l", "blue", -1.5), ("r", "orange", 1.5)):
        points = [
            (LEFT + (t + 0.5) * wide + side, y_of(float(getattr(p.truth, name)))) for t, p in enumerate(pairs)
        ]
        if wide > 12:
            canvas.path(
                points, fill="none", style=f"stroke:var(--{colour})", stroke_width=1, stroke_opacity=0.45
            )
        for x, y in points:
            canvas.tag("circle", cx=x, cy=y, r=min(3.2, 0.3 * wide), style=f"fill:var(--{colour})")
    for z in (0.0, 0.25, 0.5, 0.75):
        if z <= most:
            _note(canvas, LEFT - 8, y_of(z) + 4, f"{z:g}")
    for label, colour, share in (("l, left", "blue", 0.38), ("r, right", "orange", 0.46)):
        y = top + tall * share
        canvas.tag("circle", cx=LEFT - 86, cy=y - 4, r=3.2, style=f"fill:var(--{colour})")
        canvas.text(LEFT - 78, y, label, font_size=SMALL, style=f"fill:var(--{colour})")


def _band(canvas: Canvas, y_of: Callable[[float], float], between: tuple[float, float], right: float) -> None:
    low, high = y_of(between[0]), y_of(between[1])
    canvas.tag("rect", x=LEFT, y=high - 0.6, width=right - LEFT, height=low - high + 1.2, style="fill:var(--soft)", fill_opacity=0.13)  # fmt: skip


def _head(canvas: Canvas, y: float, text: str) -> None:
    canvas.text(LEFT, y - 10, text, font_size=12)


def _note(canvas: Canvas, x: float, y: float, text: str, anchor: str = "end") -> None:
    canvas.text(x, y, text, text_anchor=anchor, class_="soft", font_size=SMALL)


def _steps(canvas: Canvas, count: int, y: float, wide: float, left_out: int) -> None:
    every = next(k for k in (1, 2, 5, 10, 20, 50, 100) if k * wide >= 20)
    for t in range(0, count, every):
        _note(canvas, LEFT + (t + 0.5) * wide, y + 18, str(t), "middle")
    more = f" (the first {count - 1:,}; {left_out:,} more are not drawn)" if left_out else ""
    canvas.text(LEFT + wide * count, y + 36, f"step{more}", text_anchor="end", font_size=12)
