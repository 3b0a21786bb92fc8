"""Nothing passes the gate that is not the page's own: every kind of bad request on every route, over raw sockets."""

import gzip
import json
import socket
import time

import pytest

from studio_client import TEXT, studio
from unspool.studio import gate, server
from unspool.studio.gate import HEADERS
from unspool.studio.static import FROZEN, page_files


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A studio that waits only briefly for a body."""
    before, server.application.__defaults__ = server.application.__defaults__, (0.1,)
    try:
        with studio(tmp_path_factory.mktemp("gate")) as client:
            server.application.__defaults__ = before  # for the studios that other tests start meanwhile
            client.new(start=False, steps=20)
            client.wait("paused")
            yield client
    finally:
        server.application.__defaults__ = before


def send(client, data, wait=10.0):
    """Send bytes; return the status, the headers and the body of the answer; 0 if the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", client.studio.port), timeout=wait) as connection:
        connection.sendall(data)
        found = b""
        while True:
            try:
                part = connection.recv(65536)
            except ConnectionError:
                break
            found += part
            head, _, body = found.partition(b"\r\n\r\n")
            length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if (
                not part
                or (data.startswith(b"HEAD") and b"\r\n\r\n" in found)
                or (length and len(body) >= int(length[0].split(b":")[1]))
            ):
                break
    head, _, body = found.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    return int(lines[0].split()[1]) if found else 0, [line.lower() for line in lines[1:]], body


def request(
    client, method="GET", path="/api/state", *, host=None, token=True, body=None, more=(), length=None
):
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1"]
    hosts = [f"127.0.0.1:{client.studio.port}"] if host is None else host
    lines += [f"Host: {each}" for each in hosts]
    lines += (
        [f"X-Unspool-Token: {client.studio.token}"]
        if token is True
        else [f"X-Unspool-Token: {token}"]
        if token
        else []
    )
    content = b"" if body is None else json.dumps(body).encode() if not isinstance(body, bytes) else body
    if body is not None:
        lines += [
            "Content-Type: application/json",
            f"Content-Length: {len(content) if length is None else length}",
        ]
    return "\r\n".join([*lines, *more, "", ""]).encode() + content


BODIES = {
    "/api/train": {"action": "one"}, "/api/new": {"text": "t1", "start": False}, "/api/fork": {"update": 0},
    "/api/show": {"run": "r1"}, "/api/texts": {"name": "a", "content": "words"}, "/api/read": {"text": "the time"},
    "/api/at": {"reading": "g1", "t": 0}, "/api/units": {"reading": "g1"}, "/api/unit": {"reading": "g1", "name": "h0"},
    "/api/memory": {"text": "the time"}, "/api/parameters": {}, "/api/generate": {}, "/api/vocabulary": {}, "/api/back": {"text": "the time"},
    "/api/unfold": {"text": "the time"}, "/api/weight": {"unfolding": "u1", "name": "c", "index": [0]},
}  # fmt: skip
GETS = ["/api/state", "/api/stream", "/api/learn", "/api/options"]
FILES = list(page_files())
ROUTES = [*GETS, *BODIES, "/main.js", "/api/none", "/none.js"]
"""One of the page's files stands for all: they share one handler behind the gate."""


def test_the_matrix_has_every_route(quick):
    routes = quick.studio.routes
    assert (
        set(routes.posts()) == set(BODIES)
        and set(routes.gets()) == set(GETS)
        and {"/", "/main.js"} <= set(FILES)
    )


def test_files_are_sent_compressed_to_those_who_ask_for_it(quick):
    for path, file in page_files().items():
        assert quick.raw("GET", path) == (200, file.content)
        assert quick.raw("GET", path, **{"Accept-Encoding": "gzip"}) == (200, file.compressed)
        assert gzip.decompress(file.compressed) == file.content
    page = {
        path: file for path, file in page_files().items() if path != FROZEN
    }  # the frozen page has the same files again
    assert sum(len(file.compressed) for file in page.values()) <= 200_000


def bad(client, route):
    """Yield each bad request of a route, and the statuses that refuse it."""
    port, body = client.studio.port, BODIES.get(route)
    method = "GET" if body is None else "POST"

    def made(**more):
        return request(client, **{"method": method, "path": route, "body": body} | more)

    foreign = ["evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", f"0.0.0.0:{port}",
               f"[::1]:{port}", f"127.0.0.1:{port}.evil.example", f"LOCALHOST:{port}@evil.example"]  # fmt: skip
    if route not in FILES:
        yield "no token", made(token=None), {401}
        yield "wrong token", made(token="0" * 64), {401}
        yield "short token", made(token=client.studio.token[:-1]), {401}
        yield "two tokens", made(more=[f"X-Unspool-Token: {client.studio.token}"]), {401}
        yield (
            "token in the query",
            request(client, method, f"{route}?token={client.studio.token}", token=None, body=body),
            {401},
        )
    for name in foreign:
        yield f"host {name}", made(host=[name]), {403}
    yield "host empty", made(host=[""]), {400, 403}
    yield "host missing", made(host=[]), {400, 403}
    yield "host doubled", made(host=[f"127.0.0.1:{port}"] * 2), {400, 403}
    for origin in (
        "null",
        "http://evil.example",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port + 1}",
        "",
        f"http://127.0.0.1:{port}/",
    ):
        yield f"origin {origin}", made(more=[f"Origin: {origin}"]), {403}
    yield "two origins", made(more=[f"Origin: http://127.0.0.1:{port}"] * 2), {403}
    for site in ("cross-site", "same-site", "", "same-origin, cross-site"):
        yield f"site {site}", made(more=[f"Sec-Fetch-Site: {site}"]), {403}
    for other in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"):
        yield other, made(method=other), {400, 405}
    for path in (
        f"{route}/../x",
        f"/..{route}",
        f"{route}%2e%2e",
        f"{route}\\..",
        f"{route}?a=<",
        f"http://evil.example{route}",
    ):
        yield f"path {path}", made(path=path), {400, 401}
    large = gate.TEXT if route == gate.TEXTS else gate.BODY
    yield (
        "declared too large",
        made(method="POST", body=b"{", length=large + 1),
        {413, *((401, 405) if body is None else ())},
    )
    if body is not None:
        yield "slow body", made(body=b"{", length=100), {408}
        yield (
            "chunked, no end",
            made(body=None, more=["Content-Type: application/json", "Transfer-Encoding: chunked"]),
            {408},
        )
        yield "form", made(body=None, more=["Content-Type: text/plain", "Content-Length: 2"]) + b"{}", {415}
        yield "get", request(client, "GET", route), {405}
        yield "head", request(client, "HEAD", route), {405}
    else:
        yield (
            "post",
            request(client, "POST", route, body={}),
            {405} if route not in ("/api/none", "/none.js") else {404},
        )


@pytest.mark.parametrize("route", ROUTES)
def test_a_bad_request_is_refused_and_changes_nothing(quick, route):
    run = quick.session.run_of("r1")
    before = (
        quick.sha256(),
        run.step,
        run.status,
        len(quick.session.runs),
        len(quick.session.texts),
        run.pace,
    )
    for what, data, expected in bad(quick, route):
        status, headers, body = send(quick, data)
        assert status in expected, f"{what}: {status} {body[:200]!r}"
        assert not any(line.startswith((b"set-cookie", b"access-control-")) for line in headers), what
    assert before == (
        quick.sha256(),
        run.step,
        run.status,
        len(quick.session.runs),
        len(quick.session.texts),
        run.pace,
    )


def test_a_body_that_is_larger_than_it_says_or_than_may_be_is_refused(quick):
    content = b'{"text": "' + b"a" * (gate.BODY + 10) + b'"}'
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
    chunked = request(
        quick, "POST", "/api/read", more=["Content-Type: application/json", "Transfer-Encoding: chunked"]
    )
    assert send(quick, chunked + chunk)[0] == 413
    assert send(quick, request(quick, "GET", "/api/state", body=b"{}"))[0] == 413


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/options", "/none", "/api/none"])
def test_every_answer_has_the_headers_that_protect_the_page(quick, path):
    for token in (True, None):
        status, headers, body = send(quick, request(quick, path=path, token=token))
        for name, value in HEADERS:
            assert (name + b": " + value).lower() in headers
        assert status == (200 if path == "/" or (token and "none" not in path) else 404 if token else 401)
        assert quick.studio.token.encode() not in body
        assert not any(line.startswith((b"server:", b"set-cookie")) for line in headers)


def test_a_good_request_passes_from_both_names_of_this_machine(quick):
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{quick.studio.port}"
        more = [f"Origin: http://{host}", "Sec-Fetch-Site: same-origin"]
        assert send(quick, request(quick, host=[host], more=more))[0] == 200
        assert (
            send(quick, request(quick, "HEAD", "/", host=[host], token=None, more=["Sec-Fetch-Site: none"]))[
                0
            ]
            == 200
        )


def test_get_and_head_change_nothing(quick):
    before = quick.get("/api/state")
    for path in ("/api/learn", "/api/options", "/api/state"):
        assert (
            send(quick, request(quick, path=path))[0]
            == send(quick, request(quick, "HEAD", path), 1)[0]
            == 200
        )
    after = quick.get("/api/state")
    assert before == after


def test_the_socket_is_bound_to_this_machine_alone_and_tokens_are_never_used_twice(quick, tmp_path):
    assert quick.studio.socket.getsockname()[0] == "127.0.0.1"
    with studio(tmp_path) as other:
        assert other.studio.token != quick.studio.token and len(other.studio.token) == 64
        assert other.studio.port != quick.studio.port


def test_a_connection_that_says_nothing_is_closed(quick, monkeypatch):
    monkeypatch.setattr(server, "IDLE", 0.2)
    with socket.create_connection(("127.0.0.1", quick.studio.port), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost:")
        begin = time.monotonic()
        assert connection.recv(10) == b"" and time.monotonic() - begin < 5


ODD = {
    "script": "<script>alert(1)</script>" * 3, "bidi": "abc\u202etxt.exe\u2066 def", "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 time 😀", "nul": "a\0b\0c",
    "formula": "=1+1\n@x", "surrogate": "ab\udc80cd", "newlines": "a\r\nb\rc\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_odd_text_is_read_as_it_is(quick, name):
    read = quick.post("/api/read", text=ODD[name])
    assert "".join(read["pieces"]) == ODD[name].replace("\udc80", "\ufffd")
    assert quick.raw("POST", "/api/read?csv=surprise", {"text": ODD[name]})[0] == 200
    assert quick.raw("POST", "/api/texts", {"name": ODD[name], "content": ODD[name]})[0] == 200
    assert quick.raw("POST", "/api/unfold", {"text": ODD[name], "of": "demo"})[0] == 200
    quick.get("/api/state")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/read", {"text": ""}, 400),
        ("/api/read", {"text": "ab" * 3000}, 400),
        ("/api/texts", {"name": "x", "content": " \n"}, 400),
        ("/api/texts", {"name": "builtin:python-source", "content": "a"}, 400),
        ("/api/new", {"text": "t1", "options": {"start": "/etc"}}, 400),
        ("/api/new", {"text": "t1", "options": {"tokens": "subword:/etc/passwd"}}, 400),
        ("/api/new", {"text": "/etc/passwd"}, 404),
        ("/api/show", {"run": "../run1"}, 404),
        ("/api/read", {"text": "ab", "run": "/etc"}, 404),
        ("/api/at", {"reading": "g999", "t": 0}, 404),
        ("/api/read", {"text": "abc", "surplus": 1}, 400),
        ("/api/read", {"text": 5}, 400),
        ("/api/read", {"text": "abc", "edits": [{}] * 65}, 400),
        ("/api/back", {"text": "time and", "tau": 65}, 400),
        ("/api/back", {"text": "time and", "scale": 1e300}, 400),
        ("/api/back", {"text": "time and", "kinds": ["random:0"]}, 400),
        ("/api/unfold", {"text": "time and", "tau": 13}, 400),
        ("/api/unfold", {"text": "time and", "of": "demo", "hidden": 17}, 400),
        ("/api/unfold", {"text": "time and", "of": "demo", "cell": "<b>"}, 400),
        ("/api/generate", {"length": 10**9}, 400),
    ],
)
def test_a_body_that_makes_no_sense_gets_one_line(quick, path, body, status):
    found, answer = quick.raw("POST", path, body)
    message = json.loads(answer)["error"]["message"]
    assert found == status and message and "\n" not in message and "Traceback" not in message


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b"{", b"nan", b'{"text": NaN}', b"\xff", b"[" * 5000, b'"x"']
)
def test_a_body_that_is_no_object_is_refused(quick, content):
    status, _, body = send(quick, request(quick, "POST", "/api/read", body=content))
    assert status == 400 and json.loads(body)["error"]["code"] == "invalid"


def test_a_text_to_train_on_may_have_ten_megabytes(ended):
    content = TEXT * (10_000_000 // len(TEXT))
    text = ended.post("/api/texts", name="large", content=content)["text"]
    assert text["characters"] == len(content)
    del ended.session.texts[text["id"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/read", {"text": "a" * 10_000_000}),
        ("/api/texts", {"name": "x", "content": "a" * (gate.TEXT + 1)}),
    ],
)
def test_a_text_that_is_too_large_is_refused_with_one_line(ended, path, body):
    status, answer = ended.raw("POST", path, body)
    assert status == 413 and "too large" in json.loads(answer)["error"]["message"]
