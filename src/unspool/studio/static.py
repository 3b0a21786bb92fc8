"""The page's own files, read once when the server starts: a request finds them by their exact name and never opens a path."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

from unspool.studio.frozen import PAGE, frozen_page

TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".json": "application/json", ".png": "image/png", ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
FROZEN = "/frozen.html"
"""The page without a server and without numbers: "Save this view" fills it."""


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    compressed: bytes
    """The content by gzip: what a browser receives."""
    type: str


def page_files(folder: Path = PAGE) -> dict[str, File]:
    """Return the files of the page by their path in the address; / is index.html."""
    found = {
        "/" + path.relative_to(folder).as_posix(): _file(path.read_bytes(), path.suffix)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in TYPES
    }
    if "/index.html" not in found:
        return found
    empty = _file(frozen_page(folder=folder).encode(), ".html")
    return found | {"/": found["/index.html"], FROZEN: empty}


def _file(content: bytes, ending: str) -> File:
    return File(content, gzip.compress(content, mtime=0), TYPES[ending])
