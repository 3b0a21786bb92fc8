"""Lossless compression of any file with a language model, to the model's cross-entropy, or with one that starts from nothing.

>>> from unspool.model.config import ModelConfig
>>> from unspool.data.text.settings import TextConfig
>>> from unspool.data.tokens.registry import make_tokenizer
>>> from unspool.data.tokens.vocab import Vocab
>>> from unspool.model.network import Model
>>> network = Model.initialise(ModelConfig(cell="gru", inputs=6, outputs=6, hidden=8), seed=1)
>>> model = TextModel(network, Vocab(list("abracadabra")), make_tokenizer("char"), TextConfig())
>>> packed = compress(model, b"abracadabra " * 20)
>>> packed.container.mode, len(packed.container.payload)
('counted', 83)
>>> decompress(packed.container, model) == b"abracadabra " * 20
True
>>> adaptive = compress_adaptive(b"abracadabra " * 20)  # a model that starts from nothing and learns from these bytes
>>> adaptive.mode, len(adaptive.payload)
('adaptive', 10)
>>> decompress(adaptive) == b"abracadabra " * 20
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
from typing import Any

import numpy as np

from unspool.compress.adaptive import (
    HEAD,
    LONGEST,
    Run,
    decode_adaptive,
    encode_adaptive,
    few_threads,
    hidden_units,
    memory_of,
)
from unspool.compress.coding import Coded, OnProgress, check_model, decode, encode, tokens_and_ids
from unspool.compress.container import Container
from unspool.compress.next_byte import can_predict_bytes
from unspool.errors import Diverged, FileError, InputError
from unspool.evaluation.language import no_progress
from unspool.kernels.memory import require_memory
from unspool.storage import run_folder
from unspool.tasks.language.text_model import TextModel
from unspool.training.choose_learning import choose_learning
from unspool.training.dynamic import Learning

FILES = (run_folder.CONFIG, run_folder.VOCAB, run_folder.MODEL)
"""The files of a run that its model needs."""
BYTES = 300
"""Approximate memory to code one byte, in bytes."""
SMALL, DENSEST = 1 << 24, 100
"""Size limit of a file of an embedded model: 16 MiB, or DENSEST times its packed size (real models pack less)."""


@dataclass(frozen=True)
class CompressionResult:
    """The container of a compressed file, and the figures of its coding."""

    container: Container
    coded: Coded


def compress(
    model: TextModel,
    data: bytes,
    *,
    name: str = "",
    run: str = "",
    with_model: bool = False,
    learning: Learning | None = None,
    mixture: bool = False,
    on_progress: OnProgress = no_progress,
) -> CompressionResult:
    """Compress bytes into a container; bytes that would not get smaller are stored uncompressed.

    The container stores `name` (of the original file) and `run` (the relative path of the run). With `learning`, the
    model learns from the bytes as it codes them, and the decoder learns the same. With `mixture`, the probabilities are those of
    the model's mixture with n-grams, which decompression needs too. `on_progress` is called with the number of
    tokens done and the total.
    """
    _require_bytes(data)
    require_memory(BYTES * len(data), f"compressing {len(data):,} bytes", "compress the file in pieces")
    coded = encode(model, data, learning=learning, mixture=mixture, on_progress=on_progress)
    stored = len(coded.payload) >= len(data)
    inside = _packed_model(model, mixture) if with_model and not stored else b""
    container = Container(
        "stored" if stored else coded.mode,
        identity(model, mixture),
        _check(data),
        len(data),
        coded.tokens,
        name,
        "" if inside or stored else run,
        inside,
        data if stored else coded.payload,
        "float32" if stored else model.model.config.precision,
        None if stored else learning,
        mixture and not stored,
    )
    return CompressionResult(container, coded)


def compress_adaptive(
    data: bytes,
    *,
    name: str = "",
    model: TextModel | None = None,
    learning: Learning | None = None,
    run: str = "",
    with_model: bool = False,
    on_progress: OnProgress = no_progress,
) -> Container:
    """Compress bytes with a model that starts from nothing and learns from them; decompression needs only the container.

    With `model`, its network and its n-grams (if it was loaded with them) predict too, and the network learns as `learning` says, by
    default at the rate that is best on the first tokens. If the bytes get smaller without it, it is not used: see
    `Container.needs_model`. `run` and `with_model` are those of `compress`. `on_progress` is called with the number of bytes done and the
    total. Decompression takes as long as compression.
    """
    _require_bytes(data)
    if len(data) > LONGEST:
        raise InputError(f"data has {len(data):,} bytes; expected at most {LONGEST:,}: compress it in pieces")
    needed = 3 * len(data) + 3 * memory_of(len(data), hidden_units(len(data)))
    require_memory(needed, f"compressing {len(data):,} bytes", "compress the file in pieces")
    used = None if model is None else _run_of(model, data, learning)
    if used is not None and not can_predict_bytes(used.model):
        if (mixture := _tokens_win(used, data)) is not None:
            settings: dict[str, Any] = {
                "learning": used.learning,
                "mixture": mixture,
                "on_progress": on_progress,
            }
            return compress(used.model, data, name=name, run=run, with_model=with_model, **settings).container
        used = None
    payload, hidden, used = encode_adaptive(data, used, on_progress=on_progress)
    if len(payload) >= len(data):
        return Container("stored", bytes(8), _check(data), len(data), 0, name, "", b"", data)
    if used is None:
        return Container(
            "adaptive", bytes(8), _check(data), len(data), 0, name, "", b"", payload, hidden=hidden
        )
    inside = _packed_model(used.model, used.ngrams) if with_model else b""
    return Container(
        "adaptive",
        identity(used.model, used.ngrams),
        _check(data),
        len(data),
        0,
        name,
        "" if inside else run,
        inside,
        payload,
        used.model.model.config.precision,
        used.learning,
        used.ngrams,
    )


def _run_of(model: TextModel, data: bytes, learning: Learning | None) -> Run | None:
    """Return how a model predicts; without `learning`, it learns at the best rate on the first tokens. None if it diverges."""
    check_model(model.model)
    if learning is None:
        ids = tokens_and_ids(model, data[:HEAD])[1]
        try:
            with few_threads(model.model.config.hidden):
                learning = choose_learning(model.model, ids, choose=(True, False)).learning
        except Diverged:
            return None
    return Run(model, learning, model.mixture is not None)


def _tokens_win(run: Run, data: bytes) -> bool | None:
    """Return whether the first bytes are coded best with the mixture (True) or the network (False) of a run; None: without it."""
    head = data[:HEAD]
    sizes: dict[bool | None, int] = {None: len(encode_adaptive(head).payload)}
    for mixture in (False, True)[: 1 + run.ngrams]:
        sizes[mixture] = len(encode(run.model, head, learning=run.learning, mixture=mixture).payload)
    return min(sizes, key=sizes.__getitem__)


def _require_bytes(data: object) -> None:
    if not isinstance(data, bytes):
        raise InputError(
            f"data is a {type(data).__name__}; expected bytes: pass text.encode(), or pathlib.Path(…).read_bytes() for a file"
        )


def decompress(
    container: Container, model: TextModel | None = None, *, on_progress: OnProgress = no_progress
) -> bytes:
    """Return the original bytes; raise FileError or InputError if they cannot be restored exactly."""
    if container.mode == "stored":
        data = container.payload
    elif not container.needs_model:
        data = decode_adaptive(container.payload, container.length, container.hidden, on_progress=on_progress)
    elif container.mode != "adaptive" and container.tokens > container.length + 1:
        raise FileError("damaged: its header gives more tokens than bytes; restore it from a copy")
    else:
        try:
            data = _decode(container, _checked_model(container, model), on_progress)
        except (UnicodeError, KeyError) as error:  # tokens that are not text
            raise FileError("damaged: the decoded tokens are not text; restore it from a copy") from error
    if _check(data) != container.check:
        raise FileError(
            "damaged: the decoded bytes do not have the hash of the original; restore it from a copy"
        )
    return data


def _checked_model(container: Container, model: TextModel | None) -> TextModel:
    """Return the model; raise unless it is the one that compressed the file."""
    if model is None:
        raise InputError("model is None; expected the model that compressed the file")
    if model.model.config.precision != container.precision:
        raise InputError(
            f"compressed with a model in {container.precision}, and this one is in {model.model.config.precision}; pass the run that compressed it"
        )
    if container.mixture and model.mixture is None:
        raise InputError(
            "compressed with the mixture of a model and its n-grams; pass the run that compressed it, loaded with mixture=True"
        )
    if identity(model, container.mixture) != container.identity:
        raise InputError(
            "compressed with another model, or with an earlier state of this one; pass the run that compressed it"
        )
    return model


def _decode(container: Container, model: TextModel, on_progress: OnProgress) -> bytes:
    if container.mode == "adaptive":
        assert container.learning is not None
        run = Run(model, container.learning, container.mixture)
        return decode_adaptive(container.payload, container.length, run=run, on_progress=on_progress)
    assert container.mode != "stored"
    return decode(
        model,
        container.payload,
        container.tokens,
        container.mode,
        length=container.length,
        learning=container.learning,
        mixture=container.mixture,
        on_progress=on_progress,
    )


def identity(model: TextModel, mixture: bool = False) -> bytes:
    """Return 8 bytes that identify a model, or its mixture: a hash of everything that the coded bits depend on."""
    config, parameters = model.model.config, model.model.parameters
    words = {
        "cell": config.cell,
        "activation": config.activation,
        "shapes": parameters.shapes,
        "vocabulary": model.vocab.sha256,
        "tokens": model.tokenizer.kind.partition(":")[0],
        "backward": model.backward,
    }
    if config.precision != "float32":
        words["precision"] = config.precision
    digest = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
    for name in sorted(parameters):
        digest.update(np.ascontiguousarray(parameters[name], "<f4").tobytes())
    if mixture:
        mixed = model.require_mixture()
        digest.update(np.ascontiguousarray(mixed.v, "<f8").tobytes())
        for level in mixed.ngrams.counts.levels:
            digest.update(np.ascontiguousarray([level.keys, level.counts], "<i8").tobytes())
    return digest.digest()[:8]


def _check(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def model_within(container: Container) -> TextModel:
    """Return the model embedded in a container."""
    with TemporaryDirectory(prefix="unspool-") as folder:
        try:
            with zipfile.ZipFile(io.BytesIO(container.model)) as files:
                for name in (*FILES, *[run_folder.MIXTURE] * container.mixture):
                    (Path(folder) / name).write_bytes(_unpacked(files, name))
        except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, struct.error, EOFError) as error:
            raise FileError(
                f"damaged: the model in it cannot be read: {error}; restore it from a copy"
            ) from error
        try:
            return TextModel.load(folder, mixture=container.mixture)
        except FileError as error:
            raise FileError(f"the model in it: {str(error).replace(f'{folder}/', '')}") from error


def _unpacked(files: zipfile.ZipFile, name: str) -> bytes:
    """Return one file of an archive; its size is checked before it is unpacked."""
    entry = files.getinfo(name)
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is encrypted or has an unknown compression")
    if entry.file_size > max(SMALL, DENSEST * entry.compress_size):
        raise ValueError(f"{name} claims {entry.file_size:,} bytes, from {entry.compress_size:,}")
    return files.read(entry)


def _packed_model(model: TextModel, mixture: bool) -> bytes:
    """Return a model as an archive of the files it needs; the bytes are reproducible."""
    packed = io.BytesIO()
    with TemporaryDirectory(prefix="unspool-") as folder, zipfile.ZipFile(packed, "w") as files:
        model.save(Path(folder))
        for name in (*FILES, *[run_folder.MIXTURE] * mixture):
            entry = zipfile.ZipInfo(name)  # without a time stamp
            files.writestr(entry, (Path(folder) / name).read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()
