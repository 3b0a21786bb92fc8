"""What a terminal shows of the final training on the whole text: a bar, or in a file a line at every tenth of the updates."""

from collections.abc import Callable

from rich.console import Console
from rich.progress import Progress

from unspool.cli.progress import counting_bar
from unspool.cli.views.speed import Speed
from unspool.training.events import Event, FinalPlanned, FinalStep, FinalTrained

LINES = 10
"""How many lines are printed in a file."""


class FinalView:
    """Draws the events of the final training; `stage` prints the first line of a stage, `line` another one."""

    def __init__(
        self,
        console: Console,
        stage: Callable[[str, str], None],
        line: Callable[[str, str], None],
        indent: int,
    ) -> None:
        self.console, self.stage, self.line, self.indent = console, stage, line, indent
        self.bar: Progress | None = None
        self.speed = Speed(0, 0)

    def show(self, event: Event, tokens: int) -> bool:
        """Draw one event, if it belongs to the final training; `tokens` is the number of tokens of an update."""
        match event:
            case FinalPlanned():
                self._begin(event, tokens)
            case FinalStep():
                self._step(event)
            case FinalTrained():
                self._end(event)
            case _:
                return False
        return True

    def _begin(self, event: FinalPlanned, tokens: int) -> None:
        self.speed = Speed(event.steps, tokens)
        self.bar = counting_bar(self.console, "{task.completed:,}/{task.total:,} updates", indent=self.indent)
        self.bar.start()
        self.bar.add_task("", total=event.steps, completed=event.step)
        rest = f", from update {event.step:,} on" if event.step else ""
        what = f"the same recipe on the whole text, {event.tokens:,} tokens: {event.steps:,} updates{rest}"
        self.stage("final", what)

    def _step(self, event: FinalStep) -> None:
        done, total = event.step, event.steps
        assert self.bar is not None
        self.bar.update(self.bar.task_ids[0], completed=done)
        rate = self.speed.line(done, event.seconds)
        if self.bar.disable and (done * LINES // total > (done - 1) * LINES // total):
            self.line(f"{done:6,}/{total:,}  {rate:31}  train {event.train:.3f}", "")

    def _end(self, event: FinalTrained) -> None:
        self.stop()
        self.line(
            f"the run's model is now the one of the whole text, after {event.step:,} updates; the figures above are those of "
            "the measured model: none of the text is left to measure the final one",
            "yellow",
        )

    def stop(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
