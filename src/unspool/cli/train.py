"""`unspool train` and `unspool resume`: a language model from a text, in minutes, kept in a run."""

import json as jsonlib
import shlex
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from unspool import checkpoint
from unspool.cli.options import NETWORK, OUTPUT, TEXT, TIME, TRAINING, Flag
from unspool.cli.sources import Sources
from unspool.cli.view import View
from unspool.data.settings import Settings
from unspool.draw.curve import draw_curve
from unspool.draw.figure import check_format, new_axes
from unspool.errors import InputError, MissingExtra
from unspool.events import Event, Judged, Planned, Prepared, RunConfig, Step, Stopped
from unspool.journal import entries
from unspool.kernel.ops import kernel_info, set_threads
from unspool.place import Keeping
from unspool.run import resume as resumed
from unspool.run import run


def train(
    text: Sources,
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)],
    minutes: Annotated[float | None, Parameter(group=TIME)] = None,
    steps: Annotated[int | None, Parameter(group=TIME)] = None,
    tokens: Annotated[str, Parameter(group=TEXT)] = "char",
    valid: Annotated[str | None, Parameter(group=TEXT)] = None,
    split: Annotated[tuple[float, float, float], Parameter(group=TEXT, negative="")] = (0.9, 0.1, 0.0),
    clean: Annotated[Flag, Parameter(group=TEXT)] = False,
    min_freq: Annotated[int, Parameter(group=TEXT)] = 0,
    errors: Annotated[str, Parameter(group=TEXT)] = "strict",
    newlines: Annotated[str, Parameter(group=TEXT)] = "keep",
    backward: Annotated[Flag, Parameter(group=TEXT)] = False,
    cell: Annotated[Literal["elman", "gru", "lstm"] | None, Parameter(group=NETWORK)] = None,
    hidden: Annotated[int | None, Parameter(group=NETWORK)] = None,
    layers: Annotated[int | None, Parameter(group=NETWORK)] = None,
    embedding: Annotated[int | None, Parameter(group=NETWORK)] = None,
    tied: Annotated[bool | None, Parameter(group=NETWORK)] = None,
    dropout: Annotated[float | None, Parameter(group=NETWORK)] = None,
    recurrent_dropout: Annotated[float | None, Parameter(group=NETWORK)] = None,
    batch: Annotated[int | None, Parameter(group=TRAINING)] = None,
    window: Annotated[int | None, Parameter(group=TRAINING)] = None,
    batches: Annotated[Literal["sequential", "random"], Parameter(group=TRAINING)] = "sequential",
    bptt: Annotated[str, Parameter(group=TRAINING)] = "full",
    memory: Annotated[Literal["full", "sqrt"], Parameter(group=TRAINING)] = "full",
    optimiser: Annotated[Literal["adam", "sgd"], Parameter(group=TRAINING)] = "adam",
    learning_rate: Annotated[float | None, Parameter(group=TRAINING)] = None,
    warmup: Annotated[int | None, Parameter(group=TRAINING)] = None,
    clip: Annotated[float | None, Parameter(group=TRAINING)] = None,
    decay: Annotated[float | None, Parameter(group=TRAINING)] = None,
    seed: Annotated[int, Parameter(group=TRAINING)] = 0,
    validations: Annotated[int, Parameter(group=TRAINING)] = 12,
    validation_tokens: Annotated[int, Parameter(group=TRAINING)] = 0,
    threads: Annotated[int | None, Parameter(group=TIME)] = None,
    save_every: Annotated[int | None, Parameter(group=OUTPUT)] = None,
    json: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    plot: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    tensorboard: Annotated[Flag, Parameter(group=OUTPUT)] = False,
) -> None:
    """Train a language model on your text.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source.
    out
        The folder to make: model, vocabulary, settings, log, and all that is needed to go on later.
    minutes
        How long it is to take [default: 3]. Size, updates and schedule are chosen to end well by then.
    steps
        How many updates, instead of minutes: with the other numbers that a run prints, it is repeated to the bit.
    tokens
        char, word, byte, space (text already cut into tokens), jieba, subword:N or subword:FILE.
    valid
        A file that is the validation part; TEXT is the training part then.
    split
        Shares of train, valid and test, in order.
    clean
        Keep only the letters A-Z, in lower case, as common lecture notes do. Other letters are lost.
    min_freq
        Tokens rarer than this in the training part are unknown.
    errors
        Bytes that are not UTF-8: strict stops, replace reads U+FFFD.
    newlines
        Line ends: keep, or lf to make CRLF and CR into LF.
    backward
        Learn the text in reverse time.
    cell
        The recurrence.
    hidden
        H, the units of a layer.
    layers
        Layers on each other.
    embedding
        The width of the token table; 0: one-hot tokens.
    tied
        Use the token table as the output's matrix.
    dropout
        The share of a layer's outputs that is dropped.
    recurrent_dropout
        The share of the state that is dropped inside the recurrence.
    batch
        B, rows side by side.
    window
        tau, steps in a window.
    batches
        sequential carries the state from window to window; random starts each window anew.
    bptt
        How far back gradients reach: full (the window), truncated:K (an update every K steps), truncated:K1,K2 (an
        update every K1 steps that looks back K2) or random:P (cut at each step with probability 1-P, unbiased).
    memory
        sqrt keeps every √tau-th state and computes the others again: less memory, the same bits.
    optimiser
        adam (AdamW where there is decay) or sgd (with momentum 0.9).
    learning_rate
        The highest; it rises over the first updates and ends at zero with the last.
    warmup
        Over how many updates it rises.
    clip
        The largest norm of a gradient; 0: no limit.
    decay
        Weight decay on matrices.
    seed
        Where all random numbers come from.
    validations
        How often to look at the validation part on the way.
    validation_tokens
        How much of it to look at then; 0: as much as costs little.
    threads
        How many threads; it changes no bit of the result.
    save_every
        Save the state after every so many updates [default: every half minute].
    json
        Print the result as JSON, and nothing else.
    plot
        Draw the learning curve against the baselines into this file (.png, .svg, .pdf).
    tensorboard
        Write curves for TensorBoard into the run as well (extra `tensorboard`).
    """
    if minutes is not None and steps is not None:
        raise InputError("give --minutes or --steps, not both")
    if save_every is not None and save_every < 1:
        raise InputError(f"save_every is {save_every}; expected a whole number of 1 or more")
    checkpoint.check_free(out)
    if threads is not None:
        set_threads(threads)
    wanted = {
        "cell": cell, "hidden": hidden, "layers": layers, "embedding": embedding, "tied": tied, "dropout": dropout,
        "recurrent_dropout": recurrent_dropout, "B": batch, "tau": window, "learning_rate": learning_rate,
        "warmup": warmup, "clip": clip, "decay": decay, "steps": steps,
    }  # fmt: skip
    config = RunConfig(
        sources=tuple(text),
        valid=None if valid is None else (valid,),
        settings=Settings(tokens, clean, split, min_freq, (), errors, newlines),
        minutes=3.0 if minutes is None else minutes,
        given={name: value for name, value in wanted.items() if value is not None},
        batches=batches,
        bptt=bptt,
        memory=memory,
        optimiser=optimiser,
        backward=backward,
        validations=validations,
        validation_tokens=validation_tokens,
        seed=seed,
    )
    view, stop = View(Console(highlight=False, quiet=json)), Stop()
    events = run(config, out=out, keeping=Keeping(steps=save_every, stop=stop, told=view.judging))
    _follow(events, out, view, stop, json=json, plot=plot, tensorboard=tensorboard)


def resume(
    run: Path,
    /,
    *,
    threads: int | None = None,
    save_every: int | None = None,
    json: Flag = False,
    plot: Path | None = None,
    tensorboard: Flag = False,
) -> None:
    """Go on with a run that was stopped, to the same bits as if it never had been.

    Parameters
    ----------
    run
        The folder of the run.
    threads
        How many threads; it changes no bit of the result.
    save_every
        Save the state after every so many updates [default: every half minute].
    json
        Print the result as JSON, and nothing else.
    plot
        Draw the learning curve against the baselines into this file (.png, .svg, .pdf).
    tensorboard
        Write curves for TensorBoard into the run as well (extra `tensorboard`).
    """
    if threads is not None:
        set_threads(threads)
    view, stop = View(Console(highlight=False, quiet=json)), Stop()
    events = resumed(
        checkpoint.check_run(run), keeping=Keeping(steps=save_every, stop=stop, told=view.judging)
    )
    _follow(events, run, view, stop, json=json, plot=plot, tensorboard=tensorboard)


class Stop:
    """Ctrl-C or a polite end of the process: the update is finished and all is saved; the second is at once."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """Say whether a stop was asked for."""
        return self.signal is not None

    def listen(self) -> None:
        """From now on, heed the signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._heed)

    def _heed(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


def _follow(
    events: Iterator[Event],
    out: Path,
    view: View,
    stop: Stop,
    *,
    json: bool,
    plot: Path | None,
    tensorboard: bool,
) -> None:
    """Show a run as it goes, and say in the end what there is and how to go on."""
    if plot is not None:
        check_format(plot)
        new_axes()  # a missing package is said now, not after the training
    board = Board(out / "tensorboard") if tensorboard else None
    content: dict[str, Any] = {"run": str(out), "kernel": kernel_info()}
    with view:
        view.begin(kernel_info())
        for event in events:
            view.show(event)
            match event:
                case Planned(_, config, _, _):
                    stop.listen()
                    content |= {"config": config.to_json(), "repeat": repeat(config)}
                    view.repeat(content["repeat"])
                case Step():
                    if board is not None:
                        board.add(event)
                case Stopped(step, _):
                    content |= {"stopped": step}
                case Judged(_, part, judged, best_step):
                    content |= {"part": part, "best_step": best_step, "measure": judged.to_json()}
                case list():
                    content["baselines"] = [asdict(each) for each in event]
                case Prepared():
                    pass
        if plot is not None:
            _draw(out, content, plot)
        if "measure" in content:
            view.kept(out)
    if json:
        print(jsonlib.dumps(content, ensure_ascii=False))
    if "stopped" in content:
        line = f"stopped after update {content['stopped']:,}, all is saved; go on with: unspool resume {out}"
        print(f"unspool: {line}", file=sys.stderr)
        sys.exit(128 + (stop.signal or 0))


class Board:
    """Curves for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtra("--tensorboard needs the extra: pip install 'unspool[tensorboard]'") from None
        self._folder, self._make = folder, SummaryWriter
        self._writer: Any = None

    def add(self, step: Step) -> None:
        """Add the points of an update."""
        if self._writer is None:  # only now is the run's folder there
            self._writer = self._make(str(self._folder))
        number = step.report.step
        self._writer.add_scalar("loss/train", step.report.loss, number)
        self._writer.add_scalar("gradient/norm", step.report.norm, number)
        if step.valid is not None:
            self._writer.add_scalar("loss/valid", step.valid, number)
            self._writer.flush()


def repeat(config: RunConfig) -> str:
    """Give the command that makes the same run again, to the bit, with every chosen number in it."""
    recipe = config.fixed
    command = ["unspool", "train", *config.sources, "--steps", str(recipe.steps)]
    names = {"B": "batch", "tau": "window"}
    for name, value in asdict(recipe).items():
        if name == "tied":
            command += ["--tied"] if value else ["--no-tied"]
        elif name != "steps":
            command += [f"--{names.get(name, name).replace('_', '-')}", str(value)]
    usual = RunConfig()
    for name, value in vars(config.settings).items():
        if value != getattr(usual.settings, name) and name != "reserved":
            flat = value if isinstance(value, tuple) else [value]
            command += [f"--{name.replace('_', '-')}", *(str(v) for v in flat if v is not True)]
    for name in (
        "batches",
        "bptt",
        "memory",
        "optimiser",
        "backward",
        "seed",
        "validations",
        "validation_tokens",
    ):
        value = getattr(config, name)
        if value != getattr(usual, name):
            command += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    if config.valid is not None:
        command += ["--valid", *config.valid]
    return shlex.join([*command, "--out", "AGAIN"])


def _draw(out: Path, content: dict[str, Any], path: Path) -> None:
    looks = [entry for entry in entries(out / checkpoint.LOG) if "valid" in entry]
    curve = [(each["seconds"], each["train"], each["valid"]) for each in looks]
    lines = [(each["name"], each["valid"]["nats"]) for each in content["baselines"]]
    draw_curve(curve, lines, path, title=str(out.name))
