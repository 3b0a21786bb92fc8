"""Absurd sizes are refused at once, in one line; what grows with the input grows in proportion to it."""

import cProfile
import math
import pstats
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from unspool.cli.main import main
from unspool.data.split import split_stratified
from unspool.data.tokens.subword import SubwordTokenizer
from unspool.errors import InputError
from unspool.evaluation.scores import score
from unspool.kernels import memory
from unspool.tasks import SequenceTranslator
from unspool.turing.builtin import find
from unspool.turing.compile import compile_machine
from unspool.turing.run import side_by_side

HUGE = (10**12, 10**30)
TRAIN = ["train", "text", "--out", "run", "--steps", "1"]
FIT = ["--out", "run", "--steps", "1"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    (folder / "classes.tsv").write_text("text\tlabel\n" + "abc\tx\nbca\ty\n" * 10)
    (folder / "pairs.tsv").write_text("abc\tcba\nbca\tacb\n" * 10)
    values = (f"{math.sin(i) + i / 50:.4f}" for i in range(120))
    (folder / "series.csv").write_text("v\n" + "\n".join(values) + "\n")
    return folder


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *((TRAIN, f"--{name}") for name in ("hidden", "layers", "embedding", "batch", "window", "steps", "warmup")),
        (["stats", "text"], "--order"),
        *((["graph"], f"--{name}") for name in ("tau", "layers")),
        *((["check-gradients"], f"--{name}") for name in ("hidden", "layers", "vocabulary", "steps", "rows", "values")),
        *((["classify", "fit", "classes.tsv", *FIT], f"--{name}") for name in ("hidden", "layers", "embedding")),
        *((["translate", "fit", "pairs.tsv", *FIT], f"--{name}") for name in ("hidden", "layers", "steps", "beam")),
        *((["forecast", "fit", "series.csv", *FIT], f"--{name}") for name in ("hidden", "members", "window", "horizon")),
    ],
)  # fmt: skip
def test_absurd_sizes_are_one_line_and_exit_code_two(
    command: list[str],
    option: str,
    inputs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(inputs)
    if option in command:
        command = command[: command.index(option)]
    for size in HUGE:
        code = main([*command, option, str(size)])
        error = capsys.readouterr().err
        assert code == 2, error
        assert len(error.splitlines()) == 1 and error.startswith("unspool: "), error
        assert not Path("run").exists()


def test_more_validations_than_updates_are_one_after_each(
    inputs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = [
        "train",
        str(inputs / "text"),
        "--out",
        str(tmp_path / "run"),
        "--steps",
        "2",
        "--hidden",
        "4",
    ]
    assert main([*arguments, "--validations", str(10**6), "--json"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("size", ["256", "999999999999", "9" * 5000])
def test_a_number_of_pieces_that_would_abort_the_process_is_refused(size: str) -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(InputError, match="expected 257 to 1,000,000 pieces"):
        SubwordTokenizer(f"subword:{size}")


def calls(work: Callable[[], object]) -> int:
    """Count the Python function calls of some work."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def test_a_tape_twice_as_long_takes_about_twice_as_many_calls() -> None:
    network = compile_machine(find("builtin:increment"))
    few, many = (calls(lambda n=n: list(side_by_side(network, "1" * n, 10**6))) for n in (100, 200))
    assert many < 2.2 * few


def test_long_tapes_are_still_decoded_from_the_numbers_of_the_network() -> None:
    for name, word in (("increment", "1" * 300), ("palindrome", "abba" * 10)):
        pairs = list(side_by_side(compile_machine(find(f"builtin:{name}")), word, 10**6))
        assert all(pair.agree for pair in pairs)
        assert pairs[0].network.right == word


def test_twice_as_many_classes_take_about_twice_as_much_work_to_hold_out_and_to_score() -> None:
    def lines(K: int) -> int:
        labels, count = [f"class {i}" for i in range(K)] * 2, 0

        def see(frame: object, event: str, argument: object) -> Callable[..., object]:
            nonlocal count
            count += event == "line"
            return see

        before = sys.gettrace()
        sys.settrace(see)
        try:
            split_stratified(labels, 0.2, seed=0)
        finally:
            sys.settrace(before)
        return count

    assert lines(400) < 2.3 * lines(200)
    names = [f"class {i:05}" for i in range(5_000)]
    scores = score(names, [names[0], *names[1:]], names)
    assert len(scores.cells) == 5_000
    content = scores.to_json()
    assert content["confusion"] is None and content["cells"][1] == [1, 1, 1]


def test_long_pairs_are_refused_by_the_memory_that_both_sides_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2**28)
    model = SequenceTranslator(hidden=64, attention="general", steps=1)
    with pytest.raises(
        InputError, match=r"sequence 2 has 40,001 steps, and a batch of 2 such rows needs about"
    ):
        model.fit(["abc", "ab"], ["cba", "ab" * 20_000])
