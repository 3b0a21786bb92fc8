"""Words: where they begin and end, and the normal form that decoding gives."""

import re
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unspool.data.tokens.segments import UNSPACED
from unspool.data.tokens.words import SpaceTokenizer, WordTokenizer

WORDS = WordTokenizer()
# Letters, marks, digits, Han, kana, quotes, brackets, dashes, blanks of several kinds: what rules are about.
TRICKY = st.text(st.sampled_from("ab_é7٣.,'’\"“”()-—/%中玉あ。，　 \t\n\r\u2028\u0301\u3099𐍈𠀀\U0001d165"))
ANY_TEXT = st.text(st.characters(codec="utf-8"))


def by_regular_expression() -> re.Pattern[str]:
    """Write the rules down a second time, in another language."""
    everything = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    marks = "".join(c for c in everything if unicodedata.category(c)[0] == "M" and not c.isalnum())
    single = "".join(
        c
        for low, high in UNSPACED
        for c in map(chr, range(low, high + 1))
        if c.isalnum() and not c.isdecimal()
    )
    word = rf"(?:(?![{single}])\w|[{marks}])"
    inner = rf"(?:['’](?={word}){word}*|(?<=\d)[.,]\d{word}*)"
    return re.compile(rf"[{single}][{marks}]*|{word}+{inner}*|\n|[^\s]")


PATTERN = by_regular_expression()


@given(text=TRICKY | ANY_TEXT)
@example("It's 3,000.5 o'clock, isn''t it? 'tis.")
def test_words_are_those_of_the_regular_expression(text: str) -> None:
    assert WORDS.encode_text(text) == PATTERN.findall(text)


@given(text=TRICKY | ANY_TEXT)
def test_the_normal_form_has_the_same_tokens(text: str) -> None:
    tokens = WORDS.encode_text(text)
    normal = WORDS.decode(tokens)
    assert WORDS.encode_text(normal) == tokens
    assert WORDS.decode(WORDS.encode_text(normal)) == normal


@given(text=TRICKY | ANY_TEXT)
def test_only_blanks_differ_between_a_text_and_its_normal_form(text: str) -> None:
    normal = WORDS.decode(WORDS.encode_text(text))
    assert "".join(normal.split()) == "".join(text.split())
    assert normal.count("\n") == text.count("\n")


@given(text=TRICKY | ANY_TEXT)
def test_tokens_between_blanks_are_those_of_split(text: str) -> None:
    tokens = SpaceTokenizer().encode_text(text)
    assert [token for token in tokens if token != "\n"] == text.split()
    assert SpaceTokenizer().encode_text(SpaceTokenizer().decode(tokens)) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "The Time Traveller (for so it will be convenient to speak of him) was expounding.",
        "'Is not that rather a large thing?' said Filby, an argumentative person--with red hair.",
        'He said: "No." And went; 3.5 km/h, 100% of 1,000!',
        "Don't—stop… l’été [1898]",
        "此开卷第一回也。作者自云：因曾历过一番梦幻之后，故将真事隐去",
        "हिन्दी में लिखा है",
    ],
)
def test_well_set_text_is_its_own_normal_form(text: str) -> None:
    assert WORDS.decode(WORDS.encode_text(text)) == text


def test_line_ends_can_be_left_out() -> None:
    assert WordTokenizer(newlines=False).encode_text("a\nb") == ["a", "b"]
    assert WORDS.encode_text("a\nb") == ["a", "\n", "b"]


def test_a_text_without_blanks_is_cut_somewhere_safe() -> None:
    text = "红楼梦。" * (1 << 18)
    cut = WORDS.safe_cut(text)
    assert 0 < cut < len(text)
    assert WORDS.encode_text(text[:cut]) + WORDS.encode_text(text[cut:]) == WORDS.encode_text(text)


def test_many_long_and_many_different_words_keep_their_numbers() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in rng.integers(200_000, size=300_000)] + [
        "x" * n for n in range(60, 200)
    ]
    indexer = WORDS.indexer()
    numbers = np.concatenate(
        [indexer.feed(" ".join(words[at : at + 5000])) for at in range(0, len(words), 5000)]
    )
    assert [indexer.token(int(number)) for number in numbers] == words
    assert numbers.max() + 1 == len(set(words))
