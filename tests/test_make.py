"""The Makefile says in one line what a machine lacks."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")

pytestmark = pytest.mark.skipif(MAKE is None, reason="there is no make")


def make_demo(folder: Path, python: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run `make demo` in a folder without an environment, with another Python and other programs."""
    for name in ("Makefile", "CMakeLists.txt", "pyproject.toml"):
        shutil.copyfile(ROOT / name, folder / name)
    command = [str(MAKE), "--silent", "demo", f"PYTHON={python}"]
    return subprocess.run(
        command, cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=False
    )


def test_an_old_python_is_one_line_of_advice(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = make_demo(tmp_path, str(old), "/usr/bin:/bin")
    assert done.returncode != 0
    assert done.stdout.count("\n") == 1
    assert "needs Python 3.11 or newer" in done.stdout and "PYTHON=python3.12" in done.stdout


def test_a_missing_compiler_is_one_line_of_advice(tmp_path: Path) -> None:
    done = make_demo(tmp_path, sys.executable, str(tmp_path))
    assert done.returncode != 0
    assert done.stdout.count("\n") == 1
    assert "needs a C++17 compiler" in done.stdout and "apt install g++" in done.stdout


def test_missing_tools_of_make_arm_are_one_line_of_advice(tmp_path: Path) -> None:
    command = [str(MAKE), "--silent", "arm", f"PYTHON={sys.executable}"]
    done = subprocess.run(
        command, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stdout.count("\n") == 1
    assert "apt install cmake g++-aarch64-linux-gnu qemu-user-static" in done.stdout


def test_compiling_is_announced_before_it_starts() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    announced = recipe.index("echo 'The native module is compiled now, which takes about a minute.'")
    assert announced < recipe.index("pip install --quiet -e .\n")
