"""`unspool inspect` for classifiers, taggers and regressors: how the prediction changes with every step that is read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool.cli.commands import reader_of
from unspool.cli.output import plain_table
from unspool.errors import EmptyInput, InputError
from unspool.inspect.steps import StepPredictions, StepsReport, predictions_by_step
from unspool.studio.payload import number
from unspool.tasks.registry import kind_of, load

SEQUENCES = 8
KINDS = ("classify", "tag", "regress")


def refuse_others(run: Path, kind: str, given: Mapping[str, Any]) -> None:
    """Raise for a run that has no steps to show, and for options that only texts have."""
    if kind not in KINDS:
        raise InputError(
            f"{run}: a run of {kind_of(run).command}; expected one of train, {', '.join(KINDS)}: inspect shows no others"
        )
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name} is for language models; leave it out for a run of {kind}")


def read_steps(
    run: Path, kind: str, data: str, *, skip: int, count: int, note: Callable[[str], None]
) -> StepsReport:
    """Read some sequences of a file as the fit did, and return the predictions after every step."""
    sequences, truths = reader_of(kind)(run, Path(data))
    if len(sequences) <= skip:
        raise EmptyInput(f"{data}: {len(sequences):,} sequences; --skip {skip} leaves none")
    part = slice(skip, skip + count)
    return predictions_by_step(
        load(run), list(sequences[part]), None if truths is None else list(truths[part]),
        run=run.resolve().name, data=Path(data).name, note=note,
    )  # fmt: skip


def step_numbers(report: StepsReport) -> dict[str, Any]:
    """Return the numbers of a report as plain values."""
    return {
        "run": report.run, "data": report.data, "kind": report.model.run_kind, "outputs": report.names,
        "sequences": [
            {
                "steps": each.steps.tolist(), "truth": each.truth,
                "predictions": [[number(value) for value in row] for row in each.predictions.tolist()],
            }
            for each in report.sequences
        ],
    }  # fmt: skip


def print_steps(console: Console, report: StepsReport, path: Path) -> None:
    """Print for each sequence the prediction at its end, and since which step it has not changed."""
    table = plain_table("sequence", "steps", "prediction", "unchanged since step", gap=3)
    for i, each in enumerate(report.sequences, 1):
        table.add_row(str(i), f"{each.steps[-1]:,}", _answer(report, each), _since(report, each))
    console.print(table)
    console.print(f"written: {path} and numbers.json")


def _answer(report: StepsReport, found: StepPredictions) -> str:
    last = found.predictions[-1]
    if not report.classes:
        return ", ".join(f"{value:.4g}" for value in last)
    if report.per_step:
        return "a label per step"
    best = int(last.argmax())
    true = (
        ""
        if found.truth is None
        else ", right"
        if found.truth == report.names[best]
        else f", truth {found.truth}"
    )
    return f"{report.names[best]} ({last[best]:.1%}{true})"


def _since(report: StepsReport, found: StepPredictions) -> str:
    if not report.classes or report.per_step:
        return ""
    best = found.predictions.argmax(axis=1)
    other = (best != best[-1]).nonzero()[0]
    return f"{found.steps[other[-1] + 1 if len(other) else 0]:,}"
