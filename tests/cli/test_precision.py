"""`--precision`: stored in the run, honoured by every command, and the same bits on every machine."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

import unspool
from unspool import (
    Forecaster,
    InputError,
    LanguageModel,
    SequenceClassifier,
    SequenceTranslator,
    choose_isa,
    kernel_info,
    log_prob,
)
from unspool.cli.main import main
from unspool.compress.codec import compress, decompress
from unspool.compress.container import Container
from unspool.errors import FileError
from unspool.kernels import native, native_bf16
from unspool.training import precision

TEXT = "she sells sea shells by the sea shore; the shells she sells are sea shells.\n" * 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bf16")
    (folder / "text.txt").write_text(TEXT)
    given = ["--steps", "30", "--hidden", "24", "--precision", "bf16", "--quiet"]
    assert main(["train", str(folder / "text.txt"), *given, "--out", str(folder / "run")]) == 0
    return folder


def test_a_run_stores_its_precision_and_the_command_that_repeats_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unspool.load(run / "run").fitted.model.backend is native_bf16
    assert main(["show", str(run / "run"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["repeat"]
    assert "--precision bf16" in again
    words = again.split()[1:]
    words[words.index("AGAIN")] = str(run / "again")
    assert main([*words, "--quiet"]) == 0
    first, second = (unspool.load(run / name).fitted.model.parameters.flat for name in ("run", "again"))
    assert (first == second).all()


def test_another_instruction_set_repeats_generates_and_decompresses_to_the_bit(run: Path) -> None:
    model = unspool.load(run / "run").fitted
    data, text = TEXT[:500].encode(), model.generate("she ", 40, seed=3)
    coded = compress(model, data).container
    assert coded.precision == "bf16"
    before = kernel_info()["bf16"]
    for isa in kernel_info()["available"]:
        choose_isa(isa)
        assert model.generate("she ", 40, seed=3) == text
        assert compress(model, data).container == coded
        assert decompress(Container.from_bytes(coded.to_bytes()), model) == data
    choose_isa(before)


def test_a_compressed_file_names_its_precision(run: Path) -> None:
    model = unspool.load(run / "run").fitted
    coded = compress(model, TEXT[:500].encode()).container
    content = coded.to_bytes()
    assert content[8:10] == bytes([2, 1]) and Container.from_bytes(content).precision == "bf16"
    other = LanguageModel(hidden=24, steps=2).fit(TEXT).fitted
    with pytest.raises(InputError, match="compressed with a model in bf16, and this one is in float32"):
        decompress(coded, other)
    later = content[:9] + bytes([7]) + content[10:-4]
    with pytest.raises(FileError, match="number 7 as the precision"):
        Container.from_bytes(later + zlib.crc32(later).to_bytes(4, "big"))
    plain = compress(other, TEXT[:500].encode()).container.to_bytes()
    assert plain[8] == 1, "files of float32 keep their format"


def test_a_model_is_not_evaluated_in_another_precision(run: Path) -> None:
    model = unspool.load(run / "run").fitted.model
    ids = np.arange(20, dtype=np.int32) % 5
    with pytest.raises(InputError, match="this model is in bf16 and would be computed in float32"):
        log_prob(model.on(native), ids)


def test_check_gradients_compares_bf16_with_float64_by_norm(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-gradients", str(run / "run"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agree"] and all(each["precision"] == "bf16" for each in found["parameters"])
    assert all(0 < each["distance"] < 0.1 for each in found["parameters"])
    assert main(["check-gradients", str(run / "run")]) == 0
    assert "bf16 ~ float64" in capsys.readouterr().out


def test_check_gradients_refuses_another_precision_than_that_of_the_run(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-gradients", str(run / "run"), "--precision", "float32"]) == 2
    assert "a run in bf16, and --precision is float32" in capsys.readouterr().err


def test_auto_is_settled_before_training(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [
        "train",
        str(run / "text.txt"),
        "--steps",
        "2",
        "--hidden",
        "16",
        "--precision",
        "auto",
        "--quiet",
    ]
    for isa, faster, expected in (
        ("avx512", 9.0, "float32"),
        ("amx", 0.5, "float32"),
        ("amx", 9.0, "bf16"),
        ("avx512_bf16", 0.5, "float32"),
        ("avx512_bf16", 9.0, "bf16"),
    ):
        rates = iter([1.0, faster, 1.0, faster])
        monkeypatch.setattr(precision, "kernel_info", lambda isa=isa: {"bf16": isa})
        monkeypatch.setattr(precision, "measure_update_rate", lambda *_, rates=rates: next(rates))
        out = tmp_path / f"{isa}{faster}"
        assert main([*given, "--out", str(out)]) == 0
        assert json.loads((out / "config.json").read_text())["run"]["recipe"]["precision"] == expected


def test_a_window_is_measured_in_both_precisions_where_there_is_an_instruction_for_bf16(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "kernel_info", lambda: {"bf16": "amx"})
    monkeypatch.setattr(precision, "SECONDS", 0.0)
    config = unspool.ModelConfig(inputs=5, outputs=5, hidden=8)
    assert precision.faster_precision(config, 2, 3) in ("float32", "bf16")


def test_estimators_have_a_precision_and_save_it(tmp_path: Path) -> None:
    X = [np.random.default_rng(i).standard_normal((5, 2)).astype(np.float32) for i in range(12)]
    classes = SequenceClassifier(precision="bf16", hidden=8, steps=3).fit(X, ["a", "b"] * 6)
    assert classes.network_.backend is native_bf16
    classes.save(tmp_path / "classes")
    assert SequenceClassifier.load(tmp_path / "classes").network_.encoder.backend is native_bf16
    pairs = SequenceTranslator(precision="bf16", hidden=8, steps=3).fit(
        ["ab", "ba", "aab"], ["ba", "ab", "baa"]
    )
    assert pairs.network_.decoder is not None and pairs.network_.decoder.backend is native_bf16
    series = Forecaster(precision="bf16", hidden=4, steps=3, members=1, horizon=2).fit(
        np.sin(np.arange(80.0))
    )
    series.save(tmp_path / "series")
    loaded = Forecaster.load(tmp_path / "series")
    assert loaded.precision == "bf16"
    assert (loaded.predict() == series.predict()).all()
    with pytest.raises(InputError, match="precision is 'auto'"):
        LanguageModel(precision="auto", steps=1).fit(TEXT)  # type: ignore[arg-type]


def test_a_fit_is_resumed_in_its_precision(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{'ab' * (i % 3 + 1)}\t{'ba' * (i % 3 + 1)}\n" for i in range(30))
    )
    out = tmp_path / "fit"
    given = ["--steps", "3", "--hidden", "8", "--precision", "auto", "--out", str(out), "--quiet"]
    assert main(["translate", "fit", str(tmp_path / "pairs.tsv"), *given]) == 0
    content = json.loads((out / "config.json").read_text())
    assert content["command"]["options"]["precision"] in ("float32", "bf16")
    assert main(["resume", str(out), "--quiet"]) == 0


@pytest.mark.parametrize(
    ("name", "meant"), [("bfloat16", "bf16"), ("fp32", "float32"), ("BF16", "bf16"), ("fp16", None)]
)
def test_other_names_of_precisions_are_known(
    name: str, meant: str | None, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(run / "text.txt"), "--precision", name]) == 2
    said = capsys.readouterr().err
    assert (f'Did you mean "{meant}"?' in said) if meant else ("Did you mean" not in said)


def test_inspect_and_show_name_the_precision(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(run / "run"), str(run / "text.txt"), "--out", str(tmp_path / "report")]) == 0
    assert "products in bf16" in capsys.readouterr().out
    assert '"precision":"bf16"' in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    content = json.loads((run / "run" / "config.json").read_text())
    assert main(["show", str(run / "run")]) == 0
    assert f"bf16 {content['provenance']['bf16']}" in capsys.readouterr().out


def test_an_unknown_precision_is_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(run / "text.txt"), "--precision", "fp8"]) == 2
    said = capsys.readouterr().err
    assert "fp8" in said and "bf16" in said
