"""`unspool generate-from`: texts from classes and from vectors, drawn by a seed or searched for."""

import json
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from unspool.cli.commands import generate_from
from unspool.cli.main import app
from unspool.data.formats.conditioned import Conditioned, read_conditioned
from unspool.errors import InputError
from unspool.storage import run_folder
from unspool.tasks import SequenceGenerator
from unspool.tasks.registry import load

QUICK = ["--hidden", "16", "--steps", "60", "--validation", "0", "--learning-rate", "0.02", "--batch", "16"]


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(*arguments):
    app(list(map(str, arguments)), exit_on_error=False, print_error=False, result_action="return_value")


def told(capsys, *arguments):
    capsys.readouterr()
    run(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def names(tmp_path):
    folder = tmp_path / "names"
    folder.mkdir()
    (folder / "up.txt").write_text("aab\naaab\naabb\n" * 10)
    (folder / "down.txt").write_text("zzy\nzyy\nzzyy\n" * 10)
    return folder


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.csv"
    rows = [f"{a},{b},{'x' * a}{'y' * b}\n" for a in range(3) for b in range(3)]
    path.write_text("left,right,text\n" + "".join(rows * 5))
    return path


def test_texts_are_drawn_from_classes_by_the_seed(names, tmp_path, capsys):
    out = tmp_path / "run"
    fitted = told(capsys, "generate-from", "fit", names, "--out", out, *QUICK)
    scores = fitted["scores"]
    assert scores["rows"] == 6 and scores["exact"] is None
    assert 0 < scores["nats"] < 1 and scores["perplexity"] == pytest.approx(np.exp(scores["nats"]))
    asked = tmp_path / "asked.txt"
    asked.write_text("up\ndown\nup\n")
    one = told(capsys, "generate-from", "predict", out, asked)
    assert [each["of"] for each in one["answers"]] == ["up", "down", "up"] and one["temperature"] == 1
    assert one == told(capsys, "generate-from", "predict", out, asked)
    texts = [
        [
            each["text"]
            for each in told(capsys, "generate-from", "predict", out, asked, "--seed", s)["answers"]
        ]
        for s in range(4)
    ]
    assert len({tuple(each) for each in texts}) > 1
    assert all(set(up) <= set("ab") and set(down) <= set("yz") for up, down, _ in texts)
    model = load(out)
    assert [each["text"] for each in one["answers"]] == model.sample(["up", "down", "up"], seed=0)
    run("generate-from", "predict", out, asked, "--temperature", 0)
    assert capsys.readouterr().out.splitlines() == model.predict(["up", "down", "up"])


def test_without_data_every_class_is_written_with_its_name(names, tmp_path, capsys):
    out = tmp_path / "run"
    run("generate-from", "fit", names, "--out", out, *QUICK)
    capsys.readouterr()
    run("generate-from", "predict", out, "--count", 2)
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [
        "down",
        "down",
        "up",
        "up",
    ]
    run("generate-from", "predict", out, "--of", "up")
    assert capsys.readouterr().out.startswith("up\t")
    with pytest.raises(InputError, match="--of, class 2: the label 'sideways' was never seen in training"):
        run("generate-from", "predict", out, "--of", "up", "sideways")
    scored = told(capsys, "generate-from", "predict", out, names)
    assert scored["scores"]["rows"] == 60 and "ngram_nats" not in scored["scores"]
    for options, line in (
        (["--beam", "3", "--temperature", "1"], "give one of them"),
        (["--beam", "0"], "beam is 0; expected a whole number of 1 or more"),
        (["--temperature", "-1"], "temperature is -1.0"),
        (["--count", "0"], "count is 0; expected a whole number of 1 or more"),
        ([names, "--of", "up"], "give DATA or --of, not both"),
    ):
        with pytest.raises(InputError, match=line):
            run("generate-from", "predict", out, *options)


def test_vectors_become_texts_and_columns_go_by_name(numbers, tmp_path, capsys):
    out, asked = tmp_path / "run", tmp_path / "asked.csv"
    options = ["200" if each == "60" else each for each in QUICK] + ["--features", "left", "right"]
    fitted = told(capsys, "generate-from", "fit", numbers, "--out", out, *options)
    assert fitted["scores"]["exact"] == 1 and fitted["scores"]["error_rate"] == 0
    assert fitted["scores"]["nats"] < fitted["scores"]["ngram_nats"]
    asked.write_text("right,left\n1,2\n2,0\n")
    found = told(capsys, "generate-from", "predict", out, asked)
    assert [each["text"] for each in found["answers"]] == ["xxy", "yy"] and found["temperature"] == 0
    other = told(capsys, "generate-from", "predict", out, asked, "--features", "right", 1)
    assert [each["text"] for each in other["answers"]] == ["xyy", "xx"]
    wide = told(capsys, "generate-from", "predict", out, asked, "--beam", 3)
    assert [each["text"] for each in wide["answers"]] == ["xxy", "yy"] and wide["beam"] == 3
    with pytest.raises(InputError, match="it generates from vectors; give a table"):
        run("generate-from", "predict", out)


def test_a_stopped_fit_is_resumed_to_the_same_bits(numbers, tmp_path, monkeypatch, capsys):
    options = [*QUICK, "--features", "left", "right"]
    whole = told(capsys, "generate-from", "fit", numbers, "--out", tmp_path / "whole", *options)
    with monkeypatch.context() as patch:
        patch.setattr("unspool.cli.signals.Stop.__call__", lambda _: True)
        with pytest.raises(SystemExit):
            run("generate-from", "fit", numbers, "--out", tmp_path / "run", *options)
    assert told(capsys, "resume", tmp_path / "run") | {"run": ""} == whole | {"run": ""}
    models = [(tmp_path / name / run_folder.MODEL).read_bytes() for name in ("whole", "run")]
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        ("text,label\nab,x\nba,\n", [], r"row 2 \(line 3\), column 'label': the class is missing"),
        ("text,label\nab,x\nba,x\n", [], "there is one class only, 'x'"),
        ("text,n\nab,1\nba,two\n", ["--features", "n"], "column 'n': expected a finite number, got 'two'"),
        ("text,n\nab,1\nba,2\n", ["--features", "n", "--label", "text"], "got both label and features; expected one of them"),
        ("what,n\nab,1\nba,2\n", ["--features", "n"], "no column 'text'; there are 'what', 'n'"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_in_one_line(content, options, line, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=line) as caught:
        run("generate-from", "fit", path, "--out", tmp_path / "run", *options)
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_a_class_of_one_text_is_learned_and_not_held_out(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"ab,{'x' if i < 9 else i}\n" for i in range(20)))
    found = told(capsys, "generate-from", "fit", path, "--out", tmp_path / "run", *QUICK, "--hold-out", 0.5)
    assert found["scores"]["rows"] < 9
    assert load(tmp_path / "run").input_classes == sorted({"x", *map(str, range(9, 20))})


def test_the_log_loss_is_minus_log_p_of_the_texts():
    model = SequenceGenerator(hidden=6, steps=5).fit(["a", "b"] * 4, ["xy", "yyx"] * 4)
    texts, log_p = zip(*model.sample_scored(["a", "b", "b"], seed=1), strict=True)
    tokens = sum(len(each) + 1 for each in texts)
    assert max(map(len, texts)) < model.max_length_  # each has ended by itself
    assert model.log_loss(["a", "b", "b"], list(texts)) == pytest.approx(-sum(log_p) / tokens, rel=1e-5)


def test_a_file_of_classes_has_no_empty_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x\n\ny\n")
    with pytest.raises(InputError, match="line 2 is empty; expected a class on every line"):
        read_conditioned(path, need_texts=False)


class Named(str):
    """A class whose hashes and comparisons are counted."""

    used = 0

    def __hash__(self) -> int:
        Named.used += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        Named.used += 1
        return super().__eq__(other)


def test_the_work_of_generate_from_grows_with_the_rows_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 600
    given = [Named(f"class {i % 200}") for i in range(n)]
    whole = Conditioned("names.csv", given, ["a"] * n, [f"row {i}" for i in range(n)])
    monkeypatch.setattr(generate_from, "read_conditioned", lambda *_: whole)
    monkeypatch.setattr(Named, "used", 0)
    learned, judged = generate_from._parts(Path("names.csv"), generate_from.Options(out=Path("run")))
    assert judged is not None and not set(judged.given) - set(learned.given)
    model = SimpleNamespace(sample=lambda classes, seed: ["a"] * len(classes))
    assert generate_from._examples(model, judged, seed=0).row_count == generate_from.SHOWN
    assert Named.used < 20 * n
