"""I/O calls that fail: a sample of the loop in bench/faults.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "bench" / "faults.py"

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason="bench/ is not here"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls are interposed on Linux"),
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
]


def test_a_call_that_fails_is_one_line_and_nothing_is_lost() -> None:
    command = [sys.executable, PROGRAM, "--every", "23", "--no-file"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    *table, named, _ = done.stdout.splitlines()
    assert named.startswith("names: ") and named.count(",") > 3  # calls of several kinds
    rows = [line.split() for line in table[1:]]
    assert [row[0] for row in rows] == [
        "train",
        "classify",
        "regress",
        "forecast",
        "compress",
        "generate",
        "generate",
    ]
    assert all(int(row[-5]) > 30 and int(row[-4]) > 0 and int(row[-1]) == 0 for row in rows)
    assert sum(int(row[-2]) for row in rows) > 10  # exit code 2: the faults reached the command


FAULTY = """
import sys
import faults
from pathlib import Path

def app(*_, **options):
    try:
        with Path(sys.argv[1]).open("wb", buffering=0) as file:
            file.write(b"wh")
            file.write(b"ole")
    except OSError:
        print("unspool: cannot be written", file=sys.stderr)
        sys.exit(2)

def load(path):
    if path.read_bytes() != b"whole":
        raise ValueError("half")

faults.cli.app = app
faults.CASES = {"faulty": faults.Case(["{place}/out"], "out", load)}
faults.prepare = lambda place: (place / "template").mkdir() or place / "template"
faults.main()
"""


def test_the_loop_finds_a_command_that_leaves_a_half_written_file(tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    command = [sys.executable, tmp_path / "faulty.py", "--no-file"]
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1 and "'write'" in done.stdout and "damaged: half" in done.stdout, done.stderr
