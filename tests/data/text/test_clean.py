"""The cleaning of common lecture notes, against the code that they print."""

import re

from hypothesis import given
from hypothesis import strategies as st

from unspool.data.text.clean import Cleaner


def as_printed(text: str) -> list[str]:
    return [re.sub("[^A-Za-z]+", " ", line).strip().lower() for line in text.splitlines(keepends=True)]


LINES = st.text(st.sampled_from("aZé中 ,.1\n"))


@given(text=LINES, pieces=st.integers(1, 5))
def test_cleaning_a_stream_is_cleaning_its_lines(text: str, pieces: int) -> None:
    size = len(text) // pieces + 1
    blocks = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(Cleaner("").clean(blocks)) == "".join(as_printed(text))
    words = [word for line in as_printed(text) for word in line.split()]
    assert "".join(Cleaner(" ").clean(blocks)).split() == words


@given(text=LINES)
def test_letters_that_are_erased_are_counted(text: str) -> None:
    cleaner = Cleaner("")
    list(cleaner.clean([text]))
    assert cleaner.erased == text.count("é") + text.count("中")
