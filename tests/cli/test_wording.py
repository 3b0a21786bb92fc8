"""Errors of the library on the command line: options in the place of Python's arguments."""

import pytest

from command_line import call
from unspool.cli.commands import COMMANDS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("train {} --cell lstm --activation relu", "--activation relu requires --cell elman; "),
        ("train {} --pattern 10.4 --layers 3", "--pattern output (10.4) needs --layers 1: "),
        (
            "train {} --tied --embedding 7 --hidden 4 --steps 2 --batch 2 --window 4",
            "--tied needs --embedding 4 ",
        ),
        (
            "check-gradients --pattern 10.4 --bidirectional",
            "--pattern output (10.4) needs no --bidirectional: ",
        ),
    ],
)
def test_an_argument_is_called_by_its_option(tmp_path, arguments, said):
    text = tmp_path / "story.txt"
    text.write_text("the sea and the shells\n" * 40)
    ended = call(*arguments.format(text).split(), *["--out", tmp_path / "run"] * ("train" in arguments))
    assert ended.code == 2 and ended.err.startswith(f"unspool: {said}"), ended.err


@pytest.mark.parametrize("command", ["classify", "regress", "tag", "translate", "generate-from", "forecast"])
def test_a_missing_file_is_reported_in_the_same_words(tmp_path, command):
    missing = tmp_path / "nofile.csv"
    for words in ((command, "fit", missing), ("train", missing), ("stats", missing), ("decompress", missing)):
        ended = call(*words)
        assert (ended.code, ended.out, ended.err) == (2, "", f"unspool: {missing}: no such file or folder\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_usage_line_names_all_arguments(command):
    assert "[ARGS" not in call(command, "--help").out


def test_paths_that_look_like_arguments_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "story.txt").write_text("the sea and the shells\n" * 40)
    for out in ("seed=3", "runs/hidden=64"):
        sizes = ["--steps", 1, "--hidden", 4, "--batch", 2, "--window", 4]
        assert call("train", "story.txt", "--out", out, *sizes, "--quiet").code == 0
        said = f"unspool: {out}: a run already exists here; give another --out, or resume it: unspool resume {out}\n"
        assert call("train", "story.txt", "--out", out, *sizes).err == said
