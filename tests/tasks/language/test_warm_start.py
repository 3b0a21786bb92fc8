"""A training that starts from a trained model: ids and parameters stay, new tokens get rows, the run repeats to the bit."""

import json
import re
import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stopping import stop_after
from unspool.cli.main import main
from unspool.data.tokens.vocab import UNK, Vocab
from unspool.errors import InputError
from unspool.model.network import Model
from unspool.model.outputs import output_of
from unspool.storage.run_folder import MODEL, read_config
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.tasks.language.warm_start import WarmStart
from unspool.training.events import CorpusReady, Evaluated, Event, RunConfig, Started, TrainingPlanned

OLD = "she sells sea shells by the sea shore; the shells she sells are sea shells\n" * 30
NEW = "été: peter piper picked a peck of pickled peppers, he said\n" * 40
SIZES = {"hidden": 16, "steps": 12, "batch_size": 2, "window": 16, "dropout": 0.0, "order": 2}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    (folder / "old.txt").write_text(OLD, encoding="utf-8")
    (folder / "new.txt").write_text(NEW, encoding="utf-8")
    LanguageModel(out=folder / "old", **SIZES).fit(folder / "old.txt")
    return folder


def config_of(place: Path) -> RunConfig:
    fixed = {"steps": 12, "batch_size": 2, "window": 16}
    return RunConfig((str(place / "new.txt"),), given=fixed, start=str(place / "old"), order=2, validations=3)


def planned(config: RunConfig) -> tuple[Started, TrainingPlanned]:
    """Return what is known before the first update."""
    found: list[Event] = []
    with closing(run(config)) as events:
        for event in events:
            found.append(event)
            if isinstance(event, TrainingPlanned):
                break
    (started,) = (event for event in found if isinstance(event, Started))
    assert isinstance(event, TrainingPlanned)
    return started, event


@pytest.mark.parametrize(
    "shape",
    [
        {"cell": "gru"},
        {"cell": "lstm", "layers": 2, "h0": "learned"},
        {"embedding": 16, "tied": True},
        {"embedding": 5},
        {"softmax": "adaptive:6,12"},
        {"softmax": "adaptive:6", "embedding": 16, "tied": True},
        {"pattern": "10.4", "cell": "elman"},
        {"pattern": "10.4", "cell": "elman", "feedback": "logits"},
    ],
)
def test_old_tokens_keep_their_parameters_and_new_ones_begin_as_in_a_new_network(shape: dict) -> None:
    trained = LanguageModel(**SIZES | {"steps": 3} | shape).fit(OLD).fitted
    start, K = WarmStart.of(trained), len(trained.vocab)
    assert start.shape().items() >= shape.items()
    config = replace(trained.model.config, inputs=K + 4, outputs=K + 4)
    new, fresh = (Model.initialise(config, seed=0).parameters for _ in range(2))
    shares = (
        np.random.default_rng(0).dirichlet(np.ones(K + 4)),
        np.random.default_rng(1).dirichlet(np.ones(K)),
    )
    for parameters in (new, fresh):
        output_of(config).set_bias(config, parameters, np.log(shares[0]))
    start.fill(Model(config, new), lambda vocab: np.log(shares[1]))
    old, before = trained.model.parameters, trained.model.parameters.like()
    output_of(config).set_bias(trained.model.config, before, np.log(shares[1]))
    for name, size in old.shapes.items():
        inside = tuple(map(slice, size))
        shift = fresh[name][inside] - before[name] if name.split(".")[-1] == "c" else 0.0
        assert np.array_equal(new[name][inside], old[name] + shift), name
        outside = np.ones(new[name].shape, bool)
        outside[inside] = False
        assert (new[name][outside] == fresh[name][outside]).all(), name


def test_every_bias_is_corrected_for_the_frequencies_of_the_new_text(place: Path) -> None:
    old = TextModel.load(place / "old")
    started, begun = planned(config_of(place))
    assert started.old == len(old.vocab)
    assert set(started.new) == set(NEW) - set(OLD)
    assert set(started.absent) == set(OLD) - set(NEW)
    # The correction of c, by hand: log P changes by that of the target, and by one constant of the step.
    counts = dict(old.vocab.token_freqs), dict(planned_vocab(config_of(place)).token_freqs)
    shares = [np.array([(each.get(t) or 0.5) for t in old.vocab.idx_to_token]) for each in counts]
    totals = [shares[0].sum(), shares[1].sum() + sum(counts[1][token] for token in started.new)]
    wanted = old.model.parameters["c"] + np.log(shares[1] / totals[1]) - np.log(shares[0] / totals[0])
    assert np.allclose(begun.model.parameters["c"][: started.old], wanted, atol=1e-5)


def planned_vocab(config: RunConfig) -> Vocab:
    with closing(run(config)) as events:
        return next(event.corpus.vocab for event in events if isinstance(event, CorpusReady))


def test_the_network_comes_from_the_run_and_the_rate_is_that_of_a_new_network(place: Path) -> None:
    _, begun = planned(config_of(place))
    recipe, parent = begun.config.fixed, TextModel.load(place / "old").model.config
    assert (recipe.hidden, recipe.cell, recipe.layers) == (parent.hidden, parent.cell, parent.layers)
    new = replace(config_of(place), start=None, given=config_of(place).given | {"hidden": 16})
    planned_anew = next(event for event in run(new) if isinstance(event, TrainingPlanned))
    assert recipe == planned_anew.config.fixed


def test_a_stopped_run_that_started_from_another_ends_in_the_same_bits(place: Path, tmp_path: Path) -> None:
    moved = tmp_path / "parent"
    (place / "old").rename(moved)
    try:
        config = replace(config_of(place), start=str(moved))
        for _ in run(config, out=tmp_path / "whole"):
            pass
        stop_after(7, run(config, out=tmp_path / "stopped"))
    finally:
        moved.rename(place / "old")
    for _ in resume(tmp_path / "stopped"):  # the run that it started from is no longer there
        pass
    one, two = ((tmp_path / name / MODEL).read_bytes() for name in ("whole", "stopped"))
    assert one == two
    parent = TextModel.load(place / "old").model.parameters.sha256
    content = read_config(tmp_path / "stopped", "language")
    assert content["provenance"]["from"] == {"run": str(moved), "model_sha256": parent}


def test_the_printed_command_repeats_the_run_and_show_names_its_start(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = ["--steps", "8", "--batch", "2", "--window", "16", "--order", "2", "--json"]
    assert not main(["train", str(place / "new.txt"), "--from", str(place / "old"), "--out", "one", *sizes])
    found = json.loads(capsys.readouterr().out)
    assert found["from"]["run"] == str(place / "old") and "é" in found["from"]["new_tokens"]
    assert not main([*shlex.split(found["repeat"])[1:], "--quiet"])
    assert Path("one", MODEL).read_bytes() == Path("AGAIN", MODEL).read_bytes()
    capsys.readouterr()
    assert not main(["show", "one"])
    assert f"from the model of {place / 'old'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hidden", "32"], "hidden is 32, but the model of .* was trained with 16"),
        (["--cell", "gru"], "cell is gru"),
        (["--tokens", "word"], "tokens is word"),
        (["--clean"], "clean is True"),
        (["--backward"], "backward is True"),
        (["--from", "nowhere"], "nowhere"),
    ],
)
def test_options_that_contradict_the_run_are_refused_in_one_line(
    options: list[str], message: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", str(place / "new.txt"), "--out", str(tmp_path / "out")]
    start = [] if "--from" in options else ["--from", str(place / "old")]
    assert main([*arguments, *start, *options]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert re.search(message, printed)
    assert not (tmp_path / "out").exists()


def test_a_given_option_is_not_ignored_because_it_is_the_default(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LanguageModel(tokens="word", steps=2, hidden=8, order=1, newlines="lf", out=tmp_path / "words").fit(OLD)
    train = [
        "train",
        str(place / "new.txt"),
        "--from",
        str(tmp_path / "words"),
        "--steps",
        "2",
        "--order",
        "1",
        "--json",
    ]
    for options, message in [
        (["--tokens", "char"], "tokens is char, but"),
        (["--newlines", "keep"], "newlines is keep, but"),
    ]:
        assert main([*train, "--out", str(tmp_path / "refused"), *options]) == 2
        printed = capsys.readouterr().err
        assert message in printed and printed.count("\n") == 1
        assert not (tmp_path / "refused").exists()
    assert not main([*train, "--out", str(tmp_path / "same"), "--tokens", "word", "--min-freq", "0"])
    settings = json.loads(capsys.readouterr().out)["config"]["settings"]
    assert (settings["tokens"], settings["newlines"]) == ("word", "lf")


def test_a_word_model_goes_on_with_its_tokenizer_and_rare_words() -> None:
    words = LanguageModel(**SIZES | {"tokens": "word", "min_freq": 2, "steps": 4}).fit(OLD)
    again = LanguageModel(steps=4, batch_size=2, window=8, order=1).fit("once\n" + NEW, start=words)
    vocab = again.fitted.vocab
    assert again.fitted.settings.tokens == "word"
    assert vocab.idx_to_token[: len(words.fitted.vocab)] == words.fitted.vocab.idx_to_token
    assert "once" not in vocab and dict(vocab.token_freqs)[UNK] == 1
    assert vocab["peter"] >= len(words.fitted.vocab) and vocab["shells"] == words.fitted.vocab["shells"]
    assert again.generate("peter", 5).strip()


def test_a_backward_model_stays_backward_and_a_fit_on_the_same_text_adds_nothing() -> None:
    first = LanguageModel(backward=True, **SIZES).fit(OLD)
    events: list[Event] = []
    second = LanguageModel(steps=40, batch_size=2, window=16, order=1, show=events.append)
    second.fit(OLD, start=first)
    assert second.fitted.backward and second.config_.backward
    (started,) = (event for event in events if isinstance(event, Started))
    assert not started.new
    assert second.measure_.nats < first.measure_.nats
    assert any(isinstance(event, Evaluated) for event in events)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="start is 3"):
        LanguageModel(**SIZES).fit(OLD, start=3)  # type: ignore[arg-type]
