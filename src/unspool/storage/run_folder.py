"""The folder of a run: it can be loaded at any moment, even after its process was killed.

    RUN/config.json           what the run is: all its settings, the model's sizes, how text becomes tokens
        vocab.json            the vocabulary
        model.safetensors     the best model so far, under the textbook's letters
        mixture.safetensors   the n-grams of the training split and their share in the mixture with the network,
                              after the evaluation at the end of a training
        choice.safetensors    of a classifier or regressor: which model answers, and the best baseline
        training.safetensors  all that is needed to go on to the same bits: raw parameters, the optimiser's
                              memory, the carried state, the place in the data
        final.safetensors     with --final: the same of the second training, on the whole text
        measured.safetensors  with --final: the model that was measured; model.safetensors is then the final one
        log.jsonl             what happened, a line each
        text/                 the ids of all parts

The folder gets its name when it is complete, with an untrained model in it. From then on each file is written
beside its name, synced and renamed, and each is whole by itself: a kill between two of them leaves an older
training state beside a newer model, and going on from there makes the same model again. Every file that is
loaded carries a seal over all its bytes (`unspool.storage.files`).
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from unspool.errors import FileError, InputError
from unspool.storage.files import UNFINISHED, check_path, why
from unspool.storage.schema import read_as
from unspool.storage.staging import atomic_folder
from unspool.storage.tensors import read_json, write_json

FORMATS = b"unspool-run-"
"""The prefix of the format of every run's config."""


FORMAT = "unspool-run-1"


CONFIG, VOCAB, MODEL, MIXTURE, CHOICE, TRAINING, FINAL, MEASURED, LOG, TEXT = (
    "config.json",
    "vocab.json",
    "model.safetensors",
    "mixture.safetensors",
    "choice.safetensors",
    "training.safetensors",
    "final.safetensors",
    "measured.safetensors",
    "log.jsonl",
    "text",
)


LEFT = re.compile(
    rf"{re.escape(UNFINISHED)}[0-9a-f]{{16}}|[\w.]+\.(json|safetensors)\.\d+{re.escape(UNFINISHED)}"
)
"""Temporary files in a run: their names now, and in earlier versions."""


LONGEST = 4096 - 128
"""Bytes of the longest path of a run: the paths of its files are longer."""


@contextmanager
def new_run(path: str | Path) -> Iterator[Path]:
    """Yield a folder to fill, which becomes the run if no error occurs; refuse a path that exists."""
    require_free_folder(path)
    with atomic_folder(Path(path)) as unfinished:
        yield unfinished


def require_free_folder(path: str | Path) -> None:
    """Raise unless a run can be created here: the path does not exist, or is an empty folder."""
    check_place(path)
    place = Path(path)
    try:
        taken = os.path.lexists(place) and not (os.path.isdir(place) and not os.listdir(place))
    except OSError as error:
        raise FileError(f"{path}: cannot be made: {why(error)}; choose another path") from error
    if taken and os.path.exists(place / CONFIG):
        resumable = os.path.exists(place / TRAINING)
        on = f", or resume it: unspool resume {path}" if resumable else ""
        raise FileError(f"{path}: a run already exists here; choose another path{on}")
    if taken:
        raise FileError(f"{path}: this path already exists; choose another path")
    if os.path.isdir(place) and (os.path.samefile(place, ".") or os.path.ismount(place)):
        said = "it is the working directory or a mount point; give the name of a new folder"
        raise FileError(f"{path}: cannot be made: {said}")


def check_place(path: str | Path, option: str = "path") -> None:
    """Raise where no folder can be created: the path is too long, inside another run, or not writable."""
    check_path(path)
    whole = Path(os.path.realpath(path))
    above = next(each for each in whole.parents if os.path.lexists(each))
    longest = os.pathconf(above, "PC_NAME_MAX") if hasattr(os, "pathconf") and above.is_dir() else 255
    sizes = [len(os.fsencode(part)) for part in whole.parts]
    if max(sizes) > longest or len(os.fsencode(whole)) > LONGEST:
        raise FileError(f"{path}: cannot be made: the path is too long; choose a shorter {option}")
    if not above.is_dir():
        raise FileError(f"{path}: cannot be made: {above} is no folder; choose another {option}")
    if (run := run_around(whole)) is not None:
        raise FileError(f"{path}: cannot be made: it is inside the run {run}; choose another {option}")
    if not os.access(above, os.W_OK | os.X_OK) and not os.path.lexists(whole):
        raise FileError(f"{path}: cannot be made: {above} cannot be written to; choose another {option}")


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run, also where some of its files are damaged or missing."""
    if os.path.isfile(folder / MODEL) and os.path.isfile(folder / LOG):
        return True
    with suppress(OSError):
        if os.path.isfile(folder / CONFIG):
            with (folder / CONFIG).open("rb") as file:
                return FORMATS in file.read(1 << 16)
    return False


def run_around(path: str | Path) -> Path | None:
    """Return the run that a path lies in, or None."""
    check_path(path)
    return next((each for each in Path(os.path.realpath(path)).parents if is_run(each)), None)


def check_run(path: str | Path) -> Path:
    """Return the path of an existing run; raise where it is none."""
    check_path(path)
    place = Path(path)
    if not os.path.isdir(place):
        raise FileError(f"{path}: no such run; expected the folder that a training wrote")
    if not (place / CONFIG).exists():
        raise FileError(f"{path}: not a run: there is no {CONFIG} in it")
    return place


def write_config(run: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write the config of a run; `kind` is its task: "language", "classify" …"""
    write_json(run / CONFIG, {"format": FORMAT, "kind": kind} | dict(content))


def read_kind(run: str | Path) -> str:
    """Return the kind of a run: "language", "classify" …"""
    place = check_run(run) / CONFIG
    return read_as(str, read_json(place).get("kind"), place, "kind")


def read_config(run: str | Path, kind: str) -> dict[str, Any]:
    """Return the config of a run; refuse a run of another kind."""
    place = check_run(run)
    content = read_json(place / CONFIG)
    if content.get("format") != FORMAT:
        raise FileError(f"{place / CONFIG}: its format is {content.get('format')!r}; expected {FORMAT!r}")
    found = read_as(str, content.get("kind"), place / CONFIG, "kind")
    if found != kind:
        raise InputError(f"{run}: a run of the kind {found!r}; this needs one of the kind {kind!r}")
    return content


def remove_leftovers(run: Path) -> None:
    """Remove the temporary files of a process that was killed; call it only with the lock of the run's log."""
    with suppress(OSError):
        for left in run.iterdir():
            if LEFT.fullmatch(left.name) and left.is_file() and not left.is_symlink():
                left.unlink(missing_ok=True)
