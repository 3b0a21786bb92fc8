"""Sequences without a step are learned from and answered, from every kind of file, and counted in one line."""

import json

import numpy as np
import pytest

from unspool.cli.main import app
from unspool.data.formats.npz import write_ragged
from unspool.tasks import SequenceClassifier, SequenceRegressor, SequenceTagger
from unspool.tasks.registry import load

QUICK = ["--hidden", "4", "--steps", "2", "--validation", "0"]


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


def write_npz(path):
    write_ragged(path, [np.zeros((i % 4, 2)) + i for i in range(20)], labels=["x", "y"] * 10)


FILES = {
    "a.csv": lambda path: path.write_text("text,label\n" + "ab,x\n,x\nbb,y\na,y\n" * 5),
    "a.npz": write_npz,
    "a.ts": lambda path: path.write_text(
        "@classLabel true x y\n@data\n" + "1,2:3,4:x\n::x\n1:2:y\n2:2:y\n" * 5
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_classify_answers_empty_sequences_from_h0_alone(name, tmp_path, capsys):
    path, out = tmp_path / name, tmp_path / "run"
    FILES[name](path)
    run("classify", "fit", path, "--out", out, *QUICK, "--json")
    said = capsys.readouterr()
    line = f"unspool: {path}: 5 sequences are empty: the prediction depends on h(0) alone\n"
    assert said.err == line and json.loads(said.out)["steps"] == 2
    run("classify", "predict", out, path, "--json")
    said = capsys.readouterr()
    answers = [each["probabilities"] for each in json.loads(said.out)["answers"]]
    assert line in said.err and len(answers) == 20
    model = load(out)
    h, c = np.zeros(model.network_.parameters["V"].shape[1]), model.network_.parameters["c"].astype(float)
    o = model.network_.parameters["V"] @ h + c
    wanted = np.exp(o) / np.exp(o).sum()
    empty = [i for i, p in enumerate(answers) if np.allclose(p, wanted, atol=1e-6)]
    assert set(range(1 if name != "a.npz" else 0, 20, 4)) <= set(empty)


def test_tag_answers_a_sequence_without_a_token(tmp_path, capsys):
    path, out = tmp_path / "a.csv", tmp_path / "run"
    rows = "".join(f"{3 * i},a,X\n{3 * i},b,Y\n{3 * i + 1},,\n{3 * i + 2},b,Y\n" for i in range(8))
    path.write_text("sequence,token,tag\n" + rows)
    run("tag", "fit", path, "--out", out, *QUICK, "--json")
    assert "8 sequences are empty" in capsys.readouterr().err
    run("tag", "predict", out, path, "--json")
    said = capsys.readouterr()
    assert [len(each) for each in json.loads(said.out)["answers"]] == [2, 0, 1] * 8
    assert "8 sequences are empty" in said.err
    one = tmp_path / "one.csv"
    one.write_text("sequence,token,tag\n1,,\n")
    run("tag", "predict", out, one, "--json")
    assert json.loads(capsys.readouterr().out) == {"run": str(out), "labels": ["X", "Y"], "answers": [[]]}


def test_the_estimators_take_rows_of_no_step_alone():
    rows = [np.zeros((i % 3, 2)) + i for i in range(12)]
    model = SequenceClassifier(hidden=4, steps=2).fit(rows, ["x", "y"] * 6)
    assert (model.predict_proba([np.zeros((0, 2))]) == model.predict_proba([rows[0], rows[1]])[:1]).all()
    assert (model.predict_proba([[]]) == model.predict_proba([rows[0]])).all()
    assert SequenceRegressor(hidden=4, steps=2).fit(rows, np.arange(12.0)).predict([[]]).shape == (1,)
    tagger = SequenceTagger(hidden=4, steps=2).fit(["ab", "", "ba"], [["x", "y"], [], ["y", "x"]])
    assert [len(each) for each in tagger.predict(["", "a"])] == [0, 1]
