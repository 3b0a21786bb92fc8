"""Files of all kinds, and models, for the tests of compression."""

from __future__ import annotations

import csv
import io
import random
import zipfile
import zlib
from pathlib import Path

import numpy as np

from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.tasks.language.text_model import TextModel

SENTENCE = "she sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure.\n"
PROJECT = Path(__file__).parents[1]
LANGUAGES = (
    "The machine stopped, and the traveller looked round at the grey light of the morning. ",
    "Die Maschine hielt, und der Reisende sah sich um: überall graues Licht. ",
    "La machine s'arrêta ; le voyageur regarda autour de lui, étonné. ",
    "Машина остановилась, и путешественник огляделся вокруг. ",
    "机器停了下来，旅行者环顾四周，只见灰色的晨光。",
    "आदमी ने चारों ओर देखा। توقفت الآلة ونظر المسافر حوله. 🐚🌊 ",
)


def texts(rng: random.Random) -> list[bytes]:
    mixed = [" ".join(rng.choices(each.split() or [each], k=60)) for each in LANGUAGES]
    codecs = ("utf-8", "utf-16", "utf-32-le", "utf-8-sig")
    return [text[: rng.randrange(1, 400)].encode(codec) for text in mixed for codec in codecs]


def tables_of_numbers(rng: random.Random) -> list[bytes]:
    found = []
    for columns in (1, 3, 7):
        sheet = io.StringIO()
        csv.writer(sheet).writerows([[rng.randrange(1000) for _ in range(columns)] for _ in range(30)])
        found += [sheet.getvalue().encode(), sheet.getvalue().replace("\r\n", "\n").encode()]
    found += [np.arange(n, dtype=kind).tobytes() for n in (3, 100) for kind in ("<i2", ">i4", "<f4", "<f8")]
    return found


def binaries(rng: random.Random) -> list[bytes]:
    found = [rng.randbytes(n) for n in (1, 2, 3, 15, 16, 17, 255, 256, 600)]
    found += [bytes([value]) * n for value in (0, 1, 127, 255) for n in (1, 7, 64, 3000)]
    found += [bytes(rng.choices(b"ab", k=n)) for n in (5, 50, 500)]
    found += [zlib.compress(rng.randbytes(100) + b"text " * n) for n in (1, 40)]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("a.txt", "stored " * 20)
    rows = b"".join(b"\0" + rng.randbytes(24) for _ in range(8))
    picture = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\x08\0\0\0\x08\x08\x02\0\0\0" + zlib.compress(rows)
    return [
        *found,
        archive.getvalue(),
        picture,
        bytes(range(256)),
        bytes(range(256)) * 3,
        b"",
        b"\n",
        b"\r\n" * 9,
    ]


def sources(rng: random.Random) -> list[bytes]:
    paths = sorted(PROJECT.glob("src/unspool/*/*.py")) + sorted(PROJECT.glob("docs/*.md"))
    found = []
    for path in rng.sample(paths, 130):
        content = path.read_bytes()
        begin = rng.randrange(max(len(content) - 200, 1))
        found.append(content[begin : begin + rng.randrange(20, 500)])
    return found


def files() -> list[bytes]:
    rng = random.Random(7)
    return texts(rng) + tables_of_numbers(rng) + binaries(rng) + sources(rng)


def model_of(kind="char", *, backward=False, text=SENTENCE, min_freq=0, seed=1, **more):
    """An untrained model of some text."""
    tokenizer = make_tokenizer(kind)
    if kind.startswith("subword"):
        tokenizer.learn([text])
    tokens = tokenizer.encode_text(text)
    met = Vocab(tokens, min_freq).token_freqs
    unmet = [(token, 0) for token in tokenizer.alphabet() if token not in dict(met)]
    vocab = Vocab.from_freqs([*met, *unmet], min_freq)
    config = ModelConfig(**{"cell": "gru", "inputs": len(vocab), "outputs": len(vocab), "hidden": 12} | more)
    return TextModel(
        Model.initialise(config, seed=seed), vocab, tokenizer, TextConfig(kind, min_freq=min_freq), backward
    )


MODELS = {
    "char": model_of(),
    "char, some unknown": model_of(min_freq=4),
    "char, all unknown": model_of(min_freq=10**6),
    "char, backward": model_of(backward=True),
    "byte": model_of("byte"),
    "byte, some unknown": model_of("byte", min_freq=4),
    "subword": model_of("subword:300"),
    "subword, some unknown": model_of("subword:300", min_freq=2),
    "jieba": model_of("jieba"),
}
