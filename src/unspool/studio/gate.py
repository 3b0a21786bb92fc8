"""The gate: every request passes it before any route sees it, for every path and method.

    Host           exactly one, and it is 127.0.0.1:PORT or localhost:PORT        a foreign name that leads here is refused
    Origin         if present exactly one, http:// and one of these hosts        pages of other origins are refused
    Sec-Fetch-Site if present same-origin or none
    method         GET, HEAD, POST
    path           plain: no .., no %, no backslash
    token          a header with 256 bits, compared in constant time, for everything but the page's own files
    body           JSON of a bounded size that arrives within a bounded time; read here, so no route waits for it

The token travels in the fragment of the address, which a browser does not send. There are no cookies and no CORS headers.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unspool.studio.payload import to_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

METHODS = ("GET", "HEAD", "POST")
TOKEN, TAB = b"x-unspool-token", b"x-unspool-tab"
PATH = re.compile(rb"/[A-Za-z0-9._/-]{0,200}")
QUERY = re.compile(rb"[A-Za-z0-9=&_.-]{0,200}")
BODY, TEXT = 1 << 20, 16 << 20
"""Bytes of a body, and of one with a text to train on."""
TEXTS = "/api/texts"
DRAINED = 64 << 20
"""Bytes of a body that is too large which are read and dropped, so that the browser shows why it was refused."""
SLOW = 10.0
"""Seconds in which a body must arrive."""
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
        b"font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer."""


@dataclass(frozen=True)
class Refused(Exception):
    """A request that does not pass."""

    status: int
    code: str
    message: str


def error_body(code: str, message: str) -> bytes:
    """Return the JSON of an error."""
    return to_json({"error": {"code": code, "message": message}})


class Gate:
    """An ASGI application that lets requests through to another one."""

    def __init__(
        self, app: App, port: int, token: str, public: Callable[[str], bool], slow: float = SLOW
    ) -> None:
        """`public` says which paths are the page's own files."""
        self.app, self.public, self.slow = app, public, slow
        self.hosts = (f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode())
        self.token = token.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with its whole body."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        send = with_headers(send)
        try:
            self.check(scope)
            body = await self.body(scope, receive)
        except Refused as refused:
            return await refuse(send, refused)
        scope["unspool.body"] = body
        await self.app(scope, _after(receive), send)

    def check(self, scope: Scope) -> None:
        """Raise Refused for a request that does not pass."""
        hosts, origins = headers_of(scope, b"host"), headers_of(scope, b"origin")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            raise Refused(403, "host", "this address is not that of the studio; use the one that it printed")
        if len(origins) > 1 or not all(
            each in [b"http://" + host for host in self.hosts] for each in origins
        ):
            raise Refused(403, "origin", "requests of other pages are refused")
        sites = headers_of(scope, b"sec-fetch-site")
        if len(sites) > 1 or not all(each in (b"same-origin", b"none") for each in sites):
            raise Refused(403, "site", "requests of other pages are refused")
        if scope["method"] not in METHODS:
            raise Refused(405, "method", f"expected one of {', '.join(METHODS)}")
        raw, query = scope.get("raw_path") or scope["path"].encode(), scope.get("query_string", b"")
        if not PATH.fullmatch(raw) or b".." in raw or not QUERY.fullmatch(query):
            raise Refused(400, "path", "this path is not one of the studio")
        if not (scope["method"] in ("GET", "HEAD") and self.public(scope["path"])):
            self._check_token(scope)
        if scope["method"] == "POST":
            kinds = headers_of(scope, b"content-type")
            if len(kinds) != 1 or kinds[0].split(b";")[0].strip().lower() != b"application/json":
                raise Refused(415, "type", "expected a body of the type application/json")

    def _check_token(self, scope: Scope) -> None:
        tokens = headers_of(scope, TOKEN)
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self.token):
            raise Refused(
                401, "token", "the token is missing or wrong; open the address that the studio printed"
            )

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body; GET and HEAD have none."""
        most = 0 if scope["method"] != "POST" else TEXT if scope["path"] == TEXTS else BODY
        lengths = headers_of(scope, b"content-length")
        if lengths and not all(each.isdigit() and len(each) < 12 and int(each) <= most for each in lengths):
            with suppress(TimeoutError, Refused):
                await asyncio.wait_for(_whole(receive, DRAINED, keep=False), self.slow)
            raise Refused(413, "size", f"the body is too large; expected at most {most:,} bytes")
        try:
            return await asyncio.wait_for(_whole(receive, most), self.slow)
        except TimeoutError:
            raise Refused(408, "slow", "the body did not arrive in time") from None


async def _whole(receive: Receive, most: int, *, keep: bool = True) -> bytes:
    """Return a body; without `keep`, read and drop it."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "gone", "the connection was closed")
        part = message.get("body", b"")
        parts += [part] if keep else []
        size += len(part)
        if size > most:
            raise Refused(413, "size", f"the body is too large; expected at most {most:,} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


def headers_of(scope: Scope, name: bytes) -> list[bytes]:
    """Return the values of a header, in their order."""
    return [value for key, value in scope["headers"] if key.lower() == name]


def _after(receive: Receive) -> Receive:
    """Return what a route may wait for once the body was read: the end of the connection."""

    async def next_message() -> Message:
        return await receive()

    return next_message


def with_headers(send: Send) -> Send:
    """Add the headers of every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sending


async def refuse(send: Send, refused: Refused) -> None:
    """Send an error, and close the connection: what is left of a body is not read."""
    body = error_body(refused.code, refused.message)
    headers = [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close"),
    ]  # fmt: skip
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
