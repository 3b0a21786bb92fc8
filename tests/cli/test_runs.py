"""`unspool runs` and `unspool show`: every kind of run, finished, resumable and damaged."""

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from command_line import call, must
from fixtures.make import FILES, FITS
from unspool.cli.run_summary import find_runs, summarise
from unspool.cli.views.runs import print_runs
from unspool.storage.tensors import read_json, write_json

FORECASTS = ("forecast", "forecast-two")
KINDS = (*FITS, *FORECASTS)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of frozen runs of every kind, in a folder below the working directory."""
    folder = tmp_path / "all"
    for name in [*KINDS, *(f"{kind}-unfinished" for kind in FITS)]:
        shutil.copytree(FILES / name, folder / name)
    monkeypatch.chdir(tmp_path)
    return folder


def listed(*arguments: object) -> dict[str, dict]:
    content = json.loads(must("runs", *arguments, "--json"))
    return {Path(each["run"]).name: each for each in content["runs"]}


def test_every_kind_of_run_is_listed_with_its_state(place: Path) -> None:
    found = listed()
    assert sorted(found) == sorted(path.name for path in place.iterdir())
    for kind in KINDS:
        assert found[kind]["state"] == "finished" and found[kind]["cell"], kind
    for kind in FITS:
        each = found[f"{kind}-unfinished"]
        assert each["state"] == "resumable" and 0 < each["steps"] < each["planned"], kind
        assert found[kind]["steps"] == found[kind]["planned"] and each["kind"] == kind
    assert found["language"]["test"]["name"] == "perplexity"
    assert found["classify"]["parameters"] > 0 and found["forecast"]["parameters"] is None


def test_a_pipe_gets_one_line_per_run(place: Path) -> None:
    lines = must("runs", place).splitlines()
    assert len(lines) == 1 + len(list(place.iterdir())) and lines[0].split()[:3] == ["run", "kind", "data"]
    assert any("generate-from-unfinished" in line for line in lines)


def test_a_figure_of_the_validation_part_is_marked(place: Path) -> None:
    line = next(line for line in must("runs", place / "language").splitlines() if "language" in line)
    part = listed(place / "language")["language"]["part"]
    assert ("(valid)" in line) == (part == "valid")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"\x00" * 40),
        ("model.safetensors", None),
        ("config.json", b"{}"),
        ("config.json", b"\xff\xfe"),
        ("log.jsonl", b"[1]\n"),
        ("log.jsonl", b"not json\n"),
        ("training.safetensors", b""),
    ],
)
@pytest.mark.parametrize("kind", ["language", "classify"])
def test_a_damaged_run_is_listed_as_such(kind: str, file: str, content: bytes | None, place: Path) -> None:
    run = place / f"{kind}-unfinished"
    (run / file).unlink() if content is None else (run / file).write_bytes(content)
    found = listed(run)[run.name]
    assert found["state"] == "damaged" and found["error"]
    done = call("runs", place)
    assert done.code == 0 and "damaged" in done.out and not done.err
    assert call("show", run).code == 0
    assert json.loads(must("show", run, "--json"))["next"] == []


@pytest.mark.parametrize(
    "field",
    [
        *(
            "kind",
            "run",
            "run.sources",
            "run.recipe",
            "run.recipe.cell",
            "run.recipe.hidden",
            "run.recipe.steps",
        ),
        *("run.settings", "baselines", "provenance", "provenance.started", "provenance.data_sha256"),
    ],
)
@pytest.mark.parametrize("value", [None, 3, -1.5, [], [3], "x", {"a": 1}, True])
def test_a_crafted_config_is_no_traceback(field: str, value: object, place: Path) -> None:
    config = place / "language" / "config.json"
    content = {key: each for key, each in read_json(config).items() if key != "sha256"}
    *above, last = field.split(".")
    inner = content
    for name in above:
        inner = inner[name]
    inner[last] = value
    write_json(config, content)
    commands = [["runs", place / "language", place / "tag"], ["show", place / "language"]]
    for command in (*commands, [*commands[0], "--compare"], [*commands[1], "--json"]):
        done = call(*command)
        assert done.code == 0, done.err


def test_runs_are_sorted(place: Path) -> None:
    by_size = [each["bytes"] for each in listed(place, "--sort", "size").values()]
    assert by_size == sorted(by_size, reverse=True)
    kinds = [each["kind"] for each in listed(place, "--sort", "valid").values()]
    assert kinds == sorted(kinds)


def test_compare_shows_what_differs(place: Path) -> None:
    printed = must("runs", place / "language", place / "classify", "--compare")
    for word in ("kind", "hidden", "cell", "best valid", "parameters", "finished"):
        assert word in printed
    found = json.loads(must("runs", place / "classify", place / "classify-unfinished", "--compare", "--json"))
    assert found["differing"] == {}
    found = json.loads(must("runs", place / "classify", place / "tag", "--compare", "--json"))
    assert found["differing"]["cell"] == ["gru", "elman"]


def test_the_curves_are_drawn(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    must("runs", place / "language", place / "classify", "--compare", "--plot", tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000
    done = call("runs", place / "forecast", "--plot", tmp_path / "q.png")
    assert done.code == 2 and "none of the runs has a learning curve" in done.err


def test_a_folder_without_runs_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no run here or below" in must("runs")
    assert json.loads(must("runs", "--json")) == {"runs": []}
    done = call("runs", "nowhere")
    assert (
        done.code == 2
        and done.err == "unspool: nowhere: not a folder; expected a run or a folder with runs\n"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_show_prints_one_screen_of_a_run(kind: str, place: Path) -> None:
    printed = must("show", place / kind)
    for word in ("run ", "data ", "model ", "chosen ", "made with", "next "):
        assert f"\n{word}" in f"\n{printed}", word
    assert len(printed.splitlines()) < 50
    content = json.loads(must("show", place / kind, "--json"))
    assert set(content["given"]) <= set(content["options"]) and content["given"]
    assert content["next"] and all(each.startswith("unspool ") for each in content["next"])
    assert (content["repeat"] is not None) == (kind == "language")


def test_show_names_hyper_parameters_as_the_options_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.csv").write_text("text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 20)
    Path("text.txt").write_text("she sells sea shells by the sea shore.\n" * 40)
    size = ("--steps", "3", "--hidden", "4", "--batch", "8")
    must(
        "classify",
        "fit",
        "names.csv",
        *size,
        "--chrono-steps",
        "5",
        "--prior-correction",
        "0.5",
        "--out",
        "a",
    )
    must("train", "text.txt", *size, "--recompute", "sqrt", "--schedule", "constant", "--out", "b")
    first, second = (json.loads(must("show", run, "--json")) for run in "ab")
    assert first["given"] == ["batch", "chrono_steps", "hidden", "prior_correction", "steps"]
    assert first["options"]["chrono_steps"] == 5 and first["options"]["prior_correction"] == 0.5
    assert second["given"] == ["batch", "hidden", "recompute", "schedule", "steps"]
    assert second["options"]["recompute"] == "sqrt"


def test_show_of_a_forecast_does_not_call_chosen_members_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sales.csv").write_text("month,sales\n" + "".join(f"{i},{20 + i % 12}\n" for i in range(60)))
    must("forecast", "fit", "sales.csv", "--steps", "2", "--horizon", "3", "--out", "a")
    found = json.loads(must("show", "a", "--json"))
    assert found["given"] == ["horizon", "steps"] and found["options"]["members"] > 0


def test_show_of_an_unfinished_run_says_how_to_resume_it(place: Path) -> None:
    for kind in FITS:
        run = place / f"{kind}-unfinished"
        assert f"unspool resume {run}" in must("show", run)


def test_show_refuses_what_is_no_run(tmp_path: Path) -> None:
    assert call("show", tmp_path / "x").code == 2
    done = call("show", tmp_path)
    assert done.code == 2 and "not a run" in done.err


def test_a_fit_saves_its_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.csv").write_text("text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 20)
    fitted = json.loads(must("classify", "fit", "names.csv", "--steps", "3", "--hidden", "4", "--json"))
    shown = json.loads(must("show", fitted["run"], "--json"))
    answers = fitted["compared"]["answers"]
    assert shown["test"] == {"model": answers, "name": "accuracy", "value": fitted["scores"]["accuracy"]}


def test_runs_inside_a_run_are_not_looked_for(place: Path) -> None:
    shutil.copytree(place / "tag", place / "language" / "inner")
    assert [path.name for path in find_runs([place / "language"])] == ["language"]
    assert summarise(place / "language").state == "finished"


def test_runs_stand_in_the_order_in_which_they_are_given(place: Path) -> None:
    content = json.loads(must("runs", place / "tag", place / "classify", "--compare", "--json"))
    assert [Path(each["run"]).name for each in content["runs"]] == ["tag", "classify"]
    content = json.loads(must("runs", place / "tag", place / "classify", "--sort", "path", "--json"))
    assert [Path(each["run"]).name for each in content["runs"]] == ["classify", "tag"]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_terminal_shows_as_many_columns_as_fit_and_whole_names(place: Path, width: int) -> None:
    console = Console(width=width, force_terminal=True, file=io.StringIO(), color_system=None)
    print_runs(console, [summarise(path) for path in find_runs([Path("all")])])
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 1 + len(list(place.iterdir())) and all(len(line) <= width for line in lines)
    assert lines[0].split()[0] == "run" and ("data" in lines[0]) == (width > 120)


def test_a_forecast_shows_what_was_used_and_not_how_to_choose_it(place: Path) -> None:
    line = next(line for line in must("show", place / "forecast").splitlines() if line.startswith("chosen"))
    assert "guess" not in line and "hidden 0" not in line and "noise -1" not in line and "season " in line
