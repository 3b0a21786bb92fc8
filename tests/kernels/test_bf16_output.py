"""The output layer in bf16 with a large vocabulary: threads are at o and at dh at the same time."""

from dataclasses import replace

import numpy as np

from unspool import Model, ModelConfig, kernel_info, set_threads


def test_the_gradient_of_h_is_the_same_with_any_number_of_threads():
    config = replace(ModelConfig(inputs=5, outputs=3000, hidden=256, cell="gru"), precision="bf16")
    model = Model.initialise(config, seed=0)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (32, 16)).astype(np.int32)
    y = rng.integers(0, 3000, x.shape).astype(np.int32)
    output, before = model.forward(x), kernel_info()["threads"]
    try:
        found = []
        for threads in (1, 2, 3, 2, 3):
            set_threads(threads)
            found.append(model.loss(output, y, gradient=model.gradient()).dh)
    finally:
        set_threads(before)
    assert all((dh == found[0]).all() for dh in found)
