"""The mixture of a run: counted, saved, resumed to the bit, and used by every interface like the network."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from command_line import call, must
from stopping import stop_after
from unspool.baselines.language import language_baselines
from unspool.baselines.mixture_stream import MixtureStream
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import text_source
from unspool.errors import FileError, InputError
from unspool.model.generate import Sampling
from unspool.storage import run_folder
from unspool.storage.tensors import read_arrays, write_arrays
from unspool.tasks.language import mixture as mixing
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.language.mixture import Orders, count_for_mixture, mix, orders_of
from unspool.tasks.language.plan import plan
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning
from unspool.training.events import Baseline, CorpusReady, Evaluated, RunConfig, Working

LINES = [f"{who} {does} the {what} of {when}.\n" for who in ("she", "he") for does in ("sells", "saw", "has")
         for what in ("shells", "sea", "shore") for when in ("old", "late", "the north")]  # fmt: skip
TEXT = "".join(np.random.default_rng(0).choice(LINES, 250).tolist())
SMALL = {"hidden": 16, "batch_size": 4, "window": 16, "steps": 24, "cell": "gru"}


def config_of(tokens: str = "char", **options: object) -> RunConfig:
    settings = TextConfig(tokens=tokens, split=(0.8, 0.1, 0.1))
    return replace(RunConfig(("a text",), settings=settings, given=SMALL, validations=3), **options)


def trained(config: RunConfig, out: Path | None = None) -> Evaluated:
    ended = list(run(config, out=out, texts=[text_source(TEXT)]))[-1]
    assert isinstance(ended, Evaluated)
    return ended


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mixture") / "run"
    trained(config_of(), out)
    return out


def baseline(name: str) -> Baseline:
    return Baseline(name, None, None)  # type: ignore[arg-type]


def test_orders_follow_the_baselines() -> None:
    six = [baseline(name) for name in ("uniform", "1-grams", "6-grams")]
    assert orders_of(six, "char", fixed=False) == Orders(6, 12)
    assert orders_of(six, "char", fixed=True) == Orders(6, 6)
    assert orders_of(six[:2], "word", fixed=False) == Orders(5, 5)
    assert orders_of(six[:1], "char", fixed=False) == Orders(0, 0)


def test_an_order_is_added_while_ngrams_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated, random = np.arange(600) % 7, np.random.default_rng(0).integers(0, 7, 600)
    assert len(mixing._count(repeated, 7, Orders(2, 9))) == 9
    # 286 kinds of 3-grams are less than half of 600 tokens; there are more 4-grams than that.
    assert len(mixing._count(random, 7, Orders(2, 9))) == 4
    assert len(mixing._count(repeated[:5], 7, Orders(2, 9))) <= 5
    sizes = [each.counts for each in language_baselines(random, 7, 4) if each.counts]
    for order, size in enumerate(sizes, 1):
        monkeypatch.setattr(mixing, "MOST_COUNTS", size)
        assert len(mixing._count(random, 7, Orders(4, 4))) == order


def test_without_memory_there_is_no_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "available", lambda: 0)
    ended = trained(config_of())
    assert ended.mixed is None and ended.mixture is None


def test_the_command_says_that_there_is_no_mixture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mixing, "available", lambda: 0)
    (tmp_path / "text").write_text(TEXT)
    shown = must("train", tmp_path / "text", "--steps", 3, "--hidden", 4, "--batch", 2, "--window", 8,
                 "--out", tmp_path / "run", columns=200)  # fmt: skip
    assert "no mixture: counting n-grams may need more memory than is free" in shown
    assert "no mixture: the run has none" in must("evaluate", tmp_path / "run", columns=200)
    refused = call("generate", tmp_path / "run", "--model", "mixture")
    assert refused.code == 2 and "mixture: this model has none" in refused.err


@pytest.mark.parametrize("backward", [False, True])
def test_a_resumed_run_has_the_same_mixture(tmp_path: Path, backward: bool) -> None:
    whole = trained(config_of(backward=backward), tmp_path / "whole")
    stop_after(9, run(config_of(backward=backward), out=tmp_path / "stopped", texts=[text_source(TEXT)]))
    assert not (tmp_path / "stopped" / run_folder.MIXTURE).exists()
    ended = list(resume(tmp_path / "stopped"))[-1]
    assert isinstance(ended, Evaluated) and ended.mixed == whole.mixed
    one, two = ((tmp_path / name / run_folder.MIXTURE).read_bytes() for name in ("whole", "stopped"))
    assert one == two


@pytest.mark.parametrize("limit", [{"minutes": 0.005}, {"given": SMALL}])
def test_ngrams_are_counted_within_the_time_limit(limit: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[str]()

    def noted(*arguments: object, **more: object) -> object:
        calls.append("counted")
        return count_for_mixture(*arguments, **more)

    monkeypatch.setattr("unspool.tasks.language.run.count_for_mixture", noted)
    monkeypatch.setattr(
        "unspool.tasks.language.run.plan", lambda *given: (calls.append("planned"), plan(*given))[1]
    )
    for event in run(replace(config_of(), **{"given": {"hidden": 8}} | limit), texts=[text_source(TEXT)]):
        if isinstance(event, Working):
            calls.append("working")
    in_time = "minutes" in limit
    assert calls == (["counted", "planned", "working"] if in_time else ["planned", "working", "counted"])


def test_the_part_is_scored_by_the_saved_mixture(folder: Path, tmp_path: Path) -> None:
    ended = trained(config_of(), tmp_path / "again")
    shown = json.loads(must("evaluate", tmp_path / "again", "--json"))
    assert ended.mixed is not None and shown["mixture"]["nats"] == ended.mixed.nats
    cost = shown["mixture"]
    assert cost["file_bytes"] == (tmp_path / "again" / run_folder.MIXTURE).stat().st_size
    model = TextModel.load(folder, mixture=True)
    assert model.mixture is not None and cost["counts"] == model.mixture.counts
    assert cost["memory_bytes"] == model.mixture.memory > 40 * cost["counts"]


def test_generated_text_is_drawn_from_the_mixture(folder: Path) -> None:
    model = TextModel.load(folder, mixture=True)
    how = Sampling(0.7, top_k=5)
    drawn = model.generate("she sells ", 60, seed=3, sampling=how, mixture=True)
    assert drawn != model.generate("she sells ", 60, seed=3, sampling=how)
    assert drawn == LanguageModel.load(folder).generate(
        "she sells ", 60, temperature=0.7, top_k=5, seed=3, mixture=True
    )
    command = ["generate", folder, "--prompt", "she sells ", "--length", 60, "--seed", 3]
    command += ["--temperature", 0.7, "--top-k", 5, "--model", "mixture"]
    shown = [must(*command, threads=threads) for threads in (1, 2)]
    assert shown == ["she sells " + drawn + "\n"] * 2
    assert json.loads(must(*command, "--json"))["model"] == "mixture"
    words = [word for word in drawn.split()[:-1] if word in TEXT.split()]
    assert (
        len(words) > len(drawn.split()) / 2
    )  # the counts know the words; a network after 24 updates does not


@pytest.mark.parametrize("backward", [False, True])
def test_a_saved_state_goes_on_with_the_same_text(backward: bool, tmp_path: Path) -> None:
    trained(config_of(backward=backward), tmp_path / "run")
    how = ["--model", "mixture", "--seed", 4]
    whole = must("generate", tmp_path / "run", "--prompt", "the sea", "--length", 40, *how).rstrip("\n")
    state = tmp_path / "state"
    first = must(
        "generate", tmp_path / "run", "--prompt", "the sea", "--length", 15, *how, "--save-state", state
    ).rstrip("\n")
    second = must("generate", tmp_path / "run", "--state", state, "--length", 25, *how).rstrip("\n")
    assert (second + first if backward else first + second) == whole


def test_a_state_of_the_network_can_be_continued_by_the_mixture(folder: Path, tmp_path: Path) -> None:
    model = TextModel.load(folder, mixture=True)
    network, mixture, direct = (TextGenerator(model, mixture=each) for each in (False, True, True))
    network.read("he saw the sho")
    network.save(tmp_path / "state", seed=1)
    mixture.load(tmp_path / "state")
    direct.read("he saw the sho")
    drawn = [list(islice(each.write(1, Sampling(1.0)), 20)) for each in (mixture, direct)]
    assert drawn[0] == drawn[1]
    arrays, metadata = read_arrays(tmp_path / "state")
    del metadata["recent"]  # as an older version wrote it
    write_arrays(
        tmp_path / "old", arrays, {name: metadata[name] for name in ("pending", "drawn", "seed", "model")}
    )
    mixture.load(tmp_path / "old")
    assert not mixture.recent
    write_arrays(tmp_path / "bad", arrays, metadata | {"recent": [10**6]})
    with pytest.raises(FileError, match="recent"):
        mixture.load(tmp_path / "bad")


def test_a_network_that_learned_is_mixed_too(folder: Path, tmp_path: Path) -> None:
    model = TextModel.load(folder, mixture=True)
    whole, first, later = (TextGenerator(model, Learning(), mixture=True) for _ in range(3))
    static = TextGenerator(model, mixture=True)
    for each in (whole, first, static):
        each.read(TEXT[:200])
        each.read("she saw ")  # in two parts, as a state may be read between them
    drawn, other = (list(islice(each.write(1, Sampling(1.0)), 30)) for each in (whole, static))
    assert len(drawn) == len(other) and isinstance(whole.stream, MixtureStream)
    assert isinstance(static.stream, MixtureStream)
    assert (whole.stream.next_probs() != static.stream.next_probs()).any()
    begun = list(islice(first.write(1, Sampling(1.0)), 10))
    first.save(tmp_path / "state", seed=1)
    later.load(tmp_path / "state")
    assert begun + list(islice(later.write(1, Sampling(1.0)), 20)) == drawn
    assert list(later.recent) == list(whole.recent)


def test_words_have_a_mixture_too(tmp_path: Path) -> None:
    ended = trained(config_of("word"), tmp_path / "run")
    model = TextModel.load(tmp_path / "run", mixture=True)
    assert ended.mixture.order == 5 and len(model.generate("she", 5, mixture=True).split()) >= 3
    assert model.perplexity(TEXT[:500], mixture=True) < model.perplexity(TEXT[:500])


def test_scores_are_those_of_the_mixture(folder: Path) -> None:
    model = LanguageModel.load(folder)
    perplexity = model.perplexity(TEXT[:900], mixture=True)
    assert perplexity != model.perplexity(TEXT[:900])
    assert model.score(TEXT[:900], mixture=True) == pytest.approx(-np.log(perplexity))


def test_a_run_without_the_file_works_as_before(tmp_path: Path) -> None:
    trained(config_of(), tmp_path / "run")
    (tmp_path / "run" / run_folder.MIXTURE).unlink()
    model = TextModel.load(tmp_path / "run", mixture=True)
    assert model.mixture is None and len(model.generate("she", 10)) == 10
    with pytest.raises(InputError, match="this model has none"):
        model.generate("she", 10, mixture=True)


def test_the_fit_reads_at_most_so_much_of_the_validation_split(monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(run(config_of(), texts=[text_source(TEXT)]))
    assert isinstance(events[0], CorpusReady) and isinstance(events[-1], Evaluated)
    corpus, model = events[0].corpus, events[-1].model
    network = np.full(len(corpus.test.ids) - 1, -1.0)
    counted = count_for_mixture(corpus, Orders(3, 3), backward=False)
    whole = mix(model, corpus, counted, "test", network, backward=False)
    monkeypatch.setattr(mixing, "FITTED", 50)
    short = mix(model, corpus, counted, "test", network, backward=False)
    assert whole is not None and short is not None and not (whole.mixture.v == short.mixture.v).all()
