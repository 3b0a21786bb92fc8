"""What one server holds: the texts, the runs, the thread that trains, the models that requests ask for."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

from unspool.data.text.settings import TextConfig
from unspool.data.text.source import text_source
from unspool.data.tokens.registry import TOKENIZERS
from unspool.errors import InputError, UnspoolError
from unspool.kernels.arrays import Floats
from unspool.model.network import Model
from unspool.model.parameters import Parameters
from unspool.storage import run_folder
from unspool.studio.fork import fork_run
from unspool.studio.history import Progress
from unspool.studio.payload import clean
from unspool.studio.runs import Run, open_run
from unspool.studio.trainer import Trainer
from unspool.studio.worker import Worker
from unspool.tasks.language.run import run as train_run
from unspool.tasks.language.text_model import TextModel
from unspool.tasks.registry import kind_of
from unspool.training.events import RunConfig
from unspool.training.recipe import Recipe

STEPS = 2000
"""The updates of a new run, where no number is given."""
BUILTIN = "builtin:python-docs"
OF_RUN = ("bptt", "batches", "recompute", "optimiser", "schedule", "seed", "validations", "order", "backward")
OF_TEXT = ("tokens", "clean", "min_freq", "newlines")
OF_RECIPE = tuple(field.name for field in fields(Recipe) if field.name != "plans")
"""What the page may choose of a new run."""
KEPT = 8
"""Parameters of earlier updates that are kept for the next request."""


@dataclass(frozen=True)
class Text:
    """A text to train on: one that the command named, or one that the page sent."""

    id: str
    name: str
    content: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what the page shows."""
        characters = None if self.content is None else len(self.content)
        builtin = self.name == BUILTIN
        return {"id": self.id, "name": clean(self.name), "characters": characters, "builtin": builtin}


@dataclass(frozen=True)
class Place:
    """What the command line knows: where a run goes, and the command that repeats one."""

    folder: Callable[[str], Path]
    """Return a free folder for a run of a text."""
    repeat: Callable[[RunConfig], str]


class Session:
    """Everything behind one address."""

    def __init__(self, place: Place) -> None:
        self.place, self.id = place, secrets.token_hex(8)
        self.version = 0
        self.texts: dict[str, Text] = {}
        self.runs: dict[str, Run] = {}
        self.current: Run | None = None
        self.replay: dict[str, Any] | None = None
        self.note: dict[str, Any] | None = None
        self._lock, self._numbers = threading.Lock(), count(1)
        self._parameters: OrderedDict[tuple[str, int], Parameters] = OrderedDict()
        self.trainer = Trainer(self.touch, self.say)
        self.worker = Worker(lambda: self.trainer.going)
        self.add_text(BUILTIN)

    def begin(self) -> None:
        """Start the threads."""
        self.trainer.start()
        self.worker.start()

    def close(self) -> None:
        """Save the run that is trained, and end the threads."""
        self.worker.close()
        self.trainer.close()

    def touch(self) -> None:
        """Remember that something has changed."""
        self.version += 1

    def say(self, code: str, message: str) -> None:
        """Leave a note for the page."""
        with self._lock:
            serial = 1 if self.note is None else self.note["serial"] + 1
            self.note = {"serial": serial, "code": code, "message": clean(message)}
        self.touch()

    # Texts and runs.

    def add_text(self, name: str, content: str | None = None) -> Text:
        """Take a text; one without content is read from its name, which only the command line may give."""
        if content is not None and not content.strip():
            raise InputError("the text is empty; paste or drop one with words in it")
        with self._lock:
            text = Text(f"t{len(self.texts) + 1}", name, content)
            self.texts[text.id] = text
        self.touch()
        return text

    def _add_run(self, name: str, out: Path, **more: Any) -> Run:
        with self._lock:
            made = Run(f"r{next(self._numbers)}", name, out, **more)
            self.runs[made.id] = made
        self.touch()
        return made

    def add_stored(self, out: Path) -> Run:
        """List a run of the disk."""
        return self._add_run(out.resolve().name, out)

    def add_model(self, source: TextModel, name: str) -> Run:
        """Show a model that is in memory."""
        run = self._add_run(name, Path(name))
        run.source, run.step, run.status = source, int((source.about or {}).get("step", 0)), "viewed"
        run.publish(source.model, run.step)
        self.current = run
        return run

    def add_folder(self, folder: Path) -> None:
        """List the language models in a folder of runs."""
        known = {each.out.resolve() for each in self.runs.values()}
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            try:
                if (
                    run_folder.is_run(place)
                    and place.resolve() not in known
                    and kind_of(place).command == "train"
                ):
                    self.add_stored(place)
            except UnspoolError:
                continue  # damaged, or of another version: other commands say so

    def run_of(self, name: str | None) -> Run:
        """Return a run by its id, by default the one that is shown."""
        found = self.current if name is None else self.runs.get(name)
        if found is None:
            raise LookupError("no such run; the list of runs is in the state")
        return found

    def show(self, run: Run) -> None:
        """Show a run; one of the disk is opened."""
        if run.status == "stored":
            open_run(run, self.place.repeat)
        if run.status == "followed":
            self.trainer.followed = run
        self.current = run
        self.touch()

    def new_run(self, text: Text, options: Mapping[str, Any]) -> Run:
        """Return a new run of a text; it is on the disk when it is planned."""
        config = run_config(text, options)
        out = self.place.folder(text.name)
        made = self._add_run(out.name, out, text=text.id, status="preparing", config=config)
        texts = None if text.content is None else text_source(text.content)
        made.begin = lambda: train_run(config, out=out, texts=texts)
        if text.content is None:
            made.command = self.place.repeat(config) if config.recipe is not None else None
        self.current = made
        self.touch()
        return made

    def fork(self, run: Run, update: int, options: Mapping[str, Any]) -> Run:
        """Return a run that goes on from an update of another one, with other settings."""
        out = self.place.folder(f"{run.name}-at-{update}")
        fork_run(run, update, options, out, self.progress(run, update))
        made = self._add_run(out.name, out, text=run.text)
        open_run(made, self.place.repeat)
        made.parent = {"run": run.id, "update": update}
        self.current = made
        self.touch()
        return made

    def progress(self, run: Run, update: int, check: Callable[[], None] = lambda: None) -> Progress:
        """Return what shows the page how far updates are made again; `check` may end them."""
        begin = None

        def show(at: int) -> None:
            nonlocal begin
            begin = at if begin is None else begin
            self.replay = {"run": run.id, "from": begin, "to": update, "at": at}
            self.touch()
            check()

        return show

    # Models.

    def model_of(
        self, run: Run, update: int | None, check: Callable[[], None] = lambda: None
    ) -> tuple[int, TextModel]:
        """Return the model of a run after an update, by default the newest; nobody changes its parameters."""
        if run.source is None:
            raise InputError(f"{run.name}: there is no model yet ({run.status}); try again in a moment")
        key = (run.id, -1 if update is None else update)
        if key in self._parameters:
            self._parameters.move_to_end(key)
            step, found = key[1], self._parameters[key]
        else:
            try:
                step, found = run.parameters_at(update, self.progress(run, update or 0, check))
            finally:
                if self.replay is not None:
                    self.replay = None
                    self.touch()
            if update is not None:
                self._parameters[key] = found
                while len(self._parameters) > KEPT:
                    self._parameters.popitem(last=False)
        return step, replace(run.source, model=Model(run.source.model.config, found))


def copied(model: Model) -> tuple[Model, Floats]:
    """Return a model whose parameters may be changed, and the flat vector of them."""
    parameters = model.parameters.like()
    parameters.flat[:] = model.parameters.flat
    return Model(model.config, parameters), parameters.flat


def run_config(text: Text, options: Mapping[str, Any]) -> RunConfig:
    """Return the config of a new run, as `unspool train --steps` makes it."""
    unknown = sorted(set(options) - {*OF_RUN, *OF_TEXT, *OF_RECIPE})
    if unknown:
        raise InputError(
            f"options: {unknown[0]!r} is not known; expected one of {', '.join(OF_RECIPE + OF_RUN)}"
        )
    settings = {name: options[name] for name in OF_TEXT if name in options}
    kinds = [name for name in TOKENIZERS if not name.endswith(":")]  # the others name a file
    if settings.get("tokens", "char") not in kinds:
        raise InputError(f"tokens is {settings['tokens']!r}; expected one of {', '.join(kinds)}")
    given = {name: options[name] for name in OF_RECIPE if options.get(name) is not None}
    return RunConfig(
        sources=(text.name,),
        settings=TextConfig(**({"split": None} | settings)),
        given={"steps": STEPS} | given,
        **{name: options[name] for name in OF_RUN if options.get(name) is not None},
    )
