"""Benchmark one training step in float32 and bf16: unspool against PyTorch, and JAX for tokens.

    python bench/train_step.py [--precision both] [--inputs tokens dense lengths] [--quick] [--profile]

Three kinds of inputs, each with its own tables:

    tokens    the whole step (look-up, recurrence, output layer, softmax, cross-entropy, all gradients, Adam), and its recurrent
              part. Up to K = 1,024 unspool looks up b + U x in a table; PyTorch has an Embedding(K, H) and a layer that reads H
              values. Beyond, both have an embedding. These figures are not those of the layer alone.
    dense     the layer alone with X inputs per step: the same arithmetic on both sides.
    lengths   the layer alone with X inputs and rows of different lengths: PyTorch packs them, unspool takes the lengths.

The recurrent part and the layer alone are: packing of the weights, forward, backward, the gradients of W, U and b; the gradient
of h is given. PyTorch's bf16 is measured under autocast and as a module in bfloat16, and the faster one counts. Where it crashes,
the table names the signal. UNSPOOL_ISA sets the instruction set of unspool, --avx2 that of every library. Each contender has its
own process; they alternate (see `contenders.py`). A ratio is a speed-up: the time of the other divided by ours, best (median).
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any

from contenders import Case, best_and_median, measure, serve_steps, start, with_time_left
from step_tables import print_profile, print_tables, summarise
from table import save

GATES = {"elman": 1, "gru": 3, "lstm": 4}
PRECISIONS = {
    "unspool": {"float32": ["float32"], "bf16": ["bf16"]},
    "torch": {"float32": ["float32"], "bf16": ["autocast", "bfloat16"]},
    "jax": {"float32": ["float32"], "bf16": []},
}
"""The contenders of each library by precision."""
QUICK = {"hidden": [256], "batch": [32], "tau": [64], "classes": [64], "widths": ["64"]}
AVX2 = {
    "UNSPOOL_ISA": "avx2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of a run: inputs, part, cell and sizes; K = 0 without an output layer."""
    for inputs in args.inputs:
        if inputs == "tokens":
            groups = [("step", K, 0) for K in args.classes if "step" in args.parts]
            groups += [("recurrent", min(args.classes), 0)] if "recurrent" in args.parts else []
        else:
            groups = [("recurrent", 0, width) for width in (args.widths if inputs == "dense" else ["64"])]
        grid = itertools.product(groups, args.cells, args.hidden, args.batch, args.tau)
        for (part, K, width), cell, H, B, tau in grid:
            if cell == "elman" and inputs == "tokens" and K > 64:
                continue  # as before: Elman with few tokens only
            X = H if width == "H" else int(width)
            yield {"inputs": inputs, "part": part, "K": K, "width": str(width), "X": X, "cell": cell, "H": H,
                   "B": B, "tau": tau, "embedding": args.embedding, "update": args.update}  # fmt: skip


def flops(case: Case) -> float:
    """Return the floating-point operations of a step: three products per weight matrix, two where x has no gradient."""
    H, G = case["H"], GATES[case["cell"]]
    rows = case["tau"] * case["B"] * (0.5 if case["inputs"] == "lengths" else 1)
    X = H if case["inputs"] == "tokens" and case["K"] > 1024 else case["X"]
    table = case["K"] * H * G * H if case["embedding"] else 0
    output = rows * H * case["K"] if case["part"] == "step" else 0
    products_of_U = 3 if case["inputs"] == "tokens" else 2
    return 2 * (rows * G * H * (3 * H + products_of_U * X) + 3 * (output + table))


def expected_seconds(case: Case) -> float:
    """Return the relative cost of a case, for the time left."""
    return flops(case) + 2e10


def be_contender(name: str) -> None:
    """Serve the steps of a library in a precision; end without a word where it is not installed."""
    library, precision = name.split()
    hello: dict[str, Any] = {"name": name}
    try:
        module = importlib.import_module(f"step_{library}")
        hello["version"] = importlib.import_module(library).__version__
    except ImportError:
        return
    if library == "unspool":
        import numpy as np

        import unspool
        from unspool.kernels import _native, native_bf16

        if precision == "bf16":  # the first kernel in bf16 tests the tiles
            native_bf16.matmul(*(np.ones((8, 8), np.float32) for _ in range(2)))
        hello |= unspool.kernel_info() | {"peak": max(_native.fma_peak(0.3) for _ in range(3))}
    serve_steps(hello, lambda case: module.Step(case, precision))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--precision", choices=["float32", "bf16", "both"], default="both")
    choices = ["tokens", "dense", "lengths"]
    parser.add_argument("--inputs", nargs="+", choices=choices, default=choices)
    parser.add_argument("--parts", nargs="+", choices=["step", "recurrent"], default=["step", "recurrent"])
    parser.add_argument("--peers", nargs="+", choices=list(PRECISIONS), default=list(PRECISIONS))
    parser.add_argument("--cells", nargs="+", choices=list(GATES), default=list(GATES))
    parser.add_argument("--hidden", nargs="+", type=int, default=[256, 512, 1024])
    parser.add_argument("--batch", nargs="+", type=int, default=[16, 32, 64])
    parser.add_argument("--tau", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--classes", nargs="+", type=int, default=[64, 10_000], help="K, for tokens")
    parser.add_argument("--widths", nargs="+", default=["8", "64", "H"], help="X, for dense inputs; H is H")
    parser.add_argument("--seconds", type=float, default=0.05, help="of one repetition")
    parser.add_argument("--rounds", type=int, default=10, help="repetitions")
    parser.add_argument("--quick", action="store_true", help="one size per table")
    parser.add_argument(
        "--profile", action="store_true", help="the parts of our step in place of the comparison"
    )
    parser.add_argument(
        "--embedding", action="store_true", help="unspool and JAX: an embedding of width H for any K"
    )
    parser.add_argument("--no-update", dest="update", action="store_false", help="leave out Adam")
    parser.add_argument("--avx2", action="store_true", help="hold every library to AVX2")
    parser.add_argument(
        "--name", help="of the file of results; default: train_step, with the instruction set if it is set"
    )
    if parser.parse_args().quick:
        parser.set_defaults(**QUICK)
    return parser.parse_args()


def compare(args: argparse.Namespace, name: str) -> None:
    """Measure all cases with all contenders; print and save the tables."""
    wanted = ["float32", "bf16"] if args.precision == "both" else [args.precision]
    libraries = ["unspool"] if args.profile else args.peers
    contenders = start(
        __file__, [f"{of} {each}" for of in libraries for want in wanted for each in PRECISIONS[of][want]]
    )
    for contender in contenders:
        print(contender.hello)
    if (load := os.getloadavg()[0]) > 0.5:
        print(f"the load is {load:.1f}: measure on a quiet machine, PyTorch suffers most", file=sys.stderr)
    hello = {contender.name: contender.hello for contender in contenders}
    peak = hello.get("unspool float32", {}).get("peak")
    figures: list[dict[str, Any]] = []
    for case in with_time_left(list(cases(args)), expected_seconds):
        only = [each for each in contenders if case["inputs"] == "tokens" or not each.name.startswith("jax")]
        found, failed = measure(only, case, rounds=args.rounds, seconds=args.seconds, profile=args.profile)
        if args.profile:
            parts = {
                who: {p: best_and_median([f[p] for f in of]) for p in of[0]} for who, of in found.items()
            }
            figures.append(case | {"milliseconds": parts, "failed": failed})
        else:
            times = {who: best_and_median(of) for who, of in found.items()}
            figures.append(case | {"milliseconds": times, "failed": failed, "gflop": flops(case) * 1e-9})
    for contender in contenders:
        contender.close()
    if args.profile:
        print_profile(figures)
        save(f"{name}_profile", {"contenders": hello, "cases": figures})
        return
    summary = summarise(figures, peak)
    print_tables(figures, summary)
    save(
        name,
        {
            "contenders": hello,
            "rounds": args.rounds,
            "load": load,
            "peak": peak,
            "summary": summary,
            "cases": figures,
        },
    )


def main() -> None:
    args = options()
    if args.peer:
        be_contender(args.peer)
        return
    if args.avx2:
        os.environ |= AVX2
    isa = "avx2" if args.avx2 else os.environ.get("UNSPOOL_ISA")
    compare(args, args.name or (f"train_step_{isa}" if isa else "train_step"))


if __name__ == "__main__":
    main()
