"""``unspool stats``: what can be said about a text by counting."""

import json as jsonlib
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from unspool.baselines.statistics import Statistics, describe_corpus
from unspool.cli.checks import check_plot
from unspool.cli.options import OfText, Replacing, option_class
from unspool.cli.outputs import output
from unspool.cli.sources import Reading, Sources, files_read
from unspool.cli.terminal import terminal
from unspool.data.options import SPLIT, Split
from unspool.data.text.corpus import Corpus, prepare
from unspool.errors import InputError
from unspool.plots.zipf import draw_zipf
from unspool.storage import run_folder

Plain = Parameter(negative="")
"""Without a second option that takes the first one back."""


@option_class
class Parts(Reading):
    """How the text is read, and what it is tested by."""

    test: OfText[str | None] = None
    """A file that is the test part; TEXT is the training part then."""
    split: Split = SPLIT.field(
        (0.9, 0.05, 0.05), help="Fractions of the tokens for train, valid and test, in order."
    )


def stats(
    text: Sources,
    /,
    *,
    reading: Parts = Parts(),
    order: int = 3,
    eps: Annotated[tuple[float, ...], Parameter(negative="", consume_multiple=True)] = (1.0, 1.0, 1.0),
    ranks: Annotated[tuple[int, int] | None, Plain] = None,
    top: int = 10,
    backward: Annotated[bool, Plain] = False,
    cache: Path | None = None,
    json: Annotated[bool, Plain] = False,
    plot: Path | None = None,
    replacing: Replacing = Replacing(),
) -> None:
    """Count a text: sizes, frequent tokens, Zipf's law, unseen n-grams, how well n-grams predict it.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source.
    order
        The longest n-grams.
    eps
        The weights of Laplace smoothing for n = 1, 2, 3.
    ranks
        The first and last rank of the Zipf fit [default: 1 and the last with a frequency of at least 5].
    top
        How many of the most frequent tokens to show.
    backward
        Predict the test part in reverse time as well.
    cache
        A folder where the prepared text is kept and found again.
    json
        Print JSON.
    plot
        Draw frequencies against ranks into this file (.png, .svg, .pdf).
    """
    if top < 0:
        raise InputError(f"top: expected 0 or more, got {top}")
    inputs = files_read(text, reading.valid, reading.test, reading.tokens)
    check_plot(plot, force=replacing.force, inputs=inputs, folder=cache)
    if cache is not None:
        run_folder.check_place(cache / "text", "--cache")
    corpus = prepare(text, cache=cache, **asdict(reading))
    found = describe_corpus(corpus, order, eps, ranks, top, backward)
    if plot is not None:
        title = ", ".join(Path(name).name for name in text)
        with output(plot, force=replacing.force) as path:
            draw_zipf(found.frequencies[:3], found.zipf[:3], path, title=title)
    if json:
        print(jsonlib.dumps(_as_json(corpus, found), ensure_ascii=False))
    else:
        _print(terminal(), corpus, found)


def _as_json(corpus: Corpus, found: Statistics) -> dict[str, Any]:
    content = asdict(found)
    del content["frequencies"]
    for score, row in zip(found.scores, content["scores"], strict=True):
        row |= row.pop("measure")
        row["perplexity"] = score.measure.perplexity
        row["bits_per_character"] = score.measure.bits_per_character
        row["bits_per_byte"] = score.measure.bits_per_byte
    settings = asdict(corpus.settings) | {"erased_letters": corpus.erased}
    finite: dict[str, Any] = _finite({"settings": settings} | content)
    return finite


def _finite(value: Any) -> Any:
    """Write infinity as a string: JSON has no such number."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _print(console: Console, corpus: Corpus, found: Statistics) -> None:
    if corpus.erased:
        console.print(f"cleaning erased {corpus.erased:,} letters that are not A-Z")
    parts = _table("part", "tokens", "types", "characters", "bytes", "unknown")
    for part in found.parts:
        sizes = (part.tokens, part.types, part.characters, part.bytes)
        parts.add_row(
            part.name, *(f"{size:,}" for size in sizes), f"{part.unknown:,} ({part.unknown_rate:.2%})"
        )
    console.print(parts)
    console.print(f"vocabulary of the training part: {found.vocabulary:,} with <unk>")
    frequent = "  ".join(f"{token!r} {count:,}" for token, count in found.most_frequent)
    console.print(f"most frequent: {frequent}\n", markup=False, soft_wrap=True)
    console.print(_zipf_table(found), "")
    if not found.scores:
        console.print("the test part has fewer than two tokens, so there is nothing to predict")
        return
    console.print(_unseen_table(found), "")
    console.print(_score_table(found))
    if corpus.test.unknown:
        console.print(
            "tokens outside the vocabulary are scored as <unk>; spelling them out would cost more bits"
        )


def _zipf_table(found: Statistics) -> Table:
    table = _table("Zipf", "types", "ranks", "α, 95 % interval", "c, 95 % interval")
    for n, fit in enumerate(found.zipf, 1):
        alpha_error = (fit.alpha_interval[1] - fit.alpha_interval[0]) / 2
        c_error = (fit.c_interval[1] - fit.c_interval[0]) / 2
        table.add_row(
            f"{n}-grams",
            f"{fit.types:,}",
            f"{fit.ranks[0]:,} – {fit.ranks[1]:,}",
            f"{fit.alpha:.4f} ± {alpha_error:.4f}",
            f"{fit.c:.3f} ± {c_error:.3f}",
        )
    return table


def _unseen_table(found: Statistics) -> Table:
    table = _table("of the test part", "n-grams", "never seen", "different", "never seen")
    for each in found.unseen:
        rates = (each.unseen_tokens / max(each.tokens, 1), each.unseen_types / max(each.types, 1))
        table.add_row(
            f"{each.n}-grams", f"{each.tokens:,}", f"{rates[0]:.2%}", f"{each.types:,}", f"{rates[1]:.2%}"
        )
    return table


def _score_table(found: Statistics) -> Table:
    table = _table("on the test part", "perplexity", "nats", "bits/character", "bits/byte")
    for score in found.scores:
        name = f"{score.order}-grams, {score.model}" if score.order else score.model
        name += ", backward" if score.backward else ""
        result = score.measure
        found_bits = (result.bits_per_character, result.bits_per_byte)
        bits = [math.nan if bit is None else bit for bit in found_bits]
        table.add_row(
            name, f"{result.perplexity:,.3f}", f"{result.nats:.4f}", *(f"{bit:.4f}" for bit in bits)
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for other in others:
        table.add_column(other, justify="right")
    return table
