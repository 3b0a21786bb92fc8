"""Restore the exact bytes of a file that `unspool compress` wrote."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unspool.cli.commands.compress import refuse_two_on_output
from unspool.cli.options import CommonOptions, FileOrDash, Replacing
from unspool.cli.output import notes, print_json
from unspool.cli.output_files import as_output, check_outputs, is_standard_output, write_output
from unspool.cli.progress import counting_bar
from unspool.compress import Container, decompress, model_within
from unspool.errors import FileError, InputError
from unspool.storage.files import is_special, read_bytes
from unspool.tasks.language.text_model import TextModel


def decompress_command(
    file: Path,
    /,
    *,
    run: Path | None = None,
    out: FileOrDash = None,
    options: CommonOptions = CommonOptions(),
    replacing: Replacing = Replacing(),
) -> None:
    """Run `unspool decompress`.

    Parameters
    ----------
    file
        The compressed file.
    run
        The folder of the run that compressed the file [default: the model in the file, or else the run at the path stored in it].
    out
        The file to write; - is standard output [default: the original's name, in the folder of the compressed file].
    """
    options.apply()
    content = read_bytes(file)
    with _named(file):
        container = Container.from_bytes(content)
    out = as_output(out or file.with_name(_safe(file, container.name)))
    refuse_two_on_output(out, json=options.json)
    check_outputs(out, force=replacing.force, inputs=[file])
    console = notes(options, stderr=is_standard_output(out))
    model = _model(file, container, run)
    unit = "bytes" if container.mode == "adaptive" else "tokens"
    with counting_bar(console, f"{{task.completed:,}} {unit}") as progress, _named(file):
        task = progress.add_task("", total=None)
        data = decompress(
            container,
            model,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    write_output(out, data, force=replacing.force)
    sha256 = hashlib.sha256(data).hexdigest()
    if options.json:
        print_json({"file": str(file), "out": str(out), "bytes": len(data), "sha256": sha256})
    elif options.quiet and not is_special(out):
        print(out)
    else:
        console.print(f"{out}: {len(data):,} bytes restored: SHA-256 {sha256}")


def _model(file: Path, container: Container, run: Path | None) -> TextModel | None:
    """Load the model that is needed: of the run that was given, the one within, or of the run where it was."""
    if not container.needs_model:
        return None
    if run is None and container.model:
        with _named(file):
            return model_within(container)
    where = run or file.parent / container.run
    if run is None and not where.is_dir():
        raise FileError(f"{file}: the run that it was made with is not at {where}; give it with --run")
    return TextModel.load(where, mixture=container.mixture)


def _safe(file: Path, name: str) -> str:
    """Give the original's name, if it is the name of a file and no way to another place."""
    if name in ("", ".", "..") or not name.isprintable() or set(name) & set("/\\"):
        raise InputError(f"{file}: the name in it, {name!r}, is none to write to; give --out")
    return name


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Say of which file an error is."""
    try:
        yield
    except (FileError, InputError) as error:
        raise type(error)(f"{file}: {error}") from error
