"""A fit that was interrupted goes on to the same bits: from Python, from the command line, whatever ended it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from unspool.cli.main import app
from unspool.errors import Diverged, FileError, InputError
from unspool.storage import run_folder, tensors
from unspool.storage.log import read_log
from unspool.tasks import (
    SequenceClassifier,
    SequenceGenerator,
    SequenceRegressor,
    SequenceTagger,
    SequenceTranslator,
)
from unspool.tasks.registry import load
from unspool.training.store import saved_step

TEXTS = ["ab" * (1 + i % 4) + "cd"[i % 2] for i in range(30)]
SMALL = {"hidden": 6, "batch_size": 4, "dropout": 0.2, "seed": 3, "learning_rate": 0.02}
CHOSEN = SMALL | {"epochs": 4, "validation": 0.2, "patience": 2}
FITS = {
    "classify": (
        lambda: SequenceClassifier(recurrent_dropout=0.1, layers=2, **CHOSEN),
        [t[-1] for t in TEXTS],
    ),
    "classify, no validation": (lambda: SequenceClassifier(epochs=3, **SMALL), [t[-1] for t in TEXTS]),
    "tag": (lambda: SequenceTagger(cell="lstm", bidirectional=True, **CHOSEN), [list(t) for t in TEXTS]),
    "translate": (lambda: SequenceTranslator(attention="general", **CHOSEN), [t.upper() for t in TEXTS]),
    "regress": (lambda: SequenceRegressor(cell="elman", std=True, **CHOSEN), [len(t) / 2 for t in TEXTS]),
    "generate": (lambda: SequenceGenerator(**CHOSEN), TEXTS),
}


def inputs(name):
    return [t[-1] for t in TEXTS] if name == "generate" else TEXTS


def model_of(run: Path) -> bytes:
    return (run / run_folder.MODEL).read_bytes()


@pytest.mark.parametrize("name", FITS)
def test_a_fit_left_anywhere_goes_on_to_the_same_bits(name, tmp_path):
    make, y = FITS[name]
    X, whole = inputs(name), tmp_path / "whole"
    plain, model = make().fit(X, y), make().fit(X, y, run=whole)
    assert (plain.network_.parameters.flat == model.network_.parameters.flat).all()
    steps = model.n_iter_
    for number, cuts in enumerate(([1], [2, 5, 6], [steps - 1], [steps])):
        out, done = tmp_path / str(number), 0
        for cut in cuts:
            reports = make().fit_iter(X, y, run=out)
            done = next(islice(reports, cut - done - 1, None)).step
            reports.close()
            assert done == cut == saved_step(out / run_folder.TRAINING)
            load(out).predict(X[:2])
        carry_after = make().fit(X, y, run=out)
        assert model_of(out) == model_of(whole)
        assert (carry_after.network_.parameters.flat == model.network_.parameters.flat).all()
        assert carry_after.n_iter_ == steps and str(carry_after.predict(X)) == str(model.predict(X))
        assert not (out / run_folder.TRAINING).exists()
        seen = [
            [{k: v for k, v in e.items() if k != "seconds"} for e in read_log(p / run_folder.LOG)]
            for p in (out, whole)
        ]
        assert seen[0] == seen[1]


def test_a_fit_that_stops_early_stops_there_too_when_it_was_interrupted(tmp_path):
    def make():
        return SequenceClassifier(**CHOSEN | {"epochs": 60, "learning_rate": 0.3})

    y = FITS["classify"][1]
    whole = make().fit(TEXTS, y, run=tmp_path / "whole")
    assert whole.n_iter_ < whole.fit_config_.steps
    for cut in (whole.n_iter_ - 1, whole.n_iter_):
        reports = make().fit_iter(TEXTS, y, run=tmp_path / str(cut))
        next(islice(reports, cut - 1, None))
        reports.close()
        carry_after = make().fit(TEXTS, y, run=tmp_path / str(cut))
        assert carry_after.n_iter_ == whole.n_iter_ and model_of(tmp_path / str(cut)) == model_of(
            tmp_path / "whole"
        )


def test_updates_planned_by_minutes_are_never_measured_again(tmp_path, monkeypatch):
    make, y = lambda: SequenceClassifier(hidden=4, minutes=0.01, epochs=10**6), FITS["classify"][1]
    next(first := make().fit_iter(TEXTS, y, run=tmp_path / "run"))
    first.close()
    steps = run_folder.read_config(tmp_path / "run", "classify")["fit"]["steps"]
    monkeypatch.setattr(
        "unspool.training.sequence_fit.measure_update_rate", lambda *_, **__: pytest.fail("measured")
    )
    assert make().fit(TEXTS, y, run=tmp_path / "run").n_iter_ == steps


def test_a_fit_killed_between_two_saves_goes_on_from_the_one_before(tmp_path):
    make, y = FITS["classify"]
    make().fit(TEXTS, y, run=tmp_path / "whole")
    reports = make().fit_iter(TEXTS, y, run=tmp_path / "live", save_every=4)
    next(islice(reports, 6, None))  # after update 7: saved after update 4, the model kept since
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    assert tensors.read_arrays(tmp_path / "killed" / run_folder.TRAINING)[1]["step"] == 4
    make().fit(TEXTS, y, run=tmp_path / "killed")
    assert model_of(tmp_path / "killed") == model_of(tmp_path / "whole")
    with pytest.raises(FileError, match="another process"):
        next(make().fit_iter(TEXTS, y, run=tmp_path / "live"))


def test_other_arguments_other_data_and_runs_without_a_fit_are_refused(tmp_path):
    make, y = FITS["classify"]
    out = tmp_path / "run"
    make().fit_iter(TEXTS, y, run=out)
    for change, X, line in (
        ({"hidden": 7}, TEXTS, "begun with hidden=6, not 7"),
        ({}, [*TEXTS[:-1], "abd"], "other sequences or targets"),
    ):
        with pytest.raises(InputError, match=line) as caught:
            make().set_params(**change).fit(X, y, run=out)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="save_every is 0"):
        make().fit_iter(TEXTS, y, run=out, save_every=0)
    make().fit(TEXTS, y).save(tmp_path / "saved")
    with pytest.raises(InputError, match="holds no fit to resume"):
        make().fit(TEXTS, y, run=tmp_path / "saved")
    ended = make().fit(TEXTS, y, run=out)
    carry_after = make()
    assert list(carry_after.fit_iter(TEXTS, y, run=out)) == []
    assert carry_after.n_iter_ == ended.n_iter_ and (carry_after.predict(TEXTS) == ended.predict(TEXTS)).all()


def test_nothing_that_is_not_finite_is_saved(tmp_path):
    make, y = FITS["classify, no validation"]
    model = make()
    reports = model.fit_iter(TEXTS, y, run=tmp_path / "run")
    next(reports)
    model.network_.parameters.flat[0] = np.nan
    with pytest.raises(Diverged, match="not finite after step 1"):
        reports.close()
    assert tensors.read_arrays(tmp_path / "run" / run_folder.TRAINING)[1]["step"] == 0


COMMANDS = {
    "classify": ("names.csv", "text,label\n" + "".join(f"{t},{t[-1]}\n" for t in TEXTS)),
    "tag": ("tags.conll", "\n\n".join("\n".join(f"{c} {c.upper()}" for c in t) for t in TEXTS) + "\n"),
    "translate": ("pairs.tsv", "".join(f"{t}\t{t.upper()}\t{i}\n" for i, t in enumerate(TEXTS))),
}
OPTIONS = ["--hidden", "8", "--steps", "300", "--validation", "0.2", "--patience", "0", "--batch", "4"]


def command(*arguments, **more):
    environment = os.environ | {"UNSPOOL_THREADS": "1"}
    line = [sys.executable, "-m", "unspool", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, stdout=-1, stderr=-1, text=True, **more)


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


def heeding():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def step_of(out: Path) -> int:
    return tensors.read_arrays(out / run_folder.TRAINING)[1]["step"]


def wait(out: Path, step: int, process) -> None:
    """Until the run has been saved after a later update, or the process has ended."""
    while process.poll() is None:
        try:
            if step_of(out) > step:
                return
        except FileError:
            pass
        time.sleep(0.005)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_stopped_and_killed_is_resumed_to_the_same_bits(name, tmp_path, capsys):
    file, content = COMMANDS[name]
    data, out = tmp_path / file, tmp_path / "run"
    data.write_text(content)
    options = [*OPTIONS, "--columns", "0", "1"] if name == "translate" else OPTIONS
    run(name, "fit", data, "--out", tmp_path / "whole", *options, "--json")
    whole = json.loads(capsys.readouterr().out)
    step = 0
    for number, kind in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        begin = ("resume", out) if number else (name, "fit", data, "--out", out, *options)
        process = command(*begin, "--save-every", 1, preexec_fn=heeding)
        wait(out, step, process)
        process.send_signal(kind)
        _, error = process.communicate()
        if process.returncode:  # else it was quicker than the signal
            assert process.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}[kind]
            if kind != signal.SIGKILL:
                assert (
                    len(error.splitlines()) == 1
                    and f"everything is saved; resume with: unspool resume {out}" in error
                )
            assert step_of(out) > step
            step = step_of(out)
        load(out)
    assert 0 < step < 300
    run("resume", out, "--json")
    carry_after = json.loads(capsys.readouterr().out)
    assert carry_after | {"run": ""} == whole | {"run": ""}
    assert model_of(out) == model_of(tmp_path / "whole")
    assert {p.name for p in out.iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()}


def stopped(tmp_path, monkeypatch, *more):
    """A fit that is stopped after its first update."""
    data, out = tmp_path / "names.csv", tmp_path / "run"
    data.write_text(COMMANDS["classify"][1])
    with monkeypatch.context() as patch:
        patch.setattr("unspool.cli.signals.Stop.__call__", lambda _: True)
        with pytest.raises(SystemExit) as end:
            run("classify", "fit", data, "--out", out, *OPTIONS, *more)
    assert end.value.code == 130
    return data, out


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_changed_and_missing_data_is_refused_by_name(tmp_path, monkeypatch):
    test = tmp_path / "test.csv"
    test.write_text(COMMANDS["classify"][1])
    data, out = stopped(tmp_path, monkeypatch, "--test", test)
    before = {path: path.read_bytes() for path in out.iterdir()}
    for path in (data, test):
        content = path.read_text()
        path.write_text(content + "abc,c\n")
        with pytest.raises(InputError, match=f"{path.name}: has changed since"):
            run("resume", out)
        path.unlink()
        with pytest.raises(FileError, match=f"{path.name}: no such file or folder"):
            run("resume", out)
        path.write_text(content)
    assert before == {path: path.read_bytes() for path in out.iterdir()}
    run("resume", out)


def test_a_run_that_has_ended_says_so_and_is_judged_again(tmp_path, monkeypatch, capsys):
    _, out = stopped(tmp_path, monkeypatch)
    capsys.readouterr()
    run("resume", out)
    first = capsys.readouterr().out
    assert "resuming after update 1\n" in first and "300 updates in" in first
    before = model_of(out)
    run("resume", out)
    second = capsys.readouterr().out
    assert "the fit has ended" in second and "updates in" not in second
    assert first[first.index("held out:") :] == second[second.index("held out:") :]
    assert before == model_of(out)


def test_runs_that_hold_no_command_are_refused_in_one_line(tmp_path, monkeypatch):
    make, y = FITS["classify"]
    make().fit(TEXTS, y).save(tmp_path / "old")
    with pytest.raises(InputError, match="it stores no command"):
        run("resume", tmp_path / "old")
    make().fit(TEXTS, y).save(tmp_path / "numbers")
    run_folder.write_config(tmp_path / "numbers", "forecast", {})
    with pytest.raises(InputError, match=r"it stores no command .*; use it with unspool forecast predict"):
        run("resume", tmp_path / "numbers")
    _, out = stopped(tmp_path, monkeypatch)
    with pytest.raises(InputError, match="--tensorboard is for language models only"):
        run("resume", out, "--tensorboard")
    with pytest.raises(FileError, match="unspool resume"):
        run("classify", "fit", tmp_path / "names.csv", "--out", out)


def test_a_folder_of_data_is_known_by_names_and_bytes(tmp_path, monkeypatch):
    folder, out = tmp_path / "names", tmp_path / "run"
    folder.mkdir()
    for name in "cd":
        (folder / f"{name}.txt").write_text("".join(f"{t}\n" for t in TEXTS if t[-1] == name))
    with monkeypatch.context() as patch:
        patch.setattr("unspool.cli.signals.Stop.__call__", lambda _: True)
        with pytest.raises(SystemExit):
            run("classify", "fit", folder, "--out", out, *OPTIONS)
    (folder / "c.txt").rename(folder / "e.txt")
    with pytest.raises(InputError, match="names: has changed since"):
        run("resume", out)


def test_a_stop_while_a_fit_is_judged_is_at_once_and_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    data, out = tmp_path / "names.csv", tmp_path / "run"
    data.write_text(COMMANDS["classify"][1])
    with monkeypatch.context() as patch:
        patch.setattr(SequenceClassifier, "predict", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(SystemExit) as end:
            run("classify", "fit", data, "--out", out, *OPTIONS)
    assert end.value.code == 143 and f"unspool resume {out}" in capsys.readouterr().err
    run("resume", out)
    assert "held out" in capsys.readouterr().out
