"""Stop texts: the text ends before the first of them, wherever the tokens are cut."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import InputError
from unspool.model.config import ModelConfig
from unspool.model.generate import Sampling
from unspool.model.network import Model
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.language.stop import StopFilter
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning


def ended(text: str, stops: list[str]) -> str:
    """Return the text up to the piece-independent end: before the stop text that is complete first."""
    for n in range(len(text) + 1):
        found = [text[:n].find(stop) for stop in stops if stop in text[:n]]
        if found:
            return text[: min(found)]
    return text


@given(
    st.lists(st.text("ab\n", max_size=4), max_size=12),
    st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3),
)
def test_a_text_ends_before_the_first_stop_text_however_it_is_cut_into_pieces(
    pieces: list[str], stops: list[str]
) -> None:
    by_characters = "".join(StopFilter(stops).pieces("".join(pieces)))
    assert by_characters == ended("".join(pieces), stops)
    in_pieces = "".join(StopFilter(stops).pieces(pieces))
    assert "".join(pieces).startswith(in_pieces)
    assert not any(stop in in_pieces for stop in stops)


def test_text_that_may_begin_a_stop_text_is_held_back_and_no_more() -> None:
    assert list(StopFilter("END").pieces(["a", "E", "N", "x", "E"])) == ["a", "", "", "ENx", "", "E"]
    assert list(StopFilter(["ENDE", "D."]).pieces(["EN", "D", ".", "never"])) == ["", "", "EN"]


def test_no_piece_is_taken_after_the_stop_text() -> None:
    pieces = iter(["a", "b", "c", "d"])
    stop = StopFilter("b")
    assert "".join(stop.pieces(pieces)) == "a" and stop.found == "b" and next(pieces) == "c"


@pytest.mark.parametrize("wrong", ["", [""], ["a", 3]])
def test_an_empty_stop_text_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="stop"):
        StopFilter(wrong)  # type: ignore[arg-type]


def text_model(kind: str, text: str, *, backward: bool = False) -> TextModel:
    tokenizer = make_tokenizer(kind)
    vocab = Vocab(tokenizer.encode_text(text))
    config = ModelConfig(cell="gru", inputs=len(vocab), outputs=len(vocab), hidden=8)
    return TextModel(Model.initialise(config, seed=1), vocab, tokenizer, TextConfig(tokens=kind), backward)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kind", ["char", "byte", "word"])
def test_a_generated_text_ends_at_its_stop_text(kind: str, backward: bool) -> None:
    model = text_model(kind, "été: the cat sat on\nthe mat. " * 3, backward=backward)
    whole = model.generate("the ", 120, seed=3)
    for begin in (10, 25, 40):
        stop = whole[begin : begin + 3]
        found = model.generate("the ", 120, seed=3, stop=["never in it", stop])
        wanted = whole[whole.rindex(stop) + 3 :] if backward else whole[: whole.index(stop)]
        assert found == wanted
    assert model.generate("the ", 120, seed=3, stop="never in it") == whole


def test_a_saved_state_goes_on_under_a_repetition_penalty(tmp_path: Path) -> None:
    model = text_model("char", "the cat sat on the mat")
    how = Sampling(1.0, repetition_penalty=3.0, repetition_window=6)
    reader = TextGenerator(model)
    reader.read("the cat")
    whole = list(islice(reader.write(5, how), 40))
    first, second = TextGenerator(model), TextGenerator(model)
    first.read("the cat")
    begun = list(islice(first.write(5, how), 3))
    first.save(tmp_path / "place", 5)
    second.load(tmp_path / "place")
    assert begun + list(islice(second.write(5, how), 37)) == whole
    plain = TextGenerator(model)
    plain.read("the cat")
    assert list(islice(plain.write(5, Sampling(1.0)), 40)) != whole
    assert np.array_equal(second.history.seen(), reader.history.seen())


def test_a_prompt_that_is_learned_from_counts_as_seen() -> None:
    model = text_model("char", "the cat sat on the mat")
    plain, learning = TextGenerator(model), TextGenerator(model, Learning(learn_rate=1e-3, learn_segment=4))
    for reader in (plain, learning):
        reader.read("the cat")
        reader.read(" sat")
    assert np.array_equal(plain.history.seen(3), learning.history.seen(3))
    assert np.array_equal(plain.history.seen(), learning.history.seen())
