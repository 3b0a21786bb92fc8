"""The advice to use sub-words: for long texts that are written in words, and only there."""

from collections.abc import Callable

import pytest

from unspool.cli.views import vocabulary
from unspool.cli.views.vocabulary import subword_line
from unspool.data.text.corpus import prepare
from unspool.data.text.source import text_source

ENGLISH, CHINESE = "she sells sea shells by the sea shore\n" * 40, "道可道，非常道；名可名，非常名。\n" * 80


@pytest.mark.parametrize(
    ("text", "settings", "advice"),
    [
        (ENGLISH, {}, "--tokens subword:1000"),
        (ENGLISH * 3, {}, "--tokens subword:4000"),
        (
            ENGLISH,
            {"tokens": "word"},
            "spelled out: --tokens subword:1000",
        ),
        (ENGLISH[:900], {}, None),
        (ENGLISH, {"tokens": "byte"}, None),
        (ENGLISH, {"clean": True}, None),
        (CHINESE, {}, None),
        (CHINESE, {"tokens": "word"}, None),
    ],
)
def test_sub_words_are_advised_for_long_texts_in_words(
    text: str, settings: dict, advice: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "LONG", 1000)
    monkeypatch.setattr(vocabulary, "LONGER", 3000)
    found: Callable[[], str] = lambda: subword_line(prepare(text_source(text), **settings))  # noqa: E731
    monkeypatch.setattr(vocabulary, "find_spec", lambda name: name)
    assert found().endswith(advice) if advice else found() == ""
    monkeypatch.setattr(vocabulary, "find_spec", lambda name: None)
    assert ("pip install" in found()) == (advice is not None)
