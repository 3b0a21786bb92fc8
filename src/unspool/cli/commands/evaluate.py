"""Evaluate a language model on a text: nats, perplexity, bits per character and byte, compared with n-gram baselines.

Every target is scored once; the state is carried from the first token to the last.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from cyclopts import Parameter
from rich.console import Console

from unspool.baselines.language import default_order, has_test, language_baselines
from unspool.baselines.mixture import Mixture, cross_fitted
from unspool.cli.learning import LearnOptions, diverged_line, learning_json, learning_line, learning_rows
from unspool.cli.options import CommonOptions, Flag
from unspool.cli.output import notes, print_json, terminal
from unspool.cli.progress import waiting
from unspool.cli.sources import RunFolder, Sources
from unspool.cli.surprise_files import SurpriseOptions
from unspool.cli.views.comparison import NOT_MIXED, Row, best_as_json, measures_table, mixture_line, verdict
from unspool.cli.views.training import scoring_bar
from unspool.data.text.corpus import open_corpus, read_part
from unspool.data.text.parts import PARTS, Part
from unspool.errors import InputError
from unspool.evaluation.language import WINDOW, evaluate, in_reading_order
from unspool.evaluation.metrics import Metrics, measure
from unspool.kernels.arrays import Ids, Real
from unspool.options import check_order
from unspool.storage import run_folder
from unspool.tasks.language.learning import LearnedScores
from unspool.tasks.language.mixture import cost_as_json
from unspool.tasks.language.text_model import TextModel

CAUTION = {
    "valid": "the validation split also selected the model: its scores are slightly optimistic",
    "train": "the model was trained on this split: its scores say nothing about other text",
}
"""What a reader should know about figures on a part of the run's own text."""
FINAL = (
    "the final model of this run was trained on all splits (--final): its scores here say nothing about other text; the "
    "figures of the measured model are in `unspool show`"
)


def evaluate_command(
    run: RunFolder,
    text: Annotated[Sources | None, Parameter(negative="")] = None,
    /,
    *,
    part: Literal["train", "valid", "test"] | None = None,
    order: int | None = None,
    backward: Flag = False,
    window: int = WINDOW,
    files: SurpriseOptions = SurpriseOptions(),
    learning: LearnOptions = LearnOptions(),
    options: CommonOptions = CommonOptions(),
) -> None:
    """Run `unspool evaluate`.

    Parameters
    ----------
    text
        Files, folders, - for standard input, builtin:python-docs or builtin:python-source [default: a split of the run's text: see --part].
    part
        If TEXT is omitted: the split of the run's text to score [default: test, or valid if there is no test split].
    order
        Highest order of the n-gram baselines, counted on the training split; 0 for no n-grams [default: 6 for characters and bytes, else 4].
    backward
        Score the text from right to left; required for a model trained with --backward.
    window
        Steps per forward pass; the result does not depend on it.
    """
    options.apply()
    if order is not None:
        check_order(order, least=0)
    if text and part:
        raise InputError(f"--part {part} is a split of the text of {run}; leave it out to score another text")
    files.check(text or [], json=options.json)
    learning.learning()
    model = TextModel.load(run, mixture=True)
    if learning.learn:
        model.refuse_lines("--learn")
    _check_direction(model, backward)
    judged = _read(run, model, text, part)
    console = notes(options, stderr=files.to_standard_output)
    with waiting(console, "counting n-grams …"):
        found = _counted(run, model, judged, order)
    with _scoring(console, len(judged.ids) - 1) as on_progress:
        network = files.scorer(model, window, on_progress)
        log_probs = network.log_prob(in_reading_order(judged.ids, model.backward))
    result = measure(log_probs, *judged.widths_after_first(model.backward))
    mixed = _mixed(model, judged, log_probs)
    with _scoring(console, len(judged.ids) - 1, visible=learning.learn) as on_progress:
        learned = learning.score(model, judged, _valid(run, model, judged), on_progress)
    scores = Scores(found, result, mixed, learned, learning_rows(learned, model, judged))
    written = files.write(model, judged, log_probs, network)
    if warning := scores.warning(len(model.vocab)):
        print(f"unspool: {warning}", file=sys.stderr)
    if options.json:
        return print_json(_as_json(run, model, judged, scores) | written)
    _describe(console, model, judged)
    _print(terminal(stderr=files.to_standard_output), run, model, scores)
    for path in written.values():
        console.print(f"written: {path}")


class Scores(NamedTuple):
    """The figures of a text."""

    baselines: list[Row]
    network: Metrics
    mixed: Row | None
    """Of the mixture of the network with n-grams."""
    learned: LearnedScores | None
    learned_rows: list[Row]
    """Of the network that learns while it reads, and of its mixture."""

    def warning(self, K: int) -> str:
        """Return one line if the learning diverged; else nothing."""
        if self.learned is None:
            return ""
        nats = self.learned_rows[0].measure.nats
        return diverged_line(nats, self.network.nats, K, self.learned.choice.learning)


@contextmanager
def _scoring(console: Console, total: int, *, visible: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show a bar; yield the function that moves it, for the number of scored targets and their total."""
    with scoring_bar(console) as progress:
        task = progress.add_task("", total=total, visible=visible)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print(table: Console, run: Path, model: TextModel, scores: Scores) -> None:
    """Print the table and the lines below it."""
    mixed = [] if scores.mixed is None else [scores.mixed]
    table.print(measures_table(scores.baselines, scores.network, mixed + scores.learned_rows))
    if len(scores.baselines) > 1:  # with --order 0 there are no n-grams to compare with
        table.print(verdict(scores.baselines, scores.network))
    if model.mixture is not None and scores.mixed is not None:
        table.print(mixture_line(_cost(run, model.mixture), scores.mixed.measure))
    else:
        table.print(NOT_MIXED, style="dim")
    if scores.learned is not None:
        table.print(learning_line(scores.learned), style="dim")


def _read(run: Path, model: TextModel, text: list[str] | None, part: str | None) -> Part:
    """Read the text, or a part of the run's own text."""
    if text:
        judged = read_part(text, model.vocab, model.tokenizer, model.settings)
    else:
        corpus = open_corpus(Path(run) / run_folder.TEXT, model.settings)
        part = part or ("test" if has_test(corpus) else "valid")
        judged = {each.name: each for each in corpus.parts}[part]
    if len(judged.ids) < 2:
        raise InputError(
            f"the {judged.name} split has {len(judged.ids)} tokens, which leaves nothing to predict; expected 2 or more"
        )
    return judged


def _valid(run: Path, model: TextModel, part: Part) -> Ids | None:
    """Return the validation split of the run, to choose on; None if it is the part itself, or if the run has no text."""
    if part.name == "valid" or not (Path(run) / run_folder.TEXT).exists():
        return None
    return open_corpus(Path(run) / run_folder.TEXT, model.settings).valid.ids


def _check_direction(model: TextModel, backward: bool) -> None:
    if backward and not model.backward:
        raise InputError("--backward: this model was trained without --backward; train one with it")
    if model.backward and not backward:
        raise InputError("this model was trained with --backward; pass --backward to score it")


def _counted(run: Path, model: TextModel, part: Part, order: int | None) -> list[Row]:
    """Score the uniform distribution, and n-grams counted on the training part of the run."""
    K, backward = len(model.vocab), model.backward
    ids, found = np.zeros(0, np.int32), list[Row]()
    if order != 0:
        ids = in_reading_order(open_corpus(Path(run) / run_folder.TEXT, model.settings).train.ids, backward)
    highest = default_order(model.settings.tokens, len(ids)) if order is None else order
    for each in language_baselines(ids, K, highest, model.end):
        start = time.perf_counter()
        scored = evaluate(each.model, part, backward=backward)
        seconds = None if each.seconds is None else each.seconds + time.perf_counter() - start
        found.append(Row(each.name, scored, seconds, each.counts))
    return found


def _mixed(model: TextModel, part: Part, network: Real) -> Row | None:
    """Score the mixture of the run; of the validation split, on which it was fitted, each half by a fit on the other."""
    if model.mixture is None:
        return None
    ids = in_reading_order(part.ids, model.backward)
    fitted_on = part.name == "valid"
    log_probs = (
        cross_fitted(model.mixture, ids, network) if fitted_on else model.mixture.log_prob(ids, network)
    )
    return Row("mixture", measure(log_probs, *part.widths_after_first(model.backward)))


def _cost(run: Path, mixture: Mixture) -> dict[str, Any]:
    return cost_as_json(mixture, None, Path(run) / run_folder.MIXTURE)


def _as_json(run: RunFolder, model: TextModel, part: Part, scores: Scores) -> dict[str, Any]:
    content = {
        "run": str(run),
        "part": part.name,
        "tokens": len(part.ids),
        "targets": len(part.ids) - 1,
        "characters": part.characters,
        "bytes": part.bytes,
        "unknown": part.unknown,
        "unknown_scored_as": "<unk>",
        "vocabulary": len(model.vocab),
        "backward": model.backward,
        "network": scores.network.to_json(),
        "baselines": [
            {"name": each.name, "seconds": each.seconds, "counts": each.counts} | each.measure.to_json()
            for each in scores.baselines
        ],
        "best_baseline": best_as_json(scores.baselines, scores.network),
        "provenance": run_folder.read_config(run, "language").get("provenance"),
    }
    if model.mixture is not None and scores.mixed is not None:
        content["mixture"] = _cost(run, model.mixture) | scores.mixed.measure.to_json()
    if model.is_final:
        content["final"] = True
    return content | learning_json(scores.learned, scores.learned_rows)


def _describe(console: Console, model: TextModel, part: Part) -> None:
    way = "from the last to the first" if model.backward else "from the first to the last"
    K, targets = len(model.vocab), len(part.ids) - 1
    state = f"the state is carried {way}" if model.end is None else "the state is reset before every line"
    console.print(f"{part.name}: {targets:,} targets, each scored once; {state}")
    console.print(
        f"perplexity: 1 for a model that is always certain and right, {K:,} ({math.log(K):.4f} nats) for a uniform guess over "
        "the vocabulary; lower is better",
        style="dim",
    )
    final = part.name in PARTS and model.is_final
    if final or part.name in CAUTION:
        console.print(FINAL if final else CAUTION[part.name], style="yellow")
    if part.unknown:
        share = part.unknown / len(part.ids)
        console.print(
            f"{part.unknown:,} tokens ({share:.2%}) are not in the vocabulary and are scored as <unk>; "
            "coding them character by character would cost more bits",
            style="yellow",
        )
    console.print()
