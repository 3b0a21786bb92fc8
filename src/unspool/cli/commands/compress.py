"""Compress any file losslessly with a language model, and compare the size with other programs.

With a run, the size approaches the model's cross-entropy on the file, and `unspool decompress` restores the file with the same model.
With --learn, the run learns from the file and counts of the file are mixed in. Without a run, --learn starts from nothing: unspool compress FILE --learn.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from unspool.cli.checks import check_plot
from unspool.cli.options import CommonOptions, FileOrDash, Flag, Replacing
from unspool.cli.output import notes, print_json, terminal
from unspool.cli.output_files import as_output, check_outputs, is_standard_output, output, write_output
from unspool.cli.progress import counting_bar
from unspool.cli.views.compression import Written, compression_json, print_compression
from unspool.compress import CompressionResult, compress, compress_adaptive
from unspool.compress.coding import Coded, OnProgress, encode
from unspool.compress.container import Container
from unspool.compress.other_programs import growth, other_programs
from unspool.data.text.decoding import BOM
from unspool.errors import InputError
from unspool.plots.compression import draw_growth
from unspool.storage.files import is_special, read_bytes
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning

SUFFIX = ".unspool"
HEAD = 1 << 14
"""Bytes of a file that are coded to choose between the network and the mixture."""
MANY_UNKNOWN = 0.01
"""The share of a file's tokens outside the vocabulary above which a warning is printed."""


def compress_command(
    run: Path,
    file: Path | None = None,
    /,
    *,
    learn: Flag = False,
    model: Literal["network", "mixture"] | None = None,
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
        The folder of a run with lossless tokens: char, byte, jieba or subword (not word or space). With --learn it can be left out: unspool compress FILE --learn.
    file
        The file to compress: text or any other bytes; /dev/stdin for standard input, with --out.
    learn
        Learn from the file while compressing it; decompression learns the same and takes as long. Counts of the file and a small network start from nothing; with a run, its network and n-grams predict too, unless the file gets smaller without them.
    model
        What predicts: the network, or its mixture with the n-grams of the training text [default: the smaller on the head of the file; with --learn, both and counts of the file].
    out
        The file to write; - is standard output [default: FILE.unspool].
    with_model
        Also store the model in the compressed file; decompression then does not need the run.
    plot
        Draw bits per byte against the number of bytes compressed, for unspool, gzip, bzip2 and xz, into this file (.png, .svg, .pdf).
    """
    options.apply()
    folder, file = (None, run) if file is None else (run, file)
    _check_options(folder, file, learn, {"--model": model, "--with-model": with_model, "--plot": plot})
    data = read_bytes(file)
    out = as_output(out or file.with_name(file.name + SUFFIX))
    refuse_two_on_output(out, json=options.json)
    check_outputs(out, plot, force=replacing.force, inputs=[file])
    check_plot(plot, force=replacing.force)
    predictor = None if folder is None else TextModel.load(folder, mixture=model != "network")
    settings: dict[str, Any] = {
        "name": file.name,
        "with_model": with_model,
        "run": _path_from(out, file, folder),
    }
    console = notes(options, stderr=is_standard_output(out))
    if predictor is None or (learn and model is None):
        packed, container = None, _by_bytes(console, predictor, data, settings)
    else:
        packed = _by_tokens(console, predictor, data, model, Learning() if learn else None, settings)
        container = packed.container
        _warn_of_unknown(run, file, packed.coded)
    content = container.to_bytes()
    write_output(out, content, force=replacing.force)
    if plot is not None and packed is not None and predictor is not None:
        with output(plot, force=replacing.force) as path:
            draw_growth(growth(predictor, data, packed), path)
    written = Written(folder, file, out, container, packed.coded if packed else None, len(content), {})
    as_evaluated = not (learn or container.mixture) and predictor is not None and reads_alike(predictor, data)
    _report(written, data, options, as_evaluated=as_evaluated)


def _path_from(out: Path, file: Path, folder: Path | None) -> str:
    """Return the path of a run from the folder of the compressed file, so that its bytes do not depend on where both are."""
    there = (file if is_special(out) else out).parent.resolve()
    return "" if folder is None else os.path.relpath(folder.resolve(), there)


def _by_bytes(
    console: Console, predictor: TextModel | None, data: bytes, settings: dict[str, Any]
) -> Container:
    """Compress with counts of the file and, if there is one, a run, and show the progress."""
    with _progress(console, "bytes") as show:
        return compress_adaptive(data, model=predictor, on_progress=show, **settings)


def _by_tokens(
    console: Console,
    predictor: TextModel,
    data: bytes,
    model: str | None,
    learning: Learning | None,
    settings: dict[str, Any],
) -> CompressionResult:
    """Compress with a run that predicts tokens, and show the progress."""
    with _progress(console, "tokens") as show:
        mixture = _takes_mixture(predictor, data, model)
        return compress(predictor, data, learning=learning, mixture=mixture, on_progress=show, **settings)


def _check_options(folder: Path | None, file: Path, learn: bool, options: dict[str, object]) -> None:
    """Raise for options that need a run, or that contradict each other."""
    if folder is not None:
        if options["--plot"] and learn and not options["--model"]:
            raise InputError(
                "--plot draws the bits of tokens, and --learn alone codes bytes: add --model network or --model mixture, or leave it out"
            )
        return
    if file.is_dir():
        raise InputError(
            f"{file} is a folder; expected a file, or a run and a file: unspool compress RUN FILE"
        )
    if not learn:
        raise InputError(
            f"{file}: no run is given; add --learn to learn from the file alone, or give a run: unspool compress RUN FILE"
        )
    for option, value in options.items():
        if value:
            raise InputError(f"{option} needs a run: unspool compress RUN FILE {option}, or leave it out")


def _takes_mixture(model: TextModel, data: bytes, chosen: str | None) -> bool:
    """Return whether to code with the mixture: as chosen, or what is smaller on the head of the file."""
    if chosen is not None or model.mixture is None:
        return chosen == "mixture"
    sizes = [len(encode(model, data[:HEAD], mixture=each).payload) for each in (False, True)]
    return sizes[1] < sizes[0]


def _report(written: Written, data: bytes, options: CommonOptions, *, as_evaluated: bool = False) -> None:
    """Print the result beside other programs, as JSON, or only its path."""
    if options.quiet and not options.json:
        return None if is_special(written.out) else print(written.out)
    written = written._replace(others={name: len(press(data)) for name, press in other_programs().items()})
    if options.json:
        return print_json(compression_json(written, hashlib.sha256(data).hexdigest()))
    console = terminal(stderr=is_standard_output(written.out))
    return print_compression(console, written, as_evaluated=as_evaluated)


@contextmanager
def _progress(console: Console, unit: str) -> Iterator[OnProgress]:
    """Show a bar of the tokens or bytes; give the function that moves it."""
    with counting_bar(console, f"{{task.completed:,}} {unit}") as progress:
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


def reads_alike(model: TextModel, data: bytes) -> bool:
    """Return whether `unspool evaluate` scores the same text: it cleans, unpacks and converts line ends as the run did."""
    settings = model.settings
    mended = settings.newlines == "lf" and b"\r" in data
    return not (settings.clean or mended or data.startswith((BOM, b"\x1f\x8b")))
