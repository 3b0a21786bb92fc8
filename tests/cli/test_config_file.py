"""`--config FILE`: options from TOML or JSON; the command line wins, and what does not belong is one line and exit code 2."""

import json
import re

import pytest

from command_line import call, must

TRAIN = "train story.txt --out run --order 1 --json"
TOML = 'hidden = 6\nbatch_size = 2\nwindow = 8\nsteps = 2\ntied = false\nsplit = [0.8, 0.1, 0.1]\ncell = "lstm"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "story.txt").write_text("she sells sea shells by the sea shore\n" * 40)
    (tmp_path / "rows.csv").write_text("text,label\n" + "ab,x\nba,y\n" * 20)
    (tmp_path / "series.csv").write_text("y\n" + "".join(f"{i % 6 + i % 7 / 9:.3f}\n" for i in range(80)))
    return tmp_path


def recipe(printed):
    return json.loads(printed)["config"]["recipe"]


def test_a_toml_file_gives_options_and_flags_win(folder):
    (folder / "c.toml").write_text(TOML)
    found = json.loads(must(*TRAIN.split(), "--config", "c.toml", "--hidden", "5"))["config"]
    assert [found["recipe"][name] for name in ("hidden", "B", "tau", "steps", "cell")] == [5, 2, 8, 2, "lstm"]
    assert found["settings"]["split"] == [0.8, 0.1, 0.1]


def test_a_json_file_is_the_same(folder):
    (folder / "c.json").write_text(json.dumps({"hidden": 6, "batch": 2, "window": 8, "steps": 2, "h0": None}))
    found = recipe(must(*TRAIN.split(), "--config", "c.json"))
    assert [found[name] for name in ("hidden", "B", "tau", "steps")] == [6, 2, 8, 2]


@pytest.mark.parametrize(
    "command",
    [
        "classify fit rows.csv --out run --json --hold-out 0",
        "generate-from fit rows.csv --out run --json --hold-out 0",
        "forecast fit series.csv --out run --json --members 1 --horizon 2",
        "forecast backtest series.csv --json --members 1 --horizon 2",
    ],
)
def test_every_fit_reads_a_file(command, folder):
    (folder / "c.toml").write_text("hidden = 3\nsteps = 2\nhiden = 1\n")
    assert (
        "c.toml: unknown option 'hiden'; did you mean hidden?"
        in call(*command.split(), "--config", "c.toml").err
    )
    (folder / "c.toml").write_text("hidden = 3\nsteps = 2\n")
    must(*command.split(), "--config", "c.toml")


def test_check_gradients_and_graph_read_a_file(folder):
    (folder / "c.toml").write_text("hidden = 3\nbidirectional = true\n")
    shapes = json.loads(must("check-gradients", "--values", "1", "--json", "--config", "c.toml"))[
        "parameters"
    ]
    assert {each["shape"][0] for each in shapes if each["name"].endswith("W")} == {3}
    told = must("graph", "--cell", "elman", "--hidden", "3", "--bidirectional")
    assert must("graph", "--cell", "elman", "--config", "c.toml") == told


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("c.toml", "hiden = 3", "c.toml: unknown option 'hiden'; did you mean hidden?"),
        ("c.toml", "xyz = 3", "c.toml: unknown option 'xyz'"),
        ("c.toml", 'hidden = "big"', "c.toml: hidden is 'big'; expected a whole number"),
        ("c.toml", "hidden = 2.5", "c.toml: hidden is 2.5; expected a whole number"),
        ("c.toml", "hidden = true", "c.toml: hidden is True; expected a whole number"),
        ("c.toml", "hidden = [3]", r"c.toml: hidden is \[3\]; expected a whole number"),
        ("c.toml", "dropout = true", "c.toml: dropout is True; expected a number"),
        ("c.toml", "tied = 1", "c.toml: tied is 1; expected true or false"),
        ("c.toml", "split = 0.5", "c.toml: split is 0.5; expected a list, each a number"),
        ("c.toml", "[network]\nhidden = 3", r"c.toml: \[network\] is a table; expected options at the top level"),
        ("c.toml", "batch = 2\nbatch_size = 3", "c.toml: batch and batch_size are one option; give one of them"),
        ("c.toml", 'config = "d.toml"', "c.toml: unknown option 'config'"),
        ("c.toml", "hidden = ", "c.toml: not TOML: "),
        ("c.toml", 'cell = "rnn"', "invalid value \"rnn\" for --cell from c.toml"),
        ("c.json", "{", "c.json: not JSON: "),
        ("c.json", "[1]", "c.json: expected an object with options"),
        ("c.yaml", "hidden: 3", "c.yaml: expected a name that ends with .toml or .json"),
    ],
)  # fmt: skip
def test_what_does_not_belong_is_one_line_and_exit_code_2(name, content, line, folder):
    (folder / name).write_text(content)
    ended = call(*TRAIN.split(), "--steps", "1", "--config", name)
    assert (ended.code, ended.out) == (2, "")
    assert re.match(rf"unspool: {line}", ended.err) and ended.err.count("\n") == 1
    assert not (folder / "run").exists()


def test_a_file_that_is_not_there_and_the_config_of_a_run_are_refused(folder):
    assert "none.toml: cannot be read: No such file" in call(*TRAIN.split(), "--config", "none.toml").err
    must(*TRAIN.split(), *["--steps", "1", "--hidden", "4", "--batch", "2", "--window", "8"])
    ended = call(*["train", "story.txt", "--out", "again", "--config", "run/config.json"])
    assert ended.code == 2 and "the config of a run, not of a command" in ended.err


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ("--memory full", "--memory is now --recompute"),
        ("--memory sqrt", "--memory is now --recompute"),
        ("--recompute sqrt", ""),
        ("--batch-size 2", ""),
    ],
)
def test_a_former_name_works_with_a_hint(options, hint):
    batch = "" if "--batch" in options else "--batch 2"
    ended = call(*f"{TRAIN} --steps 1 --hidden 4 --window 8 {batch} {options}".split())
    assert ended.code == 0
    assert hint in ended.err and bool(hint) == bool(ended.err)
    wanted = "sqrt" if "sqrt" in options else "full"
    assert json.loads(ended.out)["config"]["memory"] == wanted
