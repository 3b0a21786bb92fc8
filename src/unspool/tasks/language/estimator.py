"""A language model for notebooks: fit it, measure perplexities, generate text.

>>> text = "she sells sea shells by the sea shore; the shells she sells are sea shells.\\n" * 60
>>> model = LanguageModel(cell="gru", hidden=32, steps=200, learning_rate=0.01, seed=1).fit(text)
>>> model.perplexity(text[:700]) < 1.5
True
>>> model.generate("she sells sea shells by the ", 20, temperature=0)
'sea shore; the shell'
>>> other = "the sea sells shells she sells by the shore\\n" * 20
>>> model.perplexity(other, learn=True) < model.perplexity(other)     # learns while it reads
True
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from unspool.cells import CellName
from unspool.data import options as text
from unspool.data.text.settings import TextConfig
from unspool.data.text.sources import Text, Texts, as_sources
from unspool.errors import InputError, UnknownArgument
from unspool.gradients.bptt import Recompute
from unspool.gradients.truncation import TOLERANCE
from unspool.kernels.arrays import Activation, Precision
from unspool.model import options as network
from unspool.model.generate import TEMPERATURE, Sampling
from unspool.model.values import Feedback
from unspool.optimisers import options as optimisers
from unspool.optimisers.schedules.base import Plans
from unspool.options import Arguments, build, declared, refuse_unknown
from unspool.storage import run_folder
from unspool.storage.files import as_path
from unspool.storage.html_page import HtmlPage
from unspool.tasks.language.run import run
from unspool.tasks.language.text_model import LineScore, TextModel
from unspool.tasks.language.warm_start import WarmStart
from unspool.training import options as o
from unspool.training.dynamic import Learning, LearningReader
from unspool.training.events import (
    CorpusReady,
    Evaluated,
    Event,
    FinalTrained,
    PlanChanged,
    RunConfig,
    StepDone,
    TrainingPlanned,
)
from unspool.training.recipe import Recipe


@declared(text, network, optimisers, o)
@dataclass(eq=False, repr=False, kw_only=True)
class LanguageModel(Arguments):
    """A language model from a text, with the conventions of scikit-learn; its arguments are the options of `unspool train`.

    Values of the recipe that are None are chosen for the text and the time limit. `out` is a folder to save the run in;
    `show` is called with every event of the run.

    After `fit`: `text_model_` (the model with its vocabulary), `config_` (every number that was chosen),
    `curve_` ((updates, nats in training, nats of the validation split)) and `measure_` (the held-out split; with `final`,
    by the model that was measured before the one of the whole text was trained).
    """

    minutes: float = 1.0
    tokens: str = "char"
    seed: int = 0
    backward: bool = False
    batches: str = "sequential"
    bptt: str = "full"
    bptt_tolerance: float = TOLERANCE
    recompute: Recompute = "none"
    optimiser: str = "adam"
    schedule: str = "cosine"
    split: text.Split | None = None
    clean: bool = False
    min_freq: int = 0
    errors: str = "strict"
    newlines: str = "keep"
    lines: bool = False
    validations: int = 12
    validation_tokens: int = 0
    order: int | None = None
    final: bool = False
    cell: CellName | None = None
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
    restart: float | None = None
    learning_rate: float | None = None
    clip: float | None = None
    decay: float | None = None
    warmup: int | None = None
    steps: int | None = None
    plans: Plans | None = None
    activation: Activation | None = None
    h0: network.InitialState | None = None
    pattern: str | None = None
    feedback: Feedback | None = None
    precision: Precision | None = None
    out: str | Path | None = None
    """A folder to save the run in."""
    show: Callable[[Event], object] | None = None
    """Called with every event of the run."""

    def fit(
        self,
        text: Texts,
        y: None = None,
        *,
        valid: Texts | None = None,
        start: "LanguageModel | TextModel | str | Path | None" = None,
        **unknown: Any,
    ) -> Self:
        """Train on a text: a string is the text itself, a Path a file or folder, a list several of them.

        The validation split is the text `valid`; without it, `split` says which part of the text it is. With `start`, a
        fitted model or a run, the training starts from its parameters: its tokens keep their ids, new ones are added.
        """
        if "run" in unknown:
            raise UnknownArgument(
                "LanguageModel.fit has no argument 'run'; give the folder as LanguageModel(out=…)"
            )
        refuse_unknown("LanguageModel.fit", unknown, ["text", "y", "valid", "start"])
        sources = as_sources(text, "text")
        held_out = None if valid is None else as_sources(valid, "valid")
        curve = list[tuple[int, float, float]]()
        out = None if self.out is None else as_path(self.out)
        config = replace(self._config(), valid=None if valid is None else ("a text",))
        begun = start.fitted if isinstance(start, LanguageModel) else start
        parent = None if begun is None else WarmStart.of(begun)
        for event in run(config, out=out, texts=sources, valid=held_out, start=parent):
            if self.show is not None:
                self.show(event)
            match event:
                case CorpusReady(corpus):
                    made = corpus
                case TrainingPlanned(_, config):
                    self.config_, backward = config, config.backward
                case PlanChanged(config):
                    self.config_ = config
                case StepDone(report, _, train, judged_valid, _):
                    if judged_valid is not None:
                        curve.append((report.step, train, judged_valid))
                case Evaluated(model, _, judged, _, _, mixture):
                    self.text_model_ = TextModel(
                        model, made.vocab, made.tokenizer, made.settings, backward, mixture=mixture
                    )
                    self.measure_ = judged
                case FinalTrained(model, step, mixture):
                    about = {"step": step, "valid": None, "final": True}
                    self.text_model_ = replace(self.text_model_, model=model, mixture=mixture, about=about)
        self.curve_ = curve
        return self

    def _config(self) -> RunConfig:
        given = {field.name: getattr(self, field.name) for field in fields(Recipe)}
        given = {name: value for name, value in given.items() if value is not None}
        return build(RunConfig, self, sources=("a text",), settings=build(TextConfig, self), given=given)

    @property
    def fitted(self) -> TextModel:
        """The trained model; before `fit` there is none."""
        if not hasattr(self, "text_model_"):
            raise InputError("this LanguageModel has not been fitted yet: call fit(text) first")
        return self.text_model_

    def perplexity(self, text: Texts, *, mixture: bool = False, learn: bool | Learning = False) -> float:
        """Return the perplexity of a text or a Path by the network, or by its mixture with the n-grams of the training text.

        Every token but the first is predicted once. With `learn`, the network learns from the text while it reads it (dynamic
        evaluation): each segment is scored first. The fitted model does not change.
        """
        return self.fitted.perplexity(text, mixture=mixture, learn=learn)

    def reader(self, learning: Learning | None = None) -> LearningReader:
        """Return a reader that learns from the ids that it reads; see `TextModel.reader`."""
        return self.fitted.reader(learning)

    def score_lines(self, lines: Sequence[str], *, mixture: bool = False) -> list[LineScore]:
        """Return log P and perplexity of each line: every line by itself, from its beginning to its end."""
        return self.fitted.score_lines(lines, mixture=mixture)

    def inspect(self, text: Text, *, characters: int = 2000, units: Sequence[str] | None = None) -> HtmlPage:
        """Read a text and return the studio's views of it as a page, which a notebook displays; see `TextModel.inspect`."""
        return self.fitted.inspect(text, characters=characters, units=units)

    def score(self, text: Texts, y: None = None, *, mixture: bool = False) -> float:
        """Return minus the nats per token of a text or a Path, by the network or by its mixture: higher is better."""
        return -math.log(self.perplexity(text, mixture=mixture))

    def generate(
        self,
        prompt: str = "",
        length: int = 200,
        *,
        temperature: float = TEMPERATURE,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        repetition_window: int = 0,
        stop: str | Sequence[str] = (),
        seed: int = 0,
        mixture: bool = False,
    ) -> str:
        """Return a continuation of the prompt by the network or by its mixture; for the other arguments see `Sampling`.

        The prompt is text and never a file name. The continuation has `length` tokens, or ends before the first of the `stop` texts.
        """
        sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty, repetition_window)
        return self.fitted.generate(prompt, length, seed=seed, sampling=sampling, stop=stop, mixture=mixture)

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a new run, which can be loaded but not resumed."""
        model = self.fitted
        with run_folder.new_run(path) as folder:
            model.save(folder, getattr(self, "config_", None))

    @classmethod
    def load(cls, run: str | Path) -> Self:
        """Read the best model of a run and its mixture, with the arguments that it was trained with."""
        model = TextModel.load(run, mixture=True)
        content = run_folder.read_config(run, "language")["run"]
        if "recipe" not in content:  # only the model was saved
            made = cls()
        else:
            config = RunConfig.from_json(content, Path(run) / run_folder.CONFIG)
            known = {field.name for field in fields(cls)}
            found = vars(config) | vars(config.settings) | config.given
            made = cls(**{name: value for name, value in found.items() if name in known})
            made.config_ = config
        made.text_model_ = model
        return made
