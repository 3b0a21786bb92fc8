"""Patterns, activations and h(0) on the command line: trained, repeated, resumed, evaluated, looked at."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from stopping import stop_after
from unspool.cli import main as cli
from unspool.data.text.decoding import iter_bytes
from unspool.data.text.source import resolve
from unspool.errors import InputError
from unspool.evaluation.language import log_prob
from unspool.storage import run_folder
from unspool.storage.run_folder import MODEL
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.training.events import Evaluated, RunConfig
from unspool.training.recipe import Recipe

TEXT = "the time traveller spoke of time and space, and space and time listened. — été 時\n" * 30
SIZES = ["--steps", "14", "--hidden", "12", "--batch", "4", "--window", "16", "--dropout", "0.1"]
VARIANTS = {
    "tokens": ["--pattern", "10.4"],
    "logits": ["--pattern", "10.4", "--feedback", "logits", "--h0", "learned", "--activation", "sigmoid"],
    "relu": ["--activation", "relu", "--h0", "learned", "--batches", "random"],
    "identity": ["--cell", "elman", "--activation", "identity", "--bptt", "random:0.9"],
    "lstm": ["--cell", "lstm", "--h0", "learned", "--layers", "2"],
}


def unspool(*arguments: object) -> None:
    cli.app([str(each) for each in arguments], result_action="return_value")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "story.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_of_any_network_is_repeated_resumed_and_used(
    variant: str, story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    unspool("train", story, "--out", out, *SIZES, *VARIANTS[variant], "--json")
    content = json.loads(capsys.readouterr().out)
    recipe = content["config"]["recipe"]
    given = dict(zip(VARIANTS[variant][::2], VARIANTS[variant][1::2], strict=True))
    for name in ("pattern", "feedback", "h0", "activation"):
        assert recipe[name] == given.get(f"--{name}", getattr(Recipe(), name))
        assert (f"--{name}" in content["repeat"]) == (f"--{name}" in given)
    model = TextModel.load(out)
    assert model.model.config.learn_h0 == (given.get("--h0") == "learned")

    unspool(*shlex.split(content["repeat"])[1:-1], tmp_path / "again")
    assert (tmp_path / "again" / MODEL).read_bytes() == (out / MODEL).read_bytes()
    config = RunConfig.from_json(run_folder.read_config(out, "language")["run"])
    stop_after(5, run(config, out=tmp_path / "stopped"))
    end = list(resume(tmp_path / "stopped"))[-1]
    assert isinstance(end, Evaluated)
    assert (tmp_path / "stopped" / MODEL).read_bytes() == (out / MODEL).read_bytes()

    capsys.readouterr()
    unspool("evaluate", out, story, "--json")
    judged = json.loads(capsys.readouterr().out)
    ids = model.encode(TEXT)
    each = log_prob(model.model, ids)
    assert len(each) == len(ids) - 1 and (each == log_prob(model.model, ids, window=50)).all()
    assert judged["network"]["nats"] == pytest.approx(-each.mean()) and judged["targets"] == len(each)

    written = set()
    for _ in range(2):
        unspool("generate", out, "--prompt", "the ", "--length", "30", "--seed", "3")
        written.add(capsys.readouterr().out)
    assert len(written) == 1 and written.pop().startswith("the ")
    packed = tmp_path / "packed"
    unspool("compress", out, story, "--out", packed)
    unspool("decompress", packed, "--run", out, "--out", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == story.read_bytes()
    unspool("inspect", out, story, "--out", tmp_path / "report", "--characters", "200")
    numbers = json.loads((tmp_path / "report" / "numbers.json").read_text())
    assert numbers["model"]["pattern"] == model.model.config.pattern
    unspool("graph", out, "--text", "the time", "--out", tmp_path / "graph.json")
    assert json.loads((tmp_path / "graph.json").read_text())["gradients"]
    unspool("check-gradients", out, "--values", "2", "--steps", "4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pattern", "10.5"], "unspool classify"),
        (["--pattern", "10.6"], "expected one of 10.3, 10.4"),
        (["--pattern", "10.4", "--cell", "gru"], "requires cell='elman'"),
        (["--activation", "relu", "--cell", "lstm"], "requires cell='elman'"),
        (["--pattern", "10.4", "--h0", "learned"], "use feedback='logits'"),
        (["--pattern", "10.4", "--layers", "2"], "needs layers=1"),
        (["--pattern", "10.4", "--bptt", "truncated:4,8"], "no gradient passes"),
        (["--feedback", "logits"], "requires pattern='output'"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_text_is_read(
    options: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        unspool("train", tmp_path / "missing.txt", "--out", tmp_path / "run", *options)
    assert not (tmp_path / "run").exists()


def test_a_notebook_trains_every_pattern_too() -> None:
    sizes = {"hidden": 12, "steps": 30, "batch_size": 4, "window": 16, "learning_rate": 0.01}
    found = {}
    for name, more in {
        "10.3": {"cell": "elman", "activation": "relu", "h0": "learned"},
        "10.4": {"pattern": "10.4", "feedback": "logits"},
    }.items():
        made = LanguageModel(**sizes, **more).fit(TEXT)
        found[name] = made.perplexity(TEXT[:400])
        assert made.generate("the ", 10, temperature=0) == made.generate("the ", 10, temperature=0)
    assert all(perplexity < 20 for perplexity in found.values())
    with pytest.raises(InputError, match="unspool classify"):
        LanguageModel(pattern="10.5").fit(TEXT)


def test_a_fresh_network_that_feeds_logits_back_is_not_saturated_by_the_log_frequencies(story: Path) -> None:
    given = {"pattern": "10.4", "feedback": "logits", "hidden": 32, "steps": 1, "B": 4, "tau": 16}
    planned = next(event for event in run(RunConfig((str(story),), given=given)) if hasattr(event, "first"))
    h = planned.model.forward(planned.first.x).h
    assert np.abs(h).mean() < 0.8


def test_a_network_that_feeds_logits_back_learns_more_than_pairs_of_characters(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"".join(iter_bytes(resolve(("builtin:python-docs",))))[:150_000])
    given = {"pattern": "10.4", "feedback": "logits", "hidden": 32, "steps": 300}
    events = list(run(RunConfig((str(path),), given=given, order=2, validations=2)))
    counted = next(event for event in events if isinstance(event, list))
    assert counted[-1].name == "2-grams" and counted[-1].test is not None
    assert events[-1].measure.perplexity < counted[-1].test.perplexity
