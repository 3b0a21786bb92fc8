"""Train a language model on text files within a time limit and save the run in a folder."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Group, Parameter

from unspool.cells import CellName
from unspool.cli.checks import check_before
from unspool.cli.default_out import default_run
from unspool.cli.follow import follow
from unspool.cli.options import (
    GROUPS,
    ORDER,
    TEXT,
    CheckpointOptions,
    ConfigFile,
    Flag,
    OfOutput,
    OfText,
    OutputOptions,
    names_of,
    option_class,
)
from unspool.cli.precision import AUTO, PRECISION, with_precision
from unspool.cli.sources import Sources, files_read
from unspool.cluster.launch import restarted
from unspool.data import options as data
from unspool.errors import InputError
from unspool.gradients.bptt import Recompute
from unspool.kernels.arrays import Activation
from unspool.model import options as network
from unspool.model.values import Feedback
from unspool.optimisers.schedules.base import Plans
from unspool.options import Option, build
from unspool.tasks.language.again import began_as
from unspool.tasks.language.run import resume, run
from unspool.tasks.language.warm_start import WarmStart
from unspool.training import options as o
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import WHOLE, RunConfig
from unspool.training.recipe import Recipe

CHOSEN = "(defaults depend on the text and the time limit)"
GROUPS_OF_TRAIN = GROUPS | {
    name: Group(f"{name} {CHOSEN}", sort_key=ORDER[name]) for name in ("Network", "Training")
}


def _of_run(option: Option[str] | Option[int], default: str) -> Any:
    return option.field(None, help=f"{option.help} [default: {default}; with --from, that of RUN]")


@option_class(groups=GROUPS | {"Data": TEXT})
class Reading:
    """How the texts are read; what is not given is that of the run that the training starts from."""

    tokens: str | None = _of_run(data.TOKENS, "char")
    valid: OfText[str | None] = None
    """A separate file for the validation split; TEXT is then used for training."""
    split: data.Split | None = None
    clean: bool = False
    lines: bool = False
    min_freq: int | None = _of_run(data.MIN_FREQ, "0")
    errors: str | None = _of_run(data.ERRORS, "strict")
    newlines: str | None = _of_run(data.NEWLINES, "keep")

    def given(self) -> dict[str, Any]:
        """Return the settings of the text that were given."""
        found = {name: value for name, value in asdict(self).items() if value is not None and name != "valid"}
        return {name: value for name, value in found.items() if value or name not in ("clean", "lines")}


@option_class(groups=GROUPS_OF_TRAIN)
class TrainOptions(ConfigFile):
    """What is learned, how, and for how long."""

    out: OfOutput[Path | None] = None
    """The folder to create: model, vocabulary, settings, log and checkpoint [default: runs/NAME-train, NAME from TEXT]."""
    start: Annotated[Path | None, Parameter(name="--from", group=GROUPS_OF_TRAIN["Network"])] = None
    """Start from the model of this run instead of a new network (fine-tuning): its tokenizer, cleaning and sizes are used, its tokens keep their ids, new ones are added."""
    minutes: float | None = o.MINUTES.field(
        None, help="Time limit [default: 3]; model size, updates and schedule are chosen to fit it."
    )
    steps: int | None = o.STEPS.field(
        None,
        help="Number of updates, instead of --minutes. To repeat a run bit for bit, use the command that it printed.",
    )
    backward: bool = False
    cell: CellName | None = None
    activation: Activation | None = None
    h0: network.InitialState | None = None
    pattern: str | None = None
    feedback: Feedback | None = None
    precision: str | None = PRECISION.field(
        None, help=f"{PRECISION.help} [default: auto with --minutes, float32 with --steps or --from]"
    )
    hidden: int | None = None
    layers: int | None = None
    embedding: int | None = None
    tied: bool | None = None
    softmax: str | None = None
    input_scale: float | None = None
    dropout: float | None = None
    recurrent_dropout: float | None = None
    batch_size: int | None = None
    shards: int | None = None
    window: int | None = None
    batches: o.Batches = "sequential"
    restart: float | None = None
    bptt: str = "full"
    recompute: Recompute = "none"
    optimiser: str = "adam"
    schedule: str = "cosine"
    learning_rate: float | None = None
    warmup: int | None = None
    plans: str = ""
    clip: float | None = None
    decay: float | None = None
    seed: int = 0
    validations: int = 12
    validation_tokens: int = 0
    order: int | None = None
    final: bool = False

    def config(self, text: Sequence[str], reading: Reading) -> RunConfig:
        """Give the run that is asked for, with all that is not given left open."""
        if self.minutes is not None and self.steps is not None:
            raise InputError("give --minutes or --steps, not both")
        return build(
            RunConfig,
            self,
            sources=tuple(text),
            valid=None if reading.valid is None else (reading.valid,),
            settings=replace(WHOLE, **reading.given()),
            minutes=RunConfig.minutes if self.minutes is None else self.minutes,
            start=None if self.start is None else str(self.start),
            given=self._given(),
        )

    def _given(self) -> dict[str, Any]:
        """Give what is fixed of the recipe; a precision that is to be measured is not."""
        given = {name: getattr(self, name) for name in names_of(Recipe)} | {"plans": _plans(self.plans)}
        given |= {"precision": None if self.precision == AUTO else self.precision}
        return {name: value for name, value in given.items() if value is not None}

    def with_precision(self, config: RunConfig) -> RunConfig:
        """Return the config with the faster precision, if it was asked for, or if nothing else was and there is a time limit."""
        by_time = self.precision is None and self.steps is None and self.start is None
        if self.precision != AUTO and not by_time:
            return config
        settled = with_precision(replace(self, precision=AUTO), note=not by_time)
        return replace(config, given=config.given | {"precision": settled.precision})


@option_class
class Options(OutputOptions, CheckpointOptions, TrainOptions):
    """What `train` is given."""

    plot: OfOutput[Path | None] = None
    """Draw the learning curve against the baselines into this file (.png, .svg, .pdf)."""
    tensorboard: OfOutput[Flag] = False
    """Also write curves for TensorBoard into the run (extra `tensorboard`)."""


def train(text: Sources, /, *, reading: Reading = Reading(), options: Options = Options()) -> None:
    """Run `unspool train`.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source.
    """
    config, out = options.config(text, reading), options.out or default_run(text, "train")
    if restarted() and began_as(out, config):  # torchrun has started this command again
        return FIT.resume(out, options)
    check_before(out, options, inputs=files_read(text, reading.valid, reading.tokens))
    config = options.with_precision(config)
    start = None if options.start is None else WarmStart.of(options.start, given=reading.given())
    events = run(config, out=out, policy=CheckpointPolicy(steps=options.save_every), start=start)
    follow(events, out, options, tensorboard=options.tensorboard)


class TrainCommand(NamedTuple):
    """The training of language models, as `unspool resume` knows it."""

    options: type[Any] = Options
    uses: tuple[str, ...] = (
        "generate RUN --prompt …", "evaluate RUN TEXT", "inspect RUN TEXT", "compress RUN FILE",
    )  # fmt: skip

    def resume(self, run: Path, kept: Any) -> None:
        """Resume a run."""
        check_before(None, kept)
        events = resume(run, policy=CheckpointPolicy(steps=kept.save_every))
        follow(events, run, kept, tensorboard=kept.tensorboard)


FIT = TrainCommand()


def _plans(text: str) -> Plans | None:
    if not text:
        return None
    try:
        pairs = [pair.split(":") for pair in text.split(",")]
        return tuple((int(at), int(steps)) for at, steps in pairs)
    except ValueError:
        raise InputError(f"plans are {text!r}; expected 0:STEPS,AFTER:STEPS,… in whole numbers") from None
