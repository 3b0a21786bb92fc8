"""The final training on the whole text: the measured model is the same as without it, and any stop is resumed to the bit."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unspool.cli.main import main
from unspool.storage.log import read_log
from unspool.storage.run_folder import FINAL, LOG, MEASURED, MIXTURE, MODEL
from unspool.tasks.language import final
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.text_model import TextModel
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import (
    CorpusReady,
    Evaluated,
    FinalPlanned,
    FinalStep,
    FinalTrained,
    RunConfig,
    StepDone,
    TrainingPlanned,
)

TEXT = "she sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure\n" * 30
SIZES = {"hidden": 12, "batch_size": 2, "window": 16, "steps": 9, "dropout": 0.2}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("final")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    for _ in run(config_of(folder), out=folder / "whole"):
        pass
    return folder


def config_of(place: Path, **more: object) -> RunConfig:
    settings = replace(RunConfig().settings, split=(0.8, 0.1, 0.1))
    fields = {"given": SIZES, "order": 2, "validations": 3, "settings": settings, "final": True}
    return RunConfig((str(place / "text.txt"),), **fields | more)


def stopped_in(run_of_events, kind: type, step: int) -> None:
    """Take events up to an update of one of the two trainings, and close the run."""
    for event in run_of_events:
        if type(event) is kind and event.step == step:
            run_of_events.close()
            return
    raise AssertionError("there is no such update")


def test_a_run_that_is_stopped_in_the_final_training_shows_both(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_in(run(config_of(place), out=tmp_path / "stopped"), FinalStep, 4)
    for name, folder, final_done in (("stopped", tmp_path, 4), ("whole", place, 11)):
        assert not main(["show", str(folder / name), "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (found["steps"], found["planned"]) == (9, 9)
        assert found["final"] == {"steps": final_done, "planned": 11}
        assert found["state"] == ("resumable" if final_done == 4 else "finished")
    assert not main(["show", str(tmp_path / "stopped")])
    printed = capsys.readouterr().out
    assert "9 + 4/11 updates" in printed and "of the measured model + of the final one" in printed
    assert not main(["runs", str(tmp_path)])
    assert "9 + 4/11" in capsys.readouterr().out


def same_run(one: Path, two: Path) -> bool:
    return all((one / name).read_bytes() == (two / name).read_bytes() for name in (MODEL, MEASURED, MIXTURE))


def test_the_measured_model_is_that_of_a_run_without_final_and_the_figures_are_its_own(place: Path) -> None:
    plain = {type(event): event for event in run(config_of(place, final=False))}
    events = list(run(config_of(place)))
    judged = next(event for event in events if isinstance(event, Evaluated))
    assert judged.measure == plain[Evaluated].measure and judged.part == "test"
    last = events[-1]
    assert isinstance(last, FinalTrained)
    assert (last.model.parameters.flat != judged.model.parameters.flat).any()


def test_the_final_model_is_that_of_a_training_on_all_splits(place: Path) -> None:
    events = list(run(config_of(place)))
    corpus = next(event for event in events if isinstance(event, CorpusReady)).corpus
    judged = next(event for event in events if isinstance(event, Evaluated))
    planned = next(event for event in events if isinstance(event, FinalPlanned))
    assert planned.tokens == len(TEXT) and planned.steps == round(
        judged.best_step * len(TEXT) / len(corpus.train.ids)
    )
    # The same by hand: a run whose training split is everything, with as many updates per token.
    everything = final.whole_text(corpus)
    assert corpus.decode(everything.train.ids) == TEXT
    config = next(event for event in events if isinstance(event, TrainingPlanned)).config
    steps = round(config.fixed.steps * len(TEXT) / len(corpus.train.ids))
    by_hand = replace(config, recipe=replace(config.fixed, steps=steps))
    state = final.build_state(everything, by_hand)
    reports = final.train_text(state, by_hand)
    for _ in range(planned.steps):
        next(reports)
    assert (state.model.parameters.flat == events[-1].model.parameters.flat).all()


@pytest.mark.parametrize(("kind", "step"), [(StepDone, 4), (StepDone, 9), (FinalStep, 1), (FinalStep, 6)])
def test_a_run_that_was_stopped_in_either_training_ends_in_the_same_bits(
    kind: type, step: int, place: Path, tmp_path: Path
) -> None:
    stopped_in(run(config_of(place), out=tmp_path / "run"), kind, step)
    for _ in resume(tmp_path / "run"):
        pass
    assert same_run(place / "whole", tmp_path / "run")


def test_a_run_that_was_killed_anywhere_ends_in_the_same_bits(place: Path, tmp_path: Path) -> None:
    """Copy the folder after every event, as a kill would leave it, and resume some of the copies."""
    copies = 0
    for event in run(config_of(place), out=tmp_path / "run", policy=CheckpointPolicy(steps=1)):
        if (isinstance(event, FinalStep) and event.step in (2, 5)) or isinstance(event, FinalPlanned):
            copy = tmp_path / f"copy{copies}"
            shutil.copytree(tmp_path / "run", copy)
            copies += 1
            for _ in resume(copy):
                pass
            assert same_run(place / "whole", copy)
    assert copies == 3


def test_resuming_a_finished_run_measures_the_measured_model_again(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "whole", tmp_path / "run")
    before = [entry["judged"] for entry in read_log(tmp_path / "run" / LOG) if "judged" in entry]
    events = list(resume(tmp_path / "run"))
    after = [entry["judged"] for entry in read_log(tmp_path / "run" / LOG) if "judged" in entry]
    assert before == after and len(after) == 1
    assert any(isinstance(event, Evaluated) for event in events) and same_run(
        place / "whole", tmp_path / "run"
    )


def test_evaluate_and_show_say_that_the_model_was_trained_on_everything(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not main(["evaluate", str(place / "whole"), "--order", "0"])
    assert "trained on all splits" in capsys.readouterr().out
    assert not main(["evaluate", str(place / "whole"), str(place / "text.txt"), "--order", "0", "--json"])
    assert json.loads(capsys.readouterr().out)["final"] is True
    assert not main(["show", str(place / "whole"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "finished" and found["options"]["final"] is True
    (judged,) = (entry["judged"] for entry in read_log(place / "whole" / LOG) if "judged" in entry)
    assert found["test"]["value"] == pytest.approx(np.exp(judged["nats"]))
    assert TextModel.load(place / "whole", mixture=True).mixture is not None


def test_a_run_between_the_two_trainings_can_be_used_and_is_resumable(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_in(run(config_of(place), out=tmp_path / "run"), FinalStep, 3)
    assert (tmp_path / "run" / MODEL).read_bytes() == (tmp_path / "run" / MEASURED).read_bytes()
    assert not main(["show", str(tmp_path / "run"), "--json"])
    assert json.loads(capsys.readouterr().out)["state"] == "resumable"


def test_a_final_training_from_another_run_needs_that_run_only_once(place: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(place / "whole", parent)
    given = {"batch_size": 2, "window": 16, "steps": 5}
    config = config_of(place, start=str(parent), given=given)
    for _ in run(config, out=tmp_path / "one"):
        pass
    stopped_in(run(config, out=tmp_path / "two"), StepDone, 2)
    shutil.rmtree(parent)
    for _ in resume(tmp_path / "two"):
        pass
    assert same_run(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two" / FINAL).exists()


def test_the_estimator_keeps_the_final_model_and_the_measured_figures(place: Path) -> None:
    settings = {"order": 2, "validations": 3, "split": (0.8, 0.1, 0.1), **SIZES}
    kept = LanguageModel(final=True, **settings).fit(TEXT)
    measured = LanguageModel(**settings).fit(TEXT)
    assert kept.measure_ == measured.measure_
    final_model = TextModel.load(place / "whole")
    assert (kept.fitted.model.parameters.flat == final_model.model.parameters.flat).all()


def test_both_trainings_together_keep_the_time_limit(place: Path) -> None:
    given = {"hidden": 12, "batch_size": 2, "window": 16}
    events = list(run(config_of(place, given=given, minutes=0.02)))
    first = [event for event in events if type(event) is StepDone]
    second = [event for event in events if isinstance(event, FinalStep)]
    assert first[-1].seconds < 0.75 * 1.2 and len(second) >= len(first) // 2
