"""Read and write prepared corpora on disk; the folder name is a hash of the sources and settings.

    CACHE/3f0c…/ids.bin       the ids of all splits, 32-bit little-endian
                vocab.json    the vocabulary, with its own hash
                corpus.json   splits, tokenizer, numbers of characters and bytes

Folders are written atomically.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias, TypedDict

import numpy as np

from unspool.data.text.parts import PARTS, Part
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import Source, fingerprint
from unspool.data.tokens.registry import Tokenizer, TokenizerFields
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError
from unspool.storage.files import CHECKSUM_PLACEHOLDER, checksum_ok, read_bytes, with_checksum, write_atomic
from unspool.storage.schema import parse_json, read_as

FORMAT = "unspool-corpus-3"
BLOCK = 1 << 20
IDS, VOCAB, CORPUS = "ids.bin", "vocab.json", "corpus.json"


def cache_folder(cache: Path, groups: list[list[Source]], settings: TextConfig) -> Path:
    """Return the folder of these sources and settings; it may not exist yet."""
    chosen = asdict(settings)
    if not settings.lines:  # so that texts prepared before this setting existed are found
        del chosen["lines"]
    content = [FORMAT, chosen, [fingerprint(group) for group in groups]]
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return cache / key[:32]


def write(folder: Path, vocab: Vocab, tokenizer: Tokenizer, parts: list[Part], erased: int) -> None:
    """Write everything except the ids, which are already there, into the folder."""
    vocab.save(folder / VOCAB)
    content = {
        "sha256": CHECKSUM_PLACEHOLDER,
        "format": FORMAT,
        "tokenizer": tokenizer.to_json(),
        "vocab": vocab.sha256,
        "ids": ids_hash(folder),
        "parts": [
            [len(part.ids), part.characters, part.bytes, part.unknown, part.first, part.last]
            for part in parts
        ],
        "erased": erased,
    }
    write_atomic(folder / CORPUS, with_checksum(json.dumps(content).encode("ascii")))


def ids_hash(folder: Path) -> str:
    """Return the SHA-256 of the file of ids."""
    with (folder / IDS).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_ids(folder: Path) -> None:
    """Raise FileError if the file of ids does not match its SHA-256."""
    try:
        damaged = _content(folder)["ids"] != ids_hash(folder)
    except OSError as error:
        reason = str(error) if isinstance(error, FileError) else f"{folder / IDS}: {error.strerror}"
        raise FileError(f"{reason}; prepare the text again") from error
    if damaged:
        raise FileError(
            f"{folder / IDS}: damaged: its SHA-256 does not match its contents; prepare the text again"
        )


def read(folder: Path) -> tuple[list[Part], Vocab, Tokenizer, int]:
    """Read a prepared corpus; its ids are memory-mapped."""
    try:
        return _read_whole(folder)
    except (OSError, ValueError) as error:
        raise FileError(f"{folder}: a damaged cache; delete this folder and prepare again") from error


_Row: TypeAlias = tuple[int, int, int, int, tuple[int, int], tuple[int, int]]
"""One split: tokens, characters, bytes, unknown tokens; characters and bytes of the first and the last token."""


class _CacheContent(TypedDict):
    """The fields of a prepared corpus."""

    tokenizer: TokenizerFields
    vocab: str
    ids: str
    parts: tuple[_Row, _Row, _Row]
    erased: int


def _content(folder: Path) -> _CacheContent:
    whole = read_bytes(folder / CORPUS)
    if not checksum_ok(whole):
        raise FileError(f"{folder / CORPUS}: damaged: its SHA-256 does not match its contents")
    return read_as(_CacheContent, parse_json(whole, folder / CORPUS), folder / CORPUS)


def _read_whole(folder: Path) -> tuple[list[Part], Vocab, Tokenizer, int]:
    vocab = Vocab.load(folder / VOCAB)
    content = _content(folder)
    rows = content["parts"]
    lengths = [row[0] for row in rows]
    if any(number < 0 for row in rows for number in (*row[:4], *row[4], *row[5])) or content["erased"] < 0:
        raise FileError(f"{folder / CORPUS}: damaged or manipulated: a count is below 0")
    if vocab.sha256 != content["vocab"] or (folder / IDS).stat().st_size != 4 * sum(lengths):
        raise FileError(f"{folder}: the files do not belong together")
    ids = np.memmap(folder / IDS, "<i4", "r") if sum(lengths) else np.zeros(0, np.int32)
    for at in range(0, len(ids), BLOCK):
        block = ids[at : at + BLOCK]
        if block.min() < 0 or block.max() >= len(vocab):
            raise FileError(f"{folder / IDS}: damaged or manipulated: an id outside the vocabulary")
    pieces = np.split(ids, np.cumsum(lengths)[:-1])
    parts = [Part(name, piece, *row[1:]) for name, piece, row in zip(PARTS, pieces, rows, strict=True)]
    return parts, vocab, content["tokenizer"].make(), content["erased"]
