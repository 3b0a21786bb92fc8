"""``unspool demo`` as a newcomer runs it, on a tiny budget."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from unspool.cli.commands import demo as demo_module
from unspool.cli.main import main
from unspool.cli.views.chart import chart
from unspool.cli.views.training import Sample, View
from unspool.tasks.language.run import run
from unspool.training.events import RunConfig

TINY = RunConfig(given={"hidden": 16, "B": 4, "tau": 16, "steps": 6}, order=2)
STAGES = ("text", "tokens", "vocabulary", "counting", "minibatches", "model", "training", "result", "samples")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        demo_module,
        "run",
        lambda config: run(replace(TINY, seed=config.seed, validations=config.validations)),
    )


def unspool(*arguments: str) -> int:
    return main(arguments)


def test_every_stage_is_shown_as_plain_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert unspool("demo", "--seconds", "0.5") == 0
    printed = capsys.readouterr().out
    locations = [printed.index(f"\n{stage} ") for stage in (*STAGES, "next")]
    assert locations == sorted(locations)
    assert "\x1b" not in printed
    for expected in ("tokens/s", "nats", "uniform", "2-grams", "network", "bits/char", "6/6"):
        assert expected in printed
    assert printed.count("temperature") == 3


def test_json_holds_every_number_and_nothing_else_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for _ in range(2):
        assert unspool("demo", "--json", "--seed", "3") == 0
        printed, error = capsys.readouterr()
        assert error == ""
        found.append(json.loads(printed))
    one, two = found
    assert one["config"]["recipe"]["steps"] == 6 and one["config"]["seed"] == 3
    assert one["baselines"][0]["test"]["perplexity"] == pytest.approx(one["vocabulary"])
    assert one["curve"][-1]["step"] == 6
    assert len(one["samples"]) == 3
    assert one["network"] == two["network"]
    assert [each["text"] for each in one["samples"]] == [each["text"] for each in two["samples"]]


def test_in_a_terminal_the_curve_is_drawn_against_its_lines() -> None:
    stream = io.StringIO()
    with View(Console(file=stream, force_terminal=True, width=100, highlight=False)) as view:
        for event in run(TINY):
            view.show(event)
        view.show_sample(Sample("The ", 0.5, "end\n" * 3, 1e-5))
        view.end([("unspool stats", "count")])
    printed = stream.getvalue()
    for expected in ("•", "┈", "tokens/s", "left", "2-grams", "network", "10 µs per token"):
        assert expected in printed


@pytest.mark.parametrize(
    "option", [("--seconds", "0"), ("--seconds", "nan"), ("--seed", "-1"), ("--seed", "x")]
)
def test_options_without_meaning_are_one_line(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert unspool("demo", *option) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert option[0].strip("-") in error


def test_a_chart_keeps_its_size_whatever_it_draws() -> None:
    for points in ([], [(1, 2.0)], [(1, 9.0), (2, -3.0), (10, 5.0)], [(1, 1.0), (99, 1.0)]):
        rows = chart(points, [("line", 1.0)], end=10, width=20, height=5)
        assert len(rows) == 5
        assert all(len(row.split(" line")[0]) <= 27 for row in rows)
