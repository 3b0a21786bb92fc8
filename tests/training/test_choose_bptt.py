"""`bptt auto`: the bias of what is trained, the shortest window within the tolerance, and a run that can be repeated."""

import json
import shlex
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unspool import LanguageModel, Model, ModelConfig
from unspool.cells import CELLS
from unspool.cli import main as cli
from unspool.errors import InputError
from unspool.gradients.by_lag import gradient_by_lag
from unspool.gradients.truncation import Truncation
from unspool.kernels.native import set_threads
from unspool.storage import run_folder
from unspool.tasks.language.run import model_config, resume, run
from unspool.training.choose_bptt import bias_of, measure_bias, probe_recipe, shortest, truncated_gradient
from unspool.training.events import Evaluated, RunConfig, TrainingPlanned
from unspool.training.loop import train
from unspool.training.recipe import choose_recipe

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 60
SMALL = {"hidden": 12, "B": 4, "steps": 6}


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "story.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unspool.training.choose_bptt.FEWEST", 16)


def window(tau: int, B: int = 2) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 5, (tau + 1, B)).astype(np.int32)


@pytest.mark.parametrize("cell", CELLS)
def test_the_bias_is_that_of_the_gradient_by_lag(cell: str) -> None:
    """With one loss, at the last step, windows of K steps look back exactly as far as `unspool.gradients.by_lag` says."""
    model = Model.initialise(ModelConfig(cell=cell, inputs=5, outputs=5, hidden=7, layers=2), seed=0)
    ids = window(32)
    y = np.full((32, 2), -1, np.int32)
    y[-1] = ids[-1]
    by_lag = gradient_by_lag(model, ids[:-1], y)
    found = bias_of(model, ids[:-1], y, [4, 8, 16, 32])
    for K in (4, 8, 16):
        assert found[K] == pytest.approx(by_lag.bias[K], rel=1e-3)
    assert found[32] == 0


def test_the_gradient_is_the_one_that_truncated_training_follows() -> None:
    """Windows of 4 steps: the sum of the updates of plain SGD at a rate of almost nothing."""
    from unspool import Optimiser, OptimiserConfig
    from unspool.data.batches.text_windows import Batch

    model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=6), seed=0)
    before = {name: np.array(model.parameters[name], np.float64) for name in model.parameters.shapes}
    ids = window(16)
    expected = truncated_gradient(model, ids[:-1], ids[1:], 4)
    sgd = Optimiser(OptimiserConfig(kind="sgd", learning_rate=1e-3, momentum=0.0, clip=0.0))
    windows = [Batch(ids[:-1], ids[1:], True)]
    for _ in train(model, windows, sgd, bptt=Truncation.parse("truncated:4")):
        pass
    moved = [
        (before[name] - model.parameters[name]).reshape(-1) / 1e-3 / 4
        for name in model.parameters.shapes
        if name.startswith("layer")
    ]
    np.testing.assert_allclose(np.concatenate(moved), expected, atol=2e-3)


@pytest.mark.usefixtures("_signals")
def test_a_run_writes_down_the_chosen_window_and_is_repeated_by_its_command(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    arguments = [str(story), "--hidden", "12", "--batch", "4", "--steps", "6", "--validations", "2", "--json"]
    call("train", *arguments, "--bptt", "auto", "--out", str(one))
    content = json.loads(capsys.readouterr().out)
    chosen = content["config"]["bptt"]
    K = int(chosen.removeprefix("truncated:"))
    bias = {int(key): value for key, value in content["bptt_bias"].items()}
    assert sorted(bias) == [8, 16, 32, 64, 128, 256] and shortest(bias, 0.1) == K
    assert content["config"]["recipe"]["tau"] == K
    assert run_folder.read_config(one, "language")["run"]["bptt"] == chosen
    command = shlex.split(content["repeat"])
    assert command[command.index("--bptt") + 1] == chosen
    call(*command[1:-1], str(two))
    assert (one / run_folder.MODEL).read_bytes() == (two / run_folder.MODEL).read_bytes()
    printed = capsys.readouterr().out
    assert "truncation " not in printed  # nothing was measured


@pytest.fixture
def _signals() -> Iterator[None]:
    """Trainings heed signals; the tests after them should not."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def call(*arguments: str) -> None:
    cli.app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")


def test_the_choice_depends_on_text_and_seed_alone(story: Path) -> None:
    config = RunConfig((str(story),), given=SMALL, bptt="auto", validations=2)
    found = []
    for threads in (1, 2):
        set_threads(threads)
        events = list(run(config))
        found.append((next(e for e in events if isinstance(e, TrainingPlanned)), events[-1]))
    (planned, end), (carry_after, same) = found
    assert planned.bias == carry_after.bias and planned.config == carry_after.config
    assert isinstance(end, Evaluated) and isinstance(same, Evaluated) and end.measure == same.measure
    other = next(e for e in run(replace(config, seed=1)) if isinstance(e, TrainingPlanned))
    assert other.bias != planned.bias


def test_a_resumed_run_still_has_its_bias(story: Path, tmp_path: Path) -> None:
    config = RunConfig((str(story),), given=SMALL, bptt="auto", validations=2)
    first = next(e for e in list(run(config, out=tmp_path / "run")) if isinstance(e, TrainingPlanned))
    carry_after = next(e for e in resume(tmp_path / "run") if isinstance(e, TrainingPlanned))
    assert carry_after.bias == first.bias and carry_after.config == first.config


def test_a_larger_tolerance_never_chooses_a_longer_window(story: Path) -> None:
    bias = {8: 0.4, 16: 0.2, 32: 0.06, 64: 0.07, 128: 0.02, 256: 0.01}
    assert [shortest(bias, t) for t in (0.005, 0.015, 0.05, 0.065, 0.1, 0.3, 0.5)] == [
        256,
        256,
        128,
        128,
        32,
        16,
        8,
    ]
    loose = LanguageModel(bptt="auto", bptt_tolerance=0.9, hidden=8, batch_size=4, steps=2).fit(story)
    tight = LanguageModel(bptt="auto", bptt_tolerance=1e-6, hidden=8, batch_size=4, steps=2).fit(story)
    assert (loose.config_.bptt, tight.config_.bptt) == ("truncated:8", "truncated:256")
    # A longer window has fewer rows, unless the user gives them.
    free = LanguageModel(bptt="auto", bptt_tolerance=1e-6, hidden=8, steps=2).fit(TEXT * 3)
    assert free.config_.fixed.batch_size == 4 and tight.config_.fixed.batch_size == 4


def test_a_short_text_tries_short_windows_and_a_tiny_one_is_refused() -> None:
    model = Model.initialise(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=4), seed=0)

    def bias(tokens: int) -> dict[int, float]:
        from unspool.training.loop import Report

        ids = np.arange(tokens, dtype=np.int32) % 5
        return measure_bias(model, (Report(step, 1.0, 1.0, 1, []) for step in range(1, 30)), 8, ids, 0)

    assert sorted(bias(200)) == [8, 16, 32, 64]
    with pytest.raises(InputError, match="text too short for bptt auto"):
        bias(12)
    assert probe_recipe(40_000, 10_000, {}, 3).tied
    assert probe_recipe(60, 10_000, {"hidden": 900}, 3).hidden == 128
    assert [probe_recipe(60, 10_000, {"steps": n}, 3).steps for n in (6, 400, 9999)] == [16, 100, 160]


@pytest.mark.parametrize("vocabulary", [60, 40_000])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cell": "lstm", "layers": 2, "h0": "learned"},
        {"activation": "relu", "hidden": 300},
        {"pattern": "10.4", "feedback": "logits", "h0": "learned"},
        {"embedding": 300, "hidden": 512},
        {"embedding": 300, "hidden": 300},
        {"embedding": 40},
        {"embedding": 0, "hidden": 200},
        {"tied": True, "hidden": 300},
        {"tied": True, "embedding": 40},
        {"tied": False, "hidden": 300},
    ],
)
def test_the_probe_is_the_network_of_the_run_but_for_sizes_and_dropout(
    given: dict[str, object], vocabulary: int
) -> None:
    given = given | {"steps": 400, "dropout": 0.3, "recurrent_dropout": 0.0}
    probe = model_config(vocabulary, probe_recipe(vocabulary, 10**6, given, 3))
    recipe = choose_recipe(
        vocabulary=vocabulary, tokens=10**6, seconds=1.0, measure=lambda _: 1.0, given=given
    )
    trained = model_config(vocabulary, recipe)
    assert max(probe.hidden, probe.embedding) <= 128 and probe.dropout == 0
    assert (probe.embedding > 0) == (trained.embedding > 0)
    sizes = {"hidden": trained.hidden, "embedding": trained.embedding, "dropout": trained.dropout}
    assert replace(probe, **sizes) == trained


def test_a_network_that_feeds_logits_back_chooses_its_window_too(story: Path) -> None:
    given = SMALL | {"pattern": "10.4", "feedback": "logits", "h0": "learned"}
    planned = next(
        e for e in run(RunConfig((str(story),), given=given, bptt="auto")) if isinstance(e, TrainingPlanned)
    )
    assert planned.bias is not None and all(np.isfinite(each) for each in planned.bias.values())
    plain = RunConfig((str(story),), given=SMALL | {"cell": "elman"}, bptt="auto")
    assert planned.bias != next(e for e in run(plain) if isinstance(e, TrainingPlanned)).bias


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batches": "random"}, "sequential"),
        ({"given": {"tau": 16}}, "leave the window out"),
        ({"bptt_tolerance": 0.0}, "bptt_tolerance is 0.0"),
        ({"bptt_tolerance": "x"}, "bptt_tolerance is 'x'; expected a number above 0"),
        (
            {"bptt": "full", "bptt_tolerance": 7.0},
            "bptt_tolerance is 7.0; expected a number above 0 and below 1",
        ),
        ({"bptt": "full", "bptt_tolerance": True}, "bptt_tolerance is True"),
        ({"bptt": 3}, "bptt is 3; expected full, truncated:K"),
        ({"given": None}, "given is None; expected a dict"),
        ({"order": 101}, "order is 101; expected a whole number of at most 100"),
        ({"bptt": "automatic"}, "a run also takes auto"),
    ],
)
def test_what_contradicts_the_choice_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunConfig(**{"bptt": "auto"} | wrong)  # type: ignore[arg-type]


def test_the_short_way_has_the_options_of_a_run(story: Path) -> None:
    options = {
        "bptt": "truncated:4",
        "recompute": "sqrt",
        "optimiser": "sgd",
        "min_freq": 2,
        "split": (0.8, 0.1, 0.1),
    }
    model = LanguageModel(hidden=8, batch_size=4, steps=2, learning_rate=0.1, **options).fit(story)
    config = model.config_
    assert (config.bptt, config.recompute, config.optimiser, config.fixed.window) == (
        "truncated:4",
        "sqrt",
        "sgd",
        4,
    )
    assert config.settings.min_freq == 2 and config.settings.split == (0.8, 0.1, 0.1)
    assert LanguageModel(**model.get_params()).get_params() == model.get_params()
    assert model.set_params(split=None).split is None
