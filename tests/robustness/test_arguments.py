"""Arguments of the Python API: integers are integers, names are not empty, misspelt names are refused at once."""

import ast
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import unspool
from unspool import SGD, Adam, LanguageModel, Model, ModelConfig, TextModel
from unspool.cli.commands.train import Reading, TrainOptions
from unspool.cli.wording import ADVICE, for_commands
from unspool.data.batches.text_windows import random_batches, sequential_batches
from unspool.data.formats import labelled, pairs, table, tagged, timetable
from unspool.data.formats import npz as ragged
from unspool.data.formats import ts as timeseries
from unspool.data.formats.idx import read_idx
from unspool.data.series import lags as series
from unspool.data.text.corpus import prepare
from unspool.data.text.decoding import read_file, read_text
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import resolve, text_source
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.errors import InputError, UnknownArgument, UnspoolError
from unspool.gradients.truncation import Truncation
from unspool.model.generate import Sampling, sample
from unspool.optimisers.schedules.cosine import Cosine
from unspool.options import at_least, option_of
from unspool.tasks import (
    FitConfig,
    SequenceClassifier,
    SequenceConfig,
    SequenceGenerator,
    SequenceRegressor,
    SequenceTagger,
    SequenceTranslator,
)
from unspool.tasks.forecast import Forecaster, backtest
from unspool.tasks.registry import load as load_estimator
from unspool.torch.state_dict import load_torch, save_torch
from unspool.training import store
from unspool.training.recipe import Recipe

SOURCE = Path(unspool.__file__).parent
CONFIG = ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4)
TEXT = "she sells sea shells by the sea shore. " * 20
SINE = 10 + np.sin(np.arange(60) * np.pi / 3)
X, y = [[0.0, 1.0], [1.0, 0.0]], ["up", "down"]
IDS = np.arange(40, dtype=np.int32) % 5


def text_model():
    vocab = Vocab(list("she la"))
    model = Model.initialise(ModelConfig(cell="gru", inputs=len(vocab), outputs=len(vocab), hidden=4), seed=0)
    return TextModel(model, vocab, make_tokenizer("char"), TextConfig())


def rng():
    return np.random.default_rng(0)


# ── integers ───────────────────────────────────────────────────────────────────────────────────────────────

INTEGERS = {
    "ModelConfig.hidden": ("hidden", lambda n: ModelConfig(inputs=5, outputs=5, hidden=n)),
    "ModelConfig.layers": ("layers", lambda n: ModelConfig(inputs=5, outputs=5, layers=n)),
    "ModelConfig.embedding": ("embedding", lambda n: ModelConfig(inputs=5, outputs=5, embedding=n)),
    "Model.fresh": ("seed", lambda n: Model.initialise(CONFIG, n)),
    "Model.initial_state": ("B", lambda n: Model.initialise(CONFIG, 0).initial_state(n)),
    "sequential_batches.B": ("B", lambda n: sequential_batches(IDS, n, 2, rng())),
    "random_batches.tau": ("tau", lambda n: random_batches(IDS, 2, n, rng())),
    "Truncation.K1": ("K1", lambda n: Truncation("truncated", n, 9)),
    "Truncation.K2": ("K2", lambda n: Truncation("truncated", 1, n)),
    "Cosine.steps": ("steps", lambda n: Cosine(n, warmup=1)),
    "Cosine.warmup": ("warmup", lambda n: Cosine(9, warmup=n)),
    "Sampling.top_k": ("top_k", lambda n: Sampling(top_k=n)),
    "sample": ("length", lambda n: sample(Model.initialise(CONFIG, 0), [1], n, seed=0)),
    "TextModel.generate": ("length", lambda n: text_model().generate("she", n)),
    "Vocab.min_freq": ("min_freq", lambda n: Vocab(["a"], n)),
    "prepare.min_freq": ("min_freq", lambda n: prepare(text_source(TEXT), min_freq=n)),
    "FitConfig.batch_size": ("batch_size", lambda n: FitConfig(batch_size=n)),
    "FitConfig.steps": ("steps", lambda n: FitConfig(steps=n)),
    "FitConfig.patience": ("patience", lambda n: FitConfig(validation=0.1, patience=n)),
    "SequenceConfig.hidden": (
        "hidden",
        lambda n: SequenceConfig("many-to-one", "classes", inputs=3, outputs=2, hidden=n),
    ),
    "SequenceClassifier.hidden": ("hidden", lambda n: SequenceClassifier(hidden=n, steps=1).fit(X, y)),
    "SequenceClassifier.steps": ("steps", lambda n: SequenceClassifier(hidden=2, steps=n).fit(X, y)),
    "SequenceClassifier.batch_size": (
        "batch_size",
        lambda n: SequenceClassifier(hidden=2, steps=1, batch_size=n).fit(X, y),
    ),
    "SequenceTranslator.beam": (
        "beam",
        lambda n: SequenceTranslator(hidden=2, steps=1, beam=n).fit(["a", "b"], ["b", "a"]),
    ),
    "SequenceTranslator.max_length": (
        "max_length",
        lambda n: SequenceTranslator(hidden=2, steps=1, max_length=n).fit(["a", "b"], ["b", "a"]),
    ),
    "Forecaster.horizon": ("horizon", lambda n: Forecaster(horizon=n, steps=1, members=1).fit(SINE)),
    "Forecaster.hidden": ("hidden", lambda n: Forecaster(hidden=n, steps=1, members=1, horizon=2).fit(SINE)),
    "Forecaster.season": ("season", lambda n: Forecaster(season=n, steps=1, members=1, horizon=2).fit(SINE)),
    "Forecaster.predict": (
        "steps",
        lambda n: Forecaster(steps=1, members=1, horizon=4, calibration=0).fit(SINE).predict(n),
    ),
    "backtest.stride": (
        "stride",
        lambda n: backtest(Forecaster(steps=1, members=1, horizon=2, calibration=0), SINE, 8, stride=n),
    ),
    "LanguageModel.hidden": (
        "hidden",
        lambda n: LanguageModel(hidden=n, steps=1, batch_size=2, window=8).fit(TEXT),
    ),
    "LanguageModel.steps": (
        "steps",
        lambda n: LanguageModel(hidden=2, steps=n, batch_size=2, window=8).fit(TEXT),
    ),
    "LanguageModel.batch_size": (
        "batch_size",
        lambda n: LanguageModel(hidden=2, steps=1, batch_size=n, window=8).fit(TEXT),
    ),
    "LanguageModel.window": (
        "window",
        lambda n: LanguageModel(hidden=2, steps=1, batch_size=2, window=n).fit(TEXT),
    ),
    "LanguageModel.seed": (
        "seed",
        lambda n: LanguageModel(hidden=2, steps=1, batch_size=2, window=8, seed=n).fit(TEXT),
    ),
}


@pytest.mark.parametrize("entry", INTEGERS)
@pytest.mark.parametrize("value", [2.7, 3.0, True, "3", np.float32(3)], ids=repr)
def test_what_is_no_integer_is_refused_and_never_rounded(entry, value):
    name, call = INTEGERS[entry]
    with pytest.raises(InputError, match=rf"{name} is {re.escape(repr(value))}; expected") as refused:
        call(value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("entry", INTEGERS)
def test_integers_of_numpy_are_integers(entry):
    _, call = INTEGERS[entry]
    call(np.int64(3))


def test_numpys_integers_are_stored_as_pythons():
    assert type(ModelConfig(inputs=np.int32(5), outputs=5).inputs) is int
    assert type(at_least("n", np.uint8(3), 0)) is int


def test_numpys_integers_are_saved_and_resumed(tmp_path):
    model = SequenceClassifier(hidden=np.int64(3), steps=np.int64(2), seed=np.int64(1)).fit(
        X, y, run=tmp_path / "a"
    )
    assert load_estimator(tmp_path / "a").predict(X).tolist() == model.predict(X).tolist()
    model.fit(X, y, run=tmp_path / "a")
    forecaster = Forecaster(
        horizon=np.int64(2), window=np.int64(8), steps=np.int64(1), members=np.int64(1)
    ).fit(SINE)
    forecaster.save(tmp_path / "b")
    assert np.array_equal(Forecaster.load(tmp_path / "b").predict(), forecaster.predict())
    whole = LanguageModel(
        hidden=np.int64(3), steps=np.int64(1), batch_size=2, window=8, out=tmp_path / "c"
    ).fit(TEXT)
    assert LanguageModel.load(tmp_path / "c").perplexity(TEXT) == whole.perplexity(TEXT)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Adam(learning_rate=True),
        lambda: SGD(momentum=False),
        lambda: ModelConfig(inputs=5, outputs=5, dropout=False),
        lambda: Sampling(temperature=True),
        lambda: FitConfig(minutes=True),
        lambda: LanguageModel(minutes=True).fit(TEXT),
    ],
)
def test_true_and_false_are_no_numbers(call):
    with pytest.raises(InputError, match=r"is (True|False); expected"):
        call()


# ── names ──────────────────────────────────────────────────────────────────────────────────────────────────

EMPTY = {
    "resolve": lambda: resolve(""),
    "resolve, a list": lambda: resolve(["a.txt", ""]),
    "read_text": lambda: read_text(""),
    "read_file": lambda: read_file(""),
    "prepare": lambda: prepare(""),
    "prepare.cache": lambda: prepare(text_source(TEXT), cache=""),
    "prepare.valid": lambda: prepare(text_source(TEXT), valid=""),
    "TextModel.load": lambda: TextModel.load(""),
    "LanguageModel.load": lambda: LanguageModel.load(""),
    "LanguageModel.out": lambda: LanguageModel(out="", hidden=2, steps=1).fit(TEXT),
    "Estimator.fit.run": lambda: SequenceClassifier(hidden=2, steps=1).fit(X, y, run=""),
    "sequences.load": lambda: load_estimator(""),
    "sequences.save": lambda: SequenceClassifier(hidden=2, steps=1).fit(X, y).save(""),
    "forecast.load": lambda: Forecaster.load(""),
    "forecast.save": lambda: Forecaster(horizon=2, steps=1, members=1).fit(SINE).save(""),
    "Vocab.load": lambda: Vocab.load(""),
    "Vocab.save": lambda: Vocab(["a"]).save(""),
    "load_model": lambda: store.load_model(""),
    "save_model": lambda: store.save_model("", Model.initialise(CONFIG, 0), {}),
    "load_torch": lambda: load_torch("", CONFIG),
    "save_torch": lambda: save_torch("", Model.initialise(CONFIG, 0)),
    "read_table": lambda: table.read_table(""),
    "read_ts": lambda: timeseries.read_ts(""),
    "read_idx": lambda: read_idx(""),
    "read_ragged": lambda: ragged.read_ragged(""),
    "read_series": lambda: series.read_series(""),
    "read_pairs": lambda: pairs.read_pairs(""),
    "read_tagged": lambda: tagged.read_tagged(""),
    "read_timetable": lambda: timetable.read_timetable(""),
    "read_classes": lambda: labelled.read_classes(""),
    "read_labelled": lambda: labelled.read_labelled(""),
}


@pytest.mark.parametrize("entry", EMPTY)
def test_an_empty_name_is_not_the_current_folder(entry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT)
    with pytest.raises(InputError, match=r"name is empty|empty name"):
        EMPTY[entry]()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


# ── arguments ──────────────────────────────────────────────────────────────────────────────────────────────

ESTIMATORS = [
    LanguageModel,
    Forecaster,
    SequenceClassifier,
    SequenceRegressor,
    SequenceTagger,
    SequenceTranslator,
    SequenceGenerator,
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_misspelt_argument_is_refused_at_once_with_the_right_name(kind):
    for refused in (lambda: kind(hiden=3), lambda: kind().set_params(hiden=3)):
        with pytest.raises(
            UnknownArgument, match=rf"{kind.__name__} has no argument 'hiden': did you mean 'hidden'\?"
        ):
            refused()
    with pytest.raises(TypeError, match=r"no argument 'xyz'; it has .*hidden"):
        kind(xyz=3)
    kind(hidden=3).set_params(hidden=4)


def test_every_part_of_the_recipe_is_an_argument_of_a_language_model():
    recipe = {field.name for field in dataclasses.fields(Recipe)}
    assert recipe <= set(LanguageModel(**dict.fromkeys(recipe, 1)).get_params())


@pytest.mark.parametrize("kind", [TrainOptions, Reading])
def test_a_language_model_takes_every_hyper_parameter_of_the_command(kind):
    declared = {field.name for field in dataclasses.fields(kind) if option_of(field)}
    assert declared <= {field.name for field in dataclasses.fields(LanguageModel)}


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (LanguageModel, "batch", "batch_size"),
        (LanguageModel, "memory", "recompute"),
        (SequenceClassifier, "remember", "chrono_steps"),
        (SequenceClassifier, "balance", "prior_correction"),
        (SequenceRegressor, "spread", "std"),
        (SequenceTranslator, "longest", "max_length"),
    ],
)
def test_a_former_name_is_refused_with_the_new_one(kind, old, new):
    with pytest.raises(UnknownArgument, match=rf"{kind.__name__} has no argument '{old}'; it is now '{new}'"):
        kind(**{old: 1})


def test_the_package_lists_its_public_names_alone():
    _ = unspool.Model, unspool.training.loop
    assert [name for name in dir(unspool) if not name.startswith("__")] == sorted(unspool.__all__)
    assert {"__doc__", "__version__", "__all__"} <= set(dir(unspool))


# ── messages ───────────────────────────────────────────────────────────────────────────────────────────────


def strings_of(path):
    """Return all strings of a module but its docstrings."""
    tree = ast.parse(path.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


OF_COMMANDS = {"cli", "plots", "page", "picture.py", "sheet.py"}
"""Modules whose messages and pages are of commands alone."""
LIBRARY = [path for path in SOURCE.rglob("*.py") if not OF_COMMANDS & set(path.relative_to(SOURCE).parts)]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_message_of_the_library_names_an_option_of_the_command_line(path):
    assert [text for text in strings_of(path) if re.search(r"(?<![\w-])--[a-z]", text)] == []


def test_the_command_line_puts_its_options_in_the_place_of_arguments():
    said = "".join(text for path in LIBRARY for text in strings_of(path))
    for python, command in ADVICE.items():
        assert python.removesuffix("path") in said, python
        assert for_commands(f"x: {python}.") == f"x: {command}."
    assert for_commands("w/choose another path: not a run") == "w/choose another path: not a run"


def test_a_validation_part_of_its_own_is_the_advice_and_it_works():
    short = "she sells"
    with pytest.raises(UnspoolError, match=r"valid split has 1 tokens.*as valid="):
        LanguageModel(hidden=4, steps=1, batch_size=1, window=2).fit(short)
    model = LanguageModel(hidden=4, steps=1, batch_size=1, window=2).fit(short, valid="sea shells")
    assert model.measure_.targets == 9
    with pytest.raises(InputError, match=r"valid is 'shore\.txt'.*pathlib\.Path"):
        LanguageModel(hidden=4, steps=1).fit(TEXT, valid="shore.txt")


def test_an_optimiser_still_takes_what_it_took():
    assert SGD(learning_rate=1, momentum=0.0).learning_rate == 1
