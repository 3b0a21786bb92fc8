"""The routes under /api/: what each is asked and what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from unspool.cells import CELLS
from unspool.errors import FileError, InputError, UnspoolError
from unspool.model.config import PATTERNS
from unspool.optimisers import OPTIMISERS
from unspool.optimisers.schedules import SCHEDULES
from unspool.storage.schema import parse_json, require_as
from unspool.studio import asked, back_view, gate, held, memory_view, reading_view, unfold_view
from unspool.studio.feed import Client, frame
from unspool.studio.history import Superseded
from unspool.studio.payload import BINARY, array, clean, number, to_binary, to_csv, to_json
from unspool.studio.runs import Run
from unspool.studio.session import OF_RECIPE, OF_RUN, OF_TEXT, Session
from unspool.studio.worker import Busy, Job

OFTEN = 0.05
"""Seconds between two frames of a stream."""
BEAT = 5.0
"""Seconds after which a stream shows that it lives."""
PATIENCE = 120.0
"""Seconds that a request may take."""
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
View = Callable[[Any, Job], dict[str, Any]]
Tables = Callable[[dict[str, Any], Any], dict[str, Any]]


def respond(status: int, body: bytes, kind: str = "application/json") -> Response:
    """Return an answer."""
    return Response(body, status, media_type=kind)


def failure(problem: BaseException) -> Response:
    """Return the answer for an error; one that is a fault of the program says its kind alone."""
    match problem:
        case Superseded():
            return respond(409, gate.error_body("superseded", "a newer request has overtaken this one"))
        case Busy() | TimeoutError():
            return respond(503, gate.error_body("busy", "the studio is busy; try again in a moment"))
        case LookupError():
            words = problem.args[0] if problem.args and isinstance(problem.args[0], str) else "not found"
            return respond(404, gate.error_body("unknown", clean(words)))
        case FileError() if "another process" in str(problem):
            return respond(409, gate.error_body("conflict", clean(str(problem))))
        case UnspoolError():
            return respond(400, gate.error_body("invalid", clean(str(problem))))
        case _:
            return respond(500, gate.error_body("internal", f"an internal error: {type(problem).__name__}"))


def body_as(kind: type[Any], request: Request) -> Any:
    """Return the body of a request as a value of a kind."""
    raw = request.scope["unspool.body"]
    try:
        content = parse_json(raw or b"{}", "the body")
    except FileError as problem:
        raise InputError(clean(str(problem))) from None
    return require_as(kind, content)


class Routes:
    """The routes of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.readings, self.unfoldings = held.Readings(), unfold_view.Unfoldings()
        self.closing = False
        self._unique = count()

    def posts(self) -> Mapping[str, Callable[[Request], Awaitable[Response]]]:
        """Return the routes that take a body."""
        s, r, u = self.session, self.readings, self.unfoldings
        views: dict[str, tuple[type[Any], Any, Tables | None]] = {
            "read": (asked.Read, partial(reading_view.read_answer, s, r), lambda a, q: reading_view.read_tables(r, a)),
            "at": (asked.AtStep, partial(reading_view.at_answer, s, r), partial(reading_view.at_tables, r)),
            "units": (asked.Units, partial(reading_view.units_answer, s, r), partial(reading_view.units_tables, r)),
            "unit": (asked.OneUnit, partial(reading_view.unit_answer, s, r), partial(reading_view.unit_tables, r)),
            "parameters": (asked.ShowParameters, partial(reading_view.parameters_answer, s, r), None),
            "generate": (asked.Generate, partial(reading_view.generate_answer, s, r), None),
            "vocabulary": (asked.Vocabulary, partial(reading_view.vocabulary_answer, s, r), None),
            "back": (asked.Back, partial(back_view.back_answer, s, r), partial(back_view.back_tables, r)),
            "memory": (memory_view.Memory, partial(memory_view.memory_answer, s, r), lambda a, q: memory_view.memory_tables(a)),
            "unfold": (asked.Unfold, partial(unfold_view.unfold_answer, s, u), lambda a, q: unfold_view.unfold_tables(a)),
            "weight": (asked.Weight, partial(unfold_view.weight_answer, s, u), lambda a, q: unfold_view.weight_tables(a)),
        }  # fmt: skip
        controls: dict[str, tuple[type[Any], Callable[[Any], Awaitable[dict[str, Any]]]]] = {
            "train": (asked.Train, self.train), "new": (asked.New, self.new), "fork": (asked.Fork, self.fork),
            "show": (asked.Show, self.show), "texts": (asked.NewText, self.texts),
        }  # fmt: skip
        found = {f"/api/{name}": partial(self._view, name, *each) for name, each in views.items()}
        return found | {f"/api/{name}": partial(self._control, *each) for name, each in controls.items()}

    def gets(self) -> dict[str, Callable[[Request], Awaitable[Response]]]:
        """Return the routes without a body: they change nothing."""
        return {
            "/api/state": self.state, "/api/stream": self.stream, "/api/learn": self.learn, "/api/options": self.options,
        }  # fmt: skip

    # Requests that compute.

    async def _view(
        self, name: str, kind: type[Any], view: View, tables: Tables | None, request: Request
    ) -> Response:
        try:
            asks, chart = body_as(kind, request), request.query_params.get("csv")
            tab = request.headers.get("x-unspool-tab", "")[:32]
            work = partial(_answered, asks, view, tables, chart)
            body = await self._waited(self.session.worker.submit((tab, name), work))
        except Exception as problem:
            return failure(problem)
        return respond(200, body, BINARY if chart is None else "text/csv; charset=utf-8")

    async def _waited(self, result: Future[Any], seconds: float = PATIENCE) -> Any:
        return await asyncio.wait_for(asyncio.wrap_future(result), seconds)

    async def _alone(self, work: Callable[[Job], Any]) -> Any:
        """Compute in the thread of requests, never overtaken."""
        return await self._waited(self.session.worker.submit(next(self._unique), work))

    # Controls.

    async def _control(
        self, kind: type[Any], control: Callable[[Any], Awaitable[dict[str, Any]]], request: Request
    ) -> Response:
        try:
            return respond(200, to_json(await control(body_as(kind, request))))
        except Exception as problem:
            return failure(problem)

    async def train(self, asks: asked.Train) -> dict[str, Any]:
        """Start, stop, one update, another pace."""
        run, trainer = self.session.run_of(asks.run), self.session.trainer
        if asks.pace is not None:
            asked.within("pace", asks.pace, 0.0, 10.0)
            run.pace = asks.pace
        if asks.action is not None:
            if run.status == "stored":
                await self._alone(lambda job: self.session.show(run))
            start = partial(trainer.start_run, run, 1 if asks.action == "one" else None)
            await self._started(trainer.call(trainer.stop_run if asks.action == "stop" else start))
        elif asks.pace is not None:
            trainer.call(lambda: None)
        return {"run": run.summary()}

    async def _started(self, result: Future[Any]) -> None:
        """Wait for a command; while a text is read it is carried out later."""
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(result)), 1.0)
        except TimeoutError:
            return

    async def new(self, asks: asked.New) -> dict[str, Any]:
        """Begin a new run."""
        text = self.session.texts.get(asks.text)
        if text is None:
            raise LookupError("no such text; the list of texts is in the state")
        run = self.session.new_run(text, asks.options)
        await self._started(
            self.session.trainer.call(partial(self.session.trainer.start_run, run, None if asks.start else 0))
        )
        return {"run": run.summary()}

    async def fork(self, asks: asked.Fork) -> dict[str, Any]:
        """Begin a run at an update of another one."""
        parent = self.session.run_of(asks.run)
        run: Run = await self._alone(lambda job: self.session.fork(parent, asks.update, asks.options))
        if asks.start:
            await self._started(self.session.trainer.call(partial(self.session.trainer.start_run, run)))
        return {"run": run.summary()}

    async def show(self, asks: asked.Show) -> dict[str, Any]:
        """Show another run."""
        run = self.session.run_of(asks.run)
        await self._alone(lambda job: self.session.show(run))
        return {"run": run.summary()}

    async def texts(self, asks: asked.NewText) -> dict[str, Any]:
        """Take a text."""
        name = clean(asks.name).replace("/", "-").replace("\\", "-").strip()[:80] or "pasted text"
        if name == "-" or name.startswith("builtin:"):
            raise InputError("name: choose another one")
        return {"text": self.session.add_text(name, clean(asks.content)).to_json()}

    # State.

    async def state(self, request: Request) -> Response:
        """Return everything, once."""
        return respond(200, to_json(frame(self.session, Client())))

    async def options(self, request: Request) -> Response:
        """Return what can be chosen."""
        limits = {
            "text_tokens": asked.TEXT_TOKENS, "edits": asked.MOST_EDITS, "tau": back_view.TAU, "draws": back_view.DRAWS,
            "unfold_tau": unfold_view.TAU, "unfold_hidden": unfold_view.HIDDEN, "body": gate.BODY, "text_body": gate.TEXT,
        }  # fmt: skip
        found = {
            "cells": list(CELLS), "patterns": list(PATTERNS), "activations": ACTIVATIONS, "optimisers": list(OPTIMISERS),
            "schedules": list(SCHEDULES), "options": [*OF_RECIPE, *OF_RUN, *OF_TEXT], "limits": limits,
        }  # fmt: skip
        return respond(200, to_json(found))

    async def learn(self, request: Request) -> Response:
        """Return the curves of one run."""
        try:
            run = self.session.run_of(request.query_params.get("run"))
            chart = request.query_params.get("csv")
            if chart is not None:
                tables = learn_tables(run)
                if chart not in tables:
                    raise InputError(f"csv is {clean(chart)!r}; expected one of {', '.join(tables)}")
                return respond(200, to_csv(tables[chart]), "text/csv; charset=utf-8")
        except Exception as problem:
            return failure(problem)
        found = {
            "curve": array(list(run.curve) or [[0.0] * 5][:0], "f8"), "points": list(run.points), "samples": list(run.samples),
            "baselines": [{"name": each.name, "nats": number(each.during.nats)} for each in run.baselines], "scores": run.scores,
        }  # fmt: skip
        return respond(200, to_json(found))

    async def stream(self, request: Request) -> Response:
        """Return frames while the client listens."""
        if request.method == "HEAD":
            return respond(200, b"", "text/event-stream")
        return StreamingResponse(self._frames(), media_type="text/event-stream")

    async def _frames(self) -> AsyncIterator[bytes]:
        client, quiet = Client(), 0.0
        while not self.closing:
            if client.version != self.session.version:
                content = frame(self.session, client)
                yield b"event: frame\nid: %d\ndata: %s\n\n" % (client.version, to_json(content))
                quiet = 0.0
            elif quiet >= BEAT:
                yield b": beat\n\n"
                quiet = 0.0
            await asyncio.sleep(OFTEN)
            quiet += OFTEN


def _answered(asks: Any, view: View, tables: Tables | None, chart: str | None, job: Job) -> bytes:
    """Compute an answer and write it in binary, or one of its charts as CSV."""
    answer = view(asks, job)
    if chart is None:
        return to_binary({"serial": asks.serial} | answer)
    found = {} if tables is None else tables(answer, asks)
    if chart not in found:
        raise InputError(
            f"csv is {clean(chart)!r}; expected one of {', '.join(found) or 'no chart: there is none'}"
        )
    return to_csv(found[chart])


def learn_tables(run: Run) -> dict[str, Any]:
    """Return the numbers of Learn as tables."""
    return {
        "curve": (("update", "loss", "train", "norm", "seconds"), list(run.curve)),
        "points": (("update", "train", "valid", "best"), list(run.points)),
        "lines": (("name", "nats"), [(each.name, each.during.nats) for each in run.baselines]),
    }
