"""Texts and paths in the Python API: a str is the text itself, a Path is a file, a file name as a str is refused."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from unspool import LanguageModel, TextModel
from unspool.compress import compress
from unspool.data.text.corpus import prepare, read_part
from unspool.data.text.decoding import read_file, read_text
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import resolve, text_source
from unspool.data.text.sources import as_sources, check_prompt
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import EmptyInput, InputError, UnspoolError
from unspool.inspect.report import inspect
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.tasks import SequenceClassifier, SequenceTranslator
from unspool.tasks.forecast import Forecaster
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.registry import load as load_estimator

SENTENCE = "she sells sea shells by the sea shore. "
QUICK: dict[str, Any] = {"hidden": 8, "steps": 2, "batch_size": 4, "window": 16, "seed": 1}


def text_model() -> TextModel:
    vocab = Vocab(list(SENTENCE + "otx"))
    config = ModelConfig(cell="gru", inputs=len(vocab), outputs=len(vocab), hidden=8)
    return TextModel(Model.initialise(config, seed=1), vocab, make_tokenizer("char"), TextConfig())


def language_model() -> LanguageModel:
    made = LanguageModel(**QUICK)
    made.text_model_ = text_model()
    return made


TEXTS = {
    "LanguageModel.fit": lambda text: LanguageModel(**QUICK).fit(text).config_.settings,
    "LanguageModel.fit, a list": lambda text: LanguageModel(**QUICK).fit([text]).config_.settings,
    "LanguageModel.perplexity": lambda text: language_model().perplexity(text),
    "LanguageModel.score": lambda text: language_model().score(text),
    "TextModel.perplexity": lambda text: text_model().perplexity(text),
    "TextModel.measure": lambda text: text_model().measure(text),
    "inspect": lambda text: inspect(text_model(), text).reading.nats,
}
"""A str is the text, a Path a file."""
PROMPTS = {
    "LanguageModel.generate": lambda prompt: language_model().generate(prompt, 3),
    "TextModel.generate": lambda prompt: text_model().generate(prompt, 3),
    "TextModel.tokens": lambda prompt: next(text_model().tokens(prompt)),
}
"""A str is the text; a Path is refused."""
STRINGS = {
    "TextModel.encode": lambda text: text_model().encode(text),
    "TextModel.unknown": lambda text: text_model().unknown(text),
    "TextModel.start": lambda text: text_model().start(text),
    "Reader.read": lambda text: TextGenerator(text_model()).read(text),
    "text_itself": lambda text: read_text(text_source(text)),
    "make_tokenizer": lambda text: make_tokenizer("word").encode_text(text),
}
"""Any str is taken as it is: these only turn characters into tokens."""
NAMES = {
    "resolve": lambda name: resolve(name),
    "read_text": lambda name: read_text(name),
    "read_file": lambda name: read_file(name),
    "prepare": lambda name: prepare(name, split=(1.0, 0.0, 0.0)),
    "read_part": lambda name: read_part(name, Vocab(list(SENTENCE)), make_tokenizer("char"), TextConfig()),
}
"""A str or a Path is the name of a file or folder."""
RUNS = {
    "TextModel.load": lambda name: TextModel.load(name),
    "LanguageModel.load": lambda name: LanguageModel.load(name),
    "sequences.load": lambda name: load_estimator(name),
    "forecast.load": lambda name: Forecaster.load(name),
    "Vocab.load": lambda name: Vocab.load(name),
}
"""A str or a Path is the name of a run or a file that was saved."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text(SENTENCE * 30)
    (tmp_path / "shore").write_text(SENTENCE * 30)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text(SENTENCE * 30)
    return tmp_path


@pytest.mark.parametrize("entry", TEXTS)
@pytest.mark.parametrize(
    "name",
    ["notes.txt", "shore", "folder", "folder/notes.txt", "absent.txt", "my story.csv", "a/b.md", "x.txt.gz"],
)
def test_a_string_that_is_a_file_name_is_refused_with_the_way_out(entry: str, name: str, here: Path) -> None:
    with pytest.raises(InputError, match=rf"text is '{name}'.*pathlib\.Path\('{name}'\)") as refused:
        TEXTS[entry](name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("entry", TEXTS)
def test_a_string_is_the_text_and_a_path_a_file_and_both_give_the_same(entry: str, here: Path) -> None:
    text = SENTENCE * 30
    assert TEXTS[entry](text) == TEXTS[entry](Path("notes.txt")) == TEXTS[entry](text_source(text))


def test_texts_may_come_in_pieces(here: Path) -> None:
    whole = text_model().perplexity(SENTENCE * 60)
    assert text_model().perplexity([SENTENCE * 30, Path("notes.txt")]) == whole
    (here / "packed.gz").write_bytes(gzip.compress((SENTENCE * 60).encode()))
    assert text_model().perplexity(Path("packed.gz")) == whole


@pytest.mark.parametrize("entry", [entry for entry in TEXTS if "fit" not in entry])
@pytest.mark.parametrize(
    "text", ["she sold notes.txt\n", "the shore.", "sea shells by the sea shore", "e.g. this"]
)
def test_a_text_that_is_no_file_name_is_read(entry: str, text: str, here: Path) -> None:
    TEXTS[entry](text)


@pytest.mark.parametrize("entry", TEXTS)
@pytest.mark.parametrize("text", [b"a text", 3, None, [b"a text"]], ids=str)
def test_what_is_neither_text_nor_path_is_refused(entry: str, text: Any) -> None:
    with pytest.raises(InputError, match=r"text is .*expected a str"):
        TEXTS[entry](text)


@pytest.mark.parametrize("text", [[], "builtin:python-docs"], ids=str)
def test_no_text_at_all_is_refused(text: Any) -> None:
    with pytest.raises((EmptyInput, InputError), match=r"text is empty|looks like a file name"):
        as_sources(text, "text")


@pytest.mark.parametrize("entry", PROMPTS)
@pytest.mark.parametrize("prompt", ["notes.txt", "shore", "absent.txt", "folder/notes.txt"])
def test_a_prompt_that_is_a_file_name_is_refused(entry: str, prompt: str, here: Path) -> None:
    with pytest.raises(InputError, match=rf"prompt is '{prompt}'.*Path\('{prompt}'\)\.read_text"):
        PROMPTS[entry](prompt)


@pytest.mark.parametrize("entry", PROMPTS)
@pytest.mark.parametrize(
    "prompt", ["", " ", "she sells notes.txt", "folder", "sea", "the shore.", "notes.txt\n she"]
)
def test_a_prompt_is_text(entry: str, prompt: str, here: Path) -> None:
    PROMPTS[entry](prompt)


@pytest.mark.parametrize("entry", PROMPTS)
@pytest.mark.parametrize("prompt", [Path("notes.txt"), b"sea", 3], ids=str)
def test_a_prompt_that_is_no_string_is_refused(entry: str, prompt: Any) -> None:
    with pytest.raises(InputError, match=r"prompt is a .*expected a str"):
        PROMPTS[entry](prompt)


@pytest.mark.parametrize("entry", STRINGS)
def test_what_only_cuts_characters_takes_any_string(entry: str, here: Path) -> None:
    STRINGS[entry]("notes.txt")


@pytest.mark.parametrize("entry", NAMES)
def test_an_argument_that_is_a_name_reads_the_file_for_a_string_and_a_path(entry: str, here: Path) -> None:
    NAMES[entry]("notes.txt")
    NAMES[entry](Path("notes.txt"))
    with pytest.raises(UnspoolError, match=r"absent\.txt.*(no such file|cannot be read)"):
        NAMES[entry]("absent.txt")


@pytest.mark.parametrize("entry", RUNS)
@pytest.mark.parametrize("name", ["absent", Path("absent")], ids=repr)
def test_what_is_loaded_is_a_name(entry: str, name: Any, here: Path) -> None:
    with pytest.raises(UnspoolError, match="absent"):
        RUNS[entry](name)


def test_bytes_numbers_and_sequences_are_not_file_names(here: Path) -> None:
    with pytest.raises(InputError, match=r"data is a str; expected bytes.*read_bytes"):
        compress(text_model(), "notes.txt")  # type: ignore[arg-type]
    for series in ("notes.txt", Path("notes.txt")):
        with pytest.raises(InputError, match=r"read_series\('notes.txt'\)"):
            Forecaster(horizon=2).fit(series)
    with pytest.raises(InputError, match=r"X holds names of files, as 'notes.txt'.*read_text"):
        SequenceClassifier(hidden=4, steps=1).fit(["notes.txt", "shore"], ["a", "b"])
    with pytest.raises(InputError, match=r"y holds names of files"):
        SequenceTranslator(hidden=4, steps=1).fit(["a", "b"], ["notes.txt", "shore"])
    with pytest.raises(InputError, match="X is the path"):
        SequenceClassifier(hidden=4, steps=1).fit(Path("notes.txt"), ["a"])
    SequenceClassifier(hidden=4, steps=1).fit(["notes.txt", "absent.txt"], ["a", "b"])  # names can be data


def test_strings_that_no_system_takes_for_a_path_are_texts() -> None:
    for text in ("a\0b", "x" * 5000, "x/" * 200, "." * 3):
        assert as_sources(text, "text") and check_prompt(text) is None
