"""The whole walk: stages in order, a run that can be repeated and gone on with to the bit, honest numbers."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from stopping import stop_after
from unspool.data.text.settings import TextConfig
from unspool.errors import Diverged, FileError, InputError
from unspool.evaluation.language import log_prob, validation_loss
from unspool.optimisers.schedules.cosine import Cosine
from unspool.storage import run_folder, tensors
from unspool.storage.log import read_log
from unspool.tasks.language.plan import step_budget
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.training import store
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.deadline import early_validations
from unspool.training.events import (
    CorpusReady,
    Evaluated,
    PlanChanged,
    RunConfig,
    Scoring,
    StepDone,
    TrainingPlanned,
    Working,
)
from unspool.training.timing import measure_update_rate

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 60
SMALL = {"hidden": 24, "batch_size": 4, "window": 16, "steps": 40, "cell": "gru"}


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    path = tmp_path / "story.txt"
    path.write_text(TEXT, encoding="utf-8")
    settings = TextConfig(split=(0.9, 0.05, 0.05))
    return RunConfig(sources=(str(path),), settings=settings, given=SMALL, validations=4)


def changed(config: RunConfig, **given: object) -> RunConfig:
    return RunConfig(config.sources, None, config.settings, given=SMALL | given, validations=4)


def test_the_stages_come_in_the_order_of_the_walk(config: RunConfig) -> None:
    events = list(run(config))
    kinds = [type(event) for event in events]
    assert kinds == [CorpusReady, list, TrainingPlanned, *[StepDone] * 40, Scoring, Working, Evaluated]
    steps = [event for event in events if isinstance(event, StepDone)]
    assert [step.report.step for step in steps] == list(range(1, 41))
    assert (
        [step.report.step for step in steps if step.valid]
        == sorted(early_validations(40, 4))
        == [1, 5, 18, 40]
    )
    valid = [step.valid for step in steps if step.valid]
    assert valid[-1] < valid[0]
    assert [step.report.step for step in steps if step.sample] == [4, 12, 24]
    judged = events[-1]
    assert isinstance(judged, Evaluated) and isinstance(events[0], CorpusReady)
    assert judged.part == "test"
    assert judged.measure.nats == pytest.approx(-log_prob(judged.model, events[0].corpus.test.ids).mean())


def test_the_same_config_gives_the_same_bits_kept_or_not(config: RunConfig, tmp_path: Path) -> None:
    ends = [list(run(config))[-1], list(run(config, out=tmp_path / "run"))[-1]]
    assert all(isinstance(end, Evaluated) for end in ends)
    np.testing.assert_array_equal(ends[0].model.parameters.flat, ends[1].model.parameters.flat)
    assert ends[0].measure == ends[1].measure


def test_minutes_become_numbers_that_are_written_down(config: RunConfig, tmp_path: Path) -> None:
    timed = RunConfig(
        config.sources,
        None,
        config.settings,
        minutes=0.01,
        given={"hidden": 8, "batch_size": 4, "window": 16},
    )
    planned = next(event for event in run(timed, out=tmp_path / "run") if isinstance(event, TrainingPlanned))
    written = run_folder.read_config(tmp_path / "run", "language")["run"]
    assert written["recipe"]["steps"] == planned.config.fixed.steps >= 1
    assert RunConfig.from_json(written) == planned.config


def test_a_plan_changed_on_the_way_keeps_the_deadline_and_can_be_repeated(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first measurement is ten times too fast; each update then takes a tenth of a second by the clock."""
    seconds = iter(np.arange(1, 10_000) / 10)
    monkeypatch.setattr("unspool.tasks.language.plan._measured", lambda *_: 100.0)
    for module in ("tasks.language.run", "training.fit"):
        monkeypatch.setattr(f"unspool.{module}.Stopwatch", lambda *_: lambda: float(next(seconds)))
    monkeypatch.setattr("unspool.training.deadline.time.perf_counter", lambda: 0.0)
    given = {name: value for name, value in SMALL.items() if name != "steps"} | {"dropout": 0.1}
    events = list(run(replace(config, minutes=10 / 60, given=given), out=tmp_path / "run"))
    changed = [event.config for event in events if isinstance(event, PlanChanged)][-1]
    recipe, last = changed.fixed, [event for event in events if isinstance(event, StepDone)][-1]
    assert recipe.plans[0][1] > 900 and recipe.plans[1][0] == pytest.approx(20, abs=3)
    assert last.report.step == recipe.steps == pytest.approx(97, abs=5)
    assert last.seconds == pytest.approx(10, abs=0.6)
    assert RunConfig.from_json(run_folder.read_config(tmp_path / "run", "language")["run"]) == changed
    carry_after = list(run(replace(changed, recipe=None, given=asdict(recipe)), out=tmp_path / "again"))
    assert not any(isinstance(event, PlanChanged) for event in carry_after)
    for name in (run_folder.MODEL,):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert [e.report.step for e in carry_after if isinstance(e, StepDone) and e.valid is not None] == sorted(
        step_budget(changed).validation_steps
    )


def test_uniform_is_the_number_of_tokens(config: RunConfig) -> None:
    events = run(config)
    prepared, baselines = next(events), next(events)
    assert isinstance(prepared, CorpusReady) and isinstance(baselines, list)
    assert baselines[0].test.perplexity == len(prepared.corpus.vocab)
    assert [each.name for each in baselines] == ["uniform", *(f"{n}-grams" for n in range(1, 7))]


@pytest.mark.parametrize(
    ("cell", "batches", "bptt", "recompute"),
    [
        ("elman", "sequential", "full", "sqrt"),
        ("gru", "random", "full", "none"),
        ("lstm", "sequential", "full", "none"),
        ("lstm", "sequential", "truncated:5,12", "none"),
        ("gru", "sequential", "random:0.8", "sqrt"),
        ("elman", "sequential", "truncated:7", "none"),
    ],
)
def test_a_run_stopped_anywhere_goes_on_to_the_same_bits(
    cell: str, batches: str, bptt: str, recompute: str, config: RunConfig, tmp_path: Path
) -> None:
    given = SMALL | {"cell": cell, "layers": 2, "dropout": 0.2, "recurrent_dropout": 0.1, "steps": 23}
    if bptt.startswith("truncated"):
        del given["window"]
    config = replace(config, given=given, validations=5, batches=batches, bptt=bptt, recompute=recompute)
    whole = list(run(config, out=tmp_path / "whole"))[-1]
    assert isinstance(whole, Evaluated)
    for stop_at in (1, 7, 13, 22):
        out = tmp_path / f"stopped{stop_at}"
        assert stop_after(stop_at, run(config, out=out))[-1].step == stop_at
        carry_after = list(resume(out))
        assert isinstance(carry_after[2], TrainingPlanned) and carry_after[2].step == stop_at
        assert isinstance(carry_after[-1], Evaluated) and carry_after[-1].measure == whole.measure
        for name in (run_folder.MODEL, run_folder.VOCAB):
            assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        states = [tensors.read_arrays(place / run_folder.TRAINING)[0] for place in (out, tmp_path / "whole")]
        assert states[0].keys() == states[1].keys()
        assert all((states[0][name] == states[1][name]).all() for name in states[0])
        steps = [entry["step"] for entry in read_log(out / run_folder.LOG) if "step" in entry]
        assert steps == list(range(1, 24))


def test_a_finished_run_resumed_is_only_judged_again(config: RunConfig, tmp_path: Path) -> None:
    first = list(run(config, out=tmp_path / "run"))[-1]
    carry_after = list(resume(tmp_path / "run"))
    assert [type(event) for event in carry_after] == [
        CorpusReady,
        list,
        TrainingPlanned,
        Scoring,
        Working,
        Evaluated,
    ]
    assert carry_after[-1].measure == first.measure
    assert sum("judged" in entry for entry in read_log(tmp_path / "run" / run_folder.LOG)) == 1


def test_the_best_model_is_kept_and_not_the_last(config: RunConfig, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("qz xj kv qz xj kv wq zz the time\n" * 20, encoding="utf-8")
    # The validation part is of another kind: the better the text is learned, the worse it is predicted.
    config = RunConfig(
        config.sources,
        (str(other),),
        config.settings,
        given=SMALL | {"steps": 60, "learning_rate": 0.02},
        validations=6,
    )
    events = list(run(config, out=tmp_path / "run"))
    looks = {e.report.step: e.valid for e in events if isinstance(e, StepDone) and e.valid is not None}
    best = min(looks, key=looks.__getitem__)
    judged = events[-1]
    assert isinstance(judged, Evaluated) and judged.best_step == best < 60
    model, about = store.load_model(tmp_path / "run" / run_folder.MODEL)
    assert about == {"step": best, "valid": looks[best]}
    corpus = events[0].corpus
    assert validation_loss(model, corpus.valid.ids) == looks[best]


def test_every_damage_of_a_file_is_refused_in_one_line(config: RunConfig, tmp_path: Path) -> None:
    out = tmp_path / "run"
    list(run(config, out=out))
    for name in ("config.json", "training.safetensors", "log.jsonl", "text/ids.bin", "text/corpus.json"):
        whole = (out / name).read_bytes()
        # The journal's last line comes after the last saved state.
        cuts = [len(whole) // 2] if name == "log.jsonl" else [0, len(whole) // 2, len(whole) - 1]
        flipped = whole[:5] + bytes([whole[5] ^ 1]) + whole[6:]
        for damaged in (*(whole[:cut] for cut in cuts), flipped):
            (out / name).write_bytes(damaged)
            with pytest.raises((FileError, InputError)) as error:
                list(resume(out))
            assert "\n" not in str(error.value)
            assert any(word in str(error.value) for word in ("damaged", "not a"))
        (out / name).write_bytes(whole)
    for name in ("config.json", "model.safetensors", "vocab.json"):
        whole = (out / name).read_bytes()
        for at in range(0, len(whole), 1 + len(whole) // 40):
            (out / name).write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises((FileError, InputError)):
                TextModel.load(out)
        (out / name).write_bytes(whole)
    TextModel.load(out)


def test_a_run_that_is_being_trained_cannot_be_resumed_at_the_same_time(
    config: RunConfig, tmp_path: Path
) -> None:
    events = run(config, out=tmp_path / "run")
    for event in events:
        if isinstance(event, StepDone):
            break
    with pytest.raises(FileError, match="another process"):
        next(resume(tmp_path / "run"))
    events.close()
    assert isinstance(next(resume(tmp_path / "run")), CorpusReady)


def test_a_truncated_chain_says_how_long_a_window_is(config: RunConfig) -> None:
    given = {name: value for name, value in SMALL.items() if name != "window"}
    events = list(run(replace(config, given=given, bptt="truncated:5,12")))
    planned = next(event for event in events if isinstance(event, TrainingPlanned))
    assert planned.config.fixed.window == 5
    assert {e.report.targets for e in events if isinstance(e, StepDone)} == {5 * 4}
    with pytest.raises(InputError, match="window is 16 and bptt"):
        list(run(replace(config, bptt="truncated:5,12")))


def test_a_journal_that_was_deleted_begins_anew(config: RunConfig, tmp_path: Path) -> None:
    list(run(config, out=tmp_path / "run"))
    (tmp_path / "run" / run_folder.LOG).unlink()
    assert isinstance(list(resume(tmp_path / "run"))[-1], Evaluated)


def test_what_cannot_be_trained_is_refused_before(config: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs about .* GiB of memory"):
        list(run(changed(config, hidden=2_000_000), out=tmp_path / "run"))
    with pytest.raises(InputError, match="text too short"):
        list(run(changed(config, window=5000), out=tmp_path / "run"))
    with pytest.raises(Diverged, match=r"lower the learning rate.*is in .*run"):
        list(run(changed(config, learning_rate=1e30, clip=0.0, cell="elman"), out=tmp_path / "run"))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["run"]
    TextModel.load(tmp_path / "run")  # what there was before is still there


@pytest.mark.parametrize(
    "wrong", [{"minutes": 0}, {"minutes": float("nan")}, {"seed": -1}, {"batches": "odd"}]
)
def test_a_config_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        RunConfig(**wrong)  # type: ignore[arg-type]


def test_a_glance_scores_every_target_once_and_comes_close(config: RunConfig) -> None:
    events = list(run(config))
    model, ids = events[-1].model, events[0].corpus.train.ids
    exact = -log_prob(model, ids).mean()
    assert validation_loss(model, ids, rows=1) == pytest.approx(exact, rel=1e-12)
    assert validation_loss(model, ids, rows=7, context=16) == pytest.approx(exact, rel=0.02)
    assert validation_loss(model, ids, rows=7, context=16, window=5) == validation_loss(
        model, ids, rows=7, context=16, window=1000
    )


def test_the_schedule_ends_with_the_last_update() -> None:
    rate = Cosine(steps=1000, warmup=10)
    assert rate(0) == pytest.approx(0.1)
    assert rate(999) < 1e-5
    assert max(map(rate, range(1000))) == pytest.approx(1, abs=1e-3)


def test_the_rate_is_the_median_and_not_thrown_off_by_a_pause() -> None:
    ticks = iter([0.0, 1, 2, 30, 31, 32, 33, 34, 35])
    assert measure_update_rate(iter(range(100)), seconds=34, clock=lambda: next(ticks)) == 1.0


def test_a_stop_at_the_last_update_leaves_the_judging_for_later(config: RunConfig, tmp_path: Path) -> None:
    out, short = tmp_path / "run", changed(config, steps=1)
    assert isinstance(stop_after(1, run(short, out=out))[-1], StepDone)
    assert isinstance(list(resume(out))[-1], Evaluated)


def test_what_is_not_finite_is_never_saved(config: RunConfig, tmp_path: Path) -> None:
    wild = changed(config, learning_rate=1e38, clip=0.0, warmup=1)
    with pytest.raises(Diverged, match="lower the learning rate"):
        list(run(wild, out=tmp_path / "run", policy=CheckpointPolicy(steps=1)))
    arrays, _ = tensors.read_arrays(tmp_path / "run" / run_folder.TRAINING)
    assert np.isfinite(arrays["parameters"]).all()
    assert all(
        np.isfinite(array).all() for array in TextModel.load(tmp_path / "run").model.parameters.values()
    )


def test_every_sample_is_in_the_journal(config: RunConfig, tmp_path: Path) -> None:
    list(run(changed(config, steps=450), out=tmp_path / "run"))
    found = [entry["step"] for entry in read_log(tmp_path / "run" / "log.jsonl") if "sample" in entry]
    assert found == [45, 135, 270]
