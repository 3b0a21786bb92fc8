"""Read a text whose lines are sequences of their own.

    sources ─▶ lines without the blank ones ─▶ (shuffled, split) ─▶ \\n line \\n line \\n … line \\n

Every part of the text starts with a line end: it stands for the beginning of the first line. So the tokens of a line are read
after the line end before them, and the targets are all tokens but the first of the part: each line is scored from its first
token to its line end.
"""

import io
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unspool.data.text.decoding import iter_bytes, iter_text
from unspool.data.text.parts import split_for
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import Source, source_names
from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Ids, Whole

END = "\n"
SEED = 0
"""The order of the lines is the same for every run: so is its split."""


def line_source(sources: list[Source], settings: TextConfig, *, as_bytes: bool) -> list[Source]:
    """Return sources as one of their lines; nothing where there is no source."""
    return _sources(source_names(sources), _lines(sources, settings, as_bytes)) if sources else []


def split_lines(sources: list[Source], settings: TextConfig, *, as_bytes: bool) -> list[list[Source]]:
    """Return the lines of sources, shuffled, as one source per split.

    >>> from unspool.data.text.source import text_source
    >>> parts = split_lines([text_source("a\\nb\\n\\nc\\nd")], TextConfig(lines=True, split=(0.5, 0.25, 0.25)), as_bytes=False)
    >>> [source.data.getvalue() for (source,) in parts]
    [b'\\nc\\na\\n', b'\\nb\\n', b'\\nd\\n']
    """
    lines, name = _lines(sources, settings, as_bytes), source_names(sources)
    order = np.random.default_rng(SEED).permutation(len(lines)).tolist()
    fractions = settings.split or split_for(sum(map(len, lines)))
    cuts = [0, *(int(len(lines) * share + 1e-6) for share in np.cumsum(fractions[:2])), len(lines)]
    if not cuts[1]:
        raise EmptyInput(f"{name}: too short to split: of {len(lines)} lines none is left for training")
    return [_sources(name, [lines[i] for i in order[begin:end]]) for begin, end in pairwise(cuts)]


def _lines(sources: list[Source], settings: TextConfig, as_bytes: bool) -> list[bytes]:
    found = list[bytes]()
    for source in sources:
        if as_bytes:
            data = b"".join(iter_bytes([source], "lf"))
        else:
            text = "".join(iter_text([source], settings.errors, "lf"))
            data = text.encode("utf-8", "surrogatepass")
        found += [line for line in data.split(b"\n") if line.strip()]
    if not found:
        raise EmptyInput(f"{source_names(sources)}: empty, there is no line with text in it")
    return found


def _sources(name: str, lines: Sequence[bytes]) -> list[Source]:
    return [Source(name, data=io.BytesIO(b"\n" + b"\n".join(lines) + b"\n"))] if lines else []


def line_spans(ids: Ids, end: int) -> tuple[Whole, Whole]:
    """Return the start and the number of targets of each line of ids that begin and end with the token `end`.

    Line i is read as ids[start : start + n], and its targets are the ids after these.

    >>> line_spans(np.array([0, 5, 6, 0, 7, 0], np.int32), end=0)
    (array([0, 3]), array([3, 2]))
    """
    at = np.flatnonzero(np.asarray(ids) == end)
    if not len(at) or at[0] != 0 or at[-1] != len(ids) - 1:
        raise InputError("lines: the ids must begin and end with the token of a line end")
    return at[:-1], np.diff(at)
