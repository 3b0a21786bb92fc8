"""Summarise a run of any kind from its files: what it is, how far it is, its figures. A damaged run is reported, not raised.

config.json ─▶ kind, data, hyper-parameters, baselines, provenance
log.jsonl   ─▶ learning curve, final evaluation
scores.json ─▶ scores on held-out rows, written by `fit`
"""

import math
import os
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unspool.cli.options import DECLARED
from unspool.cli.output import finite
from unspool.cli.workers import FEW
from unspool.errors import FileError, UnspoolError
from unspool.storage import run_folder, tensors
from unspool.storage.files import why
from unspool.storage.log import read_log
from unspool.training.store import saved_step

SCORES = "scores.json"
"""The file of a run with its scores on held-out rows."""
FINISHED, RESUMABLE, DAMAGED = "finished", "resumable", "damaged"
SHOWN = {"macro_f1": "macro F1", "error_rate": "edits per character"}
"""How scores are called, if not by their names."""
UNREADABLE = (UnspoolError, OSError, KeyError, IndexError, TypeError, ValueError, AttributeError)
"""Errors of a file that is damaged, crafted or of another version."""
PER_RUN = ("batches", "bptt", "memory", "optimiser", "schedule", "backward", "seed", "order", "final")
"""Hyper-parameters of a language model that stand beside its recipe, as config.json names them."""
OPTIONS = {"B": "batch", "batch_size": "batch", "tau": "window"}
"""Hyper-parameters whose option has another name."""
FORMER = {old: (each.name, values) for each in DECLARED.values() for old, values in each.former.items()}
"""Former names, which config.json keeps: the name now, and the values that were called otherwise."""


@dataclass(frozen=True)
class Figure:
    """One figure of a model or a baseline on held-out data."""

    model: str
    name: str
    value: float | None


@dataclass(frozen=True)
class Progress:
    """The updates of a training that follows the one that was measured."""

    steps: int
    planned: int


@dataclass
class RunSummary:
    """The fields of a run that `unspool runs` and `unspool show` print."""

    run: str
    kind: str = ""
    state: str = DAMAGED
    error: str | None = None
    """What is wrong with a damaged run."""
    data: list[str] = field(default_factory=list)
    cell: str | None = None
    hidden: int | None = None
    parameters: int | None = None
    steps: int | None = None
    planned: int | None = None
    final: Progress | None = None
    """With --final: the training on the whole text, once it has begun."""
    seconds: float | None = None
    """Training time."""
    valid: float | None = None
    """The lowest validation loss, in nats (regress: in the units of the loss)."""
    test: Figure | None = None
    """The main figure on held-out data."""
    part: str | None = None
    """The data of the test figure."""
    started: str | None = None
    bytes: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    """Hyper-parameters by the name of their option."""
    figures: list[Figure] = field(default_factory=list)
    """The model beside the baselines."""
    curve: list[dict[str, float]] = field(default_factory=list)
    """Step, seconds, train and valid of every validation."""
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values; infinity and NaN are null."""
        plain: dict[str, Any] = finite(asdict(self))
        return plain


def as_options(values: dict[str, Any]) -> dict[str, Any]:
    """Return hyper-parameters under the names of their options.

    >>> as_options({"B": 8, "hidden": 4, "memory": "full"})
    {'batch': 8, 'hidden': 4, 'recompute': 'none'}
    """
    found = {}
    for name, value in values.items():
        option, renamed = FORMER.get(name, (OPTIONS.get(name, name), {}))
        found[option] = renamed.get(value, value) if isinstance(value, str) else value
    return found


def find_runs(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the runs at and below folders, in the order of their paths; a run inside a run is not looked for."""
    for folder in folders:
        if not folder.is_dir():
            raise FileError(f"{folder}: not a folder; expected a run or a folder with runs")
        if run_folder.is_run(folder):
            yield folder
            continue
        try:
            below = sorted(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink())
        except OSError as error:
            raise FileError(f"{folder}: cannot be read: {why(error)}") from error
        yield from find_runs(each for each in below if os.access(each, os.R_OK | os.X_OK))


def summarise(run: Path) -> RunSummary:
    """Return the summary of a run; everything that can be read stands in it, also if the run is damaged."""
    found = RunSummary(str(run))
    try:
        found.bytes = sum(each.stat().st_size for each in run.rglob("*") if each.is_file())
        found.kind = run_folder.read_kind(run)
        content = run_folder.read_config(run, found.kind)
        found.provenance = dict(content.get("provenance") or {})
        found.started = found.provenance.get("started")
        log = read_log(run / run_folder.LOG) if (run / run_folder.LOG).exists() else []
        {"language": _language, "forecast": _forecast}.get(found.kind, _sequences)(found, content, log, run)
        _check_model(found, run)
    except UNREADABLE as error:
        found.state, found.error = DAMAGED, _reason(error)
    if not _has_right_types(found):  # a crafted config has a right checksum
        wrong = found.error or f"{run / run_folder.CONFIG}: damaged or manipulated: a field has a wrong type"
        return RunSummary(str(run), error=wrong, bytes=found.bytes)
    return found


def _has_right_types(found: RunSummary) -> bool:
    """Return whether the fields that are printed have their types."""
    texts = [found.kind, found.cell, found.started, found.part, *found.data]
    final = [] if found.final is None else [found.final.steps, found.final.planned]
    integers = [found.hidden, found.steps, found.planned, *final]
    numbers = [found.seconds, found.valid, *(each.value for each in found.figures)]
    return all(
        each is None or (isinstance(each, kind) and not isinstance(each, bool))
        for values, kind in ((texts, str), (integers, int), (numbers, int | float))
        for each in values
    )


def _language(found: RunSummary, content: dict[str, Any], log: list[dict[str, Any]], run: Path) -> None:
    config = content["run"]
    recipe = config["recipe"]
    found.data, found.cell, found.hidden = list(config["sources"]), recipe["cell"], recipe["hidden"]
    per_run = {name: config[name] for name in PER_RUN if name in config}
    found.options = as_options({"tokens": config["settings"]["tokens"]} | recipe | per_run)
    _read_curve(found, log, recipe["steps"])
    last: dict[str, Any] = next((each for each in reversed(log) if "judged" in each), {})
    judged, mixed = last.get("judged"), last.get("mixture")
    complete = judged is not None and (not config.get("final") or any("final" in each for each in log))
    found.state = FINISHED if complete else RESUMABLE
    part = "valid" if judged is None else judged["part"]
    scored = [(each["name"], (each.get(part) or each["valid"])["nats"]) for each in content["baselines"]]
    if judged is not None:
        scored.append(("network", judged["nats"]))
        scored += [] if mixed is None else [("mixture", mixed["nats"])]
        found.part, found.test = part, Figure("network", "perplexity", _perplexity(judged["nats"]))
    found.figures = [Figure(name, "perplexity", _perplexity(nats)) for name, nats in scored]
    if found.state == RESUMABLE:
        found.steps = saved_step(run / run_folder.TRAINING)
    planned = next((each["final_steps"] for each in reversed(log) if "final_steps" in each), None)
    if planned is not None:
        found.final = Progress(planned if complete else saved_step(run / run_folder.FINAL), planned)


def _read_state(found: RunSummary, run: Path) -> None:
    """Read whether a fit has ended: only then there is no training state."""
    found.state = RESUMABLE if (run / run_folder.TRAINING).exists() else FINISHED
    if found.state == RESUMABLE:
        found.steps = saved_step(run / run_folder.TRAINING)


def _sequences(found: RunSummary, content: dict[str, Any], log: list[dict[str, Any]], run: Path) -> None:
    network, arguments = content["network"], dict(content["arguments"])
    found.data = [content["data"]] if "data" in content else []
    found.cell, found.hidden = network["cell"], network["hidden"]
    found.options = as_options(arguments)
    _read_curve(found, log, content["fit"]["steps"])
    _read_state(found, run)
    if (run / SCORES).exists():
        scores = tensors.read_json(run / SCORES)
        found.figures, found.part = list(_figures(scores)), "held out"
        answers = scores.get("model", "network")
        found.test = next((each for each in found.figures if each.model == answers), found.figures[0])


def _forecast(found: RunSummary, content: dict[str, Any], log: list[dict[str, Any]], run: Path) -> None:
    columns = content["columns"]
    first = next(iter(columns.values()))
    found.data = [content["data"]] if "data" in content else []
    found.cell, found.hidden = first["network"]["cell"], first["network"]["hidden"]
    change, noise = first["layout"]["change"], first["arguments"]["noise"]
    found.options = first["arguments"] | {
        "season": change["season"],
        "power": change["power"],
        "differences": f"{change['d']},{change['D']}",
        "window": first["layout"]["length"],
        "hidden": found.hidden,
        "members": first["members"],
        "steps": first["arguments"]["steps"] or None,
        "noise": None if noise < 0 else noise,
        "columns": ", ".join(columns) if len(columns) <= FEW else f"{len(columns):,} series",
    }
    _read_state(found, run)
    scores = content.get("scores") or {}
    if len(columns) > FEW:
        found.figures = list(_mean_errors(scores))
    for name, each in scores.items() if len(columns) <= FEW else ():
        for model, row in each["models"].items():
            found.figures.append(
                Figure(f"{name}: {model}" if len(columns) > 1 else model, "MASE", row["mase"])
            )
    if found.figures:
        found.part = "the last values, not trained on"
        found.test = next(each for each in found.figures if each.model.endswith("network"))


def _mean_errors(scores: dict[str, Any]) -> Iterator[Figure]:
    """Yield the mean error of each model over many series."""
    rows = [each["models"] for each in scores.values()]
    for model in dict.fromkeys(model for row in rows for model in row):
        values = [row[model]["mase"] for row in rows if row.get(model, {}).get("mase") is not None]
        yield Figure(model, "mean MASE", statistics.fmean(values) if values else None)


def _read_curve(found: RunSummary, log: list[dict[str, Any]], planned: int) -> None:
    found.planned = planned
    steps = [each for each in log if "step" in each]
    found.steps = steps[-1]["step"] if steps else 0
    found.seconds = next((each["seconds"] for each in reversed(log) if "seconds" in each), None)
    names = ("step", "seconds", "train", "valid")
    found.curve = [{name: _number(each[name]) for name in names} for each in log if "valid" in each]
    found.valid = min((each["valid"] for each in found.curve), default=None)


def _figures(scores: dict[str, Any]) -> Iterator[Figure]:
    """Yield the figures of a fit's scores, the main one first."""
    if "targets" in scores:  # regress
        for target in scores["targets"]:
            for model, row in target.items():
                if isinstance(row, dict):
                    several = len(scores["targets"]) > 1 and f"{target['name']}: "
                    yield Figure(model, f"{several or ''}RMSE", row["rmse"])
        return
    for name in ("perplexity", "accuracy", "exact", "macro_f1", "error_rate"):
        if scores.get(name) is not None:
            yield Figure(scores.get("model", "network"), SHOWN.get(name, name), scores[name])
    if "ngram_nats" in scores:
        yield Figure("n-grams", "perplexity", _perplexity(scores["ngram_nats"]))


def _check_model(found: RunSummary, run: Path) -> None:
    """Read the model: its checksum is checked, and its parameters are counted."""
    arrays = tensors.read_arrays(run / run_folder.MODEL)[0]
    if found.kind != "forecast":
        found.parameters = sum(each.size for each in arrays.values())


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, 700.0))


def _reason(error: BaseException) -> str:
    if isinstance(error, UnspoolError):
        return str(error)
    if isinstance(error, OSError):
        return why(error)
    return f"damaged or of another version ({type(error).__name__}: {error})"
