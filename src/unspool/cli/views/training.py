"""What a terminal shows of a run: the stages as they come, a live curve in training, plain lines in a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID
from rich.status import Status
from rich.table import Table
from rich.text import Text

from unspool.baselines.language import baselines_to_plot
from unspool.cells import cell_named
from unspool.cli.output import counted
from unspool.cli.progress import WIDTH, counting_bar, progress_bar, shows_progress
from unspool.cli.views.chart import chart, coloured
from unspool.cli.views.comparison import (
    NO_MEMORY,
    PARTS,
    Row,
    chosen_line,
    crossed,
    measures_table,
    mixture_line,
    ngrams_win,
    rows_of,
    verdict,
)
from unspool.cli.views.final import FinalView
from unspool.cli.views.speed import Speed, too_short_line
from unspool.cli.views.vocabulary import order_of_ids, started_line, subword_line
from unspool.cluster.group import current
from unspool.data.text.corpus import Corpus
from unspool.evaluation.metrics import Metrics
from unspool.gradients.truncation import Truncation
from unspool.kernels.tape import bytes_of_tape
from unspool.training.events import (
    Baseline,
    CorpusReady,
    Evaluated,
    Event,
    LeftOut,
    PlanChanged,
    Scoring,
    Started,
    StepDone,
    TrainingPlanned,
    Working,
)

MARGIN = 13
MANY = 20_000
"""Of characters, a vocabulary of this size is worth a word."""


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
        self.speed = Speed(0, 0)
        self.first_step = 0
        self.left_out = self.machine = ""
        self.corpus: Corpus | None = None
        self.sample: str | None = None
        self.waiting: Status | None = None
        self.scored: Progress | None = None
        self.samples = 0
        self.mixture_first = False
        """Whether n-grams predict better than the network, and there is a mixture with them."""
        self.final = FinalView(console, self._stage, self._line, MARGIN)

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *error: object) -> None:
        self._wait(None)
        self.final.stop()
        self._stop()

    def begin(self, kernel: dict[str, Any]) -> None:
        """Start reading; the line about the machine is printed with the first event, so not before an error of the input."""
        self.machine = f"  {counted(kernel['threads'], 'thread')}, {kernel['isa']}\n"
        self._wait("reading the text")

    def show(self, event: Event) -> None:
        """Draw one event."""
        self._wait(None)
        if self.machine:
            self.console.print(Text("unspool", "bold"), "· text in, language model out")
            self.console.print(self.machine, style="dim")
            self.machine = ""
        if self.final.show(event, self.speed.tokens):
            return
        match event:
            case CorpusReady(corpus):
                self.corpus = corpus
                self._prepared(corpus)
                self._wait("counting n-grams and measuring the speed of this machine")
            case TrainingPlanned():
                self._planned(event)
            case StepDone():
                self._step(event)
            case PlanChanged(config):
                self.speed.change(config.fixed.plans[-1][0], config.fixed.steps)
            case Scoring(done, total):
                self._scoring(done, total)
            case Working(what):
                self._stop()
                self.final.stop()
                self._wait(what)
            case Evaluated():
                self._stop()
                self._judged(event)
            case Started():
                self._stage("start", started_line(event))
            case LeftOut(why):
                self.left_out = why
                self._line(why, "yellow")
            case list():
                self._counted(event)

    def _scoring(self, done: int, total: int) -> None:
        """Show how far the judging of the trained model is."""
        self._stop()
        if self.scored is None and shows_progress(self.console):
            self.scored = scoring_bar(self.console)
            self.scored.start()
            self.scored.add_task("", total=total)
        if self.scored is not None:
            self.scored.update(self.scored.task_ids[0], completed=done)
            if done == total:
                self.scored.stop()

    def _wait(self, what: str | None) -> None:
        """Turn a wheel while something takes its time, in a terminal."""
        if self.waiting is not None:
            self.waiting.stop()
            self.waiting = None
        if what is not None and shows_progress(self.console):
            self.waiting = self.console.status(f"{what} …")
            self.waiting.start()

    def repeat(self, command: str) -> None:
        """Say how the same run is made again."""
        self._line(f"to repeat it bit for bit: {command}", "dim")

    def kept(self, out: Path) -> None:
        """Say where the model is, and what can be done with it."""
        self._stage("saved", str(out))
        generate = (f"unspool generate {out} --prompt …", "generate text")
        if self.mixture_first:
            generate = (
                f"unspool generate {out} --model mixture --prompt …",
                "generate text, with the n-grams: they are better than the network",
            )
        self.end((generate, (f"unspool evaluate {out} TEXT", "evaluate it on another text")))

    def show_sample(self, each: Sample) -> None:
        """Show a text that the model wrote, its prompt in bold."""
        self.samples += 1
        how = f"temperature {each.temperature}, {1e6 * each.seconds_per_token:.0f} µs per token"
        self._stage("samples" if self.samples == 1 else "", how)
        text = Text.assemble((each.prompt, "bold"), each.text.rstrip())
        for line in text.wrap(self.console, max(20, min(self.console.width, 100) - MARGIN - 2)):
            self._line(Text.assemble(("│ ", "cyan"), line))

    def end(self, commands: Sequence[tuple[str, str]]) -> None:
        """Say what to try next."""
        width = max(len(command) for command, _ in commands) + 3
        for number, (command, what) in enumerate(commands):
            both = Text.assemble((f"{command:{width}}", "green"), (what, "dim"))
            self._stage("" if number else "next", "", both)

    def _prepared(self, corpus: Corpus) -> None:
        text = corpus.decode(corpus.train.ids[:300].tolist())
        characters = sum(part.characters for part in corpus.parts)
        self._stage("text", f"{characters:,} characters")
        self._line(repr(text[:56]) + " …", "dim")
        self._stage("tokens", corpus.tokenizer.summary)
        shown = corpus.vocab.to_tokens(corpus.train.ids[4:18].tolist())
        self._line("  ".join(map(repr, shown)) + "  …", "dim")
        self._stage("vocabulary", f"{len(corpus.vocab):,} ids {order_of_ids(corpus.vocab)}")
        if corpus.erased:
            self._line(f"cleaning erased {corpus.erased:,} letters that are not A-Z", "yellow")
        frequent = (f"{token!r} {corpus.vocab[token]}" for token, _ in corpus.vocab.token_freqs[:9])
        self._line("  ".join(frequent) + "  …", "dim")
        parts = [part for part in corpus.parts if len(part.ids)]
        self._line("  ".join(f"{part.name} {len(part.ids):,}" for part in parts), "dim")
        if len(corpus.vocab) >= MANY and corpus.tokenizer.one_symbol:
            rare = "large vocabulary of characters: with --min-freq 2, those that occur once become <unk>, and training is faster"
            self._line(rare, "yellow")

    def _counted(self, baselines: list[Baseline]) -> None:
        self.baselines = baselines
        self._stage(
            "counting", "perplexity of n-grams (Kneser-Ney) on the validation split: the baselines to beat"
        )
        self._line("  ".join(f"{each.name} {each.valid.perplexity:.2f}" for each in baselines), "dim")

    def _planned(self, planned: TrainingPlanned) -> None:
        model, recipe, first = planned.model, planned.config.fixed, planned.first
        made, self.first_step = model.config, planned.step
        self.speed = Speed(
            recipe.steps, recipe.batch_size * (Truncation.parse(planned.config.bptt).K1 or recipe.window)
        )
        if planned.bias is not None:
            self._stage("truncation", chosen_line(planned.config, planned.bias))
        carried = (
            "state carried from window to window"
            if planned.config.batches == "sequential"
            else "drawn at random"
        )
        assert self.corpus is not None
        rows = f"{recipe.batch_size} rows, {recipe.window} steps per window, {carried}"
        if self.corpus.end is not None:
            rows = f"{recipe.batch_size} lines of {recipe.window} tokens in the mean, each from a new state"
        self._stage("minibatches", rows)
        steps = 40 if first.lengths is None else int(first.lengths[0])
        for name, row in (("x", first.x[:steps, 0]), ("y", first.y[:steps, 0])):
            self._line(f"{name} {self.corpus.decode(row.tolist())[:60]!r} …", "dim")
        tape = (
            made.layers
            * bytes_of_tape(cell_named(made.cell), recipe.window, recipe.batch_size, made.hidden)
            / 2**20
        )
        sizes = [f"H = {made.hidden}"] + ([f"{made.layers} layers"] if made.layers > 1 else [])
        sizes += [f"embedding of width {made.embedding}{', tied' * made.tied}"] if made.embedding else []
        sizes += [made.activation] * (made.activation != "tanh") + ["h(0) learned"] * made.learn_h0
        sizes += [f"softmax {made.softmax}"] * bool(made.cutoffs)
        sizes += ["products in bf16"] * (made.precision == "bf16")
        sizes += [f"figure 10.4, {made.feedback} fed back"] * (made.pattern == "output")
        self._stage(
            "model", f"{made.cell.upper()}, {', '.join(sizes)}, {model.parameters.count:,} parameters"
        )
        self._line(f"the tape of a window, which the backward pass needs: {tape:.1f} MiB", "dim")
        rest = f", from update {planned.step:,} on" if planned.step else ""
        epochs = recipe.steps * self.speed.tokens / max(len(self.corpus.train.ids), 1)
        self._stage("training", f"{recipe.steps:,} updates, {epochs:.1f} epochs{rest}")
        if (cost := current().cost) is not None:
            self._line(cost.line(), "dim")
        if line := too_short_line(planned.config, made.inputs, len(self.corpus.train.ids), self.speed.tokens):
            self._line(line, "yellow")
        new = planned.step == 0 and planned.config.start is None
        if new and (line := subword_line(self.corpus)):
            self._line(line, "dim")
        if shows_progress(self.console):
            self._start()

    def _start(self) -> None:
        counted = ("{task.completed:,}/{task.total:,}", "{task.fields[rate]}")
        self.progress = progress_bar(
            self.console, " " * (MARGIN - 1), BarColumn(bar_width=WIDTH), *counted, transient=False
        )
        self.task: TaskID = self.progress.add_task(
            "", total=self.speed.total, completed=self.first_step, rate=""
        )
        self.live = Live(console=self.console, refresh_per_second=8)
        self.live.start()

    def _step(self, step: StepDone) -> None:
        done = step.report.step
        if step.valid is not None:
            self.curve.append((math.sqrt(done), step.valid))
        if step.sample is not None:
            self.sample = step.sample
        rate, total = self.speed.line(done, step.seconds), self.speed.total
        if (change := self.speed.lasting_change(done)) is not None:
            self._line(change, "dim")
        if self.live is not None:
            self.progress.update(self.task, completed=done, total=total, rate=rate)
            if step.valid is not None:
                self.live.update(Group(self.progress, *self._picture(step)))
        elif step.valid is not None:
            self._line(
                f"{done:6,}/{total:,}  {rate:31}  train {step.train:.3f}  valid {step.valid:.3f} nats, "
                f"perplexity {_perplexity(step.valid):.2f}{crossed(self.baselines, step.valid)}"
            )
        if self.live is None and step.sample is not None:
            self._line(f"sample: {step.sample[:70]!r}", "dim")

    def _picture(self, step: StepDone) -> list[Text]:
        assert step.valid is not None
        losses = Text.assemble(
            f"train {step.train:.3f} nats   ",
            (f"valid {step.valid:.3f} nats, perplexity {_perplexity(step.valid):.2f}", "bold green"),
        )
        lines = [
            (f"{each.name} {each.during.perplexity:.2f}", each.during.nats)
            for each in baselines_to_plot(self.baselines)
        ]
        width = max(20, min(60, self.console.width - MARGIN - 24))
        total = self.speed.total
        rows = chart(self.curve, lines, end=math.sqrt(total), width=width, height=14)
        axis = Text(f"  nats over {total:,} updates, the first of them drawn wider", "dim")
        shown = [losses, *map(coloured, rows), axis]
        if self.sample is not None:
            shown.append(
                Text.assemble(
                    ("sample: ", "cyan"), (repr(self.sample)[: self.console.width - MARGIN - 10], "dim")
                )
            )
        for row in shown:
            row.no_wrap, row.overflow = True, "ellipsis"  # a wrapped label would start below the chart
            row.pad_left(MARGIN)
        return shown

    def _judged(self, event: Evaluated) -> None:
        result, part = event.measure, event.part
        lines = self.corpus is not None and self.corpus.end is not None
        state = "every line by itself" if lines else "state carried"
        what = f"{PARTS[part]}, {result.targets:,} targets, each scored once, {state}"
        self._stage("result", f"{what}; best model: update {event.best_step:,}")
        rows = rows_of(self.baselines, part)
        mixed = [] if event.mixed is None else [Row("mixture", event.mixed)]
        self._line(measures_table(rows, result, mixed))
        self._line(verdict(rows, result))
        if event.mixed is not None and event.mixture_cost is not None:
            self.mixture_first = ngrams_win(rows, result)
            self._line(mixture_line(event.mixture_cost, event.mixed))
        else:
            self._line(NO_MEMORY, "yellow")
        if self.left_out:
            self._line(self.left_out, "yellow")

    def _stage(self, name: str, what: str, more: Text | None = None) -> None:
        head = Text.assemble((f"{name:{MARGIN}}", "bold cyan"), what, more or "")
        self.console.print(head)

    def _line(self, content: str | Text | Table, style: str = "") -> None:
        if isinstance(content, Table):
            grid = Table.grid(padding=0)
            grid.add_row(" " * MARGIN, content)
            self.console.print(grid)
        else:
            line = Text(content, style) if isinstance(content, str) else content
            self.console.print(Text(" " * MARGIN) + line)

    def _stop(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None


def scoring_bar(console: Console) -> Progress:
    """Return a bar for targets that are being scored."""
    return counting_bar(console, "{task.completed:,}/{task.total:,} targets scored", indent=MARGIN)


def _perplexity(nats: float) -> float:
    return Metrics(1, nats).perplexity
