"""Show a language model's training for `unspool train` and `unspool resume`; stop on a signal, print how to resume it."""

import shlex
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from unspool.baselines.language import baseline_from_json, baselines_to_plot
from unspool.cli.options import OutputOptions
from unspool.cli.output import notes
from unspool.cli.output_files import output
from unspool.cli.signals import Stop, finish_fit
from unspool.cli.views.comparison import best_as_json, rows_of
from unspool.cli.views.training import View
from unspool.errors import FileError, MissingExtra
from unspool.kernels.native import kernel_info
from unspool.options import option_of
from unspool.plots.curve import draw_curve
from unspool.storage import run_folder
from unspool.storage.files import why
from unspool.storage.log import read_log
from unspool.training.events import (
    CorpusReady,
    Evaluated,
    Event,
    FinalPlanned,
    FinalStep,
    FinalTrained,
    LeftOut,
    PlanChanged,
    RunConfig,
    Scoring,
    Started,
    StepDone,
    TrainingPlanned,
    Working,
)
from unspool.training.options import BATCH_SIZE
from unspool.training.recipe import Recipe

CALLED = {"batch_size": BATCH_SIZE.option}
"""Fields of the recipe whose option has another name."""
NEEDLESS = ("minutes", "bptt_tolerance")
"""Fields of RunConfig that do not matter once the recipe is chosen."""
UNUSUAL = ("shards", "activation", "h0", "pattern", "feedback", "precision")
"""Options that the repeating command omits at their defaults."""

OF_WINDOWS = ("window", "restart")
"""Options that the repeating command omits where a minibatch holds whole lines."""


class Board:
    """Curves for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtra("--tensorboard needs the extra: pip install 'unspool[tensorboard]'") from None
        self._folder, self._make = folder, SummaryWriter
        self._writer: Any = None

    def add(self, step: StepDone) -> None:
        """Add the points of an update."""
        try:
            self._add(step)
        except OSError as error:
            raise FileError(f"{self._folder}: cannot be written: {why(error)}") from error

    def _add(self, step: StepDone) -> None:
        if self._writer is None:  # only now is the run's folder there
            self._writer = self._make(str(self._folder))
        number = step.report.step
        self._writer.add_scalar("loss/train", step.report.loss, number)
        self._writer.add_scalar("gradient/norm", step.report.norm, number)
        if step.valid is not None:
            self._writer.add_scalar("loss/valid", step.valid, number)
            self._writer.flush()


def follow(events: Generator[Event], out: Path, shown: OutputOptions, *, tensorboard: bool) -> None:
    """Show the events of a run; at the end print the result, or how to resume it."""
    view, stop = View(notes(shown)), Stop()
    board = Board(out / "tensorboard") if tensorboard else None
    content: dict[str, Any] = {"run": str(out), "kernel": kernel_info()}
    with view:
        view.begin(kernel_info())
        try:
            with closing(events):
                for event in events:
                    view.show(event)
                    _collect(event, content, view, stop, board)
                    if isinstance(event, Scoring) and stop():  # an evaluation has nothing to save
                        raise KeyboardInterrupt
                    if isinstance(event, StepDone) and stop():
                        content["stopped"] = event.step
                        break
        except KeyboardInterrupt:
            if "config" not in content:  # there is no run yet
                raise
            content["stopped"] = None
        if shown.plot is not None:
            _draw(out, content, shown.plot, force=shown.force)
        if "measure" in content and "stopped" not in content:
            view.kept(out)
            if content["config"]["recipe"]["plans"]:
                view.repeat(content["repeat"])
    finish_fit(content, out, shown, stop)


def _collect(event: Event, content: dict[str, Any], view: View, stop: Stop, board: Board | None) -> None:
    """Collect the fields of --json from an event."""
    match event:
        case TrainingPlanned(_, config, _, _, bias):
            stop.listen()
            content |= {"config": config.to_json(), "repeat": repeat(config), "bptt_bias": bias}
            view.repeat(content["repeat"])
        case PlanChanged(config):
            content |= {"config": config.to_json(), "repeat": repeat(config)}
        case FinalTrained(_, step):
            content["final"] = {"step": step}
        case FinalStep() | FinalPlanned():
            pass
        case StepDone():
            if board is not None:
                board.add(event)
        case Evaluated(_, part, judged, best_step, mixed, _, cost):
            content |= {"part": part, "best_step": best_step, "measure": judged.to_json()}
            content["mixture"] = None if mixed is None else (cost or {}) | mixed.to_json()
            content["best_baseline"] = best_as_json(rows_of(view.baselines, part), judged)
        case LeftOut(why):
            content["left_out"] = why
        case list():
            content |= {"baselines": [asdict(each) for each in event], "left_out": None}
        case Started(parent, _, new, absent):
            content["from"] = {"run": parent, "new_tokens": new, "absent_tokens": absent}
        case CorpusReady() | Scoring() | Working():
            pass


def repeat(config: RunConfig) -> str:
    """Return the command that repeats a run bit for bit, with every chosen hyper-parameter."""
    recipe, usual_recipe = config.fixed, Recipe()
    command = ["unspool", "train", *config.sources, "--steps", str(recipe.steps)]
    for name, value in asdict(recipe).items():
        if name == "tied":
            command += ["--tied"] if value else ["--no-tied"]
        elif name == "plans":
            plans = ",".join(f"{at}:{steps}" for at, steps in value)
            command += ["--plans", plans] if plans else []
        elif name in UNUSUAL and value == getattr(usual_recipe, name):
            continue
        elif name != "steps" and not (config.settings.lines and name in OF_WINDOWS):
            command += [f"--{CALLED.get(name, name).replace('_', '-')}", str(value)]
    usual = RunConfig()
    for name, value in vars(config.settings).items():
        if value != getattr(usual.settings, name) and name != "reserved":
            flat = value if isinstance(value, tuple) else [value]
            command += [f"--{name.replace('_', '-')}", *(str(v) for v in flat if v is not True)]
    for name in [field.name for field in fields(RunConfig) if option_of(field) is not None]:
        value = getattr(config, name)
        if name not in NEEDLESS and value != getattr(usual, name):
            command += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    if config.start is not None:
        command += ["--from", config.start]
    if config.valid is not None:
        command += ["--valid", *config.valid]
    return shlex.join([*command, "--out", "AGAIN"])


def _draw(out: Path, content: dict[str, Any], path: Path, *, force: bool) -> None:
    looks = [entry for entry in read_log(out / run_folder.LOG) if "valid" in entry]
    curve = [(each["seconds"], each["train"], each["valid"]) for each in looks]
    found = [baseline_from_json(each, each["test"] is not None) for each in content["baselines"]]
    lines = [(each.name, each.during.nats) for each in baselines_to_plot(found)]
    with output(path, force=force) as unfinished:
        draw_curve(curve, lines, unfinished, title=str(out.name))
