"""Attention by blocks of decoder steps: the bits of one block, and memory that grows with the length, not its square."""

import subprocess
import sys

import numpy as np
import pytest

from unspool.kernels import native, native_bf16
from unspool.model import attention
from unspool.model.attention import AttentionWeights, attend, attend_backward, attention_weights
from unspool.model.parameters import Parameters

TAU_E, TAU_D, B, H, WE = 9, 70, 4, 5, 6


def problem(kind):
    rng = np.random.default_rng(3)
    shapes = {"A": (H, WE), "C": (H, WE + H), "a": (H,)}
    if kind == "additive":
        shapes |= {"P": (H, H), "v": (H,)}
    parameters = Parameters(shapes)
    parameters.flat[:] = rng.standard_normal(parameters.flat.shape)
    e = rng.standard_normal((TAU_E, B, WE)).astype(np.float32)
    h = rng.standard_normal((TAU_D, B, H)).astype(np.float32)
    read, written = np.array([9, 3, 0, 5], np.int32), np.array([70, 40, 4, 0], np.int32)
    dout = rng.standard_normal((TAU_D, B, H)).astype(np.float32)
    dout[np.arange(TAU_D)[:, None] >= written] = 0
    return parameters, (e, h, read, written), dout


def everything(kind, backend=native):
    """All results of attention, forward and backward, as bytes; in bf16, the gradient of v depends on the blocks."""
    parameters, given, dout = problem(kind)
    weights, gradient = AttentionWeights(parameters, backend), parameters.like()
    gradient.flat[:] = 0.25  # gradients are added to what is there
    out, tape = attend(weights, *given)
    de, dh = attend_backward(weights, tape, dout, gradient)
    names = [name for name in gradient if name != "v" or backend is native]
    found = (
        out,
        attention_weights(weights, tape),
        np.ascontiguousarray(de),
        dh,
        *(gradient[n] for n in names),
    )
    return [part.tobytes() for part in found]


@pytest.mark.parametrize("kind", ["general", "additive"])
@pytest.mark.parametrize("backend", [native, native_bf16])
@pytest.mark.parametrize(("blocks", "steps"), [(1, 1), (2, 7), (1, 100)])
def test_blocks_of_any_number_of_steps_give_the_bits_of_one_block(kind, backend, blocks, steps, monkeypatch):
    whole = everything(kind, backend)
    monkeypatch.setattr(attention, "SCORES", blocks * 32 * B * TAU_E)
    monkeypatch.setattr(attention, "MIXED", steps * B * TAU_E * H)
    parameters, given, _ = problem(kind)
    _, tape = attend(AttentionWeights(parameters, native), *given)
    assert tape.only is None, "the weights of several blocks are not kept"
    assert everything(kind, backend) == whole


@pytest.mark.parametrize("kind", ["general", "additive"])
@pytest.mark.parametrize("backend", [native, native_bf16])
def test_a_row_has_the_bits_that_it_has_in_any_batch(kind, backend):
    parameters, (e, h, read, written), dout = problem(kind)
    weights = AttentionWeights(parameters, backend)
    out, tape = attend(weights, e, h, read, written)
    de, dh = attend_backward(weights, tape, dout, parameters.like())
    for b, T in enumerate(written[:3]):
        own = [np.ascontiguousarray(part) for part in (e[:, b : b + 1], h[:T, b : b + 1])]
        alone, taped = attend(weights, *own, read[b : b + 1], written[b : b + 1])
        de_alone, dh_alone = attend_backward(weights, taped, dout[:T, b : b + 1], parameters.like())
        assert (alone[:, 0] == out[:T, b]).all()
        assert (de_alone[:, 0] == de[:, b]).all() and (dh_alone[:, 0] == dh[:T, b]).all()


PEAK = """
import resource, sys
import numpy as np
from unspool.model.parameters import Parameters
from unspool.kernels import native
from unspool.model import attention
from unspool.model.attention import AttentionWeights, attend, attend_backward
attention.SCORES, attention.MIXED = 2**16, 2**18
H, kind, tau = 4, sys.argv[1], int(sys.argv[2])
shapes = {"A": (H, H), "C": (H, 2 * H), "a": (H,)} | ({"P": (H, H), "v": (H,)} if kind == "additive" else {})
parameters = Parameters(shapes)
parameters.flat[:] = 0.1
e = np.ones((tau, 1, H), np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lengths = np.array([tau], np.int32)
weights = AttentionWeights(parameters, native)
out, tape = attend(weights, e, e, lengths, lengths)
attend_backward(weights, tape, out, parameters.like())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", ["general", "additive"])
def test_a_long_pair_takes_memory_linear_in_its_length(kind):
    """2,000 by 2,000 weights with their softmax and gradient took 204 MiB (general) and 430 MiB (additive)."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, kind, "2000"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 60 * 1024, f"{done.stdout.strip()} KiB"
