"""Print statistics of a text: sizes, frequent tokens, Zipf's law, unseen n-grams, and the perplexity of n-grams."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from unspool.baselines.statistics import Statistics, describe_corpus
from unspool.cli.checks import check_plot
from unspool.cli.options import GROUPS, TEXT, Flag, OfText, Replacing, option_class
from unspool.cli.output import finite, plain_table, print_json, terminal
from unspool.cli.output_files import output
from unspool.cli.sources import Sources, files_read
from unspool.data.options import SPLIT, Split
from unspool.data.text.corpus import Corpus, prepare
from unspool.errors import InputError
from unspool.plots.zipf import draw_zipf
from unspool.storage import run_folder

Plain = Parameter(negative="")
"""Without a second option that takes the first one back."""


@option_class(groups=GROUPS | {"Data": TEXT})
class Reading:
    """How the text is read, and what it is tested by."""

    tokens: str = "char"
    valid: OfText[str | None] = None
    """A separate file for the validation split; TEXT is then used for training."""
    split: Split = SPLIT.field(
        (0.9, 0.05, 0.05), help="Fractions of the tokens for train, valid and test, in order."
    )
    clean: bool = False
    min_freq: int = 0
    errors: str = "strict"
    newlines: str = "keep"
    test: OfText[str | None] = None
    """A separate file for the test split; TEXT is then used for training."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What `stats` is given."""

    order: int = 3
    """Highest order n of the n-grams."""
    eps: Annotated[tuple[float, ...], Parameter(negative="", consume_multiple=True)] = (1.0, 1.0, 1.0)
    """Constants of Laplace smoothing for n = 1, 2, 3, …; the last one holds for higher orders."""
    ranks: Annotated[tuple[int, int] | None, Plain] = None
    """The first and last rank of the Zipf fit [default: 1 and the last with a frequency of at least 5]."""
    top: int = 10
    """Number of the most frequent tokens to print."""
    backward: Flag = False
    """Also score n-grams that predict the test split from right to left."""
    cache: Path | None = None
    """A folder that stores the prepared text for the next call."""
    json: Flag = False
    """Print JSON."""
    plot: Path | None = None
    """Draw frequencies against ranks into this file (.png, .svg, .pdf)."""


def stats(
    text: Sources,
    /,
    *,
    reading: Reading = Reading(),
    options: Options = Options(),
    replacing: Replacing = Replacing(),
) -> None:
    """Run `unspool stats`.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source.
    """
    plot, cache = options.plot, options.cache
    if options.top < 0:
        raise InputError(f"top: expected 0 or more, got {options.top}")
    inputs = files_read(text, reading.valid, reading.test, reading.tokens)
    check_plot(plot, force=replacing.force, inputs=inputs, folder=cache)
    if cache is not None:
        run_folder.check_place(cache / "text", "--cache")
    corpus = prepare(text, cache=cache, **asdict(reading))
    found = describe_corpus(corpus, options.order, options.eps, options.ranks, options.top, options.backward)
    if plot is not None:
        _draw(found, text, plot, force=replacing.force)
    if options.json:
        print_json(finite(_as_json(corpus, found), str))
    else:
        _print(terminal(), corpus, found)


def _draw(found: Statistics, text: list[str], plot: Path, *, force: bool) -> None:
    title = ", ".join(Path(name).name for name in text)
    with output(plot, force=force) as path:
        draw_zipf(found.frequencies[:3], found.zipf[:3], path, title=title)


def _as_json(corpus: Corpus, found: Statistics) -> dict[str, Any]:
    content = asdict(found)
    del content["frequencies"]
    for score, row in zip(found.scores, content["scores"], strict=True):
        row |= row.pop("measure")
        row["perplexity"] = score.measure.perplexity
        row["bits_per_character"] = score.measure.bits_per_character
        row["bits_per_byte"] = score.measure.bits_per_byte
    settings = asdict(corpus.settings) | {"erased_letters": corpus.erased}
    return {"settings": settings} | content


def _print(console: Console, corpus: Corpus, found: Statistics) -> None:
    if corpus.erased:
        console.print(f"cleaning erased {corpus.erased:,} letters that are not A-Z")
    parts = plain_table("split", right=("tokens", "types", "characters", "bytes", "unknown"))
    for part in found.parts:
        sizes = (part.tokens, part.types, part.characters, part.bytes)
        parts.add_row(
            part.name, *(f"{size:,}" for size in sizes), f"{part.unknown:,} ({part.unknown_rate:.2%})"
        )
    console.print(parts)
    console.print(f"vocabulary of the training split: {found.vocabulary:,} with <unk>")
    frequent = "  ".join(f"{token!r} {count:,}" for token, count in found.most_frequent)
    console.print(f"most frequent: {frequent}\n")
    console.print(_zipf_table(found), "")
    if not found.scores:
        console.print("the test split has fewer than two tokens, so there is nothing to predict")
        return
    console.print(_unseen_table(found), "")
    console.print(_score_table(found))
    if corpus.test.unknown:
        console.print(
            "tokens outside the vocabulary are scored as <unk>; coding them character by character would cost more bits"
        )


def _zipf_table(found: Statistics) -> Table:
    table = plain_table("Zipf", right=("types", "ranks", "α, 95 % interval", "c, 95 % interval"))
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
    table = plain_table("of the test split", right=("n-grams", "unseen", "distinct", "distinct unseen"))
    for each in found.unseen:
        rates = (each.unseen_tokens / max(each.tokens, 1), each.unseen_types / max(each.types, 1))
        table.add_row(
            f"{each.n}-grams", f"{each.tokens:,}", f"{rates[0]:.2%}", f"{each.types:,}", f"{rates[1]:.2%}"
        )
    return table


def _score_table(found: Statistics) -> Table:
    table = plain_table("on the test split", right=("perplexity", "nats", "bits/character", "bits/byte"))
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
