"""Prepare text: from sources to ids in three splits, with an optional cache.

    sources ─▶ provisional ids ─▶ splits ─▶ vocabulary of the training split ─▶ ids ─▶ cache

The text is read in blocks. The splits are known only after all tokens have been counted, so tokens get provisional ids
first. The vocabulary of the training split then maps these to ids.

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "text"
>>> _ = path.write_text("abracadabra, abracadabra!")
>>> corpus = prepare(path, split=(0.6, 0.2, 0.2))
>>> corpus.vocab.idx_to_token
['<unk>', 'a', 'b', 'r', 'c', 'd', ',', ' ']
>>> corpus.train.ids[:4]
array([1, 2, 3, 1], dtype=int32)
>>> corpus.decode(corpus.test.ids), corpus.test.unknown
('abra<unk>', 1)
>>> temporary.cleanup()
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from unspool.data.text import cache as prepared
from unspool.data.text.clean import Cleaner
from unspool.data.text.id_buffer import IdBuffer
from unspool.data.text.lines import END, line_source, split_lines
from unspool.data.text.numbering import build_vocab, translation
from unspool.data.text.parts import (
    PARTS,
    TRAIN,
    Part,
    cut_parts,
    split_for,
    widths_by_reading,
    widths_by_token,
)
from unspool.data.text.reader import TextReader
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import Names, Source, resolve, source_names
from unspool.data.tokens.registry import Tokenizer, make_tokenizer
from unspool.data.tokens.subword import leading
from unspool.data.tokens.vocab import Vocab
from unspool.errors import EmptyInput, InputError
from unspool.kernels.arrays import Ids, Whole
from unspool.storage.files import as_path
from unspool.storage.staging import atomic_folder


@dataclass(frozen=True)
class Corpus:
    """A text as ids in three splits, with the vocabulary and tokenizer that decode them."""

    train: Part
    valid: Part
    test: Part
    vocab: Vocab
    tokenizer: Tokenizer
    settings: TextConfig
    erased: int = 0
    """Number of letters outside A-Z that cleaning erased."""

    @property
    def parts(self) -> list[Part]:
        """The three splits in order."""
        return [self.train, self.valid, self.test]

    @property
    def end(self) -> int | None:
        """The token that ends a line, where every line is a separate sequence."""
        return line_end(self.vocab, self.settings)

    def encode(self, text: str) -> Ids:
        """Return the ids of a text; tokens outside the vocabulary become ``<unk>`` and are counted in ``vocab.unknown_met``."""
        return encode_text(text, self.vocab, self.tokenizer, self.settings)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; unknown and reserved tokens are written out."""
        return decode_ids(self.vocab, self.tokenizer, ids)


def line_end(vocab: Vocab, settings: TextConfig) -> int | None:
    """Return the token that ends a line, where every line is a separate sequence; else None."""
    if not settings.lines:
        return None
    if END not in vocab.token_to_idx:
        raise InputError(
            f"lines with min_freq {settings.min_freq}: the line end itself became <unk>; choose a lower min_freq"
        )
    return vocab.token_to_idx[END]


def encode_text(text: str, vocab: Vocab, tokenizer: Tokenizer, settings: TextConfig) -> Ids:
    """Return the ids (n,) of a text, read with these settings; unknown tokens become ``<unk>``."""
    return np.array(vocab[tokenizer.encode_text(as_read(text, tokenizer, settings))], np.int32)


def as_read(text: str, tokenizer: Tokenizer, settings: TextConfig) -> str:
    """Return a text with line ends and cleaning as in the settings."""
    if settings.newlines == "lf" or settings.clean or settings.lines:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(Cleaner(tokenizer.line_joint).clean([text])) if settings.clean else text


def decode_ids(vocab: Vocab, tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """Return the text of ids; unknown and reserved tokens are written out.

    >>> vocab = Vocab([["it", "is"]], reserved_tokens=["<eos>"])
    >>> decode_ids(vocab, make_tokenizer("word"), [2, 3, 0, 1])
    'it is <unk> <eos>'
    """
    return "".join(decode_id_stream(vocab, tokenizer, ids))


def decode_id_stream(vocab: Vocab, tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """Yield the text of `decode_ids` in pieces: one per id, and a last one at the end.

    >>> vocab = Vocab(list("Ã©"))
    >>> list(decode_id_stream(vocab, make_tokenizer("byte"), [1, 2, 1, 0]))
    ['', 'é', '', '\ufffd<unk>', '']
    """
    special = 1 + len(vocab.reserved_tokens) if tokenizer.lossless else 0
    remaining, special_tokens = iter(ids), list[str]()

    def until_special() -> Iterator[str]:
        for index in remaining:
            token = vocab.to_tokens(int(index))
            if index < special:
                special_tokens.append(token)
                return
            yield token

    more = True
    while more:
        for piece in tokenizer.decode_stream(until_special()):
            more = bool(special_tokens)
            yield piece + special_tokens.pop() if special_tokens else piece


def prepare(
    sources: Names,
    *,
    valid: Names | None = None,
    test: Names | None = None,
    cache: str | Path | None = None,
    into: Path | None = None,
    tokens: str = "char",
    clean: bool = False,
    split: tuple[float, float, float] | None = (0.9, 0.05, 0.05),
    min_freq: int = 0,
    reserved: tuple[str, ...] = (),
    errors: str = "strict",
    newlines: str = "keep",
    lines: bool = False,
    extends: tuple[Vocab, Tokenizer] | None = None,
) -> Corpus:
    """Read a text, split it into tokens, number these and return them as a corpus.

    With ``valid`` or ``test``, ``sources`` is the training split. Otherwise the text is split in order, with ``split=None`` by
    its length (`split_for`). ``cache`` is a folder in which results are stored and looked up by a hash of sources and
    settings; ``into`` is a folder to store one for `open_corpus`. With ``extends``, tokens are made by that tokenizer, and
    those of that vocabulary keep their ids. The other arguments are the fields of `TextConfig`.
    """
    settings = TextConfig(tokens, clean, split, min_freq, tuple(reserved), errors, newlines, lines)
    groups = [resolve(sources)]
    if valid is not None or test is not None:
        groups += [[] if names is None else resolve(names) for names in (valid, test)]
    if into is not None:
        return _prepare_into(into, groups, settings, extends)
    if cache is None or extends is not None:
        return _prepare(groups, settings, None, extends)
    folder = prepared.cache_folder(as_path(cache), groups, settings)
    if not os.path.isdir(folder):
        with atomic_folder(folder, may_exist=True) as unfinished:
            _prepare_into(unfinished, groups, settings)
    return _from_cache(folder, settings)


def open_corpus(folder: Path, settings: TextConfig) -> Corpus:
    """Open a corpus that was prepared into a folder; the checksum of its ids is verified."""
    prepared.check_ids(folder)
    return _from_cache(folder, settings)


def read_part(sources: Names, vocab: Vocab, tokenizer: Tokenizer, settings: TextConfig) -> Part:
    """Read a text with an existing vocabulary; unknown tokens become ``<unk>`` and are counted."""
    found = resolve(sources)
    if settings.lines:
        found = line_source(found, settings, as_bytes=tokenizer.reads_bytes)
    text = _Numbered([found], tokenizer, settings)
    text.fill()
    span = (0, len(text.buffer))
    text.require_tokens([span])
    counts = [text.buffer.counts(*span)]
    table, (unknown,) = translation(vocab, text.indexer, counts)
    ((characters, octets),) = text.widths([span], counts)
    ends = text.end_widths(*span)
    return Part("text", text.buffer.translate(table), characters, octets, unknown, *ends)


def _prepare_into(
    folder: Path,
    groups: list[list[Source]],
    settings: TextConfig,
    extends: tuple[Vocab, Tokenizer] | None = None,
) -> Corpus:
    corpus = _prepare(groups, settings, folder / prepared.IDS, extends)
    prepared.write(folder, corpus.vocab, corpus.tokenizer, corpus.parts, corpus.erased)
    return corpus


def _from_cache(folder: Path, settings: TextConfig) -> Corpus:
    (train, valid, test), vocab, tokenizer, erased = prepared.read(folder)
    settings = _with_split(settings, sum(len(part.ids) for part in (train, valid, test)))
    return Corpus(train, valid, test, vocab, tokenizer, settings, erased)


def _with_split(settings: TextConfig, tokens: int) -> TextConfig:
    """Return the settings with an explicit split."""
    return settings if settings.split is not None else replace(settings, split=split_for(tokens))


def _prepare(
    groups: list[list[Source]],
    settings: TextConfig,
    path: Path | None,
    extends: tuple[Vocab, Tokenizer] | None = None,
) -> Corpus:
    old, tokenizer = extends or (None, make_tokenizer(settings.tokens, newlines=not settings.clean))
    if settings.lines:
        groups = _as_lines(groups, tokenizer, settings)
    text = _Numbered(groups, tokenizer, settings, path)
    learned = text.learn(TRAIN if settings.split is None else settings.split[0])
    text.fill()
    least, buffer = text.tokens_of(learned) if learned else 0, text.buffer
    settings = _with_split(settings, len(buffer))
    assert settings.split is not None
    spans = cut_parts(list(accumulate(map(sum, text.lengths))), settings.split, least)
    erased = text.reader.erased
    text.require_tokens(spans)
    counts = [buffer.counts(*span) for span in spans]
    vocab = build_vocab(tokenizer, text.indexer, buffer, counts[0], spans[0][1], settings, old)
    table, unknown = translation(vocab, text.indexer, counts)
    widths = text.widths(spans, counts)
    ends = [text.end_widths(*span) for span in spans]
    ids = buffer.translate(table)
    train, valid, test = (
        Part(name, ids[start:stop], *width, missed, *end)
        for name, (start, stop), width, missed, end in zip(PARTS, spans, widths, unknown, ends, strict=True)
    )
    return Corpus(train, valid, test, vocab, tokenizer, settings, erased)


def _as_lines(groups: list[list[Source]], tokenizer: Tokenizer, settings: TextConfig) -> list[list[Source]]:
    """Return one group of lines per split."""
    as_bytes = tokenizer.reads_bytes
    if len(groups) > 1:
        return [line_source(group, settings, as_bytes=as_bytes) for group in groups]
    return split_lines(groups[0], settings, as_bytes=as_bytes)


class _Numbered:
    """Groups of sources as provisional ids: one text, or one per split."""

    def __init__(
        self,
        groups: list[list[Source]],
        tokenizer: Tokenizer,
        settings: TextConfig,
        path: Path | None = None,
    ) -> None:
        self.groups, self.tokenizer = groups, tokenizer
        self.reader, self.indexer, self.buffer = (
            TextReader(settings, tokenizer),
            tokenizer.indexer(),
            IdBuffer(path),
        )
        self.lengths: list[list[int]] = []
        """The number of tokens of each piece, per group."""

    def learn(self, fraction: float) -> int:
        """Learn the tokens from the training split, if the tokenizer needs it; return the number of characters used.

        With one text to be split, the training split is the first fraction of its characters.
        """
        if not self.tokenizer.needs_learning:
            return 0
        characters = sum(map(len, self.reader.pieces(self.groups[0])))
        part = characters if len(self.groups) > 1 else int(fraction * characters)
        self.tokenizer.learn(leading(self.reader.pieces(self.groups[0]), part))
        self.reader.erased = 0
        return part

    def fill(self) -> None:
        """Append all sources to the buffer."""
        for group in self.groups:
            self.lengths.append([])
            for block in self.reader.numbered(group, self.indexer):
                self.buffer.append(block)
                self.lengths[-1].append(len(block))

    def tokens_of(self, characters: int) -> int:
        """Return the number of tokens of the first `characters` characters, all of which belong to the training split."""
        types = len(self.buffer.counts(0, len(self.buffer)))
        widths = np.array([self._width(index)[0] for index in range(types)])
        return self.buffer.reach(widths, characters)

    def require_tokens(self, spans: list[tuple[int, int]]) -> None:
        """Raise EmptyInput if there are no tokens, or none in the training split."""
        name, erased, tokens = source_names(self.groups[0]), self.reader.erased, spans[-1][1]
        if not tokens and erased:
            raise EmptyInput(
                f"{name}: cleaning erased all {erased:,} letters, none is A-Z; read it with clean=False"
            )
        if not tokens:
            raise EmptyInput(f"{name}: empty, there is no text in it")
        if not spans[0][1]:
            raise EmptyInput(f"{name}: too short to split: of {tokens} tokens none is left for training")

    def widths(self, spans: list[tuple[int, int]], counts: list[Whole]) -> list[tuple[int, int]]:
        """Return the characters and bytes of each split."""
        if self.tokenizer.lossless:
            return widths_by_token(self.tokenizer, self.indexer, counts)
        one_text = len(self.groups) == 1
        stops = [[stop for _, stop in spans]] if one_text else [[sum(tokens)] for tokens in self.lengths]
        found = [
            widths_by_reading(self.reader.pieces(group), tokens, stop, self.tokenizer.end_of)
            for group, tokens, stop in zip(self.groups, self.lengths, stops, strict=True)
        ]
        return [width for widths in found for width in widths]

    def end_widths(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return characters and bytes of the first and the last token of a split."""
        return [self._width(self.buffer.at(at)) for at in (start, stop - 1) if start < stop]

    def _width(self, index: int) -> tuple[int, int]:
        return self.tokenizer.width(self.indexer.token(index))
