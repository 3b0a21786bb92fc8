"""The commands, as a user starts them; and the page in a browser, where there is one."""

import json
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from inspect_cases import TEXT
from unspool.cli.commands import inspect as command
from unspool.cli.main import main
from unspool.inspect.graph.export import from_json

FILES = ["graph.svg", "surprise.svg", "units.svg", "path.svg", "influence.svg", "bias.svg", "states.png"]


def unspool(*arguments, code=0, stdin=None):
    done = subprocess.run(
        [sys.executable, "-m", "unspool", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"UNSPOOL_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def here(capsys):
    """A command in this process: quicker than one of its own."""

    def command(*arguments, code=0):
        assert main(arguments) == code
        return capsys.readouterr()

    return command


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    (place / "story.txt").write_text(TEXT, encoding="utf-8")
    sizes = ["--cell", "gru", "--hidden", 12, "--batch", 2, "--window", 16, "--steps", 40]
    unspool("train", place / "story.txt", "--out", place / "run", *sizes)
    return place / "run"


@pytest.fixture(scope="module")
def report(run):
    out = run.parent / "report"
    done = unspool("inspect", run, run.parent / "story.txt", "--out", out, "--characters", 500)
    return out, done.stdout


def test_inspect_writes_a_page_pictures_and_numbers_and_says_so(report):
    out, printed = report
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "numbers.json", "report.html"])
    for name in FILES:
        if name.endswith(".svg"):
            assert ElementTree.fromstring((out / name).read_text(encoding="utf-8")).tag.endswith("svg")
    content = json.loads((out / "numbers.json").read_text(encoding="utf-8"))
    assert content["tokens"] == 500 and content["unknown"] == 0 and len(content["units"]) == 8
    assert f"perplexity {content['perplexity']:.2f}" in printed
    for words in ("property", "memory length", "backpropagate through", "report.html"):
        assert words in printed
    assert str(out / "report.html") in printed


def test_inspect_reads_standard_input_and_prints_json_alone(run, tmp_path):
    text = "She said: “go”, and went home. " * 3
    options = ["--out", tmp_path, "--json", "--units", "3,h5", "--skip", 4]
    done = unspool("inspect", run, "-", *options, stdin=text)
    content = json.loads(done.stdout)
    assert content["tokens"] == len(text) - 4 and content["unknown"] > 0
    assert [unit["name"] for unit in content["units"]] == ["layer0.h3", "layer0.h5"]
    assert set(content["looking_back"]["advice"]) == {"0.1", "0.05", "0.01"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--units", "99"], "no unit '99'"),
        (["--skip", "1000000"], "leaves nothing"),
        (["--characters", "1"], "characters is 1"),
        (["--out", "/dev/null/there"], "cannot be made"),
    ],
)
def test_what_inspect_cannot_do_is_one_line(run, tmp_path, here, options, said):
    given = options if "--out" in options else ["--out", tmp_path, *options]
    said_then = here("inspect", run, run.parent / "story.txt", *given, code=2).err
    assert said in said_then and len(said_then.splitlines()) == 1


def test_graph_writes_what_the_name_ends_with(run, tmp_path, here):
    for name, begin in (
        ("g.svg", "<svg"),
        ("g.dot", "digraph"),
        ("g.mmd", "flowchart"),
        ("g.md", "```mermaid"),
    ):
        here("graph", "--cell", "lstm", "--tau", 4, "--out", tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begin)
    here("graph", run, "--text", "went", "--out", tmp_path / "g.json")
    text = (tmp_path / "g.json").read_text(encoding="utf-8")
    assert from_json(text).tau == 3
    assert any("gradient" in node for node in json.loads(text)["nodes"])
    assert here("graph", "--cell", "plain", "--folded").out == 'flowchart LR\n  s(("s"))\n  s ==>|■| s\n'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tau", "100000000"], "nodes"),
        (["--tau", "0"], "tau is 0"),
        (["--cell", "rnn"], "cell is 'rnn'"),
        (["--text", "a"], "requires RUN"),
        (["--out", "picture.png"], ".svg"),
    ],
)
def test_what_graph_cannot_do_is_one_line(here, options, said):
    said_then = here("graph", *options, code=2).err
    assert said in said_then and len(said_then.splitlines()) == 1


def test_without_matplotlib_the_page_and_the_numbers_are_written(run, tmp_path, here, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    here(
        "inspect", run, run.parent / "story.txt", "--out", tmp_path / "report", "--characters", 100, "--quiet"
    )
    found = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert found == ["graph.svg", "numbers.json", "report.html"]


def test_a_run_that_cannot_be_read_leaves_nothing_behind(run, tmp_path, here):
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    log = broken / "log.jsonl"
    log.write_text('{"step": 1\n' + log.read_text(encoding="utf-8"), encoding="utf-8")
    said = here("inspect", broken, run.parent / "story.txt", "--out", tmp_path / "report", code=2).err
    assert len(said.splitlines()) == 1 and "log" in said
    assert not (tmp_path / "report").exists()


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    place = tmp_path_factory.mktemp("classifier")
    rows = [f"{word},{'ab' if word[0] == 'a' else 'other'}" for word in ("aab", "bba", "ab", "ba", "cab") * 8]
    (place / "words.csv").write_text("text,label\n" + "\n".join(rows), encoding="utf-8")
    unspool("classify", "fit", place / "words.csv", "--out", place / "run", "--hidden", 6, "--epochs", 2)
    return place / "run"


def test_inspect_shows_the_steps_of_a_classifier(classifier, tmp_path, here):
    options = ["--out", tmp_path / "report", "--sequences", "3", "--skip", "1", "--json"]
    found = json.loads(here("inspect", classifier, classifier.parent / "words.csv", *options).out)
    assert [each["steps"] for each in found["sequences"]] == [[1, 2, 3], [1, 2], [1, 2]]
    assert [each["truth"] for each in found["sequences"]] == ["other", "ab", "other"]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["numbers.json", "report.html"]
    said = here("inspect", classifier, classifier.parent / "words.csv", "--out", tmp_path / "other").out
    assert "unchanged since step" in said and "report.html" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--units", "3"], "--units is for language models"),
        (["--characters", "50"], "--characters is for language models"),
        (["--skip", "1000"], "leaves none"),
        (["--sequences", "0"], "sequences is 0"),
    ],
)
def test_what_inspect_cannot_do_with_a_classifier_is_one_line(classifier, tmp_path, here, options, said):
    given = ["--out", tmp_path / "report", *options]
    said_then = here("inspect", classifier, classifier.parent / "words.csv", *given, code=2).err
    assert said in said_then and len(said_then.splitlines()) == 1
    assert not (tmp_path / "report").exists()
