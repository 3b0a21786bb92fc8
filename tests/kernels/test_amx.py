"""Products by the tiles of AMX have the bits of all other instruction sets, and a machine whose tiles do not work does without.

Where there is no AMX, the compiled tile code runs on an emulator (tile_emulator.cpp), in child processes. What it cannot show: speed,
and how the system saves and restores tile registers.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from unspool import kernel_info
from unspool.kernels import _native

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
USED = """
import ctypes, sys
import numpy as np
from unspool import choose_isa, kernel_info
from unspool.kernels import _native
emulator = ctypes.CDLL(None)
sys.path.insert(0, sys.argv[1])
from tile_cases import bits
def state():
    return [emulator.emulator_requested(), emulator.emulator_in_use(), kernel_info()["bf16"]]
"""
"""What the programs below begin with: how often the system was asked for tiles, how many threads use them now, and the set for bf16."""


def python(program: str, **environment: str) -> str:
    """Run a program in another process; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(HERE)],
        env=os.environ | environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process with emulated tiles."""
    compiler = shutil.which("c++") or shutil.which("g++")
    cpu = Path("/proc/cpuinfo")
    if "amx" in kernel_info()["available"]:
        pytest.skip("the processor has tiles: its instructions are not left to the emulator")
    if not compiler:
        pytest.skip("no C++ compiler for the emulator of tiles")
    if "avx512" not in kernel_info()["available"] or "avx512_bf16" not in cpu.read_text():
        pytest.skip("the emulator of tiles needs a processor with AVX512_BF16")
    library = tmp_path_factory.mktemp("emulator") / "tiles.so"
    options = ["-std=c++17", "-O2", "-mfma", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run(
        [compiler, *options, str(HERE / "tile_emulator.cpp"), "-o", str(library), "-ldl"], check=True
    )
    environment = {"LD_PRELOAD": str(library), "UNSPOOL_ISA": "amx"}
    try:
        python("import unspool; assert unspool.kernel_info()['bf16'] == 'amx'", **environment)
    except AssertionError:
        pytest.skip("the kernels were compiled without AMX")
    return environment


@pytest.fixture(scope="module", params=["emulated", "machine"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "emulated":
        found: dict[str, str] = request.getfixturevalue("emulator")
        return found
    if "amx" not in kernel_info()["available"]:
        pytest.skip("this machine has no AMX")
    return {"UNSPOOL_ISA": "amx"}


def differences(environment: dict[str, str], *settings: str) -> dict[str, list[str]]:
    """Return the cases of tile_cases.py, and the settings with which each of them has other bits."""
    done = subprocess.run(
        [sys.executable, str(HERE / "tile_cases.py"), *settings],
        env=os.environ | environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_every_kernel_has_the_same_bits_by_tiles(environment: dict[str, str]) -> None:
    found = differences(environment, "amx,1", "amx,2", "amx,3", "avx512,2", "avx2,1")
    assert {"rows", "outer", "softmax", "updates", "elman", "gru", "lstm", "lnlstm"} <= set(found)
    assert not any(found.values()), found


def test_a_tile_product_in_another_order_would_be_seen_in_every_kernel(emulator: dict[str, str]) -> None:
    found = differences(emulator | {"UNSPOOL_EMULATOR": "late"}, "amx,1", "avx512,1")
    assert all(settings == ["amx,1"] for settings in found.values()), found


def test_tile_products_of_special_values(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/tiles.py"), "--products", "3000", "--no-file"],
        env=os.environ | environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "near cancellation" in done.stdout


def test_float32_never_asks_for_tiles_and_bf16_asks_once(emulator: dict[str, str]) -> None:
    program = """
a = np.ones((20, 40), np.float32)
_native.rows_product(a, _native.Panels(a, True), None)
_native.outer_product(a, a, None, False, None, None, True, 0, 0, None, True)
print(state())
packed = _native.Panels(a, True, 1, True)
for _ in range(3):
    _native.rows_product(a, packed, None)
print(state(), emulator.emulator_products() > 0, kernel_info()["isa"])
"""
    first, then = python(USED + program, **emulator).splitlines()
    assert first == "[0, 0, 'amx']"  # reported, not asked for
    assert then == "[1, 0, 'amx'] True avx512"


@pytest.mark.parametrize("fault", ["wrong", "illegal", "refused", "unforked"])
def test_tiles_that_do_not_work_are_not_used(emulator: dict[str, str], fault: str) -> None:
    program = """
found = bits("rows", "amx", 2)
print(state(), emulator.emulator_products(), found == bits("rows", "plain", 1), "amx" in kernel_info()["available"])
"""
    said = python(USED + program, UNSPOOL_EMULATOR=fault, **emulator)
    assert said == "[1, 0, 'avx512'] 0 True True\n"


def test_avx512_means_no_tiles(emulator: dict[str, str]) -> None:
    program = 'bits("rows", "avx512", 1)\nprint(state(), emulator.emulator_products())'
    assert python(USED + program, **emulator) == "[0, 0, 'avx512'] 0\n"


def test_tiles_work_after_a_fork_in_a_thread_and_under_faulthandler(emulator: dict[str, str]) -> None:
    program = """
import faulthandler, os, threading
faulthandler.enable()
expected = bits("outer", "plain", 1)
def check():
    assert bits("outer", "amx", 2) == expected and state()[1:] == [0, "amx"] and emulator.emulator_products() > 0
def in_child():
    if (child := os.fork()) == 0:
        try:
            check()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
in_child()  # which asks for itself
assert state()[0] == 0
threads = [threading.Thread(target=check) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check()
in_child()  # which inherits the tiles
print("done")
"""
    assert python(USED + program, **emulator) == "done\n"


def test_no_tile_is_in_use_after_a_kernel_that_signals_interrupted(emulator: dict[str, str]) -> None:
    program = """
import signal, time
caught = []
signal.signal(signal.SIGALRM, lambda *_: caught.append(state()[1]))
expected = bits("rows", "plain", 1)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for _ in range(3):
    assert bits("rows", "amx", 3) == expected
    assert state()[1] == 0
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(caught) > 20, state()[1])
"""
    assert python(USED + program, **emulator) == "True 0\n"


def test_a_machine_without_tiles_says_so() -> None:
    if "amx" in kernel_info()["available"]:
        pytest.skip("this machine has AMX")
    done = subprocess.run(
        [sys.executable, "-c", "import unspool; unspool.kernel_info()"],
        env=os.environ | {"UNSPOOL_ISA": "amx"}, capture_output=True, text=True,
    )  # fmt: skip
    assert f"UNSPOOL_ISA is 'amx'; this machine has {_native.available()}" in done.stderr
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/tiles.py")],
        env=os.environ | {"UNSPOOL_ISA": "plain"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "no instruction for bf16" in done.stdout and done.stdout.count("\n") == 1
