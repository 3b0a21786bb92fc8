"""What a run is, and what happens in it: values that `run` gives to whoever draws, prints or writes them."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from unspool.backpropagate import Memory
from unspool.config import at_least, from_choice
from unspool.data.batches import Batch
from unspool.data.corpus import Corpus
from unspool.data.settings import Settings
from unspool.errors import InputError
from unspool.measure import Measure
from unspool.model import Model
from unspool.plan import Recipe, check
from unspool.train import Report
from unspool.truncation import Truncation

WHOLE = Settings(split=(0.9, 0.1, 0.0))
"""Characters; the first nine tenths to learn from, the last to judge by."""


@dataclass(frozen=True)
class RunConfig:
    """All that a run depends on, besides the text."""

    sources: tuple[str, ...] = ("builtin:python-docs",)
    """Files, folders, - or builtin:…"""
    valid: tuple[str, ...] | None = None
    """The validation part, where it is not the end of the sources."""
    settings: Settings = WHOLE
    """How the text becomes tokens, and where it is split."""
    minutes: float = 2.5
    """How long the run is to take, until the model is trained; used where the recipe leaves the steps open."""
    given: dict[str, Any] = field(default_factory=dict)
    """What the user has fixed of the recipe."""
    recipe: Recipe | None = None
    """All numbers of the training; None until they are chosen."""
    batches: str = "sequential"
    """sequential (the state is carried on) or random."""
    bptt: str = "full"
    """How far back a gradient reaches: full (the window), truncated:K, truncated:K1,K2 or random:P."""
    memory: Memory = "full"
    """Which states are kept for the way back: all (full), or every √tau-th (sqrt)."""
    optimiser: str = "adam"
    """adam or sgd."""
    backward: bool = False
    """Whether the text is read in reverse time."""
    validations: int = 12
    """How often the validation part is looked at on the way."""
    validation_tokens: int = 0
    """How much of it is looked at; 0: chosen with the recipe."""
    order: int = 3
    """The longest n-grams of the baselines."""
    seed: int = 0
    """Where all random numbers come from."""

    def __post_init__(self) -> None:
        for name, least in (("validations", 1), ("validation_tokens", 0), ("order", 1), ("seed", 0)):
            at_least(name, getattr(self, name), least)
        from_choice("batches", self.batches, ("sequential", "random"))
        from_choice("memory", self.memory, ("full", "sqrt"))
        tokens = self.given.get("pattern") == "10.4" and self.given.get("feedback", "token") == "token"
        Truncation.parse(self.bptt).check_chain(tokens)
        check(self.given)
        if self.validation_tokens == 1:
            raise InputError("validation_tokens is 1; expected 0 (chosen with the recipe) or 2 and more")
        if not 0 < self.minutes <= 1e5:
            raise InputError(f"minutes is {self.minutes}; expected a number above 0 and at most 100,000")

    @property
    def fixed(self) -> Recipe:
        """The recipe, which has been chosen by now."""
        assert self.recipe is not None
        return self.recipe

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    @staticmethod
    def from_json(fields: dict[str, Any]) -> "RunConfig":
        """Make a config from plain values."""
        whole = Settings.from_json(fields["settings"])
        valid = None if fields["valid"] is None else tuple(fields["valid"])
        recipe = None if fields["recipe"] is None else Recipe.from_json(fields["recipe"])
        own = {"sources": tuple(fields["sources"]), "valid": valid, "settings": whole, "recipe": recipe}
        return RunConfig(**fields | own)


@dataclass(frozen=True)
class Prepared:
    """The text is numbered and cut into parts."""

    corpus: Corpus


@dataclass(frozen=True)
class Baseline:
    """A model that only counts, and how well it predicts: the lines that a network has to cross."""

    name: str
    valid: Measure
    test: Measure


@dataclass(frozen=True)
class Planned:
    """The model is there, untrained, and every number is fixed in the config."""

    model: Model
    config: RunConfig
    first: Batch
    """What the first minibatch looks like."""
    step: int
    """How many updates have been made: 0, or more where a run goes on."""


@dataclass(frozen=True)
class Step:
    """One update."""

    report: Report
    seconds: float
    """Since the run began, all its pieces together."""
    train: float
    """The mean nats of about the last fifty updates."""
    valid: float | None
    """The mean nats of the validation part, on the updates where it is looked at."""
    sample: str | None
    """A text that the model writes now, now and then."""


@dataclass(frozen=True)
class Changed:
    """The pace is now known better: another number of updates ends at the deadline."""

    config: RunConfig


@dataclass(frozen=True)
class Stopped:
    """Somebody asked for a stop: the step was finished, and all is saved."""

    step: int
    out: Path | None


@dataclass(frozen=True)
class Judged:
    """The best model, and the held-out part by it, from end to end."""

    model: Model
    part: str
    measure: Measure
    best_step: int


Event: TypeAlias = Prepared | list[Baseline] | Planned | Step | Changed | Stopped | Judged
