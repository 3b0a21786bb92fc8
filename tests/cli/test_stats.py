"""``unspool stats`` as a user runs it."""

import io
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.ngram_counts import count_ngrams
from unspool.cli.main import main
from unspool.data.text.corpus import prepare

TEXT = "the time traveller spoke of time, and the time machine stood by. 時間。\n" * 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "story.txt"
    rng = np.random.default_rng(0)
    words = ["the", "time", "machine", "of", "traveller", "spoke", "and", "time", "the", "時間", "\n", "."]
    path.write_text(TEXT + " ".join(rng.choice(words, size=900)), encoding="utf-8")
    return path


def run(*arguments: object) -> int:
    return main(["stats", *map(str, arguments)])


@pytest.mark.parametrize("tokens", ["char", "word", "byte", "space", "jieba", "subword:300"])
def test_every_kind_of_tokens_is_described(
    path: Path, tokens: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(path, "--tokens", tokens) == 0
    printed = capsys.readouterr().out
    for expected in (
        "train",
        "valid",
        "test",
        "unknown",
        "most frequent",
        "Zipf",
        "±",
        "unseen",
        "uniform",
    ):
        assert expected in printed
    for order in (1, 2, 3):
        assert f"{order}-grams, Laplace" in printed
        assert f"{order}-grams, Kneser-Ney" in printed


def test_json_says_what_the_library_says(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--tokens", "word", "--json", "--top", "2") == 0
    found = json.loads(capsys.readouterr().out)
    corpus = prepare(path, tokens="word")
    assert found["settings"]["tokens"] == "word"
    assert found["vocabulary"] == len(corpus.vocab)
    assert [part["tokens"] for part in found["parts"]] == [len(part.ids) for part in corpus.parts]
    assert found["most_frequent"] == [list(item) for item in corpus.vocab.token_freqs[:2]]
    assert [fit["ranks"][0] for fit in found["zipf"]] == [1, 1, 1]
    uniform, strong = found["scores"][0], found["scores"][-1]
    assert uniform["perplexity"] == pytest.approx(len(corpus.vocab))
    model = kneser_ney(count_ngrams(corpus.train.ids, len(corpus.vocab), 3))
    assert strong["nats"] == pytest.approx(-model.log_prob(corpus.test.ids).mean())
    assert strong["targets"] == len(corpus.test.ids) - 1
    first = len(corpus.vocab.to_tokens(int(corpus.test.ids[0])))
    bits = strong["nats"] * strong["targets"] / math.log(2)
    assert strong["bits_per_character"] == pytest.approx(bits / (corpus.test.characters - first))


def test_unseen_ngrams_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train").write_text("abcabcabcabc")
    (tmp_path / "test").write_text("abcacbab")
    assert run(tmp_path / "train", "--test", tmp_path / "test", "--json", "--ranks", "1", "3") == 0
    one, two, three = json.loads(capsys.readouterr().out)["unseen"]
    assert (one["tokens"], one["unseen_tokens"], one["types"], one["unseen_types"]) == (8, 0, 3, 0)
    assert (two["tokens"], two["unseen_tokens"], two["types"], two["unseen_types"]) == (7, 3, 6, 3)
    assert (three["tokens"], three["unseen_tokens"], three["types"], three["unseen_types"]) == (6, 4, 6, 4)


def test_the_two_directions_stand_side_by_side(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--backward", "--json") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    corpus = prepare(path)
    model = kneser_ney(count_ngrams(corpus.train.ids[::-1], len(corpus.vocab), 3))
    expected = -model.log_prob(corpus.test.ids[::-1]).mean()
    assert [score["backward"] for score in scores] == [False] * 7 + [True] * 6
    assert scores[-1]["nats"] == pytest.approx(expected)
    assert run(path, "--backward") == 0
    assert "3-grams, Kneser-Ney, backward" in capsys.readouterr().out


def test_infinity_is_a_string_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train").write_text("abcabcabcabc")
    (tmp_path / "test").write_text("acb")
    files = (tmp_path / "train", "--test", tmp_path / "test")
    assert run(*files, "--eps", "0", "--json") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert any(score["perplexity"] == "inf" for score in scores if score["model"] == "Laplace")


def test_a_picture_is_drawn(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--tokens", "word", "--plot", tmp_path / "zipf.png") == 0
    assert (tmp_path / "zipf.png").read_bytes().startswith(b"\x89PNG")
    assert "Zipf" in capsys.readouterr().out


def test_cleaning_says_what_it_erased(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--clean", "--tokens", "word") == 0
    assert "letters that are not A-Z" in capsys.readouterr().out


def test_a_text_too_short_to_judge_is_described_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("a", "ab", "abcdefghij"):
        (tmp_path / "short").write_text(text)
        assert run(tmp_path / "short", "--split", "1", "0", "0") == 0
        assert "nothing to predict" in capsys.readouterr().out


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run("-") == 0
    assert "2,0" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.txt"], "absent.txt: no such file or folder"),
        (["empty.txt"], "empty"),
        (["/dev/null"], "empty"),
        (["empty"], "a folder without text"),
        (["bad.txt"], "byte 0xff at offset 3 is not UTF-8"),
        (["bad.txt", "--errors", "ignore"], "errors is 'ignore'; expected one of strict, replace"),
        (["story.txt", "--tokens", "letters"], "unknown kind 'letters'"),
        (["story.txt", "--split", "0.5", "0.1", "0.1"], "add up to 1"),
        (["story.txt", "--plot", "picture.txt"], "ends with .png"),
        (["story.txt", "--order", "0"], "order is 0; expected a whole number of 1 or more"),
        (["story.txt", "--ranks", "1", "2"], "ranks"),
        (["builtin:what"], "builtin:python-docs"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_two(
    path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(path.parent)
    Path("empty.txt").touch()
    Path("empty").mkdir(exist_ok=True)
    Path("bad.txt").write_bytes(b"abc\xff")
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_an_unknown_option_is_not_taken_for_a_text(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--toknes", "word") == 2
    assert "unknown option --toknes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["timemachine.txt", "hongloumeng.txt"])
def test_real_books_go_through(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = os.environ.get("UNSPOOL_DATA")
    if not folder:
        pytest.skip("UNSPOOL_DATA does not name a folder of texts")
    assert run(Path(folder) / name, "--json") == 0
    assert json.loads(capsys.readouterr().out)["scores"][-1]["perplexity"] < 60
