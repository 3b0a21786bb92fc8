"""The bits are real: a file in as many bits as the model's cross-entropy says, and back to the byte.

>>> from unspool.model.config import ModelConfig
>>> from unspool.data.text.settings import TextConfig
>>> from unspool.data.tokens.registry import make_tokenizer
>>> from unspool.data.tokens.vocab import Vocab
>>> from unspool.model.network import Model
>>> network = Model.initialise(ModelConfig(cell="gru", inputs=6, outputs=6, hidden=8), seed=1)
>>> model = TextModel(network, Vocab(list("abracadabra")), make_tokenizer("char"), TextConfig())
>>> packed = compress(model, b"abracadabra " * 20)
>>> packed.container.way, len(packed.container.payload)
('counted', 83)
>>> decompress(packed.container, model) == b"abracadabra " * 20
True
"""

import hashlib
import io
import json
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from unspool.compress.coding import Coded, Told, decode, encode
from unspool.compress.container import Container
from unspool.errors import FileError, InputError
from unspool.evaluation.language import no_progress
from unspool.kernels.memory import require_memory
from unspool.storage import run_folder
from unspool.tasks.language.text_model import TextModel

__all__ = ["Container", "Packed", "compress", "decompress", "identity", "model_within"]

FILES = (run_folder.CONFIG, run_folder.VOCAB, run_folder.MODEL)
"""The files of a run that are needed to use its model."""
BYTES = 300
"""Bytes of memory that a byte of the file takes while it is coded, about."""
SMALL, DENSEST = 1 << 24, 100
"""A file of the model within: up to 16 MiB, or so many times its packed size; numbers and tokens pack less."""


@dataclass(frozen=True)
class CompressionResult:
    """A file's container, and the figures of how it came about."""

    container: Container
    coded: Coded


def compress(
    model: TextModel,
    data: bytes,
    *,
    name: str = "",
    run: str = "",
    with_model: bool = False,
    told: Told = no_progress,
) -> CompressionResult:
    """Put bytes into a container; where the network would need more than they are, they stay as they are.

    `name` and `run` are kept as they are given, to say later what it was and where the model is.
    """
    if not isinstance(data, bytes):
        raise InputError(
            f"data is a {type(data).__name__}; expected bytes: pass text.encode(), or pathlib.Path(…).read_bytes() for a file"
        )
    require_memory(BYTES * len(data), f"compressing {len(data):,} bytes", "compress the file in pieces")
    coded = encode(model, data, told=told)
    stored = len(coded.payload) >= len(data)
    inside = _packed_model(model) if with_model and not stored else b""
    container = Container(
        "stored" if stored else coded.way,
        identity(model),
        _check(data),
        len(data),
        coded.tokens,
        name,
        "" if inside or stored else run,
        inside,
        data if stored else coded.payload,
    )
    return CompressionResult(container, coded)


def decompress(container: Container, model: TextModel | None, *, told: Told = no_progress) -> bytes:
    """Give the bytes back: those that went in, or an error, never others."""
    if container.way == "stored":
        data = container.payload
    elif model is None:
        raise InputError("decompress: this needs the model that it was made with")
    elif identity(model) != container.identity:
        raise InputError(
            "made with another model, or with this one before it was trained on; give the run that it was made with"
        )
    elif container.tokens > container.length + 1:
        raise FileError("damaged: it claims more tokens than bytes; take it from a copy")
    else:
        try:
            data = decode(
                model, container.payload, container.tokens, container.way, length=container.length, told=told
            )
        except (UnicodeError, KeyError) as error:  # choices that make no text
            raise FileError("damaged: what comes out is no text; take it from a copy") from error
    if _check(data) != container.check:
        raise FileError("damaged: what comes out does not have the hash of the original; take it from a copy")
    return data


def identity(model: TextModel) -> bytes:
    """Give 8 bytes that say which model this is: all that the bits depend on, and nothing else."""
    config, parameters = model.model.config, model.model.parameters
    words = {
        "cell": config.cell,
        "activation": config.activation,
        "shapes": parameters.shapes,
        "vocabulary": model.vocab.sha256,
        "tokens": model.tokenizer.kind.partition(":")[0],
        "backward": model.backward,
    }
    digest = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
    for name in sorted(parameters):
        digest.update(np.ascontiguousarray(parameters[name], "<f4").tobytes())
    return digest.digest()[:8]


def _check(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def model_within(container: Container) -> TextModel:
    """Give the model that a container carries."""
    with TemporaryDirectory(prefix="unspool-") as place:
        try:
            with zipfile.ZipFile(io.BytesIO(container.model)) as files:
                for name in FILES:
                    (Path(place) / name).write_bytes(_unpacked(files, name))
        except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, struct.error, EOFError) as error:
            raise FileError(
                f"damaged: the model in it cannot be read: {error}; take it from a copy"
            ) from error
        try:
            return TextModel.load(place)
        except FileError as error:
            raise FileError(f"the model in it: {str(error).replace(f'{place}/', '')}") from error


def _unpacked(files: zipfile.ZipFile, name: str) -> bytes:
    """Return one file of an archive; its size is checked before it is unpacked."""
    entry = files.getinfo(name)
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is packed in another way")
    if entry.file_size > max(SMALL, DENSEST * entry.compress_size):
        raise ValueError(f"{name} claims {entry.file_size:,} bytes, from {entry.compress_size:,}")
    return files.read(entry)


def _packed_model(model: TextModel) -> bytes:
    """Give a model as the run's files that are needed to read with it, in one archive, always the same bytes."""
    packed = io.BytesIO()
    with TemporaryDirectory(prefix="unspool-") as place, zipfile.ZipFile(packed, "w") as files:
        model.save(Path(place))
        for name in FILES:
            entry = zipfile.ZipInfo(name)  # of no time
            files.writestr(entry, (Path(place) / name).read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()
