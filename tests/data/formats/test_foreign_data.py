"""Data of other programs is read as it is meant or refused in one line: data frames, CoNLL-U, regression series."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unspool.cli.main import app
from unspool.data.formats.labelled import read_labelled
from unspool.data.formats.tagged import read_tagged
from unspool.errors import InputError
from unspool.tasks import SequenceClassifier, SequenceTagger

TEXTS, LABELS = ["abab", "baba", "abba", "bbbb"] * 5, ["x", "y"] * 10
CONLLU = (
    "# sent_id = 1\n# text = Let's go\tnow\n1-2\tLet's" + "\t_" * 8 + "\n"
    "1\tLet\tlet\tVERB\tVB\t_\t0\troot\t_\t_\n2\t's\twe\tPRON\tPRP\t_\t1\tobj\t_\t_\n"
    "2.1\tmaybe\tmaybe\tADV\tRB\t_\t_\t_\t_\t_\n3\tgo\tgo\tVERB\tVB\t_\t1\txcomp\t_\t_\n\n"
    "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"
)


def run(*arguments: object) -> None:
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


@pytest.mark.parametrize(
    ("X", "line"),
    [
        (pd.DataFrame({"text": TEXTS, "n": range(20)}), "X is a DataFrame with the columns 'text', 'n'"),
        (np.array(TEXTS)[:, None], r"X has shape \(20, 1\) and holds strings; .*: pass X\[:, 0\]"),
        ({"text": TEXTS}, "X is a dict; expected a list of sequences"),
    ],
)  # fmt: skip
def test_a_table_is_not_taken_for_sequences(X: object, line: str) -> None:
    model = SequenceClassifier(hidden=4, steps=2)
    with pytest.raises(InputError, match=line):
        model.fit(X, LABELS)
    with pytest.raises(InputError, match=line):
        model.fit(TEXTS, LABELS).predict(X)
    with pytest.raises(InputError, match=line):
        SequenceTagger(hidden=4, steps=2).fit(X, [list(t) for t in TEXTS])


def test_columns_of_texts_and_tables_of_numbers_are_sequences() -> None:
    model = SequenceClassifier(hidden=4, steps=2).fit(pd.Series(TEXTS), pd.Series(LABELS))
    assert (model.predict_proba(TEXTS) == model.predict_proba(pd.Series(TEXTS))).all()
    numbers = pd.DataFrame(np.arange(60.0).reshape(20, 3), columns=["a", "b", "c"])
    model = SequenceClassifier(hidden=4, steps=2).fit(numbers, LABELS)
    assert (model.predict_proba(numbers) == model.predict_proba(numbers.to_numpy())).all()


def test_conllu_gives_words_and_their_universal_parts_of_speech(tmp_path: Path) -> None:
    for name in ("a.conllu", "a.conll"):
        path = tmp_path / name
        path.write_text(CONLLU if name == "a.conllu" else CONLLU.replace("go\tnow", "go now"))
        found = read_tagged(path)
        assert found.tokens == [["Let", "'s", "go"], ["Yes"]]
        assert found.tags == [["VERB", "PRON", "VERB"], ["INTJ"]]
        assert found.lines == [[4, 5, 7], [9]]
        assert read_tagged(path, tag="xpos").tags == [["VB", "PRP", "VB"], ["UH"]]
        assert read_tagged(path, token=2, tag=7).tokens == [["let", "we", "go"], ["yes"]]


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        (CONLLU, {"tag": "pos"}, "no column 'pos'; CoNLL-U has id, form, lemma"),
        (CONLLU, {"tag": "feats"}, "every tag is _, which means unknown; choose another column as tag="),
        ("1\tYes\tyes\tINTJ\n", {}, "line 1 has 4 columns; CoNLL-U has 10"),
        ("one" + "\tx" * 9, {}, "line 1 begins with 'one'; expected the number of a word"),
        ("1-2" + "\tx" * 9, {}, "no word in it"),
    ],
)
def test_what_is_wrong_in_a_conllu_file_is_said(
    tmp_path: Path, content: str, options: dict[str, str], line: str
) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(content)
    with pytest.raises(InputError, match=line):
        read_tagged(path, **options)  # type: ignore[arg-type]


def test_tag_learns_from_conllu_and_predicts_one_without_tags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bare = tmp_path / "a.conllu", tmp_path / "bare.conllu"
    path.write_text(CONLLU * 8)
    bare.write_text("1\tYes" + "\t_" * 8 + "\n")
    run(
        "tag",
        "fit",
        path,
        "--out",
        tmp_path / "run",
        "--steps",
        3,
        "--hidden",
        4,
        "--validation",
        0,
        "--json",
    )
    capsys.readouterr()
    run("tag", "predict", tmp_path / "run", bare)
    assert capsys.readouterr().out.split("\t")[0] == "Yes"


def test_a_series_with_a_number_is_no_class(tmp_path: Path) -> None:
    path = tmp_path / "a.ts"
    path.write_text("@classLabel false\n@targetLabel true\n@data\n1,2:0.5\n2,3:0.7\n")
    with pytest.raises(InputError, match="its sequences have no labels; for its targets use unspool regress"):
        read_labelled(path)
