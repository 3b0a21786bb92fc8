"""What a terminal shows of a run: the stages as they come, a live curve in training, plain lines in a file."""

import math
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from unspool.data.batches import Batch
from unspool.data.corpus import Corpus
from unspool.draw.chart import chart
from unspool.measure import Measure
from unspool.model import Model
from unspool.run import Baseline, Event, Judged, Planned, Prepared, RunConfig, Step, lines_to_cross
from unspool.values import bytes_of_tape

MARGIN = 13
NEXT = (
    ("unspool demo --seconds 150", "longer: it gets better"),
    ("unspool demo --seed 1", "another beginning"),
    ("unspool stats YOUR.txt", "count your own text"),
    ("unspool demo --json", "every number of this page"),
)


@dataclass(frozen=True)
class Sample:
    """A text that the model wrote."""

    prompt: str
    temperature: float
    text: str
    seconds_per_token: float


class View:
    """Draws events. In a terminal training is a live picture; elsewhere it is one line now and then."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Live | None = None
        self.baselines: list[Baseline] = []
        self.curve: list[tuple[float, float]] = []
        self.total = self.per_step = 0
        self.samples = 0

    def __enter__(self) -> "View":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def begin(self, config: RunConfig, kernel: dict[str, Any]) -> None:
        """Say what is about to happen, and on what."""
        threads = f"{kernel['threads']} thread{'s' if kernel['threads'] > 1 else ''}"
        self.console.print(Text("unspool", "bold"), "· text in, language model out", soft_wrap=True)
        self.console.print(f"  {threads}, {kernel['isa']}, seed {config.seed}\n", style="dim", soft_wrap=True)

    def show(self, event: Event) -> None:
        """Draw one event."""
        match event:
            case Prepared(corpus, first):
                self._prepared(corpus, first)
            case Planned(model, config):
                self._planned(model, config)
            case Step():
                self._step(event)
            case Judged(_, test):
                self._stop()
                self._judged(test)
            case list():
                self._counted(event)

    def show_sample(self, each: Sample) -> None:
        """Show a text that the model wrote, its prompt in bold."""
        self.samples += 1
        how = f"temperature {each.temperature}, {1e6 * each.seconds_per_token:.0f} µs a token"
        self._stage("samples" if self.samples == 1 else "", how)
        text = Text(each.prompt, "bold") + Text(each.text.rstrip())
        for line in text.wrap(self.console, max(20, min(self.console.width, 100) - MARGIN - 2)):
            self._line(Text("│ ", "cyan") + line)

    def end(self) -> None:
        """Say what to try next."""
        for number, (command, what) in enumerate(NEXT):
            self._stage("" if number else "next", "", Text(f"{command:28}", "green") + Text(what, "dim"))

    def _prepared(self, corpus: Corpus, first: Batch) -> None:
        text = corpus.decode(corpus.train.ids[:300].tolist())
        characters = sum(part.characters for part in corpus.parts)
        self._stage("text", f"{characters:,} characters of Python's own help texts")
        self._line(Text(repr(text[:56]) + " …", "dim"))
        self._stage("tokens", "one for each character")
        self._line(Text("  ".join(map(repr, text[4:18])) + "  …", "dim"))
        self._stage(
            "vocabulary", f"{len(corpus.vocab)} ids by falling frequency, from the training part only"
        )
        frequent = (f"{token!r} {corpus.vocab[token]}" for token, _ in corpus.vocab.token_freqs[:9])
        self._line(Text("  ".join(frequent) + "  …", "dim"))
        self._line(Text("  ".join(f"{part.name} {len(part.ids):,}" for part in corpus.parts), "dim"))
        tau, B = first.x.shape
        self._stage("minibatches", f"{B} rows side by side, {tau} steps a window, the state carried on")
        for name, row in (("x", first.x[:40, 0]), ("y", first.y[:40, 0])):
            self._line(Text(f"{name} {corpus.decode(row.tolist())!r} …", "dim"))

    def _counted(self, baselines: list[Baseline]) -> None:
        self.baselines = baselines
        self._stage("counting", "what n-grams (Kneser-Ney) reach: the lines to cross, in perplexity")
        self._line(Text("  ".join(f"{each.name} {each.valid.perplexity:.2f}" for each in baselines), "dim"))

    def _planned(self, model: Model, config: RunConfig) -> None:
        made, self.total = model.config, config.steps or 0
        self.per_step = config.B * config.tau
        tape = bytes_of_tape(made.cell, config.tau, config.B, made.hidden) / 2**20
        self._stage("model", f"{made.cell.upper()}, H = {made.hidden}, {model.parameters.count:,} parameters")
        self._line(Text(f"the tape of a window, all that BPTT needs: {tape:.1f} MiB", "dim"))
        self._stage(
            "training", f"{self.total:,} updates, Adam, clipping at {config.clip:g}, a cosine to zero"
        )
        if self.console.is_terminal:
            self._start()

    def _start(self) -> None:
        self.progress = Progress(
            TextColumn(" " * (MARGIN - 1)),
            BarColumn(bar_width=28),
            TextColumn("{task.completed:,}/{task.total:,}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left  {task.fields[rate]:,.0f} tokens/s"),
            console=self.console,
        )
        self.task: TaskID = self.progress.add_task("", total=self.total, rate=0.0)
        self.live = Live(console=self.console, refresh_per_second=8)
        self.live.start()

    def _step(self, step: Step) -> None:
        if step.valid is not None:
            self.curve.append((math.sqrt(step.report.step), step.valid.nats))
        rate = step.report.step * self.per_step / step.seconds
        if self.live is not None:
            self.progress.update(self.task, completed=step.report.step, rate=rate)
            if step.valid is not None:
                self.live.update(Group(self.progress, *self._picture(step)))
        elif step.valid is not None:
            left = step.seconds / step.report.step * (self.total - step.report.step)
            self._line(
                Text(
                    f"{step.report.step:6,}/{self.total:,}  {left:3.0f} s left  {rate:9,.0f} tokens/s  "
                    f"train {step.train:.3f}  valid {step.valid.nats:.3f} nats, "
                    f"perplexity {step.valid.perplexity:.2f}{self._crossed(step.valid)}"
                )
            )

    def _crossed(self, valid: Measure) -> str:
        below = [each.name for each in self.baselines if valid.nats < each.valid.nats]
        return f" < {below[-1]}" if below else ""

    def _picture(self, step: Step) -> list[Text]:
        assert step.valid is not None
        losses = Text.assemble(
            f"train {step.train:.3f} nats, perplexity {_perplexity(step.train):.2f}   ",
            (f"valid {step.valid.nats:.3f} nats, perplexity {step.valid.perplexity:.2f}", "bold green"),
        )
        lines = [
            (f"{each.name} {each.valid.perplexity:.2f}", each.valid.nats)
            for each in lines_to_cross(self.baselines)
        ]
        width = max(20, min(60, self.console.width - MARGIN - 24))
        rows = chart(self.curve, lines, end=math.sqrt(self.total), width=width, height=14)
        axis = Text(f"  nats over {self.total:,} updates, the first of them drawn wider", "dim")
        return [_indented(losses), *(_indented(_coloured(row)) for row in rows), _indented(axis)]

    def _judged(self, test: Measure) -> None:
        self._stage("result", f"the held-out part, {test.targets:,} targets, each once, the state carried")
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        table.add_column("")
        for name in ("perplexity", "nats", "bits/character"):
            table.add_column(name, justify="right")
        for name, each in [(each.name, each.test) for each in self.baselines] + [("network", test)]:
            row = (f"{each.perplexity:.3f}", f"{each.nats:.4f}", f"{each.bits_per_character or 0:.4f}")
            table.add_row(name, *row, style="bold green" if name == "network" else None)
        self._line(table)

    def _stage(self, name: str, what: str, more: Text | None = None) -> None:
        head = Text(f"{name:{MARGIN}}", "bold cyan") + Text(what)
        self.console.print(head + more if more else head, soft_wrap=True)

    def _line(self, content: Text | Table) -> None:
        if isinstance(content, Text):
            self.console.print(_indented(content), soft_wrap=True)
        else:
            grid = Table.grid(padding=0)
            grid.add_row(" " * MARGIN, content)
            self.console.print(grid)

    def _stop(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None


def _perplexity(nats: float) -> float:
    return Measure(1, nats).perplexity


def _indented(text: Text) -> Text:
    return Text(" " * MARGIN) + text


def _coloured(row: str) -> Text:
    text = Text(row, "dim")
    text.highlight_regex("•+", "bold green not dim")
    return text
