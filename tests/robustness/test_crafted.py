"""Crafted files: the right checksum and wrong contents are refused with an error of ours, in little memory."""

import os
import shutil
import sys
from pathlib import Path

import pytest

import crafted
from unspool.compress.container import Container
from unspool.errors import FileError, InputError
from unspool.kernels.native import set_threads
from unspool.storage.schema import parse_json
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.language.estimator import LanguageModel
from unspool.tasks.registry import load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of forked children")
QUICK = 30
"""How many cases are run here; bench/crafted.py runs all of them."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    set_threads(1)
    place = tmp_path_factory.mktemp("crafted")
    with open(os.devnull, "w") as nothing, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", nothing)
        crafted.make_files(place / "work")
    shutil.copytree(place / "work", place / "pristine")
    return place / "work", place / "pristine"


def test_crafted_files_are_refused_or_work(files: tuple[Path, Path]) -> None:
    every = list(crafted.cases(files[0]))
    chosen = every[7 :: len(every) // QUICK]
    ended = {(case.file, case.field, case.value): crafted.craft(*files, case) for case in chosen}
    assert not {case: end for case, end in ended.items() if not crafted.is_good(end)}
    assert sum(end.startswith("refused") for end in ended.values()) > QUICK / 3
    assert any(end == "done" for end in ended.values())


FIELDS = {
    ("language/config.json", "kind"): "resume",
    ("language/vocab.json", "tokens.0"): "resume",
    ("language/config.json", "run.recipe.layers"): "resume",
    ("language/config.json", "model.hidden"): "generate",
    ("language/training.safetensors", "__metadata__.unspool.batches.generator"): "resume",
    ("classify/config.json", "learned.classes_.dtype"): "classify",
    ("translate/config.json", "learned.longest_"): "translate",
    ("regress/config.json", "command"): "regress",
    ("regress/config.json", "columns.features"): "regress",
    ("generate-from/config.json", "features"): "generate-from",
    ("forecast/config.json", "columns.y.members"): "forecast",
    ("forecast/config.json", "clock.step"): "forecast",
}


@pytest.mark.parametrize(("file", "field"), FIELDS)
def test_a_field_that_claims_too_much_is_refused_by_name(
    file: str, field: str, files: tuple[Path, Path]
) -> None:
    wrong = {"{}", str(2**62)}
    found = [
        case
        for case in crafted.cases(files[0])
        if (case.file, case.field) == (file, field)
        and case.value in wrong
        and case.arguments[0] == FIELDS[file, field]
    ]
    assert len(found) == 2
    for case in found:
        assert crafted.craft(*files, case).startswith("refused: ")


def test_a_regression_without_the_shape_of_its_answers_is_refused(files: tuple[Path, Path]) -> None:
    (case,) = (
        case
        for case in crafted.cases(files[0])
        if (case.file, case.field, case.value) == ("regress/config.json", "learned.single_", "missing")
    )
    assert "single_ does not fit" in crafted.craft(*files, case)


def test_json_of_many_levels_and_numbers_that_are_none_are_refused() -> None:
    for text in ("[" * 200_000, "[" * 100 + "]" * 100, "NaN", "9" * 5000, "{", b"\xff"):
        with pytest.raises(FileError):
            parse_json(text, "x.json")


def test_a_compressed_file_cannot_claim_more_than_fits_into_memory(files: tuple[Path, Path]) -> None:
    kept = Container.from_bytes((files[1] / "text.txt.unspool").read_bytes())
    for claim in ({"tokens": 2**40, "length": 2**40}, {"tokens": 2**40}, {"length": 2**62}):
        with pytest.raises(
            FileError, match=r"damaged or manipulated: 1,099|the header gives .* bytes of memory are needed"
        ):
            Container.from_bytes(Container(**{**vars(kept), **claim}).to_bytes())


def test_a_compressed_file_may_be_many_thousand_times_smaller_than_the_original() -> None:
    small = Container("network", b"m" * 8, b"s" * 16, 1 << 25, 1 << 25, "a.txt", "", b"", b"bits")
    assert Container.from_bytes(small.to_bytes()) == small


def test_an_npz_that_claims_two_to_the_60_values_is_refused(files: tuple[Path, Path]) -> None:
    claims = [case for case in crafted.cases(files[0]) if case.file == "x.npz" and str(2**60) in case.value]
    assert claims
    for case in claims:
        assert crafted.craft(*files, case).startswith("refused: "), case


def test_pristine_files_load(files: tuple[Path, Path]) -> None:
    assert load(files[1] / "classify").predict(["abab"])[0] in ("x", "y")
    assert isinstance(load(files[1] / "language"), LanguageModel)
    with pytest.raises(InputError, match="'language'"):
        SequenceClassifier.load(files[1] / "language")
