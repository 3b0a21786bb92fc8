"""Few states kept give the same bits as all; what would not fit in memory is refused before it is tried."""

import itertools

import numpy as np
import pytest

from cases import CELLS, Windowed, config_of, named, same_bits
from unspool.errors import InputError
from unspool.gradients.bptt import backpropagate, bytes_of_model_tape
from unspool.model.config import ModelConfig
from unspool.model.network import Model


def everything(case, recompute, xi=None, carry_after=None):
    model, gradient = case.model, case.model.gradient()
    passed = backpropagate(
        model, case.x, case.y, case.start, gradient, scale=0.01, lengths=case.lengths, masks=case.masks, xi=xi,
        recompute=recompute, carry_after=carry_after,
    )  # fmt: skip
    model.add_initial_state_gradient(passed.d_initial_state, gradient)
    model.fold_input_tables(gradient)
    found = {name: gradient.values.stored(name).copy() for name in gradient.values}
    found |= {"sum": np.float64(passed.loss.sum), "count": passed.loss.count, "each": passed.loss.per_target}
    for name in ("state", "at", "d_initial_state"):
        found |= named(getattr(passed, name), name)
    return found


@pytest.mark.parametrize("kind", ["one-hot", "gathered", "dense"])
@pytest.mark.parametrize("cell", CELLS)
def test_few_states_kept_give_the_same_bits_as_all(cell, kind):
    config = config_of(cell, kind, 9, layers=2, dropout=0.3, recurrent_dropout=0.2, learn_h0=True)
    case = Windowed(config, tau=23, B=4, ragged=True)
    xi = np.random.default_rng(0).integers(0, 3, (23, 4)).astype(np.float32)
    for carry_after in (None, 0, 7, 23):
        same_bits(everything(case, "none", xi, carry_after), everything(case, "sqrt", xi, carry_after))


@pytest.mark.parametrize("tau", [1, 2, 3, 4, 16, 17])
def test_any_length_can_be_cut_into_stretches(tau):
    case = Windowed(config_of("lstm", "one-hot", 5), tau=tau, B=2)
    same_bits(everything(case, "none"), everything(case, "sqrt"))


def test_the_tape_that_is_kept_grows_with_the_root():
    config = ModelConfig(cell="lstm", inputs=3, outputs=3, hidden=7, layers=2)
    kept = [bytes_of_model_tape(config, tau, 4, "sqrt") for tau in (1024, 4096, 16_384)]
    assert [round(later / now, 1) for now, later in itertools.pairwise(kept)] == [2.0, 2.0]
    model = Model.initialise(config, seed=0)
    output = model.forward(np.zeros((50, 4), np.int32))
    held = sum(tape.nbytes for layer in output.tape for tape in layer.directions)
    assert held == bytes_of_model_tape(config, 50, 4)


def test_a_window_that_would_not_fit_is_refused_with_what_to_do():
    model = Model.initialise(ModelConfig(inputs=3, outputs=3, hidden=2), seed=0)
    x = np.broadcast_to(np.int32(0), (50_000_000, 4096))
    with pytest.raises(InputError, match=r"GiB.*recompute='sqrt'"):
        backpropagate(model, x, x, None, model.gradient())


def test_both_directions_cannot_be_cut_into_stretches():
    case = Windowed(config_of("gru", "one-hot", 5, bidirectional=True), tau=9, B=2)
    with pytest.raises(InputError, match="one direction"):
        everything(case, "sqrt")


def test_an_unknown_memory_is_refused():
    case = Windowed(config_of("gru", "one-hot", 5), tau=9, B=2)
    with pytest.raises(InputError, match="recompute is 'little'"):
        everything(case, "little")
