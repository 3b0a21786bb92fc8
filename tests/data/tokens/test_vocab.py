"""The vocabulary: every behaviour of the class in common lecture notes, and a file that can be trusted."""

import collections
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.text.clean import clean_lines
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.vocab import Vocab
from unspool.errors import FileError, InputError


class AsPrinted:
    """The vocabulary of the notes, in short."""

    def __init__(self, tokens: list[Any], min_freq: int, reserved: list[str]) -> None:
        if len(tokens) == 0 or isinstance(tokens[0], list):
            tokens = [token for line in tokens for token in line]
        self.token_freqs = sorted(collections.Counter(tokens).items(), key=lambda x: x[1], reverse=True)
        self.idx_to_token = ["<unk>", *reserved]
        for token, freq in self.token_freqs:
            if freq < min_freq:
                break
            if token not in self.idx_to_token:
                self.idx_to_token.append(token)


TOKENS = st.lists(st.sampled_from(["a", "b", "c", "dd", "<pad>", "<unk>"]))


@given(
    tokens=TOKENS | st.lists(TOKENS),
    min_freq=st.integers(0, 3),
    reserved=st.sampled_from([[], ["<pad>", "<bos>"]]),
)
def test_it_numbers_as_the_notes_do(tokens: list[Any], min_freq: int, reserved: list[str]) -> None:
    vocab, printed = Vocab(tokens, min_freq, reserved), AsPrinted(tokens, min_freq, reserved)
    assert vocab.idx_to_token == printed.idx_to_token
    assert vocab.token_freqs == printed.token_freqs
    assert len(vocab) == len(printed.idx_to_token)
    assert vocab.unk == 0


def test_tokens_and_nested_lists_go_both_ways() -> None:
    vocab = Vocab(list("abca"))
    assert vocab["a"] == 1
    assert vocab[["a", ["b", ["c", "?"]]]] == [1, [2, [3, 0]]]
    assert vocab[np.array([["a", "b"], ["c", "?"]])] == [[1, 2], [3, 0]]
    assert vocab.to_tokens([1, [2, (3, 0)]]) == ["a", ["b", ["c", "<unk>"]]]
    assert vocab.to_tokens(np.array([[1, 2], [3, 0]])) == [["a", "b"], ["c", "<unk>"]]
    assert "a" in vocab
    assert "?" not in vocab


def test_unknown_tokens_are_counted_when_met() -> None:
    vocab = Vocab(list("ab"))
    assert vocab[list("abcab?")] == [1, 2, 0, 1, 2, 0]
    assert vocab.unknown_met == 2


@pytest.mark.parametrize("index", [-1, 3])
def test_an_id_outside_is_an_error(index: int) -> None:
    with pytest.raises(InputError, match="0 … 2"):
        Vocab(list("ab")).to_tokens(index)


@pytest.mark.parametrize("reserved", [["<pad>", "<pad>"], ["<unk>"]])
def test_reserved_tokens_must_differ(reserved: list[str]) -> None:
    with pytest.raises(InputError, match="reserved"):
        Vocab([], reserved_tokens=reserved)


@given(tokens=st.lists(st.text(st.characters(exclude_categories=[]), min_size=1)), min_freq=st.integers(0, 2))
def test_a_file_gives_the_vocabulary_back(tokens: list[str], min_freq: int, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("vocab") / "vocab.json"
    vocab = Vocab(tokens, min_freq, ["<pad>"])
    vocab.save(path)
    again = Vocab.load(path)
    assert again.idx_to_token == vocab.idx_to_token
    assert again.token_freqs == vocab.token_freqs
    assert again.sha256 == vocab.sha256


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.json"
    Vocab(list("abc")).save(path)
    content = json.loads(path.read_text())
    content["tokens"].reverse()
    path.write_text(json.dumps(content))
    with pytest.raises(FileError, match="damaged"):
        Vocab.load(path)
    for wrong in ("[]", "{}", "not json"):
        path.write_text(wrong)
        with pytest.raises(FileError, match=r"not a (vocabulary|file of unspool)"):
            Vocab.load(path)
    with pytest.raises(FileError, match="no such file or folder"):
        Vocab.load(tmp_path / "absent")


def test_two_processes_with_different_hash_seeds_give_the_same_ids(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one two three two 三 one! 二 ünd\n" * 3)
    code = (
        "import sys; from unspool.data.text.corpus import prepare\n"
        "for kind in ('char', 'word', 'byte', 'jieba', 'subword:260'):\n"
        "    corpus = prepare(sys.argv[1], tokens=kind)\n"
        "    print(corpus.vocab.sha256, corpus.train.ids.tolist())"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code, str(text)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 5


# ── tuples, arrays, strings ────────────────────────────────────────────────────────────────────────────────


def test_a_tuple_is_one_token_and_a_list_nests() -> None:
    words = ["the", "end", "of", "the", "time", "of", "the", "machine"]
    vocab = Vocab(list(itertools.pairwise(words)), reserved_tokens=[("<bos>", "the")])
    assert vocab.token_freqs[0] == (("of", "the"), 2)
    assert len(vocab) == 8
    assert vocab[("of", "the")] == 2 and vocab[("the", "sea")] == 0
    assert vocab[[("of", "the"), [("<bos>", "the")]]] == [2, [1]]
    assert vocab.to_tokens([2, [1]]) == [("of", "the"), [("<bos>", "the")]]
    assert ("of", "the") in vocab
    lines = Vocab([[("a", "b"), ("b", "a")], [("a", "b")]])
    assert lines.token_freqs == [(("a", "b"), 2), (("b", "a"), 1)]


def test_n_grams_survive_a_file(tmp_path: Path) -> None:
    vocab = Vocab([("a", "b"), ("a", ("b", 3)), "a", 7, ("a", "b")], reserved_tokens=[("<bos>",), "<pad>"])
    vocab.save(tmp_path / "vocab.json")
    again = Vocab.load(tmp_path / "vocab.json")
    assert again.idx_to_token == vocab.idx_to_token and again.sha256 == vocab.sha256
    assert again[("a", ("b", 3))] == vocab[("a", ("b", 3))] != 0


def test_a_token_that_a_file_cannot_hold_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be saved"):
        Vocab([frozenset("ab"), "c"]).save(tmp_path / "vocab.json")
    assert not list(tmp_path.iterdir())


def test_the_bigrams_of_the_time_machine_are_those_of_the_textbook() -> None:
    folder = os.environ.get("UNSPOOL_DATA")
    if not folder or not (path := Path(folder) / "timemachine.txt").is_file():
        pytest.skip("UNSPOOL_DATA does not name a folder with timemachine.txt")
    words = [word for line in clean_lines(path.read_text()) for word in line.split()]
    vocab = Vocab(list(itertools.pairwise(words)))
    assert len(vocab) == 20_235
    assert vocab.token_freqs[0] == (("of", "the"), 309)


@pytest.mark.parametrize(
    ("tokens", "ids"),
    [
        (np.array(["b", "a", "b"]), ["b", "a"]),
        (np.array([["b", "a"], ["b", "c"]]), ["b", "a", "c"]),
        (np.array([3, 1, 3]), [3, 1]),
        ([np.array(["b"]), ["a", "b"]], ["b", "a"]),
        ([np.int64(3), 1, 3], [3, 1]),
        (np.array([]), []),
        (("b", "a", "b"), ["b", "a"]),
        (["b", ["a", "b"]], ["b", "a"]),
        (iter(["b"]), ["b"]),
    ],
    ids=str,
)
def test_arrays_are_read_as_lists(tokens: Any, ids: list[Any], tmp_path: Path) -> None:
    vocab = Vocab(tokens)
    assert vocab.idx_to_token == ["<unk>", *ids]
    vocab.save(tmp_path / "vocab.json")
    assert Vocab.load(tmp_path / "vocab.json").idx_to_token == vocab.idx_to_token


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reserved_tokens": "<pad>"}, r"reserved_tokens is one string, '<pad>'.*pass \[text\]"),
        ({"reserved_tokens": 3}, "reserved_tokens is 3"),
        ({"tokens": "a text"}, r"tokens is one string.*list\(text\)"),
        ({"tokens": 3}, "tokens is 3"),
        ({"tokens": [{"a"}]}, "is a set"),
        ({"tokens": [("a", ["b"])]}, "is a tuple"),
        ({"min_freq": 1.5}, "min_freq is 1.5"),
        ({"min_freq": True}, "min_freq is True"),
        ({"min_freq": -1}, "min_freq is -1"),
    ],
)
def test_what_is_no_list_of_tokens_is_refused_in_one_line(options: Any, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        Vocab(**{"tokens": ["a"]} | options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("index", [1.0, True, "a", None])
def test_an_id_that_is_no_whole_number_is_refused(index: Any) -> None:
    with pytest.raises(InputError, match="0 … 2"):
        Vocab(list("ab")).to_tokens([index])


def test_looking_up_what_cannot_be_a_token_is_refused() -> None:
    with pytest.raises(InputError, match="is a dict"):
        Vocab(list("ab"))[{}]


def test_reserved_tokens_of_a_corpus_are_not_one_string() -> None:
    with pytest.raises(InputError, match="reserved is one string, '<pad>'"):
        TextConfig(reserved="<pad>")  # type: ignore[arg-type]
