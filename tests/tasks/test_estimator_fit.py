"""What a run holds when a fit was stopped, refused or has failed: the model of then, and nothing that is not so."""

import json
import os
import signal
from itertools import islice

import numpy as np
import pytest

from unspool.cli.main import app
from unspool.cli.signals import Stop
from unspool.errors import Diverged, FileError, InputError
from unspool.storage import run_folder
from unspool.storage.log import RunLog
from unspool.tasks import SequenceClassifier, SequenceRegressor, SequenceTagger, SequenceTranslator
from unspool.tasks.registry import load

TEXTS = ["ab" * (1 + i % 4) + "cd"[i % 2] for i in range(30)]
LABELS = [text[-1] for text in TEXTS]
NUMBERS = [np.sin(np.arange(3 + i % 4) + i) for i in range(30)]
SMALL = {"hidden": 6, "batch_size": 4, "seed": 3, "learning_rate": 0.02, "epochs": 3}
TABLE = "text,label\n" + "".join(f"{text},{text[-1]}\n" for text in TEXTS)
PAIRS = "".join(f"{text}\t{text.upper()}\n" for text in TEXTS)
TAGS = "\n\n".join("\n".join(f"{c} {c.upper()}" for c in text) for text in TEXTS) + "\n"
OPTIONS = ["--hidden", "8", "--steps", "20", "--batch", "4", "--patience", "0"]


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("validation", [0.0, 0.2])
@pytest.mark.parametrize("steps", [1, 5])
def test_a_fit_that_is_left_keeps_the_parameters_of_then(validation, steps, tmp_path):
    model = SequenceClassifier(validation=validation, **SMALL)
    reports = model.fit_iter(TEXTS, LABELS, run=tmp_path / "run")
    next(islice(reports, steps - 1, None))
    reports.close()
    kept = load(tmp_path / "run")
    assert kept.n_iter_ == steps
    assert (kept.network_.parameters.flat == model.network_.parameters.flat).all()


def test_the_best_parameters_stay_the_model_when_a_fit_is_left_after_them(tmp_path):
    model = SequenceClassifier(validation=0.2, **SMALL)
    best = 0
    reports = model.fit_iter(TEXTS, LABELS, run=tmp_path / "run")
    for report in islice(reports, 8):
        best = report.step if report.best else best
    reports.close()
    assert 0 < best < 8 and load(tmp_path / "run").n_iter_ == best


def other_letters(texts):
    return [text.translate(str.maketrans("abcd", "wxyz")) for text in texts]


@pytest.mark.parametrize(
    ("make", "X", "y", "others"),
    [
        (SequenceClassifier, TEXTS, LABELS, [(TEXTS, other_letters(LABELS)), (other_letters(TEXTS), LABELS)]),
        (SequenceClassifier, NUMBERS, LABELS, [([4 * x for x in NUMBERS], LABELS)]),
        (SequenceRegressor, TEXTS, np.arange(30.0), [(TEXTS, 8 * np.arange(30.0))]),
        (SequenceTagger, TEXTS, [list(t) for t in TEXTS], [(TEXTS, [list(t.upper()) for t in TEXTS])]),
        (SequenceTranslator, TEXTS, TEXTS, [(TEXTS, other_letters(TEXTS)), (TEXTS, list(map(list, TEXTS)))]),
    ],
)
def test_data_that_has_the_same_ids_or_numbers_and_means_something_else_is_refused(
    make, X, y, others, tmp_path
):
    next(reports := make(**SMALL).fit_iter(X, y, run=tmp_path / "run"))
    reports.close()
    for other in others:
        with pytest.raises(InputError, match="begun with other sequences or targets"):
            make(**SMALL).fit(*other, run=tmp_path / "run")
    fitted = make(**SMALL).fit(X, y)
    fitted.fit(X, y, run=tmp_path / "run")  # what an estimator learned before changes nothing


def test_a_model_that_is_not_finite_after_the_last_update_is_not_fitted(tmp_path):
    data, out = tmp_path / "names.csv", tmp_path / "run"
    data.write_text(TABLE)
    wild = ["--steps", "1", "--learning-rate", "1e39", "--validation", "0", "--hidden", "8"]
    with np.errstate(all="ignore"), pytest.raises(Diverged, match="not finite after step 1: lower") as caught:
        run("classify", "fit", data, "--out", out, *wild)
    assert "\n" not in str(caught.value)
    assert np.isfinite(load(out).network_.parameters.flat).all() and (out / run_folder.TRAINING).exists()
    with np.errstate(all="ignore"), pytest.raises(Diverged, match="not finite after step 1"):
        SequenceClassifier(hidden=8, steps=1, learning_rate=1e39, validation=0).fit(TEXTS, LABELS)


def test_a_run_without_its_training_state_has_not_ended_unless_it_says_so(tmp_path):
    out = tmp_path / "run"
    next(reports := SequenceClassifier(**SMALL).fit_iter(TEXTS, LABELS, run=out))
    reports.close()
    (out / run_folder.TRAINING).unlink()
    for _ in range(2):
        with pytest.raises(FileError, match=r"training\.safetensors: it is missing, and log\.jsonl does not"):
            SequenceClassifier(**SMALL).fit(TEXTS, LABELS, run=out)
        (out / run_folder.LOG).unlink()


def test_the_command_says_that_the_training_state_is_missing(tmp_path, monkeypatch):
    data, out = tmp_path / "names.csv", tmp_path / "run"
    data.write_text(TABLE)
    with monkeypatch.context() as patch:
        patch.setattr(Stop, "__call__", lambda _: True)
        with pytest.raises(SystemExit):
            run("classify", "fit", data, "--out", out, *OPTIONS)
    (out / run_folder.TRAINING).unlink()
    with pytest.raises(FileError, match=r"training\.safetensors: it is missing"):
        run("resume", out)


def test_a_fit_that_is_refused_leaves_the_estimator_as_it_was(tmp_path):
    model = SequenceClassifier(**SMALL).fit(TEXTS, LABELS, run=tmp_path / "run")
    before, answers = dict(vars(model)), model.predict_proba(TEXTS)

    def same():
        now = vars(model)
        kept = list(now) == list(before) and all(now[name] is before[name] for name in now)
        return kept and (model.predict_proba(TEXTS) == answers).all()

    others = other_letters(TEXTS)
    for X, y, more in (
        (others, None, {}),
        (others, ["x"] * 30, {}),
        (others, LABELS[1:], {}),
        (others, LABELS, {"run": tmp_path / "run"}),
    ):
        with pytest.raises(InputError):
            model.fit(X, y, **more)
        assert same()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        model.fit(others, LABELS, run=tmp_path / "file" / "run")
    assert same()
    with RunLog(tmp_path / "run" / run_folder.LOG), pytest.raises(FileError, match="another process"):
        model.fit(TEXTS, LABELS, run=tmp_path / "run")
    assert same()


FILES = {"classify": ("names.csv", TABLE), "tag": ("tags.conll", TAGS), "translate": ("pairs.tsv", PAIRS)}


@pytest.mark.parametrize("name", FILES)
def test_json_tells_of_a_stop_and_of_nothing_held_out(name, tmp_path, monkeypatch, capsys):
    file, content = FILES[name]
    data, out = tmp_path / file, tmp_path / "run"
    data.write_text(content)
    with monkeypatch.context() as patch:
        patch.setattr(Stop, "__call__", lambda _: True)
        with pytest.raises(SystemExit) as end:
            run(name, "fit", data, "--out", out, *OPTIONS, "--hold-out", "0", "--json")
    told = json.loads(capsys.readouterr().out)
    assert end.value.code == 130 and told["run"] == str(out) and told["stopped"] == 1
    run("resume", out, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 20 and told["scores"] is None and "stopped" not in told


@pytest.mark.parametrize("name", FILES)
def test_a_plot_of_nothing_is_refused_before_anything_is_made(name, tmp_path):
    file, content = FILES[name]
    data, out = tmp_path / file, tmp_path / "run"
    data.write_text(content)
    for share in ("0", "0.001"):
        with pytest.raises(InputError, match="--plot draws the held-out data, and there is none"):
            run(
                name,
                "fit",
                data,
                "--out",
                out,
                *OPTIONS,
                "--hold-out",
                share,
                "--plot",
                tmp_path / "plot.svg",
            )
    assert not out.exists() and not (tmp_path / "plot.svg").exists()


def test_a_stop_after_the_last_report_is_heeded_before_the_fit_is_judged(tmp_path, monkeypatch, capsys):
    data, out = tmp_path / "names.csv", tmp_path / "run"
    data.write_text(TABLE)

    def follow(console, model, reports, stop):
        list(reports)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("unspool.cli.fit._show_fit", follow)
        patch.setattr(SequenceClassifier, "predict", lambda *_: pytest.fail("judged"))
        with pytest.raises(SystemExit) as end:
            run("classify", "fit", data, "--out", out, *OPTIONS, "--json")
    said = capsys.readouterr()
    assert end.value.code == 143 and f"unspool resume {out}" in said.err
    assert json.loads(said.out)["stopped"] is None
    run("resume", out)
    assert "held out" in capsys.readouterr().out


def test_only_the_files_that_are_read_make_a_folder_another_one(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "names"
    folder.mkdir()
    for name in "cd":
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in TEXTS if text[-1] == name))
    out = folder / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Stop, "__call__", lambda _: True)
        with pytest.raises(SystemExit):
            run("classify", "fit", folder, "--out", out, *OPTIONS)
    (folder / ".DS_Store").write_bytes(b"\0")
    (folder / "notes.md").write_text("nothing")
    run("resume", out)
    assert "resuming after update 1" in capsys.readouterr().out
    (folder / "e.txt").write_text("abe\n")
    with pytest.raises(InputError, match="names: has changed since"):
        run("resume", out)


def test_a_pipe_is_refused_before_a_byte_of_it_is_read(tmp_path):
    pipe, data = tmp_path / "pairs.tsv", tmp_path / "file.tsv"
    os.mkfifo(pipe)
    data.write_text(PAIRS)
    for given in ((pipe,), ("/dev/stdin",), (data, "--test", pipe)):
        with pytest.raises(InputError, match=r"neither a file nor a folder: .* write it to a file"):
            run("translate", "fit", *given, "--out", tmp_path / "run", *OPTIONS)
    assert not (tmp_path / "run").exists()


def test_a_sequence_that_does_not_fit_in_memory_is_refused_before_anything_is_tried():
    with pytest.raises(InputError, match=r"sequence 5 has 9,000,000 steps.*GiB"):
        SequenceClassifier(hidden=256, epochs=1).fit(
            ["ab", "ba", "aa", "bb", "a" * 9_000_000], ["x", "y", "x", "y", "x"]
        )


@pytest.mark.parametrize(
    ("command", "name", "content"),
    [
        ("classify", "data.csv", "text,label\nab,A\nba,B\n"),
        ("tag", "data.conll", "a X\nb Y\n\nb Y\na X\n"),
        ("translate", "data.tsv", "ab\tba\nba\tab\n"),
    ],
)
def test_a_fit_of_too_few_rows_leaves_no_run_behind(command, name, content, tmp_path):
    (tmp_path / name).write_text(content)
    fit = [command, "fit", tmp_path / name, "--out", tmp_path / "run", "--hold-out", "0", *OPTIONS]
    with pytest.raises(
        InputError, match=r"of 2 sequences leaves one part empty; give more .*or validation=0"
    ):
        run(*fit, "--validation", "0.1")
    assert not (tmp_path / "run").exists()
    run(*fit, "--validation", "0")
    assert (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["classify", "generate-from"])
def test_a_label_with_a_tab_or_a_line_break_is_refused(command, tmp_path):
    (tmp_path / "data.csv").write_text('text,label\nab,"A\nx"\nba,B\n' * 5)
    with pytest.raises(InputError, match=r"the label 'A\\nx' has a tab or a line break"):
        run(command, "fit", tmp_path / "data.csv", "--out", tmp_path / "run", *OPTIONS)
    assert not (tmp_path / "run").exists()
