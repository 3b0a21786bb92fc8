"""The studio's page as one HTML file that opens from disk: the same modules and styles, with recorded numbers.

    index.html ─▶ styles, in their order ─▶ <style>     ─┐
    main.js    ─▶ modules, imports first ─▶ <script>    ─┼─▶ one file; its policy allows these two by their hashes
    numbers    ─▶ JSON without <         ─▶ a data block ┘

A module becomes a function that returns what it exports: `import` does not work in a file from disk.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from unspool.studio.payload import to_json

PAGE = Path(__file__).with_name("page")
EMPTY = '<script type="application/json" id="frozen">null</script>'
"""The data block of a page without numbers: `save.js` fills it."""
IMPORT = re.compile(r'^import \{(.*?)\} from "(.*?)";$', re.M)
EXPORT = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.M)
STYLESHEET = re.compile(r'<link rel="stylesheet" href="/(.*?)">')


def frozen_page(numbers: Any = None, title: str = "unspool", folder: Path = PAGE) -> str:
    """Return the page with its numbers; None leaves the data block empty.

    >>> page = frozen_page({"text": "</script>"}, "a & b")
    >>> page.count("</script>"), "<title>a &amp; b</title>" in page, "import {" in page
    (2, True, False)
    """
    data = EMPTY.replace("null", to_json(numbers).decode().replace("<", "\\u003c"))
    head, body = _shell(folder)
    return head.format(title=escape(title)) + data + body


@cache
def _shell(folder: Path) -> tuple[str, str]:
    """Return what stands before and after the numbers."""
    index = _read(folder, "index.html")
    style = "\n".join(_read(folder, path) for path in STYLESHEET.findall(index))
    modules: dict[str, str] = {}
    _add_module(folder, "main.js", modules)
    script = '"use strict";\nconst modules = {};\n' + "\n".join(modules.values())
    script = script.replace("</script", "<\\/script")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        '<link rel="icon" href="data:,"><style>'
    )
    return head + style.replace("{", "{{").replace("}", "}}") + "</style></head><body>", (
        f"<script>{script}</script></body></html>\n"
    )


def _add_module(folder: Path, path: str, modules: dict[str, str]) -> None:
    """Add a module after those that it imports."""
    if path in modules:
        return
    source = _read(folder, path)

    def place(given: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), given))

    for _, given in IMPORT.findall(source):
        _add_module(folder, place(given), modules)
    names = EXPORT.findall(source)
    body = IMPORT.sub(
        lambda found: (
            f'const {{{found[1].replace(" as ", ": ")}}} = modules["{place(found[2])}"];'
        ), source,
    )  # fmt: skip
    body = re.sub(r"^export ", "", body, flags=re.M)
    modules[path] = f'modules["{path}"] = (() => {{\n{body}\nreturn {{ {", ".join(names)} }};\n}})();'


def _read(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
