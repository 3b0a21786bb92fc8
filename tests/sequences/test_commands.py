"""classify, tag and translate on the command line: what they print, keep and refuse."""

import json

import numpy as np
import pytest

from unspool.cli import app
from unspool.data.ragged import write_ragged
from unspool.errors import FileError, InputError

QUICK = ["--hidden", "8", "--epochs", "2", "--validation", "0.2"]


@pytest.fixture
def names(tmp_path):
    rows = [f"{'ab' * (i % 3 + 1)},x" if i % 2 else f"{'cd' * (i % 3 + 1)},y" for i in range(40)]
    path = tmp_path / "names.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return path


def run(*arguments):
    app(
        [str(each) for each in arguments],
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )


def test_classify_fits_keeps_and_predicts(names, tmp_path, capsys):
    run("classify", "fit", names, "--out", tmp_path / "run", *QUICK, "--json")
    content = json.loads(capsys.readouterr().out)
    assert set(content["scores"]) == {"accuracy", "macro_f1", "classes", "confusion"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "config.json", "log.jsonl", "model.safetensors", "vocab.json",
    }  # fmt: skip
    run("classify", "predict", tmp_path / "run", names, "--json")
    answers = json.loads(capsys.readouterr().out)
    assert len(answers["answers"]) == 40 and answers["classes"] == ["x", "y"]
    run("classify", "predict", tmp_path / "run", names)
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 40 and "accuracy" in printed.err


def test_a_fit_prints_scores_and_draws_the_confusion(names, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "confusion.png"
    run("classify", "fit", names, "--out", tmp_path / "run", *QUICK, "--plot", picture)
    printed = capsys.readouterr().out
    assert "macro F1" in printed and "truth in rows" in printed and picture.stat().st_size > 1000


def test_the_steps_that_a_fit_took_repeat_it(names, tmp_path, capsys):
    for name in ("a", "b"):
        run("classify", "fit", names, "--out", tmp_path / name, "--hidden", "8", "--steps", "3", "--json")
    first, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b"))
    assert first == again


def test_arrays_of_ids_and_of_values_are_told_apart(tmp_path, capsys):
    labels = ["x", "y"] * 10
    for name, make, kind in (
        ("ids", lambda i: np.full(1 + i % 4, 5 + i % 2), "ids"),
        ("values", lambda i: np.full((1 + i % 4, 3), float(i % 2)), "values"),
    ):
        write_ragged(tmp_path / f"{name}.npz", [make(i) for i in range(20)], labels=labels)
        run("classify", "fit", tmp_path / f"{name}.npz", "--out", tmp_path / name, *QUICK, "--json")
        assert json.loads((tmp_path / name / "config.json").read_text())["input"]["kind"] == kind
        capsys.readouterr()
        run("classify", "predict", tmp_path / name, tmp_path / f"{name}.npz")
        assert len(capsys.readouterr().out.splitlines()) == 20


def test_tag_fits_and_predicts(tmp_path, capsys):
    path = tmp_path / "tags.conll"
    path.write_text(
        "\n\n".join("dogs N\nbark V" if i % 2 else "cats N\nsleep V\nnow R" for i in range(20)) + "\n"
    )
    run("tag", "fit", path, "--out", tmp_path / "run", *QUICK, "--json")
    assert json.loads(capsys.readouterr().out)["scores"]["accuracy"] >= 0
    run("tag", "predict", tmp_path / "run", path)
    out = capsys.readouterr().out
    assert out.count("\n\n") == 19 and out.splitlines()[0].startswith("cats\t")
    (tmp_path / "other.conll").write_text("dogs N\nbark X\n")
    with pytest.raises(InputError, match="line 2: the label 'X' was never seen"):
        run("tag", "predict", tmp_path / "run", tmp_path / "other.conll")


def test_translate_fits_and_predicts(tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{'ab' * (i % 3 + 1)}\t{i % 3}\n" for i in range(30)))
    run("translate", "fit", path, "--out", tmp_path / "run", *QUICK, "--json")
    content = json.loads(capsys.readouterr().out)
    assert set(content["scores"]) == {"pairs", "exact", "error_rate"}
    assert (tmp_path / "run" / "vocab.target.json").exists()
    for beam in ("1", "3"):
        run("translate", "predict", tmp_path / "run", path, "--beam", beam, "--json")
        found = json.loads(capsys.readouterr().out)
        assert len(found["answers"]) == 30 and all(each["log_prob"] <= 0 for each in found["answers"])


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        ("text,class\na,x\n", [], "no column 'label'; there are 'text', 'class'"),
        ("text,label\na,x\nb,x\n", [], "one class only, 'x'"),
        ("text,label\na,x\nb,\n", [], r"row 2 \(line 3\), column 'label': the label is missing"),
        ("text,label\na,x\n,y\n", [], r"row 2 \(line 3\).*empty"),
        ("text,label\na,x\nb,y\n", ["--hold-out", "1.5"], "hold-out is 1.5"),
        ("text,label\na,x\nb,y\n", ["--dropout", "2"], "dropout is 2"),
    ],
)
def test_bad_tables_are_refused_with_their_place(content, options, line, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=line) as caught:
        run("classify", "fit", path, "--out", tmp_path / "run", *options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_class_never_seen_is_refused_with_its_place(names, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("text,label\nab,x\ncd,z\n")
    with pytest.raises(InputError, match=r"row 2 \(line 3\): the label 'z' was never seen in training"):
        run("classify", "fit", names, "--test", other, "--out", tmp_path / "run")


def test_a_run_that_is_there_is_not_written_over(names, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match="already"):
        run("classify", "fit", names, "--out", tmp_path / "run")
