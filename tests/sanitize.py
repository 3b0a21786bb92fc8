"""`make sanitize`: the kernels under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

    python tests/sanitize.py [address] [thread] [--calls N] [--parts I …]

Builds the native module once for each kind into build/sanitize-<kind>, then makes seeded random calls of
every kernel and cell, right and wrong ones, in both precisions, on every instruction set and with several threads, each part in
a process of its own. Any report of a sanitizer, and any error but ours, ends it with a code that is not zero.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CALLS = {"address": 100_000, "thread": 6_000}
PARTS = {"address": 8, "thread": 4}
OPTIONS = {
    "address": {
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=66:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=66",
        "PYTHONMALLOC": "malloc",
    },
    "thread": {"TSAN_OPTIONS": "halt_on_error=1:exitcode=66:second_deadlock_stack=1"},
}
LIBRARIES = {
    "address": ("libasan.so", "libubsan.so", "libstdc++.so.6"),
    "thread": ("libtsan.so", "libstdc++.so.6"),
}


# ── building and starting ──────────────────────────────────────────────────────────────────────────────────


def build(kind: str) -> Path:
    """Install the package with this sanitizer into a folder of its own."""
    place = ROOT / "build" / f"sanitize-{kind}"
    site = place / "site"
    shutil.rmtree(site, ignore_errors=True)
    alone = [] if _importable("scikit_build_core", "nanobind") else ["--build-isolation"]
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(ROOT),
        "-C", f"build-dir={place / 'cmake'}", "-C", "install.strip=false", "-C", f"cmake.define.UNSPOOL_SANITIZE={kind}",
    ]  # fmt: skip
    subprocess.run(command if alone else [*command, "--no-build-isolation"], check=True)
    return site


def _importable(*names: str) -> bool:
    return (
        subprocess.run([sys.executable, "-c", f"import {', '.join(names)}"], capture_output=True).returncode
        == 0
    )


def start(kind: str, site: Path, part: int, calls: int) -> int:
    """Run one part in a process that has the sanitizer's library before all others; return its exit code."""
    compiler = os.environ.get("CC", "gcc")
    found = [
        subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        for name in LIBRARIES[kind]
    ]
    paths = os.pathsep.join([str(site), sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]])
    environment = os.environ | OPTIONS[kind] | {"PYTHONPATH": paths}
    environment["LD_PRELOAD"] = " ".join(done.stdout.strip() for done in found)
    # -S: no .pth file, so that no editable installation comes first. Without address randomisation, since
    # ThreadSanitizer has places of its own for what it keeps.
    fixed = ["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []
    command = [sys.executable, "-S", __file__, "--inside", kind, "--parts", str(part), "--calls", str(calls)]
    return subprocess.run([*fixed, *command], env=environment).returncode


def main() -> int:
    """Build, run all parts, and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "kinds", nargs="*", choices=[*CALLS, []], help="address, thread; both where none is named"
    )
    parser.add_argument("--calls", type=int, help="how many calls in all parts together")
    parser.add_argument("--parts", type=int, nargs="*", help="which parts to run; all where none is named")
    parser.add_argument("--built", action="store_true", help="use what was built before")
    parser.add_argument("--inside", choices=list(CALLS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside, args.parts[0], args.calls)
    for kind in args.kinds or CALLS:
        site = ROOT / "build" / f"sanitize-{kind}" / "site" if args.built else build(kind)
        calls = (args.calls or CALLS[kind]) // PARTS[kind]
        for part in range(PARTS[kind]) if args.parts is None else args.parts:
            if code := start(kind, site, part, calls):
                print(f"sanitize: {kind}, part {part}: exit code {code}", file=sys.stderr)
                return 1
        print(f"sanitize: {kind}: clean", flush=True)
    return 0


# ── random calls ───────────────────────────────────────────────────────────────────────────────────────────


class Calls:
    """A stream of random calls. One in six arguments is wrong in some way."""

    def __init__(self, seed: list[int], large: float) -> None:
        from unspool.cells import CELLS
        from unspool.errors import InputError
        from unspool.kernels import native, native_bf16
        from unspool.kernels.tape import Lookup
        from unspool.model.config import ModelConfig
        from unspool.model.network import Model
        from unspool.model.parameters import Parameters, shapes_of
        from unspool.model.stream import Stream
        from unspool.optimisers.adam import Adam
        from unspool.training.loop import train

        self.rng = np.random.default_rng(seed)
        self.large = large  # the share of calls that are large enough for several threads
        self.cells = CELLS
        self.ops, self.InputError, self.Lookup = native, InputError, Lookup
        self.precisions = {"float32": native, "bf16": native_bf16}
        self.Model, self.ModelConfig, self.Stream = Model, ModelConfig, Stream
        self.Parameters, self.shapes_of = Parameters, shapes_of
        self.train, self.optimiser = train, Adam
        self.sets = native.kernel_info()["available"]
        self.refused = self.done = 0
        self.changing = np.zeros(4000, np.int32)
        self.kinds = [
            self.product, self.outer, self.tables, self.window, self.window, self.window, self.softmax,
            self.updates, self.masks, self.streamed, self.trained,
        ]  # fmt: skip

    def run(self, calls: int, settings: bool = True) -> None:
        """Make so many calls; with settings, on changing instruction sets and threads."""
        for i in range(calls):
            if settings and i % 50 == 0:
                self.ops.choose_isa(self.sets[(i // 50) % len(self.sets)])
                self.ops.set_threads(int(self.rng.integers(1, 6)))
            try:
                self.kinds[self.rng.integers(len(self.kinds))]()
                self.done += 1
            except self.InputError:
                self.refused += 1

    # sizes and arrays

    def size(self, most: int = 40) -> int:
        return int(self.rng.choice([0, 1, 2, 7, 15, 16, 17, 33, self.rng.integers(0, most + 1)]))

    def big(self) -> bool:
        return bool(self.rng.random() < self.large)

    def precision(self) -> str:
        return str(self.rng.choice(list(self.precisions)))

    def backend(self):
        """The kernels with products in one of the precisions."""
        return self.precisions[self.precision()]

    def wrong(self, share: float = 0.04) -> bool:
        return bool(self.rng.random() < share)

    def floats(self, *shape: int) -> np.ndarray:
        """Values of this shape, or rarely of another shape, dtype or layout, or not finite."""
        rng = self.rng
        if self.wrong():
            shape = tuple(max(0, n + int(rng.integers(-1, 2))) for n in shape)
        if self.wrong(0.02):
            shape = shape[1:] if rng.random() < 0.5 else (*shape, 2)
        values = rng.standard_normal(shape).astype(np.float32)
        if self.wrong(0.02):
            values = values.astype(rng.choice([np.float64, np.float16]))
        if self.wrong() and values.size:
            values.reshape(-1)[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e38, 1e-42])
        return self.laid_out(values)

    def laid_out(self, values: np.ndarray) -> np.ndarray:
        """The same values, rarely with other strides, read-only or misaligned."""
        way = int(self.rng.integers(0, 60))
        if way == 0:
            return np.asfortranarray(values)
        if way == 1:
            wide = np.zeros(
                (*values.shape[:-1], 2 * values.shape[-1] + 3) if values.ndim else (), values.dtype
            )
            if values.ndim:
                wide[..., : values.shape[-1]] = values
                return wide[..., : values.shape[-1]]
        if way == 2:
            values.setflags(write=False)
        if way == 3 and values.size:
            return (
                np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(values.dtype).reshape(values.shape)
            )
        if way == 4 and values.ndim:
            return values[::-1]
        return values

    def ids(self, most: int, *shape: int) -> np.ndarray:
        rng = self.rng
        values = rng.integers(0, max(most, 1), shape).astype(np.int32)
        if self.wrong() and values.size:
            values.reshape(-1)[rng.integers(values.size)] = rng.choice([-1, most, 2**31 - 1, -(2**31)])
        return self.laid_out(values.astype(np.int64) if self.wrong(0.02) else values)

    # calls

    def product(self) -> None:
        M, K, N = self.size(), self.size(), self.size()
        if self.big():
            M, K, N = M + 70, K + 60, N + 60
        if self.wrong(0.01):
            K += 520  # more than one block of k in bf16
        backend = self.backend()
        packed = backend.pack(self.floats(N, K), transposed=True, groups=int(self.rng.choice([1, 1, 2, 3])))
        start = [None, self.floats(M, N), self.floats(N)][self.rng.integers(3)]
        backend.matmul(self.floats(M, K), packed, start=start)
        backend.matmul(self.floats(M, K), self.floats(K, N))

    def outer(self) -> None:
        R, M, N = self.size(), self.size(), self.size()
        if self.big():
            R, M, N = R + 190, M + 60, N + 60
        backend = self.backend()
        out = self.floats(M, N) if self.rng.random() < 0.5 else None
        backend.matmul(self.floats(R, M), self.floats(R, N), transpose_a=True, out=out)
        self.ops.column_sum(self.floats(R, N), out=self.floats(N) if self.rng.random() < 0.5 else None)
        K, added = self.size() or 1, bool(self.rng.random() < 0.5)
        lookup = self.Lookup(self.floats(K, M), self.ids(K, R)) if M >= N else None
        backend.sum_over_time(
            self.floats(R, M), self.floats(R, N), self.floats(M, N),
            accumulate=added, lookup=lookup, accumulate_lookup=added,
        )  # fmt: skip
        H = N % 70 + 1
        backend.sum_over_time(
            self.floats(R, 4 * H), self.floats(R, H), self.floats(3 * H, H), accumulate=added,
            lookup=self.Lookup(self.floats(K, 3 * H), self.ids(K, R)), accumulate_lookup=not added,
            gap=(2 * H, H), total=self.floats(H), accumulate_total=added,
        )  # fmt: skip

    def tables(self) -> None:
        K, N, R = self.size(), self.size(), self.size()
        if self.big():
            R, N = R + 4000, N + 60
        self.ops.gather(self.floats(K, N), self.ids(K, R))
        self.ops.gather(self.floats(4, 8), self.changing)  # another thread may write to them meanwhile
        added = bool(self.rng.random() < 0.5)
        self.ops.scatter_add(self.floats(K, N), self.ids(K, R), self.floats(R, N), accumulate=added)
        self.ops.shift_rows(self.floats(K, N), self.floats(N))

    def window(self) -> None:
        rng, backend = self.rng, self.backend()
        cell = self.cells[str(rng.choice(list(self.cells)))]
        tau, B, H = self.size(9) % 12, self.size(9) % 20, self.size() or 1
        if self.big():
            tau, B, H = 5, B + 20, H + 40
            if rng.random() < 0.1:  # a W that is shared by units
                tau, B, H = 2, 1 + B % 3, int(400 * len(cell.gates) ** -0.5) or 1
        G = len(cell.gates)
        p = self.floats(tau, B, G * H)
        if rng.random() < 0.5:
            K = self.size() or 1
            p = self.Lookup(self.floats(K, G * H), self.ids(K, tau, B))
        lengths = self.ids(tau + 1, B) if rng.random() < 0.5 else None
        W = self.floats(G * H, H) if cell.has_W else None
        options = {"lengths": lengths, "reverse": bool(rng.random() < 0.5)}
        options["activation"] = str(rng.choice(["tanh", "relu", "sigmoid", "identity"]))
        options["recurrent_mask"] = self.floats(B, H) if cell.has_W and rng.random() < 0.4 else None
        options["s0"] = self.floats(B, H) if cell.has_cell_state or rng.random() < 0.1 else None
        options["extra"] = [self.floats(*each.shape(H, G * H)) for each in cell.extra]
        tape = backend.window_forward(cell, p, W, self.floats(B, H), **options)
        arriving = {"dh": self.floats(tau, B, H), "dh_end": self.floats(B, H), "ds_end": self.floats(B, H)}
        arriving["xi"] = self.floats(tau, B)
        given = {name: v for name, v in arriving.items() if rng.random() < 0.7}
        backend.window_backward(tape, W, extra=options["extra"], **given, consume=bool(rng.random() < 0.5))

    def softmax(self) -> None:
        R, H, K = self.size(), self.size(), self.size()
        if self.big():
            R, H, K = R + int(self.rng.choice([100, 1100])), H + 8, K + 60
        backend = self.backend()
        V, h, y = self.floats(K, H), self.floats(R, H), self.ids(K, R)
        c = self.floats(K) if self.rng.random() < 0.5 else None
        if self.rng.random() < 0.5:
            backend.softmax_cross_entropy(h, V, c, y)
            return
        dc = self.floats(K) if self.rng.random() < 0.5 else None
        added = bool(self.rng.random() < 0.5)
        backend.softmax_cross_entropy(h, V, c, y, scale=0.1, dV=self.floats(K, H), dc=dc, accumulate=added)

    def updates(self) -> None:
        n = self.size(9000) + (40_000 if self.big() else 0)
        self.ops.global_norm(self.floats(n))
        self.ops.slope(self.ops.activate(self.floats(n), "tanh"), "tanh")
        self.ops.adam(
            *(self.floats(n) for _ in range(4)),
            step=int(self.rng.integers(0, 5)),
            learning_rate=0.1,
            decay=0.1,
        )
        m = self.floats(n) if self.rng.random() < 0.5 else None
        self.ops.sgd(self.floats(n), self.floats(n), m, learning_rate=0.1, momentum=0.9)

    def masks(self) -> None:
        rng = self.rng
        tau, B, H = self.size() % 9, self.size(), self.size() + (40 if self.big() else 0)
        seed, stream = int(rng.integers(-(2**62), 2**62)), int(rng.integers(2**62))
        self.ops.dropout_mask((B, H), seed=seed, stream=stream, rate=float(rng.uniform(-0.1, 1.1)))
        self.ops.scale_rows(self.floats(tau, B, H), self.floats(B, H))

    def config(self):
        rng = self.rng
        cell = str(rng.choice(list(self.cells)))
        H, inputs = (self.size() or 1) + (30 if self.big() else 0), self.size() or 1
        embedding = H if (tied := rng.random() < 0.3) else int(rng.choice([0, 3]))
        layers, dropout = int(rng.integers(1, 4)), float(rng.choice([0, 0.5]))
        return self.ModelConfig(
            inputs=inputs, outputs=inputs if tied else self.size() or 1, cell=cell, hidden=H, layers=layers,
            embedding=embedding, tied=bool(tied), dropout=dropout, recurrent_dropout=dropout,
            learn_h0=bool(rng.random() < 0.5), precision=self.precision(),
        )  # fmt: skip

    def model(self, config):
        """A model with any parameters: to begin as a fresh one would take longer than all that follows."""
        parameters = self.Parameters(self.shapes_of(config))
        parameters.flat[:] = self.rng.uniform(-0.5, 0.5, parameters.flat.shape)
        return self.Model(config, parameters)

    def streamed(self) -> None:
        rng = self.rng
        config = self.config()
        stream = self.Stream(self.model(config))
        for i in range(5):
            options = {
                "temperature": float(rng.choice([0, 1e-42, 0.5, 1])),
                "top_k": int(rng.integers(0, 50)),
            }
            options["top_p"] = float(rng.choice([1e-50, 0.3, 1.0]))
            token = int(rng.integers(-1 if self.wrong() else 0, config.inputs))
            stream.advance(token, seed=int(rng.integers(2**60)), index=i, **options)
        stream.restore(stream.state())
        stream.restore(
            [(self.floats(config.hidden), self.floats(config.hidden)) for _ in range(config.layers)]
        )
        stream.read(0)
        stream.draw(0.5, top_p=0.9)

    def trained(self) -> None:
        from types import SimpleNamespace

        config = self.config()
        model = self.model(config)
        tau, B = self.size() % 7, self.size() % 9 + (20 if self.big() else 0)
        window = SimpleNamespace(
            x=self.ids(config.inputs, tau, B), y=self.ids(config.outputs, tau, B), reset=True
        )
        next(self.train(model, [window], self.optimiser()))


def inside(kind: str, part: int, calls: int) -> int:
    """Run one part; the sanitizer's library is loaded."""
    from unspool.kernels import _native, native

    assert f"sanitize-{kind}" in str(_native.__file__), _native.__file__
    _native.set_L2_bytes(2**20)  # the sizes of large windows are for this cache
    warnings.simplefilter("ignore")  # of NumPy: the values that are not finite are meant
    made = [Calls([part, 0], large=0.02 if kind == "address" else 0.5)]
    if kind == "address":
        made[0].run(calls)
    else:
        made += [Calls([part, i], large=0.5) for i in (1, 2)]
        several_threads(made, calls // len(made), native)
    done, refused = sum(one.done for one in made), sum(one.refused for one in made)
    print(f"sanitize: {kind}, part {part}: {done} calls computed, {refused} refused", flush=True)
    return 0 if done > refused > 0 else 1


def several_threads(made: list[Calls], calls: int, native) -> None:
    """Run each stream of calls in a thread of its own; another changes the pool and the instruction set."""
    failures: list[BaseException] = []
    over = threading.Event()

    def work(one: Calls) -> None:
        try:
            one.run(calls, settings=False)
        except BaseException as error:
            failures.append(error)

    def change() -> None:
        at = 0
        while not over.wait(0.01):
            native.set_threads(2 + at % 3)
            native.choose_isa(made[0].sets[at % len(made[0].sets)])
            for one in made:
                one.changing[:] = at % 6  # 4 and 5 are outside the table
            at += 1

    workers = [threading.Thread(target=work, args=(one,)) for one in made]
    changer = threading.Thread(target=change)
    for thread in (*workers, changer):
        thread.start()
    for worker in workers:
        worker.join()
    over.set()
    changer.join()
    if failures:
        raise failures[0]


if __name__ == "__main__":
    sys.exit(main())
