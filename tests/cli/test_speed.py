"""What a terminal says about the speed of a run: nothing before it was measured, and no swings."""

import io
from pathlib import Path

from rich.console import Console

from unspool.cli.views.speed import Speed
from unspool.cli.views.training import View
from unspool.tasks.language.run import run
from unspool.training.events import RunConfig


def test_no_speed_is_shown_until_it_was_measured() -> None:
    speed = Speed(total=100, tokens=10)
    assert [speed.line(step, float(step)) for step in (1, 2)] == ["", ""]
    assert speed.line(3, 3.0) == "  97 s left         10 tokens/s"


def test_the_first_line_of_a_run_has_no_speed(tmp_path: Path) -> None:
    path, stream = tmp_path / "story.txt", io.StringIO()
    path.write_text("the time traveller spoke of time and space.\n" * 60)
    given = {"hidden": 8, "B": 4, "tau": 16, "steps": 20}
    with View(Console(file=stream, width=200)) as view:
        for event in run(RunConfig(sources=(str(path),), given=given, validations=3)):
            view.show(event)
    lines = [line for line in stream.getvalue().splitlines() if "/20 " in line]
    assert "s left" not in lines[0] and "tokens/s" not in lines[0] and "valid" in lines[0]
    assert "s left" in lines[-1] and "tokens/s" in lines[-1]
    assert "validation split (it also selected the model: slightly optimistic)" in stream.getvalue()


def reported(changes: dict[int, int], steps: int = 2000) -> list[str]:
    """What is reported over a run of 1,000 planned updates whose plan is changed after some of them."""
    speed, lines = Speed(total=1000, tokens=1), []
    for step in range(1, steps):
        if (line := speed.lasting_change(step)) is not None:
            lines.append(line)
        if step in changes:
            speed.change(step, changes[step])
    return lines


def test_a_swing_back_and_forth_is_not_reported() -> None:
    assert reported({200: 700, 240: 1010, 700: 1100, 720: 980}) == []


def test_a_lasting_change_is_reported_once_and_plainly() -> None:
    assert reported({200: 700, 450: 720, 650: 690}) == [
        "this machine is slower than measured at the start: 700 updates fit into the time, not 1,000"
    ]
    assert len(reported({100: 1500, 800: 1900})) == 2


def test_a_small_change_is_not_reported() -> None:
    assert reported({200: 900}) == []
