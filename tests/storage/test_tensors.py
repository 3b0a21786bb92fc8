"""Files of a run: whole or refused, whatever byte is damaged."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unspool.cells import CELLS
from unspool.errors import FileError, InputError
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.storage.log import RunLog, read_log
from unspool.storage.run_folder import new_run, read_config, require_free_folder, write_config
from unspool.storage.tensors import read_arrays, read_json, write_arrays, write_json
from unspool.training.store import load_model, save_model


@pytest.mark.parametrize("cell", CELLS)
def test_a_model_comes_back_to_the_bit(cell: str, tmp_path: Path) -> None:
    config = ModelConfig(cell=cell, inputs=7, outputs=7, hidden=5, layers=2, embedding=5, tied=True)
    model = Model.initialise(config, seed=3)
    save_model(tmp_path / "m", model, {"step": 4})
    again, about = load_model(tmp_path / "m")
    assert again.config == config and about == {"step": 4}
    assert (again.parameters.flat == model.parameters.flat).all()


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    model = Model.initialise(ModelConfig(inputs=7, outputs=7, hidden=5), seed=3)
    for name in ("one", "two"):
        save_model(tmp_path / name, model, {"step": 4, "nats": 1.25})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.fixture(scope="module")
def arrays_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sealed") / "a"
    write_arrays(path, {"a": np.arange(40, dtype=np.float32), "b": np.zeros((2, 3), np.float32)}, {"step": 1})
    return path.read_bytes()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_flipped_bit_and_any_cut_is_refused(
    arrays_file: bytes, data: st.DataObject, tmp_path: Path
) -> None:
    at = data.draw(st.integers(0, len(arrays_file) - 1))
    if data.draw(st.booleans()):
        damaged = bytearray(arrays_file)
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        damaged = bytearray(arrays_file[:at])
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(FileError, match=r"damaged or edited|not a file"):
        read_arrays(tmp_path / "damaged")


def test_any_flipped_bit_of_the_config_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    write_json(path, {"format": "x", "text": "Zürich 時間", "numbers": [1, 2.5]})
    whole = path.read_bytes()
    assert read_json(path)["text"] == "Zürich 時間"
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with pytest.raises(FileError, match="damaged"):
            read_json(path)


def test_a_run_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    with suppress(RuntimeError), new_run(tmp_path / "run") as folder:
        (folder / "config.json").write_text("half")
        raise RuntimeError("on the way")
    assert list(tmp_path.iterdir()) == []
    with new_run(tmp_path / "run") as folder:
        write_config(folder, "language", {"steps": 3})
        assert not (tmp_path / "run").exists()
    assert read_config(tmp_path / "run", "language")["steps"] == 3
    with pytest.raises(InputError, match="kind 'language'"):
        read_config(tmp_path / "run", "classify")


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    require_free_folder(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="already exists"):
        require_free_folder(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(FileError, match=r"a run already exists here; choose another path$"):
        require_free_folder(tmp_path / "run")
    (tmp_path / "run" / "training.safetensors").write_bytes(b"")
    with pytest.raises(FileError, match="unspool resume"):
        require_free_folder(tmp_path / "run")
    with pytest.raises(FileError, match="already exists"):
        require_free_folder(tmp_path / "run" / "notes.txt")
    with pytest.raises(FileError, match="no such run"):
        read_config(tmp_path / "nowhere", "language")
    with pytest.raises(FileError, match="not a run"):
        read_config(tmp_path, "language")


def test_a_journal_goes_back_to_a_mark_and_knows_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with RunLog(path) as journal:
        journal.add({"step": 1, "text": "é"})
        mark = json.loads(json.dumps(journal.position()))
        journal.add({"step": 2})
    with path.open("ab") as file:
        file.write(b'{"cut of')
    assert [entry["step"] for entry in read_log(path)] == [1, 2]
    with RunLog(path) as journal:
        journal.truncate_to(mark)
        journal.add({"step": 3})
    assert [entry["step"] for entry in read_log(path)] == [1, 3]
    path.write_bytes(path.read_bytes().replace(b"1", b"7", 1))
    with RunLog(path) as journal, pytest.raises(FileError, match="damaged"):
        journal.truncate_to(mark)
