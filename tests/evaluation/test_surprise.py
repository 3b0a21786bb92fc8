"""Surprise of tokens and lines: brute force by one token at a time, and sums that agree with the measure."""

import csv
import io
import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from unspool.cli.main import main
from unspool.data.text.settings import TextConfig
from unspool.data.tokens.registry import make_tokenizer
from unspool.data.tokens.vocab import Vocab
from unspool.evaluation import surprise
from unspool.evaluation.language import log_prob
from unspool.evaluation.surprise import DetailedScorer
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.stream import Stream
from unspool.storage.run_folder import new_run
from unspool.tasks.language.text_model import TextModel

TEXT = "the time traveller — été\n\nspoke of time\r\nand time listened. 時\nlast"


def text_model(kind: str, *, backward: bool = False, text: str = TEXT, clean: bool = False) -> TextModel:
    tokenizer = make_tokenizer(kind)
    tokens = tokenizer.encode_text(text)
    vocab = Vocab(tokens if kind != "word" else [token for token in tokens if token != "spoke"])
    config = ModelConfig(cell="gru", inputs=len(vocab), outputs=len(vocab), hidden=8)
    model = Model.initialise(config, seed=1)
    model.parameters["V"][:] *= 6
    return TextModel(model, vocab, tokenizer, TextConfig(tokens=kind, clean=clean), backward)


def saved(model: TextModel, place: Path) -> Path:
    with new_run(place / "run") as folder:
        model.save(folder)
    (place / "text.txt").write_text(TEXT, encoding="utf-8", newline="")
    return place / "run"


def evaluate(run: Path, *options: str) -> int:
    return main(["evaluate", str(run), str(run.parent / "text.txt"), "--order", "0", "--quiet", *options])


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("cells", [1, 40, 2**20])
def test_entropy_and_rank_are_those_of_one_token_at_a_time(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surprise, "CELLS", cells)
    model = text_model("char").model
    ids = np.random.default_rng(0).integers(0, model.config.outputs, 40).astype(np.int32)
    scorer, stream = DetailedScorer(model, window=7), Stream(model)
    found = scorer.log_prob(ids)
    assert (found == log_prob(model, ids)).all()
    for t, (x, y) in enumerate(pairwise(ids.tolist())):
        stream.read(x)
        o = stream.logits().astype(np.float64)
        p = np.exp(o) / np.exp(o).sum()
        assert math.isclose(scorer.entropy[t], -(p * np.log(p)).sum(), abs_tol=1e-9)
        assert scorer.rank[t] == 1 + sorted(p, reverse=True).index(p[y])


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kind", ["char", "byte", "word", "space"])
def test_rows_of_tokens_and_lines_add_up_to_the_measure(
    kind: str, backward: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = text_model(kind, backward=backward)
    run = saved(model, tmp_path)
    tokens, lines = tmp_path / "tokens.csv", tmp_path / "lines.csv"
    options = ["--per-token", str(tokens), "--per-line", str(lines), "--json"]
    assert not evaluate(run, *options, *["--backward"] * backward)
    found = json.loads(capsys.readouterr().out)
    assert (found["per_token"], found["per_line"]) == (str(tokens), str(lines))
    total = found["network"]["nats"] * found["targets"]
    by_token, by_line = rows_of(tokens), rows_of(lines)
    assert [int(row["position"]) for row in by_token] == list(range(1, found["tokens"] + 1))
    unscored = by_token.pop(-1 if backward else 0)
    assert unscored["nats"] == unscored["rank"] == ""
    assert math.isclose(sum(float(row["nats"]) for row in by_token), total, rel_tol=1e-5)
    assert math.isclose(sum(float(row["nats"]) for row in by_line), total, rel_tol=1e-5)
    surprises = [float(row["nats_per_character"]) for row in by_line]
    assert surprises == sorted(surprises, reverse=True)
    in_order = sorted(by_line, key=lambda row: int(row["line"]))
    assert [int(row["line"]) for row in in_order] == [1, 2, 3, 4, 5]
    if kind in ("char", "byte"):
        assert [row["text"] for row in in_order] == TEXT.replace("\r", "").split("\n")
        assert sum(int(row["characters"]) for row in in_order) == len(TEXT) - 1
    if kind == "word":
        assert in_order[2]["text"] == "<unk> of time" and in_order[4]["text"] == "last"


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kind", ["char", "byte", "word", "space"])
def test_characters_of_lines_add_up_to_the_measure_with_unknown_tokens_too(
    kind: str, backward: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = saved(text_model(kind, backward=backward), tmp_path)
    text = "the Ωx   traveller — été\n\n  Ωmega of  time, ΩΩ時\nlast Ω"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    lines = tmp_path / "lines.csv"
    assert not evaluate(run, "--per-line", str(lines), "--json", *["--backward"] * backward)
    found, rows = json.loads(capsys.readouterr().out), rows_of(lines)
    assert found["unknown"] > 3
    assert sum(int(row["characters"]) for row in rows) == found["network"]["characters"]
    nats = found["network"]["nats"] * found["targets"]
    assert math.isclose(sum(float(row["nats"]) for row in rows), nats, rel_tol=1e-5)
    if kind == "char":  # an unknown character is one character; the first one of the reading is not predicted
        by_line = sorted((int(row["line"]), int(row["characters"])) for row in rows)
        first, last = (0, 1) if backward else (1, 0)
        whole = [len(line) for line in text.splitlines(keepends=True)]
        assert by_line == list(enumerate([whole[0] - first, *whole[1:-1], whole[-1] - last], 1))


def test_lines_on_standard_output_leave_the_table_to_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = saved(text_model("char"), tmp_path)
    assert not evaluate(run, "--per-line", "-")
    printed = capfd.readouterr()
    assert len(list(csv.reader(io.StringIO(printed.out)))) == 6 and "network" in printed.err


def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = saved(text_model("char"), tmp_path)
    there = tmp_path / "there.csv"
    there.write_text("mine")
    for options, message in [
        (["--per-line", str(there)], "already exists"),
        (["--per-token", str(run / "x.csv")], "inside the run"),
        (["--per-token", str(tmp_path / "text.txt"), "--force"], "reads this file"),
        (["--per-token", str(tmp_path / "a"), "--per-line", str(tmp_path / "a")], "two outputs"),
        (["--per-token", "-", "--per-line", "-"], "only one output"),
        (["--per-line", "-", "--json"], "only one output"),
    ]:
        assert evaluate(run, *options) == 2
        assert message in capsys.readouterr().err
    assert there.read_text() == "mine"
    assert not evaluate(run, "--per-line", str(there), "--force")
    assert there.read_text().startswith("line,")


def test_lines_of_a_vocabulary_without_line_ends_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = saved(text_model("char", text="one line", clean=True), tmp_path)
    assert evaluate(run, "--per-line", str(tmp_path / "lines.csv")) == 2
    assert "no line end" in capsys.readouterr().err
