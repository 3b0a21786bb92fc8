"""Serve the studio on loopback: the gate, the page's own files, the routes, the stream.

socket 127.0.0.1 ─▶ uvicorn ─▶ gate ─▶ routes ─▶ the thread of requests, the thread that trains
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from unspool.errors import InputError
from unspool.studio import gate
from unspool.studio.routes import Routes, respond
from unspool.studio.session import Session
from unspool.studio.static import File, page_files

HOST = "127.0.0.1"
IDLE = 10.0
"""Seconds in which a connection must begin a request."""
CONNECTIONS = 128
HEADER = 16 << 10
"""Bytes of the headers of a request."""


class _Protocol(H11Protocol):
    """HTTP/1.1 with a time limit for the headers of the first request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit = self.loop.call_later(IDLE, self._expire)

    def _expire(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def open_socket(port: int) -> socket.socket:
    """Return a socket of this machine alone; port 0 is any free one."""
    if not 0 <= port < 65536:
        raise InputError(f"port is {port}; expected 0 (any free one) to 65535")
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise InputError(
            f"port {port} cannot be used: {error.strerror}; choose port 0 for a free one"
        ) from None
    return found


def application(
    session: Session, routes: Routes, port: int, token: str, slow: float = gate.SLOW
) -> gate.Gate:
    """Return the application behind its gate."""
    files = page_files()

    async def page(request: Request) -> Response:
        file: File = files[request.url.path]
        answer = respond(200, b"" if request.method == "HEAD" else file.content, file.type)
        if request.method != "HEAD" and "gzip" in request.headers.get("accept-encoding", ""):
            answer = respond(200, file.compressed, file.type)
            answer.headers["content-encoding"] = "gzip"
        answer.headers["vary"] = "accept-encoding"
        return answer

    async def other(request: Request) -> Response:
        if request.url.path in known:
            return respond(405, gate.error_body("method", "this path takes another method"))
        return respond(404, gate.error_body("unknown", "this path is not one of the studio"))

    listed = [Route(path, page, methods=["GET"]) for path in files]
    listed += [Route(path, each, methods=["GET"]) for path, each in routes.gets().items()]
    listed += [Route(path, each, methods=["POST"]) for path, each in routes.posts().items()]
    known = {each.path for each in listed}
    listed.append(Route("/{path:path}", other, methods=["GET", "POST"]))
    return gate.Gate(Starlette(routes=listed), port, token, lambda path: path in files, slow)


class Studio:
    """One server with its address."""

    def __init__(self, session: Session, port: int = 0, token: str | None = None) -> None:
        self.session, self.routes = session, Routes(session)
        self.socket = open_socket(port)
        self.port: int = self.socket.getsockname()[1]
        self.token = token or secrets.token_hex(32)
        app: Any = application(session, self.routes, self.port, self.token)
        config = uvicorn.Config(
            app, http=_Protocol, ws="none", lifespan="off", log_config=None,
            log_level="critical", access_log=False, server_header=False,
            date_header=False, proxy_headers=False, limit_concurrency=CONNECTIONS, timeout_keep_alive=30,
            timeout_graceful_shutdown=2, h11_max_incomplete_event_size=HEADER,
        )  # fmt: skip
        self.server = _Server(config)

    @property
    def address(self) -> str:
        """The address with the token in its fragment."""
        return f"http://{HOST}:{self.port}/#token={self.token}"

    def serve(self, stop: Callable[[], bool], ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop` returns True; then save the run that is trained."""
        self.session.begin()
        try:
            asyncio.run(self._serve(stop, ready))
        finally:
            self.routes.closing = True
            self.session.close()
            self.socket.close()

    async def _serve(self, stop: Callable[[], bool], ready: Callable[[], None]) -> None:
        async def watch() -> None:
            while not self.server.started and not self.server.should_exit:
                await asyncio.sleep(0.01)
            ready()
            while not stop():
                await asyncio.sleep(0.1)
            self.routes.closing = self.server.should_exit = True

        watching = asyncio.create_task(watch())
        await self.server.serve(sockets=[self.socket])
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


@contextmanager
def serving(session: Session, port: int = 0) -> Iterator[Studio]:
    """Serve in a thread, for tests and notebooks."""
    studio, ends, ready = Studio(session, port), threading.Event(), threading.Event()
    thread = threading.Thread(target=studio.serve, args=(ends.is_set, ready.set), daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield studio
    finally:
        ends.set()
        thread.join()
