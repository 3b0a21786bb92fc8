"""Parse, run and compare the ```python and ```console blocks of the pages."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(python|console)( slow)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = 118
"""Columns of JSON that is shown in several lines."""
SAME_FIELDS_ONLY = "unspool demo"
"""Its text differs between versions of Python: only the names of its JSON fields are compared."""
VARYING = [
    (re.compile(r"[\d,.]+ s left"), "… s left"),
    (re.compile(r"· [\d,.]+ s\b"), "· … s"),
    (re.compile(r"[\d,.]+ tokens/s"), "… tokens/s"),
    (re.compile(r"[\d,.]+ (µs|ms) a token"), "… a token"),
    (re.compile(r"\bin [\d,.]+ (s|seconds|minutes)\b"), "in … s"),
    (re.compile(r"counts, [\d,.]+ s\)"), "counts, … s)"),
    (re.compile(r'"provenance": \{[^}]*\}'), '"provenance": …'),
    (re.compile(r"\b\d+ threads?, \w+"), "… threads"),
    (re.compile(r"--threads \d+"), "--threads …"),
    (re.compile(r"\bafter update [\d,]+"), "after update …"),
    (re.compile(r"\bfrom update [\d,]+ on"), "from update … on"),
    (re.compile(r"\b\d(\.\d+)?e-\d+"), "…"),  # rounding errors, of NumPy and PyTorch too
    (re.compile(r"(/tmp|/var/folders)/[\w./-]+"), "/tmp/…"),
    (re.compile(r'"(\w*seconds\w*|tokens_per_second|threads)": [\d.e+-]+'), r'"\1": …'),
    (re.compile(r'"isa": "\w+", "bf16": "\w+", "available": \[[^]]*\]'), '"isa": …'),
]
"""What differs between machines and moments, and what stands for it in a comparison."""


@dataclass(frozen=True)
class Example:
    """An example or a command as it stands on the page, and its output there."""

    source: str
    output: list[str]


@dataclass(frozen=True)
class Block:
    """A block of a page that can be run."""

    kind: str
    slow: bool
    examples: list[Example]

    @staticmethod
    def parse(match: re.Match[str]) -> "Block":
        """Split a block into examples and their outputs."""
        prompt, more = (">>> ", "...") if match[1] == "python" else ("$ ", None)
        found = list[Example]()
        open_source = False
        for line in match[3].split("\n")[:-1]:
            if line.startswith(prompt):
                found.append(Example(line, []))
            elif not found:
                raise SystemExit(f"a {match[1]} block starts with {line!r}; expected {prompt!r}")
            elif open_source if more is None else line.startswith(more) and not found[-1].output:
                found[-1] = Example(f"{found[-1].source}\n{line}", [])
            else:
                found[-1].output.append(line)
                continue
            open_source = line.endswith("\\")
        return Block(match[1], match[2] is not None, found)

    def run(self, example: Example, names: dict[str, Any]) -> list[str]:
        """Run one example; return the lines that it prints."""
        return printed(example, names) if self.kind == "python" else executed(example)

    def text(self, outputs: list[list[str]]) -> str:
        """Return the block with other outputs."""
        lines = [
            line for e, output in zip(self.examples, outputs, strict=True) for line in (e.source, *output)
        ]
        return "\n".join([f"```{self.kind}{' slow' * self.slow}", *lines, "```"])


def printed(example: Example, names: dict[str, Any]) -> list[str]:
    """Run a Python example; an exception is printed as doctest expects it."""
    output = io.StringIO()
    code = "\n".join(line[4:] for line in example.source.split("\n")) + "\n"
    with contextlib.redirect_stdout(output):
        try:
            exec(compile(code, "page", "single"), names)
        except Exception as error:
            if example.output[:1] != ["Traceback (most recent call last):"]:
                error.add_note(example.source)
                raise
            print("Traceback (most recent call last):")
            print("".join(traceback.format_exception_only(error)), end="")
    return output.getvalue().rstrip("\n").split("\n") if output.getvalue() else []


def executed(example: Example) -> list[str]:
    """Run a shell command with this Python's programs; return both of its outputs, JSON shortened."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {
        "PATH": programs,
        "PYTHONUNBUFFERED": "1",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }
    environment.pop("COLUMNS", None)
    done = subprocess.run(
        ["bash", "-c", example.source[2:]],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8",
    )  # fmt: skip
    if done.returncode:
        print(f"exit code {done.returncode}: {example.source}", file=sys.stderr)
    lines = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")] if done.stdout else []
    if len(lines) == 1 and lines[0].startswith("{") and "--json" in example.source:
        return in_lines(shortened(json.loads(lines[0])))
    return lines


def in_lines(text: str) -> list[str]:
    """Break a long text at blanks."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)


def shortened(value: Any, depth: int = 0) -> str:
    """Return JSON with four digits per number, the first items of lists and the first fields of inner objects."""
    if isinstance(value, dict):
        shown = list(value.items())[: (len(value), 8)[depth] if depth < 2 else 4]
        parts = [f"{json.dumps(name)}: {shortened(each, depth + 1)}" for name, each in shown]
        return "{" + ", ".join(parts + ["…"] * (len(shown) < len(value))) + "}"
    if isinstance(value, list):
        inner = any(isinstance(each, dict | list) for each in value)
        shown_items = value[:1] if inner else value if len(value) <= 3 else value[:2]
        parts = [shortened(each, depth + 1) for each in shown_items]
        return "[" + ", ".join(parts + ["…"] * (len(shown_items) < len(value))) + "]"
    if isinstance(value, float):
        return json.dumps(float(f"{value:.4g}"))
    if isinstance(value, str) and len(value) > 40:
        return json.dumps(value[:40], ensure_ascii=False)[:-1] + ' …"'
    return json.dumps(value, ensure_ascii=False)


def normalised(source: str, output: list[str]) -> list[str]:
    """Return an output without what differs between machines and moments."""
    if "--json" in source and output and output[0].startswith("{"):
        joined = " ".join(line.strip() for line in output)
        if source.startswith(f"$ {SAME_FIELDS_ONLY}"):
            return re.findall(r'"(\w+)":', joined)
        output = [joined]
    lines = list[str]()
    for line in output:
        if line == "    ...":  # stands for the lines of a traceback
            continue
        kept = line.rstrip()
        for pattern, replacement in VARYING:
            kept = pattern.sub(replacement, kept)
        lines.append(kept if kept == line.rstrip() else " ".join(kept.split()))
    return lines
