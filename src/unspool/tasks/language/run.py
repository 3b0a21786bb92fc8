"""Train and evaluate a language model: the whole pipeline on one page.

    text ─▶ tokens ─▶ batches ─▶ model ─▶ loss ─▶ gradients ─▶ update ─▶ report

`run` is a generator: it yields an event after each stage, and the caller draws, prints or stores it. Nothing here prints.
With a folder `out` the run is saved there, and `resume` continues it to the same bits.
"""

import math
import time
from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from unspool.baselines.language import TIME_FRACTION, Scored, baselines, has_test
from unspool.baselines.mixture import Mixture
from unspool.data.text.corpus import Corpus, open_corpus
from unspool.data.text.source import Names, resolve, stamps
from unspool.errors import FileError
from unspool.evaluation.language import in_reading_order, log_prob_windows, validation_loss
from unspool.evaluation.metrics import measure
from unspool.model.config import ModelConfig
from unspool.model.generate import sample
from unspool.model.network import Model
from unspool.storage import run_folder, tensors
from unspool.storage.log import RunLog
from unspool.storage.schema import read_as
from unspool.tasks.language.final import first_share, measured_path, save_initial, train_final
from unspool.tasks.language.mixture import (
    Counted,
    Orders,
    cost_as_json,
    count_for_mixture,
    mix,
    orders_of,
    save_mixture,
)
from unspool.tasks.language.plan import (
    batches_of,
    build_state,
    chosen_bptt,
    model_config,
    note_cost,
    plan,
    step_budget,
    train_text,
)
from unspool.tasks.language.text_model import check_language
from unspool.tasks.language.texts import hashes, prepared
from unspool.tasks.language.warm_start import WarmStart
from unspool.training import store
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.events import (
    Baseline,
    CorpusReady,
    Evaluated,
    Event,
    LeftOut,
    PlanChanged,
    Replanned,
    RunConfig,
    Scoring,
    StepDone,
    TrainingPlanned,
    Working,
)
from unspool.training.fit import ending, fit
from unspool.training.provenance import provenance
from unspool.training.shards import refuse_processes
from unspool.training.state import TrainingState, check_size
from unspool.training.store import RunWriter, Stopwatch

SAMPLES = (0.1, 0.3, 0.6)
"""The shares of the updates after which a sample is generated."""
LOGGED = 200
"""About how many updates are written into the log."""


def run(
    config: RunConfig, *, out: Path | None = None, texts: Names | None = None, valid: Names | None = None,
    policy: CheckpointPolicy | None = None, start: WarmStart | None = None,
) -> Generator[Event]:  # fmt: skip
    """Train and measure a model of a text; `texts` and `valid` replace the sources that the config names.

    The model starts from a trained one, `start` or the run that the config names, or it is new.
    """
    if start is None and config.start is not None:
        start = WarmStart.of(config.start)
    if start is not None:
        config = start.config(config)
    refuse_processes(config.given.get("shards", 1) if config.recipe is None else config.recipe.shards)
    clock, given = Stopwatch(), config.given if config.recipe is None else {"steps": config.recipe.steps}
    made_with = provenance(None) | ({} if start is None else start.provenance())
    with nullcontext() if out is None else run_folder.new_run(out) as folder:
        sources = resolve(config.sources if texts is None else texts)
        valid = config.valid if valid is None else valid
        held_out = None if valid is None else resolve(valid)
        before = stamps([*sources, *(held_out or [])])
        corpus, timed = prepared(config, sources, held_out, folder, start), "steps" not in given
        yield CorpusReady(corpus)
        if start is not None:
            yield start.event(corpus)
        scored = baselines(corpus, config, TIME_FRACTION * 60 * config.minutes if timed else None)
        orders = _mixture_orders(config, scored.found, scored.left_out)
        # Counted now, the n-grams of the mixture are within the time limit.
        counted = count_for_mixture(corpus, orders, backward=config.backward) if timed else None
        config, bias = chosen_bptt(corpus, replace(config, settings=corpus.settings))
        limit = config.minutes * (first_share(corpus) if config.final else 1.0)
        config = replace(plan(corpus, replace(config, minutes=limit), clock), minutes=config.minutes)
        training = build_state(corpus, config, start)
        if folder is not None:
            made_with |= hashes(sources, held_out, before)
            _write_run(folder, training, corpus, config, scored, bias, made_with, start)
        yield scored.live(config.validation_tokens)
        if scored.left_out is not None:
            yield LeftOut(scored.left_out)
    note_cost(corpus, config)
    yield TrainingPlanned(training.model, config, next(batches_of(corpus, config)), 0, bias, training)
    training.seconds = clock()
    with nullcontext() if out is None else RunLog(out / run_folder.LOG) as log:
        writer = RunWriter(out, log)
        yield from train_and_evaluate(
            training,
            corpus,
            config,
            writer,
            policy or CheckpointPolicy(),
            orders=orders,
            counted=counted,
            deadline=60 * limit if timed else None,
            start=start,
        )


class Shown(TypedDict):
    """The fields of a run's config that are shown again when it is resumed."""

    baselines: list[Baseline]
    left_out: NotRequired[str | None]
    bptt_bias: NotRequired[dict[str, float] | None]


def resume(out: Path, *, policy: CheckpointPolicy | None = None) -> Generator[Event]:
    """Continue a run from its last saved state; the result is bit-identical to that of an uninterrupted run."""
    content = run_folder.read_config(out, "language")
    config = RunConfig.from_json(content.get("run"), out / run_folder.CONFIG)
    refuse_processes(config.fixed.shards)
    shown = read_as(Shown, content, out / run_folder.CONFIG)
    found, bias = shown["baselines"], shown.get("bptt_bias")
    if not found or not all(K.isdecimal() and len(K) < 19 for K in bias or ()):
        raise FileError(f"{out / run_folder.CONFIG}: damaged or manipulated: baselines or bptt_bias is wrong")
    with RunLog(out / run_folder.LOG) as log:
        if log.locked:
            run_folder.remove_leftovers(out)
        corpus = open_corpus(out / run_folder.TEXT, config.settings)
        planned = read_as(ModelConfig, content.get("model"), out / run_folder.CONFIG, "model")
        check_language(planned, corpus.vocab, out)
        if planned != model_config(len(corpus.vocab), config.fixed):
            raise FileError(
                f"{out / run_folder.CONFIG}: damaged or manipulated: model is not that of the recipe"
            )
        check_size(planned, tensors.read_arrays(out / run_folder.TRAINING)[0], out / run_folder.TRAINING)
        training = build_state(corpus, config)
        store.restore_state(training, out, log)
        yield CorpusReady(corpus)
        if not has_test(corpus):  # an older version repeated the validation split here
            found = [replace(each, test=None) for each in found]
        if found[0].live is None and math.isfinite(training.best):
            _score_best_again(training, corpus, config, out / run_folder.MODEL)
        yield found
        if (left_out := shown.get("left_out")) is not None:
            yield LeftOut(left_out)
        note_cost(corpus, config)
        of_windows = None if bias is None else {int(K): share for K, share in bias.items()}
        yield TrainingPlanned(
            training.model, config, next(batches_of(corpus, config)), training.step, of_windows, training
        )
        writer, orders = RunWriter(out, log), _mixture_orders(config, found, left_out)
        yield from train_and_evaluate(
            training, corpus, config, writer, policy or CheckpointPolicy(), orders=orders
        )


def _mixture_orders(config: RunConfig, found: list[Baseline], left_out: str | None) -> Orders:
    """Return the orders of the mixture's n-grams: the same for a resumed run."""
    return orders_of(found, config.settings.tokens, fixed=bool(config.order) or left_out is not None)


def _score_best_again(training: TrainingState[Model], corpus: Corpus, config: RunConfig, path: Path) -> None:
    """Set the loss to beat to that of the saved model: an older version validated on other tokens."""
    model, metadata = store.load_model(path)
    ids = in_reading_order(corpus.valid.ids, config.backward)
    training.best, training.best_step = (
        validation_loss(model, ids, config.validation_tokens, end=corpus.end),
        metadata["step"],
    )


def train_and_evaluate(
    training: TrainingState[Model],
    corpus: Corpus,
    config: RunConfig,
    writer: RunWriter,
    policy: CheckpointPolicy,
    *,
    orders: Orders,
    counted: Counted | None = None,
    deadline: float | None = None,
    start: WarmStart | None = None,
) -> Generator[Event]:
    """Train to the last update and evaluate the best model; with a deadline, in seconds of the run, to keep it.

    `orders` are those of the n-grams to mix with the network; they are counted now unless they are given as `counted`. A final training on the whole text follows, where the config
    asks for it.
    """
    budget = step_budget(config, training.seconds, deadline)
    model, ids = training.model, in_reading_order(corpus.valid.ids, config.backward)
    validate = partial(validation_loss, model, ids, config.validation_tokens, end=corpus.end)
    events = fit(
        training,
        train_text(training, config, budget),
        budget,
        validate=validate,
        writer=writer,
        policy=policy,
    )
    with ending(events):
        for event in events:
            match event:
                case StepDone():
                    if event.step in budget.steps_due(_sample_steps):
                        event = replace(event, sample=_sample(model, corpus, config))
                    _log_step(writer, event)
                    yield event
                case Replanned(steps, plans):
                    config = replace(config, recipe=replace(config.fixed, steps=steps, plans=plans))
                    _rewrite_config(writer.out, config)
                    yield PlanChanged(config)
    if training.best_parameters is None:  # the best model was saved before the run was resumed
        assert writer.out is not None
        model = store.load_model(measured_path(writer.out))[0]
    mixture = yield from _evaluate(model, training, corpus, config, writer, orders, counted)
    if config.final:
        yield from train_final(corpus, config, training.best_step, mixture, writer, policy, start)


def _evaluate(
    model: Model,
    training: TrainingState[Model],
    corpus: Corpus,
    config: RunConfig,
    writer: RunWriter,
    orders: Orders,
    counted: Counted | None,
) -> Generator[Event, None, Mixture | None]:
    """Score the held-out part by the network and by its mixture with n-grams; write the results into the log.

    Return the mixture.
    """
    part = corpus.test if has_test(corpus) else corpus.valid
    ids, found = in_reading_order(part.ids, config.backward), [np.zeros(0)]
    for scored in log_prob_windows(model, ids, end=corpus.end):
        found.append(scored)
        yield Scoring(sum(map(len, found)), len(ids) - 1)
    log_probs = np.concatenate(found)
    metrics = measure(log_probs, *part.widths_after_first(config.backward))
    entry = {
        "judged": metrics.to_json() | {"best_step": training.best_step, "part": part.name},
        "seconds": round(training.seconds, 3),
    }
    yield Working("mixing the network with n-grams")
    counted = counted or count_for_mixture(corpus, orders, backward=config.backward)
    mixed = mix(model, corpus, counted, part.name, log_probs, backward=config.backward)
    if mixed is None:
        writer.add(entry)
        yield Evaluated(model, part.name, metrics, training.best_step)
        return None
    path = None if writer.out is None else writer.out / run_folder.MIXTURE
    if path is not None:
        save_mixture(path, mixed.mixture, model)
    cost = cost_as_json(mixed.mixture, round(mixed.seconds, 3), path)
    writer.add(entry | {"mixture": cost | mixed.measure.to_json()})
    yield Evaluated(model, part.name, metrics, training.best_step, mixed.measure, mixed.mixture, cost)
    return mixed.mixture


def _sample_steps(steps: int) -> set[int]:
    return {round(steps * share) for share in SAMPLES}


def _sample(model: Model, corpus: Corpus, config: RunConfig) -> str:
    """Return a text that the model generates after the first tokens of the validation part."""
    lines = corpus.end is not None
    prompt = in_reading_order(corpus.valid.ids, config.backward)[: 1 if lines else 8].tolist()
    ids = sample(model, prompt, 64, seed=config.seed)
    if lines:  # the first one only
        ids = list(takewhile(lambda token: token != corpus.end, ids))
    return corpus.decode(in_reading_order(np.array(ids), config.backward).tolist())


def _log_step(writer: RunWriter, event: StepDone) -> None:
    """Write an update into the log: about 200 of them, and all with a validation or a sample."""
    report = event.report
    if event.valid is None and event.sample is None and report.step % max(1, event.steps // LOGGED):
        return
    entry = {"step": report.step, "seconds": round(event.seconds, 3), "train": event.train}
    entry |= {"loss": report.loss, "norm": report.norm, "targets": report.targets}
    more = {"valid": event.valid, "sample": event.sample}
    writer.add(entry | {name: value for name, value in more.items() if value is not None})


def _rewrite_config(out: Path | None, config: RunConfig) -> None:
    """Write the changed plan: before any state that follows it."""
    if out is not None:
        content = run_folder.read_config(out, "language")
        run_folder.write_config(out, "language", content | {"run": config.to_json()})


def _write_run(
    folder: Path,
    training: TrainingState[Model],
    corpus: Corpus,
    config: RunConfig,
    scored: Scored,
    bias: dict[int, float] | None,
    made_with: dict[str, Any],
    start: WarmStart | None,
) -> None:
    """Write the files of a new run: when its folder gets its name, it can be loaded and resumed."""
    corpus.vocab.save(folder / run_folder.VOCAB)
    content = {
        "run": config.to_json(),
        "model": training.model.config.to_json(),
        "tokenizer": corpus.tokenizer.to_json(),
        "vocab": corpus.vocab.sha256,
        "baselines": [asdict(each) for each in scored.live(config.validation_tokens)],
        "left_out": scored.left_out,
        "bptt_bias": bias,
        "provenance": made_with,
    }
    run_folder.write_config(folder, "language", content)
    store.save_model(folder / run_folder.MODEL, training.model, {"step": 0, "valid": None})
    with RunLog(folder / run_folder.LOG) as log:
        log.add({"begin": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "recipe": asdict(config.fixed)})
        RunWriter(folder, log).save_state(training)
        if config.final:
            save_initial(folder, corpus, config, start, log)
