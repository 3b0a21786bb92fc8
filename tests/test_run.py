"""The whole walk: stages in order, a run that can be repeated to the bit, numbers that are honest."""

from pathlib import Path

import numpy as np
import pytest

from unspool.errors import InputError
from unspool.evaluate import log_prob
from unspool.run import Judged, Planned, Prepared, RunConfig, Step, run
from unspool.schedule import Cosine, updates_within
from unspool.train import train

TEXT = "the time traveller spoke of time and space, and space and time listened.\n" * 60


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    path = tmp_path / "story.txt"
    path.write_text(TEXT, encoding="utf-8")
    return RunConfig(sources=(str(path),), hidden=24, B=4, tau=16, steps=40, validations=4, order=3)


def test_the_stages_come_in_the_order_of_the_walk(config: RunConfig) -> None:
    events = list(run(config))
    kinds = [type(event) for event in events]
    assert kinds == [Prepared, list, Planned, *[Step] * 40, Judged]
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.report.step for step in steps] == list(range(1, 41))
    assert [step.report.step for step in steps if step.valid] == [1, 5, 18, 40]
    valid = [step.valid.nats for step in steps if step.valid]
    assert valid[-1] < valid[0]
    judged = events[-1]
    assert isinstance(judged, Judged) and isinstance(events[0], Prepared)
    assert judged.test.nats == pytest.approx(-log_prob(judged.model, events[0].corpus.test.ids).mean())


def test_the_same_config_gives_the_same_bits(config: RunConfig) -> None:
    ends = [list(run(config))[-1] for _ in range(2)]
    assert all(isinstance(end, Judged) for end in ends)
    np.testing.assert_array_equal(ends[0].model.parameters.flat, ends[1].model.parameters.flat)
    assert ends[0].test == ends[1].test


def test_seconds_become_a_number_of_updates_that_is_written_down(config: RunConfig) -> None:
    timed = RunConfig(sources=config.sources, hidden=8, B=4, tau=16, seconds=0.05, validations=1, order=1)
    planned = next(event for event in run(timed) if isinstance(event, Planned))
    assert planned.config.steps is not None and planned.config.steps >= 1


def test_uniform_is_the_number_of_tokens(config: RunConfig) -> None:
    events = run(config)
    prepared, baselines = next(events), next(events)
    assert isinstance(prepared, Prepared) and isinstance(baselines, list)
    assert baselines[0].test.perplexity == pytest.approx(len(prepared.corpus.vocab))
    assert [each.name for each in baselines] == ["uniform", "1-grams", "2-grams", "3-grams"]


@pytest.mark.parametrize(
    "wrong", [{"seconds": 0}, {"seconds": float("nan")}, {"steps": 0}, {"seed": -1}, {"B": 0}]
)
def test_a_config_without_meaning_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        RunConfig(**wrong)


def test_the_cosine_rises_then_falls_to_its_floor() -> None:
    rate = Cosine(steps=200, warmup=20, floor=0.1)
    values = [rate(step) for step in range(201)]
    assert values[0] == pytest.approx(1 / 20)
    assert np.argmax(values) in (18, 19)
    assert (np.diff(values[20:]) < 0).all()
    assert values[200] == pytest.approx(0.1)
    with pytest.raises(InputError):
        Cosine(steps=0)


def test_a_hiccup_does_not_halve_the_run() -> None:
    times = iter(np.cumsum([0, 1, 1, 50, 1, 1]).tolist())
    assert updates_within(100, iter(range(99)), clock=lambda: float(next(times))) == 100


def test_rows_begin_anew_together() -> None:
    class Window:
        fresh = np.array([True, False])

    with pytest.raises(InputError, match="together"):
        next(train(_Nothing(), [Window()], None))


class _Nothing:
    def gradient(self) -> None:
        return None
