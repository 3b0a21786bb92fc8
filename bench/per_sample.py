"""Benchmark per-sample gradients: unspool against PyTorch and against loops over the rows.

    unspool     per_sample_gradients: the batch at once, sums over time row by row
    norms       per_sample_norms: the same without storing the gradients
    batch       one gradient of the whole batch, for comparison: the minimum work
    loop        unspool, a batch of one for each row
    torch loop  PyTorch, one backward pass for each row through nn.RNN, nn.GRU or nn.LSTM
    torch vmap  torch.func.vmap(grad) over a cell written out: PyTorch's own modules cannot be mapped

Each method has its own process; they alternate, and the best of several runs counts. Each PyTorch process compares its
gradients with unspool's before it measures.

    python bench/per_sample.py [--hidden 128 256] [--batch 32] [--tau 64] [--rounds 3] [--seconds 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from table import Peer, alternate, best_seconds, save, serve, show
from unspool import Model, ModelConfig, per_sample_gradients, per_sample_norms
from unspool.gradients.bptt import backpropagate
from unspool.torch.state_dict import to_torch

K, X = 64, 32
WAYS = ("unspool", "norms", "batch", "loop", "torch loop", "torch vmap")


def made(case: dict[str, Any]) -> tuple[Model, Any, Any]:
    """Return a model that reads values, and a batch of windows for it."""
    config = ModelConfig(inputs=X, outputs=K, cell=case["cell"], hidden=case["H"], dense=True)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case["tau"], case["B"], X)).astype(np.float32)
    return Model.initialise(config, seed=0), x, rng.integers(0, K, x.shape[:2]).astype(np.int32)


def whole(model: Model, x: Any, y: Any) -> Any:
    gradient, weights = model.gradient(), model.weights()
    backpropagate(model, x, y, None, gradient, weights=weights)
    model.fold_input_tables(gradient, weights)
    return gradient.flat


def loop(model: Model, x: Any, y: Any) -> Any:
    rows = [slice(b, b + 1) for b in range(x.shape[1])]
    return np.stack(
        [whole(model, np.ascontiguousarray(x[:, r]), np.ascontiguousarray(y[:, r])) for r in rows]
    )


def torch_loop(model: Model, x: Any, y: Any) -> Callable[[], Any]:
    import torch

    config, p = model.config, model.parameters
    module = {"elman": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[config.cell](
        X, config.hidden
    )
    output = torch.nn.Linear(config.hidden, K)
    module.load_state_dict({n: torch.tensor(v) for n, v in to_torch(config, p).items()})
    output.load_state_dict({"weight": torch.tensor(p["V"]), "bias": torch.tensor(p["c"])})
    parameters = [*module.parameters(), *output.parameters()]
    x, y = torch.tensor(x), torch.tensor(y).long()

    def run() -> Any:
        found = []
        for b in range(x.shape[1]):
            o = output(module(x[:, b : b + 1])[0])[:, 0]
            loss = torch.nn.functional.cross_entropy(o, y[:, b], reduction="sum")
            found.append(torch.autograd.grad(loss, parameters))
        return torch.stack([each[-2] for each in found])  # of V

    return run


def torch_vmap(model: Model, x: Any, y: Any) -> Callable[[], Any]:
    import torch

    config, H = model.config, model.config.hidden
    p = {name: torch.tensor(np.ascontiguousarray(value)) for name, value in model.parameters.items()}

    def elman(a: Any, q: Any, h: Any, s: Any) -> Any:
        return torch.tanh(a + q), s

    def gru(a: Any, q: Any, h: Any, s: Any) -> Any:
        r, z = torch.sigmoid(a[: 2 * H] + q[: 2 * H]).split(H)
        n = torch.tanh(a[2 * H :] + r * (q[2 * H :] + p["layer0.d"]))
        return (1 - z) * n + z * h, s

    def lstm(a: Any, q: Any, h: Any, s: Any) -> Any:
        i, f, g, o = (a + q).split(H)
        s = torch.sigmoid(f) * s + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(s), s

    step = {"elman": elman, "gru": gru, "lstm": lstm}[config.cell]

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = s = torch.zeros(H)
        states = []
        for a in p["layer0.b"] + x @ p["layer0.U"].T:
            h, s = step(a, p["layer0.W"] @ h, h, s)
            states.append(h)
        o = torch.stack(states) @ p["V"].T + p["c"]
        return torch.nn.functional.cross_entropy(o, y, reduction="sum")

    x, y = torch.tensor(x), torch.tensor(y).long()
    mapped = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1, 1))
    return lambda: mapped(p, x, y)["V"]


def measure(way: str, case: dict[str, Any]) -> float:
    model, x, y = made(case)
    ours = {
        "unspool": lambda: per_sample_gradients(model, x, y),
        "norms": lambda: per_sample_norms(model, x, y),
        "batch": lambda: whole(model, x, y),
        "loop": lambda: loop(model, x, y),
    }
    if way in ours:
        return best_seconds(ours[way], case["seconds"])
    run = {"torch loop": torch_loop, "torch vmap": torch_vmap}[way](model, x, y)
    expected = per_sample_gradients(model, x, y)["V"]
    np.testing.assert_allclose(run().numpy(), expected, rtol=1e-2, atol=1e-3 * np.abs(expected).max())
    return best_seconds(run, case["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer")
    parser.add_argument("--hidden", nargs="+", type=int, default=[128, 256])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tau", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    if args.peer:
        return serve({"name": args.peer}, lambda case: measure(args.peer, case))
    sizes = {"B": args.batch, "tau": args.tau, "seconds": args.seconds}
    cases = [{"cell": cell, "H": H} | sizes for cell in ("elman", "gru", "lstm") for H in args.hidden]
    peers = [Peer(__file__, name) for name in WAYS]
    best = alternate(peers, cases, args.rounds)
    for peer in peers:
        peer.close()
    rows = [
        [case["cell"], case["H"], *(s[way] * 1e3 for way in WAYS)]
        for case, s in zip(cases, best, strict=True)
    ]
    show(["cell", "H", *(f"{way} ms" for way in WAYS)], rows)
    save("per_sample", [case | {"seconds": s} for case, s in zip(cases, best, strict=True)])


if __name__ == "__main__":
    main()
