"""Every run says what it was made with, and no parameter depends on that."""

import hashlib
import platform
from pathlib import Path

import numpy as np
import pytest

from unspool import __version__
from unspool.kernels.native import kernel_info
from unspool.storage import run_folder, tensors
from unspool.tasks import registry
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.forecast.forecaster import Forecaster
from unspool.tasks.language.run import resume, run
from unspool.training.events import CorpusReady, RunConfig
from unspool.training.provenance import provenance

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 30
SMALL = {"hidden": 8, "B": 4, "tau": 16, "steps": 3}


def made_with(run: Path) -> dict[str, object]:
    return tensors.read_json(run / run_folder.CONFIG)["provenance"]


def check(found: dict[str, object]) -> None:
    assert found["unspool"] == __version__ and found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__ and found["cpu"] and found["platform"] == platform.platform()
    assert found["bf16"] == kernel_info()["bf16"]
    assert found["isa"] == kernel_info()["isa"] and found["threads"] == kernel_info()["threads"]
    assert str(found["started"])[:2] == "20" and "T" in str(found["started"])


def test_a_language_model_names_its_text_by_the_hash_that_sha256sum_prints(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text(TEXT[:500])
    list(run(RunConfig((str(tmp_path / "a.txt"),), given=SMALL), out=tmp_path / "one"))
    found = made_with(tmp_path / "one")
    check(found)
    assert found["data_sha256"] == hashlib.sha256(TEXT.encode()).hexdigest() and "valid_sha256" not in found
    config = RunConfig((str(tmp_path / "a.txt"),), (str(tmp_path / "b.txt"),), given=SMALL)
    list(run(config, out=tmp_path / "two"))
    assert made_with(tmp_path / "two")["valid_sha256"] == hashlib.sha256(TEXT[:500].encode()).hexdigest()


def test_a_text_that_changes_after_it_was_read_gets_no_hash(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    for event in run(RunConfig((str(path),), given=SMALL), out=tmp_path / "run"):
        if isinstance(event, CorpusReady):
            path.write_text(TEXT + "more")
    assert made_with(tmp_path / "run")["data_sha256"] is None


def test_a_run_without_it_is_loaded_and_resumed_to_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    config = RunConfig((str(tmp_path / "a.txt"),), given=SMALL)
    list(run(config, out=tmp_path / "one"))
    monkeypatch.setattr("unspool.training.provenance._cpu", lambda: "another one")
    list(run(config, out=tmp_path / "two"))
    assert made_with(tmp_path / "two")["cpu"] == "another one"
    model = (tmp_path / "one" / run_folder.MODEL).read_bytes()
    assert model == (tmp_path / "two" / run_folder.MODEL).read_bytes()
    content = run_folder.read_config(tmp_path / "one", "language")
    del content["provenance"]
    run_folder.write_config(tmp_path / "one", "language", content)
    list(resume(tmp_path / "one"))
    assert model == (tmp_path / "one" / run_folder.MODEL).read_bytes()


def test_fits_of_sequences_have_it_kept_while_fitted_or_saved_afterwards(tmp_path: Path) -> None:
    X, y = ["aa", "ab", "ba", "bb"], ["x", "y", "y", "x"]
    fitted = SequenceClassifier(hidden=4, epochs=1).fit(X, y, run=tmp_path / "kept")
    fitted.save(tmp_path / "saved")
    for name in ("kept", "saved"):
        check(made_with(tmp_path / name))
        assert len(str(made_with(tmp_path / name)["data_sha256"])) == 64
    other = SequenceClassifier(hidden=4, epochs=1).fit(X, ["y", "x", "x", "y"])
    assert other.provenance_["data_sha256"] != fitted.provenance_["data_sha256"]
    # Loaded and saved again, it is still that of the fit.
    registry.load(tmp_path / "kept").save(tmp_path / "copy")
    assert made_with(tmp_path / "copy") == made_with(tmp_path / "kept")
    old = tensors.read_json(tmp_path / "kept" / run_folder.CONFIG)
    del old["provenance"]
    tensors.write_json(tmp_path / "kept" / run_folder.CONFIG, old)
    assert registry.load(tmp_path / "kept").predict(["aa"]).shape == (1,)


def test_forecasts_have_it(tmp_path: Path) -> None:
    values = np.sin(np.arange(60) / 3)
    model = Forecaster(horizon=2, steps=3, members=1, hidden=4).fit(values)
    model.save(tmp_path / "run")
    found = made_with(tmp_path / "run")
    check(found)
    assert found["data_sha256"] == hashlib.sha256(values.tobytes()).hexdigest()
    carry_after = Forecaster.load(tmp_path / "run")
    assert carry_after.provenance_ == found
    old = tensors.read_json(tmp_path / "run" / run_folder.CONFIG)
    del old["provenance"]
    tensors.write_json(tmp_path / "run" / run_folder.CONFIG, old)
    assert len(Forecaster.load(tmp_path / "run").predict()) == 2


def test_it_is_plain_values() -> None:
    assert all(isinstance(value, str | int | None) for value in provenance(None).values())
