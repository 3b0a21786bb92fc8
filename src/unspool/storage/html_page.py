"""An HTML page that is complete in itself: one file that opens from disk, and a notebook shows it inline."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from unspool.storage.files import as_path, write_atomic

HEIGHT = 900
"""Pixels of the frame in a notebook."""


@dataclass(frozen=True)
class HtmlPage:
    """A page; as the last value of a notebook's cell, it is displayed.

    >>> page = HtmlPage("<!doctype html><p>h(t)")
    >>> "<p>" in page._repr_html_(), "&lt;p&gt;" in page._repr_html_()
    (False, True)
    """

    html: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the page to a file atomically; an existing file is replaced."""
        write_atomic(as_path(path), self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        """Return a frame for a notebook: its scripts run, but cannot reach the notebook."""
        return (
            f'<iframe title="unspool inspect" sandbox="allow-scripts allow-downloads" width="100%" height="{HEIGHT}" '
            f'style="border:0" srcdoc="{escape(self.html)}"></iframe>'
        )
