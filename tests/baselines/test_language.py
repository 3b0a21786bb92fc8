"""Baselines of a run: the same targets on both sides, the best order in the table, and a plain verdict."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from stopping import stop_after
from unspool.baselines.kneser_ney_smoothing import kneser_ney
from unspool.baselines.language import baselines, baselines_to_plot
from unspool.baselines.ngram_counts import count_ngrams
from unspool.cli import follow
from unspool.cli import main as cli
from unspool.cli.views.comparison import Row, best_as_json, crossed, measures_table, rows_of, verdict
from unspool.data.text.corpus import prepare
from unspool.data.text.source import text_source
from unspool.errors import InputError
from unspool.evaluation.language import log_prob, spread, validation_loss
from unspool.evaluation.metrics import Metrics, measure
from unspool.storage import run_folder
from unspool.tasks.language.run import resume, run
from unspool.training.events import Baseline, CorpusReady, Evaluated, LeftOut, RunConfig, StepDone

EASY = "the time traveller spoke of time and space, and space and time listened.\n" * 120
HARD = "".join(chr(97 + i) for i in np.random.default_rng(0).integers(0, 26, 3000))
SMALL = {"hidden": 16, "B": 4, "tau": 16, "steps": 4, "cell": "gru"}


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """The validation part begins as the training part does, and goes on as nothing before."""
    (tmp_path / "train.txt").write_text(EASY)
    (tmp_path / "valid.txt").write_text(EASY[:1500] + HARD)
    return RunConfig(
        sources=(str(tmp_path / "train.txt"),), valid=(str(tmp_path / "valid.txt"),), given=SMALL,
        validations=2, validation_tokens=2049,
    )  # fmt: skip


def test_targets_are_spread_over_the_whole_part_and_each_is_scored_once() -> None:
    for total, tokens in [(10_000, 1025), (10_000, 700), (999, 2), (999, 999), (50, 1000), (8000, 7999)]:
        targets = spread(total, tokens).targets
        assert len(set(targets.tolist())) == len(targets) and 0 <= targets.min() <= targets.max() < total
        assert min(tokens - 1, total) <= len(targets) <= min(tokens - 1, total) + 32
    quarters = np.bincount(spread(10_000, 1025).targets // 2500)
    assert quarters.tolist() == [256] * 4


def test_the_live_comparison_has_the_same_targets_on_both_sides(config: RunConfig) -> None:
    events = list(run(config))
    corpus, found = events[0].corpus, events[1]
    ids = corpus.valid.ids
    targets = spread(len(ids) - 1, 2049).targets
    counted = kneser_ney(count_ngrams(corpus.train.ids, len(corpus.vocab), 3)).log_prob(ids)
    assert found[3].live.nats == pytest.approx(-counted[targets].mean(), rel=1e-12)
    assert found[3].valid.nats == pytest.approx(-counted.mean(), rel=1e-12)
    model = events[-1].model
    whole = -log_prob(model, ids)
    assert validation_loss(model, ids, 2049) == pytest.approx(whole[targets].mean(), rel=0.02)
    # The first tokens of the part are of another kind than its rest: a loss on them says nothing about the part.
    assert validation_loss(model, ids, 2049) == pytest.approx(whole.mean(), rel=0.1)
    assert whole[:1024].mean() < 0.8 * whole.mean()


def test_many_log_probs_wait_on_disk_and_give_the_same_figures(
    config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = prepare(text_source(EASY), split=(0.8, 0.1, 0.1))
    expected = [replace(each, seconds=None) for each in baselines(corpus, config).live(500)]
    monkeypatch.setattr("unspool.baselines.language.MANY", 100)
    scored = baselines(corpus, config)
    assert all(isinstance(each, np.memmap) for each in scored.log_probs)
    assert [replace(each, seconds=None) for each in scored.live(500)] == expected


def test_a_resumed_run_compares_on_the_same_tokens(config: RunConfig, tmp_path: Path) -> None:
    whole = list(run(config, out=tmp_path / "whole"))
    stopped = stop_after(1, run(config, out=tmp_path / "run"))
    again = list(resume(tmp_path / "run"))
    plain = [[replace(each, seconds=None) for each in events[1]] for events in (whole, stopped, again)]
    assert plain[0] == plain[1] == plain[2] and plain[0][0].live is not None
    looks = [[e.valid for e in events if isinstance(e, StepDone)] for events in (whole, again)]
    assert looks[0][-1] == looks[1][-1] is not None


def test_a_run_of_an_older_version_is_resumed_and_compares_nothing_that_differs(
    config: RunConfig, tmp_path: Path
) -> None:
    stop_after(1, run(config, out=tmp_path / "run"))
    content = run_folder.read_config(tmp_path / "run", "language")
    content["run"]["order"] = 3
    content["baselines"] = [
        {"name": each["name"], "valid": each["valid"], "test": each["valid"]} for each in content["baselines"]
    ]
    del content["left_out"]
    run_folder.write_config(tmp_path / "run", "language", content)
    events = list(resume(tmp_path / "run"))
    assert all(each.test is None and each.live is None for each in events[1])
    assert crossed(events[1], 0.1) == ""
    assert isinstance(events[-1], Evaluated) and events[-1].best_step > 0
    assert [each.name for each in baselines_to_plot(events[1])][:4] == [
        "uniform",
        "1-grams",
        "2-grams",
        "3-grams",
    ]


def test_a_resumed_run_of_an_older_version_keeps_its_best_model(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(1, run(config, out=tmp_path / "run"))
    content = run_folder.read_config(tmp_path / "run", "language")
    content["baselines"] = [each | {"live": None} for each in content["baselines"]]
    run_folder.write_config(tmp_path / "run", "language", content)
    before = (tmp_path / "run" / run_folder.MODEL).read_bytes()
    losses = iter([1.0, 2.0, 2.0, 2.0])  # the saved model on the new tokens, then worse ones
    monkeypatch.setattr("unspool.tasks.language.run.validation_loss", lambda *_, **_more: next(losses))
    events = list(resume(tmp_path / "run"))
    assert isinstance(events[-1], Evaluated) and events[-1].best_step == 1
    assert (tmp_path / "run" / run_folder.MODEL).read_bytes() == before


@pytest.mark.parametrize(("tokens", "order"), [("char", 6), ("byte", 6), ("word", 4), ("space", 4)])
def test_the_orders_by_default_follow_the_kind_of_tokens(tokens: str, order: int) -> None:
    corpus = prepare(text_source(EASY), tokens=tokens, split=(0.8, 0.1, 0.1))
    scored = baselines(corpus, RunConfig())
    assert scored.found[-1].name == f"{order}-grams" and scored.left_out is None
    counts = [each.counts for each in scored.found[1:]]
    assert counts == sorted(counts) and counts[0] == len(set(corpus.train.ids.tolist()))
    assert all(each.seconds > 0 for each in scored.found[1:])
    assert baselines(corpus, RunConfig(order=2)).found[-1].name == "2-grams"


@pytest.mark.parametrize("tokens", ["char", "word"])
def test_evaluate_has_the_orders_of_train_and_their_limits(
    tokens: str, config: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(config, settings=replace(config.settings, tokens=tokens))
    trained = list(run(config, out=tmp_path / "run"))[1]

    def evaluated(*arguments: str) -> list[str]:
        call = ["evaluate", str(tmp_path / "run"), "--json", *arguments]
        cli.app(call, exit_on_error=False, print_error=False, result_action="return_value")
        return [each["name"] for each in json.loads(capsys.readouterr().out)["baselines"]]

    assert evaluated() == [each.name for each in trained]
    assert evaluated("--order", "0") == ["uniform"]
    assert evaluated("--order", "33")[-1] == "33-grams"
    message = "order is 101; expected a whole number of at most 100"
    with pytest.raises(InputError, match=message):
        evaluated("--order", "101")
    with pytest.raises(InputError, match=message):
        RunConfig(order=101)


def test_orders_that_cost_too_much_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = prepare(text_source(EASY), split=None)
    scored = baselines(corpus, RunConfig(), seconds=1e-9)
    assert [each.name for each in scored.found] == ["uniform", "1-grams"]
    assert scored.left_out == "2- to 6-grams left out: n-grams may take 0.0 s, a tenth of the time limit"
    assert baselines(corpus, RunConfig(order=3), seconds=1e-9).left_out is None  # what is asked for is done
    monkeypatch.setattr("unspool.baselines.language.available", lambda: 1000)
    assert "GiB of memory" in str(baselines(corpus, RunConfig()).left_out)


def test_a_run_with_a_time_limit_says_which_orders_it_left_out(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unspool.baselines.language.GROWTH", 1e9)
    given = {name: value for name, value in SMALL.items() if name != "steps"}
    events = list(run(replace(config, given=given, minutes=0.005), out=tmp_path / "run"))
    assert isinstance(events[2], LeftOut) and events[2].why.startswith("2- to 6-grams left out")
    assert list(resume(tmp_path / "run"))[2] == events[2]
    assert not any(isinstance(event, LeftOut) for event in run(config))


def figures(nats: float) -> Metrics:
    return Metrics(100, nats)


def test_the_verdict_says_plainly_which_one_is_better() -> None:
    rows = [
        Row("uniform", figures(4)),
        Row("5-grams", figures(1.5), 0.5, 9),
        Row("6-grams", figures(1.6), 1, 12),
    ]
    lost = verdict(rows, figures(1.9)).plain
    assert lost.startswith("5-grams are better on this text: perplexity 4.482 against 6.686 of the network")
    assert lost.endswith("(5-grams: 9 counts, 0.5 s)")
    assert verdict(rows, figures(1.2)).plain.startswith(
        "the network is better than the best baseline, 5-grams"
    )
    assert verdict(rows[:1], figures(5)).plain.startswith("uniform is better on this text")
    tie = verdict(rows, figures(min(row.measure.nats for row in rows) - 1e-9))
    assert "predict this text equally well" in tie.plain and "green" not in str(tie.style)
    best = best_as_json(rows, figures(1.9))
    assert best["name"] == "5-grams" and best["better_than_network"] is True and best["counts"] == 9
    assert best_as_json(rows, figures(1.2))["better_than_network"] is False
    assert measures_table(rows, figures(1)).row_count == 4


def test_the_live_line_names_the_best_baseline_until_it_is_crossed() -> None:
    found = [
        Baseline(name, figures(9), None, live=figures(nats)) for name, nats in (("a", 3), ("b", 1), ("c", 2))
    ]
    assert crossed(found, 3.5) == f" > b {np.e:.2f}"
    assert crossed(found, 1.5) == f" < c {np.e**2:.2f}, > b {np.e:.2f}"
    assert crossed(found, 0.5) == f" < b {np.e:.2f}"
    names = [each.name for each in baselines_to_plot([*found, *(replace(found[0], name=n) for n in "de")])]
    assert names == ["a", "b", "c", "d"]


def test_the_picture_has_the_best_baseline_on_the_targets_of_the_curve(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(run(config, out=tmp_path / "run"))[1]
    drawn = []
    monkeypatch.setattr(
        follow, "draw_curve", lambda _, lines, path, title: drawn.append((lines, path.touch()))
    )
    content = {"baselines": json.loads(json.dumps([asdict(each) for each in found]))}
    follow._draw(tmp_path / "run", content, tmp_path / "curve.png", force=False)
    best = min(found, key=lambda each: each.live.nats)
    assert (best.name, best.live.nats) in drawn[0][0] and len(drawn[0][0]) <= 5


def test_without_a_test_part_no_figures_are_called_those_of_one(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text(EASY)
    events = list(run(RunConfig(sources=(str(path),), given=SMALL, validations=2), out=tmp_path / "run"))
    assert events[-1].part == "valid" and all(each.test is None for each in events[1])
    written = run_folder.read_config(tmp_path / "run", "language")
    assert written["run"]["settings"]["split"] == [0.9, 0.1, 0.0]
    assert [each["test"] for each in written["baselines"]] == [None] * 7
    assert rows_of(events[1], "valid")[6].measure == events[1][6].valid


def test_a_long_text_has_a_test_part_that_chooses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text(EASY * 12)
    config = RunConfig(sources=(str(path),), given=SMALL, validations=2)
    events = list(run(config, out=tmp_path / "run"))
    assert isinstance(events[0], CorpusReady) and len(events[0].corpus.test.ids) == len(EASY) * 12 * 5 // 100
    assert events[-1].part == "test" and events[1][2].test.targets == len(events[0].corpus.test.ids) - 1
    assert run_folder.read_config(tmp_path / "run", "language")["run"]["settings"]["split"] == [
        0.9,
        0.05,
        0.05,
    ]
    again = replace(config, settings=events[0].corpus.settings)
    shutil.rmtree(tmp_path / "run")
    assert list(run(again, out=tmp_path / "run"))[-1].measure == events[-1].measure


@pytest.mark.parametrize(
    ("length", "tokens", "split"),
    [
        (100_000, "char", (0.9, 0.05, 0.05)),
        (99_999, "char", (0.9, 0.1, 0.0)),
        (100_000, "word", (0.9, 0.1, 0.0)),
    ],
)
def test_the_split_is_chosen_by_the_number_of_tokens(
    length: int, tokens: str, split: tuple[float, ...], tmp_path: Path
) -> None:
    text = text_source(("ab " * length)[:length])
    for options in ({}, {"cache": tmp_path}, {"cache": tmp_path}):
        corpus = prepare(text, tokens=tokens, split=None, **options)
        assert corpus.settings.split == split
        total = sum(len(part.ids) for part in corpus.parts)
        assert len(corpus.test.ids) == total - int(total * (split[0] + split[1]) + 1e-6)


def test_baselines_survive_being_written_down() -> None:
    from unspool.baselines.language import baseline_from_json

    one = Baseline("2-grams", figures(2), figures(3), 0.5, 7, measure(np.log([0.5, 0.25])))
    assert baseline_from_json(asdict(one), tested=True) == one
    assert baseline_from_json(asdict(one), tested=False) == replace(one, test=None)
