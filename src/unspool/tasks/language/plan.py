"""Plan a run of a language model: what the network is made of, how it is trained, and its state before the first update."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from unspool.cluster.cost import measure_cost
from unspool.cluster.group import current
from unspool.data.batches.lines import LineBatches
from unspool.data.batches.text_windows import Batches, random_batches, sequential_batches
from unspool.data.text.corpus import Corpus
from unspool.data.text.lines import line_spans
from unspool.data.tokens.vocab import Vocab
from unspool.errors import InputError
from unspool.evaluation.language import in_reading_order
from unspool.gradients.truncation import AUTO, CarriedState, Truncation
from unspool.kernels.arrays import Floats
from unspool.model.config import ModelConfig
from unspool.model.cutoffs import AUTO as AUTO_SOFTMAX
from unspool.model.feedback import centre_feedback
from unspool.model.memory import refuse_too_large
from unspool.model.network import Model
from unspool.model.outputs import output_of
from unspool.model.parameters import prefix
from unspool.optimisers import make_optimiser
from unspool.options import build
from unspool.tasks.language.warm_start import WarmStart
from unspool.training.choose_bptt import measure_bias, probe_recipe, rows_for, shortest
from unspool.training.choose_softmax import choose_softmax
from unspool.training.deadline import StepBudget, early_validations
from unspool.training.events import RunConfig
from unspool.training.loop import Report, train
from unspool.training.recipe import ROWS, TAU, Recipe, choose_recipe
from unspool.training.shards import whole_shards
from unspool.training.state import TrainingState
from unspool.training.timing import measure_update_rate

VALIDATING = 0.04
"""The largest share of the time that validation takes during training."""


def chosen_bptt(corpus: Corpus, config: RunConfig) -> tuple[RunConfig, dict[int, float] | None]:
    """Replace bptt auto by truncated:K, and return the bias that it was chosen by."""
    if config.bptt != AUTO:
        return config, None
    given = _with_softmax(corpus, config.given)
    recipe = probe_recipe(len(corpus.vocab), len(corpus.train.ids), given, config.minutes)
    probe = replace(config, bptt="full", recompute="none", optimiser="adam", recipe=recipe)
    training = build_state(corpus, probe)
    ids = in_reading_order(corpus.train.ids, config.backward)
    bias = measure_bias(training.model, train_text(training, probe), recipe.steps, ids, config.seed)
    K = shortest(bias, config.bptt_tolerance)
    S = config.given.get("shards", 1)
    given = {"batch_size": whole_shards(rows_for(K, len(ids)), S)} | config.given
    return replace(config, bptt=f"truncated:{K}", given=given), bias


def plan(corpus: Corpus, config: RunConfig, clock: Callable[[], float]) -> RunConfig:
    """Fix all that is open: sizes and steps by what fits into the minutes on this machine."""
    recipe = config.recipe or choose_recipe(
        vocabulary=len(corpus.vocab),
        tokens=len(corpus.train.ids),
        seconds=max(0.1, (60 * config.minutes - clock()) * (1 - VALIDATING)),
        measure=lambda recipe: _measured(corpus, config, recipe),
        given=_with_softmax(corpus, _given(corpus, config)),
    )
    held_out = len(corpus.valid.ids)
    # A token costs a third of what it costs in training; all validations together stay within their share.
    look = int(3 * VALIDATING * recipe.steps * recipe.batch_size * recipe.window / config.validations)
    look = config.validation_tokens or min(held_out, max(look, 2000))
    return replace(config, recipe=recipe, validation_tokens=look)


def _with_softmax(corpus: Corpus, given: dict[str, Any]) -> dict[str, Any]:
    """Return what is fixed of the recipe, with the output layer chosen for the vocabulary."""
    if given.get("pattern", "10.3") != "10.3":
        if given.get("softmax", "full") not in ("full", AUTO_SOFTMAX):
            raise InputError(
                f"softmax is {given['softmax']}, which needs pattern 10.3; choose softmax='full'"
            )
        return given | {"softmax": "full"}
    return given | {
        "softmax": choose_softmax(given.get("softmax", AUTO_SOFTMAX), np.array(token_counts(corpus.vocab)))
    }


def _given(corpus: Corpus, config: RunConfig) -> dict[str, Any]:
    """Return what is fixed of the recipe; an update every K1 steps is a window of K1 steps, and random windows need no restarts."""
    bptt, given = Truncation.parse(config.bptt), config.given
    if corpus.end is not None:
        return _sizes_of_lines(corpus, corpus.end, given.get("shards", 1)) | given
    if config.batches == "random":
        given = given | {"restart": 0.0}
    if bptt.kind != "truncated":
        return given
    if given.get("window", bptt.K1) != bptt.K1:
        raise InputError(
            f"window is {given['window']} and bptt {config.bptt}, which makes an update every {bptt.K1} steps; "
            "give one of the two"
        )
    return given | {"window": bptt.K1}


def _sizes_of_lines(corpus: Corpus, end: int, S: int) -> dict[str, Any]:
    """Return a window as long as the mean line, and so many rows that an update reads as many tokens as one of other texts."""
    _, lengths = line_spans(corpus.train.ids, end)
    mean = max(1, round(float(lengths.mean())))
    rows = max(1, min(ROWS * TAU // mean, len(lengths) // 4))
    return {"window": mean, "batch_size": whole_shards(rows, S), "restart": 0.0}


def _measured(corpus: Corpus, config: RunConfig, recipe: Recipe) -> float:
    """Measure how many updates per second a recipe makes, on a model that is discarded."""
    config = replace(config, recipe=recipe)
    # At most a second of it, and of a short run a hundredth.
    return measure_update_rate(
        train_text(build_state(corpus, config), config), seconds=min(1.0, 0.6 * config.minutes)
    )


def note_cost(corpus: Corpus, config: RunConfig) -> None:
    """Measure what an update costs, where several processes train."""
    if (group := current()).size > 1:
        recipe, state = config.fixed, build_state(corpus, config)
        found, N = train_text(state, config), state.model.parameters.count
        group.cost = measure_cost(found, group, S=recipe.shards, B=recipe.batch_size, N=N)


def model_config(K: int, recipe: Recipe) -> ModelConfig:
    """Return the config of the network of a recipe."""
    return build(ModelConfig, recipe, inputs=K, outputs=K, learn_h0=recipe.h0 == "learned")


def batches_of(corpus: Corpus, config: RunConfig) -> Batches:
    """Return the minibatches of the training part: in sequence, so that the state is carried, at random, or whole lines."""
    if corpus.end is not None:
        ids, rng = in_reading_order(corpus.train.ids, config.backward), np.random.default_rng(config.seed)
        return LineBatches(ids, corpus.end, config.fixed.batch_size, rng)
    make = sequential_batches if config.batches == "sequential" else random_batches
    recipe, rng = config.fixed, np.random.default_rng(config.seed)
    return make(in_reading_order(corpus.train.ids, config.backward), recipe.batch_size, recipe.window, rng)


def build_state(corpus: Corpus, config: RunConfig, start: WarmStart | None = None) -> TrainingState[Model]:
    """Return a new model, or one that starts from a trained one, with its training state; refuse one that would not fit in memory."""
    recipe = config.fixed
    made = model_config(len(corpus.vocab), recipe)
    batches = batches_of(corpus, config)
    refuse_too_large(made, recipe.batch_size, batches.tau, config.recompute)
    optimiser = make_optimiser(
        config.optimiser, learning_rate=recipe.learning_rate, clip=recipe.clip, decay=recipe.decay
    )
    carried = CarriedState(Truncation.parse(config.bptt))
    model = Model.initialise(made, config.seed)
    output_of(made).set_bias(made, model.parameters, log_frequencies(corpus.vocab))
    if recipe.input_scale:
        scale_inputs(model, recipe.input_scale)
    if start is not None:
        start.fill(model, log_frequencies)
    elif made.feeds_logits:
        centre_feedback(model.parameters)
    return TrainingState(model, optimiser, batches, carried)


def token_counts(vocab: Vocab) -> list[float]:
    """Return the count of every token in the order of the ids, half a count for those that never occur."""
    counted = dict(vocab.token_freqs)
    counts = [counted.get(token, 0) or 0.5 for token in vocab.idx_to_token]
    unknown = counted.get(vocab.idx_to_token[vocab.unk], 0)
    counts[vocab.unk] = unknown + sum(n for token, n in vocab.token_freqs if token not in vocab) or 0.5
    return counts


def scale_inputs(model: Model, scale: float) -> None:
    """Multiply the initial U of the first layer so that the units of U x(t) have this standard deviation for a token.

    U starts with entries of variance 1/X for X inputs of variance one. A one-hot token, or a row of a tied embedding, has norm 1
    instead of √X: its U x(t) is √X times too small.

    >>> model = Model.initialise(ModelConfig(cell="gru", inputs=100, outputs=100, hidden=64), seed=0)
    >>> scale_inputs(model, 1.0)
    >>> round(float(model.table().std()), 1)
    1.0
    """
    config, U = model.config, prefix(0, False) + "U"
    norm_is_one = config.tied or not config.embedding
    factor = scale * math.sqrt(config.embedding or config.inputs) if norm_is_one else scale
    model.parameters.stored(U)[:] *= np.float32(factor)


def log_frequencies(vocab: Vocab) -> Floats:
    """Return the log-probability of every token by its count, half a count for those that never occur.

    As the initial c, it spares the network from learning the frequencies.

    >>> log_frequencies(Vocab(list("abba"))).round(2).tolist()
    [-2.2, -0.81, -0.81]
    """
    counts = token_counts(vocab)
    total = math.fsum(counts)
    return np.array([math.log(count / total) for count in counts])


def step_budget(config: RunConfig, begun: float = 0.0, deadline: float | None = None) -> StepBudget:
    """Return the updates of a run that has taken `begun` seconds so far; the deadline is in seconds of the run."""
    recipe = config.fixed
    return StepBudget(
        recipe.steps,
        warmup=recipe.warmup,
        schedule=config.schedule,
        validations=lambda steps: early_validations(steps, config.validations),
        plans=recipe.plans,
        begun=begun,
        deadline=deadline,
    )


def train_text(
    training: TrainingState[Model], config: RunConfig, budget: StepBudget | None = None
) -> Iterator[Report]:
    """Update the model of a run without end; the caller stops."""
    assert training.batches is not None
    return train(
        training.model,
        training.batches,
        training.optimiser,
        seed=config.seed,
        schedule=(budget or step_budget(config)).schedule,
        recompute=config.recompute,
        carried=training.carried,
        restart=config.fixed.restart,
        shards=config.fixed.shards,
    )
