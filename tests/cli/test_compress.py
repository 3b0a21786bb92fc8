"""`unspool compress` and `unspool decompress` as people use them: as processes."""

import io
import json
import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from unspool.cli.commands.compress import reads_alike
from unspool.cli.main import main
from unspool.compress import Container, compress
from unspool.compress.other_programs import OTHERS, growth, other_programs
from unspool.data.text.corpus import read_part
from unspool.data.text.settings import TextConfig
from unspool.data.text.source import Source
from unspool.errors import FileError
from unspool.plots.compression import draw_growth
from unspool.storage.files import write_atomic
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.language.text_model import TextModel

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 60
SIZES = {"hidden": 16, "batch_size": 4, "window": 16, "learning_rate": 0.01, "dropout": 0.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    LanguageModel(steps=60, out=out, **SIZES).fit(TEXT)
    return out


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "story.txt"
    path.write_bytes((TEXT[:800] + "— été 時\r\n").encode())
    return path


def unspool(*arguments: object) -> str:
    """Run a command in a process of its own; give what it prints."""
    command = [sys.executable, "-m", "unspool", *map(str, arguments)]
    environment = os.environ | {"UNSPOOL_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def called(arguments: list[object]) -> int:
    """Run a command here, and return its exit code."""
    return main([str(each) for each in arguments])


def text_of(data: bytes) -> Source:
    return Source("data", data=io.BytesIO(data))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_goes_and_comes_back(run: Path, story: Path) -> None:
    printed = unspool("compress", run, story)
    for word in (
        "gzip -9",
        "bzip2 -9",
        "xz -9e",
        "mixture's cross-entropy",
        "written",
        "of header",
        "unknown",
    ):
        assert word in printed
    data = story.read_bytes()
    story.unlink()
    assert f"{len(data):,} bytes restored" in unspool("decompress", f"{story}.unspool")
    assert story.read_bytes() == data
    assert names(story.parent) == ["story.txt", "story.txt.unspool"]


def test_figures_for_a_script(run: Path, story: Path, tmp_path: Path) -> None:
    story.write_text(TEXT[:900])
    found = json.loads(
        unspool("compress", run, story, "--model", "network", "--out", tmp_path / "a", "--json")
    )
    judged = json.loads(unspool("evaluate", run, story, "--order", 0, "--json"))
    assert found["nats"] == judged["network"]["nats"] and found["unknown"] == 0
    written = (tmp_path / "a").stat().st_size
    assert found["written_bytes"] == written == found["coded_bytes"] + found["header_bytes"]
    exact = found["promised_bits"] + found["first_token_bits"]
    assert exact - 8 < 8 * found["coded_bytes"] < 1.001 * exact + 8  # the interval may hold a shorter number
    assert set(found["others"]) == set(other_programs())
    again = json.loads(unspool("decompress", tmp_path / "a", "--out", tmp_path / "b", "--json"))
    assert again["sha256"] == found["sha256"] and (tmp_path / "b").read_bytes() == story.read_bytes()


def test_a_file_with_its_model_needs_no_run(run: Path, story: Path, tmp_path: Path) -> None:
    unspool("compress", run, story, "--with-model", "--out", tmp_path / "whole")
    assert str(run).encode() not in (tmp_path / "whole").read_bytes()
    unspool("decompress", tmp_path / "whole", "--out", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == story.read_bytes()


@pytest.fixture(scope="module")
def refused(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that cannot be used."""
    folder = tmp_path_factory.mktemp("refused")
    kept = compress(
        TextModel.load(run), TEXT[:500].encode(), name="x.txt", run=str(folder / "gone")
    ).container
    content = kept.to_bytes()
    (folder / "good").write_bytes(content)
    (folder / "cut").write_bytes(content[:-9])
    (folder / "text").write_text(TEXT)
    away = Container(**{**vars(kept), "name": "../away.txt"})
    (folder / "away").write_bytes(away.to_bytes())
    LanguageModel(steps=2, seed=1, out=folder / "other", **SIZES).fit(TEXT)
    LanguageModel(steps=2, tokens="word", out=folder / "words", **SIZES).fit(TEXT)
    return folder


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["decompress", "cut"], "damaged or cut short"),
        (["decompress", "text"], "not a file of unspool compress"),
        (["decompress", "nothing"], "no such file or folder"),
        (["decompress", "good"], "gone; give it with --run"),
        (["decompress", "good", "--run", "other"], "another model"),
        (["decompress", "good", "--out", "text"], "this path already exists"),
        (["decompress", "good", "--out", "no/x"], "is no folder"),
        (["decompress", "away"], "'../away.txt', is none to write to; give --out"),
        (["compress", "words", "text"], "--tokens char or byte"),
        (["compress", "other", "text", "--out", "good"], "this path already exists"),
        (["compress", "other", "nothing"], "no such file or folder"),
        (["compress", "other", "."], "cannot be read"),
        (["compress", "nothing", "text"], "no such run"),
        (["compress", "other", "text", "--plot", "text"], "the command reads this file"),
        (["compress", "other", "text", "--out", "new.png", "--plot", "new.png"], "used for two outputs"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_is_one_line_and_nothing_is_written(
    arguments: list[object],
    says: str,
    refused: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(refused)
    before = names(refused)
    assert called(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and says in printed.err
    assert names(refused) == before and not (refused.parent / "away.txt").exists()


@pytest.mark.parametrize("when", ["rich.progress.Progress.update", "os.fsync"])  # computing, writing
def test_control_c_leaves_nothing(
    when: str, run: Path, story: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    kept = story.with_name("kept")
    model = TextModel.load(run)
    kept.write_bytes(compress(model, story.read_bytes(), run=str(run)).container.to_bytes())
    for command in (["compress", run, story], ["decompress", kept, "--out", story.with_name("again")]):
        before = names(story.parent)
        with monkeypatch.context() as patch:
            patch.setattr(when, stop)
            assert called(command) == 130
        assert names(story.parent) == before and capsys.readouterr().err == "unspool: stopped\n"


def test_a_picture_of_the_bits_by_the_bytes_read(run: Path, story: Path, tmp_path: Path) -> None:
    data, model = story.read_bytes(), TextModel.load(run)
    packed = compress(model, data)
    found = growth(model, data, packed)
    assert list(found) == ["the network", "its bits alone", *OTHERS]
    for name, (read, bits) in found.items():
        assert read[-1] == len(data) and len(read) == len(bits), name
    assert found["gzip -9"][1][-1] == 8 * len(OTHERS["gzip -9"](data)) / len(data)
    header = len(packed.container.to_bytes()) - len(packed.container.payload)
    alone = found["its bits alone"][1][-1] * len(data)
    assert abs(alone - 8 * len(packed.coded.payload)) < 8  # each token's bits add up to those written
    assert found["the network"][1][-1] == pytest.approx((alone + 8 * header) / len(data))
    draw_growth(found, tmp_path / "growth.svg")
    assert "its bits alone" in (tmp_path / "growth.svg").read_text()


@pytest.mark.parametrize(
    ("settings", "data", "alike"),
    [
        (TextConfig(), b"a\r\n", True),
        (TextConfig(newlines="lf"), b"a\n", True),
        (TextConfig(newlines="lf"), b"a\r\n", False),
        (TextConfig(clean=True), b"a", False),
        (TextConfig(), b"\xef\xbb\xbfa", False),
    ],
)
def test_it_is_known_where_evaluate_would_read_something_else(
    settings: TextConfig, data: bytes, alike: bool, run: Path
) -> None:
    model = replace(TextModel.load(run), settings=settings)
    assert reads_alike(model, data) is alike
    read = read_part(text_of(data), model.vocab, model.tokenizer, settings)
    assert (len(read.ids) == len(data)) is alike or settings.clean


def test_the_run_is_found_from_the_files_own_folder(run, monkeypatch, tmp_path):
    contents = []
    for place in (tmp_path / "one", tmp_path / "another" / "deeper"):
        shutil.copytree(run, place / "run")
        (place / "story.txt").write_text(TEXT)
        monkeypatch.chdir(place)
        assert called(["compress", "run", "story.txt"]) == 0
        (place / "story.txt").unlink()
        contents.append((place / "story.txt.unspool").read_bytes())
        monkeypatch.chdir(tmp_path)
        assert called(["decompress", place / "story.txt.unspool"]) == 0
        assert (place / "story.txt").read_text() == TEXT
    assert contents[0] == contents[1] and str(tmp_path).encode() not in contents[0]


def test_the_run_is_found_through_a_linked_folder(run, monkeypatch, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    (tmp_path / "a.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    assert called(["compress", "run", "a.txt", "--out", "link/a.unspool"]) == 0
    assert called(["decompress", "link/a.unspool", "--out", "b.txt"]) == 0
    assert (tmp_path / "b.txt").read_text() == TEXT


def test_a_new_file_takes_the_place_of_nothing(tmp_path):
    write_atomic(tmp_path / "a", b"new", new=True)
    with pytest.raises(FileError, match="exists"):
        write_atomic(tmp_path / "a", b"other", new=True)
    assert (tmp_path / "a").read_bytes() == b"new" and names(tmp_path) == ["a"]


def test_brackets_in_a_name_are_printed_as_they_are(run, story, monkeypatch, capsys):
    named = story.with_name("n[red]x[bold].txt")
    named.write_bytes(story.read_bytes())
    monkeypatch.chdir(story.parent)
    assert called(["compress", run, named.name]) == 0
    assert "saved        n[red]x[bold].txt.unspool" in capsys.readouterr().out


def test_a_file_of_many_unknown_tokens_is_warned_of(run, story, tmp_path, capsys):
    other = tmp_path / "other.txt"
    other.write_text("THE TIME traveller " * 20, encoding="utf-8")
    assert called(["compress", run, other, "--json"]) == 0
    printed = capsys.readouterr()
    share = json.loads(printed.out)["unknown"] / json.loads(printed.out)["tokens"]
    assert printed.err.count("\n") == 1
    assert f"{share:.1%} of its tokens are not in the vocabulary" in printed.err
    assert "train on such text, or with --tokens byte" in printed.err
    assert called(["compress", run, story]) == 0  # 3 of 810 are unknown
    assert capsys.readouterr().err == ""


def test_a_file_without_a_run_learns_from_itself_and_needs_nothing_else(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(["compress", story, "--learn"]) == 0
    printed = capsys.readouterr().out
    assert "coded by counts that learned from this file" in printed
    assert "cross-entropy" not in printed
    packed, moved = Path(f"{story}.unspool"), tmp_path / "elsewhere" / "a.unspool"
    moved.parent.mkdir()
    packed.rename(moved)
    assert called(["decompress", moved]) == 0
    assert (moved.parent / "story.txt").read_bytes() == story.read_bytes()
    assert called(["compress", story, "--learn", "--out", tmp_path / "b", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert found["run"] is None
    assert found["way"] == "adaptive"
    assert (
        found["written_bytes"]
        == len((tmp_path / "b").read_bytes())
        == found["coded_bytes"] + found["header_bytes"]
    )


@pytest.mark.parametrize("model", ["network", "mixture", None])
@pytest.mark.parametrize("learn", [False, True])
def test_a_run_codes_with_its_network_or_its_mixture_and_learns(
    run: Path, story: Path, tmp_path: Path, model: str | None, learn: bool
) -> None:
    out, more = tmp_path / "a", [*(["--model", model] if model else []), *["--learn"] * learn]
    assert called(["compress", run, story, "--out", out, "--quiet", *more]) == 0
    container = Container.from_bytes(out.read_bytes())
    assert (container.learning is not None) == learn
    assert container.mixture == (model != "network")
    assert called(["decompress", out, "--out", tmp_path / "back", "--quiet"]) == 0
    assert (tmp_path / "back").read_bytes() == story.read_bytes()


def test_a_run_that_learns_says_whether_it_was_used(
    run: Path, story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, out = tmp_path / "other.bin", tmp_path / "a"
    other.write_bytes(bytes(range(0, 250, 3)) * 30)
    for file, used, said in (
        (story, True, "coded by the run's network and n-grams and counts, which learned from this file"),
        (other, False, f"{run} was not used: it would not make the file smaller"),
    ):
        assert called(["compress", run, file, "--learn", "--out", out, "--force"]) == 0
        assert said in " ".join(capsys.readouterr().out.split())
        assert called(["compress", run, file, "--learn", "--out", out, "--force", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["run_used"], found["way"], "learning" in found) == (used, "adaptive", used)
        assert Container.from_bytes(out.read_bytes()).needs_model == used
        assert called(["decompress", out, "--out", tmp_path / "back", "--force"]) == 0
        assert (tmp_path / "back").read_bytes() == file.read_bytes()
        capsys.readouterr()
    assert called(["compress", run, story, "--learn", "--plot", tmp_path / "a.png"]) == 2
    assert "add --model network or --model mixture" in capsys.readouterr().err


def test_options_that_need_a_run_are_refused_without_one(
    run: Path, story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {
        "add --learn": [story],
        "is a folder": [run, "--learn"],
        "--with-model needs a run": [story, "--learn", "--with-model"],
        "--model needs a run": [story, "--learn", "--model", "mixture"],
        "--plot needs a run": [story, "--learn", "--plot", tmp_path / "a.png"],
    }
    for message, arguments in cases.items():
        assert called(["compress", *arguments]) == 2
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1
    assert sorted(names(story.parent)) == ["story.txt"]


def test_ppmd_is_a_row_where_its_package_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyppmd", None)
    assert "PPMd (7-Zip)" not in other_programs()
    fake = types.SimpleNamespace(compress=lambda data, **settings: data[: settings["max_order"]])
    monkeypatch.setitem(sys.modules, "pyppmd", fake)
    assert other_programs()["PPMd (7-Zip)"](bytes(100)) == bytes(6)
