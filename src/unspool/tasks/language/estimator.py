"""The estimator of language models: fit a text, score texts, generate text.

>>> text = "she sells sea shells by the sea shore; the shells she sells are sea shells.\\n" * 60
>>> model = LanguageModel(cell="gru", hidden=32, steps=200, learning_rate=0.01, seed=1).fit(text)
>>> model.perplexity(text[:700]) < 1.5
True
>>> model.generate("she sells sea shells by the ", 20, temperature=0)
'sea shore; the shell'
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from unspool.data.text.settings import TextConfig
from unspool.data.text.sources import Texts, as_sources
from unspool.errors import InputError
from unspool.gradients.backpropagate import Memory
from unspool.gradients.truncation import TOLERANCE
from unspool.model.generate import TEMPERATURE, Sampling
from unspool.options import at_least, refuse_unknown
from unspool.storage import run_folder
from unspool.storage.files import as_path
from unspool.tasks.language.run import run
from unspool.tasks.language.text_model import TextModel
from unspool.training.events import (
    CorpusReady,
    Evaluated,
    Event,
    PlanChanged,
    RunConfig,
    StepDone,
    TrainingPlanned,
)

RECIPE = {"batch": "B", "window": "tau"}
"""The words for the letters of the recipe; the letters are accepted, too."""
GIVEN = (
    "cell", "hidden", "layers", "embedding", "tied", "dropout", "recurrent_dropout", "batch", "window",
    "learning_rate", "clip", "decay", "warmup", "steps", "activation", "h0", "pattern", "feedback",
)  # fmt: skip
"""The parts of the recipe that may be fixed."""
RUN = ("minutes", "seed", "backward", "batches", "bptt", "bptt_tolerance", "memory", "optimiser", "schedule")
TEXT = ("tokens", "min_freq", "split")
OWN = (*RUN, *TEXT, "out", "show")
ARGUMENTS = (*OWN, *GIVEN, *RECIPE.values())


class LanguageModel:
    """A language model from a text, by scikit-learn's conventions.

    `minutes`, `seed`, `backward`, `batches`, `bptt`, `memory`, `optimiser` and `schedule` are those of `unspool train`, and so are
    `tokens` (char, word, byte …), `min_freq` and `split` of the text; `bptt_tolerance` is the bias that bptt="auto"
    accepts, `out` a folder to save the run in. Any number of the recipe may be fixed as well: cell, hidden, layers, embedding, tied, dropout,
    recurrent_dropout, batch, window, learning_rate, clip, decay, warmup, steps, activation, h0, pattern, feedback. The rest is chosen for
    the text and the time. `show` is called with every event of the run.

    After `fit`: `text_model_` (the model with its vocabulary), `config_` (every number that was chosen),
    `curve_` ((updates, nats in training, nats of the validation part)) and `measure_` (the held-out part).
    """

    def __init__(
        self,
        *,
        minutes: float = 1.0,
        tokens: str = "char",
        seed: int = 0,
        backward: bool = False,
        batches: str = "sequential",
        bptt: str = "full",
        bptt_tolerance: float = TOLERANCE,
        memory: Memory = "full",
        optimiser: str = "adam",
        schedule: str = "cosine",
        min_freq: int = 0,
        split: tuple[float, float, float] | None = None,
        out: str | Path | None = None,
        show: Callable[[Event], object] | None = None,
        **recipe: Any,
    ) -> None:
        refuse_unknown("LanguageModel", recipe, ARGUMENTS)
        self.minutes, self.tokens, self.seed, self.backward = minutes, tokens, seed, backward
        self.batches, self.out, self.show, self.recipe = batches, out, show, recipe
        self.bptt, self.bptt_tolerance, self.memory, self.optimiser = bptt, bptt_tolerance, memory, optimiser
        self.min_freq, self.split, self.schedule = min_freq, split, schedule

    def fit(self, text: Texts, y: None = None, *, valid: Texts | None = None) -> Self:
        """Train on a text: a string is the text itself, a Path a file or folder, a list several of them.

        The validation part is the text `valid`; without it, `split` says which part of the text it is.
        """
        sources = as_sources(text, "text")
        held_out = None if valid is None else as_sources(valid, "valid")
        curve = list[tuple[int, float, float]]()
        out = None if self.out is None else as_path(self.out)
        config = replace(self._config(), valid=None if valid is None else ("a text",))
        for event in run(config, out=out, texts=sources, valid=held_out):
            if self.show is not None:
                self.show(event)
            match event:
                case CorpusReady(corpus):
                    made = corpus
                case TrainingPlanned(_, config):
                    self.config_ = config
                case PlanChanged(config):
                    self.config_ = config
                case StepDone(report, _, train, judged_valid, _):
                    if judged_valid is not None:
                        curve.append((report.step, train, judged_valid))
                case Evaluated(model, _, judged, _):
                    self.text_model_ = TextModel(
                        model, made.vocab, made.tokenizer, made.settings, self.backward
                    )
                    self.measure_ = judged
        self.curve_ = curve
        return self

    def _config(self) -> RunConfig:
        for name in RECIPE.keys() & self.recipe.keys():
            at_least(name, self.recipe[name], 1)
            if RECIPE[name] in self.recipe:
                raise InputError(f"{name} and {RECIPE[name]} are two names of one number; give one of them")
        given = {RECIPE.get(name, name): value for name, value in self.recipe.items()}
        return RunConfig(
            sources=("a text",),
            settings=TextConfig(**{name: getattr(self, name) for name in TEXT}),
            given=given,
            **{name: getattr(self, name) for name in RUN},
        )

    @property
    def fitted(self) -> TextModel:
        """The trained model; before `fit` there is none."""
        if not hasattr(self, "text_model_"):
            raise InputError("this LanguageModel has not been fitted yet: call fit(text) first")
        return self.text_model_

    def perplexity(self, text: Texts) -> float:
        """Return the perplexity of a text or a Path: every token but the first is predicted once."""
        return self.fitted.perplexity(text)

    def score(self, text: Texts, y: None = None) -> float:
        """Return minus the nats per token of a text or a Path: higher is better."""
        return -math.log(self.perplexity(text))

    def generate(
        self,
        prompt: str = "",
        length: int = 200,
        *,
        temperature: float = TEMPERATURE,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> str:
        """Return a continuation of the prompt, which is text and never a file name."""
        return self.fitted.generate(prompt, length, seed=seed, sampling=Sampling(temperature, top_k, top_p))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {name: getattr(self, name) for name in OWN} | self.recipe

    def set_params(self, **params: Any) -> Self:
        """Change the constructor's arguments."""
        refuse_unknown("LanguageModel", params, ARGUMENTS)
        for name, value in params.items():
            if name in OWN:
                setattr(self, name, value)
            else:
                self.recipe[name] = value
        return self

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a new run, which can be loaded but not resumed."""
        model = self.fitted
        with run_folder.new_run(path) as folder:
            model.save(folder, getattr(self, "config_", None))

    @classmethod
    def load(cls, run: str | Path) -> Self:
        """Read the best model of a run, with the arguments that it was trained with."""
        model = TextModel.load(run)
        fields = run_folder.read_config(run, "language")["run"]
        if "recipe" not in fields:  # only the model was saved
            made = cls()
        else:
            config = RunConfig.from_json(fields, Path(run) / run_folder.CONFIG)
            words = {letter: word for word, letter in RECIPE.items()}
            arguments = {name: getattr(config, name) for name in RUN}
            arguments |= {name: getattr(config.settings, name) for name in TEXT}
            made = cls(**arguments, **{words.get(name, name): value for name, value in config.given.items()})
            made.config_ = config
        made.text_model_ = model
        return made
