"""Products by the instruction VDPBF16PS have the bits of all other instruction sets, also from matrices that another set has packed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unspool import choose_isa, kernel_info
from unspool.errors import InputError
from unspool.kernels import _native

HERE = Path(__file__).parent
NAME = "avx512_bf16"
if NAME not in kernel_info()["available"]:
    pytest.skip("no AMD CPU with AVX512_BF16", allow_module_level=True)


def run(*command: str, isa: str = NAME) -> str:
    """Run a Python program in another process; return its output."""
    done = subprocess.run(
        [sys.executable, *command], env=os.environ | {"UNSPOOL_ISA": isa}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_kernel_has_the_same_bits() -> None:
    said = run(str(HERE / "tile_cases.py"), f"{NAME},1", f"{NAME},2", f"{NAME},3", "avx512,2")
    found: dict[str, list[str]] = json.loads(said)
    assert {"rows", "outer", "softmax", "updates", "elman", "gru", "lstm", "lnlstm"} <= set(found)
    assert not any(found.values()), found


def test_chains_of_special_values() -> None:
    said = run(str(HERE.parents[1] / "bench/tiles.py"), "--products", "20000", "--no-file")
    assert "near cancellation" in said


def test_it_is_the_set_of_bf16_and_avx512_that_of_float32() -> None:
    program = """
import numpy as np, unspool
from unspool.kernels import _native
a = np.ones((5, 5), np.float32)
_native.rows_product(a, _native.Panels(a, True, 1, True), None)  # which tests the instruction
print(unspool.kernel_info()["isa"], unspool.kernel_info()["bf16"])
"""
    assert run("-c", program).split() == ["avx512", NAME]
    assert run("-c", program, isa="avx512").split() == ["avx512", "avx512"]


@pytest.mark.parametrize("packed_by", [NAME, "avx512", "plain"])
@pytest.mark.parametrize("used_by", [NAME, "avx512", "plain"])
def test_a_packed_matrix_can_be_used_by_every_set(packed_by: str, used_by: str) -> None:
    rng = np.random.default_rng(0)
    W, A = rng.standard_normal((4 * 37, 37), np.float32), rng.standard_normal((9, 37), np.float32)
    results = []
    for first, second in (("plain", "plain"), (packed_by, used_by)):
        choose_isa(first)
        panels, gates = _native.Panels(W, True, 1, True), _native.Panels(W, True, 4, True)
        choose_isa(second)
        p, s = np.zeros((3, 9, 4 * 37), np.float32), np.zeros_like(A)
        results.append(
            [
                _native.rows_product(A, panels, None),
                *_native.window_forward("lstm", 0, p, None, None, gates, A, s, [], None, False, None)[:3],
            ]
        )
    for expected, found in zip(*results, strict=True):
        assert expected is not None and found is not None
        assert expected.tobytes() == found.tobytes()


def test_matrices_that_different_sets_have_packed_are_not_used_together() -> None:
    V, h, y = np.ones((5, 3), np.float32), np.ones((2, 3), np.float32), np.zeros(2, np.int32)
    choose_isa(NAME)
    Vt = _native.Panels(V, True, 1, True)
    choose_isa("plain")
    with pytest.raises(InputError, match="V must be packed like its transpose"):
        _native.softmax_cross_entropy(
            h, Vt, _native.Panels(V, False, 1, True), None, y, 2, 1.0, np.empty_like(V), None, False
        )
