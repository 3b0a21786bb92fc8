"""Write a report as one self-contained HTML file.

All external text is escaped; the data of the script is a block of JSON without the character <.
"""

from __future__ import annotations

import base64
import math
from html import escape
from importlib.resources import files

import numpy as np

from unspool.cells import cell_named
from unspool.inspect.graph.picture import CSS, draw_graph
from unspool.inspect.page.charts import (
    KINDS,
    clearest_span,
    describe_unit,
    path_chart,
    pretty,
    scaled,
    surprise_chart,
)
from unspool.inspect.page.lags import advice, bias_chart, influence_chart
from unspool.inspect.page.page_data import page_data
from unspool.inspect.page.states import MOST_UNITS, states_png
from unspool.inspect.report import InspectReport
from unspool.inspect.units import Unit
from unspool.plots.svg import BASE, DARK, LIGHT, SANS, SERIF, diverging, palette

MONO = "ui-monospace,'SF Mono',SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace"
SPAN_LENGTH = 220
"""Number of characters shown per unit."""


def page(report: InspectReport) -> str:
    """Return the page as HTML."""
    title = f"{report.run} reads {report.text}"
    sections = [
        _text(report),
        _units(report),
        _surprise(report),
        _path(report),
        _states(report),
        _memory(report),
        _graph(report),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_style()}</style></head><body>{_header(report)}<main>{''.join(sections)}</main>"
        f"<footer>Made by <code>unspool inspect</code>. This file is complete in itself and loads nothing. "
        f"The letters are those of Goodfellow, Bengio, Courville, <i>Deep Learning</i>, chapter 10.</footer>"
        f'<div id="card"></div><script type="application/json" id="data">{page_data(report)}</script>'
        f"<script>{_file('page.js')}</script></body></html>\n"
    )


def _file(name: str) -> str:
    return (files("unspool.inspect.page") / name).read_text(encoding="utf-8")


def _style() -> str:
    light, dark = palette(LIGHT), palette(DARK)
    fixed = f"--serif:{SERIF};--mono:{MONO};--bar:var(--green);"
    return (
        f":root{{{light}{fixed}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f":root[data-theme=light]{{{light}color-scheme:light}}:root[data-theme=dark]{{{dark}color-scheme:dark}}"
        f"body{{font-family:{SANS}}}{_file('page.css')}{BASE}{CSS}"
    )


def _header(report: InspectReport) -> str:
    config, reading = report.model.config, report.reading
    more = f", {config.layers} layers" * (config.layers > 1) + f", {config.precision}"
    facts = [
        ("network", cell_named(config.cell).title, f"<i>H</i> = {config.hidden}{more}"),
        ("parameters", f"{report.model.parameters.count:,}", ""),
        ("tokens", report.source.tokenizer.kind.partition(":")[0], f"<i>K</i> = {config.outputs:,}"),
        ("read", f"{len(reading.ids):,}", _unknown(report)),
        ("surprise", f"{reading.nats:.3f}", "nats per token"),
        ("perplexity", f"{math.exp(reading.nats):.2f}", f"of at most {config.outputs:,}"),
    ]  # fmt: skip
    inside = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)} <small>{more}</small></dd></div>"
        for name, value, more in facts
    )
    return (
        '<header><div class="brand"><span>unspool inspect</span><button id="theme">light / dark</button></div>'
        f'<h1>{escape(report.run)} reads {escape(report.text)}</h1><dl class="facts">{inside}</dl></header>'
    )


def _unknown(report: InspectReport) -> str:
    missed = report.known.count(False)
    return f"{missed:,} unknown" if missed else "tokens"


def _section(name: str, title: str, lead: str, inside: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2><p class="lead">{lead}</p>{inside}</section>'


def _spans(report: InspectReport, looks: list[str], start: int = 0, lines: bool = True) -> str:
    """Return the tokens of a span as HTML elements with their styles; `lines` keeps line ends besides their mark."""
    found = []
    for i, look in enumerate(looks, start):
        piece = report.reading.pieces[i]
        kinds = "" if report.known[i] else " u"
        if "\n" in piece:
            found.append(f'<s class="n{kinds}"{look}>↵</s>{escape(piece) if lines else ""}')
        elif piece:
            kind = f' class="{kinds.strip()}"' if kinds else ""
            found.append(f"<s{kind}{look}>{escape(piece)}</s>")
        else:
            found.append(f'<s class="n{kinds}"{look}>·</s>')
    return "".join(found)


def _text(report: InspectReport) -> str:
    p = np.exp(-np.nan_to_num(report.reading.surprise, nan=np.inf))
    looks = [f' style="--p:{7 * share:.1f}px"' if share >= 0.01 else "" for share in p.tolist()]
    buttons = "<button>surprise</button>" + "".join(
        f"<button><i>{pretty(unit.name)}</i> {escape(unit.encodes.name if unit.encodes else '')}</button>"
        for unit in report.units
    )
    legend = (
        '<div class="legend"><span id="what"></span><span><span id="low"></span>'
        '<span id="ramp" class="ramp one"></span><span id="high"></span></span>'
        '<span><span class="under"></span>bar under a token: the probability <i>ŷ</i> that the network gave it</span></div>'
    )
    lead = (
        "The text in the colours of the network’s surprise <i>L</i><sup>(t)</sup> = −log <i>ŷ</i><sup>(t)</sup>, or of "
        "one unit’s activation. <b>Point at a token</b> to see what was expected in its place; the arrow keys move on."
    )
    inside = (
        f'<div class="modes">{buttons}</div><div class="tokens" id="text-tokens" tabindex="0">'
        f"{_spans(report, looks)}</div>{legend}"
    )
    return _section("text", "The text, token by token", lead, inside)


def _units(report: InspectReport) -> str:
    how = (
        "chosen automatically: for each simple property of a position in the text, the unit with most information about it"
        if report.chosen
        else "as you named them"
    )
    lead = (
        f"What single units of the state respond to, {how}. The measure: mutual information between the activation (in "
        "ten ranges) and the property, divided by the property’s entropy, minus the chance level, measured with the property "
        "shifted along the text. A dark line under a token: the property holds there."
    )
    return _section(
        "units", "Units with a meaning", lead,
        f'<div class="units">{"".join(_unit(report, unit) for unit in report.units)}</div>',
    )  # fmt: skip


def _unit(report: InspectReport, unit: Unit) -> str:
    start = clearest_span(unit, SPAN_LENGTH)
    stop = start + _span_tokens(report.reading.pieces[start : start + SPAN_LENGTH])
    colours = scaled(unit.activation)
    looks = []
    for i in range(start, stop):
        so = unit.encodes is not None and not unit.encodes.ranged and unit.encodes.values[i]
        looks.append(f' style="--c:{diverging(colours[i])}{";--bar:var(--ink)" if so else ""}"')
    bar = (
        f'<span class="share"><span style="width:{100 * unit.share:.0f}%"></span></span>'
        if unit.encodes
        else ""
    )
    chance = f", chance {unit.chance:.1%} subtracted" if unit.encodes else ""
    return (
        f'<div class="unit"><span class="math">{pretty(unit.name)}</span>{bar}{escape(describe_unit(unit))}'
        f"<small>{chance}</small>"
        f'<div class="tokens">{_spans(report, looks, start, lines=False)}</div></div>'
    )


def _span_tokens(pieces: list[str]) -> int:
    """Return how many of these tokens fit into a span."""
    ends = np.cumsum([max(len(piece), 1) for piece in pieces])
    return max(1, int(np.searchsorted(ends, SPAN_LENGTH, side="right")))


def _surprise(report: InspectReport) -> str:
    picture = surprise_chart(report.reading).inline()
    lead = (
        "The surprise of each token, in nats. It is low where the network predicts the text well, and high at the first "
        "letters of words and names, where the next token is uncertain."
    )
    return _section("surprise", "Surprise along the text", lead, f'<figure class="wide">{picture}</figure>')


def _path(report: InspectReport) -> str:
    chart = path_chart(report.reading, report.path)
    keys = "".join(
        f'<span><b style="color:var(--{colour})">■</b> {name}</span>' for colour, name in KINDS.values()
    )
    held = sum(report.path.shares)
    lead = (
        f"The state <i>h</i><sup>(t)</sup> has {report.model.config.hidden} numbers; here it is in the two directions in which it "
        f"moves most, which hold {held:.0%} of its variance. Each mark is the state after reading that token: the network "
        "keeps apart what must be continued differently."
    )
    inside = (
        f'<div class="beside"><figure>{chart.inline()}</figure><div><button id="play">▶ read</button>'
        f'<p id="read" class="tokens">&nbsp;</p><p class="lead">Press <b>read</b>, or point at the text above: the dot is '
        f'<i>h</i><sup>(t)</sup>, and the line where it came from.</p><div class="keys">{keys}</div></div></div>'
    )
    return _section("path", "The path of the state", lead, inside)


def _states(report: InspectReport) -> str:
    picture = base64.b64encode(states_png(report)).decode("ascii")
    units = min(MOST_UNITS, report.reading.last_h.shape[1])
    lead = (
        f"<i>h</i><sup>(t)</sup> of the last layer, one row per unit ({units} units), one column per token; similar units are adjacent. "
        "Blue is below zero, orange above; long stripes are units that hold their value."
    )
    heat = f'<img class="heat" alt="hidden states by time" src="data:image/png;base64,{picture}">'
    return _section("states", "All units at once", lead, heat)


def _memory(report: InspectReport) -> str:
    back, cell = report.back, cell_named(report.model.config.cell)
    if back is None:
        return ""
    lead = (
        "Left, the influence of a change of the state <i>k</i> steps later: the norm of "
        "d<i>h</i><sup>(t)</sup>/d<i>h</i><sup>(t−k)</sup>"
        + (f" (for the {cell.title} of <i>h</i> and <i>s</i> together)" if cell.has_cell_state else "")
        + f", trained and untrained. Right, the contribution of each lag to ∇<i>{back.by_lag.letter}</i>, and the bias of backpropagation through "
        "only <i>K</i> steps."
    )
    pictures = (
        f'<div class="two"><figure>{influence_chart(back).inline()}</figure>'
        f"<figure>{bias_chart(back).inline()}</figure></div>"
    )
    radii = ", ".join(f"{radius:.2f} ({gate})" for gate, radius in back.radii.items())
    spectral = f'<p class="lead">Spectral radius of <i>W</i>: {radii}.</p>' if radii else ""
    return _section(
        "lags", "Memory", lead,
        f'{pictures}<p class="advice">{advice(back)}</p>{spectral}',
    )  # fmt: skip


def _graph(report: InspectReport) -> str:
    steps = report.made.graph.tau
    lead = (
        "This network: folded, where a black square means “one step later”, and unfolded for the first "
        f"{steps} tokens of the text, with its values and gradients. Edges of one "
        "colour share one matrix. Point at a node for its equation and numbers."
    )
    picture = draw_graph(report.made, labels=report.labels).inline()
    return _section(
        "graph", "The graph, folded and unfolded", lead, f'<figure class="scroll">{picture}</figure>'
    )
