"""Outputs of every command: new files are written, others only replaced with --force, runs and inputs never."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from unspool.cli.commands import compress, demo
from unspool.cli.main import app, main
from unspool.cli.output_files import check_outputs, output
from unspool.errors import FileError
from unspool.storage.files import write_atomic
from unspool.storage.run_folder import is_run
from unspool.storage.staging import OWNER

FIT = ["--steps", "1", "--hidden", "4"]
COMMANDS = {
    "demo --plot": ["demo", "--plot", "{out}.svg"],
    "train --plot": ["train", "{story}", "--out", "{new}", "--plot", "{out}.svg", "--batch", "2", "--window", "8", *FIT],
    "resume --plot": ["resume", "{copy}", "--plot", "{out}.svg"],
    "generate --save-state": ["generate", "{run}", "--length", "2", "--save-state", "{out}"],
    "stats --plot": ["stats", "{story}", "--plot", "{out}.svg"],
    "runs --plot": ["runs", "{run}", "--plot", "{out}.svg"],
    "graph --out": ["graph", "--hidden", "2", "--out", "{out}.mmd"],
    "graph --out, a picture": ["graph", "--hidden", "2", "--out", "{out}.svg"],
    "turing --weights": ["turing", "builtin:increment", "1", "--weights", "{out}.json"],
    "turing --picture": ["turing", "builtin:increment", "1", "--picture", "{out}.svg"],
    "turing --picture, an automaton": ["turing", "builtin:parity", "1", "--picture", "{out}.svg"],
    "compress --out": ["compress", "{run}", "{story}", "--out", "{out}"],
    "compress --plot": ["compress", "{run}", "{story}", "--out", "{new}", "--plot", "{out}.svg"],
    "decompress --out": ["decompress", "{packed}", "--run", "{run}", "--out", "{out}"],
    "classify fit --plot": ["classify", "fit", "{names}", "--out", "{new}", "--plot", "{out}.svg", *FIT],
    "classify predict --plot": ["classify", "predict", "{classes}", "{names}", "--plot", "{out}.svg"],
    "regress fit --plot": ["regress", "fit", "{flats}", "--out", "{new}", "--plot", "{out}.svg", *FIT],
    "regress predict --plot": ["regress", "predict", "{numbers}", "{flats}", "--plot", "{out}.svg"],
    "tag fit --plot": ["tag", "fit", "{tags}", "--out", "{new}", "--plot", "{out}.svg", *FIT],
    "tag predict --plot": ["tag", "predict", "{tagger}", "{tags}", "--plot", "{out}.svg"],
    "translate fit --plot": ["translate", "fit", "{pairs}", "--out", "{new}", "--plot", "{out}.svg", *FIT],
    "translate predict --plot": ["translate", "predict", "{writer}", "{pairs}", "--plot", "{out}.svg"],
    "forecast fit --plot": ["forecast", "fit", "{sales}", "--out", "{new}", "--members", "1", "--plot", "{out}.svg", *FIT],
    "forecast predict --plot": ["forecast", "predict", "{forecaster}", "--plot", "{out}.svg"],
    "forecast backtest --plot": ["forecast", "backtest", "{sales}", "--test", "24", "--members", "1", "--plot", "{out}.svg", *FIT],
}  # fmt: skip
INPUTS = {
    "train": ["train", "{out}", "--out", "{new}", "--plot", "{out}", "--steps", "1"],
    "train, its validation part": ["train", "{story}", "--valid", "{out}", "--out", "{new}", "--plot", "{out}"],
    "stats": ["stats", "{out}", "--plot", "{out}"],
    "generate": ["generate", "{run}", "--prompt-file", "{out}", "--save-state", "{out}"],
    "turing": ["turing", "{json}", "--weights", "{json}"],
    "compress": ["compress", "{run}", "{out}", "--out", "{out}"],
    "compress, a picture": ["compress", "{run}", "{out}", "--out", "{new}", "--plot", "{out}"],
    "decompress": ["decompress", "{packed}", "--run", "{run}", "--out", "{packed}"],
    **{
        f"{name} {step}": [name, step, *run, "{out}", "--plot", "{out}", *out]
        for name in ("classify", "regress", "tag", "translate", "forecast")
        for step, run, out in (("fit", [], ["--out", "{new}"]), ("predict", ["{run}"], []))
        if (name, step) != ("forecast", "predict")
    },
    "classify fit, what it is tested by": ["classify", "fit", "{names}", "--test", "{out}", "--out", "{new}", "--plot", "{out}"],
    "forecast backtest": ["forecast", "backtest", "{out}", "--plot", "{out}"],
}  # fmt: skip
FITS = {"train": "story", "classify": "names", "regress": "flats", "tag": "tags", "translate": "pairs",
    "generate-from": "names", "forecast": "sales",
}  # fmt: skip
"""The data of every command that makes a run."""
OUTPUTS = {"--plot", "--out", "--picture", "--weights", "--save-state"}


def call(*arguments: object) -> int:
    return main([str(each) for each in arguments])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of every kind, and the data that they were made of."""
    place = tmp_path_factory.mktemp("outputs")
    data = {
        "story": "she sells sea shells by the sea shore.\n" * 40,
        "names": "text,label\n" + "Adamou,Greek\nO'Neal,Irish\n" * 20,
        "tags": "dogs N\nbark V\n\ncats N\nsleep V\nnow R\n\n" * 10,
        "flats": "rooms,target\n" + "".join(f"{i % 4},{i}\n" for i in range(20)),
        "pairs": "one\t1\ntwo\t2\nthree\t3\n" * 10,
        "sales": "\n".join(
            ["month,sales", *(f"{2000 + t // 12}-{1 + t % 12:02},{20 + t % 12 + t % 5}" for t in range(96))]
        ),
    }
    suffix = {"story": ".txt", "tags": ".conll", "pairs": ".tsv"}
    paths = {name: place / f"{name}{suffix.get(name, '.csv')}" for name in data}
    for name, path in paths.items():
        path.write_text(data[name] + "\n")
    paths |= {
        name: place / name for name in ("run", "copy", "classes", "numbers", "tagger", "writer", "forecaster")
    }
    commands = [
        ["train", paths["story"], "--out", paths["run"], "--batch", "2", "--window", "8", *FIT],
        ["train", paths["story"], "--out", paths["copy"], "--batch", "2", "--window", "8", *FIT],
        ["classify", "fit", paths["names"], "--out", paths["classes"], *FIT],
        ["regress", "fit", paths["flats"], "--out", paths["numbers"], *FIT],
        ["tag", "fit", paths["tags"], "--out", paths["tagger"], *FIT],
        ["translate", "fit", paths["pairs"], "--out", paths["writer"], *FIT],
        ["forecast", "fit", paths["sales"], "--out", paths["forecaster"], "--members", "1", *FIT],
        ["compress", paths["run"], paths["story"], "--out", place / "packed"],
    ]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for command in commands:
        arguments = [*map(str, command), "--json"]
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return paths | {"packed": place / "packed"}


@pytest.fixture(autouse=True)
def _short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """`demo` trains for half a minute, and `compress --plot` runs xz many times; a picture is enough here."""
    monkeypatch.setattr(compress, "growth", lambda *_: None)
    monkeypatch.setattr(compress, "draw_growth", lambda _, path: path.write_text("<svg/>"))
    curve = [{"seconds": t, "train": 1.0, "valid": 1.0} for t in (1.0, 2.0)]
    record = demo._Record(None, [], None, {"curve": curve})  # type: ignore[arg-type]
    monkeypatch.setattr(demo, "_run", lambda *_: record)
    monkeypatch.setattr(demo, "_samples", lambda *_: iter(()))


def filled(arguments: list[str], kept: dict[str, Path], place: Path, out: Path) -> list[str]:
    names = {**kept, "new": place / "new", "out": out, "json": out}
    return [argument.format(**names) for argument in arguments]


def contents(place: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(place.rglob("*")):
        found[str(path.relative_to(place))] = path.read_bytes() if path.is_file() else b""
    return found


def the_output(arguments: list[str], name: str) -> Path:
    return Path(arguments[arguments.index(name.split(" --")[1].split(",")[0].join(["--", ""])) + 1])


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_is_written_once_and_replaced_only_with_force(
    name: str, kept: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = filled(COMMANDS[name], kept, tmp_path, tmp_path / "out")
    out = the_output(arguments, name)
    out.write_bytes(b"mine")
    assert call(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and "this path already exists" in printed.err
    assert contents(tmp_path) == {out.name: b"mine"}
    assert call(*arguments, "--force") == 0, capsys.readouterr().err
    assert out.read_bytes() != b"mine" and set(os.listdir(tmp_path)) <= {out.name, "new"}


@pytest.mark.parametrize(
    "name", ["graph --out", "generate --save-state", "compress --out", "turing --weights"]
)
def test_a_new_output_needs_no_force_and_leaves_no_temporary_file(
    name: str, kept: dict[str, Path], tmp_path: Path
) -> None:
    arguments = filled(COMMANDS[name], kept, tmp_path, tmp_path / "out")
    assert call(*arguments) == 0
    assert [tmp_path / each for each in os.listdir(tmp_path)] == [the_output(arguments, name)]


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_written_into_a_run(
    name: str, kept: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(kept["run"])
    for inside in ("model.safetensors", "new", "text/new"):
        arguments = filled(COMMANDS[name], kept, tmp_path, kept["run"] / inside)
        if name == "generate --save-state":
            assert call(*arguments) == 2
            capsys.readouterr()
        assert call(*arguments, "--force") == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.count("\n") == 1 and "inside the run" in printed.err
    assert contents(kept["run"]) == before and contents(tmp_path) == {}


@pytest.mark.parametrize("name", INPUTS)
def test_no_command_writes_to_a_file_that_it_reads(
    name: str, kept: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / ("data.json" if name == "turing" else "data.svg")
    data.write_text("month,sales\n")
    os.link(data, tmp_path / f"hard{data.suffix}")
    (tmp_path / f"soft{data.suffix}").symlink_to(data)
    before = contents(tmp_path)
    packed = kept["packed"].read_bytes()
    arguments = filled(INPUTS[name], kept, tmp_path, data)
    assert call(*arguments, "--force") == 2
    assert "the command reads this file" in capsys.readouterr().err
    last = len(arguments) - 1 - arguments[::-1].index(str(kept["packed"] if name == "decompress" else data))
    for link in ("hard", "soft") if name != "decompress" else ():
        through = [*arguments[:last], str(tmp_path / f"{link}{data.suffix}"), *arguments[last + 1 :]]
        assert call(*through, "--force") == 2
        assert "the command reads this file" in capsys.readouterr().err
    assert contents(tmp_path) == before and kept["packed"].read_bytes() == packed


def with_outputs(app: App, name: str = "") -> Iterator[tuple[str, set[str]]]:
    for each in app:
        if not each.startswith("-"):
            inner, called = app[each], f"{name} {each}".strip()
            if any(not one.startswith("-") for one in inner):
                yield from with_outputs(inner, called)
            else:
                arguments = [each for each in inner.assemble_argument_collection() if each.parse]
                yield called, {one for argument in arguments for one in argument.names}


def test_every_output_option_of_every_command_is_tested_here() -> None:
    tested = {name.split(",")[0] for name in COMMANDS}
    for name, options in with_outputs(app):
        for option in options & OUTPUTS:
            makes_folder = option == "--out" and name.split()[-1] in ("train", "fit", "inspect", "sweep")
            assert makes_folder or f"{name} {option}" in tested, f"{name} {option}"
            assert "--force" in options or name == "sweep", (
                name
            )  # the folder of a sweep is gone on with, never replaced


def test_a_state_is_saved_over_itself_with_force_only(
    kept: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    base = ["generate", kept["run"], "--length", "3", "--save-state", state]
    assert call(*base, "--seed", "1") == 0
    os.chmod(state, 0o600)
    before = state.read_bytes()
    assert call(*base, "--state", state) == 2 and state.read_bytes() == before
    assert call(*base, "--state", state, "--force") == 0 and state.read_bytes() != before
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link, there = tmp_path / "link.mmd", tmp_path / "far" / "there.mmd"
    link.symlink_to(there)
    assert call("graph", "--out", link) == 0 and link.is_symlink() and there.is_file()
    assert call("graph", "--out", link) == 2
    there.write_text("mine")
    assert call("graph", "--out", link, "--force") == 0 and link.is_symlink() and there.read_text() != "mine"
    assert os.listdir(tmp_path / "far") == ["there.mmd"]


def test_a_device_and_a_pipe_are_written_to_and_not_replaced(kept: dict[str, Path], tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert call("compress", kept["run"], kept["story"], "--out", pipe) == 0
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode) and os.listdir(tmp_path) == ["pipe"]
    (tmp_path / "a.unspool").write_bytes(found[0])
    assert call("decompress", tmp_path / "a.unspool", "--run", kept["run"], "--out", tmp_path / "a") == 0
    assert (tmp_path / "a").read_bytes() == kept["story"].read_bytes()
    null = tmp_path / "null"
    null.symlink_to(os.devnull)
    assert call("generate", kept["run"], "--length", "1", "--save-state", null) == 0
    assert call("generate", kept["run"], "--length", "1", "--save-state", os.devnull) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_standard_output_is_an_output(kept: dict[str, Path], tmp_path: Path) -> None:
    base = [sys.executable, "-m", "unspool"]
    story = kept["story"].read_bytes()
    done = subprocess.run(
        [*base, "decompress", kept["packed"], "--run", kept["run"], "--out", "-"],
        capture_output=True,
        check=True,
    )
    assert done.stdout == story and b"SHA-256" in done.stderr
    line = f"{sys.executable} -m unspool decompress {kept['packed']} --run {kept['run']} --out /dev/stdout"
    (tmp_path / "got").write_bytes(b"before ")
    subprocess.run(["bash", "-c", f"{line} >> {tmp_path / 'got'}"], check=True, capture_output=True)
    assert (tmp_path / "got").read_bytes() == b"before " + story


def test_two_results_on_standard_output_are_refused(
    kept: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("compress", kept["run"], kept["story"], "--out", "-", "--json") == 2
    assert call("generate", kept["run"], "--save-state", "-") == 2
    assert capsys.readouterr().err.count("standard output") == 2


# ── folders ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_report_is_replaced_only_with_force_and_only_if_it_is_one(
    kept: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["inspect", kept["run"], kept["story"], "--characters", "60", "--out"]
    report = tmp_path / "report"
    assert call(*base, report) == 0
    before = contents(tmp_path)
    assert call(*base, report) == 2 and "--force" in capsys.readouterr().err
    (report / "graph.svg").write_text("old")
    assert call(*base, report, "--force") == 0 and contents(tmp_path) == before
    (report / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    assert call(*base, report, "--force") == 2 and "notes.txt" in capsys.readouterr().err
    assert contents(tmp_path) == before
    for place in (kept["run"], kept["run"] / "report", tmp_path, kept["story"], kept["story"] / "report"):
        assert call(*base, place, "--force") == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert is_run(kept["run"]) and not (kept["run"] / "report").exists()


@pytest.mark.parametrize("command", ["train", *(f"{name} fit" for name in FITS if name != "train")])
def test_a_run_is_never_replaced_and_never_made_inside_another(
    command: str, kept: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(kept["run"])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    for out in (kept["run"], kept["run"] / "new", tmp_path / "notes", tmp_path / "notes" / "mine.txt"):
        assert call(*command.split(), kept[FITS[command.split()[0]]], "--out", out, "--force", *FIT) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert contents(kept["run"]) == before and (tmp_path / "notes" / "mine.txt").read_text() == "mine"


def test_the_run_and_its_picture_need_two_names(kept: dict[str, Path], tmp_path: Path) -> None:
    both = tmp_path / "run.svg"
    assert call("train", kept["story"], "--out", both, "--plot", both, *FIT) == 2
    assert os.listdir(tmp_path) == []


def test_pictures_of_columns_with_alike_names_do_not_replace_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "\n".join(f"{20 + t % 12 + t % 5},{t % 7 + t % 4 + t**2 % 11}" for t in range(60))
    (tmp_path / "two.csv").write_text(f"a/b,a:b\n{rows}\n")
    base = [
        "forecast",
        "backtest",
        tmp_path / "two.csv",
        "--test",
        "12",
        "--horizon",
        "2",
        "--members",
        "1",
        *FIT,
    ]
    assert call(*base, "--plot", tmp_path / "p.svg") == 0
    assert {"p-a-b.svg", "p-a-b-2.svg"} < set(os.listdir(tmp_path))
    before = contents(tmp_path)
    capsys.readouterr()
    assert call(*base, "--plot", tmp_path / "p.svg") == 2 and capsys.readouterr().out == ""
    assert contents(tmp_path) == before


# ── races and Python ───────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_came_during_the_work_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"

    def work() -> None:
        with output(path, force=False) as unfinished:
            unfinished.write_bytes(b"new")
            path.write_bytes(b"mine")

    with pytest.raises(FileError, match="File exists"):
        work()
    assert contents(tmp_path) == {"out": b"mine"}


def test_a_file_system_without_links_replaces_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_atomic(tmp_path / "a", b"1", new=True)
    with pytest.raises(FileError, match="File exists"):
        write_atomic(tmp_path / "a", b"2", new=True)
    assert contents(tmp_path) == {"a": b"1"}


def test_an_output_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"mine")
    with (
        pytest.raises(FileError, match=f"^{path}: cannot be written: no"),
        output(path, force=True) as unfinished,
    ):
        raise OSError(unfinished.write_bytes(b"half") and "no")
    with pytest.raises(KeyError), output(path, force=True) as unfinished:
        raise KeyError
    with pytest.raises(FileError, match=f"^{path}: cannot be read"), output(path, force=True) as unfinished:
        raise FileError(f"{unfinished}: cannot be read")
    assert contents(tmp_path) == {"out": b"mine"}


def test_temporary_names_are_not_outputs(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="temporary"):
        check_outputs(tmp_path / OWNER, force=True)


def test_a_file_written_from_python_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    write_atomic(path, json.dumps({}).encode())
    assert path.read_text() == "{}" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a"]
