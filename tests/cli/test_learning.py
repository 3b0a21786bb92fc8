"""`evaluate --learn` and `generate --learn`: rows that say what they are, and one clear line where something is wrong."""

import json
import re
from pathlib import Path

import pytest

from command_line import call, must, process
from unspool import LanguageModel, Learning, LearningScorer, TextModel
from unspool.baselines.mixture import cross_fitted, fit_mixture
from unspool.data.text.corpus import open_corpus
from unspool.storage import run_folder
from unspool.training import choose_learning as choice

STORY = "she sells sea shells; the shells she sells are sea shells.\n" * 60
OTHER = "the sea sells shells, she hears the sea; " * 12


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("learning") / "run"
    settings = {"cell": "gru", "hidden": 16, "steps": 60, "split": (0.8, 0.1, 0.1), "learning_rate": 0.01}
    LanguageModel(out=out, **settings).fit(STORY)
    return out


@pytest.fixture(scope="module")
def other(run: Path) -> Path:
    path = run.parent / "other.txt"
    path.write_text(OTHER, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEWEST", 100)


def test_the_learning_rows_stand_below_the_static_ones_which_do_not_change(run: Path, other: Path) -> None:
    static = must("evaluate", run, other).splitlines()
    learned = must("evaluate", run, other, "--learn").splitlines()
    assert [line.split() for line in static if line[:1].isalpha()] == [
        line.split() for line in learned if line[:1].isalpha() and not line.startswith("learning")
    ]
    names = [line.split("  ")[0] for line in learned]
    assert (
        names.index("network")
        < names.index("mixture")
        < names.index("learning")
        < names.index("learning + mixture")
    )
    (line,) = [each for each in learned if each.startswith("learning: ")]
    assert "after they were scored" in line and "rate and segment chosen on the first" in line
    assert not any("learning" in each for each in static)


def test_the_json_gives_the_choice_and_the_figures_of_the_reader(run: Path, other: Path) -> None:
    static = json.loads(must("evaluate", run, other, "--json"))
    found = json.loads(must("evaluate", run, other, "--learn", "--json"))
    assert found["network"] == static["network"] and found["mixture"] == static["mixture"]
    learning = found["learning"]
    best = min(learning["tried"], key=lambda each: each["nats"])
    assert (best["rate"], best["segment"]) == (learning["rate"], learning["segment"])
    assert learning["chosen_on"] == "valid" and len(learning["tried"]) == 7
    model = TextModel.load(run, mixture=True)
    ids, valid = model.encode(OTHER), open_corpus(run / run_folder.TEXT, model.settings).valid.ids
    scorer = LearningScorer(model.model, Learning(learning["rate"], learning["segment"]))
    log_probs = scorer.log_prob(ids)
    assert learning["nats"] == pytest.approx(-log_probs.mean(), rel=1e-12)
    assert learning["nats"] < found["network"]["nats"]
    fitted = fit_mixture(model.require_mixture().ngrams, valid, scorer.log_prob(valid))
    assert found["learning_mixture"]["nats"] == pytest.approx(
        -fitted.log_prob(ids, log_probs).mean(), rel=1e-12
    )


def test_the_validation_split_is_scored_with_the_defaults_and_mixed_by_halves(run: Path) -> None:
    found = json.loads(must("evaluate", run, "--part", "valid", "--learn", "--json"))
    assert found["learning"]["chosen_on"] is None and found["learning"]["tried"] == []
    assert found["learning"]["rate"] == Learning().learn_rate
    model = TextModel.load(run, mixture=True)
    ids = open_corpus(run / run_folder.TEXT, model.settings).valid.ids
    mixed = cross_fitted(model.require_mixture(), ids, LearningScorer(model.model).log_prob(ids))
    assert found["learning_mixture"]["nats"] == pytest.approx(-mixed.mean(), rel=1e-12)


def test_what_is_given_is_used(run: Path, other: Path) -> None:
    options = ("--learn", "--learn-rate", "0.003", "--learn-segment", "7", "--json")
    found = json.loads(must("evaluate", run, other, *options))["learning"]
    assert (found["rate"], found["segment"], found["chosen_on"]) == (0.003, 7, None)


def test_a_model_of_reverse_time_learns_from_the_end(tmp_path: Path) -> None:
    model = LanguageModel(cell="gru", hidden=16, steps=20, backward=True, out=tmp_path / "back").fit(STORY)
    found = json.loads(must("evaluate", tmp_path / "back", "--backward", "--learn", "--json"))
    log_probs = LearningScorer(model.fitted.model).log_prob(
        open_corpus(tmp_path / "back" / run_folder.TEXT, model.fitted.settings).valid.ids[::-1]
    )
    assert found["learning"]["nats"] == pytest.approx(-log_probs.mean(), rel=1e-12)


def test_generating_after_a_long_prompt_uses_what_was_learned(run: Path, other: Path, tmp_path: Path) -> None:
    ask = ("generate", run, "--greedy", "--length", 40, "--json")
    static = json.loads(must(*ask, "--prompt", OTHER))["texts"]
    learn = ("--learn", "--learn-rate", "0.02", "--learn-segment", "16")
    found = json.loads(must(*ask, *learn, "--prompt-file", other))
    assert found["texts"] != static and found["learning"]["updates"] == (len(OTHER) - 1) // 16
    piped = process(*ask, *learn, "--prompt-file", "-", stdin=OTHER)
    assert json.loads(piped.out)["texts"] == found["texts"]
    state = tmp_path / "state"
    must("generate", run, *learn, "--prompt-file", other, "--length", 0, "--save-state", state)
    assert json.loads(must(*ask, "--state", state))["texts"] == found["texts"]
    more = json.loads(must(*ask, "--state", state, "--learn", "--prompt", "she sells sea shells; "))
    assert more["learning"]["rate"] == 0.02
    whole = json.loads(must(*ask, *learn, "--prompt", OTHER + "she sells sea shells; "))
    assert more["texts"] == whole["texts"]
    wrong = call(*ask, "--state", state, "--learn", "--learn-rate", "0.5", "--prompt", "she ")
    assert wrong.code == 2 and "the saved state learned with 0.02" in wrong.err


def test_learning_that_diverges_is_said_in_one_line(run: Path, other: Path) -> None:
    line = r"unspool: learning diverged: [\d.]+ nats per target, more than the [\d.]+ of a uniform guess .*; lower --learn-rate 5, .*\n"
    absurd = ["--learn", "--learn-rate", "5"]
    for command in (
        ["evaluate", run, other, "--json"],
        ["generate", run, "--prompt", STORY[:300], "--length", "2"],
    ):
        assert re.fullmatch(line, call(*command, *absurd).err)
        assert not call(*command, "--learn").err


def test_without_ngrams_there_is_no_verdict_about_them(run: Path, other: Path) -> None:
    assert "best baseline" not in must("evaluate", run, other, "--order", 0)
    assert re.search("best baseline|are better", must("evaluate", run, other, "--order", 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "--learn-rate", "0.1"), "--learn-rate has no effect without --learn"),
        (("evaluate", "--learn-segment", "8"), "--learn-segment has no effect without --learn"),
        (("evaluate", "--learn", "--learn-rate", "0"), "learn_rate"),
        (("evaluate", "--learn", "--learn-segment", "0"), "learn_segment"),
        (("evaluate", "--learn", "--learn-rate", "1e38", "--learn-segment", "4"), "lower --learn-rate 1e+38"),
        (("generate", "--learn"), "--learn needs a text to learn from"),
        (("generate", "--learn-rate", "0.1"), "--learn-rate has no effect without --learn"),
        (("generate", "--learn", "--learn-rate", "nan", "--prompt", "a"), "expected a finite number"),
    ],
)
def test_mistakes_are_one_line(run: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(arguments[0], run, *arguments[1:])
    assert done.code == 2 and message in done.err, done.err
    assert len(done.err.strip().splitlines()) == 1
