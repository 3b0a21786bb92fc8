"""A prepared corpus: parts, ids, unknown tokens, sizes, and the cache."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.data.text import cache as prepared
from unspool.data.text import id_buffer as spool
from unspool.data.text.corpus import Corpus, open_corpus, prepare, read_part
from unspool.data.text.source import text_source
from unspool.data.tokens.registry import make_tokenizer
from unspool.errors import EmptyInput, FileError, InputError
from unspool.storage.files import UNFINISHED

TEXT = "It was at ten o'clock to-day: the first of all Time Machines began its career. 時間機械。\n" * 7
KINDS = ["char", "word", "byte", "space", "jieba", "subword:300"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def whole(corpus: Corpus) -> list[int]:
    return np.concatenate([part.ids for part in corpus.parts]).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_tokens_of_the_text_in_order(path: Path, kind: str) -> None:
    corpus = prepare(path, tokens=kind)
    tokens = corpus.tokenizer.encode_text(TEXT)
    assert corpus.vocab.to_tokens(whole(corpus)) == tokens
    assert [len(part.ids) for part in corpus.parts] == [
        int(len(tokens) * 0.9),
        int(len(tokens) * 0.95) - int(len(tokens) * 0.9),
        len(tokens) - int(len(tokens) * 0.95),
    ]
    assert all(part.ids.dtype == np.int32 for part in corpus.parts)


@pytest.mark.parametrize("kind", ["char", "byte", "jieba", "subword:300"])
def test_text_comes_back_from_ids(path: Path, kind: str) -> None:
    corpus = prepare(path, tokens=kind, split=(1, 0, 0))
    assert corpus.decode(corpus.train.ids) == TEXT
    assert corpus.decode(corpus.encode(TEXT)) == TEXT


@pytest.mark.parametrize("kind", KINDS)
def test_characters_and_bytes_of_the_parts_add_up_to_the_text(path: Path, kind: str) -> None:
    corpus = prepare(path, tokens=kind, split=(0.5, 0.3, 0.2))
    assert sum(part.characters for part in corpus.parts) == len(TEXT)
    assert sum(part.bytes for part in corpus.parts) == len(TEXT.encode())


def test_a_part_of_words_ends_where_its_last_token_ends(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("aé  b, c    d\n")
    corpus = prepare(path, tokens="word", split=(0.5, 0.34, 0.16))
    assert [len(part.ids) for part in corpus.parts] == [3, 2, 1]
    assert [part.characters for part in corpus.parts] == [len("aé  b,"), len(" c    d"), len("\n")]
    assert [part.bytes for part in corpus.parts] == [7, 7, 1]


def test_the_vocabulary_knows_only_the_training_part(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("aabbbc" + "xy")
    corpus = prepare(path, split=(0.75, 0.25, 0))
    assert corpus.vocab.token_freqs == [("b", 3), ("a", 2), ("c", 1)]
    assert corpus.valid.ids.tolist() == [0, 0]
    assert [part.unknown for part in corpus.parts] == [0, 2, 0]


def test_bytes_are_never_unknown(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"aaab" + bytes(range(256)))
    corpus = prepare(path, tokens="byte", split=(0.01, 0.0, 0.99))
    assert len(corpus.vocab) == 257
    assert corpus.test.unknown == 0
    assert 0 not in corpus.test.ids


def test_bytes_that_are_no_text_are_kept_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xff\xfe\x00" * 9)
    corpus = prepare(path, tokens="byte", split=(1, 0, 0))
    assert bytes(map(ord, corpus.vocab.to_tokens(corpus.train.ids))) == b"\xff\xfe\x00" * 9


def test_rare_and_reserved_tokens(path: Path) -> None:
    corpus = prepare(path, tokens="word", min_freq=8, reserved=("<pad>", "<eos>"), split=(1, 0, 0))
    counts = Counter(make_tokenizer("word").encode_text(TEXT))
    assert corpus.vocab.idx_to_token[:3] == ["<unk>", "<pad>", "<eos>"]
    assert set(corpus.vocab.idx_to_token[3:]) == {token for token, n in counts.items() if n >= 8}
    assert corpus.train.unknown == sum(n for n in counts.values() if n < 8)


def test_unk_written_in_the_text_is_not_counted_as_unknown(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("the <unk> of the <unk> new\n")
    corpus = prepare(path, tokens="space", split=(0.7, 0.3, 0))
    assert corpus.train.ids.tolist() == [1, 0, 2, 1]
    assert corpus.valid.ids.tolist() == [0, 0, 0]
    assert corpus.valid.unknown == 2
    assert corpus.decode(corpus.train.ids) == "the <unk> of the"


def test_parts_can_be_given_as_files(tmp_path: Path) -> None:
    names = []
    for name, text in (("train", "one two three"), ("valid", "two four"), ("test", "five  one ")):
        (tmp_path / name).write_text(text)
        names.append(tmp_path / name)
    corpus = prepare(names[0], valid=names[1], test=names[2], tokens="word")
    assert [part.ids.tolist() for part in corpus.parts] == [[1, 2, 3], [2, 0], [0, 1]]
    assert [part.unknown for part in corpus.parts] == [0, 1, 1]
    assert [part.characters for part in corpus.parts] == [13, 8, 10]
    only_test = prepare(names[0], test=names[2], tokens="word")
    assert [len(part.ids) for part in only_test.parts] == [3, 0, 2]


def test_cleaning_keeps_letters_and_counts_what_it_erases(path: Path) -> None:
    corpus = prepare(path, clean=True, split=(1, 0, 0))
    line = "it was at ten o clock to day the first of all time machines began its career"
    assert corpus.decode(corpus.train.ids) == line * 7
    assert corpus.erased == 4 * 7
    words = prepare(path, clean=True, tokens="word", split=(1, 0, 0))
    assert words.vocab.to_tokens(words.train.ids[:4]) == ["it", "was", "at", "ten"]
    assert len(words.train.ids) == 7 * len(line.split())
    assert words.encode("It WAS!").tolist() == [words.vocab["it"], words.vocab["was"]]


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("红楼梦")
    with pytest.raises(EmptyInput, match="erased all 3 letters"):
        prepare(path, clean=True)
    with pytest.raises(EmptyInput, match="none is left for training"):
        prepare(path, split=(0.1, 0.1, 0.8))
    path.write_text("")
    for kind in ("char", "byte", "word"):
        with pytest.raises(EmptyInput, match="empty"):
            prepare(path, tokens=kind)


@pytest.mark.parametrize("split", [(0.5, 0.5, 0.5), (0, 0.5, 0.5), (1.2, -0.1, -0.1)])
def test_a_split_must_add_up(path: Path, split: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="add up to 1"):
        prepare(path, split=split)


@pytest.mark.parametrize("kind", KINDS)
def test_large_and_small_texts_go_the_same_way(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = prepare(path, tokens=kind)
    monkeypatch.setattr("unspool.data.text.source.byte_blocks.__defaults__", (50,))
    monkeypatch.setattr(spool.IdBuffer.__init__, "__defaults__", (None, 10))
    monkeypatch.setattr(spool, "BLOCK", 7)
    large = prepare(path, tokens=kind)
    assert isinstance(large.train.ids, np.memmap)
    assert whole(large) == whole(small)
    assert large.vocab.sha256 == small.vocab.sha256
    assert [(p.characters, p.bytes) for p in large.parts] == [(p.characters, p.bytes) for p in small.parts]


@settings(max_examples=40)
@given(text=st.text(st.sampled_from("abcdé時𐍈 \n"), min_size=5), block=st.integers(4, 9))
def test_equally_frequent_characters_are_numbered_by_first_appearance(
    text: str, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("ties") / "text"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unspool.data.text.source.byte_blocks.__defaults__", (block,))
        corpus = prepare(path, split=(1, 0, 0))
    assert corpus.vocab.token_freqs == Counter(text).most_common()


def test_the_cache_is_found_again_and_gives_the_same(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for kind in KINDS:
        plain, made, found = (
            prepare(path, tokens=kind),
            *(prepare(path, tokens=kind, cache=cache) for _ in range(2)),
        )
        assert isinstance(found.train.ids, np.memmap)
        assert whole(plain) == whole(made) == whole(found)
        assert plain.vocab.sha256 == found.vocab.sha256
        assert [p.characters for p in plain.parts] == [p.characters for p in found.parts]
        assert found.tokenizer.encode_text(TEXT) == plain.tokenizer.encode_text(TEXT)
    assert len(list(cache.iterdir())) == len(KINDS)


def test_another_text_or_another_setting_is_another_entry(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    prepare(path, cache=cache)
    prepare(path, cache=cache, min_freq=2)
    path.write_text(TEXT + "!", encoding="utf-8")
    assert prepare(path, cache=cache, split=(1, 0, 0)).decode([1]) == " "
    assert len(list(cache.iterdir())) == 3


def test_interrupted_preparation_leaves_nothing_that_looks_whole(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    code = (
        "import os, sys\n"
        "import unspool.data.text.corpus as corpus\n"
        "corpus.prepared.write = lambda *_: os._exit(9)\n"
        "corpus.prepare(sys.argv[1], cache=sys.argv[2])"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path), str(cache)], check=False)
    assert killed.returncode == 9
    (left,) = cache.iterdir()
    assert left.name.startswith(UNFINISHED)
    assert prepare(path, cache=cache).decode(prepare(path, cache=cache).train.ids[:6]) == TEXT[:6]
    assert not left.exists()
    assert len(list(cache.iterdir())) == 1


def test_an_error_on_the_way_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"abc\xff")
    with pytest.raises(InputError, match="offset 3"):
        prepare(tmp_path / "bad", cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_what_another_process_is_making_is_left_alone(path: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "cache" / f"{UNFINISHED}{os.getpid()}-0"
    theirs.mkdir(parents=True)
    prepare(path, cache=tmp_path / "cache")
    assert theirs.is_dir()


def test_a_damaged_cache_is_refused(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    prepare(path, cache=cache)
    (folder,) = cache.iterdir()
    with (folder / prepared.IDS).open("r+b") as file:
        file.truncate(8)
    with pytest.raises(FileError, match="delete this folder"):
        prepare(path, cache=cache)
    (folder / prepared.CORPUS).write_text("{")
    with pytest.raises(FileError, match="delete this folder"):
        prepare(path, cache=cache)


def test_a_cache_that_cannot_be_written_is_an_error(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        prepare(path, cache=tmp_path / "file")


def test_what_subwords_were_learned_from_is_in_the_training_part(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(
        "abcd " * 500 + "x?y!z;" * 200
    )  # learned well at first, then many tokens for few characters
    corpus = prepare(path, tokens="subword:300", split=(0.6, 0.2, 0.2))
    assert corpus.train.characters >= int(0.6 * 3700)
    assert sum(part.characters for part in corpus.parts) == 3700
    assert len(corpus.train.ids) + len(corpus.valid.ids) + len(corpus.test.ids) == len(
        corpus.tokenizer.encode_text(path.read_text())
    )


def test_learned_subwords_are_kept_with_the_corpus(path: Path, tmp_path: Path) -> None:
    corpus = prepare(path, tokens="subword:300", cache=tmp_path / "cache")
    assert len(corpus.vocab) == 301
    (folder,) = (tmp_path / "cache").iterdir()
    model = json.loads((folder / prepared.CORPUS).read_text())["tokenizer"]["model"]
    (tmp_path / "tokenizer.json").write_text(model)
    again = prepare(path, tokens=f"subword:{tmp_path / 'tokenizer.json'}")
    assert whole(again) == whole(corpus)


def test_a_part_that_begins_with_an_unknown_token_counts_its_real_width(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("ab" * 18 + "zabé")
    for cache in (None, tmp_path / "cache", tmp_path / "cache"):
        corpus = prepare([text], split=(0.9, 0.0, 0.1), cache=cache)
        assert corpus.test.unknown == 2
        assert corpus.test.widths_after_first() == (3, 4)
        assert corpus.test.widths_after_first(backward=True) == (3, 3)


def test_a_corpus_kept_in_a_folder_is_opened_again_and_every_byte_counts(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    made = prepare(path, into=folder)
    again = open_corpus(folder, made.settings)
    for one, two in zip(made.parts, again.parts, strict=True):
        assert one.ids.tolist() == two.ids.tolist() and one.bytes == two.bytes
    damaged = bytearray((folder / prepared.IDS).read_bytes())
    damaged[7] ^= 1
    (folder / prepared.IDS).write_bytes(damaged)
    with pytest.raises(FileError, match="damaged"):
        open_corpus(folder, made.settings)


@pytest.mark.parametrize("tokens", ["char", "byte", "word"])
def test_a_part_read_with_a_vocabulary_equals_the_part_prepared_with_it(tokens: str, tmp_path: Path) -> None:
    for name, text in (("train", TEXT), ("valid", TEXT[:70] + "Ωé ωωω\n" + TEXT[30:50])):
        (tmp_path / name).write_text(text, encoding="utf-8")
    made = prepare(tmp_path / "train", valid=tmp_path / "valid", tokens=tokens)
    part = read_part(tmp_path / "valid", made.vocab, made.tokenizer, made.settings)
    assert part.ids.tolist() == made.valid.ids.tolist()
    sizes = (part.characters, part.bytes, part.unknown, part.first, part.last)
    wanted = made.valid
    assert sizes == (wanted.characters, wanted.bytes, wanted.unknown, wanted.first, wanted.last)
    with pytest.raises(EmptyInput, match="empty"):
        read_part(text_source(""), made.vocab, made.tokenizer, made.settings)
