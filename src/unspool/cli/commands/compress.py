"""Compress any file losslessly with a language model, and compare the size with gzip, bzip2 and xz.

The size approaches the model's cross-entropy on the file. `unspool decompress` restores the file from it with
the same model.
"""

import hashlib
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool.cli.checks import check_plot
from unspool.cli.options import CommonOptions, FileOrDash, Flag, Replacing
from unspool.cli.output import notes, plain_table, print_json, terminal
from unspool.cli.output_files import as_output, check_outputs, is_standard_output, output, write_output
from unspool.cli.progress import counting_bar
from unspool.compress import CompressionResult, compress
from unspool.compress.coding import Coded, OnProgress
from unspool.compress.other_programs import OTHERS, growth
from unspool.data.text.decoding import BOM
from unspool.errors import InputError
from unspool.plots.compression import draw_growth
from unspool.storage.files import is_special, read_bytes
from unspool.tasks.language.text_model import TextModel

SUFFIX = ".unspool"
MANY_UNKNOWN = 0.01
"""The share of a file's tokens outside the vocabulary above which a warning is printed."""


def compress_command(
    run: Path,
    file: Path,
    /,
    *,
    out: FileOrDash = None,
    with_model: Flag = False,
    plot: Path | None = None,
    options: CommonOptions = CommonOptions(),
    replacing: Replacing = Replacing(),
) -> None:
    """Run `unspool compress`.

    Parameters
    ----------
    run
        The folder of a run that was trained on characters, bytes or sub-words (not on words).
    file
        The file to compress: text or any other bytes.
    out
        The file to write; - is standard output [default: FILE.unspool].
    with_model
        Also store the model in the compressed file; decompression then does not need the run.
    plot
        Draw bits per byte against the number of bytes compressed, for unspool, gzip, bzip2 and xz, into this file (.png, .svg, .pdf).
    """
    options.apply()
    data = read_bytes(file)
    out = as_output(out or file.with_name(file.name + SUFFIX))
    refuse_two_on_output(out, json=options.json)
    check_outputs(out, plot, force=replacing.force, inputs=[file])
    check_plot(plot, force=replacing.force)
    model = TextModel.load(run)
    there = (file if is_special(out) else out).parent.resolve()
    seen_from_there = os.path.relpath(run.resolve(), there)  # the same bytes wherever both are
    with _progress(notes(options, stderr=is_standard_output(out))) as show:
        packed = compress(
            model, data, name=file.name, run=seen_from_there, with_model=with_model, on_progress=show
        )
    _warn_of_unknown(run, file, packed.coded)
    content = packed.container.to_bytes()
    write_output(out, content, force=replacing.force)
    if plot is not None:
        with output(plot, force=replacing.force) as path:
            draw_growth(growth(model, data, packed), path)
    _report(options, run, file, out, model, data, packed, len(content))


@contextmanager
def _progress(console: Console) -> Iterator[OnProgress]:
    """Show a bar of the tokens; give the function that moves it."""
    with counting_bar(console, "{task.completed:,} tokens") as progress:
        task = progress.add_task("", total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _report(
    options: CommonOptions,
    run: Path,
    file: Path,
    out: Path,
    model: TextModel,
    data: bytes,
    packed: CompressionResult,
    written: int,
) -> None:
    """Print the sizes beside those of the other programs."""
    if options.quiet and not options.json:
        return None if is_special(out) else print(out)
    others = {name: len(press(data)) for name, press in OTHERS.items()}
    if options.json:
        return print_json(_as_json(run, file, out, packed, written, others, hashlib.sha256(data).hexdigest()))
    console = terminal(stderr=is_standard_output(out))
    _print(console, file, out, packed, written, others, reads_alike(model, data))


def refuse_two_on_output(out: Path, *, json: bool) -> None:
    """Raise where both the file and JSON would go to standard output."""
    if json and is_standard_output(out):
        raise InputError(
            "--json and --out -: both go to standard output; give a file to --out, or leave out --json"
        )


def _warn_of_unknown(run: Path, file: Path, coded: Coded) -> None:
    """Print one line if many tokens of the file are outside the vocabulary."""
    if coded.unknown > MANY_UNKNOWN * coded.tokens:
        print(
            f"unspool: {file}: {coded.unknown / coded.tokens:.1%} of its tokens are not in the vocabulary of {run} and "
            "are spelled out, which takes more bits: train on such text, or with --tokens byte",
            file=sys.stderr,
        )


def _as_json(
    run: Path,
    file: Path,
    out: Path,
    packed: CompressionResult,
    written: int,
    others: dict[str, int],
    sha256: str,
) -> dict[str, Any]:
    kept, coded = packed.container, packed.coded
    return {
        "run": str(run),
        "file": str(file),
        "out": str(out),
        "way": kept.mode,
        "bytes": kept.length,
        "tokens": coded.tokens,
        "unknown": coded.unknown,
        "nats": coded.nats,
        "promised_bits": coded.expected_bits,
        "first_token_bits": coded.first_bits,
        "spelled_bits": coded.spelled_bits,
        "coded_bytes": len(coded.payload),
        "model_bytes": len(kept.model),
        "header_bytes": written - len(kept.payload) - len(kept.model),
        "written_bytes": written,
        "bits_per_byte": 8 * written / kept.length if kept.length else None,
        "sha256": sha256,
        "model": kept.identity.hex(),
        "others": others,
    }


def reads_alike(model: TextModel, data: bytes) -> bool:
    """Return whether `unspool evaluate` scores the same text: it cleans, unpacks and converts line ends as the run did."""
    settings = model.settings
    mended = settings.newlines == "lf" and b"\r" in data
    return not (settings.clean or mended or data.startswith((BOM, b"\x1f\x8b")))


def _print(
    console: Console,
    file: Path,
    out: Path,
    packed: CompressionResult,
    written: int,
    others: dict[str, int],
    alike: bool,
) -> None:
    kept, coded = packed.container, packed.coded
    table = plain_table("", right=("bytes", "bits/byte", "of the file"))
    promised = math.ceil(coded.expected_bits / 8)
    rows = [("the file", kept.length), *others.items(), ("network's cross-entropy", promised)]
    for name, size in [*rows, ("written", written)]:
        shares = (f"{8 * size / kept.length:.4f}", f"{size / kept.length:.2%}") if kept.length else ("", "")
        table.add_row(name, f"{size:,}", *shares, style="bold green" if name == "written" else None)
    console.print(f"{file}: {kept.length:,} bytes, {coded.tokens:,} tokens", soft_wrap=True)
    if coded.tokens > 1:
        says = ", as unspool evaluate prints" if alike else ""
        console.print(f"{coded.nats:.4f} nats per token{says}", style="dim", soft_wrap=True)
    console.print()
    console.print(table)
    console.print()
    console.print(_of_what(packed, written), style="dim", soft_wrap=True)
    console.print(f"saved        {out}", soft_wrap=True)


def _of_what(packed: CompressionResult, written: int) -> str:
    """Say what the written bytes are."""
    kept, coded = packed.container, packed.coded
    header = written - len(kept.payload) - len(kept.model)
    if kept.mode == "stored":
        return (
            f"written: {kept.length:,} bytes stored uncompressed (the network would need {len(coded.payload):,}), "
            f"{header:,} of header"
        )
    parts = [f"{math.ceil(coded.token_bits / 8):,} bytes for the tokens{_excess(coded)}"]
    if coded.unknown:
        parts.append(f"{coded.spelled_bits / 8:,.0f} to spell the {coded.unknown:,} unknown tokens")
    parts.append(f"{header:,} of header")
    parts += [f"{len(kept.model):,} of model"] if kept.model else []
    return f"written: {', '.join(parts)}"


def _excess(coded: Coded) -> str:
    if not coded.expected_bits or coded.mode == "counted":  # what was promised counts <unk> by the network
        return ""
    excess = coded.token_bits / coded.expected_bits - 1
    return f" ({abs(excess):.3%} {'more' if excess > 0 else 'less'} than the cross-entropy)"
