"""Tokens of every kind: what goes in comes out again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.data.tokens.characters import ByteTokenizer, code_points
from unspool.data.tokens.registry import make_tokenizer
from unspool.errors import FileError, InputError

ANY_TEXT = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize("kind", ["char", "byte"])
@given(text=ANY_TEXT)
def test_characters_and_bytes_give_every_text_back(kind: str, text: str) -> None:
    tokenizer = make_tokenizer(kind)
    assert tokenizer.decode(tokenizer.encode_text(text)) == text


@given(text=st.text(st.characters(exclude_categories=[])))
def test_even_lone_surrogates_are_characters(text: str) -> None:
    assert make_tokenizer("char").decode(make_tokenizer("char").encode_text(text)) == text
    assert code_points(text).tolist() == list(map(ord, text))


@given(data=st.binary())
def test_any_bytes_are_byte_tokens(data: bytes) -> None:
    assert ByteTokenizer().decode_bytes([chr(byte) for byte in data]) == data


@pytest.mark.parametrize("kind", ["char", "byte", "word", "space", "jieba"])
@given(text=ANY_TEXT)
def test_an_indexer_numbers_the_tokens_of_the_list(kind: str, text: str) -> None:
    tokenizer = make_tokenizer(kind)
    indexer = tokenizer.indexer()
    assert [indexer.token(int(index)) for index in indexer.feed(text)] == tokenizer.encode_text(text)


@pytest.mark.parametrize("kind", ["char", "byte", "jieba"])
@given(text=ANY_TEXT)
def test_widths_add_up_to_the_text(kind: str, text: str) -> None:
    tokenizer = make_tokenizer(kind)
    widths = [tokenizer.width(token) for token in tokenizer.encode_text(text)]
    assert sum(characters for characters, _ in widths) == len(text)
    assert sum(octets for _, octets in widths) == len(text.encode())


@pytest.mark.parametrize("kind", ["char", "byte", "word", "space", "jieba"])
@given(text=ANY_TEXT)
def test_a_safe_cut_does_not_change_tokens(kind: str, text: str) -> None:
    tokenizer = make_tokenizer(kind)
    cut = tokenizer.safe_cut(text)
    assert tokenizer.encode_text(text[:cut]) + tokenizer.encode_text(text[cut:]) == tokenizer.encode_text(
        text
    )


def test_chinese_words_are_found() -> None:
    tokenizer = make_tokenizer("jieba")
    text = "林黛玉见了宝玉，\n便笑道。"
    tokens = tokenizer.encode_text(text)
    assert "林黛玉" in tokens
    assert tokenizer.decode(tokens) == text


@pytest.mark.parametrize("kind", ["char", "byte", "word", "space", "jieba"])
def test_a_tokenizer_can_be_made_again_from_its_description(kind: str) -> None:
    tokenizer = make_tokenizer(kind, newlines=False)
    text = "one, two\nthree"
    assert make_tokenizer(**tokenizer.to_json()).encode_text(text) == tokenizer.encode_text(text)


@pytest.mark.parametrize("kind", ["", "words", "subword"])
def test_an_unknown_kind_raises(kind: str) -> None:
    with pytest.raises(InputError, match="unknown kind"):
        make_tokenizer(kind)


def test_a_missing_or_foreign_subword_file_is_refused(tmp_path: object) -> None:
    with pytest.raises(FileError, match="no such file"):
        make_tokenizer(f"subword:{tmp_path}/absent.json")
    with pytest.raises(InputError, match="start at 257"):
        make_tokenizer("subword:100")
