"""The whole walk on one page.

    text ─▶ tokens ─▶ batches ─▶ model ─▶ loss ─▶ gradients ─▶ update ─▶ report

`run` is a generator: after each stage it gives an event, and whoever runs it draws, prints or writes that down.
Nothing here prints. With a folder `out` the run is kept there, and `resume` goes on with it to the same bits.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from unspool.baselines.language import TIME_FRACTION, Scored, baselines, has_test
from unspool.data.batches.text_windows import Batches, random_batches, sequential_batches
from unspool.data.text.corpus import Corpus, open_corpus, prepare
from unspool.data.text.decoding import iter_bytes
from unspool.data.text.source import Names, Source, resolve, stamps
from unspool.data.tokens.vocab import Vocab
from unspool.errors import Diverged, FileError, InputError
from unspool.evaluation.language import NetworkScorer, evaluate, in_reading_order, validation_loss
from unspool.gradients.truncation import AUTO, CarriedState, Truncation
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.feedback import centre_feedback
from unspool.model.generate import sample
from unspool.model.memory import refuse_too_large
from unspool.model.network import Model
from unspool.optimisers.base import Optimiser, OptimiserConfig
from unspool.storage import run_folder, tensors
from unspool.storage.log import RunLog
from unspool.storage.schema import read_as
from unspool.tasks.language.run_writer import BestModel, RunWriter, Stopwatch
from unspool.tasks.language.text_model import check_language
from unspool.training import store
from unspool.training.checkpoint import CheckpointPolicy
from unspool.training.choose_bptt import measure_bias, probe_recipe, rows_for, shortest
from unspool.training.deadline import StepBudget
from unspool.training.events import (
    Baseline,
    CorpusReady,
    Evaluated,
    Event,
    LeftOut,
    PlanChanged,
    RunConfig,
    StepDone,
    Stopped,
    TrainingPlanned,
)
from unspool.training.loop import Report, train
from unspool.training.provenance import provenance, sha256_of
from unspool.training.recipe import Recipe, choose_recipe
from unspool.training.state import Saved, TrainingState, check_size
from unspool.training.timing import measure_update_rate

SMOOTH = 50
"""Over about how many updates the training loss is averaged for the eye."""
VALIDATING = 0.04
"""At most this share of the time goes into looking at the validation part on the way."""


def run(
    config: RunConfig, *, out: Path | None = None, texts: Names | None = None, valid: Names | None = None,
    policy: CheckpointPolicy | None = None,
) -> Iterator[Event]:  # fmt: skip
    """Train and measure a model of a text; `texts` and `valid` replace the sources that the config names."""
    clock, given = Stopwatch(), config.given if config.recipe is None else {"steps": config.recipe.steps}
    made_with = provenance(None)
    with nullcontext() if out is None else run_folder.new_run(out) as folder:
        sources = resolve(config.sources if texts is None else texts)
        valid = config.valid if valid is None else valid
        held_out = None if valid is None else resolve(valid)
        before = stamps([*sources, *(held_out or [])])
        corpus = prepared(config, sources, held_out, folder)
        yield CorpusReady(corpus)
        scored = baselines(corpus, config, None if "steps" in given else TIME_FRACTION * 60 * config.minutes)
        config, bias = chosen_bptt(corpus, replace(config, settings=corpus.settings))
        config = plan(corpus, config, clock)
        training = build_state(corpus, config)
        if folder is not None:
            made_with |= _hashes(sources, held_out, before)
            _write_down(folder, training, corpus, config, scored, bias, made_with)
        yield scored.live(config.validation_tokens)
        if scored.left_out is not None:
            yield LeftOut(scored.left_out)
    yield TrainingPlanned(training.model, config, next(batches_of(corpus, config)), 0, bias)
    training.seconds = clock()
    with nullcontext() if out is None else RunLog(out / run_folder.LOG) as journal:
        deadline = None if "steps" in given else 60 * config.minutes
        yield from walk(
            training, corpus, config, RunWriter(out, journal), policy or CheckpointPolicy(), deadline
        )


class Told(TypedDict):
    """The fields of a run's config that are shown again when it is resumed."""

    baselines: list[Baseline]
    left_out: NotRequired[str | None]
    bptt_bias: NotRequired[dict[str, float] | None]


def resume(out: Path, *, policy: CheckpointPolicy | None = None) -> Iterator[Event]:
    """Go on with a run where it was last saved, to the same bits as if it had never stopped."""
    content = run_folder.read_config(out, "language")
    config = RunConfig.from_json(content.get("run"), out / run_folder.CONFIG)
    told = read_as(Told, content, out / run_folder.CONFIG)
    found, bias = told["baselines"], told.get("bptt_bias")
    if not found or not all(K.isdecimal() and len(K) < 19 for K in bias or ()):
        raise FileError(f"{out / run_folder.CONFIG}: damaged or crafted: baselines or bptt_bias is wrong")
    with RunLog(out / run_folder.LOG) as journal:
        if journal.locked:
            run_folder.remove_leftovers(out)
        corpus = open_corpus(out / run_folder.TEXT, config.settings)
        planned = read_as(ModelConfig, content.get("model"), out / run_folder.CONFIG, "model")
        check_language(planned, corpus.vocab, out)
        if planned != model_config(len(corpus.vocab), config.fixed):
            raise FileError(f"{out / run_folder.CONFIG}: damaged or crafted: model is not that of the recipe")
        arrays, about = tensors.read_arrays(out / run_folder.TRAINING)
        saved = read_as(Saved, about, out / run_folder.TRAINING)
        check_size(planned, arrays, out / run_folder.TRAINING)
        training = build_state(corpus, config)
        training.restore(arrays, saved, out / run_folder.TRAINING)
        journal.truncate_to(saved["journal"])
        yield CorpusReady(corpus)
        if not has_test(corpus):  # an older version repeated the validation part here
            found = [replace(each, test=None) for each in found]
        if found[0].live is None and math.isfinite(training.best):
            _score_best_again(training, corpus, config, out / run_folder.MODEL)
        yield found
        if (left_out := told.get("left_out")) is not None:
            yield LeftOut(left_out)
        of_windows = None if bias is None else {int(K): share for K, share in bias.items()}
        yield TrainingPlanned(
            training.model, config, next(batches_of(corpus, config)), training.step, of_windows
        )
        yield from walk(training, corpus, config, RunWriter(out, journal), policy or CheckpointPolicy())


def _score_best_again(training: TrainingState, corpus: Corpus, config: RunConfig, path: Path) -> None:
    """Set the loss to beat to that of the saved model: an older version validated on other tokens."""
    model, about = store.load_model(path)
    ids = in_reading_order(corpus.valid.ids, config.backward)
    training.best, training.best_step = validation_loss(model, ids, config.validation_tokens), about["step"]


def prepared(
    config: RunConfig, sources: list[Source], valid: list[Source] | None, folder: Path | None
) -> Corpus:
    """Read the text: into the run's folder, where there is one."""
    into = None if folder is None else folder / run_folder.TEXT
    if into is not None:
        into.mkdir()
    settings = {name: value for name, value in vars(config.settings).items()}
    return prepare(sources, valid=valid, into=into, **settings)


def _hashes(
    sources: list[Source], valid: list[Source] | None, before: list[tuple[int, int] | None]
) -> dict[str, str | None]:
    """Return the SHA-256 of the text, and of a validation text of its own; None where a file has changed since it was read."""
    found = {"data_sha256": sha256_of(iter_bytes(sources))}
    found |= {} if valid is None else {"valid_sha256": sha256_of(iter_bytes(valid))}
    same = stamps([*sources, *(valid or [])]) == before
    return {name: digest if same else None for name, digest in found.items()}


def chosen_bptt(corpus: Corpus, config: RunConfig) -> tuple[RunConfig, dict[int, float] | None]:
    """Replace bptt auto by truncated:K, and return the bias that it was chosen by."""
    if config.bptt != AUTO:
        return config, None
    recipe = probe_recipe(len(corpus.vocab), len(corpus.train.ids), config.given, config.minutes)
    probe = replace(config, bptt="full", recompute="none", optimiser="adam", recipe=recipe)
    training = build_state(corpus, probe)
    ids = in_reading_order(corpus.train.ids, config.backward)
    bias = measure_bias(training.model, _reports(training, probe), recipe.steps, ids, config.seed)
    K = shortest(bias, config.bptt_tolerance)
    given = {"batch_size": rows_for(K, len(ids))} | config.given
    return replace(config, bptt=f"truncated:{K}", given=given), bias


def plan(corpus: Corpus, config: RunConfig, clock: Callable[[], float]) -> RunConfig:
    """Fix all that is open: sizes and steps by what fits into the minutes on this machine."""
    recipe = config.recipe or choose_recipe(
        vocabulary=len(corpus.vocab),
        tokens=len(corpus.train.ids),
        seconds=max(0.1, (60 * config.minutes - clock()) * (1 - VALIDATING)),
        measure=lambda recipe: _measured(corpus, config, recipe),
        given=_given(config),
    )
    held_out = len(corpus.valid.ids)
    # Looking costs a third of training, and all looks together cost no more than their share of it.
    look = int(3 * VALIDATING * recipe.steps * recipe.batch_size * recipe.window / config.validations)
    look = config.validation_tokens or min(held_out, max(look, 2000))
    return replace(config, recipe=recipe, validation_tokens=look)


def _given(config: RunConfig) -> dict[str, Any]:
    """Give what is fixed of the recipe; an update every K1 steps is a window of K1 steps."""
    bptt, given = Truncation.parse(config.bptt), config.given
    if bptt.kind != "truncated":
        return given
    if given.get("window", bptt.K1) != bptt.K1:
        raise InputError(
            f"window is {given['window']} and bptt {config.bptt}, which makes an update every {bptt.K1} steps; "
            "give one of the two"
        )
    return given | {"window": bptt.K1}


def _measured(corpus: Corpus, config: RunConfig, recipe: Recipe) -> float:
    """Say how many updates a second a recipe makes, on a model that is thrown away."""
    config = replace(config, recipe=recipe)
    # At most a second of it, and of a short run a hundredth.
    return measure_update_rate(
        _reports(build_state(corpus, config), config), seconds=min(1.0, 0.6 * config.minutes)
    )


def model_config(K: int, recipe: Recipe) -> ModelConfig:
    """Say what the network is made of."""
    return ModelConfig(
        inputs=K,
        outputs=K,
        cell=recipe.cell,
        hidden=recipe.hidden,
        layers=recipe.layers,
        embedding=recipe.embedding,
        tied=recipe.tied,
        dropout=recipe.dropout,
        recurrent_dropout=recipe.recurrent_dropout,
        activation=recipe.activation,
        learn_h0=recipe.h0 == "learned",
        pattern=recipe.pattern,  # type: ignore[arg-type]
        feedback=recipe.feedback,
    )


def batches_of(corpus: Corpus, config: RunConfig) -> Batches:
    """Make the minibatches of the training part: in sequence, so that the state is carried, or at random."""
    make = sequential_batches if config.batches == "sequential" else random_batches
    recipe, rng = config.fixed, np.random.default_rng(config.seed)
    return make(in_reading_order(corpus.train.ids, config.backward), recipe.batch_size, recipe.window, rng)


def build_state(corpus: Corpus, config: RunConfig) -> TrainingState:
    """Make a fresh model and all that goes with it; what would not fit in memory is refused before."""
    recipe = config.fixed
    made = model_config(len(corpus.vocab), recipe)
    refuse_too_large(made, recipe.batch_size, recipe.window, config.recompute)
    batches = batches_of(corpus, config)
    optimiser = OptimiserConfig(
        kind=config.optimiser,
        learning_rate=recipe.learning_rate,
        momentum=0.9 if config.optimiser == "sgd" else 0.0,
        clip=recipe.clip,
        decay=recipe.decay,
    )
    carried = CarriedState(Truncation.parse(config.bptt))
    model = Model.initialise(made, config.seed)
    model.parameters["c"][:] = log_frequencies(corpus.vocab)
    if made.feeds_logits:
        centre_feedback(model.parameters)
    return TrainingState(model, Optimiser(optimiser), batches, carried)


def log_frequencies(vocab: Vocab) -> Floats:
    """Give the log-probability of every token by its count, half a count for those never met.

    As the output's first c, it spares a network the learning of what counting knows at once.

    >>> log_frequencies(Vocab(list("abba"))).round(2).tolist()
    [-2.2, -0.81, -0.81]
    """
    counted = dict(vocab.token_freqs)
    counts = [counted.get(token, 0) or 0.5 for token in vocab.idx_to_token]
    counts[vocab.unk] = sum(n for token, n in vocab.token_freqs if token not in vocab) or 0.5
    total = math.fsum(counts)
    return np.array([math.log(count / total) for count in counts])


def walk(
    training: TrainingState,
    corpus: Corpus,
    config: RunConfig,
    writer: RunWriter,
    policy: CheckpointPolicy,
    deadline: float | None = None,
) -> Iterator[Event]:
    """Train to the last update, look at the validation part now and then, keep the best model, judge it.

    With a deadline, in seconds of the run, the number of updates is changed on the way so that it is kept.
    """
    recipe, best, pace = config.fixed, BestModel(training, writer), StepBudget(training.seconds, config)
    ids, tokens = in_reading_order(corpus.valid.ids, config.backward), config.validation_tokens
    clock, saved = Stopwatch(training.seconds), time.monotonic()
    reports = _reports(training, config, pace)
    while training.step < recipe.steps:
        report = _next(reports, training, writer)
        training.train += (report.loss - training.train) / min(report.step, SMOOTH)
        valid = (
            pace.look(lambda: validation_loss(training.model, ids, tokens))
            if report.step in pace.looks
            else None
        )
        if valid is not None:
            _refuse_lost(math.isfinite(valid), f"the validation loss is {valid}", training, writer)
            best.look(valid)
        training.seconds = clock()
        drawn = _draw(training.model, corpus, config) if report.step in pace.draws else None
        step = StepDone(report, training.seconds, training.train, valid, drawn)
        writer.note(step, every=max(1, recipe.steps // 200))
        yield step
        if deadline is not None and pace.is_time(training.seconds, deadline):
            changed = pace.kept(training, deadline)
            if changed is not config:
                config, recipe, pace.config = changed, changed.fixed, changed
                writer.rewrite(config)
                yield PlanChanged(config)
        stop = policy.stop()
        if stop or policy.due(report.step, saved) or report.step == recipe.steps:
            finite = bool(np.isfinite(training.model.parameters.flat).all())
            _refuse_lost(finite, "some parameters are not finite", training, writer)
            writer.save(training)
            saved = time.monotonic()
        if stop:
            yield Stopped(report.step, writer.out)
            return
    part = corpus.test if has_test(corpus) else corpus.valid
    model = best.model()
    judged = evaluate(NetworkScorer(model, on_progress=policy.told), part, backward=config.backward)
    writer.conclude(part.name, judged, training)
    yield Evaluated(model, part.name, judged, training.best_step)


def _reports(training: TrainingState, config: RunConfig, pace: StepBudget | None = None) -> Iterator[Report]:
    return train(
        training.model,
        training.batches,
        training.optimiser,
        seed=config.seed,
        schedule=pace or StepBudget(0.0, config),
        recompute=config.recompute,
        carried=training.carried,
    )


def _next(reports: Iterator[Report], training: TrainingState, writer: RunWriter) -> Report:
    try:
        return next(reports)
    except Diverged as error:
        raise Diverged(f"{error}{_kept(training, writer)}") from error


def _refuse_lost(finite: bool, what: str, training: TrainingState, writer: RunWriter) -> None:
    """Raise where training has left the finite numbers: before anything of that is saved."""
    if not finite:
        advice = f"{what} after step {training.step}: lower the learning rate or the clipping norm"
        raise Diverged(advice + _kept(training, writer))


def _kept(training: TrainingState, writer: RunWriter) -> str:
    return f"; the best model so far (step {training.best_step}) is in {writer.out}" if writer.out else ""


def _draw(model: Model, corpus: Corpus, config: RunConfig) -> str:
    prompt = in_reading_order(corpus.valid.ids, config.backward)[:8].tolist()
    ids = sample(model, prompt, 64, seed=config.seed)
    return corpus.decode(in_reading_order(np.array(ids), config.backward).tolist())


def _write_down(
    folder: Path,
    training: TrainingState,
    corpus: Corpus,
    config: RunConfig,
    scored: Scored,
    bias: dict[int, float] | None,
    made_with: dict[str, Any],
) -> None:
    """Fill the folder of a new run: from the moment it has its name it can be loaded and gone on with."""
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
    with RunLog(folder / run_folder.LOG) as journal:
        journal.add({"begin": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "recipe": asdict(config.fixed)})
        RunWriter(folder, journal).save(training)
