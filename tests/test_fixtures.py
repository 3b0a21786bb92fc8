"""What an earlier version wrote can be read and used, to the same answers; `fixtures.make` made it.

Each test works in a copy of `fixtures/files`: runs of every kind, finished and stopped on the way, compressed files,
a place in a text to go on from, a prepared text, graphs.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from command_line import call, must
from fixtures.make import (
    ANSWERS,
    ASKED,
    COMPRESSED,
    FILES,
    FITS,
    ONCE,
    OTHERS,
    PYTHON,
    STEPS,
    answer,
    put_in_place,
    step_of,
)
from golden.parameters import read_tensors
from golden.window import has_the_same_tanh
from unspool.compress import Container
from unspool.inspect.graph.export import from_json, to_json
from unspool.storage.tensors import read_arrays

BY_NUMPY = ("prepared", "backtest")
KEPT = json.loads(ANSWERS.read_text("utf-8"))


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the fixtures, and the folder of this process."""
    place = shutil.copytree(FILES, tmp_path / "files")
    put_in_place(place)
    monkeypatch.chdir(place)
    return place


def close(found: object, kept: object, rel: float) -> bool:
    """Compare the fields that were kept: figures by NumPy's tanh and least squares, whose last bits depend on the processor."""
    if isinstance(found, dict) and isinstance(kept, dict):
        return found.keys() >= kept.keys() and all(close(found[key], kept[key], rel) for key in kept)
    if isinstance(found, list) and isinstance(kept, list):
        return len(found) == len(kept) and all(close(*both, rel) for both in zip(found, kept, strict=True))
    return found == (pytest.approx(kept, rel=rel) if isinstance(kept, float) else kept)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.usefixtures("copy")
def test_a_run_of_an_earlier_version_gives_the_answers_it_gave(name: str) -> None:
    if name.startswith("subwords"):
        pytest.importorskip("tokenizers")
    found, kept = answer(ASKED[name]), KEPT[name]
    alike = close(found, kept, 1e-9 if has_the_same_tanh() else 1e-3) if name in BY_NUMPY else found == kept
    assert alike, f"unspool {ASKED[name]}\n gave {kept}\n now {found}"


def test_every_run_is_asked_and_no_answer_is_left_over() -> None:
    assert sorted(KEPT) == sorted(ASKED)
    assert {name.split(",")[0] for name in ASKED} == {*FITS, *OTHERS, *BY_NUMPY, PYTHON}


@pytest.mark.parametrize("kind", FITS)
def test_a_stopped_run_of_an_earlier_version_goes_on_to_the_same_bits(kind: str, copy: Path) -> None:
    stopped, whole = copy / f"{kind}-unfinished", copy / kind
    assert 0 < step_of(stopped / "training.safetensors") < STEPS
    before = read_tensors(whole / "model.safetensors").sha256
    assert read_tensors(stopped / "model.safetensors").sha256 != before
    must("resume", stopped.name)
    assert read_tensors(stopped / "model.safetensors").sha256 == before


@pytest.mark.parametrize("kind", [kind for kind in FITS if kind != "language"])
@pytest.mark.usefixtures("copy")
def test_a_stopped_run_of_an_earlier_version_answers_and_says_that_it_has_not_ended(kind: str) -> None:
    question = ASKED[kind].replace(f"predict {kind}", f"predict {kind}-unfinished")
    done = call(*question.split())
    assert done.code == 0 and "the fit has not ended" in done.err, done.err


@pytest.mark.parametrize("kind", FITS)
def test_a_finished_run_of_an_earlier_version_can_be_resumed_and_stays_as_it_is(
    kind: str, copy: Path
) -> None:
    before = (copy / kind / "model.safetensors").read_bytes()
    must("resume", kind)
    assert (copy / kind / "model.safetensors").read_bytes() == before


@pytest.mark.usefixtures("copy")
def test_a_run_from_python_holds_no_command_to_resume() -> None:
    done = call("resume", PYTHON)
    assert done.code == 2 and "it stores no command" in done.err


@pytest.mark.parametrize("kind", [kind for kind in FITS if kind != "language"])
def test_a_run_whose_data_has_changed_is_refused_by_resume(kind: str, copy: Path) -> None:
    data = FITS[kind].split()[2]
    with (copy / data).open("ab") as file:
        file.write(b"\n")
    done = call("resume", f"{kind}-unfinished")
    assert done.code == 2 and f"{data}: has changed" in done.err


@pytest.mark.parametrize(("packed", "original"), COMPRESSED.items())
def test_a_compressed_file_of_an_earlier_version_comes_back_to_the_byte(
    packed: str, original: str, copy: Path
) -> None:
    if packed in ("with-model.unspool", "stored.unspool", "learned.unspool"):  # none needs the run
        shutil.rmtree(copy / "language")
    must("decompress", packed, "--out", "again")
    assert (copy / "again").read_bytes() == (FILES / original).read_bytes()


@pytest.mark.parametrize("name", [name for name in COMPRESSED if name != "with-model.unspool"])
def test_a_file_is_compressed_to_the_bytes_of_an_earlier_version(name: str, copy: Path) -> None:
    must(*ONCE[name].split(), "--force")
    assert (copy / name).read_bytes() == (FILES / name).read_bytes()


def test_the_compressed_files_are_of_every_way(copy: Path) -> None:
    ways = {}
    for name in COMPRESSED:
        told = json.loads(must(*ONCE[name].split(), "--force", "--json"))
        ways[name] = told["way"], told["model_bytes"] > 0
    assert ways == {
        "network.unspool": ("network", False),
        "counted.unspool": ("counted", False),
        "stored.unspool": ("stored", False),
        "with-model.unspool": ("network", True),
        "learned.unspool": ("adaptive", False),
        "learned-run.unspool": ("adaptive", False),
        "learned-tokens.unspool": ("network", False),
    }
    learned = [Container.from_bytes((FILES / name).read_bytes()) for name in COMPRESSED if "learned" in name]
    assert [each.hidden > 0 for each in learned] == [True, False, False]  # a network that starts from nothing
    assert [each.learning is not None for each in learned] == [False, True, True]


def test_a_saved_state_is_the_state_that_is_saved_now(copy: Path) -> None:
    must(*ONCE["place.state"].split(), "--force")
    found, kept = (read_arrays(folder / "place.state")[0] for folder in (copy, FILES))
    assert kept and all((found[name] == array).all() for name, array in kept.items())
    assert set(found) - set(kept) == {"seen", "recent"}  # which an earlier version did not save


def test_a_prepared_text_of_an_earlier_version_is_found_and_not_prepared_again(copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (copy / "prepared").rglob("*")}
    must(*ONCE["prepared"].split())
    assert {path: path.stat().st_mtime_ns for path in (copy / "prepared").rglob("*")} == before
    assert len([path for path in before if path.is_dir()]) == 1


@pytest.mark.parametrize("name", ["graph.json", "folded.json"])
def test_a_graph_of_an_earlier_version_is_read_and_is_written_the_same(name: str, copy: Path) -> None:
    kept = (FILES / name).read_text("utf-8")
    must(*ONCE[name].split(), "--force")
    assert json.loads((copy / name).read_text("utf-8")) == json.loads(kept)
    structure = json.loads(kept)
    read = json.loads(to_json(from_json(kept)))
    assert read["folded"] == structure["folded"]


def test_no_fixture_names_a_place_of_the_machine_that_made_it() -> None:
    for path in [*FILES.rglob("*"), ANSWERS]:
        if path.is_file():
            found = re.search(rb"/(tmp|home|root|work|usr|Users|var)/[\w.-]+", path.read_bytes())
            assert not found, f"{path}: {found}"


def test_the_fixtures_stay_small() -> None:
    assert sum(path.stat().st_size for path in [*FILES.rglob("*"), ANSWERS] if path.is_file()) < 600_000
