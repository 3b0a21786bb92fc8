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
from typing import Any, NamedTuple

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


class Written(NamedTuple):
    """A compressed file."""

    run: Path
    file: Path
    out: Path
    result: CompressionResult
    size: int
    """Its bytes."""
    others: dict[str, int]
    """The bytes that other programs need."""

    @property
    def header(self) -> int:
        """The bytes that are neither tokens nor the model."""
        return self.size - len(self.result.container.payload) - len(self.result.container.model)


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
        The folder of a run with lossless tokens: char, byte, jieba or subword (not word or space).
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
    if options.quiet and not options.json:
        return None if is_special(out) else print(out)
    others = {name: len(press(data)) for name, press in OTHERS.items()}
    _report(Written(run, file, out, packed, len(content), others), model, data, json=options.json)


def _report(written: Written, model: TextModel, data: bytes, *, json: bool) -> None:
    if json:
        return print_json(_as_json(written, hashlib.sha256(data).hexdigest()))
    _print(terminal(stderr=is_standard_output(written.out)), written, reads_alike(model, data))


@contextmanager
def _progress(console: Console) -> Iterator[OnProgress]:
    """Show a bar of the tokens; give the function that moves it."""
    with counting_bar(console, "{task.completed:,} tokens") as progress:
        task = progress.add_task("", total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


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


def _as_json(written: Written, sha256: str) -> dict[str, Any]:
    kept, coded = written.result.container, written.result.coded
    return {
        "run": str(written.run),
        "file": str(written.file),
        "out": str(written.out),
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
        "header_bytes": written.header,
        "written_bytes": written.size,
        "bits_per_byte": 8 * written.size / kept.length if kept.length else None,
        "sha256": sha256,
        "model": kept.identity.hex(),
        "others": written.others,
    }


def reads_alike(model: TextModel, data: bytes) -> bool:
    """Return whether `unspool evaluate` scores the same text: it cleans, unpacks and converts line ends as the run did."""
    settings = model.settings
    mended = settings.newlines == "lf" and b"\r" in data
    return not (settings.clean or mended or data.startswith((BOM, b"\x1f\x8b")))


def _print(console: Console, written: Written, alike: bool) -> None:
    """Print the sizes beside those of the other programs."""
    kept, coded = written.result.container, written.result.coded
    table = plain_table("", right=("bytes", "bits/byte", "of the file"))
    sizes = {"the file": kept.length, **written.others}
    sizes |= {"network's cross-entropy": math.ceil(coded.expected_bits / 8), "written": written.size}
    for name, size in sizes.items():
        shares = (f"{8 * size / kept.length:.4f}", f"{size / kept.length:.2%}") if kept.length else ("", "")
        table.add_row(name, f"{size:,}", *shares, style="bold green" if name == "written" else None)
    console.print(f"{written.file}: {kept.length:,} bytes, {coded.tokens:,} tokens")
    if coded.tokens > 1:
        says = ", as unspool evaluate prints" if alike else ""
        console.print(f"{coded.nats:.4f} nats per token{says}", style="dim")
    console.print("", table, "", sep="\n")
    console.print(_of_what(written), style="dim")
    console.print(f"saved        {written.out}")


def _of_what(written: Written) -> str:
    """Say what the written bytes are."""
    kept, coded = written.result.container, written.result.coded
    header = f"{written.header:,} of header"
    if kept.mode == "stored":
        return (
            f"written: {kept.length:,} bytes stored uncompressed (the network would need {len(coded.payload):,}), "
            f"{header}"
        )
    parts = [f"{math.ceil(coded.token_bits / 8):,} bytes for the tokens{_excess(coded)}"]
    if coded.unknown:
        parts.append(f"{coded.spelled_bits / 8:,.0f} to spell the {coded.unknown:,} unknown tokens")
    parts += [header, *[f"{len(kept.model):,} of model"] * bool(kept.model)]
    return f"written: {', '.join(parts)}"


def _excess(coded: Coded) -> str:
    if not coded.expected_bits or coded.mode == "counted":  # what was promised counts <unk> by the network
        return ""
    excess = coded.token_bits / coded.expected_bits - 1
    return f" ({abs(excess):.3%} {'more' if excess > 0 else 'less'} than the cross-entropy)"
