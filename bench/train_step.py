"""Benchmark one training step of a character model: unspool against PyTorch and JAX.

The step is: token look-up, recurrence, output layer, softmax and cross-entropy, and the gradients of all
parameters; no update. PyTorch reads tokens through `Embedding(K, H)`. In unspool and JAX, U is a table of one-hot
inputs, (K, G H); with --embedding they also have an embedding of width H before U. Each library has its own process; they
alternate, and the best of several runs counts.

    python bench/train_step.py [--cells elman gru lstm] [--seconds 0.5] [--rounds 3] [--peers unspool torch jax]
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from table import Peer, alternate, best_seconds, geometric_mean, save, serve, show

K = 64
GATES = {"elman": 1, "gru": 3, "lstm": 4}
AVX2 = {
    "UNSPOOL_ISA": "avx2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}


def data(case: dict[str, Any]) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    shape = (case["tau"], case["B"])
    return rng.integers(0, K, shape).astype(np.int32), rng.integers(0, K, shape).astype(np.int32)


def flops(case: dict[str, Any]) -> float:
    """Return the floating-point operations of a step: three products per weight matrix."""
    H, rows, G = case["H"], case["tau"] * case["B"], GATES[case["cell"]]
    table = K * H * G * H if case["embedding"] else 0
    return 3 * 2 * (rows * G * H * H + rows * H * K + table)


def unspool_step(case: dict[str, Any]) -> Any:
    from unspool import Model, ModelConfig

    H = case["H"]
    embedding = H if case["embedding"] else 0
    model = Model.initialise(
        ModelConfig(inputs=K, outputs=K, cell=case["cell"], hidden=H, embedding=embedding), seed=0
    )
    gradient = model.gradient()
    x, y = data(case)

    def step() -> None:
        weights = model.weights()
        gradient.clear()
        output = model.forward(x, weights=weights)
        loss = model.loss(output, y, scale=1 / y.size, weights=weights, gradient=gradient)
        model.backward(output, loss.dh, gradient, weights=weights, consume=True)
        model.fold_input_tables(gradient, weights)

    return step


def torch_step(case: dict[str, Any]) -> Any:
    import torch

    H = case["H"]
    module = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[case["cell"]]
    table, recurrence, output = torch.nn.Embedding(K, H), module(H, H), torch.nn.Linear(H, K)
    parameters = [*table.parameters(), *recurrence.parameters(), *output.parameters()]
    x, y = (torch.from_numpy(a.astype(np.int64)) for a in data(case))

    def step() -> None:
        for p in parameters:
            p.grad = None
        h, _ = recurrence(table(x))
        torch.nn.functional.cross_entropy(output(h).view(-1, K), y.view(-1)).backward()

    return step


def jax_step(case: dict[str, Any]) -> Any:
    import jax
    import jax.numpy as jnp

    H, cell = case["H"], case["cell"]
    G = GATES[cell]
    rng = np.random.default_rng(0)
    shapes = {
        "E": (K, H),
        "U": (H if case["embedding"] else K, G * H),
        "W": (H, G * H),
        "b": (G * H,),
        "d": (H,),
        "V": (H, K),
        "c": (K,),
    }
    parameters = {k: jnp.asarray(rng.standard_normal(s) * 0.05, jnp.float32) for k, s in shapes.items()}
    x, y = data(case)

    def forward(p: Any) -> Any:
        table = (p["E"] @ p["U"] if case["embedding"] else p["U"]) + p["b"]
        inputs = table[x]  # the same look-up
        zero = jnp.zeros((case["B"], H), jnp.float32)

        def elman(h: Any, a: Any) -> Any:
            h = jnp.tanh(a + h @ p["W"])
            return h, h

        def gru(h: Any, a: Any) -> Any:
            w = h @ p["W"]
            r, z = jax.nn.sigmoid(a[:, :H] + w[:, :H]), jax.nn.sigmoid(a[:, H : 2 * H] + w[:, H : 2 * H])
            n = jnp.tanh(a[:, 2 * H :] + r * (w[:, 2 * H :] + p["d"]))
            h = (1 - z) * n + z * h
            return h, h

        def lstm(state: Any, a: Any) -> Any:
            h, s = state
            i, f, g, o = jnp.split(a + h @ p["W"], 4, axis=1)
            s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(s)
            return (h, s), h

        step = {"elman": elman, "gru": gru, "lstm": lstm}[cell]
        _, h = jax.lax.scan(step, (zero, zero) if cell == "lstm" else zero, inputs)
        log_p = jax.nn.log_softmax(h @ p["V"] + p["c"])
        return -jnp.take_along_axis(log_p, y[..., None], axis=2).mean()

    compiled = jax.jit(jax.value_and_grad(forward))
    return lambda: jax.block_until_ready(compiled(parameters))


STEPS = {"unspool": unspool_step, "torch": torch_step, "jax": jax_step}


def be_peer(name: str) -> None:
    hello: dict[str, Any] = {"name": name}
    if name == "unspool":
        import unspool
        from unspool.kernels import _native

        hello |= unspool.kernel_info() | {"peak": max(_native.fma_peak(0.3) for _ in range(3))}
    elif name == "torch":
        import torch

        hello["version"] = torch.__version__
    else:
        try:
            import jax
        except ImportError:
            return
        hello["version"] = jax.__version__
    serve(hello, lambda case: best_seconds(STEPS[name](case), case["seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer")
    parser.add_argument("--peers", nargs="+", default=["unspool", "torch", "jax"])
    parser.add_argument("--cells", nargs="+", default=["elman", "gru", "lstm"])
    parser.add_argument("--hidden", nargs="+", type=int, default=[64, 128, 256, 512])
    parser.add_argument("--batch", nargs="+", type=int, default=[32, 64])
    parser.add_argument("--tau", nargs="+", type=int, default=[35, 128])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedding", action="store_true")
    parser.add_argument("--avx2", action="store_true", help="hold every library to AVX2")
    args = parser.parse_args()
    if args.peer:
        return be_peer(args.peer)

    if args.avx2:
        os.environ |= AVX2
    peers = [Peer(__file__, name) for name in args.peers]
    peers = [peer for peer in peers if peer.hello is not None]
    for peer in peers:
        print(peer.hello)
    peak = next(peer.hello["peak"] for peer in peers if peer.name == "unspool")
    cases = [
        {"cell": cell, "H": H, "B": B, "tau": tau, "seconds": args.seconds, "embedding": args.embedding}
        for cell in args.cells
        for H in args.hidden
        for B in args.batch
        for tau in args.tau
    ]
    best = alternate(peers, cases, args.rounds)
    for peer in peers:
        peer.close()

    others = [peer.name for peer in peers if peer.name != "unspool"]
    rows, figures = [], []
    for case, seconds in zip(cases, best, strict=True):
        rate = flops(case) / seconds["unspool"] * 1e-9
        ratios = {name: seconds[name] / seconds["unspool"] for name in others}
        figures.append(case | {"milliseconds": {k: v * 1e3 for k, v in seconds.items()}, "gflops": rate}
                       | {"ratio": ratios, "of_peak": rate / peak})  # fmt: skip
        rows.append(
            [case["cell"], case["H"], case["B"], case["tau"], *(seconds[p.name] * 1e3 for p in peers),
             *(ratios[name] for name in others), rate, f"{100 * rate / peak:.0f} %"]
        )  # fmt: skip
    columns = ["cell", "H", "B", "tau", *(f"{p.name} ms" for p in peers), *(f"x {n}" for n in others)]
    show([*columns, "GF/s", "of peak"], rows)
    summary: dict[str, Any] = {"peak": peak}
    for cell in args.cells:
        for name in others:
            ratios_of = [f["ratio"][name] for f in figures if f["cell"] == cell]
            summary[f"{cell} x {name}"] = {"mean": geometric_mean(ratios_of), "least": min(ratios_of)}
            print(
                f"{cell}: {geometric_mean(ratios_of):.2f} times {name} (geometric mean), least {min(ratios_of):.2f}"
            )
    save(
        "train_step_avx2" if args.avx2 else "train_step",
        {"peers": [peer.hello for peer in peers], "summary": summary, "cases": figures},
    )


if __name__ == "__main__":
    main()
