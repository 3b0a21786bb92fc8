"""The page of `unspool inspect`: the studio's views of one model and one text, frozen.

    model, text ─▶ the studio's answers to every request that the page can make ─▶ one HTML file

What has no end, such as typing and what-ifs, is left out; what would be too large is thinned out: see the limits below.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from unspool.cells import cell_named
from unspool.data.text.sources import Text
from unspool.errors import InputError
from unspool.inspect.memory import LARGE
from unspool.inspect.report import InspectReport, inspect, read_whole
from unspool.kernels.arrays import Real
from unspool.storage.html_page import HtmlPage
from unspool.studio import asked, back_view, reading_view, unfold_view
from unspool.studio.frozen import frozen_page
from unspool.studio.held import Readings
from unspool.studio.memory_view import memory_numbers
from unspool.studio.payload import array, clean, number
from unspool.studio.reading_view import Answer
from unspool.studio.runs import Run
from unspool.studio.session import Place, Session
from unspool.studio.worker import Job
from unspool.tasks.language.text_model import TextModel
from unspool.training.events import RunConfig

WINDOWS, FEW = 4, 2
"""Windows of Back in time, spread over the text; fewer for a large state."""
TAU, APART = 48, 32
"""Steps of a window, and from one to the next."""
KINDS = (
    "truncated:4",
    "truncated:8",
    "truncated:16",
    "truncated:4,16",
    "random:0.5",
    "random:0.75",
    "random:0.9",
)
DRAWS, STRETCHES, LISTED = 16, 6, 32
STEPS = 3
"""Steps of the unfolded graph."""
STATES, NEXT = 1 << 19, 1 << 20
"""Values of all states, and bytes of all distributions, that a page holds; of more, the last layer's h and the last step."""
FIGURES = 7
"""Significant figures of the values in the graph."""


def text_page(
    report: InspectReport,
    text: str,
    *,
    run: Path | None = None,
    repeat: Callable[[RunConfig], str] = lambda _: "",
    note: Callable[[str], None] = lambda _: None,
) -> HtmlPage:
    """Return the page of a report about a text; with the folder of the run, its learning curve is shown too."""
    session = Session(Place(Path, repeat))
    shown = session.add_model(report.source, report.run)
    if run is not None:
        shown.read_story(run, repeat)
    text = clean(text)
    cut = _beginning(report.source, text)
    made = _Recorder(session, report, text[:cut], note)
    return HtmlPage(frozen_page(made.numbers(shown, len(report.reading.ids)), made.title))


def inspect_text(
    source: TextModel, text: Text, *, characters: int, units: Sequence[str] | None = None
) -> HtmlPage:
    """Return the page of a model that reads the first characters of a text; a Path is a file."""
    words = read_whole(text, source.settings)[:characters]
    name = Path(text).name if isinstance(text, PathLike) else "a text"
    report = inspect(source, words, name=name, units=list(units) if units else None)
    return text_page(report, words)


def _beginning(source: TextModel, text: str) -> int:
    """Return how many characters of a text the studio reads."""
    count, most = len(text), asked.TEXT_TOKENS
    while (tokens := len(source.encode(text[:count]))) > most:
        count = min(count - 1, count * most // tokens)
    return count


@dataclass
class _Recorder:
    """The answers for one text."""

    session: Session
    report: InspectReport
    text: str
    note: Callable[[str], None]

    def __post_init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.readings, self.unfoldings = Readings(), unfold_view.Unfoldings()
        self.job, self.run = Job("inspect", lambda job: None), self.session.run_of(None)
        self.title = clean(f"{self.report.run}: {self.report.text}")
        self.fields: dict[str, Any] = {"run": self.run.id, "update": None, "edits": [], "text": self.text}

    def numbers(self, run: Run, tokens: int) -> dict[str, Any]:
        """Return what the page begins with."""
        self.note("drawing")
        reading = self._read()
        self._units(reading)
        windows = self._back(reading)
        graph = self._unfold()
        T = len(reading["pieces"])
        views = (
            ["read", "units"]
            + ["back"] * bool(windows)
            + ["unfold"] * bool(graph)
            + ["learn"] * bool(run.curve)
        )
        unit = self.report.units[0].name if self.report.units else ""
        return {
            "whole": True, "title": self.title, "views": views, "windows": windows, "answers": self.answers,
            "next": self._next(reading["reading"], T), "cut": {"shown": T, "tokens": tokens} if tokens > T else None,
            "curve": [number(each) for row in run.curve for each in row],
            "parts": {"unfold.of": "run", "unfold.tau": graph},
            "state": {
                "view": "read", "u": None, "t": min(T - 1, APART), "text": self.text, "edits": [], "unit": unit,
                "runs": [run.summary()], "current": run.id, "points": run.points, "samples": run.samples, "texts": [],
            },
        }  # fmt: skip

    def _keep(self, route: str, body: Mapping[str, Any], answer: Answer) -> Answer:
        self.answers[request_key(route, body)] = answer
        return answer

    def _read(self) -> Answer:
        reading = self.report.reading
        names = list(reading.states)
        if reading.last_h.size * len(names) > STATES:
            names = [name for name in names if name.endswith(".h")][-1:]
        first = next(name for name in reversed(names) if name.endswith(".h"))
        order = [first, *(name for name in names if name != first)]
        ask = asked.Read(run=self.run.id, text=self.text, states=order, at=0)
        answer = reading_view.read_answer(self.session, self.readings, ask, self.job)
        vocabulary = reading_view.vocabulary_answer(self.session, self.readings, asked.Vocabulary(), self.job)
        self._keep("/api/vocabulary", {"run": self.run.id}, vocabulary)
        return self._keep("/api/read", self.fields, answer)

    def _next(self, name: str, T: int) -> dict[int, str]:
        """Return the distribution after each step, or after the last one alone where they are large."""
        held = self.readings[name]
        size = len(held.model.source.vocab)
        steps = range(T) if 4 * T * size <= NEXT else range(T - 1, T)
        return {t: _base64(held.next_probabilities(t)) for t in steps}

    def _units(self, reading: Answer) -> None:
        """Keep the units of the report alone."""
        name = reading["reading"]
        units = [
            {
                "name": unit.name, "property": unit.encodes.name if unit.encodes else None, "share": unit.share,
                "chance": unit.chance, "means": unit.means,
            }
            for unit in self.report.units
        ]  # fmt: skip
        self._keep("/api/units", {"count": LISTED}, {"units": units})
        for unit in self.report.units:
            ask = asked.OneUnit(reading=name, name=unit.name, stretches=STRETCHES)
            body = {"name": unit.name, "stretches": STRETCHES, "off": True}
            answer = reading_view.unit_answer(self.session, self.readings, ask, self.job)
            self._keep("/api/unit", body, answer)

    def _back(self, reading: Answer) -> list[int]:
        """Keep the gradients of some windows; return where they begin."""
        if len(reading["pieces"]) < 3:
            return []
        config = self.report.model.config
        large = config.hidden * cell_named(config.cell).parts >= LARGE
        begins = _windows(len(reading["pieces"]), FEW if large else WINDOWS)
        for begin in begins:
            body = self.fields | {"begin": begin, "tau": TAU, "scale": 1}
            ask = asked.Back(**body, kinds=list(KINDS), draws=DRAWS)
            try:
                whole = back_view.back_answer(self.session, self.readings, ask, self.job)
            except InputError:
                return []  # outputs are fed back: no gradient flows from state to state
            self._keep_window(body, whole)
        if self.report.back is not None:
            self._keep("/api/memory", self.fields, _rounded(memory_numbers(self.report.back)))
        return begins

    def _keep_window(self, body: dict[str, Any], whole: Answer) -> None:
        own = {"matrix", "flow", "lags", "truncations"}
        about = {name: value for name, value in whole.items() if name not in own}
        flow = about | {"matrix": whole["matrix"], "flow": whole["flow"]}
        self._keep("/api/back", body | {"parts": ["flow"]}, flow)
        self._keep("/api/back", body | {"parts": ["lags"]}, {"tau": whole["tau"], "lags": whole["lags"]})
        full, *others = whole["truncations"]
        for kind, each in zip(KINDS, others, strict=True):
            cuts = body | {"parts": ["truncations"], "kinds": [kind], "draws": DRAWS, "seed": 0}
            self._keep("/api/back", cuts, {"truncations": [full, each]})

    def _unfold(self) -> int:
        """Keep the graph; return how many steps of it there are."""
        steps = 0
        for tau in range(1, STEPS + 1):
            ask = asked.Unfold(run=self.run.id, text=self.text, tau=tau)
            answer = unfold_view.unfold_answer(self.session, self.unfoldings, ask, self.job)
            if answer["tau"] == tau:
                steps = tau
            answer |= {"parameters": [], "nodes": _rounded(answer["nodes"])}
            self._keep("/api/unfold", self.fields | {"of": "run", "tau": tau}, answer)
        return steps


def request_key(route: str, body: Mapping[str, Any]) -> str:
    """Return the key of a request, as `frozen.js` makes it.

    >>> request_key("/api/at", {"t": 3, "run": None})
    '/api/at [["run",null],["t",3]]'
    """
    return f"{route} {json.dumps(sorted(body.items()), ensure_ascii=False, separators=(',', ':'))}"


def _base64(values: Real) -> str:
    return base64.b64encode(array(values).tobytes()).decode("ascii")


def _windows(T: int, most: int = WINDOWS) -> list[int]:
    """Return where the windows of Back in time begin, as the page counts them; of many, some.

    >>> _windows(40), _windows(100), len(_windows(5000))
    ([0], [0, 32, 51], 4)
    """
    last = max(0, T - 1 - TAU)
    every = sorted({0, *(begin for begin in range(APART, last, APART)), last})
    chosen = np.linspace(0, len(every) - 1, min(most, len(every))).round().astype(int)
    return [every[i] for i in chosen.tolist()]


def _rounded(content: Any) -> Any:
    """Return plain values with numbers of a few significant figures: more than the page prints."""
    match content:
        case float():
            return number(float(f"{content:.{FIGURES}g}"))
        case dict():
            return {name: _rounded(each) for name, each in content.items()}
        case list():
            return [_rounded(each) for each in content]
    return content
