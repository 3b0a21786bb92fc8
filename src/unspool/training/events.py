"""What a run is, and what happens in it: values that `run` gives to whoever draws, prints or writes them."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from unspool.data.batches.text_windows import Batch
from unspool.data.text.corpus import Corpus
from unspool.data.text.settings import TextConfig
from unspool.errors import FileError, InputError
from unspool.evaluation.metrics import Metrics
from unspool.gradients.bptt import Recompute
from unspool.gradients.truncation import AUTO, TOLERANCE, Truncation
from unspool.model.network import Model
from unspool.optimisers import options as optimisers
from unspool.optimisers.schedules.base import Plans
from unspool.options import check_fields, declared, key_of, to_json
from unspool.storage.schema import read_as
from unspool.training import options as o
from unspool.training.loop import Report
from unspool.training.recipe import Recipe, check
from unspool.training.state import TrainingState

WHOLE = TextConfig(split=None)
"""Characters; the split is chosen by the length of the text."""


@declared(optimisers, o)
@dataclass(frozen=True)
class RunConfig:
    """All that a run depends on, besides the text."""

    sources: tuple[str, ...] = ("builtin:python-docs",)
    """Files, folders, - or builtin:…"""
    valid: tuple[str, ...] | None = None
    """The validation part, where it is not the end of the sources."""
    settings: TextConfig = WHOLE
    """How the text becomes tokens, and where it is split."""
    minutes: float = 3.0
    given: dict[str, Any] = field(default_factory=dict)
    """The fields of the recipe that the user has fixed."""
    recipe: Recipe | None = None
    """All numbers of the training; None until they are chosen."""
    batches: str = "sequential"
    bptt: str = "full"
    bptt_tolerance: float = TOLERANCE
    recompute: Recompute = "none"
    optimiser: str = "adam"
    schedule: str = "cosine"
    backward: bool = False
    seed: int = 0
    validations: int = 12
    validation_tokens: int = 0
    order: int | None = None
    final: bool = False
    start: str | None = None
    """The run whose model the training started from; None: a new network."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.given, dict):
            raise InputError(
                f"given is {self.given!r}; expected a dict with numbers of the recipe, {{}} for none"
            )
        feeds_tokens = self.given.get("pattern") == "10.4" and self.given.get("feedback", "token") == "token"
        object.__setattr__(self, "given", check(self.given))
        if self.batches == "random" and self.recipe is None and self.given.get("restart"):
            raise InputError(
                f"restart is {self.given['restart']:g}, but with batches random every window starts from h(0): leave restart out, "
                "or choose batches sequential"
            )
        if self.settings.lines:
            self._check_lines()
        if self.bptt == AUTO:
            self._check_auto(feeds_tokens)
        else:
            Truncation.parse(self.bptt).check_chain(feeds_tokens)
        if self.validation_tokens == 1:
            raise InputError("validation_tokens is 1; expected 0 (chosen with the recipe) or 2 and more")

    def _check_lines(self) -> None:
        """Raise where the windows of a text are asked for: a batch of lines holds whole lines."""
        others = {"bptt": self.bptt != "full", "batches": self.batches != "sequential"}
        others |= {name: self.recipe is None and name in self.given for name in ("window", "restart")}
        if asked := [name for name, given in others.items() if given]:
            raise InputError(f"{asked[0]} with lines: a minibatch holds whole lines; leave it out")

    def _check_auto(self, feeds_tokens: bool) -> None:
        if feeds_tokens:
            raise InputError(
                "bptt auto: with pattern 10.4 and tokens fed back, no gradient passes between steps; give feedback logits"
            )
        if self.batches != "sequential":
            raise InputError("bptt auto needs batches sequential: random windows carry no state")
        if "window" in self.given or self.recipe is not None:
            raise InputError("bptt auto chooses the window; leave the window out, or give bptt truncated:K")

    @property
    def fixed(self) -> Recipe:
        """The recipe, which has been chosen by now."""
        assert self.recipe is not None
        return self.recipe

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        keys = {field.name: key_of(field) for field in fields(Recipe)}
        return to_json(self) | {"given": {keys[name]: value for name, value in self.given.items()}}

    @staticmethod
    def from_json(fields: Any, path: str | Path = "config.json") -> "RunConfig":
        """Make the config of a run that has begun from the plain values of a file."""
        config = read_as(RunConfig, fields, path, "run")
        try:
            if config.recipe is None:
                raise InputError("run.recipe is missing")
            check(vars(config.recipe))
        except InputError as error:
            raise FileError(f"{path}: damaged or manipulated: {error}") from error
        return config


@dataclass(frozen=True)
class CorpusReady:
    """The text is numbered and cut into parts."""

    corpus: Corpus


@dataclass(frozen=True)
class Started:
    """The training starts from a trained model, whose vocabulary was extended."""

    run: str
    old: int
    """The number of tokens of its vocabulary, which keep their ids and rows."""
    new: list[Any]
    """The tokens that it lacked."""
    absent: list[Any]
    """The tokens of its vocabulary that the new training split does not have."""


@dataclass(frozen=True)
class Baseline:
    """An n-gram model or the uniform distribution, and how well it predicts."""

    name: str
    valid: Metrics
    """On the whole validation part."""
    test: Metrics | None
    """On the test part; None where there is none."""
    seconds: float | None = None
    """The time to count, smooth and score it; None where it was not measured."""
    counts: int | None = None
    """How many counts it stores."""
    live: Metrics | None = None
    """On the targets that validation in training scores; None in runs of older versions."""

    @property
    def during(self) -> Metrics:
        """The figures beside a learning curve: on its own targets, in runs of older versions on the whole part."""
        return self.live or self.valid


@dataclass(frozen=True)
class LeftOut:
    """Baselines of higher orders that were not computed, because of their cost."""

    why: str


@dataclass(frozen=True)
class TrainingPlanned:
    """The model is there, untrained, and every number is fixed in the config."""

    model: Model
    config: RunConfig
    first: Batch
    """What the first minibatch looks like."""
    step: int
    """How many updates have been made: 0, or more where a run goes on."""
    bias: dict[int, float] | None = None
    """With bptt auto: the measured bias of every K that was tried."""
    training: TrainingState[Model] | None = None
    """The state that the updates change: copy it between two events, never change it."""


@dataclass(frozen=True)
class StepDone:
    """One update."""

    report: Report
    seconds: float
    """The duration of the run so far, over all its parts."""
    train: float
    """The running mean of the training loss."""
    valid: float | None = None
    """The mean loss of the validation part, after the updates where it is computed."""
    sample: str | None = None
    """A text that the model generates now, after some updates of a language model."""
    steps: int = 0
    """The planned number of updates."""
    best: bool = False
    """Whether the validation loss is the lowest so far."""

    @property
    def step(self) -> int:
        """The number of updates so far."""
        return self.report.step


@dataclass(frozen=True)
class Replanned:
    """Another number of updates ends at the deadline."""

    steps: int
    plans: Plans


@dataclass(frozen=True)
class PlanChanged:
    """The speed is known better: another number of updates ends at the deadline."""

    config: RunConfig


@dataclass(frozen=True)
class Scoring:
    """A part of the evaluation of the best model is done."""

    done: int
    """How many targets are scored."""
    total: int


@dataclass(frozen=True)
class Working:
    """The work before the next event takes a while."""

    what: str


@dataclass(frozen=True)
class Evaluated:
    """The best model, and the held-out part by it, from end to end."""

    model: Model
    part: str
    measure: Metrics
    best_step: int
    mixed: Metrics | None = None
    """The same part by the mixture of the network with n-grams; None if there is none."""
    mixture: Any = None
    """That mixture, an `unspool.baselines.mixture.Mixture`."""
    mixture_cost: dict[str, Any] | None = None
    """Its order, the counts of its n-grams, the seconds to count them, their memory and the size of their file."""


@dataclass(frozen=True)
class FinalPlanned:
    """The model has been measured; the same recipe is now trained on the whole text."""

    steps: int
    """How many updates it makes: as many per token as the measured model."""
    tokens: int
    """The length of the whole text."""
    step: int
    """How many updates have been made: 0, or more where a run goes on."""


@dataclass(frozen=True)
class FinalStep(StepDone):
    """One update of the second training."""


@dataclass(frozen=True)
class FinalTrained:
    """The final model. It has no scores: no text is left to measure it on."""

    model: Model
    step: int
    mixture: Any = None


Event: TypeAlias = (
    CorpusReady
    | Started
    | FinalPlanned
    | FinalTrained
    | list[Baseline]
    | LeftOut
    | TrainingPlanned
    | StepDone
    | PlanChanged
    | Scoring
    | Working
    | Evaluated
)
