"""Prepared corpora on disk, each in a folder named by a hash of its sources and settings.

    CACHE/3f0c…/ids.bin       the ids of all parts, 32-bit little-endian
                vocab.json    the vocabulary, with its own hash
                corpus.json   parts, tokenizer, numbers of characters and bytes

A folder is filled under another name, synced and then renamed, so one that has its name is whole.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unspool.data.parts import PARTS, Part
from unspool.data.settings import Settings
from unspool.data.source import Source, fingerprint
from unspool.data.tokens import Tokenizer, describe, make_tokenizer
from unspool.data.vocab import Vocab
from unspool.errors import FileError
from unspool.files import OPEN_SEAL, is_whole, sealed, write_whole

FORMAT = "unspool-corpus-3"
IDS, VOCAB, CORPUS = "ids.bin", "vocab.json", "corpus.json"


def place(cache: Path, groups: list[list[Source]], settings: Settings) -> Path:
    """Name the folder for these sources and settings, whether it is there or not."""
    content = [FORMAT, asdict(settings), [fingerprint(group) for group in groups]]
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return cache / key[:32]


def write(folder: Path, vocab: Vocab, tokenizer: Tokenizer, parts: list[Part], erased: int) -> None:
    """Put everything but the ids, which are there already, into the folder."""
    vocab.save(folder / VOCAB)
    content = {
        "sha256": OPEN_SEAL,
        "format": FORMAT,
        "tokenizer": describe(tokenizer),
        "vocab": vocab.sha256,
        "ids": ids_hash(folder),
        "parts": [
            [len(part.ids), part.characters, part.bytes, part.unknown, part.first, part.last]
            for part in parts
        ],
        "erased": erased,
    }
    write_whole(folder / CORPUS, sealed(json.dumps(content).encode("ascii")))


def ids_hash(folder: Path) -> str:
    """Give the hash of the ids as they lie on the disk."""
    with (folder / IDS).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_ids(folder: Path) -> None:
    """Read all ids, and refuse them if any is not as it was written."""
    try:
        content = _content(folder)
        if content["ids"] != ids_hash(folder):
            raise ValueError("the ids do not have the hash that was written down")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{folder / IDS}: damaged or missing: {error}; prepare the text again") from error


def read(folder: Path) -> tuple[list[Part], Vocab, Tokenizer, int]:
    """Map the ids of a prepared corpus, and read the rest."""
    try:
        return _read_whole(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{folder}: a damaged cache; delete this folder and prepare again") from error


def _content(folder: Path) -> dict[str, Any]:
    whole = (folder / CORPUS).read_bytes()
    if not is_whole(whole):
        raise ValueError(f"{CORPUS} does not have the hash written in it")
    content: dict[str, Any] = json.loads(whole)
    return content


def _read_whole(folder: Path) -> tuple[list[Part], Vocab, Tokenizer, int]:
    vocab = Vocab.load(folder / VOCAB)
    content = _content(folder)
    lengths = [tokens for tokens, *_ in content["parts"]]
    if vocab.sha256 != content["vocab"] or (folder / IDS).stat().st_size != 4 * sum(lengths):
        raise ValueError("the files do not belong together")
    ids = np.memmap(folder / IDS, "<i4", "r") if sum(lengths) else np.zeros(0, np.int32)
    pieces = np.split(ids, np.cumsum(lengths)[:-1])
    parts = [
        Part(name, piece, characters, octets, unknown, (first[0], first[1]), (last[0], last[1]))
        for name, piece, (_, characters, octets, unknown, first, last) in zip(
            PARTS, pieces, content["parts"], strict=True
        )
    ]
    return parts, vocab, make_tokenizer(**content["tokenizer"]), content["erased"]
