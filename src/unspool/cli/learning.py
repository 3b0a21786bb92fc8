"""Options and output of commands whose model learns while it reads."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from unspool.cli.options import Flag, option_class
from unspool.cli.output import terminal
from unspool.cli.progress import counting_bar
from unspool.cli.views.comparison import Row
from unspool.data.text.parts import Part
from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order
from unspool.evaluation.metrics import measure
from unspool.kernels.arrays import Ids
from unspool.tasks.language.generator import TextGenerator
from unspool.tasks.language.learning import LearnedScores, score_learning
from unspool.tasks.language.text_model import TextModel
from unspool.training.dynamic import Learning
from unspool.training.options import LEARN_RATE, LEARN_SEGMENT

CHOSEN = "[default: chosen on the head of the run's validation split]"
DEFAULT = Learning()
LEARNING = Group("Learning while reading", sort_key=6)
T = TypeVar("T")
OfLearning: TypeAlias = Annotated[T, Parameter(group=LEARNING)]


def learning_of(learn: bool, rate: float | None, segment: int | None) -> Learning | None:
    """Return how to learn, with defaults for what was not given; None without --learn."""
    if not learn:
        for option, value in (("--learn-rate", rate), ("--learn-segment", segment)):
            if value is not None:
                raise InputError(f"{option} has no effect without --learn; add --learn")
        return None
    return replace(
        DEFAULT,
        learn_rate=DEFAULT.learn_rate if rate is None else rate,
        learn_segment=DEFAULT.learn_segment if segment is None else segment,
    )


@option_class(groups={"Training": LEARNING})
class LearnOptions:
    """Whether and how the model of `evaluate` learns while it reads."""

    learn: OfLearning[Flag] = False
    """Also score the network while it learns from the text: each segment is scored first, then the parameters are updated on it."""
    learn_rate: float | None = LEARN_RATE.field(None, f"{LEARN_RATE.help} {CHOSEN}")
    learn_segment: int | None = LEARN_SEGMENT.field(None, f"{LEARN_SEGMENT.help} {CHOSEN}")

    def learning(self) -> Learning | None:
        """Return how to learn, with defaults for what was not given; None without --learn."""
        return learning_of(self.learn, self.learn_rate, self.learn_segment)

    def score(
        self, model: TextModel, part: Part, valid: Ids | None, on_progress: Callable[[int, int], None]
    ) -> LearnedScores | None:
        """Score a part by the network that learns while it reads; `valid` is the run's validation split, where it has one."""
        learning, final = self.learning(), model.is_final
        if learning is None:
            return None
        valid = None if final else valid  # a final model was trained on it
        return score_learning(
            model.model,
            in_reading_order(part.ids, model.backward),
            default=learning,
            choose=(self.learn_rate is None, self.learn_segment is None),
            valid=None if valid is None else in_reading_order(valid, model.backward),
            mixture=model.mixture if final or part.name == "valid" or valid is not None else None,
            refit=not final,
            on_progress=on_progress,
        )


def learning_rows(scores: LearnedScores | None, model: TextModel, part: Part) -> list[Row]:
    """Return the rows of a table: the network that learns, and its mixture."""
    if scores is None:
        return []
    widths = part.widths_after_first(model.backward)
    rows = [Row("learning", measure(scores.log_probs, *widths))]
    return (
        rows if scores.mixed is None else [*rows, Row("learning + mixture", measure(scores.mixed, *widths))]
    )


def learning_line(scores: LearnedScores) -> str:
    """Return one line: how the network learned, and what was chosen on which text."""
    learning, choice = scores.choice.learning, scores.choice
    names = ("learn_rate", "rate"), ("learn_segment", "segment")
    varied = [
        shown for name, shown in names if len({getattr(each.learning, name) for each in choice.tried}) > 1
    ]
    chosen = ""
    if varied:
        chosen = (
            f"; {' and '.join(varied)} chosen on the first {choice.targets:,} targets of the validation split"
        )
    return (
        f"learning: the network, updated on every {learning.learn_segment} targets after they were scored "
        f"({learning.optimiser}, rate {learning.learn_rate:g}{chosen})"
    )


def diverged_line(nats: float, network: float, K: int, learning: Learning) -> str:
    """Return a warning if learning made the network worse than a uniform guess; else nothing.

    >>> diverged_line(86.2, 1.7, 71, Learning(learn_rate=5))
    'learning diverged: 86.2 nats per target, more than the 4.26 of a uniform guess over the vocabulary; lower --learn-rate 5, or leave it out'
    >>> diverged_line(4.5, 6.1, 71, Learning())
    ''
    """
    if not nats > max(network, math.log(K)):
        return ""
    return (
        f"learning diverged: {nats:.4g} nats per target, more than the {math.log(K):.2f} of a uniform guess over the vocabulary; "
        f"lower --learn-rate {learning.learn_rate:g}, or leave it out"
    )


def learning_json(scores: LearnedScores | None, rows: list[Row]) -> dict[str, Any]:
    """Return the fields of --json."""
    if scores is None:
        return {}
    choice = scores.choice
    how = {
        "rate": choice.learning.learn_rate,
        "segment": choice.learning.learn_segment,
        "optimiser": choice.learning.optimiser,
        "chosen_on": "valid" if choice.tried else None,
        "chosen_on_targets": choice.targets,
        "tried": [
            {
                "rate": each.learn_rate,
                "segment": each.learn_segment,
                "nats": nats if math.isfinite(nats) else None,
            }
            for each, nats in choice.tried
        ],
    }
    names = ("learning", "learning_mixture")
    found = {name: row.measure.to_json() for name, row in zip(names, rows, strict=False)}
    return found | {"learning": how | found["learning"]}


@option_class(groups={"Training": LEARNING})
class PromptLearning:
    """Whether and how the model of `generate` learns from its prompt."""

    learn: OfLearning[Flag] = False
    """Learn from the prompt (or --prompt-file) first, then generate with the adapted parameters; the run is not changed."""
    learn_rate: float | None = LEARN_RATE.field(None, f"{LEARN_RATE.help} [default: {DEFAULT.learn_rate:g}]")
    learn_segment: int | None = LEARN_SEGMENT.field(
        None, f"{LEARN_SEGMENT.help} [default: {DEFAULT.learn_segment}]"
    )

    def learning(self) -> Learning | None:
        """Return how to learn; None without --learn."""
        return learning_of(self.learn, self.learn_rate, self.learn_segment)

    def check_state(self, learning: Learning | None) -> None:
        """Raise if a saved state learned in another way than was given."""
        for name, given in (("learn_rate", self.learn_rate), ("learn_segment", self.learn_segment)):
            saved = getattr(learning, name, given)
            if given is not None and given != saved:
                option = f"--{name.replace('_', '-')}"
                raise InputError(
                    f"{option} is {given:g}: the saved state learned with {saved:g}; leave {option} out"
                )


def read_prompt(reader: TextGenerator, prompt: str, *, quiet: bool) -> None:
    """Read the prompt; with --learn, show the progress on standard error, and warn if the learning diverged."""
    if reader.learning is None:
        return reader.read(prompt)
    with counting_bar(
        terminal(quiet=quiet, stderr=True), "{task.completed:,}/{task.total:,} tokens learned"
    ) as bar:
        task = bar.add_task("")
        reader.read(prompt, lambda done, total: bar.update(task, completed=done, total=total))
    K = len(reader.model.vocab)
    if reader.learner is not None and reader.learner.updates:
        warning = diverged_line(reader.learned_nats, 0.0, K, reader.learner.learning)
        if warning:
            print(f"unspool: {warning}", file=sys.stderr)


def learned_json(reader: TextGenerator) -> dict[str, Any]:
    """Return the field of --json about what was learned; nothing if the model has not learned."""
    if reader.learner is None:
        return {}
    how = reader.learner.learning
    fields = {"rate": how.learn_rate, "segment": how.learn_segment, "optimiser": how.optimiser}
    return {"learning": fields | {"updates": reader.learner.updates}}
