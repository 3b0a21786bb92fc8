"""Shards of a batch: their gradients are added in one fixed tree, for every cell and precision."""

import numpy as np
import pytest

from cases import CELLS
from unspool.data.batches.examples import Examples
from unspool.data.batches.text_windows import Batch
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate
from unspool.gradients.truncation import CarriedState, Truncation
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.sequence_config import SequenceConfig
from unspool.model.sequence_network import Network
from unspool.model.values import Masks
from unspool.optimisers.adam import Adam
from unspool.tasks import SequenceClassifier
from unspool.training.loop import train, updates
from unspool.training.objectives import SequenceObjective
from unspool.training.recipe import FitConfig, Recipe, choose_recipe

BY_HAND = {
    1: lambda g: g[0],
    2: lambda g: g[0] + g[1],
    3: lambda g: (g[0] + g[1]) + g[2],
    4: lambda g: (g[0] + g[1]) + (g[2] + g[3]),
    6: lambda g: ((g[0] + g[1]) + (g[2] + g[3])) + (g[4] + g[5]),
    8: lambda g: ((g[0] + g[1]) + (g[2] + g[3])) + ((g[4] + g[5]) + (g[6] + g[7])),
}
"""The tree, written out."""
B, TAU, SEED = 24, 5, 7


def some_rows(masks, rows):
    parts = [None if each is None else [mask[rows].copy() for mask in each] for each in masks]
    return Masks(*parts)


def by_hand(model, windows, S, bptt):
    """Train with the arithmetic written out: one call of `backpropagate` per shard."""
    optimiser, state, losses = Adam(clip=0.5), None, []
    for step, window in enumerate(windows):
        masks, xi = model.masks(B, seed=SEED, step=step), bptt.xi(TAU, B, seed=SEED, step=step)
        found, sums, ends = [], [], []
        for i in range(S):
            rows, gradient = slice(i * B // S, (i + 1) * B // S), model.gradient()
            begin = (
                None
                if state is None or window.reset
                else [(h[rows], s if s is None else s[rows]) for h, s in state]
            )
            result = backpropagate(
                model, window.x[:, rows].copy(), window.y[:, rows].copy(), begin, gradient, scale=1 / (TAU * B),
                masks=some_rows(masks, rows), xi=None if xi is None else xi[:, rows].copy(),
            )  # fmt: skip
            if begin is None:
                model.add_initial_state_gradient(result.d_initial_state, gradient)
            model.fold_input_tables(gradient)
            found.append(gradient.flat)
            sums.append(result.loss.sum)
            ends.append(result.state)
        state = [
            (
                np.concatenate([h for h, _ in part]),
                None if part[0][1] is None else np.concatenate([s for _, s in part]),
            )
            for part in zip(*ends, strict=True)
        ]
        optimiser.update(model.parameters, BY_HAND[S](found))
        losses.append(BY_HAND[S](sums) / (TAU * B))
    return losses


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_update_is_the_sum_of_the_shards_in_the_tree_written_by_hand(cell, precision):
    more = {} if cell == "elman" else {"recurrent_dropout": 0.2}
    config = ModelConfig(
        cell=cell,
        inputs=9,
        outputs=9,
        hidden=12,
        layers=2,
        dropout=0.3,
        precision=precision,
        learn_h0=True,
        **more,
    )
    ids = np.random.default_rng(1).integers(9, size=(4, TAU + 1, B)).astype(np.int32)
    windows = [Batch(each[:-1], each[1:], i in (0, 2)) for i, each in enumerate(ids)]
    bptt = Truncation.parse("random:0.7" if cell == "lstm" else "full")
    seen = []
    for S in BY_HAND:
        expected, found = Model.initialise(config, seed=2), Model.initialise(config, seed=2)
        losses = by_hand(expected, windows, S, bptt)
        reports = list(train(found, windows, Adam(clip=0.5), seed=SEED, bptt=bptt, shards=S))
        assert [report.loss for report in reports] == losses
        assert (found.parameters.flat == expected.parameters.flat).all()
        seen.append(found.parameters.flat.tobytes())
    assert len(set(seen)) == len(BY_HAND)  # S is a part of the recipe


def test_steps_that_are_looked_back_on_and_restarts_are_those_of_the_row_whatever_its_shard():
    """With as many shards as rows, a row has the same states as in a whole batch."""
    config = ModelConfig(cell="gru", inputs=7, outputs=7, hidden=6)
    ids = np.random.default_rng(3).integers(7, size=(6, 5, 4)).astype(np.int32)
    windows = [Batch(each[:-1], each[1:], i == 0) for i, each in enumerate(ids)]
    ends = []
    for S in (1, 2, 4):
        model, carried = Model.initialise(config, seed=0), CarriedState(Truncation.parse("truncated:2,5"))
        optimiser = Adam(learning_rate=0.0)
        for _ in train(model, windows, optimiser, carried=carried, seed=1, restart=0.3, shards=S):
            pass
        ends.append({name: array.tobytes() for name, array in carried.state().items()})
    assert ends[0] == ends[1] == ends[2] and "past.x" in ends[0]


KINDS = {
    "classes": ("many-to-one", "classes", {}),
    "tags": ("many-to-many", "classes", {}),
    "translation": ("encoder-decoder", "classes", {"attention": "general"}),
    "numbers": ("many-to-one", "numbers", {}),
}


def examples_of(kind, n, rng):
    x = [rng.integers(3, 8, size=rng.integers(1, 9)).astype(np.int32) for _ in range(n)]
    if kind == "numbers":
        return Examples(x, rng.normal(size=(n, 2)).astype(np.float32))
    if kind == "classes":
        return Examples(x, rng.integers(5, size=n).astype(np.int32))
    return Examples(
        x, [rng.integers(3, 5, size=len(each) if kind == "tags" else 3).astype(np.int32) for each in x]
    )


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_shards_of_sequences_are_summed_in_the_tree_written_by_hand(kind, precision):
    shape, head, more = KINDS[kind]
    outputs = 2 if kind == "numbers" else 5
    config = SequenceConfig(
        shape, head, inputs=8, outputs=outputs, hidden=6, dropout=0.3, precision=precision, **more
    )
    examples = examples_of(kind, 24, np.random.default_rng(5))
    batches = [
        examples.batch(np.arange(24), per_step=config.per_step),
        examples.batch(np.array([3, 1, 9, 0, 2]), per_step=config.per_step),
    ]
    for S in BY_HAND:
        expected, found = Network.initialise(config, seed=2), Network.initialise(config, seed=2)
        optimiser = Adam()
        for step, batch in enumerate(batches):
            parts, masks = [], expected.masks(batch.B, seed=SEED, step=step)
            for i in range(S):
                rows = slice(i * batch.B // S, (i + 1) * batch.B // S)
                gradient = expected.gradient()
                if batch.rows[rows].size:
                    part = batch if S == 1 else examples.batch(batch.rows[rows], per_step=config.per_step)
                    decoder = None if masks.decoder is None else some_rows(masks.decoder, rows)
                    drawn = type(masks)(some_rows(masks.encoder, rows), decoder)
                    count = expected.targets(batch)
                    expected.loss(part, masks=drawn, gradient=gradient, targets=count)
                parts.append(gradient.values.flat)
            optimiser.update(expected.parameters, BY_HAND[S](parts))
        list(updates(SequenceObjective(found, SEED, S), batches, Adam()))
        assert (found.parameters.flat == expected.parameters.flat).all()


def test_a_fit_in_shards_is_saved_and_resumed_to_the_same_bits(tmp_path):
    X, y = ["ab" * (1 + i % 4) + "cd"[i % 2] for i in range(30)], ["cd"[i % 2] for i in range(30)]
    make = lambda: SequenceClassifier(hidden=6, batch_size=8, shards=4, epochs=4, dropout=0.2)  # noqa: E731
    whole = make().fit(X, y)
    reports = make().fit_iter(X, y, run=tmp_path / "run")
    next(reports)
    next(reports)
    reports.close()
    again = make().fit(X, y, run=tmp_path / "run")
    assert (whole.network_.parameters.flat == again.network_.parameters.flat).all()


def test_shards_of_different_sizes_are_refused_with_a_batch_that_fits():
    with pytest.raises(InputError, match=r"shards is 3 and the batch has 32 rows.*a batch of 30 or 33"):
        FitConfig(shards=3)
    with pytest.raises(InputError, match=r"shards is 20 and the batch has 16 rows.*a batch of 20"):
        choose_recipe(
            vocabulary=9,
            tokens=10**6,
            seconds=1,
            measure=lambda _: 1.0,
            given={"shards": 20, "batch_size": 16},
        )
    chosen = choose_recipe(vocabulary=9, tokens=10**6, seconds=1, measure=lambda _: 1.0, given={"shards": 3})
    assert (chosen.shards, chosen.batch_size) == (3, 18) and Recipe().shards == 1
