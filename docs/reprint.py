"""Print anew what the Python blocks of a page print, and show the same blocks in its Chinese twin.

    python docs/reprint.py README.md docs/walk.md

For a change that is meant to change numbers: read the difference before keeping it.
"""

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"```python\n(.*?)\n```", re.DOTALL)


def examples(block: str) -> list[list[str]]:
    """Give the lines of each example, without what it printed."""
    found: list[list[str]] = []
    for line in block.split("\n"):
        if line.startswith(">>> "):
            found.append([line])
        elif line.startswith("... ") or line == "...":
            found[-1].append(line)
    return found


def printed(example: list[str], names: dict[str, Any]) -> list[str]:
    """Run one example and give what it prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile("\n".join(line[4:] for line in example) + "\n", "page", "single"), names)
    return output.getvalue().rstrip("\n").split("\n") if output.getvalue() else []


def reprint(page: Path) -> None:
    """Write a page and its twin."""
    names: dict[str, Any] = {}

    def anew(match: re.Match[str]) -> str:
        lines = [line for each in examples(match[1]) for line in (*each, *printed(each, names))]
        return "\n".join(["```python", *lines, "```"])

    text = BLOCK.sub(anew, page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    twin, blocks = page.with_name(page.name.replace(".md", ".zh-CN.md")), BLOCK.finditer(text)
    twin.write_text(BLOCK.sub(lambda _: next(blocks)[0], twin.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        reprint(Path(name))
