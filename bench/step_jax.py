"""One training step of JAX for `bench/train_step.py`: tokens, float32, the whole step without the update."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from step_unspool import has_embedding, window
from unspool.model.config import INPUT_TABLE_LIMIT

GATES = {"elman": 1, "gru": 3, "lstm": 4}


def elman(p: Any, h: Any, a: Any) -> Any:
    h = jnp.tanh(a + h @ p["W"])
    return h, h


def gru(p: Any, h: Any, a: Any) -> Any:
    H, w = h.shape[1], h @ p["W"]
    r, z = jax.nn.sigmoid(a[:, :H] + w[:, :H]), jax.nn.sigmoid(a[:, H : 2 * H] + w[:, H : 2 * H])
    n = jnp.tanh(a[:, 2 * H :] + r * (w[:, 2 * H :] + p["d"]))
    h = (1 - z) * n + z * h
    return h, h


def lstm(p: Any, state: Any, a: Any) -> Any:
    h, s = state
    i, f, g, o = jnp.split(a + h @ p["W"], 4, axis=1)
    s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(s)
    return (h, s), h


CELLS = {"elman": elman, "gru": gru, "lstm": lstm}


class Step:
    """A compiled gradient of the loss of a window, and the parameters."""

    def __init__(self, case: dict[str, Any], precision: str) -> None:
        if case["inputs"] != "tokens" or case["part"] != "step":
            raise NotImplementedError("JAX: only the whole step with tokens")
        K, H, cell, embedding = case["K"], case["H"], case["cell"], has_embedding(case)
        G, rng, arrays = GATES[cell], np.random.default_rng(0), window(case)
        x, y = arrays["x"], arrays["y"]
        shapes = {
            "E": (K, H), "U": (H if embedding else K, G * H), "W": (H, G * H), "b": (G * H,), "d": (H,),
            "V": (H, K), "c": (K,),
        }  # fmt: skip
        self.parameters = {
            k: jnp.asarray(rng.standard_normal(s) * 0.05, jnp.float32) for k, s in shapes.items()
        }

        def loss(p: Any) -> Any:
            if embedding and K > INPUT_TABLE_LIMIT:
                inputs = p["E"][x] @ p["U"] + p["b"]
            else:
                inputs = ((p["E"] @ p["U"] if embedding else p["U"]) + p["b"])[x]  # the same look-up
            zero = jnp.zeros((case["B"], H), jnp.float32)
            first = (zero, zero) if cell == "lstm" else zero
            _, h = jax.lax.scan(lambda state, a: CELLS[cell](p, state, a), first, inputs)
            log_p = jax.nn.log_softmax(h @ p["V"] + p["c"])
            return -jnp.take_along_axis(log_p, y[..., None], axis=2).mean()

        self.compiled = jax.jit(jax.value_and_grad(loss))

    def __call__(self) -> None:
        """Run one step."""
        jax.block_until_ready(self.compiled(self.parameters))
