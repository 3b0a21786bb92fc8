"""classify, tag and translate on the command line: what they print, keep and refuse."""

import json

import numpy as np
import pytest

from unspool.cli.main import app
from unspool.data.formats.npz import write_ragged
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
        "choice.safetensors", "config.json", "log.jsonl", "model.safetensors", "scores.json", "vocab.json",
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

    (tmp_path / "lines.txt").write_text("ab\n\nabab\n")
    with pytest.raises(InputError, match=r"lines\.txt: line 2 is empty; expected a text on every line"):
        run("translate", "predict", tmp_path / "run", tmp_path / "lines.txt")
    (tmp_path / "lines.txt").write_text("ab\nabab\n\n")
    run("translate", "predict", tmp_path / "run", tmp_path / "lines.txt")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_picture_of_answers_needs_labels(names, tmp_path):
    pytest.importorskip("matplotlib")
    run("classify", "fit", names, "--out", tmp_path / "run", *QUICK, "--json")
    (tmp_path / "bare.csv").write_text("text\nab\n")
    with pytest.raises(InputError, match=r"bare\.csv: --plot needs labels"):
        run("classify", "predict", tmp_path / "run", tmp_path / "bare.csv", "--plot", tmp_path / "a.png")


@pytest.mark.parametrize(
    ("command", "content", "options", "line"),
    [
        ("tag", b"a A\nb B\n", ["--seed", "-1"], "seed is -1; expected a whole number of 0 or more"),
        ("translate", b"a\tA\nb\tB\n", ["--seed", "-1"], "seed is -1; expected a whole number of 0 or more"),
        ("translate", b"a\tb\tc\n", [], "3 columns; choose the two of the pair, as columns=\\(0, 1\\)"),
        ("translate", b"a\tb\n", ["--columns", "0", "0"], "columns are 0 and 0; expected two different ones"),
        ("translate", b"a\tb\ncaf\xe9\tc\n", [], "line 2: byte 0xe9 is not UTF-8: convert the file to UTF-8$"),
        ("tag", b"a A\nb B\n", ["--tag", "0"], "token and tag are the same column, 0"),
    ],
)  # fmt: skip
def test_what_tag_and_translate_cannot_use_is_refused(command, content, options, line, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=line):
        run(command, "fit", path, "--out", tmp_path / "run", *options)
    with pytest.raises(FileError, match="a folder; expected a file"):
        run(command, "fit", tmp_path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_npz_is_called_so(tmp_path):
    (tmp_path / "a.npz").write_text("text,label\na,x\n")
    with pytest.raises(InputError, match=r"a\.npz: not an \.npz file; expected arrays values"):
        run("classify", "fit", tmp_path / "a.npz", "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        ("text,label\na,x\nb,y\n", ["--seed", "-1"], "seed is -1; expected a whole number of 0 or more"),
        (
            "text,label\na,x\nb,y\n",
            ["--balance", "2"],
            "prior_correction is 2.0; expected a number from 0 to 1",
        ),
        (
            "text,label\na,x\nb,y\n",
            ["--learning-rate", "0"],
            "learning_rate is 0.0; expected a number above 0",
        ),
        ("text,label\na,x\nb,y\n", ["--text", "label"], "text and label are the same column, 'label'"),
        ("text,class\na,x\n", [], "no column 'label'; there are 'text', 'class'"),
        ("text,label\na,x\nb,x\n", [], "one class only, 'x'"),
        ("text,label\na,x\nb,\n", [], r"row 2 \(line 3\), column 'label': the label is missing"),
        ("text,label\n,x\n,y\n", [], "every sequence is empty; expected at least one with a step"),
        (
            "text,label\na,0.5\nb,0.7\n",
            [],
            "2 different numbers as labels of 2 sequences.*use unspool regress",
        ),
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


def test_brackets_in_names_and_labels_are_printed_as_they_are(tmp_path, capsys):
    rows = [f"{'ab' * (i % 3 + 1)},[/b]" if i % 2 else f"{'cd' * (i % 3 + 1)},[red]" for i in range(40)]
    path, out = tmp_path / "n[bold]s.csv", tmp_path / "run[red]"
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    run("classify", "fit", path, "--out", out, *QUICK)
    printed = capsys.readouterr().out
    assert "[/b]" in printed and "[red]" in printed and "n[bold]s.csv" in printed and "run[red]" in printed
    run("classify", "predict", out, path)
    assert "[/b]" in capsys.readouterr().err
