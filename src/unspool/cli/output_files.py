"""Output files and folders of a command: checked before the work, written atomically after it.

new                          written under a temporary name, then renamed
exists                       refused, or replaced with force
in a run                     refused, also with force
read by the same command     refused, also with force
a device, a pipe             written to directly
"""

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

from unspool.errors import FileError
from unspool.storage.files import (
    UNFINISHED,
    check_path,
    descriptor_of,
    is_special,
    put_in_place,
    why,
    write_atomic,
)
from unspool.storage.run_folder import check_place, is_run, run_around
from unspool.storage.staging import atomic_folder, renamed_in_errors, staged

AGAIN = "give another path"


def check_outputs(
    *outputs: Path | None, force: bool, inputs: Iterable[str | Path | None] = (), folder: Path | None = None
) -> None:
    """Raise unless a command can write all its outputs; `folder` is a folder that it makes besides."""
    paths = [path for path in outputs if path is not None and not is_special(path)]
    read = [path for path in inputs if path is not None and not is_special(path)]
    for path in paths:
        check_path(path)
        if path.name.startswith(UNFINISHED):
            raise FileError(f"{path}: names that begin with {UNFINISHED} are of temporary files; {AGAIN}")
        if (same := next((each for each in read if _same(path, each)), None)) is not None:
            raise FileError(f"{path}: the command reads this file ({same}); {AGAIN}")
    for one, two in combinations(paths if folder is None else [*paths, folder], 2):
        if _same(one, two):
            raise FileError(f"{one}: used for two outputs; give each a different path")
    for path in paths:
        _check_file(path, force=force)


def _check_file(path: Path, *, force: bool) -> None:
    """Raise unless a file can be written here."""
    there = _is_there(path)
    if os.path.isdir(path):
        raise FileError(f"{path}: cannot be written: a folder of that name is there; {AGAIN}")
    if (run := run_around(path)) is not None:
        raise FileError(f"{path}: cannot be written: it is inside the run {run}, also with --force; {AGAIN}")
    if there and not force:
        raise FileError(f"{path}: this path already exists; {AGAIN}, or --force to replace it")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileError(f"{path}: cannot be written: there is no folder {Path(path).parent}; {AGAIN}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{path}: cannot be written: no permission to write to {folder}; {AGAIN}")


def _is_there(path: Path) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {why(error)}; {AGAIN}") from error
    return True


def _same(one: str | Path, two: str | Path) -> bool:
    """Return whether two paths name one file; other names of it (links) count."""
    try:
        return os.path.samefile(one, two)
    except OSError:  # one of them is not there
        pass
    try:
        return os.path.realpath(one) == os.path.realpath(two)
    except OSError:  # nor is the working directory
        return False


@contextmanager
def output(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary path, with the name of the output, to write to; then put the file in place."""
    if is_special(path):
        with tempfile.TemporaryDirectory() as place:
            yield Path(place, path.name)
            write_atomic(path, Path(place, path.name).read_bytes())
        return
    check_outputs(path, force=force)  # another process may have written it in the meantime
    with renamed_in_errors(path, path):
        target = Path(os.path.realpath(path))
        with staged(target) as unfinished, renamed_in_errors(unfinished, path):
            yield unfinished
            put_in_place(unfinished, target, new=not force)


def write_output(path: Path, content: bytes, *, force: bool) -> None:
    """Write bytes to an output."""
    with output(path, force=force) as unfinished:
        write_atomic(unfinished, content)


def as_output(path: Path) -> Path:
    """Return the path of an output of bytes, where - is standard output."""
    return Path("/dev/stdout") if str(path) == "-" else path


def is_standard_output(path: Path) -> bool:
    """Return whether an output goes to standard output."""
    return descriptor_of(path) == 1


def check_output_folder(folder: Path, *, force: bool, known: Collection[str]) -> None:
    """Raise unless a folder can be made, or, with force, is one of ours: it holds only files with the known names."""
    check_place(folder)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise FileError(f"{folder}: cannot be made: a file of this name already exists; {AGAIN}")
    if os.path.isdir(folder) and is_run(folder):
        raise FileError(f"{folder}: a run already exists here, and a run is never replaced; {AGAIN}")
    found = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    foreign = next((name for name in found if name not in known), None)
    if found and not force and foreign is None:
        raise FileError(f"{folder}: this path already exists; {AGAIN}, or --force to replace it")
    if foreign is not None:
        raise FileError(f"{folder}: a file of this name already exists ({foreign}); {AGAIN}")


@contextmanager
def output_folder(folder: Path, *, force: bool, known: Collection[str]) -> Iterator[Path]:
    """Yield a temporary folder to fill; then put it in place."""
    check_output_folder(folder, force=force, known=known)
    with atomic_folder(folder, replaces=force) as unfinished:
        yield unfinished
