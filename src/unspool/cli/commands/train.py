"""Train a language model on text files within a time limit and save the run in a folder."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from unspool.cells import CellName
from unspool.cli.checks import check_before
from unspool.cli.default_out import default_run
from unspool.cli.follow import CALLED, TAKEN, follow
from unspool.cli.options import CheckpointOptions, Flag, OfOutput, OfText, OfTime, OutputOptions, names_of
from unspool.cli.output import notes
from unspool.cli.signals import Stop
from unspool.cli.sources import Reading, Sources, files_read
from unspool.cli.views.training import View
from unspool.data.text.settings import TextConfig
from unspool.errors import InputError
from unspool.kernels.arrays import Activation
from unspool.optimisers.schedule import Plans
from unspool.tasks.language.run import run
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import RunConfig
from unspool.training.recipe import Recipe

T = TypeVar("T")
CHOSEN = "(what is not given is chosen for the text and the time)"
OfNetwork: TypeAlias = Annotated[T, Parameter(group=Group(f"Network {CHOSEN}", sort_key=3))]
OfTraining: TypeAlias = Annotated[T, Parameter(group=Group(f"Training {CHOSEN}", sort_key=4))]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What is learned, how, and for how long."""

    out: OfOutput[Path | None] = None
    """The folder to create: model, vocabulary, settings, log and checkpoint [default: runs/NAME-train, NAME from TEXT]."""
    minutes: OfTime[float | None] = None
    """How long it is to take [default: 3]. Size, updates and schedule are chosen to end well by then."""
    steps: OfTime[int | None] = None
    """How many updates, instead of minutes: with the other numbers that a run prints, it is repeated to the bit."""
    backward: OfText[Flag] = False
    """Learn the text in reverse time."""
    cell: OfNetwork[CellName | None] = None
    """The recurrence."""
    activation: OfNetwork[Activation | None] = None
    """The Elman cell's: tanh, relu, sigmoid or identity. All but tanh need --cell elman."""
    h0: OfNetwork[Literal["zero", "learned"] | None] = None
    """The state before the first step: zero, or learned with the other parameters."""
    pattern: OfNetwork[str | None] = None
    """The textbook's figure: 10.3, h(t) reads h(t-1); 10.4, h(t) reads only the output before (needs --cell elman)."""
    feedback: OfNetwork[Literal["token", "logits"] | None] = None
    """What pattern 10.4 feeds back: token, the target before (teacher forcing; in a text that is the last token alone), or
    logits, the real-valued o(t-1), which gradients pass through."""
    hidden: OfNetwork[int | None] = None
    """H, the units of a layer."""
    layers: OfNetwork[int | None] = None
    """Layers on each other."""
    embedding: OfNetwork[int | None] = None
    """The width of the token table; 0: one-hot tokens."""
    tied: OfNetwork[bool | None] = None
    """Use the token table as the output's matrix."""
    dropout: OfNetwork[float | None] = None
    """The share of a layer's outputs that is dropped."""
    recurrent_dropout: OfNetwork[float | None] = None
    """The share of the state that is dropped inside the recurrence."""
    batch: OfTraining[int | None] = None
    """B, rows side by side."""
    window: OfTraining[int | None] = None
    """tau, steps in a window."""
    batches: OfTraining[Literal["sequential", "random"]] = "sequential"
    """sequential carries the state from window to window; random starts each window anew."""
    bptt: OfTraining[str] = "full"
    """How far back gradients reach: full (the window), truncated:K (an update every K steps), truncated:K1,K2 (an
    update every K1 steps that looks back K2), random:P (cut at each step with probability 1-P, unbiased) or auto
    (truncated:K with the shortest window whose measured bias is at most 10 %)."""
    memory: OfTraining[Literal["full", "sqrt"]] = "full"
    """sqrt keeps every √tau-th state and computes the others again: less memory, the same bits."""
    optimiser: OfTraining[Literal["adam", "sgd"]] = "adam"
    """adam (AdamW where there is decay) or sgd (with momentum 0.9)."""
    learning_rate: OfTraining[float | None] = None
    """The highest; it rises over the first updates and ends at zero with the last."""
    warmup: OfTraining[int | None] = None
    """Over how many updates it rises."""
    plans: OfTraining[str] = ""
    """To repeat a run whose number of updates was changed on the way: 0:STEPS,AFTER:STEPS,… as it printed them."""
    clip: OfTraining[float | None] = None
    """The largest norm of a gradient; 0: no limit."""
    decay: OfTraining[float | None] = None
    """Weight decay on matrices."""
    seed: OfTraining[int] = 0
    """Where all random numbers come from."""
    validations: OfTraining[int] = 12
    """How often to look at the validation part on the way."""
    validation_tokens: OfTraining[int] = 0
    """How much of it to look at then, in segments spread over it; 0: as much as costs little."""
    order: OfTime[int | None] = None
    """The longest n-grams to compare with [default: 6 for characters and bytes, 4 for other tokens; fewer where they
    would take more than a tenth of the minutes]."""

    def config(self, text: Sequence[str], reading: Reading) -> RunConfig:
        """Give the run that is asked for, with all that is not given left open."""
        if self.minutes is not None and self.steps is not None:
            raise InputError("give --minutes or --steps, not both")
        settings = asdict(reading)
        valid = settings.pop("valid")
        return RunConfig(
            sources=tuple(text),
            valid=None if valid is None else (valid,),
            settings=TextConfig(**settings),
            minutes=3.0 if self.minutes is None else self.minutes,
            given=self._given(),
            **{name: getattr(self, name) for name in TAKEN},
        )

    def _given(self) -> dict[str, Any]:
        """Give what is fixed of the recipe."""
        told = {name: getattr(self, CALLED.get(name, name)) for name in names_of(Recipe)}
        told["plans"] = _plans(self.plans)
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Options(OutputOptions, CheckpointOptions, TrainOptions):
    """What `train` is given."""

    plot: OfOutput[Path | None] = None
    """Draw the learning curve against the baselines into this file (.png, .svg, .pdf)."""
    tensorboard: OfOutput[Flag] = False
    """Write curves for TensorBoard into the run as well (extra `tensorboard`)."""


def train(text: Sources, /, *, reading: Reading = Reading(), options: Options = Options()) -> None:
    """Run `unspool train`.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source.
    """
    config, out = options.config(text, reading), options.out or default_run(text, "train")
    check_before(out, options, inputs=files_read(text, reading.valid, reading.tokens))
    view, stop = View(notes(options)), Stop()
    policy = CheckpointPolicy(steps=options.save_every, stop=stop, told=stop.checked(view.judging))
    events = run(config, out=out, policy=policy)
    follow(events, out, view, stop, shown=options, tensorboard=options.tensorboard)


def _plans(text: str) -> Plans | None:
    if not text:
        return None
    try:
        pairs = [pair.split(":") for pair in text.split(",")]
        return tuple((int(at), int(steps)) for at, steps in pairs)
    except ValueError:
        raise InputError(f"plans are {text!r}; expected 0:STEPS,AFTER:STEPS,… in whole numbers") from None
