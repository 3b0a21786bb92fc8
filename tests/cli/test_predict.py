"""What `predict` reads and says: the columns of the fit, fits that have not ended, blank lines, look-alike classes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from unspool.cli.main import app
from unspool.cli.signals import Stop
from unspool.cli.views.scores import beginnings, confusion_lines
from unspool.data.formats.labelled import DefaultColumns, read_labelled
from unspool.data.formats.pairs import read_pairs
from unspool.errors import InputError
from unspool.evaluation.scores import score
from unspool.storage import run_folder
from unspool.tasks import SequenceClassifier
from unspool.tasks.registry import load

QUICK = ["--hidden", "6", "--steps", "3", "--validation", "0"]


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


def asked(capsys, *arguments):
    """The JSON that a command prints, and what it says beside it."""
    capsys.readouterr()
    run(*arguments, "--json")
    said = capsys.readouterr()
    return json.loads(said.out), said.err


@pytest.fixture
def classified(tmp_path):
    """A fit of a table with columns of other names, a semicolon between."""
    rows = "".join(f"{i};{'ab' * (1 + i % 3)};{'xy'[i % 2]}\n" for i in range(20))
    (tmp_path / "fit.csv").write_text(f"id;what;kind\n{rows}")
    columns = ["--text", "what", "--label", "kind", "--delimiter", ";"]
    run("classify", "fit", tmp_path / "fit.csv", "--out", tmp_path / "run", *QUICK, *columns)
    return tmp_path / "run"


def test_classify_reads_the_columns_of_the_fit(classified, tmp_path, capsys):
    same, _ = asked(capsys, "classify", "predict", classified, tmp_path / "fit.csv")
    assert len(same["answers"]) == 20 and same["scores"]["classes"][0]["name"] == "x"
    other = (
        tmp_path / "other.tsv"
    )  # another kind of file: the names hold, what stood between the fields does not
    other.write_text("kind\twhat\nx\tabab\n")
    found, _ = asked(capsys, "classify", "predict", classified, other)
    assert len(found["answers"]) == 1 and "scores" in found
    other.write_text("what\tid\nabab\t7\n")  # no labels: nothing to score by
    found, _ = asked(capsys, "classify", "predict", classified, other)
    assert len(found["answers"]) == 1 and "scores" not in found


def test_what_is_said_wins_over_the_fit(classified, tmp_path, capsys):
    other = tmp_path / "other.csv"
    other.write_text("text,kind,what\nab,never seen,ba\n")
    comma = ["--delimiter", ","]
    with pytest.raises(InputError, match="'never seen' was never seen in training"):
        run("classify", "predict", classified, other, *comma)
    found, _ = asked(capsys, "classify", "predict", classified, other, *comma, "--label", "none")
    assert "scores" not in found
    with pytest.raises(InputError, match="no column 'nowhere'"):
        run("classify", "predict", classified, other, *comma, "--label", "nowhere")
    texts = [
        asked(capsys, "classify", "predict", classified, other, *comma, "--label", "none", "--text", each)[0]
        for each in ("text", "what")
    ]
    alone = load(classified).predict_proba(["ab", "ba"]).tolist()
    assert [each["answers"][0]["probabilities"] for each in texts] == alone


def test_other_kinds_of_data_need_no_columns(classified, tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "xy":
        (folder / f"{name}.txt").write_text("abab\n")
    assert len(asked(capsys, "classify", "predict", classified, folder)[0]["answers"]) == 2


def test_numbers_of_columns_hold_for_files_of_the_same_kind(tmp_path, capsys):
    (tmp_path / "fit.csv").write_text("".join(f"{'xy'[i % 2]},{'ab' * (1 + i % 3)}\n" for i in range(20)))
    out = tmp_path / "run"
    run("classify", "fit", tmp_path / "fit.csv", "--out", out, *QUICK, "--text", "1", "--label", "0")
    assert "scores" in asked(capsys, "classify", "predict", out, tmp_path / "fit.csv")[0]
    (tmp_path / "new.csv").write_text("text\nab\n")
    with pytest.raises(InputError, match="no column 1"):
        run("classify", "predict", out, tmp_path / "new.csv")
    found, _ = asked(capsys, "classify", "predict", out, tmp_path / "new.csv", "--text", "0")
    assert len(found["answers"]) == 1 and "scores" not in found  # the labels' column is the texts' now
    (tmp_path / "new.tsv").write_text("text\tlabel\nab\tx\n")
    assert "scores" in asked(capsys, "classify", "predict", out, tmp_path / "new.tsv")[0]


def test_tag_reads_the_columns_of_the_fit(tmp_path, capsys):
    rows = [f"{i // 2},{'ab'[i % 2]},{'NV'[i % 2]}" for i in range(40)]
    table, out = tmp_path / "fit.csv", tmp_path / "run"
    table.write_text("sentence,word,part\n" + "\n".join(rows) + "\n")
    columns = ["--token", "word", "--tag", "part", "--sequence", "sentence"]
    run("tag", "fit", table, "--out", out, *QUICK, *columns)
    found, _ = asked(capsys, "tag", "predict", out, table)
    assert len(found["answers"]) == 20 and "scores" in found
    (tmp_path / "new.csv").write_text("sentence,word\n1,a\n1,b\n")
    assert "scores" not in asked(capsys, "tag", "predict", out, tmp_path / "new.csv")[0]
    (tmp_path / "new.conll").write_text("a N\nb V\n\nb V\n")  # columns have no names: the first and the last
    found, _ = asked(capsys, "tag", "predict", out, tmp_path / "new.conll")
    assert [len(each) for each in found["answers"]] == [2, 1] and "scores" in found


def test_tag_reads_the_numbered_columns_of_the_fit(tmp_path, capsys):
    (tmp_path / "fit.conll").write_text("\n\n".join("1 a N x\n2 b V x" for _ in range(20)) + "\n")
    out = tmp_path / "run"
    run("tag", "fit", tmp_path / "fit.conll", "--out", out, *QUICK, "--token", "1", "--tag", "2")
    assert "scores" in asked(capsys, "tag", "predict", out, tmp_path / "fit.conll")[0]
    for content, scored in (
        ("1 a\n2 b\n", False),
        ("a\nb\n", False),
        ("1 a N\n", True),
        ("1 a V x y\n", True),
    ):
        (tmp_path / "new.conll").write_text(content)
        assert ("scores" in asked(capsys, "tag", "predict", out, tmp_path / "new.conll")[0]) == scored
    (tmp_path / "new.conll").write_text("1 a ? x\n")
    found, _ = asked(capsys, "tag", "predict", out, tmp_path / "new.conll", "--tag", "none")
    assert "scores" not in found


def test_translate_reads_the_columns_of_the_fit(tmp_path, capsys):
    (tmp_path / "fit.tsv").write_text("".join(f"{i}\tA\t{'ab'[i % 2]}\n" for i in range(20)))
    out = tmp_path / "run"
    run("translate", "fit", tmp_path / "fit.tsv", "--out", out, *QUICK, "--columns", "2", "1")
    found, _ = asked(capsys, "translate", "predict", out, tmp_path / "fit.tsv")
    assert found["scores"]["pairs"] == 20
    (tmp_path / "new.txt").write_text("a\nb\n")
    assert "scores" not in asked(capsys, "translate", "predict", out, tmp_path / "new.txt")[0]
    assert read_pairs(tmp_path / "fit.tsv", defaults=(2, 1)).sources[:2] == ["a", "b"]
    assert read_pairs(tmp_path / "fit.tsv", (0, 1), defaults=(2, 1)).sources[:2] == ["0", "1"]


def test_a_fit_that_has_not_ended_answers_and_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "fit.csv").write_text("text,label\n" + "ab,x\nba,y\n" * 10)
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Stop, "__call__", lambda _: True)
        patch.setattr(Stop, "listen", lambda _: None)
        with pytest.raises(SystemExit):
            run("classify", "fit", tmp_path / "fit.csv", "--out", out, *QUICK)
    found, said = asked(capsys, "classify", "predict", out, tmp_path / "fit.csv")
    assert len(found["answers"]) == 20
    assert said == (
        f"unspool: {out}: the fit has not ended; the predictions are those after update 1; "
        f"resume with: unspool resume {out}\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr(Stop, "listen", lambda _: None)
        run("resume", out)
    assert asked(capsys, "classify", "predict", out, tmp_path / "fit.csv")[1] == ""


def test_a_run_from_python_was_told_no_columns(tmp_path, capsys):
    SequenceClassifier(hidden=4, epochs=1).fit(["ab", "ba"], ["x", "y"]).save(tmp_path / "run")
    (tmp_path / "new.csv").write_text("text\nab\n")
    found, said = asked(capsys, "classify", "predict", tmp_path / "run", tmp_path / "new.csv")
    assert len(found["answers"]) == 1 and said == ""
    reports = SequenceClassifier(hidden=4, epochs=1).fit_iter(["ab", "ba"], ["x", "y"], run=tmp_path / "half")
    reports.close()
    _, said = asked(capsys, "classify", "predict", tmp_path / "half", tmp_path / "new.csv")
    assert (
        "has not ended" in said
        and "unspool resume" not in said
        and (tmp_path / "half" / run_folder.TRAINING).exists()
    )


def test_blank_lines_of_a_folder_are_counted_and_said(tmp_path, capsys):
    folder = tmp_path / "names"
    folder.mkdir()
    (folder / "x.txt").write_text("ab\n\n \nabab\n" * 5)
    (folder / "y.txt").write_text("ba\nbaba\n" * 5 + "\n")
    assert read_labelled(folder).blank == 11
    run("classify", "fit", folder, "--out", tmp_path / "run", *QUICK)
    assert f"{folder}: 11 blank lines are no example: skipped\n" in capsys.readouterr().out
    _, said = asked(capsys, "classify", "predict", tmp_path / "run", folder)
    assert said == f"unspool: {folder}: 11 blank lines are no example: skipped\n"
    (folder / "x.txt").write_text("ab")
    (folder / "y.txt").write_text("ba\n")
    assert read_labelled(folder).blank == 0
    assert asked(capsys, "classify", "predict", tmp_path / "run", folder)[1] == ""


def test_a_beam_has_a_bound(tmp_path):
    (tmp_path / "fit.tsv").write_text("a\tA\nb\tB\n" * 5)
    for beam, expected in (
        ("0", "of 1 or more"),
        ("1001", "of at most 1,000"),
        ("100000", "of at most 1,000"),
    ):
        with pytest.raises(
            InputError, match=rf"beam is [\d,]+; expected a whole number {expected}"
        ) as caught:
            run("translate", "fit", tmp_path / "fit.tsv", "--out", tmp_path / "run", "--beam", beam)
        assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()
    run("translate", "fit", tmp_path / "fit.tsv", "--out", tmp_path / "run", *QUICK)
    with pytest.raises(InputError, match="beam is 100,000; expected a whole number of at most 1,000"):
        run("translate", "predict", tmp_path / "run", tmp_path / "fit.tsv", "--beam", "100000")


NAMES = st.lists(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=24), min_size=1, unique=True
)


@given(NAMES, st.integers(1, 20))
def test_beginnings_are_different_and_no_longer_than_needed(names, least):
    cut = beginnings(names, least)
    assert len(set(cut)) == len(names)
    assert all(name.startswith(each) for each, name in zip(cut, names, strict=True))
    longest = max(map(len, cut))
    if longest > least:
        assert len({name[: longest - 1] for name in names}) < len(names)


@given(NAMES, st.integers(20, 200))
def test_no_two_heads_of_a_confusion_matrix_look_alike(names, room):
    counts = score(names, names[1:] + names[:1], names)
    lines = confusion_lines(counts, room)
    if not lines:
        digits, left = len(str(len(names))), max(map(cell_len, beginnings(names, 16)))
        assert digits + 1 + left + len(names) * (1 + max(3, digits)) > room  # numbers have no room either
        return
    heads = lines[0].split()
    assert len(set(heads)) == len(heads) == len(names)
    assert len({cell_len(line) for line in lines}) == 1 and cell_len(lines[0]) <= room
    assert [len(line.split()) for line in lines[1:]] in (
        [len(names) + 1] * len(names),
        [len(names) + 2] * len(names),
    )


def test_classes_that_begin_alike_can_be_told_apart(tmp_path, capsys):
    (tmp_path / "fit.csv").write_text("text,label\n" + "ab,north-east\nba,north-west\n" * 10)
    run("classify", "fit", tmp_path / "fit.csv", "--out", tmp_path / "run", *QUICK)
    printed = capsys.readouterr().out
    assert printed[printed.index("truth in rows") :].splitlines()[1].split() == ["north-e", "north-w"]
    many = [f"class number {i}" for i in range(20)]
    lines = confusion_lines(score(many, many, many), 100)
    assert lines[0].split() == [str(i) for i in range(1, 21)]
    assert lines[1].split()[:5] == ["1", "class", "number", "0", "1"]


def test_usual_columns_hold_where_none_are_said(tmp_path):
    (tmp_path / "a.csv").write_text("what,kind\nab,x\n")
    found = read_labelled(tmp_path / "a.csv", defaults=DefaultColumns("what", "kind"))
    assert (found.sequences, found.labels) == (["ab"], ["x"])
