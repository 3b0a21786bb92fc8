"""Benchmark `unspool.torch.RNN`, `GRU` and `LSTM` against PyTorch's modules: the same calls, all overhead included.

    python bench/torch_modules.py [--parts train packed inference token autocast] [--quick]

    train      forward and backward of one layer, dense inputs of X values, the gradient of the output given
    packed     the same for a PackedSequence of B rows of 100 to 1,000 steps
    inference  forward under no_grad
    token      one step of one row under no_grad: `step` of a frozen module against PyTorch's module
    autocast   as train, under torch.autocast("cpu", dtype=torch.bfloat16)

Both modules run in the same kind of process with the same number of threads. The two processes alternate (see `contenders.py`). A ratio
is the time of PyTorch divided by ours, by best (median) repetitions; means are geometric.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
from collections.abc import Iterator
from typing import Any

from contenders import Case, best_and_median, measure, serve_steps, start, with_time_left
from table import save, show

CELLS = ("RNN", "GRU", "LSTM")
PARTS = ("train", "packed", "inference", "token", "autocast")
LIBRARIES = ("unspool", "torch")


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of a run."""
    for part, cell, H in itertools.product(args.parts, CELLS, args.hidden):
        if part == "token":
            yield {"part": part, "cell": cell, "H": H, "X": H, "B": 1, "tau": 1}
        elif part == "packed":
            yield {"part": part, "cell": cell, "H": H, "X": 64, "B": args.batch, "tau": 1000}
        else:
            for width in args.widths:
                X = H if width == "H" else int(width)
                yield {"part": part, "cell": cell, "H": H, "X": X, "B": args.batch, "tau": args.tau}


def expected_seconds(case: Case) -> float:
    """Return the relative cost of a case, for the time left."""
    return float(case["H"] * case["B"] * case["tau"] * (case["H"] + case["X"]) + 1e8)


class Step:
    """A module, its inputs and what one repetition does with them."""

    def __init__(self, case: dict[str, Any], library: str) -> None:
        from torch.nn.utils.rnn import pack_padded_sequence

        import torch
        import unspool.torch

        torch.manual_seed(0)
        self.torch, self.part = torch, case["part"]
        kind = getattr(unspool.torch if library == "unspool" else torch.nn, case["cell"])
        X, H, B, tau = (case[name] for name in ("X", "H", "B", "tau"))
        self.module = kind(X, H)
        x: Any = torch.randn(tau, B, X)
        self.dh = torch.randn(tau, B, H)
        if self.part == "packed":
            lengths = torch.linspace(tau, tau // 10, B).long()
            x = pack_padded_sequence(x, lengths)
            self.dh = torch.randn(len(x.data), H)
        self.x = x
        zero = torch.zeros(1, 1, H)
        self.state = (zero, zero) if case["cell"] == "LSTM" else zero
        self.frozen = self.module.freeze() if library == "unspool" and self.part == "token" else None

    def __call__(self) -> None:
        """Run one repetition."""
        torch = self.torch
        if self.frozen is not None:
            _, self.state = self.frozen.step(self.x[0], self.state)
        elif self.part == "token":
            with torch.no_grad():
                _, self.state = self.module(self.x, self.state)
        elif self.part == "inference":
            with torch.no_grad():
                self.module(self.x)
        else:
            for parameter in self.module.parameters():
                parameter.grad = None
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.part == "autocast"):
                y = self.module(self.x)[0]
            y = y.data if self.part == "packed" else y
            y.backward(self.dh.to(y.dtype))


def be_contender(name: str) -> None:
    """Serve the steps of one library."""
    import torch
    import unspool

    hello = {
        "name": name,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        **unspool.kernel_info(),
    }
    serve_steps(hello, lambda case: Step(case, name))


def ratio(case: dict[str, Any], statistic: str) -> float:
    """Return the time of PyTorch divided by ours; NaN where one of them failed."""
    times = case["milliseconds"]
    if set(times) != set(LIBRARIES):
        return float("nan")
    return float(times["torch"][statistic] / times["unspool"][statistic])


def print_tables(figures: list[dict[str, Any]]) -> dict[str, float]:
    """Print one table for each part; return the geometric means."""
    means: dict[str, float] = {}
    for part in dict.fromkeys(case["part"] for case in figures):
        mine = [case for case in figures if case["part"] == part]
        print(f"\n{part}")
        rows = [
            [case["cell"], case["X"], case["H"], *(case["milliseconds"].get(of, {}).get("best") for of in LIBRARIES),
             ratio(case, "best"), ratio(case, "median")]
            for case in mine
        ]  # fmt: skip
        show(["cell", "X", "H", "unspool ms", "PyTorch ms", "ratio", "by medians"], rows)
        for cell in (*CELLS, None):
            found = [r for case in mine if cell in (case["cell"], None) and (r := ratio(case, "best")) > 0]
            if found:
                key = f"{part} {cell or 'all'}"
                means[key], means[f"{key} lowest"] = statistics.geometric_mean(found), min(found)
                print(f"{cell or 'all'}: geometric mean {means[key]:.2f}, lowest {min(found):.2f}")
        for case in mine:
            for who, why in case["failed"].items():
                print(f"{who}, {case['cell']}, X = {case['X']}, H = {case['H']}: {why}")
    return means


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--hidden", nargs="+", type=int, default=[128, 256, 512])
    parser.add_argument("--widths", nargs="+", default=["8", "64", "H"], help="X; H is H")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tau", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one repetition")
    parser.add_argument("--rounds", type=int, default=10, help="repetitions")
    parser.add_argument("--quick", action="store_true", help="one size, three repetitions")
    if parser.parse_args().quick:
        parser.set_defaults(hidden=[128], widths=["64"], rounds=3)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.peer:
        be_contender(args.peer)
        return
    contenders = start(__file__, LIBRARIES)
    for contender in contenders:
        print(contender.hello)
    if (load := os.getloadavg()[0]) > 0.5:
        print(f"the load is {load:.1f}: measure on a quiet machine, PyTorch suffers most", file=sys.stderr)
    figures: list[dict[str, Any]] = []
    for case in with_time_left(list(cases(args)), expected_seconds):
        found, failed = measure(contenders, case, rounds=args.rounds, seconds=args.seconds)
        figures.append(
            case | {"milliseconds": {who: best_and_median(of) for who, of in found.items()}, "failed": failed}
        )
    hello = {contender.name: contender.hello for contender in contenders}
    for contender in contenders:
        contender.close()
    means = print_tables(figures)
    save(
        "torch_modules",
        {"contenders": hello, "rounds": args.rounds, "load": load, "means": means, "cases": figures},
    )


if __name__ == "__main__":
    main()
