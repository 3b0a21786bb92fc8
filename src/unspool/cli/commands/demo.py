"""Train a small model on the help texts of Python in about a minute, compare it with n-grams, and print samples.

The text is the built-in help on the language (the topics of `help()`), which every installation of Python contains.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unspool import __version__
from unspool.baselines.language import baselines_to_plot
from unspool.cli.checks import check_plot
from unspool.cli.options import Flag, Replacing
from unspool.cli.output import print_json, terminal
from unspool.cli.output_files import output
from unspool.cli.views.comparison import best_as_json, rows_of
from unspool.cli.views.training import Sample, View
from unspool.data.text.corpus import Corpus
from unspool.data.text.settings import TextConfig
from unspool.errors import InputError
from unspool.kernels.native import kernel_info
from unspool.model.generate import Sampling, sample
from unspool.model.network import Model
from unspool.plots.curve import draw_curve
from unspool.tasks.language.run import run
from unspool.training import events

PROMPTS = (("The ", 0.5), ("If the ", 0.7), ("A class ", 0.9))
LENGTH = 240
NEXT = (
    ("unspool train YOUR.txt --minutes 3 --out RUN", "a model of your own text"),
    ("unspool generate RUN --prompt …", "generate text"),
    ("unspool demo --seconds 150", "train longer"),
    ("unspool stats YOUR.txt", "print statistics of your text"),
)


def demo(
    *,
    seconds: float = 40.0,
    seed: int = 0,
    json: Flag = False,
    quiet: Flag = False,
    plot: Path | None = None,
    replacing: Replacing = Replacing(),
) -> None:
    """Run `unspool demo`.

    Parameters
    ----------
    seconds
        Training time in seconds; the other stages take a few seconds more.
    seed
        Seed of all random numbers: the same seed and number of updates give the same model.
    json
        Print the result as JSON, and nothing else.
    quiet
        Print only the samples.
    plot
        Draw the learning curve against the baselines into this file (.png, .svg, .pdf).
    """
    check_plot(plot, force=replacing.force)
    config = _config(seconds, seed)
    if json:
        record = _run(config, lambda _: None)
        record.content["samples"] = [asdict(each) for each in _samples(record.model, record.corpus, seed)]
        _draw(record, plot, force=replacing.force)
        print_json(record.content)
        return
    with View(terminal(quiet=quiet)) as view:
        view.begin(kernel_info())
        record = _run(config, view.show)
        for each in _samples(record.model, record.corpus, seed):
            view.show_sample(each)
            if quiet:
                print(each.prompt + each.text)
        _draw(record, plot, force=replacing.force)
        view.end(NEXT)


def _config(seconds: float, seed: int) -> events.RunConfig:
    if not 0 < seconds <= 1e6:
        raise InputError(f"seconds is {seconds}; expected a number above 0 and at most a million")
    return events.RunConfig(
        settings=TextConfig(split=(0.9, 0.05, 0.05)),
        minutes=seconds / 60,
        given={"hidden": 256, "dropout": 0.35},  # help texts of many kinds: what is held out is another kind
        # Every two seconds or so, and no more often than the picture has room for.
        validations=int(min(20, max(3, seconds / 2))),
        order=6,
        seed=seed,
    )


@dataclass
class _Record:
    """Data of the events that the samples and --json need."""

    corpus: Corpus
    baselines: list[events.Baseline]
    model: Model
    content: dict[str, Any]


def _run(config: events.RunConfig, show: Callable[[events.Event], None]) -> _Record:
    content: dict[str, Any] = {"unspool": __version__, "kernel": kernel_info(), "curve": []}
    baselines = list[events.Baseline]()
    for event in run(config):
        show(event)
        match event:
            case events.CorpusReady(corpus):
                content["vocabulary"] = len(corpus.vocab)
                content["parts"] = {part.name: len(part.ids) for part in corpus.parts}
            case events.TrainingPlanned(model, planned, _, _):
                content["config"] = planned.to_json()
                content["parameters"] = model.parameters.count
            case events.PlanChanged(planned):
                content["config"] = planned.to_json()
            case events.StepDone(report, spent, train, valid, _):
                if valid is not None:
                    content["curve"].append(
                        {"step": report.step, "seconds": spent, "train": train, "valid": valid}
                    )
            case events.Evaluated(model, part, test, _, mixed, _, cost):
                content["network"] = {"name": "network", "test": test.to_json()}
                content["mixture"] = mixed and (cost or {}) | {"test": mixed.to_json()}
                content["best_baseline"] = best_as_json(rows_of(baselines, part), test)
            case list():
                baselines = event
                content["baselines"] = [
                    asdict(each) | {"valid": each.valid.to_json(), "test": each.test and each.test.to_json()}
                    for each in event
                ]
    return _Record(corpus, baselines, model, content)


def _draw(record: _Record, path: Path | None, *, force: bool) -> None:
    if path is None:
        return
    curve = [(each["seconds"], each["train"], each["valid"]) for each in record.content["curve"]]
    lines = [(each.name, each.during.nats) for each in baselines_to_plot(record.baselines)]
    with output(path, force=force) as unfinished:
        draw_curve(curve, lines, unfinished, title="unspool demo: a network learns Python's help texts")


def _samples(model: Model, corpus: Corpus, seed: int) -> Iterator[Sample]:
    for number, (prompt, temperature) in enumerate(PROMPTS):
        start = time.perf_counter()
        ids = sample(
            model,
            corpus.encode(prompt).tolist(),
            LENGTH,
            seed=seed + number,
            sampling=Sampling(temperature),
        )
        spent = time.perf_counter() - start
        yield Sample(prompt, temperature, corpus.decode(ids), spent / LENGTH)
