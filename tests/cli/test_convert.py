"""Values on the command line: every integer option refuses fractions, and every name refuses to be empty."""

from pathlib import Path
from typing import get_args

import pytest

from unspool.cli.main import app, main


def commands(app=app, chain=()):
    """Yield every command that does something, as (its words, its app)."""
    for name in app:
        if not name.startswith("-"):
            yield from commands(app[name], (*chain, name))
            if app[name].default_command is not None:
                yield (*chain, name), app[name]


def holds(hint, kind):
    return hint is kind or any(holds(each, kind) for each in get_args(hint))


def arguments(kind):
    """Yield (words, option, how many words it takes, words that are needed besides) for arguments of a type."""
    for chain, command in commands():
        given = [each for each in command.assemble_argument_collection() if each.name != "*" and each.parse]
        needed = {
            each.name: [each.name, "x"] if each.name.startswith("-") else ["x"]
            for each in given
            if each.required
        }
        for each in given:
            if holds(each.hint, kind):
                others = [word for name, words in needed.items() if name != each.name for word in words]
                yield chain, each.name, each.token_count()[0] or 1, others


WHOLE = list(arguments(int))
NAMES = list(arguments(Path))


def run(capsys, *words):
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_there_are_commands_to_test():
    assert len(WHOLE) > 60 and len(NAMES) > 30
    assert {chain[0] for chain, *_ in WHOLE} | {chain[0] for chain, *_ in NAMES} >= {
        "train",
        "classify",
        "turing",
    }


@pytest.mark.parametrize(("chain", "option", "count", "others"), WHOLE, ids=lambda v: str(v).replace("'", ""))
@pytest.mark.parametrize("value", ["2.7", "4.0"])
def test_an_integer_option_takes_no_fraction(
    chain, option, count, others, value, monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    line = run(capsys, *chain, *others, option, *[value] * count)
    assert f"{option}: {value!r} is not a whole number" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("chain", "option", "count", "others"), NAMES, ids=lambda v: str(v).replace("'", ""))
def test_a_name_is_not_empty(chain, option, count, others, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = [option, ""] if option.startswith("-") else [""]
    line = run(capsys, *chain, *(words + others if words == [""] else others + words))
    assert "the name is empty" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["stats", ""],
        ["stats", "a.txt", ""],
        ["stats", "a.txt", "--test", ""],
        ["train", "", "--out", "run"],
        ["train", "a.txt", "--valid", "", "--out", "run"],
        ["turing", ""],
    ],
    ids=" ".join,
)
def test_a_source_is_not_empty(words, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("she sells sea shells by the sea shore\n" * 20)
    assert "empty" in run(capsys, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["forecast", "fit", "a.csv", "--out", "run", "--season", "2.7"], "season"),
        (["forecast", "backtest", "a.csv", "--test", "2.7"], "test"),
        (["forecast", "fit", "a.csv", "--out", "run", "--differences", "0.5,1"], "differences"),
        (["train", "a.csv", "--out", "run", "--bptt", "truncated:2.5"], "bptt"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else each,
)
def test_integers_inside_other_words_take_no_fraction_either(words, says, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("sales\n" + "".join(f"{n % 7 + n / 10}\n" for n in range(60)))
    assert says in run(capsys, *words)


def test_whole_numbers_with_signs_and_underscores_are_read():
    _, bound, _ = app.parse_args(["stats", "a.txt", "--top", "1_000", "--order", "+2"])
    options = bound.arguments["options"]
    assert options.top == 1000 and options.order == 2
